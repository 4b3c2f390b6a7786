"""People who were copied with small changes are found, and nobody else is."""

import numpy as np
import pandas as pd
import pytest

from fairmaxent import evaluate
from fairmaxent.evaluation.attacks import Risk, _nearly_found, near_copies
from fairmaxent.evaluation.pooled import pool

PEOPLE = 10_000
CONTROL = 5_000
NEAR = 30


def people(rng, count):
    """A table like a census; some hours are missing."""
    schooling = rng.binomial(15, 0.55, count)
    age = np.clip(rng.normal(38, 13, count), 17, 90).round()
    hours = np.clip(rng.normal(40, 12, count), 1, 99).round()
    return pd.DataFrame(
        {
            "age": age,
            "hours": np.where(rng.random(count) < 0.02, np.nan, hours),
            "schooling": schooling,
            "job": rng.choice(list("abcdefghijkl"), count),
            "sex": rng.choice(["f", "m"], count),
            "rent": rng.lognormal(6.5, 0.6, count).round(),
        }
    )


def stepped(real, rng, count):
    """So many people, a year older and an hour busier each."""
    chosen = real.dropna().sample(count, random_state=int(rng.integers(1 << 31)))
    return chosen.assign(age=chosen["age"] + 1, hours=chosen["hours"] + 1)


def tables(seed, near):
    rng = np.random.default_rng(seed)
    real = people(rng, PEOPLE)
    control = people(rng, CONTROL)
    new = pd.concat([people(rng, PEOPLE - near), stepped(real, rng, near)])
    return real, new, control


def found(seed, near):
    real, new, control = tables(seed, near)
    pooled, _ = pool({"real": real, "new": new, "control": control})
    return near_copies(pooled, confidence=0.95, rng=np.random.default_rng(seed))


def by_hand(people, new, lengths):
    """Who has a new row of the same kind a small step away, and none that is equal."""
    kinds = ["schooling", "job", "sex"]
    rows = dict(tuple(new.groupby(kinds)))
    found = []
    for person in people.itertuples():
        others = rows.get(tuple(getattr(person, name) for name in kinds))
        if others is None:
            found.append(False)
            continue
        is_near = np.ones(len(others), bool)
        is_equal = np.ones(len(others), bool)
        for name, length in lengths.items():
            mine = getattr(person, name)
            theirs = others[name].to_numpy()
            same = (theirs == mine) | (np.isnan(theirs) & np.isnan(mine))
            is_equal &= same
            is_near &= same | (np.abs(theirs - mine) <= length)
        found.append(is_near.any() and not is_equal.any())
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("step", [0.0, 0.002, 0.02, 0.1])
def test_they_are_found_as_row_by_row(step):
    rng = np.random.default_rng(1)
    real = people(rng, 800)
    new = pd.concat([people(rng, 700), stepped(real, rng, 60), real.head(40)])
    control = people(rng, 500)
    every = pd.concat([real, new, control])
    pooled, _ = pool({"real": real, "new": new, "control": control})
    rows = [np.arange(800), np.arange(1_600, 2_100)]
    lengths = {}
    for name in ("age", "hours", "rent"):
        values = np.unique(every[name].dropna())
        lengths[name] = max(step * np.ptp(values), np.median(np.diff(values)))
    numeric = [every.columns.get_loc(name) for name in lengths]
    hits = _nearly_found(pooled, numeric, step, rows)
    assert hits[0].tolist() == by_hand(real, new, lengths)
    assert hits[1].tolist() == by_hand(control, new, lengths)
    assert hits[0].sum() > 50  # but those who were also copied as they are


def test_there_is_no_answer_without_numbers_or_without_control_rows():
    rng = np.random.default_rng(2)
    real = people(rng, 200)
    new = people(rng, 200)
    pooled, _ = pool({"real": real, "new": new})
    assert near_copies(pooled, confidence=0.95, rng=rng) is None
    texts = real[["job", "sex"]]
    pooled, _ = pool({"real": texts, "new": texts, "control": texts})
    assert near_copies(pooled, confidence=0.95, rng=rng) is None


def test_the_sizes_of_a_step_share_one_confidence():
    """Three are tried and the best is told, so each has a third of the error."""
    rng = np.random.default_rng(4)
    real = people(rng, 400)
    new = pd.concat([people(rng, 380), stepped(real, rng, 20)])
    pooled, _ = pool({"real": real, "new": new, "control": people(rng, 300)})
    told = near_copies(pooled, confidence=0.94, rng=rng).risk
    rows = [np.arange(400), np.arange(800, 1_100)]
    numeric = [real.columns.get_loc(name) for name in ("age", "hours", "rent")]
    hits = [_nearly_found(pooled, numeric, step, rows) for step in (0.0, 0.002, 0.02)]
    risks = [Risk.of_hits(each, 0.98) for each in hits]
    assert told == max(risks, key=lambda risk: risk.low)


def test_the_verdict_says_how_many_people_it_concerns():
    rng = np.random.default_rng(3)
    real = people(rng, 2_000)
    new = pd.concat([people(rng, 1_900), stepped(real, rng, 100)])
    result = evaluate(real, new, control=people(rng, 2_000), attacks=50)
    assert "near copies" in result.flagged
    assert "have a new row that differs from theirs by small steps" in result.verdict
    assert result.to_dict()["risks"]["near_copies"]["people"] >= 100


@pytest.mark.more
@pytest.mark.parametrize("runs", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_thirty_of_ten_thousand_are_found_and_fresh_people_are_not(runs):
    """At least 95 % of such tables, and at most 5 % of those without them."""
    seen = sum(found(seed, NEAR).risk.low > 0 for seed in range(runs))
    false = sum(found(1_000 + seed, 0).risk.low > 0 for seed in range(runs))
    assert seen >= 0.95 * runs
    assert false <= 0.05 * runs
