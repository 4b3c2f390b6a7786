"""fairmaxent and other methods side by side on a user's table, the verdict first."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fairmaxent.baselines.cross_validation import (
    RAW,
    ClassifierName,
    CrossValidation,
    TriedMethod,
)
from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.draws import is_whole
from fairmaxent.data.levels import cell_text, value_text
from fairmaxent.data.roles import ColumnNames
from fairmaxent.data.table import Codes
from fairmaxent.document.text import table_lines
from fairmaxent.document.words import percent
from fairmaxent.errors import InputError, Option, check_choice, unfit
from fairmaxent.fit.option_values import rates_in
from fairmaxent.fit.request import Request
from fairmaxent.options import refuse_unknown
from fairmaxent.progress import Progress, silent

# Rates and accuracies that differ by less are taken for the same: folds differ by more.
_SAME = 0.02
_SAME_ACCURACY = 0.005

_WIDTH = 80
# What only one of the methods can be asked for, and why not.
_ONE_OUTCOME = "methods are compared by the rates of a single outcome"
_REFUSED = {
    "weight": "the other methods do not support design weights",
    "also": _ONE_OUTCOME,
    "equal_means": _ONE_OUTCOME,
    "privacy": "the other methods are not private",
}
_HEAD = ("method", "sizes", "outcomes", "accuracy", "decisions", "95% range", "CPU s")


@dataclass(frozen=True)
class MethodChoice:
    """The method to choose, and how it does beside the raw data."""

    method: str | None
    """None: no method is worth its cost."""
    wanted: float | None
    """The statistical rate that was asked for; None: none was, so that there is nothing
    to choose by.
    """
    rate: float | None
    """The rate of the method, or without one, the highest of all methods but the raw
    data.
    """
    raw_rate: float | None
    accuracy: float | None
    raw_accuracy: float | None
    of_decisions: bool
    """Whether rates are those of the decisions of trained models; otherwise of the
    data.
    """
    by_truth: bool = False
    """Whether accuracies are against what really happened; otherwise against the
    recorded outcome.
    """

    @property
    def is_reached(self) -> bool:
        """Whether the method has the rate that was asked for."""
        return self.method is not None and _reaches(self.rate, self.wanted)

    def __str__(self) -> str:
        if self.wanted is None:
            return "You asked for no statistical rate, so the methods are not ranked."
        if self.rate is None:
            return "No method gave a result that can be compared."
        if self.method is not None:
            return " ".join(self._praise())
        raw = "no"
        if self.raw_rate is not None:
            raw = f"the statistical rate {self.raw_rate:.2f}"
            if _reaches(self.raw_rate, self.wanted):
                return f"The raw data are good enough: {self._whose} them have {raw}."
        return (
            f"No method beats the raw data: {self._whose} them have {raw}; the best"
            f" method has {self.rate:.2f}."
        )

    @property
    def _whose(self) -> str:
        if self.of_decisions:
            return "the decisions of a model trained on"
        return "the outcomes in"

    def _praise(self) -> Iterator[str]:
        verb = "Choose"
        if not self.is_reached:
            yield f"No method reaches the statistical rate {self.wanted:.2f}."
            verb = "The closest is"
        raw = ""
        if self.raw_rate is not None:
            raw = f"; the raw data: {self.raw_rate:.2f}"
        yield (
            f"{verb} {self.method!r}: {self._whose} it have the statistical rate"
            f" {self.rate:.2f}{raw}."
        )
        if self.accuracy is None or self.raw_accuracy is None:
            return
        lost = 100 * (self.raw_accuracy - self.accuracy)
        by = " by the truth" if self.by_truth else ""
        verb = "gains" if lost <= -0.05 else "costs"
        if abs(lost) < 0.05:
            yield f"It {verb} no accuracy{by}."
        else:
            numbers = f"({self.accuracy:.3f} instead of {self.raw_accuracy:.3f})"
            yield f"It {verb} {abs(lost):.1f} points of accuracy{by} {numbers}."


def _reaches(rate: float | None, wanted: float | None) -> bool:
    return (rate or 0.0) >= (wanted or 0.0) - _SAME


def choose_method(results: Sequence[TriedMethod], request: Request) -> MethodChoice:
    """Choose the most accurate of the methods that reach the rate asked for.

    If none does, it is the most accurate of those that come closest to it. With a
    classifier, the statistical rate of its decisions counts; without, that of the data.
    A method whose groups are not as equal in size as was asked for is not chosen, and
    neither is one that is no fairer than the raw data. Where the truth is known, it is
    what accuracy is measured against.
    """
    scored = {tried.method: tried.scores for tried in results if tried.scores}
    of_decisions = any(scores.accuracy is not None for scores in scored.values())
    by_truth = any(scores.true_accuracy is not None for scores in scored.values())
    if by_truth:
        for name, scores in scored.items():
            scored[name] = replace(scores, accuracy=scores.true_accuracy)
    raw = scored.pop(RAW, None)
    # None if a model gives nobody the outcome
    counted = "predicted_rate" if of_decisions else "statistical_rate"
    wanted = min(rates_in(request.statistical_rate), default=None)  # of all columns
    none = MethodChoice(
        method=None,
        wanted=wanted,
        rate=None,
        raw_rate=getattr(raw, counted, None),
        accuracy=None,
        raw_accuracy=getattr(raw, "accuracy", None),
        of_decisions=of_decisions,
        by_truth=by_truth,
    )
    sizes = request.representation_rate
    if sizes is None or isinstance(sizes, Mapping):
        sizes = 0.0
    rates: dict[str, float] = {}
    for name, scores in scored.items():
        rate = getattr(scores, counted)
        if rate is not None and _reaches(scores.representation_rate, sizes):
            rates[name] = rate
    if wanted is None or not rates:
        return none
    highest = max(rates.values())
    accuracies = {
        name: scored[name].accuracy or 0.0
        for name, rate in rates.items()
        if _reaches(rate, min(wanted, highest))
    }
    # Of equals the first, which is fairmaxent's: the command line can use it on the
    # whole table.
    enough = max(accuracies.values()) - _SAME_ACCURACY
    best = next(name for name, accuracy in accuracies.items() if accuracy >= enough)
    if raw and none.raw_rate is not None and _reaches(raw.representation_rate, sizes):
        is_no_fairer = rates[best] <= none.raw_rate + _SAME / 2
        if is_no_fairer or _reaches(none.raw_rate, wanted):
            return replace(none, rate=highest)
    return replace(
        none,
        method=best,
        rate=rates[best],
        accuracy=scored[best].accuracy,
    )


@dataclass(frozen=True, repr=False)
class MethodComparison:
    """What each method made of a table, and the verdict."""

    request: Request
    classifier: ClassifierName
    results: tuple[TriedMethod, ...]
    library: str
    most_frequent: float
    """Share of the most frequent outcome: the accuracy of a model that decides the same
    for everybody.
    """

    @property
    def verdict(self) -> MethodChoice:
        """Which method to choose, and what that costs."""
        return choose_method(self.results, self.request)

    @property
    def refusals(self) -> dict[str, str]:
        """Why methods refused the table, by their names."""
        return {
            tried.method: str(tried.refused) for tried in self.results if tried.refused
        }

    def to_frame(self) -> Any:
        """One row for each method, as a frame of the same library as the table."""
        names = [tried.method for tried in self.results]
        table: dict[str, list[Any]] = {"method": names}
        for column in (
            "representation_rate",
            "statistical_rate",
            "predicted_rate",
            "accuracy",
            "true_accuracy",
            "seconds",
        ):
            table[column] = [
                getattr(tried.scores, column, None) for tried in self.results
            ]
        ranges = [
            getattr(tried.scores, "predicted_interval", None) or (None, None)
            for tried in self.results
        ]
        table["predicted_rate_low"] = [low for low, _ in ranges]
        table["predicted_rate_high"] = [high for _, high in ranges]
        table["refused"] = [self.refusals.get(name) for name in names]
        return frames.new_frame(table, self.library)

    def __repr__(self) -> str:
        return comparison_text(self, self.refusals)


def compare(
    frame: Any,
    outcome: str,
    protected: ColumnNames,
    *,
    folds: int = 3,
    classifier: ClassifierName = "tree",
    truth: str | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> MethodComparison:
    """Try fairmaxent and other methods on a table, and say which to choose.

    Each method learns from all folds but one. A classifier trained on its result, a
    decision ``"tree"`` or a ``"logistic"`` regression, is tested on the original rows
    of the fold left out; that needs scikit-learn. The other options are those of
    :func:`fairmaxent.debias`, and apply to fairmaxent only: the other methods have
    goals of their own, and always compare the intersections of the protected columns.
    ``progress(method, share)`` is called before each method.

    Relabelling is tried, and so is a table that is made for the classifier
    (``model=``), which needs ``favourable``. fairlearn's methods are tried where it is
    installed.

    ``truth`` names a column with what really happened, in the values of the outcome and
    missing where nobody knows. No model sees it; accuracy is then measured against it
    too, and the verdict is about that.
    """
    check_choice("classifier", classifier, ClassifierName)
    refuse_unknown("compare", options, [field.name for field in fields(Request)])
    request = Request(
        outcome,
        protected,
        random_state=random_state,
        **{"estimate": None, **options},
    )
    return compared(frame, request, folds, classifier, progress or silent, truth)


def compared(
    frame: Any,
    request: Request,
    folds: int,
    classifier: ClassifierName,
    progress: Progress,
    truth: str | None = None,
) -> MethodComparison:
    """Try one method after the other; a question that cannot be asked is refused."""
    opened = frames.open_frame(frame)
    _check_request(request)
    if not is_whole(folds, 2, 100):
        raise unfit("folds", folds, "give a whole number from 2 to 100")
    if len(opened) < 2 * folds:
        raise InputError(
            f"{len(opened)} rows are too few for {folds} ", Option("folds")
        )
    # All methods do without identifiers, as fairmaxent does.
    whole = bound(request.domain or Domain.infer(opened.to_native()), opened)
    domain, left_out = whole.without_identifiers(request.named_columns)
    true = None
    if truth is not None:
        true = _true_levels(opened, truth, whole.attribute(request.outcome), request)
        domain = domain.without([truth])
        left_out = (*left_out, *({truth} - {*left_out}))
    trial = CrossValidation(
        frame=opened.drop(left_out),
        request=replace(request, domain=domain),
        folds=folds,
        classifier=classifier,
        truth=true,
    )
    levels = whole.encode(opened.to_native())[:, whole.index(request.outcome)]
    return MethodComparison(
        request=request,
        classifier=classifier,
        results=tuple(trial.run(progress)),
        library=str(opened.implementation.value),
        most_frequent=float(np.bincount(levels).max() / len(opened)),
    )


def _check_request(request: Request) -> None:
    for name, why in _REFUSED.items():
        if getattr(request, name):
            raise InputError(why, "; leave out ", Option(name))


def _true_levels(
    opened: Any,
    truth: str,
    outcome: Attribute,
    request: Request,
) -> Codes:
    """The level of the outcome that was true of each row; -1 where nobody knows."""
    if truth in request.named_columns:
        raise InputError(
            Option("truth", truth),
            " has another role already; name a column with what really happened",
        )
    column = frames.column(opened, truth)
    known = {
        value: outcome.exact_level(value)
        for value in column.drop_nulls().unique().to_list()
        if not frames.is_missing(value)
    }
    return np.array([known.get(value, -1) for value in column.to_list()], dtype=int)


def comparison_text(comparison: MethodComparison, refusals: Mapping[str, str]) -> str:
    """The verdict, the numbers, how to read them, and who refused, in 80 columns."""
    parts = [
        _wrapped(str(comparison.verdict)),
        methods_table(comparison.results),
        _wrapped(" ".join(_reading_aid(comparison))),
        "\n".join(
            _wrapped(f"{name} refused: {cell_text(why)}", indent="  ")
            for name, why in refusals.items()
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def methods_table(results: Sequence[TriedMethod]) -> str:
    """One line for each method that gave a result.

    With the truth, accuracy against it takes the place of the seconds.
    """
    rows = []
    head = _HEAD
    for tried in results:
        scores = tried.scores
        if scores is None:
            continue
        interval = "–"
        if scores.predicted_interval is not None:
            interval = "{:.2f}–{:.2f}".format(*scores.predicted_interval)
        last = f"{scores.seconds:,.2f}"
        if scores.true_accuracy is not None:
            last = cell_text(scores.true_accuracy)
            head = (*_HEAD[:-1], "truth")
        rows.append(
            [
                tried.method,
                cell_text(scores.representation_rate),
                cell_text(scores.statistical_rate),
                cell_text(scores.accuracy),
                cell_text(scores.predicted_rate),
                interval,
                last,
            ]
        )
    if not rows:
        return ""
    return "\n".join(table_lines(head, rows))


def _reading_aid(comparison: MethodComparison) -> Iterator[str]:
    """What the numbers mean."""
    request = comparison.request
    if request.favourable is None:
        about = f"any {request.outcome}"
    else:
        about = f"{request.outcome} = {_named_levels(request.favourable)}"
    yield "How to read it: 1 means that all groups are equal, 0 that one has nothing."
    yield (
        "Sizes: the smallest over the largest group. Outcomes: the lowest over the"
        f" highest rate of {about}."
    )
    scores = [tried.scores for tried in comparison.results if tried.scores]
    if all(one.accuracy is None for one in scores):
        return
    models = {"tree": "decision tree", "logistic": "logistic regression"}
    yield (
        f"A {models[comparison.classifier]} learned from each result and decided about"
        " other people: accuracy is how often it was right,"
    )
    yield (
        "decisions the lowest over the highest rate that it gave, and where that"
        " lies among all such people."
    )
    yield (
        "Deciding the same for everybody would be right in"
        f" {percent(comparison.most_frequent)} of cases."
    )
    if any(one.true_accuracy is not None for one in scores):
        yield (
            "Truth: how often it was right by what really happened, where that is"
            " known."
        )
    if any(one.predicted_rate is None for one in scores):
        yield "– means that it gave the outcome to nobody."


def _named_levels(favourable: object) -> str:
    if isinstance(favourable, list | tuple):
        return " or ".join(value_text(level) for level in favourable)
    return value_text(favourable)


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        cell_text(text),
        _WIDTH,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
