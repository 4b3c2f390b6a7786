"""fairmaxent and other methods side by side on a user's table, the verdict first."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairmaxent.baselines.cross_validation import (
    RAW,
    ClassifierName,
    CrossValidation,
    Scores,
    TriedMethod,
)
from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.draws import is_whole
from fairmaxent.data.levels import cell_text, value_text
from fairmaxent.data.roles import ColumnNames, listed
from fairmaxent.data.table import Codes, Mask, Names, Reals
from fairmaxent.document.text import table_lines
from fairmaxent.document.words import percent, three_digits
from fairmaxent.errors import InputError, Option, check_choice, unfit
from fairmaxent.fit.request import Request
from fairmaxent.fit.wanted_rates import rates_in
from fairmaxent.options import refuse_unknown
from fairmaxent.progress import Progress, silent

# Rates of sizes that are below what was asked for by less are met: rows are whole.
_ROUNDED = 0.02
# How often chance may set aside one of methods that are equally good.
_ERROR = 0.05

_WIDTH = 80
# What only one of the methods can be asked for, and why not.
_ONE_OUTCOME = "methods are compared by the rates of a single outcome"
_REFUSED = {
    "likely": "the other methods need a column of groups",
    "weight": "the other methods do not support design weights",
    "equal_means": _ONE_OUTCOME,
    "privacy": "the other methods are not private",
}
_RULE = (
    "The rule, which favours nobody: set aside is a method whose range is below what"
    " was asked for, if another's decisions are surely more equal; and of the rest, one"
    " than which another is surely more accurate.",
    "Surely: in 95 of 100 trials of methods that are equally good, none is set aside,"
    " although people and trained models vary.",
)
_HEAD = (
    "method",
    "sizes",
    "outcomes",
    "accuracy",
    "for",
    "rate",
    "95% range",
    "CPU s",
)


@dataclass(frozen=True)
class MethodChoice:
    """The methods that may be chosen, by a rule that favours none of them."""

    methods: Names
    """Those that cannot be told apart, in the order of the alphabet; the raw data may
    be one of them.
    """
    wanted: float | None
    """The statistical rate that was asked for; None: none was, so that there is nothing
    to choose by.
    """
    scores: Mapping[str, Scores]
    """Of each method that a model learned from, and of the raw data."""
    by_truth: bool = False
    """Whether accuracies are against what really happened; otherwise against the
    recorded outcome.
    """

    def __str__(self) -> str:
        if self.wanted is None:
            return "You asked for no statistical rate, so the methods are not ranked."
        if not self.methods:
            return "No method gave a result that can be compared."
        return " ".join(self._sentences(self.wanted))

    def _sentences(self, wanted: float) -> Iterator[str]:
        known = [self.scores[name] for name in self.methods]
        if all(_surely_below(one, wanted) for one in known):
            yield f"No method reaches the statistical rate {wanted:.2f}."
        if len(known) == 1:
            yield from self._praise(self.methods[0])
            return
        names = ", ".join(map(repr, self.methods))
        rates = [one.predicted_rate or 0.0 for one in known]
        yield (
            f"These cannot be told apart: {names}. The decisions of models trained on"
            f" them have the statistical rate {min(rates):.2f} to"
            f" {max(rates):.2f}{self._beside_raw}."
        )

    @property
    def _beside_raw(self) -> str:
        raw = self.scores.get(RAW)
        if raw is None or raw.predicted_rate is None or self.methods == (RAW,):
            return ""
        return f"; the raw data: {raw.predicted_rate:.2f}"

    def _praise(self, method: str) -> Iterator[str]:
        scores = self.scores[method]
        yield (
            f"Choose {method!r}: the decisions of a model trained on it have the"
            f" statistical rate {scores.predicted_rate:.2f}{self._beside_raw}."
        )
        raw = self.scores.get(RAW)
        if raw is None or method == RAW:
            return
        before = raw.right(by_truth=self.by_truth)
        after = scores.right(by_truth=self.by_truth)
        lost = 100 * (before - after)
        by = " by the truth" if self.by_truth else ""
        verb = "gains" if lost <= -0.05 else "costs"
        if abs(lost) < 0.05:
            yield f"It {verb} no accuracy{by}."
        else:
            numbers = f"({after:.3f} instead of {before:.3f})"
            yield f"It {verb} {abs(lost):.1f} points of accuracy{by} {numbers}."


def _surely_below(scores: Scores, wanted: float) -> bool:
    """Whether the range of its rate does not reach what was asked for."""
    if scores.predicted_interval is None:  # it gave the outcome to nobody
        return True
    return scores.predicted_interval[1] < wanted


def choose_method(results: Sequence[TriedMethod], request: Request) -> MethodChoice:
    """Choose the methods that nobody can tell apart, and than which none is better.

    Set aside is a method whose groups are not as equal in size as was asked for, or
    whose rate is surely below the one asked for while that of another is surely higher;
    and of the rest, one than which another is surely more accurate. Where the truth is
    known, that is what accuracy is measured against. The raw data are a method, too.
    """
    wanted = min(rates_in(request.statistical_rate), default=None)  # of all columns
    scores = {one.method: one.scores for one in results if one.scores is not None}
    by_truth = any(one.true_accuracy is not None for one in scores.values())
    none = MethodChoice((), wanted, scores, by_truth)
    sizes = request.representation_rate
    if sizes is None or isinstance(sizes, Mapping):
        sizes = 0.0
    left = {
        one.method: one.without
        for one in results
        if one.without is not None
        and scores[one.method].representation_rate >= sizes - _ROUNDED
    }
    if wanted is None or not left:
        return none
    rates = [scores[name].predicted_rate or 0.0 for name in left]
    is_below = [_surely_below(scores[name], wanted) for name in left]
    is_out = is_below & _has_better(left, rates, 0)
    left = dict(compress(left.items(), ~is_out))
    right = [scores[name].right(by_truth=by_truth) for name in left]
    is_out = _has_better(left, right, 1)
    names = sorted(compress(left, ~is_out), key=str.casefold)
    return replace(none, methods=tuple(names))


def _has_better(without: Mapping[str, Reals], numbers: list[float], which: int) -> Mask:
    """Than which methods another one is surely better, by a number that both have."""
    parts = np.stack([one[which] for one in without.values()])
    higher = surely_higher(np.array(numbers), parts, _ERROR / 2)
    return np.any(higher, axis=0)


def surely_higher(numbers: Reals, without: Reals, error: float) -> Mask:
    """Which method (row) has surely a higher number than which other one (column).

    ``without`` has the numbers of each method (row) without a part of the people, by
    fold and part: how much they differ says how much other people would change them
    (the jackknife; its parts are the same people for all methods). One model decides
    about a fold, so if folds differ by more than their parts explain, models do, and
    everything is that much less sure. If all methods were equally good, at least one
    pair would be told apart with a chance of ``error``, at most.
    """
    methods, folds, parts = without.shape
    count = folds * parts
    beyond = without - without.mean(axis=(1, 2), keepdims=True)
    pairs = beyond[:, None] - beyond[None]
    by_part = (pairs**2).sum(axis=(2, 3))
    by_fold = (pairs.sum(axis=3) ** 2).sum(axis=2)
    expected = by_part.sum() * (1 - 1 / folds) * count / (count - 1)
    models = 1.0
    if expected > 0:
        models = max(1.0, by_fold.sum() / expected)
    deviation = np.sqrt(by_part * (1 - 1 / count) * models)
    comparisons = max(1, methods * (methods - 1))
    quantile = stdtrit(count - 1, 1 - error / comparisons)
    gaps = numbers[:, None] - numbers[None]
    return np.asarray(gaps > quantile * deviation)


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
        """Which methods may be chosen, and what that costs."""
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
            "decided",
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
    (``model=``), which needs ``favourable``. Methods of fairlearn and OxonFair are
    tried where these are installed.

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
        outcome = whole.attribute(request.outcome_name)
        true = _true_levels(opened, truth, outcome, request)
        domain = domain.without([truth])
        left_out = (*left_out, *({truth} - {*left_out}))
    trial = CrossValidation(
        frame=opened.drop(left_out),
        request=replace(request, domain=domain),
        folds=folds,
        classifier=classifier,
        truth=true,
    )
    levels = whole.encode(opened.to_native())[:, whole.index(request.outcome_name)]
    return MethodComparison(
        request=request,
        classifier=classifier,
        results=tuple(trial.run(progress)),
        library=str(opened.implementation.value),
        most_frequent=float(np.bincount(levels).max() / len(opened)),
    )


def _check_request(request: Request) -> None:
    if request.further_outcomes:
        raise InputError(_ONE_OUTCOME, "; name one with ", Option("outcome"))
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
            last = three_digits(scores.true_accuracy)
            head = (*_HEAD[:-1], "truth")
        decided = "–"
        if scores.decided is not None:
            decided = f"{scores.decided:.0%}"
        rows.append(
            [
                tried.method,
                three_digits(scores.representation_rate),
                three_digits(scores.statistical_rate),
                three_digits(scores.accuracy),
                decided,
                three_digits(scores.predicted_rate),
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
    about = f"any {request.outcome_name}"
    if request.favourable is not None:
        levels = map(value_text, listed(request.favourable))
        about = f"{request.outcome_name} = {' or '.join(levels)}"
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
        " other people: accuracy is how often it was right, for the share of people"
        " whom it decided for, and rate the lowest over the highest share of a group,"
        " with where that lies among all such people."
    )
    yield (
        "Deciding the same for everybody would be right in"
        f" {percent(comparison.most_frequent)} of cases."
    )
    yield from _RULE
    if any(one.true_accuracy is not None for one in scores):
        yield (
            "Truth: how often it was right by what really happened, where that is"
            " known."
        )
    if any(one.predicted_rate is None for one in scores):
        yield "– means that it gave the outcome to nobody."


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        cell_text(text),
        _WIDTH,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
