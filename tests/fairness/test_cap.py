"""A limit on weights against a general convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from fairmaxent.fairness.cap import capped
from oracle import closest


def closest_under(table, data, limit, kept):
    """KL(t'‖t) is least under the limit and with the data's marginals."""
    t = cp.Variable(table.shape)
    conditions = [t <= limit]
    for axes in kept:
        others = tuple(axis for axis in range(table.ndim) if axis not in axes)
        conditions.append(
            cp.sum(t, axis=others[0] if others else None) == data.sum(axis=others)
            if axes
            else cp.sum(t) == 1
        )
    return closest(t, table, conditions)


@pytest.mark.parametrize("kept", [[()], [(0,)], [(0,), (1,)]])
@pytest.mark.parametrize("largest", [1.05, 1.5, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_closest_table_under_a_limit(seed, largest, kept):
    rng = np.random.default_rng(seed)
    data, table = (rng.dirichlet(np.full(12, 0.7)).reshape(3, 4) for _ in range(2))
    result = capped(table, data, largest * data, kept)
    assert (result <= largest * data * (1 + 1e-12)).all()
    np.testing.assert_allclose(
        result, closest_under(table, data, largest * data, kept), atol=2e-6
    )


def test_a_table_within_the_limit_stays_and_filled_cells_have_none():
    data = np.array([[0.5, 0.3], [0.2, 0.0]])
    fair = np.array([[0.4, 0.3], [0.2, 0.1]])
    assert capped(fair, data, np.where(data > 0, 1.01 * data, np.inf), [()]) is fair
    limited = capped(
        np.array([[0.1, 0.1], [0.7, 0.1]]),
        data,
        np.where(data > 0, 1.5 * data, np.inf),
        [()],
    )
    assert limited[1, 0] == pytest.approx(0.3)
    assert limited.sum() == pytest.approx(1.0)
    assert limited[1, 1] > 0.1
