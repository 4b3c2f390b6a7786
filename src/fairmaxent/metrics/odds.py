"""Equal opportunity and equalised odds: how often predictions are right and wrong in each group.

For an outcome y, true outcomes Y, predictions Ŷ and a group g, the *true positive rate* is P(Ŷ = y | Y = y, g) and the
*false positive rate* is P(Ŷ = y | Y ≠ y, g). Both are compared in the same way as the statistical rate (`group_rates`):
the lowest group's rate over the highest's, on the rows with that true outcome. Both notions were introduced by M.
Hardt, E. Price and N. Srebro (2016), Equality of Opportunity in Supervised Learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption
from fairmaxent.errors import InputError, LevelError
from fairmaxent.fairness.measure import MissingOption
from fairmaxent.metrics.group_rates import Number, Rate, compare, left_out_text, pair_text
from fairmaxent.metrics.grouped_table import GroupedTable, by_positive
from fairmaxent.metrics.groups import (
    Groups,
    MeasuredRows,
    code_of,
    compared_weights,
    favourable_codes,
    groupings_of,
    groups_of,
    levels_of,
    one_favourable,
    open_sample,
    outcome_column,
    probabilities_of,
    refuse_protected,
)
from fairmaxent.metrics.intervals import Interval, interval_text


@dataclass(frozen=True)
class Odds(Number):
    """The worse of two ratios, of true and of false positive rates, with its confidence interval."""

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
class _OutcomePredictions:
    """One outcome y: the rows that have it, and the rows that are predicted to have it."""

    outcome: object
    actual: Mask
    predicted: Mask


@dataclass(frozen=True, eq=False)
class _PredictedRows:
    """Rows whose outcome was predicted, and the groups to compare."""

    rows: MeasuredRows
    predictions: list[_OutcomePredictions]
    groupings: list[tuple[tuple[str, ...], Groups]]
    missing: MissingOption

    def positives(self, *, true: bool) -> list[GroupedTable]:
        """True positives among the rows with an outcome, or false positives among the rows without it."""
        parts = [
            _positives(
                compared_weights(self.rows.weights, groups, self.missing),
                one.predicted,
                one.actual if true else ~one.actual,
                one.outcome,
                columns,
                groups,
            )
            for columns, groups in self.groupings
            for one in self.predictions
        ]
        parts = [part for part in parts if part.table.any()]
        if not any(np.count_nonzero(part.table.any(axis=0)) >= min(2, len(part.groups)) for part in parts):
            kind, rows = ("true", "with") if true else ("false", "without")
            raise LevelError(
                f"{kind} positive rates cannot be compared: fewer than two groups have rows {rows} the favourable "
                "outcome. Add rows, or merge groups."
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
    missing: MissingOption = "ignore",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio between two groups of the true positive rate P(Ŷ = y | Y = y, g); `difference` has the difference.

    `outcome` is what happened and `predictions` is what a model predicts: each a column of the frame, or an array with
    one value per row. With ``as_probability`` the predictions are probabilities of the favourable outcome, which is
    predicted if its probability is above `threshold`. `favourable` is a level, a list of levels, or None for every
    level, each compared on its own; probabilities refer to a single level. A group without rows of that outcome has no
    such rate: it is not compared, and is listed in `left_out`. The other options are as in `representation_rate`.
    """
    rows = open_sample(frame, weight)
    cut = _cut(threshold, as_probability=as_probability)
    by_outcome = _by_outcome(rows, outcome, predictions, favourable, cut, domain)
    known = _with_outcome(rows, outcome, favourable, missing, domain)
    predicted = _PredictedRows(known, by_outcome, _groupings(rows, outcome, protected, groups, domain), missing)
    return compare(predicted.positives(true=True), confidence)


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
    missing: MissingOption = "ignore",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Odds:
    """Worst ratio between two groups of the true positive rate or of the false positive rate, P(Ŷ = y | Y ≠ y, g).

    The value is the smaller of the two worst ratios, and `difference` is the larger of the two largest differences. The
    result also holds both rates: `true_positive`, which is the equal opportunity, and `false_positive`. The options are
    as in `equal_opportunity`.
    """
    rows = open_sample(frame, weight)
    cut = _cut(threshold, as_probability=as_probability)
    by_outcome = _by_outcome(rows, outcome, predictions, favourable, cut, domain)
    known = _with_outcome(rows, outcome, favourable, missing, domain)
    predicted = _PredictedRows(known, by_outcome, _groupings(rows, outcome, protected, groups, domain), missing)
    true, false = predicted.positives(true=True), predicted.positives(true=False)
    worse = compare([*true, *false], confidence)
    return Odds(worse.value, worse.interval, compare(true, confidence), compare(false, confidence))


def _groupings(
    rows: MeasuredRows, outcome: Any, protected: str | Sequence[str], groups: GroupsOption, domain: Domain | None
) -> list[tuple[tuple[str, ...], Groups]]:
    groupings = groupings_of(protected, groups)
    for columns in groupings:
        refuse_protected(outcome, columns)
    return [(columns, groups_of(rows.frame, columns, domain)) for columns in groupings]


def _with_outcome(
    rows: MeasuredRows, outcome: Any, favourable: object, missing: MissingOption, domain: Domain | None
) -> MeasuredRows:
    """Take the weight off rows with a missing outcome, unless it is compared."""
    levels = levels_of(outcome_column(rows.frame, outcome, what="outcomes"), domain)
    everybody: Groups = (np.zeros(len(rows.weights), dtype=np.intp), [()])
    return replace(rows, weights=compared_weights(rows.weights, everybody, missing, levels, favourable))


def _cut(threshold: float, *, as_probability: bool) -> float | None:
    """The probability above which an outcome is predicted; None: predictions are outcomes already."""
    if not isinstance(threshold, int | float) or not 0 <= threshold < 1:
        raise InputError(f"threshold is {threshold!r}; it must be a probability, at least 0 and below 1, e.g. 0.5")
    if not as_probability and threshold != 0.5:
        raise InputError(
            "threshold only applies to probabilities; pass them with as_probability=True, or leave threshold out"
        )
    return threshold if as_probability else None


def _by_outcome(
    rows: MeasuredRows, outcome: Any, predictions: Any, favourable: object, cut: float | None, domain: Domain | None
) -> list[_OutcomePredictions]:
    """For each favourable outcome, the rows that have it and the rows that are predicted to have it."""
    column = outcome_column(rows.frame, outcome, what="outcomes")
    truth, outcomes = levels_of(column, domain)
    wanted = favourable_codes(outcomes, favourable)
    prediction = outcome_column(rows.frame, predictions)
    if cut is not None:
        code = one_favourable(outcomes, favourable)
        return [_OutcomePredictions(outcomes[code], truth == code, probabilities_of(prediction) > cut)]
    # Under the outcome's name, so that a domain reads predictions by the same levels.
    predicted, levels = levels_of(prediction.alias(column.name), domain)
    if all(code_of(outcomes, value) is None for value in levels):
        raise LevelError(
            f"no prediction is an outcome of the rows: the predictions are {_some(levels)}, and the outcomes are "
            f"{_some(outcomes)}. Spell predictions like the outcomes, or pass as_probability=True."
        )
    return [
        _OutcomePredictions(outcomes[code], truth == code, _is_level(predicted, levels, outcomes[code]))
        for code in wanted
    ]


def _is_level(codes: Codes, levels: list[object], value: object) -> Mask:
    """Which rows have the level with this value."""
    code = code_of(levels, value)
    return np.zeros(len(codes), dtype=bool) if code is None else codes == code


def _positives(
    weights: Reals, predicted: Mask, among: Mask, outcome: object, columns: tuple[str, ...], groups: Groups
) -> GroupedTable:
    """Add up the predictions of an outcome in each group, among some of its rows."""
    group, labels = groups
    return by_positive(predicted[among], weights[among], (group[among], labels), columns, outcome)


def _some(values: list[object]) -> str:
    shown = ", ".join(repr(value) for value in values[:3])
    return f"{shown} and others" if len(values) > 3 else shown
