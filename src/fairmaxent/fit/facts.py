"""Finding out what is known of a fit, with the paper's bounds: see `facts`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairmaxent.data.table import Names, Reals, ratio
from fairmaxent.distribution import Distribution
from fairmaxent.engines.rows import divergence, tilted_rows
from fairmaxent.facts.fitted import (
    SMALL_GROUP,
    GroupMean,
    MissingValues,
    OutcomeShare,
    TargetShare,
    UnderivedFacts,
)
from fairmaxent.facts.models import Decisions, Range
from fairmaxent.fairness.rates import (
    Grouping,
    Rates,
    group_table,
    smallest_over_largest,
    worst_ratio,
)
from fairmaxent.fit.costs import measure_costs
from fairmaxent.fit.groups import gaps, group_changes
from fairmaxent.fit.paper_request import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.maxent.features import root_marginals
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.plain_text import Values


def facts_of(solved: Solved, told: UnderivedFacts) -> Values:
    """The facts that follow from the rows and the distribution, by their fields."""
    problem = solved.problem
    distribution = solved.distribution
    solution = solved.optimum.solution
    filled = solved.filled
    achieved = solved.root_table
    costs = None
    if not isinstance(solved.request, PaperRequest):
        costs = measure_costs(solved, filled=bool(filled))
    return dict(
        **_column_facts(problem, achieved),
        **_rate_bound(solved, achieved),
        wanted=wanted_rates(problem, told.decisions),
        before=problem.judged.rates(problem.data_table),
        achieved=problem.judged.rates(achieved),
        gaps=gaps(solved),
        set_apart=tuple(one for one in group_changes(solved) if one.is_apart),
        dual=solution.value,
        iterations=solution.iterations,
        residual=solution.residual,
        method=solution.method,
        multiplier_norm=float(np.linalg.norm(solution.multipliers)),
        multiplier_bound=_multiplier_bound(solved),
        distance={
            "to_prior": -solution.value,
            "from_data": divergence(problem.counted, distribution.density),
        },
        rows=problem.table.size,
        effective_rows=solved.weighted.worth if costs is None else costs.effective_rows,
        small_groups=_small_groups(problem),
        filled_cells=tuple(problem.roles.describe_cell(cell) for cell in filled),
        filled_shares=tuple(float(achieved[cell]) for cell in filled),
        costs=costs,
        removed_levels=_removed_levels(distribution),
        means=_group_means(problem, achieved),
        targets=tuple(_target_shares(problem, achieved)),
        weight_limit=problem.weight_limit,
        forbidden_rows=_forbidden_rows(problem),
        outcome_shares=outcome_shares(problem, achieved),
        notes=solved.domain.notes,
        copied_share=_copied_share(solved),
        measure=problem.judged,
        table=achieved,
    )


def _copied_share(solved: Solved) -> float:
    """The share of drawn rows that copy a real one on purpose."""
    copied = tilted_rows(solved.distribution.tilted)
    if copied is None or not solved.provenance.has_real_rows:
        return 0.0
    return copied[0]


def wanted_rates(problem: Problem, decisions: Decisions | None) -> Rates:
    """The wanted rates of the table; statistical ones are free if it is for a model."""
    measure = problem.measure
    targets = problem.root_targets
    representation = dict(zip(measure.names, problem.representation, strict=True))
    for name, grouping in measure.named_groupings:
        named = [
            axis
            for axis in grouping
            if axis in targets and axis not in problem.roles.strata_axes
        ]
        # Shares that the user named take the place of ρ; if they are about a part of a
        # grouping only, it has no rate.
        if named:
            representation[name] = None
        if named and len(grouping) == 1:
            table = measure.groups_compared(
                np.broadcast_to(1.0, problem.data_table.shape), grouping
            )
            shares = targets[named[0]] * (group_table(table, grouping).sum(axis=0) > 0)
            representation[name] = float(smallest_over_largest(shares[shares > 0]))
    statistical = dict(zip(measure.names, problem.statistical, strict=True))
    if decisions is not None:
        statistical = dict.fromkeys(measure.names)
    return {"representation_rate": representation, "statistical_rate": statistical}


def _small_groups(problem: Problem) -> dict[str, int]:
    rows = problem.cells("rows")
    sizes = {
        axes: group_table(rows, axes).sum(axis=0)
        for _, axes in problem.measure.of_first_outcome
    }
    return {
        problem.roles.describe_group(axes, group): int(size[group])
        for axes, size in sizes.items()
        for group in map(tuple, np.argwhere(size < SMALL_GROUP).tolist())
    }


def _removed_levels(distribution: Distribution) -> Names:
    """Levels of the data that the fitted distribution no longer has."""
    blocks = distribution.blocks
    levels = distribution.tilted.levels
    shares = dict(zip(blocks.members[0], root_marginals(blocks, levels), strict=True))
    shares |= {
        member: levels[part]
        for (member,), part in zip(blocks.members[1:], blocks.slices[1:], strict=True)
    }
    return tuple(
        attribute.describe(level)
        for index, attribute in enumerate(distribution.domain.attributes)
        for level in np.flatnonzero(shares[index] <= 0).tolist()
    )


def _column_facts(problem: Problem, achieved: Reals) -> Values:
    """Which columns are compared in bins, and which missing values and strata."""
    roles = problem.roles
    left_out = dict(problem.measure.left_out)
    before, after = (
        root_marginals(problem.blocks, table.ravel())
        for table in (problem.data_table, achieved)
    )
    single: dict[str, Names] = {}
    if problem.measure.strata:
        for name, groups in problem.group_counts():
            alone = np.argwhere(groups == 1).tolist()
            if alone:
                single[name] = tuple(
                    roles.describe_group(roles.strata_axes, stratum)
                    for stratum in alone
                )
    return {
        "binned_columns": {
            column.name: column.labels
            for column in roles.attributes
            if column.edges is not None
        },
        "kept_missing": tuple(
            MissingValues(
                roles.names[axis], float(before[axis][level]), float(after[axis][level])
            )
            for axis, level in left_out.items()
            if before[axis][level] > 0  # a column that has none now is not named
        ),
        "single_groups": single,
    }


def _group_means(problem: Problem, achieved: Reals) -> tuple[GroupMean, ...]:
    """The mean outcome of each group, over rows with a number, before and after."""
    means: list[GroupMean] = []
    if problem.values is None:
        return ()
    values = np.nan_to_num(problem.values)
    # the others need not be numbers
    for name, axes in problem.measure.of_first_outcome:
        both = []
        for table in (problem.data_table, achieved):
            compared = np.where(
                np.isnan(problem.values),
                0.0,
                problem.measure.outcomes_compared(table, axes),
            )
            size, total = (
                group_table(compared * value, axes).sum(axis=0)
                for value in (1.0, values)
            )
            both.append(ratio(total, size, np.nan))
        for group in map(tuple, np.argwhere(np.isfinite(both).all(axis=0)).tolist()):
            before, after = (float(mean[group]) for mean in both)
            means.append(
                GroupMean(
                    name, problem.roles.describe_group(axes, group), before, after
                )
            )
    return tuple(means)


def _target_shares(problem: Problem, achieved: Reals) -> Iterator[TargetShare]:
    """The shares that the user named, level by level."""
    for axis, wanted in problem.root_targets.items():
        column = problem.roles.attributes[axis]
        others = tuple(other for other in range(achieved.ndim) if other != axis)
        after = achieved.sum(axis=others)
        for level in np.flatnonzero((wanted > 0) | (after > 0)).tolist():
            yield TargetShare(
                grouping=column.name,
                name=column.describe(level),
                wanted=float(wanted[level]),
                after=float(after[level]),
            )


def outcome_shares(problem: Problem, achieved: Reals) -> tuple[OutcomeShare, ...]:
    """How common each level of each outcome is, before and after."""
    shares = []
    for axis in (0, *problem.roles.other_axes):
        outcome = problem.roles.attributes[axis]
        before, after = (
            group_table(np.swapaxes(table, 0, axis), ())
            for table in (problem.data_table, achieved)
        )
        shares += [
            OutcomeShare(
                outcome.describe(level), float(before[level]), float(after[level])
            )
            for level in range(outcome.size)
        ]
    return tuple(shares)


def _forbidden_rows(problem: Problem) -> dict[str, int]:
    named = [(0, *(block for block, _ in rule.others)) for rule in problem.rules]
    tables = problem.table.tables(named, problem.blocks.levels, of="rows")
    return {
        rule.text: rows
        for rule, table in zip(problem.rules, tables, strict=True)
        if (
            rows := int(table[(rule.roots, *(level for _, level in rule.others))].sum())
        )
    }


def theorem_4_5(tau: float, *, base_mass: float, delta: float) -> float:
    """τ − δ(1 + τ)/(m + δ), where q ≥ m in every cell.

    With m = C/4 (uniform base, 2 × 2), it is τ − 4δ(1 + τ)/(C + 4δ).
    """
    if delta == 0:
        return tau
    return max(0.0, tau - delta * (1 + tau) / (base_mass + delta))


def lemma_4_2(log_floor: float, shares: list[Reals]) -> float:
    """‖λ*‖₂ ≤ L_q/η, with L_q = log 1/min q.

    η is the distance of θ to the boundary of the features' hull. The indicators of one
    alphabet, less the reference, fill a simplex; its faces are θ_i away, and the one
    opposite the origin θ_reference/√(number of indicators).
    """
    radius = np.inf
    for share in shares:
        ordered = np.sort(share[share > 0])
        if len(ordered) > 1:
            radius = min(radius, ordered[0], ordered[-1] / np.sqrt(len(ordered) - 1))
    return float(-log_floor / radius)


def _rate_bound(solved: Solved, achieved: Reals) -> dict[str, float]:
    """Theorem 4.5 with its δ, on the worst grouping and favourable outcome."""
    if solved.weighed is not None:
        rates = solved.problem.judged.rates(achieved)["statistical_rate"].values()
        least = min((rate for rate in rates if rate is not None), default=1.0)
        return {"bound": least, "delta": 0.0}
    dual = solved.optimum.dual
    base = dual.prior
    if isinstance(dual.prior, Mixture) and solved.request.C < 1:
        base = dual.prior.parts[0]
    roots = dual.features.blocks.slices[0]
    prior = dual.start.tilted.levels[roots]
    possible = np.where(dual.features.possible, 0.0, -np.inf)
    tables = (achieved, prior, base.tilt(possible).levels[roots])
    shaped = [table.reshape(achieved.shape) for table in tables]
    bounds = [
        _grouping_bound(solved, shaped, grouping)
        for grouping in solved.problem.measure.groupings
    ]
    # a target may remove every favourable outcome: there is nothing to compare then
    known = (bound for bound in bounds if bound is not None)
    bound, delta = min(known, key=lambda bound: bound[0], default=(1.0, 0.0))
    return {"bound": bound, "delta": delta}


def _grouping_bound(
    solved: Solved, tables: list[Reals], grouping: Grouping
) -> Range | None:
    """The bound and δ, from the tables of p*, of the prior q, and of its base."""
    measure = solved.problem.measure
    by_group = [group_table(table, grouping) for table in tables]
    outcomes = [
        level for level in measure.favourable_of(grouping) if by_group[0][level].any()
    ]
    if not outcomes:
        return None
    compared = group_table(measure.groups_compared(tables[0], grouping), grouping)
    seen = compared.sum(axis=0) > 0
    tau = _known_tau(solved.request)
    sizes: Any = 1.0
    if tau is None:
        sizes = by_group[0].sum(axis=0)[seen]
    reached, joint, base_joint = (
        table[outcomes][:, seen] / sizes for table in by_group
    )
    delta = float(np.max(np.abs(reached - joint)))
    if tau is None:
        # the smallest between seen groups of a stratum, for the worst outcome
        spread = np.full((len(joint), *seen.shape), np.nan)
        spread[:, seen] = joint
        tau = min(worst_ratio(row, measure.strata) for row in spread)
    base_mass = solved.request.C * float(base_joint.min())
    return theorem_4_5(tau, base_mass=base_mass, delta=delta), delta


def _known_tau(request: Request | PaperRequest) -> float | None:
    """The τ of Algorithm 1, if the theorem's own hypotheses hold.

    They are Algorithm 1, and θ between 1/2 and 1/(1 + τ). Otherwise its proof, which
    bounds a ratio of joint probabilities, is applied to these divided by the groups'
    shares, that is, to rates.
    """
    if not isinstance(request, PaperRequest):
        return None
    if request.prior == "w" and request.theta in ("b", "w"):
        return request.tau
    return None


def _multiplier_bound(solved: Solved) -> float | None:
    """Lemma 4.2; it speaks of indicators and of a prior that reaches every point."""
    prior = solved.optimum.dual.prior
    blocks = solved.problem.blocks
    if not prior.full_support or any(
        attribute.features == "moment" for attribute in solved.domain.attributes
    ):
        return None
    # the wanted shares of each alphabet that has indicators
    simplices = blocks.split(solved.target)
    if isinstance(solved.request, PaperRequest):
        simplices = [*root_marginals(blocks, solved.target), *simplices[1:]]
    return lemma_4_2(prior.log_floor(), simplices)
