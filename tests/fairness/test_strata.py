"""Fair tables within strata: each stratum keeps its size and its outcomes' shares."""

import numpy as np

from fairmaxent.fairness.strata import Stratified
from fairmaxent.fairness.wishes import Wanted

# outcome × group × stratum; the second stratum has three quarters of the people
TABLE = np.array([[[10, 5], [2, 20]], [[5, 10], [8, 40]]]) / 100


def closest(statistical):
    wanted = Wanted(
        groupings=((1,),),
        representation=(None,),
        statistical=(statistical,),
        favourable=(1,),
        describe=str,
    )
    stratified = Stratified(
        empirical=TABLE,
        data=TABLE,
        strata=1,
        compared=np.array([True, True]),
        wanted=wanted,
        targets={},
        outcome_is_free=False,
        describe_stratum=str,
    )
    return stratified.closest().table


def test_at_a_rate_of_one_outcome_and_group_are_independent_in_each_stratum():
    sizes = TABLE.sum(axis=(0, 1))
    outcomes = TABLE.sum(axis=1) / sizes
    groups = TABLE.sum(axis=0) / sizes
    expected = outcomes[:, np.newaxis] * groups * sizes
    np.testing.assert_allclose(closest(1.0), expected, rtol=1e-12)


def test_below_a_rate_of_one_strata_keep_their_sizes_and_reach_the_rate():
    table = closest(0.9)
    np.testing.assert_allclose(table.sum(axis=1), TABLE.sum(axis=1), rtol=1e-9)
    rates = table[1] / table.sum(axis=0)
    assert (rates.min(axis=0) / rates.max(axis=0) >= 0.9 - 1e-9).all()
