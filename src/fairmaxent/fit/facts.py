"""Facts to know about a fit, with the paper's bounds; `certificate` words them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.levels import Notes
from fairmaxent.data.reading import RedrawnValues
from fairmaxent.data.table import Names, Reals, ratio
from fairmaxent.distribution import Distribution
from fairmaxent.engines.rows import divergence, tilted_rows
from fairmaxent.fairness.rates import (
    ByGrouping,
    Grouping,
    Measure,
    Rates,
    group_table,
    smallest_over_largest,
    worst_ratio,
)
from fairmaxent.fit.costs import Costs, measure_costs
from fairmaxent.fit.groups import GroupChange, group_changes
from fairmaxent.fit.likely import LikelyFacts
from fairmaxent.fit.option_values import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.student import Decisions
from fairmaxent.maxent.features import root_marginals
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.plain_text import Values
from fairmaxent.privacy.budget import Ledger

SMALL_GROUP = 30  # rows
Range = tuple[float, float]
# by quantity, and by grouping or OVERALL
Ranges = Mapping[str, Mapping[str, Range | None]]


@dataclass(frozen=True)
class MissingValues:
    """Missing values of an outcome or protected column that are not compared."""

    column: str
    share: float  # of the rows
    after: float  # the share in the fitted distribution


@dataclass(frozen=True)
class OutcomeShare:
    """How common an outcome is in the data, and in the fitted distribution."""

    outcome: str
    before: float
    after: float


@dataclass(frozen=True)
class GroupMean:
    """The mean of a numeric outcome in a group, in the data and by the fair weights."""

    grouping: str
    group: str
    before: float
    after: float


@dataclass(frozen=True)
class ModelScores:
    """How a model does on people it has not seen.

    Comparisons are by grouping, and None if there is nothing to compare.
    """

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    # worst ratio of true positive rates or of false positive rates
    equalised_odds: ByGrouping
    # largest difference between groups in observed minus predicted rate
    calibration_gap: ByGrouping
    # share of people whom it decides for; of several favourable outcomes, for the
    # rarest
    decided: float | None
    # in which 95 % of measurements on other people will be, see `metrics.trial`; None:
    # not known
    ranges: Ranges


@dataclass(frozen=True)
class ModelEstimate:
    """What a model trained on the result, a student, will do to people not seen."""

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    # the probability of the favourable outcome above which it decides for it
    threshold: float
    before: ModelScores  # of a model trained on the data as they are
    after: ModelScores
    hide_protected: bool  # it does not see the protected columns
    rounds: int  # how many times people were split into folds
    people: int  # whom it decided about in each round
    measured_on: int  # the ranges are those of measurements on so many other people


@dataclass(frozen=True, eq=False, kw_only=True)
class UnderivedFacts:
    """Facts that do not follow from the rows and the fitted distribution."""

    # combinations with rows that cannot count if the wishes are to be met
    emptied_cells: Names = ()
    # the largest weight that would have allowed what was asked for; None: it was
    # reached, or there is no limit
    needed_limit: float | None = None
    # that look like identifiers, and that nobody asked to keep
    left_out_columns: Names = ()
    # None: drawn rows that copy a real row keep its exact values
    redrawn: RedrawnValues | None = None
    # what a model trained on the result will do; None: nobody asked
    estimate: ModelEstimate | None = None
    # of the model that the table was made for; None: for none
    decisions: Decisions | None = None
    # what the fit revealed at most; counts are noisy estimates then. None: no promise
    privacy: Ledger | None = None
    # of groups that are probabilities; None: groups are known
    likely: LikelyFacts | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts(UnderivedFacts):
    """All that remarks on a fit are made from."""

    measure: Measure
    wanted: Rates
    achieved: Rates  # exact: taken from the fitted distribution, not from drawn rows
    rows: int  # of the data
    # how many equally weighted rows carry as much information as the fair weights
    effective_rows: float
    # of fewer than `SMALL_GROUP` rows, whatever they weigh
    small_groups: dict[str, int]
    # those that are too small to decide a rate that is stated
    set_apart: tuple[GroupChange, ...]
    # combinations that nobody in the data has, and that the base fills
    filled_cells: Names
    filled_shares: tuple[float, ...]  # of each of them
    removed_levels: Names
    # the bins of outcome and protected columns that have some
    binned_columns: dict[str, Names]
    # missing values that are not compared; most keep their share
    kept_missing: tuple[MissingValues, ...]
    # by grouping, strata in which there is nothing to compare
    single_groups: dict[str, Names]
    # of the data, by forbidden combination; they count zero
    forbidden_rows: dict[str, int]
    outcome_shares: tuple[OutcomeShare, ...]
    means: tuple[GroupMean, ...]  # none: nobody asked for equal means
    weight_limit: float | None  # the limit that was asked for
    notes: Notes  # what reading the columns showed
    costs: Costs | None  # None: one of the paper's own configurations
    copied_share: float  # of drawn rows that copy a real one on purpose
    before: Rates
    # Theorem 4.5: the statistical rate is at least this, whatever the solver did to
    # single cells
    bound: float
    delta: float  # δ of Theorem 4.5
    dual: float  # h(λ*) = −KL(p*‖q)
    iterations: int
    residual: float  # max |E[φ] − θ|
    method: str
    multiplier_norm: float  # ‖λ*‖₂
    multiplier_bound: float | None  # Lemma 4.2; None if its assumptions do not hold
    distance: dict[str, float]  # "to_prior": KL(p*‖q); "from_data": KL(data‖p*)
    table: Reals  # p*(y, z)

    @property
    def rates_shown(self) -> Iterator[tuple[str, str]]:
        """Kind and grouping of every rate, group shares once for all outcomes."""
        groupings = {name for name, _ in self.measure.of_first_outcome}
        for kind, names in self.wanted.items():
            for name in names:
                if kind == "statistical_rate" or name in groupings:
                    yield kind, name

    @property
    def wanted_of_decisions(self) -> ByGrouping:
        """The statistical rates that a model's decisions should have.

        Those of the table may give way to them.
        """
        if self.decisions is None:
            return self.wanted["statistical_rate"]
        return {rate.grouping: rate.wanted for rate in self.decisions.rates}


def facts_of(solved: Solved, told: UnderivedFacts) -> Values:
    """The facts that follow from the rows and the distribution, by their fields."""
    problem = solved.problem
    distribution = solved.distribution
    solution = solved.optimum.solution
    filled = solved.filled
    achieved = solved.root_table
    copied = tilted_rows(distribution.tilted)
    costs = None
    if not isinstance(solved.request, PaperRequest):
        costs = measure_costs(solved, filled=bool(filled))
    return dict(
        **_column_facts(problem, achieved),
        **_rate_bound(solved, achieved),
        wanted=wanted_rates(problem, told.decisions),
        before=problem.judged.rates(problem.data_table),
        achieved=problem.judged.rates(achieved),
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
        weight_limit=problem.weight_limit,
        forbidden_rows=_forbidden_rows(problem),
        outcome_shares=outcome_shares(problem, achieved),
        notes=solved.domain.notes,
        copied_share=0.0 if copied is None or told.privacy is not None else copied[0],
        measure=problem.judged,
        table=achieved,
    )


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
