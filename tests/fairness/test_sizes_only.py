"""Only the sizes of groups are asked for: P(outcome | group) is left as it is."""

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from tables import seeds

CLOSE = 1e-9


def random_people(seed):
    """A table with three groups, two regions, and an outcome of three levels."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(80, 200))
    sex = rng.choice(["f", "m", "x"], rows, p=[0.3, 0.5, 0.2])
    chance = {"f": 0.3, "m": 0.6, "x": 0.45}
    draws = rng.random(rows)
    hired = np.where(draws < [chance[one] for one in sex], "yes", "no")
    hired = np.where(draws > 0.95, "later", hired)
    region = rng.choice(["north", "south"], rows, p=[0.4, 0.6])
    return pd.DataFrame({"sex": sex, "region": region, "hired": hired})


def random_wish(seed):
    """Sizes asked for in one of the ways that there are."""
    rng = np.random.default_rng([seed, 1])
    women = float(rng.uniform(0.2, 0.6))
    shares = {"f": women, "m": 0.9 - women, "x": 0.1}
    rate = float(rng.uniform(0.5, 1.0))
    return [
        {"protected": "sex", "representation_rate": 1.0},
        {"protected": "sex", "representation_rate": rate},
        {"protected": "sex", "target": {"sex": shares}},
        {"protected": ["sex", "region"], "representation_rate": rate},
        {
            "protected": ["sex", "region"],
            "representation_rate": 1.0,
            "groups": "joint",
        },
        {"protected": "sex", "representation_rate": 1.0, "within": "region"},
        {
            "protected": ["sex", "region"],
            "representation_rate": {"sex": rate, "region": None},
            "statistical_rate": {"sex": None},
        },
        {"protected": "sex", "target": {"sex": shares}, "within": "region"},
    ][seed % 8]


def rates_by(groups, hired, weights):
    """P(outcome | group), by pandas alone."""
    mass = pd.DataFrame({"group": groups, "hired": hired, "mass": weights})
    table = mass.pivot_table("mass", "group", "hired", aggfunc="sum", fill_value=0.0)
    return table.div(table.sum(axis=1), axis=0)


@pytest.mark.more
@pytest.mark.parametrize("part", seeds(2, 8))
def test_each_group_keeps_its_own_outcomes(part):
    for seed in range(25 * part, 25 * (part + 1)):
        people = random_people(seed)
        wish = {"statistical_rate": None, **random_wish(seed)}
        fit = fairmaxent.debias(people, "hired", **wish, base_share=0, random_state=0)
        weights = fit.weights()
        # the finest groups: those of one column may be made up of others than before
        groups = people["sex"] + " " + people["region"]
        if wish["protected"] == "sex" and "within" not in wish:
            groups = people["sex"]
        before = rates_by(groups, people["hired"], np.ones(len(people)))
        after = rates_by(groups, people["hired"], np.asarray(weights))
        assert np.abs(before - after).to_numpy().max() < CLOSE, (seed, wish)
        sizes = pd.Series(np.asarray(weights)).groupby(people["sex"]).sum()
        old_sizes = people["sex"].value_counts().reindex(sizes.index)
        assert np.abs(sizes - old_sizes).max() > 1e-3, "nothing was asked for"


def uneven():
    """Rates of .2 and .5 in groups of 40 and 160."""
    return pd.DataFrame(
        {
            "sex": ["f"] * 40 + ["m"] * 160,
            "hired": ["yes"] * 8 + ["no"] * 32 + ["yes"] * 80 + ["no"] * 80,
        }
    )


def test_the_certificate_says_how_the_outcome_moved():
    fit = fairmaxent.debias(
        uneven(),
        "hired",
        "sex",
        representation_rate=1.0,
        statistical_rate=None,
        favourable="yes",
        random_state=0,
    )
    shares = {share.outcome: share for share in fit.certificate.outcome_shares}
    assert shares["hired = yes"].before == pytest.approx(0.44)
    assert shares["hired = yes"].after == pytest.approx(0.35)
    assert "44.0%" in str(fit.certificate)
    words = " ".join(fit.request.words())
    assert "each keeps its own outcomes" in words
    assert "keeps the shares that it has" not in words


def test_a_share_of_the_outcome_that_is_asked_for_is_kept():
    fit = fairmaxent.debias(
        uneven(),
        "hired",
        "sex",
        representation_rate=1.0,
        statistical_rate=None,
        target={"hired": None},
        random_state=0,
    )
    hired = fit.distribution.marginal("hired")
    assert hired["probability"].tolist() == pytest.approx([0.56, 0.44])


def test_with_the_default_rate_both_promises_are_kept():
    fit = fairmaxent.debias(
        uneven(),
        "hired",
        "sex",
        representation_rate=1.0,
        random_state=0,
    )
    hired = fit.distribution.marginal("hired")
    assert hired["probability"].tolist() == pytest.approx([0.56, 0.44])
    assert fit.certificate.achieved["statistical_rate"]["sex"] == pytest.approx(1)


@pytest.mark.parametrize("column", ["hired", "sex"])
@pytest.mark.parametrize("seed", range(3))
def test_who_is_not_compared_keeps_their_size(seed, column):
    """Groups that are set apart, and people whose outcome or group is unknown."""
    rng = np.random.default_rng(seed)
    sex = np.repeat(["f", "m", "x"], [110, 150, 40])
    hired = rng.choice(["yes", "no"], 300)
    people = pd.DataFrame({"sex": sex, "hired": hired})
    unknown = rng.random(300) < 0.1
    people.loc[unknown, column] = None
    fit = fairmaxent.debias(
        people,
        "hired",
        "sex",
        representation_rate=0.95,
        statistical_rate=None,
        smallest_group="25%",
        estimate=None,
    )
    weights = fit.weights()
    assert {group.name for group in fit.certificate.set_apart} == {"sex = x"}
    small = (people["sex"] == "x").to_numpy()
    for kept in (small & ~unknown, unknown):
        assert weights[kept].sum() == pytest.approx(kept.sum(), abs=CLOSE)
    sizes = [weights[people["sex"] == one].sum() for one in "fm"]
    assert min(sizes) / max(sizes) == pytest.approx(0.95, abs=CLOSE)
