"""Definitions of the metrics: of a frame, of predictions, or of a fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption, Protected, WithinOption
from fairmaxent.data.table import tally
from fairmaxent.errors import InputError, LevelError, checked_number
from fairmaxent.fairness.small_groups import SmallestGroupOption
from fairmaxent.metrics import rates
from fairmaxent.metrics.group_rates import GroupedTable, worst_rate
from fairmaxent.metrics.groups import Comparison, ReferenceOption
from fairmaxent.metrics.intervals import Interval, interval_text
from fairmaxent.metrics.rates import Number, Rate
from fairmaxent.metrics.rows import (
    Columns,
    GroupedRows,
    Label,
    StratumLevels,
    stratum_text,
)
from fairmaxent.metrics.surpluses import Calibration, calibrate


def representation_rate(
    data: Any,
    protected: Protected,
    *,
    groups: GroupsOption = "each",
    within: WithinOption = None,
    weight: Any = None,
    compare_missing: bool = False,
    domain: Domain | None = None,
    smallest_group: SmallestGroupOption = 0,
    reference: ReferenceOption = None,
    cluster: str | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Smallest over largest share of a group, min P(g) / max P(g) (Definition 2.1).

    `data` is a frame, or a fit or its distribution (then the rate is exact). Of several
    protected columns the worst one counts; ``groups="joint"`` compares their
    intersections. A group without any rows is unknown here and is not compared, and
    neither are missing values, unless ``compare_missing`` makes a group of them.
    `weight` is a column, or one number per row, such as ``fit.weights()``. With a
    `domain`, such as ``fit.domain``, its levels (e.g. bins) are compared instead of
    values. `within` is as in :func:`fairmaxent.debias`: groups are compared with those
    of their own stratum, and the worst stratum counts.

    Groups below `smallest_group` do not decide the value, and are listed in
    `set_apart`: it is a number of rows, a share of the people compared (``"2%"``), or
    None, by which a group is set apart if fewer than five of its people would have the
    outcome, or would not, if it had it as often as all people. With a `reference`, such
    as ``"Male"`` or ``{"sex": "Male", "race": "White"}``, the other groups are compared
    with that one, and not with each other.

    Groups that nobody wrote down may stand among the protected columns, as
    probabilities (:class:`fairmaxent.Likely`): rows are then shared between groups, and
    `likely` of the result says what that assumes, what the rate is otherwise, and the
    bounds that hold whatever is true.

    Intervals assume that people are independent of each other. If some belong together,
    `cluster` is the column that says which (a household, a class, a branch): intervals
    then allow for people of one cluster being alike. There must be at least ten
    clusters, and better 30.
    """
    compared = Comparison(
        protected,
        groups,
        weight,
        compare_missing,
        domain,
        within=within,
        smallest_group=smallest_group,
        reference=reference,
        cluster=cluster,
    )
    parts = (part for rows in compared.grouped(data) for part in rows.parts())
    return worst_rate(map(GroupedTable.of_shares, parts), confidence)


def statistical_rate(
    data: Any,
    outcome: Any,
    protected: Protected,
    *,
    favourable: object = None,
    as_probability: bool = False,
    groups: GroupsOption = "each",
    within: WithinOption = None,
    weight: Any = None,
    compare_missing: bool = False,
    domain: Domain | None = None,
    smallest_group: SmallestGroupOption = 0,
    reference: ReferenceOption = None,
    cluster: str | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio of P(y | g) between two groups (Definition 2.2).

    Over the favourable outcomes.

    `outcome` is a column, or an array with one prediction per row; with
    ``as_probability`` it holds the probability of the favourable outcome, and groups
    are compared by their means. `favourable` is a level, a list of levels, or None for
    every level, each compared on its own. Rows with a missing outcome do not count,
    unless it is favourable, or ``compare_missing`` makes a level of it. The other
    options are as in `representation_rate`. With a recorded decision as the outcome and
    the true label as the column, ``within={"label": "yes"}`` is equal opportunity.
    """
    compared = Comparison(
        protected,
        groups,
        weight,
        compare_missing,
        domain,
        within,
        outcome,
        favourable,
        smallest_group,
        reference,
        cluster,
    )
    tables: list[GroupedTable] = []
    for rows in compared.grouped(data, by_levels=not as_probability):
        if as_probability:
            chance = rows.probabilities(outcome)
            tables += [
                GroupedTable.of_means(part, chance[part.rows], favourable)
                for part in rows.parts()
            ]
            continue
        rows.refuse_absent(favourable)
        tables += [GroupedTable.of_outcomes(part, favourable) for part in rows.parts()]
    return worst_rate(tables, confidence)


@dataclass(frozen=True)
class Odds(Number):
    """The worse of two ratios, of true and of false positive rates.

    With its confidence interval.
    """

    value: float
    interval: Interval | None
    true_positive: Rate
    false_positive: Rate

    @property
    def difference(self) -> float:
        """The larger of the two rates' largest differences between groups."""
        return max(self.true_positive.difference, self.false_positive.difference)

    def _words(self) -> str:
        true = self.true_positive
        false = self.false_positive
        kind = "true"
        worse = true
        if false.value < true.value:
            kind = "false"
            worse = false
        left_out = rates.left_out_text([*true.left_out, *false.left_out])
        left_out += rates.set_apart_text([*true.set_apart, *false.set_apart])
        return (
            f"{self.value:.3f}{interval_text(self.interval)}: {kind} positives,"
            f" {worse.worst}{left_out}"
        )


def equal_opportunity(
    frame: Any,
    outcome: Any,
    predictions: Any,
    protected: Protected,
    *,
    favourable: object,
    as_probability: bool = False,
    threshold: float = 0.5,
    groups: GroupsOption = "each",
    weight: Any = None,
    compare_missing: bool = False,
    domain: Domain | None = None,
    smallest_group: SmallestGroupOption = 0,
    reference: ReferenceOption = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio of the true positive rate P(Ŷ = y | Y = y, g) between two groups.

    By Hardt, Price and Srebro (2016).

    `outcome` is what happened and `predictions` is what a model predicts: each a column
    of the frame, or an array with one value per row. With ``as_probability`` the
    predictions are probabilities of the favourable outcome, which is predicted if its
    probability is above `threshold`. `favourable` is a level, a list of levels, or None
    for every level, each compared on its own; probabilities refer to a single level. A
    group without rows of that outcome has no such rate: it is not compared, and is
    listed in `left_out`. The other options are as in `representation_rate`.
    """
    compared = Comparison(
        protected,
        groups,
        weight,
        compare_missing,
        domain,
        outcome=outcome,
        favourable=favourable,
        smallest_group=smallest_group,
        reference=reference,
    )
    (true,) = _positives(
        compared,
        frame,
        predictions,
        [True],
        threshold,
        as_probability=as_probability,
    )
    return worst_rate(true, confidence)


def equalised_odds(
    frame: Any,
    outcome: Any,
    predictions: Any,
    protected: Protected,
    *,
    favourable: object,
    as_probability: bool = False,
    threshold: float = 0.5,
    groups: GroupsOption = "each",
    weight: Any = None,
    compare_missing: bool = False,
    domain: Domain | None = None,
    smallest_group: SmallestGroupOption = 0,
    reference: ReferenceOption = None,
    confidence: float = 0.95,
) -> Odds:
    """Worst ratio of the true or the false positive rate between two groups.

    The latter is P(Ŷ = y | Y ≠ y, g).

    The value is the smaller of the two worst ratios, and `difference` is the larger of
    the two largest differences. The result also holds both rates: `true_positive`,
    which is the equal opportunity, and `false_positive`. The options are as in
    `equal_opportunity`.
    """
    compared = Comparison(
        protected,
        groups,
        weight,
        compare_missing,
        domain,
        outcome=outcome,
        favourable=favourable,
        smallest_group=smallest_group,
        reference=reference,
    )
    true, false = _positives(
        compared,
        frame,
        predictions,
        [True, False],
        threshold,
        as_probability=as_probability,
    )
    worse = worst_rate([*true, *false], confidence)
    return Odds(
        worse.value,
        worse.interval,
        worst_rate(true, confidence),
        worst_rate(false, confidence),
    )


def _positives(
    compared: Comparison,
    frame: Any,
    predictions: Any,
    kinds: list[bool],
    threshold: float,
    *,
    as_probability: bool,
) -> Iterator[list[GroupedTable]]:
    """True positives among rows with an outcome, false ones among those without it."""
    checked_number(
        "threshold",
        threshold,
        "be a probability, at least 0 and below 1, e.g. 0.5",
        lambda t: 0 <= t < 1,
    )
    if not as_probability and threshold != 0.5:
        raise InputError(
            "threshold only applies to probabilities; pass as_probability=True, or"
            " leave threshold out"
        )
    opened = compared.open(frame)
    predicted = compared.predicted(
        opened, predictions, threshold if as_probability else None
    )
    codes, outcomes = opened.levels
    groupings = [compared.group(opened, columns) for columns in compared.groupings]
    for true in kinds:
        tables = []
        for rows in groupings:
            for code, positive in predicted.items():
                relevant = (codes == code) == true
                table = GroupedTable.of_positives(
                    rows.only(relevant), positive[relevant], outcomes[code]
                )
                if table.compared:
                    tables.append(table)
        if not any(
            table.compared >= min(2, len(table.rows.labels)) for table in tables
        ):
            kind = "true" if true else "false"
            among = "with" if true else "without"
            raise LevelError(
                f"{kind} positive rates cannot be compared: fewer than two groups have"
                f" rows {among} the favourable outcome. Add rows, or merge groups."
            )
        yield tables


def calibration(
    frame: Any,
    outcome: Any,
    probabilities: Any,
    protected: Protected,
    *,
    favourable: object,
    bins: int = 10,
    groups: GroupsOption = "each",
    weight: Any = None,
    compare_missing: bool = False,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Calibration:
    """Compare predictions with what happened, in each group.

    That is the mean probability with the observed share.

    `outcome` is what happened, and `probabilities` are those of the outcome
    `favourable`, one level: each is a column of the frame, or an array with one value
    per row. The result has the largest `gap` between two groups in observed share minus
    mean probability, and for each group its calibration `error` over `bins` of equal
    weight, with the error to expect by chance alone. The other options are as in
    `representation_rate`.
    """
    compared = Comparison(
        protected,
        groups,
        weight,
        compare_missing,
        domain,
        outcome=outcome,
        favourable=favourable,
    )
    return calibrate(compared, frame, probabilities, bins, confidence)


@dataclass(frozen=True)
class GroupDisparity:
    """One group's disparity, over all strata together and in each.

    Strata in which there is none are left out.
    """

    columns: Columns
    group: Label
    value: float
    strata: tuple[tuple[StratumLevels, float], ...]


@dataclass(frozen=True)
class Disparity(Number):
    """The largest disparity of a group, which is 0 if there is none, and all others.

    Strata in which everybody or nobody has the favourable outcome count with 0, and are
    listed in `left_out`.
    """

    value: float
    groups: tuple[GroupDisparity, ...]
    left_out: tuple[StratumLevels, ...]

    @property
    def worst(self) -> GroupDisparity:
        """The group with the largest disparity."""
        return max(self.groups, key=lambda group: group.value)

    def _words(self) -> str:
        text = (
            f"{self.value:.3f}: {' × '.join(self.worst.columns)},"
            f" {rates.group_text(self.worst.group)}"
        )
        names = ", ".join(
            stratum_text(stratum).removeprefix(" within ") for stratum in self.left_out
        )
        if names:
            text += f"; everybody or nobody has the outcome in {names}"
        return text


def conditional_demographic_disparity(
    data: Any,
    outcome: Any,
    protected: Protected,
    *,
    favourable: object,
    within: WithinOption = None,
    groups: GroupsOption = "each",
    weight: Any = None,
    compare_missing: bool = False,
    domain: Domain | None = None,
) -> Disparity:
    """Share of a group among those turned away, minus its share among the others.

    Those turned away are without the favourable outcome.

    Above 0, the group is overrepresented among those turned away (Wachter, Mittelstadt
    and Russell, 2021). `favourable` is the one good level of the `outcome`, which is a
    column, or an array with one prediction per row. With `within`, which is as in
    :func:`fairmaxent.debias`, this is taken in each stratum and averaged by the size of
    the strata; without it, it is the plain demographic disparity. The other options are
    as in `statistical_rate`.

    Examples
    --------
    >>> import pandas as pd
    >>> hired = ["no", "no", "no", "yes"]
    >>> people = pd.DataFrame({"sex": ["F", "F", "M", "M"], "hired": hired})
    >>> found = conditional_demographic_disparity(
    ...     people, "hired", "sex", favourable="yes"
    ... )
    >>> print(found)
    0.667: sex, F
    """
    compared = Comparison(
        protected, groups, weight, compare_missing, domain, within, outcome, favourable
    )
    found = [
        _disparities(rows, rows.one_favourable(favourable))
        for rows in compared.grouped(data)
    ]
    disparities = tuple(group for groups, _ in found for group in groups)
    left_out = dict.fromkeys(stratum for _, strata in found for stratum in strata)
    return Disparity(
        max(group.value for group in disparities), disparities, tuple(left_out)
    )


def _disparities(
    rows: GroupedRows, favourable: int
) -> tuple[list[GroupDisparity], list[StratumLevels]]:
    """Each weighted group's disparity, and the strata in which there is none."""
    size = len(rows.labels)
    sizes = []
    by_stratum = {}
    has_people = np.zeros(size, dtype=bool)
    for levels, of_stratum in rows.strata:
        part = rows.only(of_stratum).split()
        accepted = part.levels[0] == favourable
        away = tally(part.group, np.where(accepted, 0.0, part.weights), size)
        taken = tally(part.group, np.where(accepted, part.weights, 0.0), size)
        sizes.append(away.sum() + taken.sum())
        has_people |= away + taken > 0
        if away.any() and taken.any():
            by_stratum[levels] = away / away.sum() - taken / taken.sum()
    if not by_stratum:
        raise LevelError(
            "everybody or nobody has the favourable outcome, so there is nothing to"
            " compare"
        )
    left_out = [levels for levels, _ in rows.strata if levels not in by_stratum]
    table = np.array(
        [by_stratum.get(levels, np.zeros(size)) for levels, _ in rows.strata]
    )
    means = np.array(sizes) @ table / sum(sizes)
    by_group = []
    for code in np.flatnonzero(has_people):
        strata = tuple(
            (levels, float(values[code]))
            for levels, values in by_stratum.items()
            if levels
        )
        disparity = GroupDisparity(
            columns=rows.columns,
            group=rows.labels[code],
            value=float(means[code]),
            strata=strata,
        )
        by_group.append(disparity)
    return by_group, left_out
