"""Remarks: what a careful reader should know about a fit."""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.fairness.rates import group_table
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.problem import Problem
from fairmaxent.maxent.features import root_marginals


def small_groups(problem: Problem) -> tuple[str, ...]:
    """Groups of fewer than 30 rows, with their size, whatever the rows weigh."""
    roles, shape = problem.roles, problem.blocks.shape(0)
    rows = problem.table.tables([(0,)], problem.blocks.levels, of="rows")[0].reshape(shape)
    found = []
    for grouping in problem.measure.groupings:
        sizes = rows.sum(axis=tuple(axis for axis in range(len(shape)) if axis not in grouping))
        attributes = [roles.attributes[axis] for axis in grouping]
        for group in np.argwhere(sizes < SMALL_GROUP):
            name = ", ".join(f"{a.name} = {a.labels[level]}" for a, level in zip(attributes, group, strict=True))
            found.append(f"{name} ({int(sizes[tuple(group)])} rows)")
    return tuple(found)


def removed_levels(distribution: Distribution) -> tuple[str, ...]:
    """Levels of the data that the fitted distribution no longer has."""
    blocks, levels = distribution.blocks, distribution.tilted.levels
    shares = dict(zip(blocks.members[0], root_marginals(blocks, levels), strict=True))
    shares |= {member: levels[part] for (member,), part in zip(blocks.members[1:], blocks.slices[1:], strict=True)}
    return tuple(
        f"{attribute.name} = {attribute.labels[level]}"
        for index, attribute in enumerate(distribution.domain.attributes)
        for level in np.flatnonzero(shares[index] <= 0)
    )


def binned_roles(problem: Problem) -> list[str]:
    """Say which groups or outcomes are bins of numbers."""
    return [
        f"column {own.name!r} is compared in {own.size} levels made of its numbers: {', '.join(own.labels[:3])}, …"
        for own in problem.roles.attributes
        if own.edges is not None
    ]


def missing_roles(problem: Problem) -> list[str]:
    """Say where missing counts as a group or an outcome."""
    return [
        f"missing counts as a level of {own.name!r}, compared like the others; drop those rows to leave it out"
        for own in problem.roles.attributes
        if own.missing is not None
    ]


def few_effective_rows(problem: Problem, effective: float) -> list[str]:
    """Say so where a few rows carry the result."""
    rows = problem.table.size
    if effective >= rows * FEW_ROWS:
        return []
    return [f"the fair weights are worth {effective:,.0f} of the {rows:,} rows: small groups count many times over"]


def shrunk_outcomes(problem: Problem, achieved: Reals) -> list[str]:
    """Say which outcomes lost more than half of their share: rates can be met by making an outcome rare."""
    own = problem.roles.attributes[0]
    before, after = (group_table(table, ()) for table in (problem.data_table, achieved))
    return [
        f"outcome {own.name} = {own.labels[level]} falls from {before[level]:.1%} to {after[level]:.1%} of the rows"
        for level in np.flatnonzero(after < before / 2)
    ]


def broken_rows(problem: Problem) -> list[str]:
    """Say how many rows break each rule."""
    named = [(0, *(block for block, _ in rule.others)) for rule in problem.rules]
    tables = problem.table.tables(named, problem.blocks.levels, of="rows")
    found = [
        (rule.text, int(table[(rule.roots, *(level for _, level in rule.others))].sum()))
        for rule, table in zip(problem.rules, tables, strict=True)
    ]
    return [f"{count} rows with forbidden {text} got weight zero" for text, count in found if count]


SMALL_GROUP = 30
FEW_ROWS = 0.25  # share of the rows that the fair weights should be worth
