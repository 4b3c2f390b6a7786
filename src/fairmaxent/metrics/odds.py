"""Equal opportunity and equalised odds: how often predictions are right and wrong in each group.

For an outcome y, true outcomes Y, predictions Ŷ and a group g, the *true positive rate* is P(Ŷ = y | Y = y, g) and the
*false positive rate* is P(Ŷ = y | Y ≠ y, g). Both are compared as the statistical rate is, see `metrics`: the lowest
group's rate over the highest's, on the rows with that true outcome. Hardt, Price and Srebro (2016) name both notions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Codes, Mask
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption
from fairmaxent.data.table import tally
from fairmaxent.errors import InputError, LevelError
from fairmaxent.metrics.group_rates import GroupedTable, Number, Rate, compare, left_out_text, pair_text
from fairmaxent.metrics.groups import (
    Groups,
    MeasuredRows,
    favourable_places,
    groupings_of,
    groups_of,
    levels_of,
    one_favourable,
    open_sample,
    outcome_column,
    place_of,
    probabilities_of,
    refuse_protected,
    sums_of,
)
from fairmaxent.metrics.intervals import Interval, interval_text


@dataclass(frozen=True)
class Odds(Number):
    """The worse of two rates, of true and of false positives: the smaller ratio, and its confidence interval."""

    value: float
    interval: Interval | None
    true_positive: Rate
    false_positive: Rate

    @property
    def difference(self) -> float:
        """The larger of the two rates' largest differences between groups."""
        return max(self.true_positive.difference, self.false_positive.difference)

    def __str__(self) -> str:
        kind, worse = min(
            (("true", self.true_positive), ("false", self.false_positive)), key=lambda rate: rate[1].value
        )
        left_out = left_out_text([*self.true_positive.left_out, *self.false_positive.left_out])
        return f"{self.value:.3f}{interval_text(self.interval)}: {kind} positives, {pair_text(worse.worst)}{left_out}"


@dataclass(frozen=True, eq=False)
class _Call:
    """One outcome y: the rows that have it, and the rows that are predicted to."""

    outcome: object
    really: Mask
    called: Mask


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows whose outcome was predicted, and the groups to compare."""

    rows: MeasuredRows
    calls: list[_Call]
    groupings: list[tuple[tuple[str, ...], Groups]]

    def positives(self, *, true: bool) -> list[GroupedTable]:
        """True positives among the rows with an outcome, or false ones among the rows without."""
        parts = [
            _positives(self.rows, call.called, call.really if true else ~call.really, call.outcome, *grouping)
            for grouping in self.groupings
            for call in self.calls
        ]
        parts = [part for part in parts if part.table.any()]
        if not any(np.count_nonzero(part.table.any(axis=0)) >= min(2, len(part.groups)) for part in parts):
            kind, rows = ("true", "with") if true else ("false", "without")
            raise LevelError(
                f"{kind} positive rates cannot be compared: fewer than two groups have rows {rows} the favourable "
                "outcome. Pass more rows, or merge groups."
            )
        return parts


def equal_opportunity(
    frame: Any,
    outcome: Any,
    predictions: Any,
    protected: str | Sequence[str],
    *,
    favourable: object,
    as_probability: bool = False,
    threshold: float = 0.5,
    groups: GroupsOption = "each",
    weight: Any = None,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio between two groups of the true positive rate P(Ŷ = y | Y = y, g); `difference` has the difference.

    `outcome` is what happened and `predictions` what a model says: each a column of the frame, or an array with one
    value per row. With ``as_probability`` the predictions are probabilities of the favourable outcome, which is
    predicted where its probability is above `threshold`. `favourable` is a level, a list of levels, or None for every
    level, each compared on its own; probabilities are of one level. A group without a row of that outcome has no such
    rate: it takes no part and is named in `left_out`. The other options are those of `representation_rate`.
    """
    rows = open_sample(frame, weight)
    cut = _cut(threshold, as_probability=as_probability)
    calls = _calls(rows, outcome, predictions, favourable, cut, domain)
    trial = _Trial(rows, calls, _groupings(rows, outcome, protected, groups, domain))
    return compare(trial.positives(true=True), confidence)


def equalised_odds(
    frame: Any,
    outcome: Any,
    predictions: Any,
    protected: str | Sequence[str],
    *,
    favourable: object,
    as_probability: bool = False,
    threshold: float = 0.5,
    groups: GroupsOption = "each",
    weight: Any = None,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Odds:
    """Worst ratio between two groups of the true positive rate or of the false positive rate, P(Ŷ = y | Y ≠ y, g).

    The value is the smaller of the two worst ratios, and `difference` the larger of the two largest differences. Both
    rates are kept: `true_positive`, which is the equal opportunity, and `false_positive`. A missing outcome is a level
    of its own, so that such a row counts as one without the outcome y. The options are those of `equal_opportunity`.
    """
    rows = open_sample(frame, weight)
    cut = _cut(threshold, as_probability=as_probability)
    calls = _calls(rows, outcome, predictions, favourable, cut, domain)
    trial = _Trial(rows, calls, _groupings(rows, outcome, protected, groups, domain))
    true, false = trial.positives(true=True), trial.positives(true=False)
    worse = compare([*true, *false], confidence)
    return Odds(worse.value, worse.interval, compare(true, confidence), compare(false, confidence))


def _groupings(
    rows: MeasuredRows, outcome: Any, protected: str | Sequence[str], groups: GroupsOption, domain: Domain | None
) -> list[tuple[tuple[str, ...], Groups]]:
    groupings = groupings_of(protected, groups)
    for columns in groupings:
        refuse_protected(outcome, columns)
    return [(columns, groups_of(rows.frame, columns, domain)) for columns in groupings]


def _cut(threshold: float, *, as_probability: bool) -> float | None:
    """The probability above which an outcome is predicted; None: predictions are outcomes already."""
    if not isinstance(threshold, int | float) or not 0 <= threshold < 1:
        raise InputError(f"threshold is {threshold!r}; it is a probability from 0 to below 1, e.g. 0.5")
    if not as_probability and threshold != 0.5:
        raise InputError("a threshold is for probabilities; pass them with as_probability=True, or leave it out")
    return threshold if as_probability else None


def _calls(
    rows: MeasuredRows, outcome: Any, predictions: Any, favourable: object, cut: float | None, domain: Domain | None
) -> list[_Call]:
    """For each favourable outcome, the rows that have it and the rows that are predicted to."""
    column = outcome_column(rows.frame, outcome, what="outcomes")
    truth, outcomes = levels_of(column, domain)
    wanted = favourable_places(outcomes, favourable)
    predicted = outcome_column(rows.frame, predictions)
    if cut is not None:
        place = one_favourable(outcomes, favourable)
        return [_Call(outcomes[place], truth == place, probabilities_of(predicted) > cut)]
    guess, guesses = levels_of(predicted.alias(column.name), domain)  # of the outcome's name: read by its levels
    if all(place_of(outcomes, value) is None for value in guesses):
        raise LevelError(
            f"no prediction is an outcome of the rows: the predictions hold {_some(guesses)} and the outcome "
            f"{_some(outcomes)}. Predict outcomes as they are written there, or pass as_probability=True."
        )
    return [_Call(outcomes[place], truth == place, _is_level(guess, guesses, outcomes[place])) for place in wanted]


def _is_level(codes: Codes, levels: list[object], value: object) -> Mask:
    place = place_of(levels, value)
    return np.zeros(len(codes), dtype=bool) if place is None else codes == place


def _positives(
    rows: MeasuredRows, called: Mask, among: Mask, outcome: object, columns: tuple[str, ...], groups: Groups
) -> GroupedTable:
    """Count predictions of an outcome in each group, among some of its rows."""
    group, labels = groups
    mass, counts, sizes = sums_of(group[among], rows.weights[among], len(labels))
    yes = tally(group[among], rows.weights[among] * called[among], len(labels))
    return GroupedTable(columns, labels, [outcome, None], [0], np.stack([yes, mass - yes]), counts, sizes)


def _some(values: list[object]) -> str:
    shown = ", ".join(repr(value) for value in values[:3])
    return f"{shown} and others" if len(values) > 3 else shown
