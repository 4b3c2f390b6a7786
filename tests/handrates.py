"""Rates of a table by hand: Definitions 2.1 and 2.2, group by group.

Axis 0 is the outcome, the other axes are protected attributes. A grouping names the
axes of its groups; the last `strata` of them are strata. Groups without mass are not
compared.
"""

from itertools import product


def representation_rate(table, grouping, *, strata=0):
    """min P(g) / max P(g), in the worst stratum (Definition 2.1)."""
    worst = 1.0
    for groups in groups_of_strata(table, grouping, strata):
        sizes = [group.sum() for group in groups]
        worst = min(worst, min(sizes) / max(sizes))
    return worst


def statistical_rate(table, grouping, outcomes, *, strata=0):
    """min P(y | g) / max P(y | g) over outcomes, likewise (Definition 2.2)."""
    worst = 1.0
    for groups in groups_of_strata(table, grouping, strata):
        for outcome in outcomes:
            rates = [group[outcome] / group.sum() for group in groups]
            if max(rates) > 0:
                worst = min(worst, min(rates) / max(rates))
    return worst


def groups_of_strata(table, grouping, strata):
    """For each stratum, the masses of the outcomes in each group that has any."""
    compared = grouping[: len(grouping) - strata]
    within = grouping[len(grouping) - strata :]
    for stratum in product(*(range(table.shape[axis]) for axis in within)):
        groups = []
        for group in product(*(range(table.shape[axis]) for axis in compared)):
            index = [slice(None)] * table.ndim
            levels = (*group, *stratum)
            for axis, level in zip((*compared, *within), levels, strict=True):
                index[axis] = level
            masses = table[tuple(index)].reshape(len(table), -1).sum(axis=1)
            if masses.sum() > 0:
                groups.append(masses)
        if groups:
            yield groups
