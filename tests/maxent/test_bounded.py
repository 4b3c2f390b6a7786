"""Bounded factors against cvxpy and finite differences; misses, conflicts and faces
against proofs and programs of their own.
"""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from fairmaxent.data.table import Blocks
from fairmaxent.errors import SolverError
from fairmaxent.maxent import optimum
from fairmaxent.maxent.bounded import BoundedDual, Bounds
from fairmaxent.maxent.optimum import factors_on_face
from fairmaxent.maxent.reach import REACHED, conflicting, face, smallest_miss
from fairmaxent.maxent.search import Status
from fairmaxent.maxent.solvers import DampedNewton


def factors_at_bounds(rng, masses, bounds):
    """Factors that keep the total, all but one of them at a bound."""
    factors = np.full(len(masses), bounds.low)
    left = 1 - bounds.low
    for row in rng.permutation(len(masses)):
        more = min(left, masses[row] * (bounds.high - bounds.low))
        factors[row] += more / masses[row]
        left -= more
    return factors


def random_dual(seed, *, ease=0.05, reachable=True):
    """Rows of a few blocks, which are to have the shares that some factors give; with
    no ease, all but one of these are at a bound.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, size=int(rng.integers(1, 4)))
    rows = int(rng.integers(6, 30))
    codes = np.column_stack([rng.integers(0, size, rows) for size in sizes])
    masses = rng.dirichlet(np.full(rows, 2.0))
    bounds = Bounds(float(rng.uniform(0, 0.8)), float(rng.uniform(1.3, 4)))
    blocks = Blocks.rooted(sizes.tolist(), (0,))
    dual = BoundedDual(blocks, np.asfortranarray(codes), masses, np.zeros(0), bounds)
    factors = ease + (1 - ease) * factors_at_bounds(rng, masses, bounds)
    wanted = dual.rows.level_sums(masses * factors)
    if not reachable:
        for part in blocks.slices:
            other = rng.dirichlet(np.ones(part.stop - part.start))
            wanted[part] = (wanted[part] + 2 * other) / 3
    return replace(dual, wanted=wanted)


def indicators(dual):
    """Which level each row has in each block: (levels, rows)."""
    columns = zip(dual.codes.T, dual.blocks.levels, strict=True)
    return np.hstack([np.eye(size)[column] for column, size in columns]).T


def by_cvxpy(dual):
    """The factors of least divergence, from the divergence itself."""
    weights = cp.Variable(len(dual.masses))
    needed = np.ones(dual.size, dtype=bool)
    for part in dual.blocks.slices[1:]:
        needed[part.stop - 1] = False  # follows from the others
    limits = [
        indicators(dual)[needed] @ weights == dual.wanted[needed],
        weights >= dual.bounds.low * dual.masses,
        weights <= dual.bounds.high * dual.masses,
    ]
    divergence = cp.sum(cp.kl_div(weights, dual.masses))
    exact = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
    cp.Problem(cp.Minimize(divergence), limits).solve(solver=cp.CLARABEL, **exact)
    return weights.value / dual.masses


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("dense", [2_000, 0])
def test_the_factors_are_those_of_cvxpy(dense):
    at_a_bound = 0
    for seed in range(6):
        dual = random_dual(seed)
        found = DampedNewton(dense=dense).solve(dual)
        assert found.status is Status.CONVERGED
        factors = found.point.factors
        np.testing.assert_allclose(factors, by_cvxpy(dual), atol=1e-5)
        at_a_bound += np.isin(factors, (dual.bounds.low, dual.bounds.high)).sum()
    assert at_a_bound


@pytest.mark.parametrize("misses", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_derivatives_equal_finite_differences(seed, misses):
    rng = np.random.default_rng(seed)
    dual = random_dual(seed)
    if misses:
        dual = replace(dual, slack=rng.uniform(0, 1, dual.size))
    # far enough for some rows to be at a bound, and not for all
    point = next(
        point
        for spread in np.geomspace(0.1, 10, 50)
        for point in [dual.at(spread * rng.normal(size=dual.size))]
        if 0 < np.count_nonzero(point.curvature) < len(point.factors)
    )
    hessian = point.hessian()
    step = 1e-6
    for level, unit in enumerate(np.eye(dual.size)):
        ahead = dual.at(point.multipliers + step * unit)
        behind = dual.at(point.multipliers - step * unit)
        slope = (ahead.value - behind.value) / (2 * step)
        assert slope == pytest.approx(point.gradient[level], abs=1e-8)
        bend = (ahead.gradient - behind.gradient) / (2 * step)
        np.testing.assert_allclose(hessian[:, level], bend, atol=1e-8)
        np.testing.assert_allclose(point.times_hessian(unit), bend, atol=1e-8)


def test_a_search_without_a_solution_stops_at_the_floor():
    stopped = 0
    for seed in range(10):
        dual = random_dual(seed, reachable=False)
        miss = smallest_miss(dual.conditions)
        found = DampedNewton().solve(dual)
        assert (found.point.residual <= REACHED) == miss.is_zero
        assert (found.point.value < dual.floor) == (found.status is Status.UNBOUNDED)
        stopped += found.status is Status.UNBOUNDED
    assert stopped


def test_the_prices_of_a_miss_prove_it():
    """Farkas: weights w within their bounds have ⟨p, b − Σφw⟩ ≥ total. The most that
    ⟨p, Σφw⟩ can be is found by filling up the rows that are worth most.
    """
    for seed in range(8):
        dual = random_dual(seed, reachable=False)
        conditions = dual.conditions
        miss = smallest_miss(conditions)
        if miss.total == np.inf:
            continue
        averages = conditions.averages.toarray()
        np.testing.assert_array_equal(averages, indicators(dual))
        assert np.abs(miss.short).sum() == pytest.approx(miss.total, abs=1e-9)
        assert miss.prices @ miss.short == pytest.approx(miss.total, abs=1e-9)
        assert np.abs(miss.prices).max() <= 1 + 1e-9
        worth = miss.prices @ averages
        weights = conditions.least.copy()
        for row in np.argsort(-worth):
            room = conditions.most[row] - weights[row]
            weights[row] += min(room, 1 - weights.sum())
        gap = miss.prices @ (conditions.wanted - averages @ weights)
        assert gap == pytest.approx(miss.total, abs=1e-9)


def test_any_of_the_conditions_in_conflict_could_be_left_out():
    sizes = set()
    for seed in range(10):
        conditions = random_dual(seed, reachable=False).conditions
        miss = smallest_miss(conditions)
        if miss.is_zero or miss.total == np.inf:
            continue
        chosen = conflicting(conditions)
        assert not smallest_miss(conditions.only(chosen)).is_zero
        for one in chosen:
            rest = tuple(other for other in chosen if other != one)
            assert smallest_miss(conditions.only(rest)).is_zero
        sizes.add(len(chosen))
    assert len(sizes) > 1


def extremes(conditions, row):
    """The least and the most that a row can weigh in any solution."""
    rows = len(conditions.least)
    equations = np.vstack([conditions.averages.toarray(), np.ones(rows)])
    ends = []
    for sign in (1, -1):
        program = linprog(
            sign * np.eye(rows)[row],
            A_eq=equations,
            b_eq=np.append(conditions.wanted, 1.0),
            bounds=np.column_stack([conditions.least, conditions.most]),
        )
        ends.append(sign * program.fun)
    return ends


@pytest.mark.parametrize("high", [True, False])
def test_rows_off_the_face_have_no_choice(high):
    fixed = 0
    for seed in range(2):
        dual = random_dual(seed, ease=0)
        if not high:
            # a level that is not wanted leaves its rows no weight
            last = dual.blocks.slices[-1].stop - 1
            kept = (dual.codes[:, -1] < dual.codes[:, -1].max()).astype(float)
            wanted = dual.rows.level_sums(dual.masses * kept)
            wanted = wanted / wanted[dual.blocks.slices[0]].sum()
            assert wanted[last] < 1
            dual = replace(dual, wanted=wanted, bounds=Bounds())
        conditions = dual.conditions
        at_least, at_most = face(conditions)
        for row in range(len(at_least)):
            low, most = extremes(conditions, row)
            assert at_least[row] == (most < conditions.least[row] + 1e-7)
            assert at_most[row] == (low > conditions.most[row] - 1e-7)
        fixed += at_least.sum() + at_most.sum()
        factors = factors_on_face(dual)
        achieved = dual.rows.level_sums(dual.masses * factors)
        np.testing.assert_allclose(achieved, dual.wanted, atol=REACHED)
        found = DampedNewton().solve(dual).point
        np.testing.assert_allclose(factors, found.factors, atol=1e-5)
    assert fixed


def test_shares_that_are_not_met_are_never_said_to_be(monkeypatch):
    dual = random_dual(1)

    def nothing_free(conditions):
        all_rows = np.ones(len(conditions.least), dtype=bool)
        return all_rows, ~all_rows

    monkeypatch.setattr(optimum, "face", nothing_free)
    with pytest.raises(SolverError, match="away from a wanted share"):
        factors_on_face(dual)
