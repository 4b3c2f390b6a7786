"""Maximum entropy: the p closest to a prior among all with the wanted averages."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import BASE_SHARE, InfeasibleError, SolverError
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import Features
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.solvers import (
    Newton,
    NewtonCG,
    Solution,
    Solver,
    Status,
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

    They are the minimal face of the target. One linear program finds a weighting of
    largest support: scale it up freely (κ), and count each row's weight only up to 1;
    the sum of what is counted is largest when every row that can be used is.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    values = _row_features(prior, features)
    averages = csr_array(np.vstack([values.T, np.ones(len(values))]))
    wanted = csr_array(np.append(features.mean(levels), 1.0)[:, None])
    rows = len(prior.codes)
    program = linprog(
        np.concatenate([-np.ones(rows), np.zeros(rows + 1)]),
        A_eq=hstack([averages, averages, -wanted], format="csr"),
        b_eq=np.zeros(averages.shape[0]),
        bounds=[(0, 1)] * rows + [(0, None)] * (rows + 1),
        method="highs",
    )
    if program.status == 0:
        used: Mask = program.x[:rows] > 0.5
        if used.any():
            return prior.only(used)
    raise _infeasible_rows(values, features, levels, describe)


def _infeasible_rows(
    values: Reals,
    features: Features,
    levels: Reals,
    describe: Describe,
) -> InfeasibleError:
    """Find the smallest change of the target that rows can reach, and where it is."""
    from scipy.optimize import linprog

    rows, count = values.shape
    unit = np.eye(count)
    program = linprog(
        np.concatenate([np.zeros(rows), np.ones(2 * count)]),
        A_eq=np.block(
            [[values.T, unit, -unit], [np.ones((1, rows)), np.zeros((1, 2 * count))]]
        ),
        b_eq=np.append(features.mean(levels), 1.0),
        method="highs",
    )
    change = program.x[rows : rows + count] - program.x[rows + count :]
    worst = int(np.argmax(np.abs(change)))
    return InfeasibleError(
        "no weighting of the rows meets all targets at once; the nearest one misses "
        f"{describe(features.level_of(worst))} by {abs(change[worst]):.3g}. Use ",
        BASE_SHARE,
        " > 0, which adds rows that are not in the data, or change the target.",
    )


def _row_features(prior: Rows, features: Features) -> Reals:
    """φ of every distinct row."""
    matrix = np.zeros((features.blocks.width, features.count))
    feature_of_entry = np.repeat(np.arange(features.count), features.lengths)
    matrix[features.levels, feature_of_entry] = features.values
    values = np.zeros((len(prior.codes), features.count))
    for column, part in zip(prior.codes.T, features.blocks.slices, strict=True):
        values += matrix[part][column]
    return values


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
