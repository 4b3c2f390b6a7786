"""fairmaxent and other methods side by side on a user's table, with the verdict
first.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fairmaxent.baselines.cross_validation import (
    RAW,
    ClassifierName,
    Compared,
    CrossValidation,
)
from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.levels import cell_text, value_text
from fairmaxent.data.table import Codes
from fairmaxent.document.text import table_lines
from fairmaxent.document.words import percent
from fairmaxent.errors import InputError, Option, check_choice
from fairmaxent.fit.request import Request
from fairmaxent.options import refuse_unknown
from fairmaxent.progress import Progress, silent

_WIDTH = 80
_HEAD = ("method", "sizes", "outcomes", "accuracy", "decisions", "95% range", "CPU s")


# Rates and accuracies that differ by less are taken for the same: folds differ by more.
_SAME = 0.02
_SAME_ACCURACY = 0.005


@dataclass(frozen=True)
class Verdict:
    """The method to choose, and how it does beside the raw data; None: no method is
    worth its cost.
    """

    method: str | None
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
        return (
            self.method is not None
            and (self.rate or 0.0) >= (self.wanted or 0.0) - _SAME
        )

    def __str__(self) -> str:
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        whose = (
            "the decisions of a model trained on"
            if self.of_decisions
            else "the outcomes in"
        )
        if self.wanted is None:
            yield "You asked for no statistical rate, so the methods are not ranked."
        elif self.rate is None:
            yield "No method gave a result that can be compared."
        elif (
            self.method is None
            and self.raw_rate is not None
            and self.raw_rate >= self.wanted - _SAME
        ):
            yield (
                f"The raw data are good enough: {whose} them have the statistical rate"
                f" {self.raw_rate:.2f}."
            )
        elif self.method is None:
            if self.raw_rate is None:
                raw = "no"
            else:
                raw = f"the statistical rate {self.raw_rate:.2f}"
            yield (
                f"No method beats the raw data: {whose} them have {raw}; the best"
                f" method has {self.rate:.2f}."
            )
        else:
            if not self.is_reached:
                yield f"No method reaches the statistical rate {self.wanted:.2f}."
            verb = "Choose" if self.is_reached else "The closest is"
            if self.raw_rate is None:
                raw = ""
            else:
                raw = f"; the raw data: {self.raw_rate:.2f}"
            yield (
                f"{verb} {self.method!r}: {whose} it have the statistical rate"
                f" {self.rate:.2f}{raw}."
            )
            if self.accuracy is not None and self.raw_accuracy is not None:
                lost = 100 * (self.raw_accuracy - self.accuracy)
                numbers = f"({self.accuracy:.3f} instead of {self.raw_accuracy:.3f})"
                by = " by the truth" if self.by_truth else ""
                cost = f"{abs(lost):.1f} points of accuracy{by} {numbers}"
                if abs(lost) < 0.05:
                    what = f"no accuracy{by}"
                else:
                    what = cost
                yield f"It {'gains' if lost <= -0.05 else 'costs'} {what}."


def verdict(results: Sequence[Compared], request: Request) -> Verdict:
    """Choose the most accurate of the methods that reach the rate asked for, or else
    that come closest to it.

    With a classifier, the statistical rate of its decisions counts; without, that of
    the data. A method whose groups are not as equal in size as was asked for is not
    chosen, and neither is one that is no fairer than the raw data. Where the truth is
    known, it is what accuracy is measured against.
    """
    rate_option = request.statistical_rate
    size_option = request.representation_rate
    if isinstance(rate_option, Mapping):
        by_column = rate_option.values()
    else:
        by_column = [rate_option]
    # one rate for all columns
    wanted = min((rate for rate in by_column if rate is not None), default=None)
    sizes = (
        0.0 if size_option is None or isinstance(size_option, Mapping) else size_option
    )
    scored = {
        result.method: result.scores for result in results if result.scores is not None
    }
    of_decisions = any(scores.accuracy is not None for scores in scored.values())
    by_truth = any(scores.true_accuracy is not None for scores in scored.values())
    if by_truth:
        scored = {
            name: replace(scores, accuracy=scores.true_accuracy)
            for name, scores in scored.items()
        }
    raw = scored.pop(RAW, None)
    how = of_decisions, by_truth
    # None if a model gives nobody the outcome
    counts = "predicted_rate" if of_decisions else "statistical_rate"
    raw_rate = getattr(raw, counts, None)
    raw_accuracy = getattr(raw, "accuracy", None)
    have_sizes = {
        name: scores
        for name, scores in scored.items()
        if scores.representation_rate >= sizes - _SAME
    }
    rates = {
        name: rate
        for name, scores in have_sizes.items()
        if (rate := getattr(scores, counts)) is not None
    }
    if wanted is None or not rates:
        return Verdict(None, wanted, None, raw_rate, None, raw_accuracy, *how)
    line = min(wanted, max(rates.values())) - _SAME
    close = {
        name: scored[name].accuracy or 0.0
        for name, rate in rates.items()
        if rate >= line
    }
    # Of equals the first, which is fairmaxent's: the command line can use it on the
    # whole table.
    name = next(
        name
        for name, accuracy in close.items()
        if accuracy >= max(close.values()) - _SAME_ACCURACY
    )
    raw_has_sizes = raw is not None and raw.representation_rate >= sizes - _SAME
    if (
        raw_has_sizes
        and raw_rate is not None
        and (raw_rate >= wanted - _SAME or rates[name] <= raw_rate + _SAME / 2)
    ):
        return Verdict(
            None, wanted, max(rates.values()), raw_rate, None, raw_accuracy, *how
        )
    return Verdict(
        name, wanted, rates[name], raw_rate, scored[name].accuracy, raw_accuracy, *how
    )


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each method made of a table, and the verdict."""

    request: Request
    classifier: ClassifierName
    results: tuple[Compared, ...]
    library: str
    most_frequent: float
    """Share of the most frequent outcome: the accuracy of a model that decides the same
    for everybody.
    """

    @property
    def verdict(self) -> Verdict:
        """Which method to choose, and what that costs."""
        return verdict(self.results, self.request)

    def to_frame(self) -> Any:
        """One row for each method, as a frame of the same library as the table."""
        table: dict[str, list[Any]] = {
            "method": [result.method for result in self.results]
        }
        rates = "representation_rate", "statistical_rate", "predicted_rate"
        for name in (*rates, "accuracy", "true_accuracy", "seconds"):
            table[name] = [
                getattr(result.scores, name, None) for result in self.results
            ]
        ranges = [
            getattr(result.scores, "predicted_interval", None) or (None, None)
            for result in self.results
        ]
        table["predicted_rate_low"], table["predicted_rate_high"] = map(
            list, zip(*ranges, strict=True)
        )
        table["refused"] = [
            None if result.refused is None else str(result.refused)
            for result in self.results
        ]
        return frames.new_frame(table, self.library)

    def __repr__(self) -> str:
        reasons = [
            (result.method, str(result.refused))
            for result in self.results
            if result.refused is not None
        ]
        return comparison_text(self, reasons)


def compare(
    frame: Any,
    outcome: str,
    protected: str | Sequence[str],
    *,
    folds: int = 3,
    classifier: ClassifierName = "tree",
    truth: str | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Try fairmaxent and other methods on a table by cross-validation, and say which to
    choose.

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
        outcome, protected, random_state=random_state, **{"estimate": None, **options}
    )
    return compared(frame, request, folds, classifier, progress or silent, truth)


def compared(
    frame: Any,
    request: Request,
    folds: int,
    classifier: ClassifierName,
    progress: Progress,
    truth: str | None = None,
) -> Comparison:
    """Try one method after the other; what is wrong with the question is refused at
    once.
    """
    opened = frames.open_frame(frame)
    if request.weight is not None:
        raise InputError(
            "the other methods do not support design weights; leave out ",
            Option("weight"),
        )
    if request.also_names or request.means is not None:
        if request.also_names:
            option = Option("also")
        else:
            option = Option("means", request.means)
        raise InputError(
            "methods are compared by the rates of a single outcome; leave out ", option
        )
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= 100:
        raise InputError(
            Option("folds"), f" is {folds!r}; give a whole number from 2 to 100"
        )
    if len(opened) < 2 * folds:
        raise InputError(
            f"{len(opened)} rows are too few for {folds} ", Option("folds")
        )
    if request.privacy is not None:
        raise InputError(
            "the other methods are not private; leave out ", Option("privacy")
        )
    # All methods do without identifiers, as fairmaxent does.
    whole = bound(request.domain or Domain.infer(opened.to_native()), opened)
    domain, left_out = whole.without_identifiers(request.named_columns)
    true = None
    if truth is not None:
        true = _true_levels(opened, truth, whole.attribute(request.outcome), request)
    if truth is not None:
        domain = domain.without([truth])
        left_out = (*left_out, *({truth} - {*left_out}))
    narrowed = CrossValidation(
        opened.drop(left_out), replace(request, domain=domain), folds, classifier, true
    )
    levels = whole.encode(opened.to_native())[:, whole.index(request.outcome)]
    most_frequent = float(np.bincount(levels).max() / len(opened))
    library = str(opened.implementation.value)
    return Comparison(
        request, classifier, tuple(narrowed.run(progress)), library, most_frequent
    )


def _true_levels(
    opened: Any, truth: str, outcome: Attribute, request: Request
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
    }
    return np.array(
        [
            -1 if frames.is_missing(value) else known[value]
            for value in column.to_list()
        ],
        dtype=np.intp,
    )


def comparison_text(comparison: Comparison, refusals: Sequence[tuple[str, str]]) -> str:
    """The verdict, the numbers, how to read them, and which methods refused the table,
    in 80 columns.
    """
    parts = [
        _wrapped(str(comparison.verdict)),
        methods_table(comparison.results),
        _wrapped(" ".join(_reading_aid(comparison))),
        "\n".join(
            _wrapped(f"{name} refused: {cell_text(why)}", indent="  ")
            for name, why in refusals
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def methods_table(results: Sequence[Compared]) -> str:
    """One line for each method that gave a result; with the truth, accuracy against it
    instead of seconds.
    """
    rows = []
    head = _HEAD
    for result in results:
        if (scores := result.scores) is None:
            continue
        if scores.predicted_interval is None:
            interval = "–"
        else:
            interval = "{:.2f}–{:.2f}".format(*scores.predicted_interval)
        rates = (
            scores.representation_rate,
            scores.statistical_rate,
            scores.accuracy,
            scores.predicted_rate,
        )
        rows.append(
            [result.method, *map(cell_text, rates), interval, f"{scores.seconds:,.2f}"]
        )
        if scores.true_accuracy is not None:
            rows[-1][-1], head = cell_text(scores.true_accuracy), (*_HEAD[:-1], "truth")
    if rows:
        return "\n".join(table_lines(head, rows))
    return ""


def _reading_aid(comparison: Comparison) -> Iterator[str]:
    """What the numbers mean."""
    request = comparison.request
    if isinstance(request.favourable, list | tuple):
        named = request.favourable
    else:
        named = [request.favourable]
    levels = " or ".join(value_text(level) for level in named)
    if request.favourable is not None:
        about = f"{request.outcome} = {levels}"
    else:
        about = f"any {request.outcome}"
    yield "How to read it: 1 means that all groups are equal, 0 that one has nothing."
    yield (
        "Sizes: the smallest over the largest group. Outcomes: the lowest over the"
        f" highest rate of {about}."
    )
    if any(
        result.scores is not None and result.scores.accuracy is not None
        for result in comparison.results
    ):
        model = {"tree": "decision tree", "logistic": "logistic regression"}[
            comparison.classifier
        ]
        yield (
            f"A {model} learned from each result and decided about other people:"
            " accuracy is how often it was right,"
        )
        yield (
            "decisions the lowest over the highest rate that it gave, and where that"
            " lies among all such people."
        )
        yield (
            "Deciding the same for everybody would be right in"
            f" {percent(comparison.most_frequent)} of cases."
        )
        if any(
            result.scores is not None and result.scores.true_accuracy is not None
            for result in comparison.results
        ):
            yield (
                "Truth: how often it was right by what really happened, where that is"
                " known."
            )
        if any(
            result.scores is not None and result.scores.predicted_rate is None
            for result in comparison.results
        ):
            yield "– means that it gave the outcome to nobody."


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        cell_text(text), _WIDTH, subsequent_indent=indent, break_on_hyphens=False
    )
