"""Projection: the closest distribution to a prior, in KL, under linear conditions.

The conditions are those of a fair table.

**Program.** Let e > 0 be the prior's mass in each cell, A the `rows` with b the
`values`, and R the `rates`, which are split into blocks with one free bound m each (m_k
is the bound of the block of rate k). With r = R·t for the rates,

    minimise    Σ t·log(t/e) − t + e    over t > 0, r and m
    subject to  A·t = b,   R·t = r,   m_k ≤ r_k ≤ m_k / σ_k   for every rate k.

In a block the smallest rate is therefore at least σ times the largest. The rows fix the
total mass, so this is KL(t‖e).

**Dual.** With multipliers λ = (λ_A, λ_R) and B the rows of A above those of R, the
answer has the form of a tilt, t = e·exp(Bᵀλ), and λ solves

    maximise    bᵀλ_A − Σ e·(exp(Bᵀλ) − 1)
    subject to  Σ max(λ_k, 0) + min(λ_k, 0) / σ_k ≥ 0   over the rates k of each block.

t is always computed from λ by that formula, so it is positive whatever rounding does.

**Newton's system.** A primal–dual interior-point method gives the slacks s¹ = r − m and
s² = m − σr the multipliers u and v, and follows the solutions of

    A·t = b,   R·t = r,   λ_R = u − σv,   Σ u − v = 0 per block,   u·s¹ = v·s² = μ

as μ → 0. For each rate let U = u/s¹, V = v/s², D = U + σ²V, c = (U + σV)/D and p = μ/s¹
− σμ/s² − λ_R. The changes of r, u and v can be eliminated, with Δr = (p − Δλ_R)/D +
c·Δm. What is left is

    (B diag(t) Bᵀ + diag(0, 1/D)) Δλ − C Δm = (b − A·t,  r − R·t + p/D)
                              Cᵀ Δλ + K Δm = Σ c·p − μ/s¹ + μ/s²   per block,

where C has the entries c in the rows of λ_R, one column per block, and K is diagonal
with Σ (1 − σ)²·U·V/D per block. It has one unknown per condition, not per cell. At σ =
1 the two limits are one, r = m: then 1/D and K are 0 and c is 1.

**Ceilings.** Where cells have a ceiling, t ≤ l, the answer is t = e·exp(Bᵀλ − w) with
w ≥ 0, and its slacks s = 1 − t/l are relative, so that w·s = μ asks as much of small
cells as of large ones. With W = w/s, θ = 1/(1 + W·t/l) and f the error of s, a step has
Δt = θ·t·(BᵀΔλ + q) with q = w − μ/s + W·f: in the system above t becomes θ·t, and
B·(θ·t·q) is taken from the right side. Without a ceiling w = 0, θ = 1 and q = 0.

References: I. Csiszár (1975), I-divergence geometry of probability distributions and
minimization problems, Annals of Probability 3; S. Boyd and L. Vandenberghe (2004),
Convex Optimization, section 11.7.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.table import Indices, Mask, Reals
from fairmaxent.errors import SolverError

# Every cell with rows must be able to keep this share of its mass: 10⁴ times the
# tolerance of the linear program that decides it, so that a "yes" is never a rounding
# error.
LEAST_ROOM = 1e-6
# what a cell must be able to keep to count as one that can have mass
_SHARE_OF_FLOOR = 1e-3
_TOLERANCE = 1e-13
_GAP = 1e-16
# Degenerate conditions can keep the residual a little above the tolerance; up to here
# the answer is accepted.
_ACCEPTED = 1e-10
# With ceilings, smaller slacks mean larger errors of rounding, and the best rate is
# only as exact as a linear program's.
_GAP_OF_CEILINGS = 1e-11
_ACCEPTED_OF_CEILINGS = 1e-9
_MOST_ITERATIONS = 200
_START = 1e-2  # μ of the first iterate
# Redundant conditions make the system singular; multipliers along them do not change t,
# so any will do.
_REGULARISATION = 1e-12
# Above this many conditions (intersections of many levels) the system is mostly zeros.
_DENSE_CONDITIONS = 200
_TOO_DIFFERENT = (
    "the groups of the fair table differ too much in size to solve for it; merge the"
    " smallest groups"
)


@dataclass(frozen=True, eq=False)
class Conditions:
    """Linear conditions on a vector t of cells.

    rows·t = values > 0, and m[block] <= rates·t <= m[block] / σ.
    """

    rows: Reals  # A: one row per equality
    values: Reals  # b
    rates: Reals  # R: one row per rate
    # the block of each rate: rates of one block are compared with each other
    block: Indices
    least: Reals  # σ of each rate
    ceiling: Reals | None = None  # l: the most that a cell may have; None: no limit

    def on(self, cells: Mask) -> "Conditions":
        """Return the same conditions for a vector that is zero outside of `cells`."""
        ceiling = self.ceiling
        if ceiling is not None:
            ceiling = ceiling[cells]
        return replace(
            self,
            rows=self.rows[:, cells],
            rates=self.rates[:, cells],
            ceiling=ceiling,
        )

    @property
    def steepness(self) -> Reals:
        """1/l of each cell; 0 without a ceiling."""
        if self.ceiling is None:
            return np.zeros(self.rows.shape[1])
        return 1 / self.ceiling

    def settled(self) -> "Conditions":
        """The same without blocks that have no cells left: all their rates are zero."""
        alive = np.bincount(self.block, np.abs(self.rates).sum(axis=1)) > 0
        kept = alive[self.block]
        block = (np.cumsum(alive) - 1)[self.block[kept]]
        return replace(
            self,
            rates=self.rates[kept],
            block=block,
            least=self.least[kept],
        )


@dataclass(frozen=True, eq=False)
class Projection:
    """The closest point, the iterations, and the largest relative error left."""

    point: Reals
    iterations: int
    residual: float


@dataclass(frozen=True, eq=False)
class _State:
    """An iterate, or a step from one to the next."""

    multipliers: Reals  # λ: of the rows, then of the rates
    rates: Reals  # r
    bounds: Reals  # m, one per block
    slacks: Reals  # (r − m, m − σr)
    slack_multipliers: Reals  # (u, v)
    cell_slacks: Reals  # s = 1 − t/l
    cell_multipliers: Reals  # w

    def moved(self, step: "_State", length: float) -> "_State":
        changed = zip(vars(self).values(), vars(step).values(), strict=True)
        return _State(*(value + length * change for value, change in changed))


def project(prior: Reals, conditions: Conditions) -> Projection:
    """Return the t of smallest KL(t‖prior) that meets the conditions.

    Some positive t must meet them.

    >>> none = np.zeros((0, 2))
    >>> no_block = np.zeros(0, dtype=np.intp)
    >>> half = Conditions(np.eye(2), np.array([0.5, 0.5]), none, no_block, np.zeros(0))
    >>> project(np.array([0.9, 0.1]), half).point.round(4)
    array([0.5, 0.5])
    """
    equalities = replace(
        conditions,
        rates=conditions.rates[:0],
        block=conditions.block[:0],
        least=conditions.least[:0],
    )
    start = np.zeros(len(conditions.rows))
    first, multipliers = _interior_point(prior, equalities, start)
    # Rates that hold already cost nothing: a fair table stays exactly as it is, to the
    # last bit.
    if _rates_hold(conditions, first.point):
        return first
    second, _ = _interior_point(prior, relative(conditions, first.point), multipliers)
    return replace(second, iterations=first.iterations + second.iterations)


def room(conditions: Conditions, floor: Reals) -> float:
    """Return the largest share x <= 1 such that some t >= x·floor meets the conditions.

    0 if there is none.
    """
    no_cost = np.zeros(len(floor))
    answer = _linear_program(
        conditions,
        floor,
        cost=no_cost,
        least_room=0.0,
    )
    if answer is None:
        return 0.0
    return float(answer[-1])


def fewest_cells(conditions: Conditions, floor: Reals, costly: Mask) -> Mask | None:
    """Return the cells of a t with as little mass as possible on the costly cells.

    It meets the conditions. The other cells keep half of the share that they can keep;
    None if they can keep none.
    """
    half = room(conditions, floor) / 2
    if half <= LEAST_ROOM:
        return None
    cost = costly.astype(float)
    answer = _linear_program(
        conditions,
        floor,
        cost=cost,
        least_room=half,
    )
    if answer is None:
        return None
    return (answer[: len(floor)] > 1e-9) | ~costly


def most_cells(conditions: Conditions, floor: Reals) -> Mask:
    """Return the cells that can have mass in a t that meets the conditions.

    None if nothing meets them.
    """
    widest = np.zeros(len(floor), dtype=bool)
    # Each linear program gives mass to as many more cells as it can; the mean of its
    # answers has mass in all of them.
    while not widest.all():
        answer = _capped_program(conditions, floor, ~widest)
        if answer is None or not (answer & ~widest).any():
            break
        widest |= answer
    return widest


def _capped_program(conditions: Conditions, floor: Reals, wanted: Mask) -> Mask | None:
    """Maximise Σ u over the wanted cells; return where u is above 0.

    For u <= 1 and t >= u·floor·`_SHARE_OF_FLOOR`.
    """
    cells = len(floor)
    blocks = block_count(conditions)
    member = np.eye(blocks)[conditions.block]
    # The unknowns are t / floor, the bounds m, and u: scaled, so that small cells count
    # as much as large ones.
    scaled = conditions.rates * floor
    rows = conditions.rows * floor
    free = np.zeros((len(scaled), cells))
    below = np.hstack([-scaled, member, free])
    above = np.hstack([conditions.least[:, None] * scaled, -member, free])
    each = np.eye(cells)
    capped = np.hstack([-each, np.zeros((cells, blocks)), _SHARE_OF_FLOOR * each])
    cost = np.concatenate([np.zeros(cells + blocks), -wanted.astype(float)])
    equal = np.hstack([rows, np.zeros((len(rows), blocks + cells))])
    bounds: list[Any] = [(0.0, None)] * (cells + blocks)
    bounds += [(0.0, float(cell)) for cell in wanted]
    limits = np.vstack([below, above, capped])
    answer = minimum(cost, limits, equal, conditions.values, bounds)
    if answer is None:
        return None
    return (answer[:cells] > LEAST_ROOM) | (answer[cells + blocks :] > 0.5)


def _linear_program(
    conditions: Conditions,
    floor: Reals,
    *,
    cost: Reals,
    least_room: float,
) -> Reals | None:
    """Minimise cost·t − (room x) over t = x·floor + v, v >= 0.

    The unknowns are v, the bounds m, and x.
    """
    rows = conditions.rows
    blocks = block_count(conditions)
    member = np.eye(blocks)[conditions.block]
    scaled = conditions.least[:, None] * conditions.rates
    column = floor[:, None]
    below = np.hstack([-conditions.rates, member, -conditions.rates @ column])
    above = np.hstack([scaled, -member, scaled @ column])
    equal = np.hstack([rows, np.zeros((len(rows), blocks)), rows @ column])
    gain = -1.0  # of a larger room
    most_room = 1.0
    if least_room > 0.0:  # then it is fixed
        gain = 0.0
        most_room = least_room
    costs = np.concatenate([cost, np.zeros(blocks), [gain]])
    bounds: list[Any] = [(0.0, None)] * (len(floor) + blocks)
    bounds.append((least_room, most_room))
    return minimum(costs, np.vstack([below, above]), equal, conditions.values, bounds)


def minimum(
    cost: Reals,
    below: Reals,
    equal: Reals,
    values: Reals,
    bounds: list[Any],
) -> Reals | None:
    """Minimise cost·x under below·x <= 0, equal·x = values and the bounds.

    None if nothing meets them.
    """
    # SciPy is slow to import, and only tables with empty cells need it.
    from scipy import optimize, sparse

    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = optimize.linprog(
        cost,
        A_ub=sparse.csr_array(below),
        b_ub=np.zeros(len(below)),
        A_eq=sparse.csr_array(equal),
        b_eq=values,
        bounds=bounds,
        options=tight,
    )
    if answer.status == 0:
        return answer.x
    return None


def _rates_hold(conditions: Conditions, point: Reals) -> bool:
    """Whether in each block the smallest rate is at least σ times every other."""
    rates = conditions.rates @ point
    lowest = np.full(block_count(conditions), np.inf)
    np.minimum.at(lowest, conditions.block, rates)
    return bool(
        (lowest[conditions.block] >= conditions.least * rates * (1 - _TOLERANCE)).all()
    )


def relative(conditions: Conditions, point: Reals) -> Conditions:
    """Divide each block of rates by its mean at a point.

    Errors and slacks are then relative.
    """
    block = conditions.block
    mean = np.bincount(block, conditions.rates @ point) / np.bincount(block)
    return replace(conditions, rates=conditions.rates / mean[block][:, None])


def block_count(conditions: Conditions) -> int:
    """How many blocks of rates are compared."""
    return int(conditions.block.max(initial=-1)) + 1


@np.errstate(
    over="ignore",
    divide="ignore",
    invalid="ignore",
)
def _interior_point(
    prior: Reals, conditions: Conditions, multipliers: Reals
) -> tuple[Projection, Reals]:
    """Iterate until conditions and complementarity hold.

    Starting from multipliers λ_A of the rows.
    """
    matrix: Any = np.vstack([conditions.rows, conditions.rates])
    if len(matrix) > _DENSE_CONDITIONS:
        from scipy.sparse import csr_array

        matrix = csr_array(matrix)
    point = prior * np.exp(conditions.rows.T @ multipliers)
    state = _start(conditions, multipliers, point)
    loose = conditions.least < 1
    steepness = conditions.steepness
    count = 2 * np.count_nonzero(loose) + np.count_nonzero(steepness)
    last = np.inf
    least_gap = _GAP
    accepted = _ACCEPTED
    least_centre = 0.0
    if conditions.ceiling is not None:
        least_gap = _GAP_OF_CEILINGS
        accepted = _ACCEPTED_OF_CEILINGS
        least_centre = 0.1 * least_gap
    for iteration in range(_MOST_ITERATIONS + 1):
        wanted = np.concatenate([conditions.values, state.rates])
        errors = wanted - matrix @ point
        residual = float(np.abs(errors / wanted).max(initial=0.0))
        beyond = 1 - point * steepness - state.cell_slacks
        residual = max(residual, float(np.abs(beyond).max(initial=0.0)))
        products = (state.slacks * state.slack_multipliers)[:, loose]
        of_cells = state.cell_slacks * state.cell_multipliers
        gap = float((products.sum() + of_cells.sum()) / max(count, 1))
        # Close to what rounding allows, more steps would lead away again.
        stalls = least_centre > 0 and last / 2 <= residual <= accepted
        done = gap <= least_gap and (residual <= _TOLERANCE or stalls)
        last = residual
        if done or iteration == _MOST_ITERATIONS or not np.isfinite(residual + gap):
            break
        centre = max(min(0.1 * gap, gap**1.5), least_centre)
        step = _newton_step(matrix, conditions, point, state, errors, centre)
        growth = matrix.T @ step.multipliers - step.cell_multipliers
        length = _step_length(state, step, growth)
        state = state.moved(step, length)
        exponent = matrix.T @ state.multipliers - state.cell_multipliers
        point = prior * np.exp(exponent)
    # Conditions that nearly contradict each other drive numbers beyond float64, which
    # ends here as well.
    if not (done or (residual <= accepted and gap <= accepted)):
        raise SolverError(
            f"no fair table was reached in {iteration} iterations (error"
            f" {residual:.1e}); the wanted shares and rates contradict each other, or"
            " nearly so (a share may be too close to 0): relax one of them"
        )
    return Projection(point, iteration, residual), state.multipliers


def _start(conditions: Conditions, multipliers: Reals, point: Reals) -> _State:
    """Start with all (scaled) rates at 1 and their bounds halfway.

    At σ = 1 rates are their bounds, and slacks mean nothing, and stay at 1.
    """
    steepness = conditions.steepness
    cell_slacks = np.maximum(1 - point * steepness, 0.1)
    least = conditions.least
    loose = least < 1
    bounds = np.ones(block_count(conditions))
    bounds[conditions.block[loose]] = (1 + least[loose]) / 2
    slack = np.where(loose, (1 - least) / 2, 1.0)
    slacks = np.stack([slack, slack])
    return _State(
        multipliers=np.concatenate([multipliers, np.zeros(len(least))]),
        rates=np.where(loose, 1.0, bounds[conditions.block]),
        bounds=bounds,
        slacks=slacks,
        slack_multipliers=_START / slacks,
        cell_slacks=cell_slacks,
        cell_multipliers=_START / cell_slacks * (steepness > 0),
    )


def _newton_step(
    matrix: Any,
    conditions: Conditions,
    point: Reals,
    state: _State,
    errors: Reals,
    centre: float,
) -> _State:
    """Solve Newton's system, see the head of this module.

    For complementarity products equal to `centre` (μ).
    """
    block = conditions.block
    least = conditions.least
    count = len(conditions.rows)
    stiffness = state.slack_multipliers / state.slacks
    lower, upper = stiffness  # U, V
    loose = least < 1
    pushed = centre / state.slacks  # μ/s¹, μ/s²
    diagonal = lower + least**2 * upper  # D
    compliance = np.where(loose, 1 / diagonal, 0.0)
    coupling = (lower + least * upper) / diagonal  # c
    pull = pushed[0] - least * pushed[1] - state.multipliers[count:]  # p
    border = np.zeros((len(errors), block_count(conditions)))  # C
    border[count + np.arange(len(block)), block] = coupling
    steepness = conditions.steepness
    hardness = state.cell_multipliers / state.cell_slacks  # W
    beyond = 1 - point * steepness - state.cell_slacks  # f
    pressed = centre / state.cell_slacks * (steepness > 0)  # μ/s
    drift = state.cell_multipliers - pressed + hardness * beyond  # q
    softened = point / (1 + hardness * point * steepness)  # θ·t
    right = np.concatenate([errors[:, None], border], axis=1)
    right[:, 0] -= matrix @ (softened * drift)
    right[count:, 0] += pull * compliance
    extra = np.concatenate([np.zeros(count), compliance])
    solved = _solve(matrix, softened, extra, right)
    curvature = np.bincount(block, (1 - least) ** 2 * lower * upper / diagonal)  # K
    balance = np.bincount(block, coupling * pull - pushed[0] + pushed[1])
    inner = border.T @ solved[:, 1:] + np.diag(curvature)
    bounds = _solve_bounds(inner, balance - border.T @ solved[:, 0])
    multipliers = solved[:, 0] + solved[:, 1:] @ bounds
    rates = (pull - multipliers[count:]) * compliance + coupling * bounds[block]
    slacks = np.array([rates - bounds[block], bounds[block] - least * rates]) * loose
    slack_multipliers = (pushed - state.slack_multipliers - stiffness * slacks) * loose
    moved = softened * (matrix.T @ multipliers + drift)  # Δt
    cell_slacks = beyond - moved * steepness
    cell_multipliers = pressed - state.cell_multipliers - hardness * cell_slacks
    return _State(
        multipliers,
        rates,
        bounds,
        slacks,
        slack_multipliers,
        cell_slacks,
        cell_multipliers,
    )


def _solve_bounds(inner: Reals, right: Reals) -> Reals:
    """Solve for the step of the bounds.

    If blocks repeat each other, for the shortest of those that do.
    """
    try:
        return np.asarray(np.linalg.solve(inner, right))
    except np.linalg.LinAlgError:
        if not np.isfinite(inner).all():
            return np.full(len(right), np.nan)
        return np.asarray(np.linalg.lstsq(inner, right, rcond=None)[0])


def _solve(
    matrix: Any,
    point: Reals,
    extra: Reals,
    right: Reals,
) -> Reals:
    """Solve (B diag(t) Bᵀ + diag(extra)) x = right for each column of `right`.

    By Cholesky, not LU: if conditions repeat each other, an unsymmetric error would
    build up.
    """
    system = (matrix * point) @ matrix.T
    shift = extra + _REGULARISATION * system.diagonal()
    # Groups and cells may differ by orders of magnitude: scale the diagonal to one.
    scale = 1 / np.sqrt(system.diagonal() + shift)
    right = right * scale[:, None]
    # Where numbers are beyond float64, some machines' Cholesky notices, and others'
    # only the solving. A sparse system may be exactly singular.
    try:
        if isinstance(system, np.ndarray):
            scaled = system * scale * scale[:, None] + np.diag(shift * scale**2)
            lower = np.linalg.cholesky(scaled)
            solved = np.linalg.solve(lower.T, np.linalg.solve(lower, right))
        else:
            solved = _solve_sparse(system, scale, shift, right)
    except (np.linalg.LinAlgError, RuntimeError) as problem:
        raise SolverError(_TOO_DIFFERENT) from problem
    return solved * scale[:, None]


def _solve_sparse(
    system: Any,
    scale: Reals,
    shift: Reals,
    right: Reals,
) -> Reals:
    """Solve by a sparse LU that keeps to the diagonal.

    The system is symmetric and positive definite.
    """
    from scipy.sparse import csc_array, diags_array, linalg

    scaled = diags_array(scale) @ system @ diags_array(scale)
    scaled = scaled + diags_array(shift * scale**2)
    factors = linalg.splu(
        csc_array(scaled),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factors.solve(right)


def _step_length(state: _State, step: _State, growth: Reals) -> float:
    """Keep slacks and their multipliers positive.

    No cell changes by more than a factor e³ at once.
    """
    length = min(1.0, 3.0 / max(np.abs(growth).max(initial=0.0), 1e-300))
    pairs = (
        (state.slacks, step.slacks),
        (state.slack_multipliers, step.slack_multipliers),
        (state.cell_slacks, step.cell_slacks),
        (state.cell_multipliers, step.cell_multipliers),
    )
    for value, change in pairs:
        shrink = float((-change / np.maximum(value, 1e-300)).max(initial=0.0))
        if shrink > 0.995:
            length = min(length, 0.995 / shrink)
    return length
