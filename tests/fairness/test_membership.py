"""Chance comes from one place: the same for the same data, and other for others."""

import numpy as np
import pytest

from fairmaxent.fairness.likely import Membership
from fairmaxent.fairness.people import People


def membership(seed, names=0, order=None, told_by="names"):
    """1,000 people of two groups, with p of their own, or of so many names."""
    rng = np.random.default_rng(seed)
    chance = rng.random(1000)
    if names:
        chance = np.linspace(0.1, 0.9, names)[rng.integers(0, names, 1000)]
    paid = (rng.random(1000) < np.where(rng.random(1000) < chance, 0.4, 0.6)).astype(
        int
    )
    if order is not None:
        chance = chance[order]
        paid = paid[order]
    shares = np.column_stack([chance, 1 - chance])
    ones = np.ones(1000)
    return Membership.of(People.of(shares, paid, (1, 2), ones, ones), told_by)


def drawn(found):
    """How far the first cell is from its mean, of these people and of others."""
    tables = found.true_tables(np.ones_like(found.people.weight))
    weight = found.table(found.people.weight)
    others = found.like_these(tables, weight, found.table(found.people.squares))
    return tables[:, 0, 0, 0], others[:, 0, 0, 0]


@pytest.mark.parametrize("names", [0, 12])
def test_other_data_of_as_many_people_have_other_random_numbers(names):
    pairs = zip(drawn(membership(1, names)), drawn(membership(2, names)), strict=True)
    for first, second in pairs:
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.2


@pytest.mark.parametrize("names", [0, 12])
def test_the_order_of_the_data_changes_nothing(names):
    order = np.random.default_rng(3).permutation(1000)
    again = drawn(membership(1, names, order))
    for first, second in zip(drawn(membership(1, names)), again, strict=True):
        assert second == pytest.approx(first, rel=1e-9)


def test_people_like_these_vary_more_than_these_people():
    these, others = drawn(membership(1))
    assert others.mean() == pytest.approx(these.mean(), rel=0.05)
    assert others.std() > 1.2 * these.std()


def test_certain_groups_leave_nothing_to_chance_but_who_is_there():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    ones = np.ones(400)
    people = People.of(np.eye(2)[group], rng.integers(0, 2, 400), (1, 2), ones, ones)
    known = Membership.of(people)
    tables = known.true_tables(np.ones_like(people.weight))
    assert tables == pytest.approx(np.broadcast_to(tables[0], tables.shape))
    weight = known.table(people.weight)
    others = known.like_these(tables, weight, known.table(people.squares))
    # Gamma(k + 1/2) of k people
    assert others.mean(axis=0) == pytest.approx(weight + 0.5, rel=0.05)
    assert others.var(axis=0) == pytest.approx(weight + 0.5, rel=0.25)
