"""What relabelling makes equal: mean probabilities alone, or a model's decisions as well, counted row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fairmaxent import Relabel, debias

ROWS = 500
PROFILE = "zabcd"  # the group first, then the other columns


def skewed(seed, outcomes=2, groups=2):
    """Groups of equal means still differ in decisions: the scores of one are spread widely, those of another are not.

    A column of noise makes profiles small, so that decisions can be levelled closely.
    """
    rng = np.random.default_rng([seed, outcomes, groups])
    z = rng.integers(0, groups, ROWS)
    spread = np.array([2.5, 0.4, 1.0])[z]
    columns = {name: np.clip(np.round(3.5 + spread * rng.normal(size=ROWS)), 0, 7).astype(int) for name in "abc"}
    columns["d"] = rng.integers(0, 8, ROWS)
    lean = 0.8 * (columns["a"] + columns["b"] + columns["c"] - 10.5) - 1.2
    scores = np.stack([np.zeros(ROWS), lean, 0.8 * (columns["a"] - 3.5)][:outcomes], axis=1)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    frame = {name: [f"{name}{code}" for code in codes] for name, codes in {"z": z, **columns}.items()}
    return pd.DataFrame(frame).assign(y=np.array(["o0", "o1", "o2"])[y])


def relabelled(frame, *, parity, threshold=0.5, rate=1.0):
    """The fit on the rows alone that only changes labels."""
    labeller = LogisticRegression(max_iter=300)
    favourable = "o1" if set(frame["y"]) == {"o0", "o1"} else None
    options = {"base_share": 0.0, "representation_rate": None, "statistical_rate": rate, "favourable": favourable}
    return debias(frame, "y", "z", relabel=Relabel(parity=parity, threshold=threshold, labeller=labeller), **options)


def labels_of(fit):
    weights = fit.weights()
    return weights / weights.sum(axis=1, keepdims=True)


def shares(flags, frame):
    return pd.Series(flags).groupby(frame["z"].to_numpy()).mean().to_numpy()


def ratio(flags, frame):
    found = shares(flags, frame)
    return found.min() / found.max()


def one_profile(frame):
    """The largest share of its group that one profile has: decisions cannot be split more finely."""
    sizes = frame.groupby(list(PROFILE)).size()
    return (sizes / sizes.groupby("z").transform("sum")).max()


@pytest.mark.parametrize(("groups", "threshold"), [(2, 0.5), (2, 0.6), (3, 0.6)])
def test_predictions_are_levelled_and_probabilities_alone_are_not(groups, threshold):
    frame = skewed(0, groups=groups)
    by_parity = {}
    for parity in ("probabilities", "predictions"):
        labels = labels_of(relabelled(frame, parity=parity, threshold=threshold))
        assert ratio(labels[:, 1], frame) == pytest.approx(1, abs=1e-8)
        by_parity[parity] = shares(labels[:, 1] > threshold, frame)
    assert np.ptp(by_parity["predictions"]) <= one_profile(frame)
    assert np.ptp(by_parity["probabilities"]) > 0.1


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_decisions_meet_the_rate_that_was_asked_for(rate):
    frame = skewed(1)
    levelled, plain = (
        labels_of(relabelled(frame, parity=parity, rate=rate)) for parity in ("predictions", "probabilities")
    )
    decided = shares(levelled[:, 1] > 0.5, frame)
    assert decided.min() >= rate * decided.max() - one_profile(frame)
    if rate < 1:  # and no more than that: it stays as close to the labels as the rate allows
        assert decided.min() <= rate * decided.max() + one_profile(frame)
    assert ratio(plain[:, 1] > 0.5, frame) < rate - 0.15


def test_the_likeliest_of_three_outcomes_is_levelled():
    frame = skewed(1, outcomes=3)
    gaps = {}
    for parity in ("probabilities", "predictions"):
        labels = labels_of(relabelled(frame, parity=parity))
        decided = labels.argmax(axis=1)
        gaps[parity] = max(np.ptp(shares(decided == outcome, frame)) for outcome in range(3))
        for outcome in range(3):
            assert ratio(labels[:, outcome], frame) == pytest.approx(1, abs=1e-8)
    assert gaps["predictions"] <= one_profile(frame)
    assert gaps["probabilities"] > 0.1


def test_probabilities_alone_move_every_profile_of_a_group_by_the_same_odds():
    frame = skewed(3)
    for parity, same in (("probabilities", True), ("predictions", False)):
        fit = relabelled(frame, parity=parity)
        model = fit.soft[np.unique(profile_numbers(frame), return_inverse=True)[1]]
        odds = np.log(labels_of(fit)[:, 1] / labels_of(fit)[:, 0]) - np.log(model[:, 1] / model[:, 0])
        spread = pd.Series(odds).groupby(frame["z"].to_numpy()).agg(np.ptp)
        assert (spread.max() < 1e-6) == same


def profile_numbers(frame):
    """Profiles in lexicographic order, as soft labels are kept: the group first, then the other columns."""
    return sum(frame[name].str[1:].astype(int).to_numpy() * 10 ** (4 - place) for place, name in enumerate(PROFILE))
