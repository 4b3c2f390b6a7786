"""Algorithm 1 of the paper: τ is the representation rate of its table."""

import numpy as np

from fairmaxent.fairness.fair_table import algorithm_1
from fairmaxent.fairness.rates import group_shares
from handrates import statistical_rate


def test_algorithm_1_gives_the_first_group_tau_times_the_share_of_the_second():
    table = algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5)
    np.testing.assert_allclose(group_shares(table, (1,)), [1 / 3, 2 / 3])
    assert np.isclose(statistical_rate(table, (1,), [0, 1]), 1.0)
