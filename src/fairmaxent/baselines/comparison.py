"""fairmaxent and other methods side by side on a user's table, with the verdict first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fairmaxent.baselines.cross_validation import ClassifierName, Compared, CrossValidation
from fairmaxent.baselines.verdict import Verdict, verdict
from fairmaxent.data import frames
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.levels import cell_text, value_text
from fairmaxent.data.roles import GroupsOption, without_identifiers
from fairmaxent.document.text import table_lines
from fairmaxent.document.words import percent
from fairmaxent.errors import InputError, Option, check_choice
from fairmaxent.fit.option_values import RateOption
from fairmaxent.fit.request import Request
from fairmaxent.options import refuse_unknown
from fairmaxent.progress import Progress, silent

_WIDTH = 80
_HEAD = ("method", "sizes", "outcomes", "accuracy", "decisions", "95% range", "CPU s")


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each method made of a table, and the verdict."""

    request: Request
    classifier: ClassifierName
    results: tuple[Compared, ...]
    library: str
    most_frequent: float
    """Share of the most frequent outcome: the accuracy of a model that decides the same for everybody."""

    @property
    def verdict(self) -> Verdict:
        """Which method to choose, and what that costs."""
        return verdict(self.results, self.request)

    def to_frame(self) -> Any:
        """One row for each method, as a frame of the same library as the table."""
        table: dict[str, list[Any]] = {"method": [result.method for result in self.results]}
        for name in ("representation_rate", "statistical_rate", "accuracy", "predicted_rate", "seconds"):
            table[name] = [getattr(result.scores, name, None) for result in self.results]
        ranges = [getattr(result.scores, "predicted_interval", None) or (None, None) for result in self.results]
        table["predicted_rate_low"], table["predicted_rate_high"] = map(list, zip(*ranges, strict=True))
        table["refused"] = [None if result.refused is None else str(result.refused) for result in self.results]
        return frames.new_frame(table, self.library)

    def __repr__(self) -> str:
        reasons = [(one.method, str(one.refused)) for one in self.results if one.refused is not None]
        return comparison_text(self, reasons)


def compare(
    frame: Any,
    outcome: str,
    protected: str | Sequence[str],
    *,
    favourable: object = None,
    groups: GroupsOption = "each",
    representation_rate: RateOption = None,
    statistical_rate: RateOption = 1.0,
    folds: int = 3,
    classifier: ClassifierName = "tree",
    domain: Domain | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Try fairmaxent and other methods on a table by cross-validation, and say which to choose.

    Each method learns from all folds but one. A classifier trained on its result, a decision ``"tree"`` or a
    ``"logistic"`` regression, is tested on the original rows of the fold left out; that needs scikit-learn. The other
    options are those of :func:`fairmaxent.debias`, and apply to fairmaxent only: the other methods have goals of their
    own, and always compare the intersections of the protected columns. ``progress(method, share)`` is called before
    each method.

    Relabelling is tried in both forms, so only ``Relabel(threshold=…)`` and its models matter in ``relabel``.
    """
    check_choice("classifier", classifier, ClassifierName)
    refuse_unknown("compare", options, [field.name for field in fields(Request)])
    request = Request(
        outcome,
        protected,
        favourable=favourable,
        groups=groups,
        representation_rate=representation_rate,
        statistical_rate=statistical_rate,
        domain=domain,
        random_state=random_state,
        **{"estimate": None, **options},
    )
    results = tuple(compared(frame, request, folds=folds, classifier=classifier, progress=progress or silent))
    return new_comparison(frame, request, classifier, results)


def new_comparison(frame: Any, request: Request, classifier: ClassifierName, results: Sequence[Compared]) -> Comparison:
    """Put the results beside what is known of the table."""
    opened = frames.open_frame(frame)
    domain = bound(request.domain or Domain.infer(opened.to_native()), opened)
    levels = domain.encode(opened.to_native())[:, domain.index(request.outcome)]
    most_frequent = float(np.bincount(levels).max() / len(opened))
    return Comparison(request, classifier, tuple(results), str(opened.implementation.value), most_frequent)


def compared(
    frame: Any, request: Request, *, folds: int, classifier: ClassifierName, progress: Progress = silent
) -> Iterator[Compared]:
    """Try one method after the other; what is wrong with the question is refused at once."""
    opened = frames.open_frame(frame)
    if request.weight is not None:
        raise InputError("the other methods do not support design weights; leave out ", Option("weight"))
    if request.also_names or request.means is not None:
        option = Option("also") if request.also_names else Option("means", request.means)
        raise InputError("methods are compared by the rates of a single outcome; leave out ", option)
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= 100:
        raise InputError(Option("folds"), f" is {folds!r}; give a whole number from 2 to 100")
    if len(opened) < 2 * folds:
        raise InputError(f"{len(opened)} rows are too few for {folds} ", Option("folds"))
    if request.privacy is not None:
        raise InputError("the other methods are not private; leave out ", Option("privacy"))
    # All methods do without identifiers, as fairmaxent does.
    known = bound(request.domain or Domain.infer(opened.to_native()), opened)
    domain, left_out = without_identifiers(known, request.named_columns)
    opened = opened.drop(left_out)
    return CrossValidation(opened, replace(request, domain=domain), folds, classifier).run(progress)


# ---------------------------------------------------------------- text


def comparison_text(comparison: Comparison, refusals: Sequence[tuple[str, str]]) -> str:
    """The verdict, the numbers, how to read them, and which methods refused the table, in 80 columns."""
    parts = [
        _wrapped(str(comparison.verdict)),
        methods_table(comparison.results),
        _wrapped(" ".join(_reading_aid(comparison))),
        "\n".join(_wrapped(f"{name} refused: {cell_text(why)}", indent="  ") for name, why in refusals),
    ]
    return "\n\n".join(part for part in parts if part)


def methods_table(results: Sequence[Compared]) -> str:
    """One line for each method that gave a result."""
    rows = [
        [
            one.method,
            *map(cell_text, (scores.representation_rate, scores.statistical_rate)),
            *map(cell_text, (scores.accuracy, scores.predicted_rate)),
            "–" if scores.predicted_interval is None else "{:.2f}–{:.2f}".format(*scores.predicted_interval),
            f"{scores.seconds:,.2f}",
        ]
        for one in results
        if (scores := one.scores) is not None
    ]
    return "\n".join(table_lines(_HEAD, rows)) if rows else ""


def _reading_aid(comparison: Comparison) -> Iterator[str]:
    """What the numbers mean."""
    request = comparison.request
    named = request.favourable if isinstance(request.favourable, list | tuple) else [request.favourable]
    levels = " or ".join(value_text(level) for level in named)
    about = f"{request.outcome} = {levels}" if request.favourable is not None else f"any {request.outcome}"
    yield "How to read it: 1 means that all groups are equal, 0 that one has nothing."
    yield f"Sizes: the smallest over the largest group. Outcomes: the lowest over the highest rate of {about}."
    if any(one.scores is not None and one.scores.accuracy is not None for one in comparison.results):
        model = {"tree": "decision tree", "logistic": "logistic regression"}[comparison.classifier]
        yield f"A {model} learned from each result and decided about other people: accuracy is how often it was right,"
        yield "decisions the lowest over the highest rate that it gave, and where that lies among all such people."
        yield f"Deciding the same for everybody would be right in {percent(comparison.most_frequent)} of cases."
        if any(one.scores is not None and one.scores.predicted_rate is None for one in comparison.results):
            yield "– means that it gave the outcome to nobody."


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(cell_text(text), _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
