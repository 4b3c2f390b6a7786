"""Metrics of groups that are only likely: what a table of known groups would give."""

import numpy as np
import pandas as pd
import pytest

from fairmaxent import Likely, debias, inspect, metrics
from fairmaxent.errors import InputError

GROUPS = ("a", "b", "c")
SHARES = np.array([0.3, 0.2, 0.5])
RATES = np.array([0.55, 0.3, 0.42])
COLUMNS = {group: f"p_{group}" for group in GROUPS}
NAMES = Likely("race", COLUMNS, told_by="names")
OFTEN = {"favourable": "yes"}


def population(seed=1, rows=3000, differ=2.15, rates=RATES):
    """Names that groups have, the true groups, and who was hired, and is good."""
    rng = np.random.default_rng(seed)
    names = np.exp(differ * rng.normal(size=(2000, 3)))
    names /= names.sum(axis=0)
    group = rng.choice(3, rows, p=SHARES)
    name = np.empty(rows, dtype=int)
    for number in range(3):
        own = group == number
        name[own] = rng.choice(2000, own.sum(), p=names[:, number])
    joint = (names * SHARES)[name]
    frame = pd.DataFrame(joint / joint.sum(axis=1, keepdims=True))
    frame.columns = list(COLUMNS.values())
    frame["hired"] = np.where(rng.random(rows) < rates[group], "yes", "no")
    frame["sex"] = rng.choice(["f", "m"], rows)
    frame["truth"] = np.array(GROUPS)[group]
    return frame


def certain(frame):
    """The same table, in which probabilities are 0 and 1."""
    own = {name: (frame["truth"] == group) * 1.0 for group, name in COLUMNS.items()}
    return frame.assign(**own)


CALLS = {
    "shares": lambda frame, groups: metrics.representation_rate(frame, groups),
    "outcomes": lambda frame, groups: metrics.statistical_rate(
        frame, "hired", groups, **OFTEN
    ),
    "every outcome": lambda frame, groups: metrics.statistical_rate(
        frame, "hired", groups
    ),
    "within": lambda frame, groups: metrics.statistical_rate(
        frame, "hired", groups, within="sex", **OFTEN
    ),
    "joint": lambda frame, groups: metrics.statistical_rate(
        frame, "hired", ["sex", groups], groups="joint", **OFTEN
    ),
    "reference": lambda frame, groups: metrics.statistical_rate(
        frame, "hired", groups, reference={"race": "c"}, **OFTEN
    ),
    "positives": lambda frame, groups: metrics.equal_opportunity(
        frame, "good", "hired", groups, favourable="yes"
    ),
    "odds": lambda frame, groups: metrics.equalised_odds(
        frame, "good", "hired", groups, favourable="yes"
    ),
    "disparity": lambda frame, groups: metrics.conditional_demographic_disparity(
        frame, "hired", groups, within="sex", **OFTEN
    ),
}


@pytest.mark.some(5)
@pytest.mark.parametrize("told_by", ["names", "columns"])
@pytest.mark.parametrize("call", CALLS)
def test_groups_that_are_certain_have_the_rates_of_a_column(call, told_by):
    frame = population()
    rng = np.random.default_rng(2)
    frame["good"] = np.where(rng.random(len(frame)) < 0.8, frame["hired"], "yes")
    likely = CALLS[call](certain(frame), Likely("race", COLUMNS, told_by=told_by))
    known = CALLS[call](frame.rename(columns={"truth": "race"}), "race")
    assert float(likely) == pytest.approx(float(known), rel=1e-9)
    if call != "disparity":
        assert str(likely) == str(known)
        assert likely.interval == pytest.approx(known.interval, rel=1e-9)


@pytest.mark.parametrize("told_by", ["names", "columns"])
def test_the_rate_is_that_of_the_certificate(told_by):
    frame = population()
    race = Likely("race", COLUMNS, told_by=told_by)
    rate = metrics.statistical_rate(frame, "hired", race, **OFTEN)
    fit = debias(frame.drop(columns="truth"), "hired", race, **OFTEN)
    (before,) = fit.certificate.likely.before
    assert rate.value == pytest.approx(getattr(before, told_by), rel=1e-6)
    assert rate.likely.names == pytest.approx(before.names, rel=1e-6)
    assert rate.likely.columns == pytest.approx(before.columns, rel=1e-6)
    assert rate.likely.bounds == pytest.approx(before.bounds, abs=1e-6)
    doubt = fit.certificate.likely.contradiction
    assert rate.likely.contradiction == pytest.approx(doubt, rel=1e-6)
    # that of all such people is less sure than that of the people in the table
    assert np.ptp(rate.interval) > np.ptp(before.interval)
    assert "if columns do:" in str(rate) or "if names do:" in str(rate)
    assert "whatever is assumed:" in str(rate)


@pytest.mark.parametrize("told_by", ["names", "columns"])
def test_a_look_a_summary_and_a_metric_have_one_interval(told_by):
    frame = population().drop(columns="truth")
    race = Likely("race", COLUMNS, told_by=told_by)
    rate = metrics.statistical_rate(frame, "hired", race, **OFTEN)
    (seen,) = inspect(frame, "hired", race, **OFTEN).likely.before
    assert seen.interval == pytest.approx(rate.interval, rel=1e-9)
    summary = debias(frame, "hired", race, **OFTEN).summary()
    ends = summary[["rate_before_low", "rate_before_high"]].to_numpy()
    assert ends == pytest.approx(np.array([one.interval for one in rate.groups]))


def test_columns_beside_likely_groups_have_the_intervals_of_a_column():
    frame = population().drop(columns="truth")
    both = debias(frame, "hired", ["sex", NAMES], **OFTEN).summary()
    alone = debias(frame, "hired", "sex", **OFTEN).summary()
    own = both[both["column"] == "sex"].reset_index(drop=True)
    for end in ("rate_before_low", "rate_before_high"):
        assert own[end].to_numpy() == pytest.approx(alone[end].to_numpy())


def test_decisions_of_people_with_an_outcome_are_compared():
    frame = population()
    rng = np.random.default_rng(5)
    frame["good"] = np.where(rng.random(len(frame)) < 0.7, "yes", "no")
    rate = metrics.equal_opportunity(frame, "good", "hired", NAMES, favourable="yes")
    among = frame[frame["good"] == "yes"]
    alone = metrics.statistical_rate(among, "hired", NAMES, **OFTEN)
    assert rate.value == pytest.approx(alone.value, rel=1e-6)


def test_missing_groups_do_not_count():
    frame = population()
    frame.loc[:99, list(COLUMNS.values())] = None
    some = metrics.statistical_rate(frame, "hired", NAMES, **OFTEN)
    others = metrics.statistical_rate(frame[100:], "hired", NAMES, **OFTEN)
    assert some.value == pytest.approx(others.value, rel=1e-6)


def test_what_takes_known_groups_is_refused():
    frame = population(rows=300)
    with pytest.raises(InputError, match="has no calibration"):
        metrics.calibration(frame, "hired", frame["p_a"], NAMES, **OFTEN)
    with pytest.raises(InputError, match="cluster cannot go together with likely"):
        metrics.representation_rate(frame, NAMES, cluster="truth")


@pytest.mark.slow
@pytest.mark.parametrize("differ", [3.2, 2.15])
def test_intervals_hold_the_rate_of_all_such_people(differ):
    truth = RATES.min() / RATES.max()
    held = 0
    for seed in range(200):
        rate = metrics.statistical_rate(
            population(seed, differ=differ), "hired", NAMES, **OFTEN
        )
        low, high = rate.interval
        held += low <= truth <= high
    assert 183 <= held <= 199  # 95 % of 200, ± 2.3 standard errors
