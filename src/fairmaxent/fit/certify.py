"""Filling in the certificate of a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.blocks import mask
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, Reals
from fairmaxent.fairness.rates import group_table, representation_rate
from fairmaxent.fit.certificate import FEW_ROWS, SMALL_GROUP, Certificate, Measure, Rates, lemma_4_2, theorem_4_5
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.problem import Problem
from fairmaxent.maxent.features import root_marginals
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.protocol import Prior


def certify(
    problem: Problem,
    optimum: Optimum,
    distribution: Distribution,
    *,
    weighted: Counted,
    simplices: list[Reals],
    base: Prior,
    base_share: float,
    filled: Sequence[tuple[int, ...]] = (),
    tau: float | None = None,
    notes: Sequence[str] = (),
) -> Certificate:
    """Take every promised quantity from the fitted distribution itself.

    ``weighted`` are the rows that the prior stands on. ``simplices`` are the wanted shares of each alphabet that enters
    by indicators. ``tau`` is Algorithm 1's, where the prior came from it; otherwise Theorem 4.5 is applied with the
    ratio that the prior's own table has.
    """
    solution, roles, measure = optimum.solution, problem.roles, problem.measure
    achieved = distribution.root_table
    bound, delta = _bound(optimum, measure, achieved, base=base, base_share=base_share, tau=tau)
    return Certificate(
        wanted=_wanted(problem),
        before=measure.rates(problem.data_table),
        achieved=measure.rates(achieved),
        bound=bound,
        delta=delta,
        dual=solution.value,
        iterations=solution.iterations,
        residual=solution.residual,
        method=solution.method,
        status=solution.status.value,
        multiplier_norm=float(np.linalg.norm(solution.multipliers)),
        multiplier_bound=_multiplier_bound(optimum, roles, simplices),
        distance={"to_prior": -solution.value, "from_data": problem.counted.divergence(distribution.density)},
        effective_rows=weighted.worth,
        small_groups=_small_groups(problem),
        filled_cells=tuple(roles.describe_cell(cell) for cell in filled),
        removed_levels=_removed_levels(distribution),
        notes=(
            *roles.domain.notes,
            *notes,
            *_binned_roles(problem),
            *_missing_roles(problem),
            *_few_effective_rows(problem, weighted.worth),
            *_broken_rows(problem),
            *_shrunk_outcomes(problem, achieved),
        ),
        measure=measure,
        table=achieved,
    )


def _wanted(problem: Problem) -> Rates:
    names = problem.measure.names
    shares = [
        _target_rate(problem, grouping, rate)
        for grouping, rate in zip(problem.measure.groupings, problem.representation, strict=True)
    ]
    return {
        "representation_rate": dict(zip(names, shares, strict=True)),
        "statistical_rate": dict(zip(names, problem.statistical, strict=True)),
    }


def _target_rate(problem: Problem, grouping: tuple[int, ...], rate: float | None) -> float | None:
    """ρ, or what the user's own shares amount to; None where they rule only a part of the grouping."""
    named = [axis for axis in grouping if axis in problem.root_targets]
    if not named:
        return rate
    if len(grouping) > 1:
        return None
    shares = problem.root_targets[named[0]]
    return float(shares[shares > 0].min() / shares.max())


def _bound(
    optimum: Optimum,
    measure: Measure,
    achieved: Reals,
    *,
    base: Prior,
    base_share: float,
    tau: float | None,
) -> tuple[float, float]:
    """Theorem 4.5 with its δ, on the worst grouping and favourable outcome.

    The theorem's own hypotheses (Algorithm 1, θ between 1/2 and 1/(1 + τ)) allow τ as it is. In general the ratio of
    joint probabilities that the proof bounds turns into a ratio of rates by the ratio of the group shares.
    """
    features = optimum.dual.features
    roots = features.blocks.slices[0]
    prior = optimum.dual.start.tilted.levels[roots].reshape(achieved.shape)
    base_table = base.tilt(mask(features.possible)).levels[roots].reshape(achieved.shape)
    bounds, deltas = [], []
    for grouping in measure.groupings:
        joint = group_table(prior, grouping)[list(measure.favourable)]
        reached = group_table(achieved, grouping)[list(measure.favourable)]
        seen = group_table(achieved, grouping).sum(axis=0) > 0
        delta = float(np.max(np.abs(reached - joint)))
        highest = joint[:, seen].max(axis=1)
        lowest = np.where(highest > 0, joint[:, seen].min(axis=1), 1.0)
        ratio = float(np.min(lowest / np.where(highest > 0, highest, 1.0)))
        smallest = base_share * float(group_table(base_table, grouping)[list(measure.favourable)][:, seen].min())
        if tau is None:
            shares = representation_rate(achieved, grouping)
            bounds.append(shares * theorem_4_5(ratio, base_mass=smallest, delta=delta))
        else:
            bounds.append(theorem_4_5(tau, base_mass=smallest, delta=delta))
        deltas.append(delta)
    worst = int(np.argmin(bounds))
    return bounds[worst], deltas[worst]


def _multiplier_bound(optimum: Optimum, roles: Roles, simplices: list[Reals]) -> float | None:
    """Lemma 4.2; it speaks of indicators and of a prior that reaches every point."""
    if not optimum.dual.prior.full_support:
        return None
    if any(attribute.features == "moment" for attribute in roles.domain.attributes):
        return None
    return lemma_4_2(optimum.dual.prior.log_floor(), simplices)


def _small_groups(problem: Problem) -> tuple[str, ...]:
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


def _removed_levels(distribution: Distribution) -> tuple[str, ...]:
    """Levels of the data that the fitted distribution no longer has."""
    blocks, levels = distribution.blocks, distribution.tilted.levels
    shares = dict(zip(blocks.members[0], root_marginals(blocks, levels), strict=True))
    shares |= {member: levels[part] for (member,), part in zip(blocks.members[1:], blocks.slices[1:], strict=True)}
    return tuple(
        f"{attribute.name} = {attribute.labels[level]}"
        for index, attribute in enumerate(distribution.domain.attributes)
        for level in np.flatnonzero(shares[index] <= 0)
    )


def _binned_roles(problem: Problem) -> list[str]:
    """Say which groups or outcomes are bins of numbers."""
    return [
        f"column {own.name!r} is compared in {own.size} levels made of its numbers: {', '.join(own.labels[:3])}, …"
        for own in problem.roles.attributes
        if own.edges is not None
    ]


def _missing_roles(problem: Problem) -> list[str]:
    """Say where missing counts as a group or an outcome."""
    return [
        f"missing counts as a level of {own.name!r}, compared like the others; drop those rows to leave it out"
        for own in problem.roles.attributes
        if own.missing is not None
    ]


def _few_effective_rows(problem: Problem, effective: float) -> list[str]:
    """Say so where a few rows carry the result."""
    rows = problem.table.size
    if effective >= rows * FEW_ROWS:
        return []
    return [f"the fair weights are worth {effective:,.0f} of the {rows:,} rows: small groups count many times over"]


def _shrunk_outcomes(problem: Problem, achieved: Reals) -> list[str]:
    """Say which outcomes lost more than half of their share: rates can be met by making an outcome rare."""
    own = problem.roles.attributes[0]
    before, after = (group_table(table, ()) for table in (problem.data_table, achieved))
    return [
        f"outcome {own.name} = {own.labels[level]} falls from {before[level]:.1%} to {after[level]:.1%} of the rows"
        for level in np.flatnonzero(after < before / 2)
    ]


def _broken_rows(problem: Problem) -> list[str]:
    """Say how many rows break each rule."""
    named = [(0, *(block for block, _ in rule.others)) for rule in problem.rules]
    tables = problem.table.tables(named, problem.blocks.levels, of="rows")
    found = [
        (rule.text, int(table[(rule.roots, *(level for _, level in rule.others))].sum()))
        for rule, table in zip(problem.rules, tables, strict=True)
    ]
    return [f"{count} rows with forbidden {text} got weight zero" for text, count in found if count]
