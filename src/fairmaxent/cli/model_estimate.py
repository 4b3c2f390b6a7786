"""What a model trained on the result will do: whether it is estimated by default, and how it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.text import text_table
from fairmaxent.data.frames import has_library
from fairmaxent.errors import FairMaxEntError
from fairmaxent.report import model_estimate

if TYPE_CHECKING:
    from fairmaxent.fit.fit import Fit
    from fairmaxent.progress import Progress
    from fairmaxent.report.delivered import Mode

EstimateChoice = Literal["auto", "rows", "weights", "none"]

# Up to this many distinct rows of two outcomes it takes a few seconds at most, and is done by default.
LARGEST = 20_000
# A relabelled fit learns labels in each fold as well: so many times the work.
_RELABELLED = 4

_NOT_ESTIMATED = "how a model trained on the result will behave was not estimated"


def with_outlook(fit: Fit, asked: EstimateChoice, mode: Mode, progress: Progress) -> tuple[Fit, str | None]:
    """Return the fit with the estimate in its certificate, or the fit as it is and why it has none."""
    from fairmaxent.fit.pipeline import with_estimate
    from fairmaxent.fit.request import Estimate

    if asked == "none":
        return fit, None
    if asked != "auto":
        return with_estimate(fit, Estimate(output=asked), progress=progress), None
    if set(fit.certificate.wanted["statistical_rate"].values()) == {None}:
        return fit, None  # nobody asked how outcomes are given
    if mode == "top-up":
        return fit, f"{_NOT_ESTIMATED}; to estimate it, use --estimate rows or weights"
    distinct, outcomes = fit.table.distinct, fit.roles.attributes[0].size
    work = distinct * max(1, outcomes - 1) * (1 if fit.soft is None else _RELABELLED)
    if work > LARGEST:
        return (
            fit,
            f"{_NOT_ESTIMATED}, because that takes long for {distinct:,} distinct rows; to do it anyway, use "
            f"--estimate {mode}",
        )
    if not has_library("sklearn"):
        return fit, (
            f"{_NOT_ESTIMATED}, because scikit-learn is not installed; install it, or use --estimate {mode}, which "
            "then trains fairmaxent's own model"
        )
    try:
        return with_estimate(fit, Estimate(output=mode), progress=progress), None
    except FairMaxEntError as problem:  # a part of a small table may lack what the whole has
        return fit, f"{_NOT_ESTIMATED}: {problem.spelled(as_typed)}"


def outlook_table(fit: Fit) -> str:
    """What is expected before and after; nothing where it was not estimated."""
    known = fit.certificate.to_dict()["downstream"]
    if known is None:
        return ""
    head = f"{known['student']} trained on the {known['output']}"
    return text_table(
        [head, "before", "after"],
        [[name, *values] for name, _, *values in model_estimate.lines(known, model_estimate.MAIN)],
    )
