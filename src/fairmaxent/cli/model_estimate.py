"""What a model trained on the result will do: whether it is estimated by default, and how it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fairmaxent.cli.before_after import about
from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.text import text_table
from fairmaxent.errors import spelled
from fairmaxent.report import model_estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairmaxent.fit.fit import Fit
    from fairmaxent.fit.plans import Estimate, OutputOption
    from fairmaxent.progress import Progress
    from fairmaxent.report.delivered import Mode

EstimateChoice = Literal["auto", "rows", "weights", "none"]

_NOT_ESTIMATED = "how a model trained on the result will behave was not estimated"


def with_outlook(
    fit: Fit, asked: EstimateChoice, mode: Mode, trial_of: Callable[[OutputOption], Estimate], progress: Progress
) -> tuple[Fit, str | None]:
    """Return the fit with the estimate in its certificate, or the fit as it is and why it has none."""
    from fairmaxent.fit.pipeline import with_default_estimate, with_estimate

    if asked == "none":
        return fit, None
    if asked != "auto":
        return with_estimate(fit, trial_of(asked), progress=progress), None
    if mode == "top-up":
        return fit, f"{_NOT_ESTIMATED}; to estimate it, use --estimate rows or weights"
    fit = with_default_estimate(fit, trial_of(mode), progress=progress)
    missing = fit.certificate.not_estimated
    if missing is None or not missing.why:
        return fit, None
    return fit, f"{_NOT_ESTIMATED}, because {spelled(missing.why, as_typed)}"


def outlook_table(fit: Fit) -> str:
    """What is expected before and after; nothing where it was not estimated."""
    known = fit.certificate.to_dict()["estimate"]
    if known is None:
        return ""
    levels = fit.certificate.measure.favourable
    decided = f", for {about(fit, levels[0])}" if len(levels) == 1 else ""
    head = f"{known['student']} trained on the {known['output']}{decided}"
    return text_table(
        [head, "before", "after", f"on {known['measured_on']:,} other people (95 %)"],
        [
            [name, before.value, after.value, model_estimate.range_text(after)]
            for name, _, before, after in model_estimate.lines(known, model_estimate.MAIN)
        ],
    )
