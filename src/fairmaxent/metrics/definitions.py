"""Definitions of the metrics: of a frame, of predictions, or of a fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from fairmaxent.data.roles import Protected
from fairmaxent.data.table import ratio, tally
from fairmaxent.errors import InputError, LevelError, checked_number
from fairmaxent.fairness.compare import Compare, Compared
from fairmaxent.metrics import rates
from fairmaxent.metrics.group_rates import GroupedTable, worst_rate
from fairmaxent.metrics.groups import Comparison
from fairmaxent.metrics.intervals import Interval, interval_text
from fairmaxent.metrics.rates import GroupRate, Number, Rate
from fairmaxent.metrics.rows import (
    Columns,
    GroupedRows,
    Label,
    StratumLevels,
    stratum_text,
)
from fairmaxent.metrics.surpluses import Calibration, calibrate
from fairmaxent.options import adding_options_of

_USUAL = 0.95  # the confidence of intervals that nobody chose


@adding_options_of(Compare, without=("favourable",))
def representation_rate(
    data: Any,
    protected: Protected,
    *,
    confidence: float = 0.95,
    **compared: Unpack[Compared],
) -> Rate:
    """Smallest over largest share of a group, min P(g) / max P(g) (Definition 2.1).

    `data` is a frame, or a fit or its distribution (then the rate is exact). Of several
    protected columns the worst one counts, and of several strata the worst stratum. A
    group without any rows is unknown here and is not compared. `weight` is a column, or
    one number per row, such as ``fit.weights()``. Groups that are too small do not
    decide the value, and are listed in `set_apart`.

    Groups that nobody wrote down may stand among the protected columns, as
    probabilities (:class:`fairmaxent.Likely`): rows are then shared between groups, and
    `likely` of the result says what that assumes, what the rate is otherwise, and the
    bounds that hold whatever is true.

    Parameters
    ----------
    """
    comparison = Comparison(Compare(protected, **compared))
    return worst_rate(comparison.share_tables(data), confidence)


@adding_options_of(Compare)
def statistical_rate(
    data: Any,
    outcome: Any,
    protected: Protected,
    *,
    favourable: object = None,
    as_probability: bool = False,
    confidence: float = 0.95,
    **compared: Unpack[Compared],
) -> Rate:
    """Worst ratio of P(y | g) between two groups (Definition 2.2).

    Over the favourable outcomes.

    `outcome` is a column, or an array with one prediction per row; with
    ``as_probability`` it holds the probability of the favourable outcome, and groups
    are compared by their means. `favourable` is a level, a list of levels, or None for
    every level, each compared on its own. Rows with a missing outcome do not count,
    unless it is favourable, or ``compare_missing`` makes a level of it. What else is
    said of `representation_rate` holds here, too.

    Parameters
    ----------
    """
    compare = Compare(protected, favourable=favourable, **compared)
    comparison = Comparison(compare, outcome)
    if as_probability:
        return worst_rate(comparison.mean_tables(data), confidence)
    return worst_rate(comparison.rate_tables(data), confidence)


@dataclass(frozen=True)
class Odds(Number):
    """The worse ratio of true or of false positive rates, with its interval."""

    value: float
    interval: Interval | None
    true_positive: Rate
    false_positive: Rate

    @property
    def difference(self) -> float:
        """The larger of the two rates' largest differences between groups."""
        both = (self.true_positive.difference, self.false_positive.difference)
        return float(np.fmax(*both))  # one may have nothing to compare

    def _words(self) -> str:
        true = self.true_positive
        false = self.false_positive
        kind = "true"
        worse = true
        if false.value < true.value or np.isnan(true.value):
            kind = "false"
            worse = false
        left_out = rates.left_out_text([*true.left_out, *false.left_out])
        left_out += rates.set_apart_text([*true.set_apart, *false.set_apart])
        return (
            f"{self.value:.3f}{interval_text(self.interval)}: {kind} positives,"
            f" {worse.worst}{left_out}"
        )


@adding_options_of(Compare)
def equal_opportunity(
    frame: Any,
    outcome: Any,
    predictions: Any,
    protected: Protected,
    *,
    favourable: object,
    as_probability: bool = False,
    threshold: float = 0.5,
    confidence: float = 0.95,
    **compared: Unpack[Compared],
) -> Rate:
    """Worst ratio of the true positive rate P(Ŷ = y | Y = y, g) between two groups.

    By Hardt, Price and Srebro (2016).

    `outcome` is what happened and `predictions` is what a model predicts: each a column
    of the frame, or an array with one value per row. With ``as_probability`` the
    predictions are probabilities of the favourable outcome, which is predicted if its
    probability is above `threshold`. `favourable` is a level, a list of levels, or None
    for every level, each compared on its own; probabilities refer to a single level. A
    group without rows of that outcome has no such rate: it is not compared, and is
    listed in `left_out`. What else is said of `representation_rate` holds here, too.

    Parameters
    ----------
    """
    above = _threshold(threshold, as_probability=as_probability)
    compare = Compare(protected, favourable=favourable, **compared)
    found = _positives(Comparison(compare, outcome), frame, predictions, above)
    return worst_rate(next(found), confidence)


@adding_options_of(Compare)
def equalised_odds(
    frame: Any,
    outcome: Any,
    predictions: Any,
    protected: Protected,
    *,
    favourable: object,
    as_probability: bool = False,
    threshold: float = 0.5,
    confidence: float = 0.95,
    **compared: Unpack[Compared],
) -> Odds:
    """Worst ratio of the true or the false positive rate between two groups.

    The latter is P(Ŷ = y | Y ≠ y, g).

    The value is the smaller of the two worst ratios, and `difference` is the larger of
    the two largest differences. The result also holds both rates: `true_positive`,
    which is the equal opportunity, and `false_positive`. What is said of
    `equal_opportunity` holds here, too.

    Parameters
    ----------
    """
    above = _threshold(threshold, as_probability=as_probability)
    compare = Compare(protected, favourable=favourable, **compared)
    true, false = _positives(Comparison(compare, outcome), frame, predictions, above)
    worse = worst_rate([*true, *false], confidence)
    return Odds(
        worse.value,
        worse.interval,
        worst_rate(true, confidence),
        worst_rate(false, confidence),
    )


def _threshold(threshold: float, *, as_probability: bool) -> float | None:
    """The probability above which an outcome is predicted; None: by its name."""
    checked_number(
        "threshold",
        threshold,
        "be a probability, at least 0 and below 1, e.g. 0.5",
        lambda t: 0 <= t < 1,
    )
    if as_probability:
        return threshold
    if threshold != 0.5:
        raise InputError(
            "threshold only applies to probabilities; pass as_probability=True, or"
            " leave threshold out"
        )
    return None


def _positives(
    comparison: Comparison, frame: Any, predictions: Any, threshold: float | None
) -> Iterator[list[GroupedTable]]:
    """True positives among rows with an outcome; false ones among those without it."""
    rows = comparison.open(frame)
    predicted = comparison.predicted(rows, predictions, threshold)
    codes, outcomes = rows.levels
    parts = list(comparison.parts(rows))
    for kind, among in (("true", "with"), ("false", "without")):
        tables = []
        for part in parts:
            for code, is_predicted in predicted.items():
                has_outcome = codes[part.rows] == code
                relevant = has_outcome == (kind == "true")
                positive = is_predicted[part.rows][relevant]
                table = GroupedTable.of_positives(
                    part.only(relevant), positive, outcomes[code]
                )
                if table.compared:
                    tables.append(table)
        if not any(
            table.compared >= min(2, len(table.rows.labels)) for table in tables
        ):
            raise LevelError(
                f"{kind} positive rates cannot be compared: fewer than two groups have"
                f" rows {among} the favourable outcome. Add rows, or merge groups."
            )
        yield tables


@adding_options_of(Compare, without=("likely", "within", "cluster"))
def calibration(
    frame: Any,
    outcome: Any,
    probabilities: Any,
    protected: Protected,
    *,
    favourable: object,
    bins: int = 10,
    confidence: float = 0.95,
    **compared: Unpack[Compared],
) -> Calibration:
    """Compare predictions with what happened, in each group.

    That is the mean probability with the observed share.

    `outcome` is what happened, and `probabilities` are those of the outcome
    `favourable`, one level: each is a column of the frame, or an array with one value
    per row. The result has the largest `gap` between two groups in observed share minus
    mean probability, and for each group its calibration `error` over `bins` of equal
    weight, with the error to expect by chance alone. Groups that are too small decide
    neither, and are listed in `set_apart`.

    Parameters
    ----------
    """
    compare = Compare(protected, favourable=favourable, **compared)
    return calibrate(
        Comparison(compare, outcome), frame, probabilities, bins, confidence
    )


@dataclass(frozen=True)
class GroupDisparity:
    """One group's disparity, over all strata and in each where there is one."""

    columns: Columns
    group: Label
    value: float
    strata: tuple[tuple[StratumLevels, float], ...]


@dataclass(frozen=True)
class Disparity(Number):
    """The largest disparity of a group, which is 0 if there is none, and all others.

    Strata in which everybody or nobody has the favourable outcome count with 0, and are
    listed in `left_out`. Groups that are too small to decide the value are in
    `set_apart`, with their rates. The value is NaN if they are all.
    """

    value: float
    groups: tuple[GroupDisparity, ...]
    left_out: tuple[StratumLevels, ...]
    set_apart: tuple[GroupRate, ...] = ()

    @property
    def worst(self) -> GroupDisparity:
        """The group with the largest disparity."""
        return max(self.groups, key=lambda group: group.value)

    def _words(self) -> str:
        apart = rates.set_apart_text(self.set_apart)
        if not self.groups:
            return f"nothing to compare{apart}"
        text = (
            f"{self.value:.3f}: {' × '.join(self.worst.columns)},"
            f" {rates.group_text(self.worst.group)}"
        )
        names = ", ".join(
            stratum_text(stratum).removeprefix(" within ") for stratum in self.left_out
        )
        if names:
            text += f"; everybody or nobody has the outcome in {names}"
        return text + apart


@adding_options_of(Compare, without=("reference", "cluster"))
def conditional_demographic_disparity(
    data: Any,
    outcome: Any,
    protected: Protected,
    *,
    favourable: object,
    **compared: Unpack[Compared],
) -> Disparity:
    """Share of a group among those turned away, minus its share among the others.

    Those turned away are without the favourable outcome.

    Above 0, the group is overrepresented among those turned away (Wachter, Mittelstadt
    and Russell, 2021). `favourable` is the one good level of the `outcome`, which is a
    column, or an array with one prediction per row. With `within`, it is the mean over
    strata, each counted by its people. Groups that are too small do not decide the
    value, and are listed in `set_apart`.

    Examples
    --------
    >>> import pandas as pd
    >>> hired = ["no", "no", "no", "yes"] * 10
    >>> people = pd.DataFrame({"sex": ["F", "F", "M", "M"] * 10, "hired": hired})
    >>> found = conditional_demographic_disparity(
    ...     people, "hired", "sex", favourable="yes"
    ... )
    >>> print(found)
    0.667: sex, F

    Parameters
    ----------
    """
    compare = Compare(protected, favourable=favourable, **compared)
    disparities: list[GroupDisparity] = []
    left_out: dict[StratumLevels, None] = {}
    set_apart: list[GroupRate] = []
    for rows in Comparison(compare, outcome).grouped(data):
        code = rows.one_favourable(favourable)
        groups, strata = _disparities(rows, code)
        small = _small_groups(rows, code)
        names = [group.group for group in small]
        disparities += [group for group in groups if group.group not in names]
        left_out |= dict.fromkeys(strata)
        set_apart += small
    return Disparity(
        value=max((group.value for group in disparities), default=np.nan),
        groups=tuple(disparities),
        left_out=tuple(left_out),
        set_apart=tuple(set_apart),
    )


def _small_groups(rows: GroupedRows, favourable: int) -> list[GroupRate]:
    """Who is too small among all who are compared, whatever their stratum."""
    compared = np.zeros(len(rows.group), dtype=bool)
    for _, of_stratum in rows.strata:
        compared[of_stratum] = True
    codes, outcomes = rows.levels
    everybody = rows.only(compared)
    accepted = codes[compared] == favourable
    table = GroupedTable.of_positives(everybody, accepted, outcomes[favourable])
    return list(table.listed(table.set_apart, _USUAL))


def _disparities(
    rows: GroupedRows, favourable: int
) -> tuple[list[GroupDisparity], list[StratumLevels]]:
    """Each weighted group's disparity, and the strata in which there is none."""
    size = len(rows.labels)
    counted = []  # by stratum: the weight of each group, turned away and taken
    for _, of_stratum in rows.strata:
        part = rows.only(of_stratum).split()
        accepted = part.levels[0] == favourable
        away = tally(part.group, np.where(accepted, 0.0, part.weights), size)
        taken = tally(part.group, np.where(accepted, part.weights, 0.0), size)
        counted.append((away, taken))
    weights = np.array(counted)
    totals = weights.sum(axis=-1)
    is_mixed = (totals > 0).all(axis=1)
    if not is_mixed.any():
        raise LevelError(
            "everybody or nobody has the favourable outcome, so there is nothing to"
            " compare"
        )
    shares = ratio(weights, totals[..., None], 0.0)
    disparities = np.where(is_mixed[:, None], shares[:, 0] - shares[:, 1], 0.0)
    sizes = totals.sum(axis=1)
    means = sizes @ disparities / sum(sizes)
    strata = [levels for levels, _ in rows.strata]
    by_group = [
        GroupDisparity(
            columns=rows.columns,
            group=rows.labels[code],
            value=float(means[code]),
            strata=tuple(
                (strata[at], float(disparities[at, code]))
                for at in np.flatnonzero(is_mixed)
                if strata[at]
            ),
        )
        for code in np.flatnonzero(weights.sum(axis=(0, 1)))
    ]
    return by_group, [strata[at] for at in np.flatnonzero(~is_mixed)]
