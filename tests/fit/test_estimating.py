"""The estimate against plain cross-validation, and that nothing leaks into it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from fairmaxent import Estimate, InputError, Model, debias, load
from fairmaxent.errors import DependencyError, InfeasibleError
from fairmaxent.fit.estimate import ESTIMATE_FOLDS, Tryout, fold_of_each
from fairmaxent.fit.pipeline import _reading, with_estimate
from fairmaxent.fit.request import Request
from fairmaxent.relabelling import labellers
from fairmaxent.relabelling.people import People
from tables import EQUAL_PROBABILITIES

STUDENT = LogisticRegression(solver="newton-cholesky")
PLAIN = {"favourable": "p", "base_share": 0.0, "representation_rate": None}
ROUNDS = Tryout.rounds
BY_HEART = Model("decision tree", parity="probabilities")
QUICK = {**PLAIN, "estimate": Estimate(output="weights", model=STUDENT)}


@pytest.fixture(autouse=True)
def _one_round(monkeypatch):
    """Small tables are split into folds more than once, which takes time; two tests are
    about it.
    """
    monkeypatch.setattr(Tryout, "rounds", 1)


def hiring(seed=0, rows=900, outcomes=2):
    """x tells z and y, so a model can be unfair although the data are fair; no missing
    values, text throughout.
    """
    rng = np.random.default_rng(seed)
    z = rng.choice(2, rows, p=[0.4, 0.6])
    x = np.clip(rng.integers(0, 6, rows) + 2 * z - 1, 0, 6)
    c = np.where(rng.random(rows) < 0.8, z, 1 - z)
    lean = np.stack(
        [np.zeros(rows), 2.0 * (x - 3) + c - 0.5, x - 3.0][:outcomes], axis=1
    )
    y = (lean + rng.gumbel(size=lean.shape)).argmax(axis=1)
    columns = {
        "z": z,
        "x": x,
        "c": c,
        "d": rng.integers(0, 4, rows),
        "e": rng.integers(0, 3, rows),
    }
    frame = pd.DataFrame(
        {name: [f"{name}{code}" for code in codes] for name, codes in columns.items()}
    )
    return frame.assign(y=np.array(["n", "p", "q"])[y])


def cross_validated(fit, frame, weights_of, rounds):
    """Probabilities of the second outcome by plain scikit-learn on rows, with the folds
    of the estimate.
    """
    people = People.of(
        fit.roles, fit.table, fit.table.counts, positions=None, design=None
    )
    inputs = pd.get_dummies(frame.drop(columns="y")).astype(float)
    predicted = np.empty((rounds, len(frame)))
    for number in range(rounds):
        fold = fold_of_each(people, ESTIMATE_FOLDS, seed=number)
        for held in range(ESTIMATE_FOLDS):
            long = weights_of(frame[fold != held])
            model = clone(STUDENT)
            model.fit(inputs.loc[long.index], long["y"], sample_weight=long["w"])
            predicted[number, fold == held] = model.predict_proba(inputs[fold == held])[
                :, 1
            ]
    return predicted


def ratio(values, groups):
    means = pd.Series(values).groupby(groups.to_numpy()).mean()
    return means.min() / means.max()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "model", [None, EQUAL_PROBABILITIES], ids=["reweigh", "relabel"]
)
def test_the_estimate_is_plain_cross_validation(model, monkeypatch):
    monkeypatch.setattr(Tryout, "rounds", 2)
    frame = hiring(rows=600)
    fit = debias(frame, "y", "z", model=model, **QUICK)
    found = fit.certificate.estimate

    def fair(rest):
        again = debias(rest, "y", "z", domain=fit.domain, model=model, **PLAIN)
        return again.weigh(rest, weight_name="w")

    for scores, weights_of in (
        (found.before, lambda rest: rest.assign(w=1.0)),
        (found.after, fair),
    ):
        chance = cross_validated(fit, frame, weights_of, found.rounds)
        truth, decided = (frame["y"] == "p").to_numpy(), chance > 0.5
        assert scores.accuracy == pytest.approx((decided == truth).mean(), abs=2e-3)
        assert scores.auc == pytest.approx(
            np.mean([roc_auc_score(truth, own) for own in chance]), abs=1e-3
        )
        assert scores.by_predictions["z"] == pytest.approx(
            ratio(decided.mean(axis=0), frame["z"]), abs=1e-2
        )
        assert scores.by_probabilities["z"] == pytest.approx(
            ratio(chance.mean(axis=0), frame["z"]), abs=1e-3
        )
        right = ratio(decided.mean(axis=0)[truth], frame["z"][truth])
        assert scores.equal_opportunity["z"] == pytest.approx(right, abs=1e-2)
        assert scores.decided == pytest.approx(decided.mean(), abs=2e-3)
    assert (found.student, found.output, found.folds) == (
        "LogisticRegression",
        "weights",
        ESTIMATE_FOLDS,
    )
    assert (found.people, found.measured_on) == (
        len(frame),
        len(frame) / ESTIMATE_FOLDS,
    )


@pytest.mark.more
def test_the_estimate_sees_the_weights_of_the_fit_with_its_targets():
    """A target on another column changes weights(), so it must change what a student is
    expected to do.
    """
    frame = hiring()
    plain = debias(frame, "y", "z", **QUICK)
    extreme = {"c": {"c0": 0.97, "c1": 0.03}}
    bent = debias(frame, "y", "z", target=extreme, **QUICK)
    assert bent.certificate.estimate.before == plain.certificate.estimate.before
    assert (
        abs(bent.certificate.estimate.after.auc - plain.certificate.estimate.after.auc)
        > 1e-6
    )


@pytest.mark.more
@pytest.mark.parametrize(
    ("relabels", "output"),
    [(False, "rows"), (True, "weights")],
    ids=["reweigh", "relabel"],
)
def test_noise_teaches_nothing(relabels, output):
    """A number unique to each row and nothing else: who had seen a row would know its
    outcome.
    """
    rng = np.random.default_rng(1)
    rows = 400
    columns = {"z": np.where(rng.random(rows) < 0.5, "a", "b")}
    columns["y"] = np.where(rng.random(rows) < 0.5, "p", "n")
    columns["n1"] = [f"v{c}" for c in rng.integers(0, 50, rows)]
    frame = pd.DataFrame(columns | {"n2": [f"v{c}" for c in rng.integers(0, 50, rows)]})
    learner = DecisionTreeClassifier(random_state=0)  # learns by heart
    fit = debias(
        frame,
        "y",
        "z",
        model=BY_HEART if relabels else None,
        estimate=Estimate(output=output, model=learner),
        **{**PLAIN, "base_share": 0.1},
    )
    for scores in (fit.certificate.estimate.before, fit.certificate.estimate.after):
        # three standard errors of an AUC of 400 rows
        assert abs(scores.auc - 0.5) < 0.09
        assert abs(scores.accuracy - 0.5) < 0.09


def warnings_of(certificate):
    return [
        line for line in certificate.warnings if "a model is trained on them" in line
    ]


@pytest.mark.more
def test_the_warning_says_how_unfair_decisions_stay_and_what_helps():
    frame = hiring(5, rows=600)
    known = debias(frame, "y", "z", **QUICK).certificate
    (warning,) = warnings_of(known)
    rate, (low, high) = (
        known.estimate.after.by_predictions["z"],
        known.estimate.after.ranges["by_predictions"]["z"],
    )
    assert low < rate < min(0.9, high)
    said = (
        f"decisions for z is expected to be {rate:.2f}, between {low:.2f} and"
        f" {high:.2f} (wanted 1.00)"
    )
    assert warning.endswith(f"{said}. To make the table for your model, use model")
    (made,) = debias(
        frame, "y", "z", favourable="p", model="logistic"
    ).certificate.decisions.rates
    assert made.rate > rate


@pytest.fixture(scope="module")
def certificate():
    estimate = Estimate(output="weights", model="tree")
    return debias(hiring(3, rows=300), "y", "z", **PLAIN, estimate=estimate).certificate


def test_a_model_that_decides_for_nobody_is_not_called_fair(certificate):
    known = certificate.estimate
    nobody = replace(
        known, after=replace(known.after, decided=0.0, by_predictions={"z": 1.0})
    )
    (said,) = [
        line
        for line in replace(certificate, estimate=nobody).warnings
        if "nobody" in line
    ]
    assert "so equal rates of its decisions mean nothing" in said


def test_nothing_is_estimated_unless_somebody_asks(monkeypatch):
    monkeypatch.setattr(Tryout, "trial", None)  # it would raise
    fit = debias(hiring(3, rows=240), "y", "z", favourable="p")
    assert fit.certificate.estimate is None
    assert fit.certificate.to_dict()["estimate"] is None
    assert "expected of" not in str(fit.certificate) + repr(fit)


@pytest.mark.parametrize(
    ("rows", "student", "model", "rounds"),
    [
        (300, None, None, 2),
        (300, "tree", None, 3),
        (300, "tree", EQUAL_PROBABILITIES, 1),
        (6_000, "tree", None, 1),
    ],
)
def test_people_are_split_more_than_once_where_that_is_quick(
    rows, student, model, rounds
):
    plan, request = Estimate(model=student), Request("y", "z", model=model)
    data = _reading(debias(hiring(3, rows=rows), "y", "z"))
    assert ROUNDS.fget(Tryout(None, data, request, None, plan)) == rounds


@pytest.mark.slow
def test_several_groupings_outcomes_and_the_way_back_from_a_file(tmp_path):
    frame = hiring(4, outcomes=3, rows=300)
    on_rows = Estimate(output="rows", model=STUDENT)
    fit = debias(
        frame,
        "y",
        ["z", "c"],
        model=EQUAL_PROBABILITIES,
        estimate=on_rows,
        base_share=0.2,
    )
    found = fit.certificate.estimate
    assert set(found.after.by_predictions) == {"z", "c"}
    assert found.after.by_probabilities["c"] > found.before.by_probabilities["c"]
    joint = debias(frame, "y", ["z", "c"], groups="joint", estimate=QUICK["estimate"])
    assert list(joint.certificate.estimate.after.by_predictions) == ["z × c"]
    fit.save(tmp_path / "fit")
    back = load(tmp_path / "fit")
    assert back.certificate.estimate == found
    assert str(back.certificate) == str(fit.certificate)


@pytest.mark.more
def test_a_cell_that_a_fold_loses():
    """The only row of a cell is in one fold: without it rows cannot be weighed to fill
    the cell, and that is said.
    """
    frame = hiring(6, rows=300)
    frame = frame[(frame["z"] != "z0") | (frame["y"] != "p")]
    lone = frame[frame["z"] == "z0"].iloc[[0]].assign(y="p")
    frame = pd.concat([frame, lone], ignore_index=True)
    debias(frame, "y", "z", **PLAIN)
    with pytest.raises(
        InfeasibleError,
        match="fits the table again without some of its rows, and that failed ",
    ):
        debias(frame, "y", "z", **QUICK)
    filled = debias(frame, "y", "z", **{**QUICK, "base_share": 0.2})
    assert filled.certificate.estimate is not None


@pytest.mark.parametrize(
    ("estimate", "message"),
    [
        (
            lambda: STUDENT,
            (
                r"estimate is LogisticRegression\(.*; pass one of the choices,"
                r" Estimate\(…\), or None"
            ),
        ),
        (
            lambda: True,
            r"estimate is True; pass one of the choices, Estimate\(…\), or None",
        ),
        (lambda: "labels", "estimate is 'labels'; known: 'rows', 'weights'"),
        (lambda: "none", "estimate is 'none'; known: 'rows', 'weights'"),
        (
            lambda: Estimate(output="labels"),
            "output is 'labels'; known: 'rows', 'weights'",
        ),
        (
            lambda: Estimate(output="rows", model="forest"),
            "model is .*cannot be fitted",
        ),
    ],
)
def test_refusals(estimate, message):
    with pytest.raises(InputError, match=message):
        debias(hiring(7, rows=100), "y", "z", estimate=estimate())


def test_a_named_model_needs_its_library(monkeypatch):
    monkeypatch.setattr(labellers, "has_library", lambda _: False)
    with pytest.raises(DependencyError, match="'logistic' needs scikit-learn"):
        debias(hiring(8, rows=300), "y", "z", estimate=Estimate(model="logistic"))


@pytest.mark.more
def test_an_estimate_can_be_added_to_a_fit_and_is_then_part_of_its_request():
    frame = hiring(8, rows=300)
    asked = debias(frame, "y", "z", **QUICK)
    added = with_estimate(debias(frame, "y", "z", **PLAIN), QUICK["estimate"])
    assert added.certificate.estimate == asked.certificate.estimate
    assert added.request == asked.request


@pytest.mark.more
def test_a_blind_student_does_not_see_the_group():
    """The group alone tells the outcome: a blind student ranks people by chance."""
    rng = np.random.default_rng(0)
    rows = 600
    z = rng.random(rows) < 0.5
    y = rng.random(rows) < np.where(z, 0.85, 0.15)
    frame = pd.DataFrame(
        {
            "z": np.where(z, "a", "b"),
            "y": np.where(y, "p", "n"),
            "x": rng.integers(0, 3, rows),
        }
    )
    for student in (STUDENT, "tree"):
        plans = [
            Estimate(output="weights", model=student, hide_protected=blind)
            for blind in (False, True)
        ]
        seeing, blind = (
            debias(frame, "y", "z", estimate=plan, **PLAIN).certificate.estimate
            for plan in plans
        )
        assert seeing.before.auc > 0.8
        assert abs(blind.before.auc - 0.5) < 0.1
        assert (seeing.hide_protected, blind.hide_protected) == (False, True)
        assert blind.before.by_probabilities["z"] > 0.95


@pytest.mark.more
def test_students_see_raw_numbers():
    """The outcome turns on a number inside a bin: who sees only bins cannot tell."""
    rng = np.random.default_rng(0)
    rows = 600
    x = rng.random(rows)
    y = np.floor(x * 40) % 2 == 0
    frame = pd.DataFrame(
        {
            "z": np.where(rng.random(rows) < 0.5, "a", "b"),
            "y": np.where(y, "p", "n"),
            "x": x,
        }
    )
    for output in ("rows", "weights"):
        estimate = Estimate(output=output, model=DecisionTreeClassifier(random_state=0))
        known = debias(frame, "y", "z", estimate=estimate, **PLAIN).certificate.estimate
        assert min(known.before.accuracy, known.after.accuracy) > 0.75
        binned = debias(
            frame, "y", "z", estimate=estimate, detail="bins", **PLAIN
        ).certificate.estimate
        assert max(binned.before.accuracy, binned.after.accuracy) < 0.65
