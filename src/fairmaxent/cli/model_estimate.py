"""What a model trained on the result will do: whether it is estimated unasked, and how it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fairmaxent.cli.text import text_table
from fairmaxent.data.frames import has_library
from fairmaxent.errors import FairMaxEntError
from fairmaxent.report import model_estimate

if TYPE_CHECKING:
    from fairmaxent.fit.fit import Fit
    from fairmaxent.progress import Progress
    from fairmaxent.report.delivered import Mode

OutlookOption = Literal["auto", "rows", "weights", "none"]

# Distinct rows of two outcomes up to which it takes a few seconds at most, and is done unasked.
LARGEST = 20_000
# A relabelled fit learns labels in each fold as well: so many times the work.
_RELABELLED = 4

_NOT_SAID = "what a model trained on the result will do was not estimated"


def with_outlook(fit: Fit, asked: OutlookOption, mode: Mode, progress: Progress) -> tuple[Fit, str | None]:
    """Return the fit with the estimate in its certificate, or the fit as it is and why it has none."""
    from fairmaxent.fit.pipeline import with_downstream

    if asked == "none":
        return fit, None
    if asked != "auto":
        return with_downstream(fit, asked, progress=progress), None
    if set(fit.certificate.wanted["statistical_rate"].values()) == {None}:
        return fit, None  # nobody asked how outcomes are given
    if mode == "top-up":
        return fit, f"{_NOT_SAID}; ask with --downstream rows or weights"
    distinct, outcomes = fit.table.distinct, fit.roles.attributes[0].size
    work = distinct * max(1, outcomes - 1) * (1 if fit.soft is None else _RELABELLED)
    if work > LARGEST:
        return fit, f"{_NOT_SAID}, as it takes long for {distinct:,} distinct rows; ask with --downstream {mode}"
    if not has_library("sklearn"):
        own = f"ask with --downstream {mode}, which then trains a model of our own"
        return fit, f"{_NOT_SAID}, as scikit-learn is not installed; install it, or {own}"
    try:
        return with_downstream(fit, mode, progress=progress), None
    except FairMaxEntError as problem:  # a part of a small table may lack what the whole has
        return fit, f"{_NOT_SAID}: {problem}"


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
