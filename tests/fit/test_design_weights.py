"""Design weights that matter: the estimate of a trained model, against scikit-learn on
weighted rows.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score

from fairmaxent import Estimate, debias
from fairmaxent.fit.estimate import ESTIMATE_FOLDS, Tryout, fold_of_each
from fairmaxent.relabelling.people import People

ROWS = 600
LEVELS = {"z": 2, "x": 5, "c": 3}


def survey(seed=11):
    """Some people stand for many: those whose outcome is not what x would make one
    expect, above all in group z1.
    """
    rng = np.random.default_rng(seed)
    z, c = rng.choice(2, ROWS, p=[0.4, 0.6]), rng.integers(0, 3, ROWS)
    x = np.clip(rng.integers(0, 4, ROWS) + z, 0, 4)
    y = rng.random(ROWS) < 1 / (1 + np.exp(2.0 - x))
    against = y == (x < 2)
    weight = (
        rng.uniform(0.5, 1.5, ROWS)
        * np.where(against, 2.0 + 6.0 * z, 1.0)
        * np.where(c == 2, 3.0, 1.0)
    )
    codes = {"z": z, "x": x, "c": c}
    frame = pd.DataFrame(
        {name: [f"{name}{code}" for code in column] for name, column in codes.items()}
    )
    return frame.assign(y=np.where(y, "p", "n"), weight=weight)


def estimated(frame, weight):
    """The fit of a survey on its rows alone, with the estimate for a logistic
    regression on its weights.
    """
    student = LogisticRegression(max_iter=2000, tol=1e-10)
    options = {
        "favourable": "p",
        "base_share": 0.0,
        "target": {"y": "free"},
        "weight": weight,
    }
    return debias(
        frame, "y", "z", estimate=Estimate(output="weights", model=student), **options
    )


def inputs(frame):
    return np.column_stack(
        [
            frame[name] == f"{name}{level}"
            for name, size in LEVELS.items()
            for level in range(size)
        ]
    )


def fair_weights(frame):
    """The fair table in closed form: each group has the rate of everybody, and sizes
    stay as they are.
    """
    favoured, weight = (frame["y"] == "p").to_numpy(), frame["weight"].to_numpy()
    mass = pd.Series(weight).groupby(frame["z"].to_numpy()).sum()
    rate = pd.Series(weight * favoured).groupby(frame["z"].to_numpy()).sum() / mass
    common = np.average(favoured, weights=weight)
    own = rate[frame["z"]].to_numpy()
    return weight * np.where(favoured, common / own, (1 - common) / (1 - own))


def cross_validated(frame, fold, weights_of):
    chance = np.empty(len(frame))
    for number in range(ESTIMATE_FOLDS):
        rest = frame[fold != number]
        weights = weights_of(rest)
        model = LogisticRegression(max_iter=2000, tol=1e-10)
        # One per row on average over all rows, or of the rows at hand: a penalty has
        # the same force either way.
        model.fit(inputs(rest), rest["y"], sample_weight=weights)
        chance[fold == number] = model.predict_proba(inputs(frame[fold == number]))[
            :, 1
        ]
    return chance


def ratio(values, frame, weight):
    mass = pd.Series(weight).groupby(frame["z"].to_numpy()).sum()
    means = pd.Series(values * weight).groupby(frame["z"].to_numpy()).sum() / mass
    return means.min() / means.max()


@pytest.mark.more
def test_the_estimate_is_weighted_cross_validation(monkeypatch):
    monkeypatch.setattr(Tryout, "rounds", 1)
    frame = survey()
    fit = estimated(frame, "weight")
    people = People.of(
        fit.roles, fit.table, fit.table.counts, positions=None, design=None
    )
    fold = fold_of_each(people, ESTIMATE_FOLDS, seed=0)
    weight = frame["weight"].to_numpy()
    lessons = {
        "before": lambda rest: rest["weight"].to_numpy() * ROWS / weight.sum(),
        "after": lambda rest: fair_weights(rest) * len(rest) / fair_weights(rest).sum(),
    }
    truth = (frame["y"] == "p").to_numpy()
    for when, weights_of in lessons.items():
        scores = getattr(fit.certificate.estimate, when)
        chance = cross_validated(frame, fold, weights_of)
        decided = chance > 0.5
        accuracy = accuracy_score(truth, decided, sample_weight=weight)
        assert scores.accuracy == pytest.approx(accuracy, abs=1e-6)
        assert scores.auc == pytest.approx(
            roc_auc_score(truth, chance, sample_weight=weight), abs=1e-4
        )
        assert scores.by_predictions["z"] == pytest.approx(
            ratio(decided, frame, weight), abs=1e-6
        )
        # Logistic regressions on rows and on counts stop at slightly different points.
        assert scores.by_probabilities["z"] == pytest.approx(
            ratio(chance, frame, weight), abs=5e-4
        )
        right = ratio(decided[truth], frame[truth], weight[truth])
        assert scores.equal_opportunity["z"] == pytest.approx(right, abs=1e-6)
        # The weights matter: the same decisions, counted by rows, would look otherwise.
        assert abs(accuracy - accuracy_score(truth, decided)) > 0.05
