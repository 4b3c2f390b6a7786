"""Maximum entropy: the p closest to a prior among all with the wanted averages."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.errors import BASE_SHARE, InfeasibleError, SolverError
from fairmaxent.maxent.bounded import BoundedDual
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import Features
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.reach import REACHED, Conditions, face, smallest_miss
from fairmaxent.maxent.search import Status
from fairmaxent.maxent.solvers import (
    DampedNewton,
    Newton,
    NewtonCG,
    Solution,
    Solver,
    ThinnedNewton,
)
from fairmaxent.progress import unwatched

# Above this many features a dense Hessian no longer pays.
DENSE_FEATURES = 3000
# A Hessian visits every pair of blocks in every row; up to this many visits it is cheap
# enough to take at each step.
_VISITS = 1 << 24
# A thinned table needs several rows for each feature, or it says little about how
# features go together.
_ROWS_PER_FEATURE = 16

# A row that lost this much weight against another (as a logarithm) may be one that no
# solution uses.
_VANISHED = 20.0

# names a level, by its position among the levels of all blocks
Describe = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class Optimum:
    """p* ∝ q·e^{⟨λ, φ⟩}: the dual, and where it is least."""

    dual: Dual  # its prior on the face that the target allows
    solution: Solution

    @property
    def potentials(self) -> Reals:
        """⟨λ*, φ⟩ of each level."""
        return self.dual.features.potentials(self.solution.multipliers)


def default_solver(dual: Dual) -> Solver:
    """Newton; for many rows with a Hessian of some, for many features without one."""
    if dual.size > DENSE_FEATURES:
        return NewtonCG()
    blocks = len(dual.features.blocks.levels)
    rows = max(2 * _VISITS // blocks**2, _ROWS_PER_FEATURE * dual.size)
    if dual.prior.rows <= rows:
        return Newton()
    # Blocks are visited in pairs for a Hessian, twice for a gradient: spend about as
    # much on the one as on the other.
    gradients = rows * blocks / (4 * dual.prior.rows)
    return ThinnedNewton(rows=rows, refresh=max(1, round(gradients)))


def maximise_entropy(
    prior: Prior,
    features: Features,
    levels: Reals,
    *,
    describe: Describe,
    solver: Solver | None = None,
    watch: Callable[[float], None] = unwatched,
) -> Optimum:
    """Solve for the multipliers that give the features their averages in ``levels``.

    A target on the boundary of what rows alone can reach is met by dropping, exactly,
    the rows that no solution uses. A target outside raises InfeasibleError and names
    the levels that stand in the way. ``watch`` is called before each step of the solver
    with the share of the work that is done.
    """
    watched = Dual(prior, features, features.mean(levels), watch)
    _refuse_unreachable_levels(watched, levels, describe)
    chosen = solver or default_solver(watched)
    # what is kept knows nobody who watched
    dual = replace(watched, watch=unwatched)
    optimum = Optimum(dual, chosen.solve(watched))
    # on the boundary, some row has all but lost its weight
    if isinstance(prior, Rows) and (
        optimum.solution.status is not Status.CONVERGED
        or np.ptp(prior.scores(optimum.potentials)) > _VANISHED
    ):
        used = _rows_in_use(prior, features, levels, describe)
        dual = Dual(used, features, dual.target)
        optimum = Optimum(dual, chosen.solve(dual))
    if optimum.solution.status is not Status.CONVERGED:
        raise _failure(optimum, describe)
    return optimum


def factors_on_face(dual: BoundedDual) -> Reals:
    """The closest factors where all that meet the conditions have some at a bound.

    These are fixed there, and the others are searched for.
    """
    at_low, at_high = face(dual.conditions)
    factors = np.zeros(len(dual.masses))
    factors[at_high] = dual.bounds.high
    factors[at_low] = dual.bounds.low
    free = ~(at_low | at_high)
    if free.any():
        fixed = dual.rows.level_sums(dual.masses * factors)
        rest = dual.only(free, np.maximum(dual.wanted - fixed, 0.0))
        factors[free] = DampedNewton().solve(rest).point.factors
    achieved = dual.rows.level_sums(dual.masses * factors)
    missed = float(np.abs(achieved - dual.wanted).max())
    if missed > REACHED:  # never say that conditions are met if they are not
        raise SolverError(
            f"the search stopped {missed:.3g} away from a wanted share, although"
            " weights that meet all of them exist; please report this with the data"
            " that led to it"
        )
    return factors


def _refuse_unreachable_levels(dual: Dual, levels: Reals, describe: Describe) -> None:
    """Name at once a level that must have mass and has none in the prior."""
    reachable = dual.start.tilted.levels > 0
    missing = np.flatnonzero((levels > 0) & ~reachable & dual.features.prescribed())
    if len(missing):
        raise InfeasibleError(
            f"the target asks for {describe(int(missing[0]))} with probability"
            f" {levels[missing[0]]:.3g}, but no possible row has it. Change the target"
            " or the forbidden combinations, or let a base reach it with ",
            BASE_SHARE,
            " > 0.",
        )


def _rows_in_use(
    prior: Rows,
    features: Features,
    levels: Reals,
    describe: Describe,
) -> Rows:
    """Keep the rows that some weighting with the wanted averages uses.

    They are those of the minimal face of the target.
    """
    rows = len(prior.codes)
    conditions = Conditions(
        averages=features.over_levels() @ prior.incidence(),
        wanted=features.mean(levels),
        least=np.zeros(rows),
        most=np.full(rows, np.inf),
    )
    unused, _ = face(conditions)
    if not unused.all():
        return prior.only(~unused)

    short = smallest_miss(conditions).short
    worst = int(np.argmax(np.abs(short)))
    raise InfeasibleError(
        "no weighting of the rows meets all targets at once; the nearest one misses "
        f"{describe(features.level_of(worst))} by {abs(short[worst]):.3g}. Use ",
        BASE_SHARE,
        " > 0, which adds rows that are not in the data, or change the target.",
    )


def _failure(optimum: Optimum, describe: Describe) -> SolverError | InfeasibleError:
    solution = optimum.solution
    gradient = optimum.dual.at(solution.multipliers).gradient
    worst = int(np.argmax(np.abs(gradient)))
    level = describe(optimum.dual.features.level_of(worst))
    if solution.status is Status.UNBOUNDED:
        return InfeasibleError(
            f"the targets cannot all be met: {level} stays {abs(gradient[worst]):.3g}"
            " away from its target. Change that target or the forbidden combinations."
        )
    return SolverError(
        f"{solution.method} {solution.status.value} after {solution.iterations}"
        f" iterations; {level} is still {abs(gradient[worst]):.3g} away from its"
        " target. The targets may contradict each other: relax one, or pass another"
        " solver."
    )
