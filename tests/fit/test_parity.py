"""What relabelling makes equal: mean probabilities, or the decisions of a student about people it has never seen."""

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairmaxent import Estimate, Relabel, debias, progress
from fairmaxent.relabelling import closed_loop
from fairmaxent.relabelling.labellers import ScikitLabeller

ROWS = 1500
STUDENT = LogisticRegression(solver="newton-cholesky")


@pytest.fixture(autouse=True)
def _few_folds(monkeypatch):
    """As for large tables: five folds of small ones take longer, and show nothing else."""
    monkeypatch.setattr(closed_loop, "MORE_FOLDS", closed_loop.FOLDS)


def skewed(seed, outcomes=2, groups=2, rows=ROWS):
    """Groups of equal means still differ in decisions: the scores of one are spread widely, another's are not."""
    rng = np.random.default_rng([seed, outcomes, groups])
    z = rng.integers(0, groups, rows)
    spread = np.array([2.5, 0.4, 1.0])[z]
    columns = {name: np.clip(np.round(3.5 + spread * rng.normal(size=rows)), 0, 7).astype(int) for name in "abc"}
    columns["d"] = rng.integers(0, 8, rows)
    lean = 0.8 * (columns["a"] + columns["b"] + columns["c"] - 10.5) - 1.2
    scores = np.stack([np.zeros(rows), lean, 0.8 * (columns["a"] - 3.5)][:outcomes], axis=1)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    frame = {name: [f"{name}{code}" for code in codes] for name, codes in {"z": z, **columns}.items()}
    return pd.DataFrame(frame).assign(y=np.array(["o0", "o1", "o2"])[y])


def relabelled(frame, *, parity, threshold=0.5, rate=1.0, student=STUDENT, **options):
    """The fit on the rows alone that only changes labels."""
    favourable = "o1" if set(frame["y"]) == {"o0", "o1"} else None
    plan = Relabel(parity=parity, threshold=threshold, labeller=STUDENT, student=student, **options)
    asked = {"base_share": 0.0, "representation_rate": None, "statistical_rate": rate, "favourable": favourable}
    return debias(frame, "y", "z", relabel=plan, **asked)


def labels_of(fit):
    weights = fit.weights()
    return weights / weights.sum(axis=1, keepdims=True)


def decided(fit, frame, people, threshold=0.5, student=STUDENT):
    """Whom a student trained on the weights decides for, by plain scikit-learn, and the rate of each group."""
    rows = fit.weigh(frame, name="w")
    inputs = pd.get_dummies(pd.concat([rows, people])[[*"zabcd"]]).astype(float).to_numpy()
    model = clone(student).fit(inputs[: len(rows)], rows["y"], sample_weight=rows["w"])
    chances = model.predict_proba(inputs[len(rows) :])
    chosen = chances[:, 1] > threshold if chances.shape[1] == 2 else model.predict(inputs[len(rows) :])
    return pd.crosstab(people["z"], chosen, normalize="index")


def worst(shares, columns=None):
    return min(shares[column].min() / shares[column].max() for column in columns or shares.columns)


def test_a_students_decisions_are_levelled_and_probabilities_alone_are_not():
    groups, threshold = 3, 0.6
    frame, people = skewed(0, groups=groups, rows=2500), skewed(1, groups=groups, rows=20_000)
    kinds = ("probabilities", "predictions")
    fits = {parity: relabelled(frame, parity=parity, threshold=threshold) for parity in kinds}
    rates = {parity: worst(decided(fit, frame, people, threshold), [True]) for parity, fit in fits.items()}
    assert rates["predictions"] > 0.75  # the share of a group of some 1,300 people is not known better than to a tenth
    assert rates["probabilities"] < rates["predictions"] - 0.1
    assert fits["probabilities"].certificate.decisions is None
    found = fits["predictions"].certificate.decisions
    (rate,) = found.rates
    assert rate.low <= rates["predictions"] <= rate.high
    assert (found.student, found.threshold, found.blind) == ("LogisticRegression", threshold, False)
    assert [share.group for share in found.shares] == [f"z = z{group}" for group in range(groups)]
    assert all(0 <= share.low <= share.share <= share.high <= 1 for share in found.shares)


def test_the_student_who_learned_from_everybody_is_levelled():
    """A decision tree differs from those of the folds, so what these decide is not enough."""
    tree = DecisionTreeClassifier(min_samples_leaf=60, random_state=0)
    frame, people = skewed(0, rows=2000), skewed(10, rows=20_000)
    fit = relabelled(frame, parity="predictions", student=tree)
    reached = worst(decided(fit, frame, people, student=tree), [True])
    (rate,) = fit.certificate.decisions.rates
    assert rate.low <= reached <= rate.high
    assert reached > 0.75


def test_where_means_give_way_the_outcome_stays_as_common(monkeypatch):
    """Equal decisions come first: the table then has another rate, which is said, and nothing is called missed."""
    # The fair means are never good enough.
    monkeypatch.setattr(closed_loop, "_SMALL", (-1.0, -1.0))
    monkeypatch.setattr(closed_loop, "_merit", lambda attempt: attempt.shortfall.value + attempt.keeps_means)
    frame = skewed(0)
    fit = relabelled(frame, parity="predictions")
    certificate = fit.certificate
    assert not certificate.decisions.keeps_means
    assert certificate.achieved["statistical_rate"]["z"] < 0.99
    assert certificate.wanted["statistical_rate"]["z"] is None  # of the table; that of decisions is wanted
    assert certificate.decisions.rates[0].wanted == 1
    before = (frame["y"] == "o1").mean()
    assert labels_of(fit)[:, 1].mean() == pytest.approx(before, abs=1e-9)
    (share,) = [share for share in certificate.outcome_shares if share.outcome == "y = o1"]
    assert (share.before, share.after) == pytest.approx((before, before), abs=1e-9)
    np.testing.assert_allclose(fit.weights().sum(axis=1), 1, atol=1e-9)
    assert worst(decided(fit, frame, skewed(1, rows=20_000)), [True]) > 0.85


@pytest.mark.slow
def test_chance_is_not_chased(monkeypatch):
    """Groups that differ in nothing: whatever gap is seen is chance, so the labels are those of equal means."""
    monkeypatch.setattr(closed_loop, "MORE_FOLDS", 5)
    frame = skewed(2).assign(z=lambda frame: np.where(np.arange(len(frame)) % 2, "f", "m"))
    plan = Relabel(parity="predictions", labeller=STUDENT, student=STUDENT)
    levelled, plain = (
        debias(frame, "y", "z", favourable="o1", relabel=choice)
        for choice in (plan, replace(plan, parity="probabilities"))
    )
    assert levelled.certificate.decisions.keeps_means
    assert levelled.certificate.achieved["statistical_rate"]["z"] == pytest.approx(1, abs=1e-8)
    assert np.abs(levelled.weights() - plain.weights()).max() < 0.2


@pytest.mark.slow
def test_decisions_meet_a_lower_rate_and_no_more():
    frame, people = skewed(1), skewed(2, rows=20_000)
    levelled, plain = (relabelled(frame, parity=parity, rate=0.6) for parity in ("predictions", "probabilities"))
    rate = worst(decided(levelled, frame, people), [True])
    assert 0.52 < rate < 0.8
    assert worst(decided(plain, frame, people), [True]) < 0.5
    assert levelled.certificate.decisions.rates[0].rate >= 0.6 - 0.05


@pytest.mark.slow
def test_the_likeliest_of_three_outcomes_is_levelled():
    frame, people = skewed(1, outcomes=3), skewed(2, outcomes=3, rows=20_000)
    rates = {
        parity: worst(decided(relabelled(frame, parity=parity), frame, people))
        for parity in ("probabilities", "predictions")
    }
    assert rates["predictions"] > rates["probabilities"] + 0.3  # the rarest outcome has few people, so no more is sure


def test_probabilities_alone_move_every_profile_of_a_group_by_the_same_odds():
    frame = skewed(3)
    fit = relabelled(frame, parity="probabilities")
    numbers = sum(frame[name].str[1:].astype(int).to_numpy() * 10 ** (4 - place) for place, name in enumerate("zabcd"))
    model = fit.soft[np.unique(numbers, return_inverse=True)[1]]
    odds = np.log(labels_of(fit)[:, 1] / labels_of(fit)[:, 0]) - np.log(model[:, 1] / model[:, 0])
    assert pd.Series(odds).groupby(frame["z"].to_numpy()).agg(np.ptp).max() < 1e-6


# ---------------------------------------------------------------- the loop
def test_neither_student_nor_labels_have_seen_whom_they_decide_about(monkeypatch):
    """A column that numbers the people: whoever learned from somebody, or from labels that did, is found out."""
    frame = skewed(4, rows=300).assign(a=np.arange(300) + 0.5)  # whole ones would be left out
    taught, asked = [], []

    class Spy(ScikitLabeller):
        def learn(self, lesson):
            seen = set(lesson.inputs.numbers[1].tolist())
            taught.append(seen)
            predict = super().learn(lesson)

            def asking(inputs):
                asked.append((seen, set(inputs.numbers[1].tolist())))
                return predict(inputs)

            return asking

    monkeypatch.setattr("fairmaxent.relabelling.labellers.ScikitLabeller", Spy)
    relabelled(frame, parity="predictions")
    assert len(taught) > 20
    apart = [(learned, judged) for learned, judged in asked if not learned & judged]
    # Students also decide about everybody they learned from, but only to be compared with each other there.
    assert all(learned == judged for learned, judged in asked if (learned, judged) not in apart)
    # The soft labels that the last student learned from come from models that had nothing to do with its fold.
    fold = apart[-1][1]
    assert sum(not (learned | judged) & fold for learned, judged in apart) == closed_loop.FOLDS


def test_a_blind_student_and_labeller_see_no_protected_column(monkeypatch):
    seen = []

    class Spy(ScikitLabeller):
        def _matrix(self, inputs):
            matrix = super()._matrix(inputs)
            seen.append((self.blind, matrix.shape[1]))
            return matrix

    monkeypatch.setattr("fairmaxent.relabelling.labellers.ScikitLabeller", Spy)
    frame = skewed(5, rows=200)
    fit = relabelled(frame, parity="predictions", blind=True)
    levels = sum(frame[name].nunique() for name in "abcd")
    assert set(seen) == {(True, levels)}
    assert fit.certificate.decisions.blind
    assert fit.request.relabel.blind


def test_vacuous_parity_is_said():
    frame = skewed(6, rows=900)
    rare = frame.assign(y=np.where((frame["y"] == "o1") & (np.arange(900) % 9 == 0), "o1", "o0"))
    fit = relabelled(rare, parity="predictions")
    (rate,) = fit.certificate.decisions.rates
    assert rate.vacuous
    assert rate.rate is None
    (warning,) = [line for line in fit.certificate.warnings if "say nothing" in line]
    assert "decides for y = o1 for nobody" in warning
    assert fit.certificate.decisions.rounds == 1


def test_missing_values_are_not_compared_unless_asked_for():
    frame = skewed(7, rows=150)
    frame.loc[::9, "z"] = None
    plan = Relabel(parity="predictions", labeller="tree", student="tree")
    for missing, groups in (("ignore", 2), ("compare", 3)):
        known = debias(frame, "y", "z", favourable="o1", relabel=plan, missing=missing).certificate.decisions
        assert len(known.shares) == groups


def test_progress_names_the_labels_and_ends_the_estimate():
    calls = []
    plan = Relabel(parity="predictions", labeller="tree", student="tree")
    debias(
        skewed(4, rows=100), "y", "z", relabel=plan, estimate=Estimate(student="tree"),
        progress=lambda stage, share: calls.append((stage, share)),
    )  # fmt: skip
    assert list(dict.fromkeys(stage for stage, _ in calls)) == ["read", "count", "label", "base", "solve", "estimate"]
    assert [share for stage, share in calls if stage == "label"] == [0.0, 0.5]
    source = Path(progress.__file__).parent
    wings = [path for path in source.rglob("*.py") if path.parent.name != "app"]  # whose stages say it themselves
    told = [re.findall(r'(?:progress\(|\(progress, )"([\w-]+)"', path.read_text("utf-8")) for path in wings]
    assert set(chain(*told)) == set(progress.STEPS)
