"""Conditional demographic disparity (Wachter, Mittelstadt and Russell, 2021): who is among those turned away.

The disparity of a group is its share of the people without the favourable outcome, minus its share of those with it:
above 0, the group is overrepresented among those turned away. Within strata, it is the mean over the strata, weighted
by their sizes, so that it is 0 if the outcome does not depend on the group in any stratum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption, WithinOption, read_within
from fairmaxent.data.table import tally
from fairmaxent.errors import InputError, LevelError
from fairmaxent.fairness.measure import MissingOption
from fairmaxent.metrics.group_rates import Number, group_text
from fairmaxent.metrics.groups import (
    Groups,
    compared_weights,
    groupings_of,
    groups_of,
    is_distribution,
    levels_of,
    one_favourable,
    open_rows,
    outcome_column,
    refuse_protected,
    source_of,
)
from fairmaxent.metrics.row_strata import RowStratum, StratumLevels, refuse_roles, strata_of, stratum_text


@dataclass(frozen=True)
class GroupDisparity:
    """One group's disparity: over all strata together, and in each stratum in which there is one."""

    columns: tuple[str, ...]
    group: tuple[object, ...]
    value: float
    strata: tuple[tuple[StratumLevels, float], ...]


@dataclass(frozen=True)
class Disparity(Number):
    """The largest disparity of a group, which is 0 if there is none, and that of every group.

    Strata in which everybody or nobody has the favourable outcome count with 0, and are listed in `left_out`.
    """

    value: float
    groups: tuple[GroupDisparity, ...]
    left_out: tuple[StratumLevels, ...]

    @property
    def worst(self) -> GroupDisparity:
        """The group with the largest disparity."""
        return max(self.groups, key=lambda group: group.value)

    def __str__(self) -> str:
        names = ", ".join(stratum_text(stratum).removeprefix(" within ") for stratum in self.left_out)
        alike = f"; everybody or nobody has the outcome in {names}" if names else ""
        return f"{self.value:.3f}: {' × '.join(self.worst.columns)}, {group_text(self.worst.group)}{alike}"


def conditional_demographic_disparity(
    data: Any,
    outcome: Any,
    protected: str | Sequence[str],
    *,
    favourable: object,
    within: WithinOption = None,
    groups: GroupsOption = "each",
    weight: Any = None,
    missing: MissingOption = "ignore",
    domain: Domain | None = None,
) -> Disparity:
    """Share of a group among those without the favourable outcome, minus its share among those with it.

    `favourable` is the one good level of the `outcome`, which is a column, or an array with one prediction per row.
    With `within`, which is as in :func:`fairmaxent.debias`, this is taken in each stratum and averaged by the size of
    the strata; without it, it is the plain demographic disparity. The other options are as in
    :func:`fairmaxent.statistical_rate`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["F", "F", "M", "M"], "hired": ["no", "no", "no", "yes"]})
    >>> print(conditional_demographic_disparity(people, "hired", "sex", favourable="yes"))
    0.667: sex, F
    """
    data = source_of(data)
    if is_distribution(data) and not isinstance(outcome, str):
        raise InputError("a fitted distribution has no rows to predict; name its outcome column, or pass a frame")
    disparities: list[GroupDisparity] = []
    left_out: list[StratumLevels] = []
    for columns in groupings_of(protected, groups):
        refuse_protected(outcome, columns)
        refuse_roles(within, outcome, columns)
        rows = open_rows(data, (outcome, *columns, *read_within(within)), weight)
        levels = None if rows.exact else domain
        outcomes = levels_of(outcome_column(rows.frame, outcome), levels)
        row_groups = groups_of(rows.frame, columns, levels)
        weights = compared_weights(rows.weights, row_groups, missing, outcomes, favourable)
        accepted = outcomes[0] == one_favourable(outcomes[1], favourable)
        strata = strata_of(rows, within, levels, missing)
        measured, skipped = _by_group(columns, row_groups, accepted, weights, strata)
        disparities += measured
        left_out += [stratum for stratum in skipped if stratum not in left_out]
    return Disparity(max(group.value for group in disparities), tuple(disparities), tuple(left_out))


def _by_group(
    columns: tuple[str, ...],
    groups: Groups,
    accepted: np.ndarray[Any, np.dtype[np.bool_]],
    weights: Reals,
    strata: list[RowStratum],
) -> tuple[list[GroupDisparity], list[StratumLevels]]:
    """The disparity of each group that has weight, and the strata in which there is none."""
    group, labels = groups
    sizes, by_stratum, skipped = [], [], []
    for stratum in strata:
        part, size = stratum.rows, len(labels)
        turned_away, taken = (
            tally(group[part], np.where(accepted[part] == of, weights[part], 0.0), size) for of in (False, True)
        )
        sizes.append(float(turned_away.sum() + taken.sum()))
        if turned_away.any() and taken.any():
            by_stratum.append(turned_away / turned_away.sum() - taken / taken.sum())
        else:
            by_stratum.append(np.full(size, np.nan))
            skipped.append(stratum.levels)
    if len(skipped) == len(strata):
        raise LevelError("everybody or nobody has the favourable outcome, so there is nothing to compare")
    table = np.array(by_stratum)
    means = np.array(sizes) @ np.nan_to_num(table) / sum(sizes)
    present = np.flatnonzero(tally(group, weights, len(labels)) > 0)
    return [
        GroupDisparity(
            columns,
            labels[code],
            float(means[code]),
            tuple(
                (stratum.levels, float(value))
                for stratum, value in zip(strata, table[:, code], strict=True)
                if stratum.levels and not np.isnan(value)
            ),
        )
        for code in present
    ], skipped
