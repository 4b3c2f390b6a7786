"""Labellers: what they learn from, that they never label what they learned from, and
Bayes' rule for the tree.
"""

from collections import Counter
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import fairmaxent.relabelling.classifier as classifier
import fairmaxent.relabelling.labellers as labellers
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.errors import InputError
from fairmaxent.relabelling.labellers import (
    ScikitLabeller,
    TreeLabeller,
    choose_labeller,
    cross_fit,
)
from fairmaxent.relabelling.people import (
    Inputs,
    Lesson,
    People,
    Profiles,
    pooled_labels,
    prior_strength,
)
from oracle import dense, points


def some_frame(seed=0, rows=300, outcomes=3):
    rng = np.random.default_rng(seed)
    y, a = rng.integers(0, outcomes, rows), rng.integers(0, 4, rows)
    columns = {"a": [f"a{c}" for c in (a + y) % 4]}
    columns["z"] = [f"g{c}" for c in rng.choice(3, rows, p=[0.5, 0.3, 0.2])]
    columns |= {"y": [f"o{c}" for c in y], "b": rng.random(rows) < 0.2 + 0.2 * y}
    return pd.DataFrame(columns | {"w": [f"g{c}" for c in rng.integers(0, 2, rows)]})


def profiles_of(frame, outcome="y", protected=("z", "w"), weights=None):
    domain = Domain.infer(frame)
    roles = Roles.of(domain, outcome, list(protected))
    table = roles.compress(domain.encode(frame), weights)
    return roles, table, Profiles.of(table, roles.blocks, table.counts)


def people_of(frame, outcome="y", protected=("z", "w"), *, rows=True, domain=None):
    """Everybody in a frame, with their raw numbers, or by distinct rows as an engine
    counts them.
    """
    domain = domain or Domain.infer(frame)
    roles = Roles.of(domain, outcome, list(protected))
    table = roles.compress(domain.encode(frame))
    positions = domain.encode_rows(nw.from_native(frame)).positions
    table = table if rows else replace(table, places=None)
    return People.of(
        roles, table, table.counts, positions=positions if rows else None, design=None
    )


class Spy:
    """Remembers how many people of each profile each model learned from, and whom it
    was asked about.
    """

    def __init__(self):
        self.calls = []

    def learn(self, lesson):
        taught = Counter(map(tuple, lesson.inputs.codes.tolist()))

        def predict(asked):
            self.calls.append((taught, Counter(map(tuple, asked.codes.tolist()))))
            return np.tile(
                lesson.weights.sum(axis=0) / lesson.weights.sum(), (len(asked), 1)
            )

        return predict


def test_profiles_count_what_a_group_by_counts():
    frame = some_frame()
    roles, _, profiles = profiles_of(frame)
    counted = frame.groupby(["z", "w", "a", "b", "y"]).size().unstack("y", fill_value=0)
    assert len(profiles.codes) == len(counted)
    # both in lexicographic order, root first
    np.testing.assert_array_equal(profiles.counts, counted.to_numpy())
    assert roles.blocks.shape(0) == (3, 3, 2)
    np.testing.assert_array_equal(profiles.mass, counted.sum(axis=1))
    levels = counted.index.to_frame(index=False)
    np.testing.assert_array_equal(
        profiles.groups,
        2 * levels["z"].str[1].astype(int) + levels["w"].str[1].astype(int),
    )


def test_people_keep_their_outcome_as_far_as_the_labels_of_their_profile_allow():
    _, table, profiles = profiles_of(some_frame())
    shares = np.random.default_rng(0).dirichlet(np.ones(3), len(profiles.mass))
    wanted = 2 * profiles.mass[:, None] * shares
    parts, moved = (
        profiles.by_row(wanted.T.ravel()) * table.counts[:, None],
        np.zeros((len(wanted), 3, 3)),
    )
    # by profile, old outcome and new one
    np.add.at(moved, (profiles.profile_of_row, profiles.outcomes), parts)
    np.testing.assert_allclose(moved.sum(axis=1), wanted)
    np.testing.assert_allclose(moved.sum(axis=2), 2 * profiles.counts)
    np.testing.assert_allclose(
        np.einsum("pyy->py", moved), np.minimum(2 * profiles.counts, wanted)
    )


def test_no_model_labels_a_person_that_it_learned_from():
    people, spy = people_of(some_frame()), Spy()
    held_out = cross_fit(spy, people)
    everybody = Counter(map(tuple, people.inputs.codes.tolist()))
    assert len(spy.calls) == labellers.LABEL_FOLDS
    for taught, asked in spy.calls:
        assert taught + asked == everybody
    assert sorted(held_out.record) == list(range(300))
    np.testing.assert_allclose(held_out.chances.sum(axis=1), 1)


@pytest.mark.parametrize("rows", [True, False])
def test_folds_are_alike(rows):
    people = people_of(some_frame(rows=2000), rows=rows)
    dealt = people.deal(5)
    np.testing.assert_array_equal(dealt.sum(axis=1), people.size)
    assert np.ptp(dealt.sum(axis=0)) <= 1
    for group in range(6):
        for outcome in range(3):
            alike = (people.group == group) & (people.outcome == outcome)
            assert np.ptp(dealt[alike].sum(axis=0)) <= 1
    np.testing.assert_array_equal(dealt, people.deal(5))


def test_folds_are_the_same_whether_rows_are_kept_or_not():
    frame = some_frame(rows=2000)
    kept, counted = people_of(frame), people_of(frame, rows=False)
    by_row = np.zeros_like(counted.deal(5))
    np.add.at(by_row, kept.row, kept.deal(5))
    np.testing.assert_array_equal(by_row, counted.deal(5))
    one, other = (
        cross_fit(TreeLabeller(people.inputs.roles), people)
        for people in (kept, counted)
    )
    sums = [
        np.bincount(p.row[h.record], h.weight * h.chances[:, 1])
        for p, h in ((kept, one), (counted, other))
    ]
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-9)


def test_too_few_people_are_refused():
    frame = pd.DataFrame({"z": ["a", "b"] * 4, "y": ["n", "n", "p", "p"] * 2})
    with pytest.raises(
        InputError,
        match=(
            "8 rows are too few to learn from in 5 folds; use model=None and estimate"
        ),
    ):
        people_of(frame, protected=("z",)).deal(5)


def test_a_large_lesson_is_represented_by_fewer_people():
    people = people_of(some_frame(rows=3000), rows=False)
    lesson = people.lesson(people.size, most=500)
    assert lesson.weights.shape == (500, 3)
    assert lesson.weights.sum() == pytest.approx(3000)
    whole = people.lesson(people.size)
    assert len(whole.inputs) == 3000
    np.testing.assert_allclose(
        lesson.weights.sum(axis=0), whole.weights.sum(axis=0), rtol=0.15
    )


def test_soft_labels_know_what_a_profiles_own_outcomes_say():
    """32 profiles × 300 rows, whose shares follow no pattern: what other profiles are
    like says nothing.
    """
    rng, profile = np.random.default_rng(0), np.repeat(np.arange(32), 300)
    share = rng.choice([0.05, 0.95], 16)[profile // 2]
    outcome = np.where(rng.random(len(profile)) < share, "p", "n")
    frame = pd.DataFrame(
        {
            "z": np.where(profile % 2, "a", "b"),
            "x": [f"x{p // 2}" for p in profile],
            "y": outcome,
        }
    )
    for rows, model in (
        (True, None),
        (True, "tree"),
        (False, "tree"),
        (False, LogisticRegression()),
    ):
        people = people_of(frame, protected=("z",), rows=rows)
        soft = pooled_labels(
            people, cross_fit(choose_labeller(people.inputs.roles, model), people)
        )
        truth, score = (
            np.repeat(values, people.size)
            for values in (people.outcome, soft[people.profile, 1])
        )
        assert roc_auc_score(truth, score) > 0.88


def test_the_strength_of_the_prior_is_where_leaving_one_out_is_likeliest():
    rng = np.random.default_rng(1)
    mean = rng.dirichlet([2.0, 2.0], 3000)
    size = rng.integers(1, 12, 3000)
    for strength in (3.0, 30.0):
        counts = np.array(
            [
                rng.multinomial(n, rng.dirichlet(strength * m))
                for n, m in zip(size, mean, strict=True)
            ]
        )
        assert prior_strength(mean, counts.astype(float)) == pytest.approx(
            strength, rel=0.5
        )
    exact = np.array(
        [rng.multinomial(n, m) for n, m in zip(size, mean, strict=True)]
    ).astype(float)
    assert prior_strength(mean, exact) > 100
    # nobody shares a profile
    assert prior_strength(mean, np.eye(2)[rng.integers(0, 2, 3000)]) == 1e6


def test_the_tree_labels_by_bayes_rule(monkeypatch):
    people, built = people_of(some_frame(), rows=False), []
    roles, everybody = (
        people.inputs.roles,
        Inputs.of(people.inputs.roles, people.profiles.codes, None),
    )

    def spying(*arguments, **options):
        built.append(original(*arguments, **options))
        return built[-1]

    original = labellers.build_base
    monkeypatch.setattr(labellers, "build_base", spying)
    lesson = people.lesson(people.size)
    seeing, blind = (
        TreeLabeller(roles, blind=blind).learn(lesson)(everybody)
        for blind in (False, True)
    )
    grid, joint = points(roles.blocks.levels), dense(built[0])
    probability = dict(zip(map(tuple, grid.tolist()), joint, strict=True))
    for profile, labels, unaware in zip(
        everybody.codes.tolist(), seeing, blind, strict=True
    ):
        both = np.array(
            [
                [probability[(z + 6 * y, *profile[1:])] for z in range(6)]
                for y in range(3)
            ]
        )
        np.testing.assert_allclose(
            labels, both[:, profile[0]] / both[:, profile[0]].sum(), rtol=1e-9
        )
        np.testing.assert_allclose(unaware, both.sum(axis=1) / both.sum(), rtol=1e-9)


def test_a_classifier_learns_each_person_with_each_outcome_by_weight():
    frame = some_frame()
    people = people_of(frame)
    learner = LogisticRegression(max_iter=2000, tol=1e-10)
    predict = ScikitLabeller(people.inputs.roles, learner).learn(
        people.lesson(people.size)
    )
    # every level, in order of the columns
    inputs = pd.get_dummies(frame.drop(columns="y").astype(str)).astype(float)
    model = LogisticRegression(max_iter=2000, tol=1e-10).fit(inputs, frame["y"])
    np.testing.assert_allclose(
        predict(people.inputs), model.predict_proba(inputs), atol=1e-4
    )


@pytest.mark.more
@pytest.mark.parametrize(
    "model",
    [None, LogisticRegression(max_iter=2000), "tree"],
    ids=["boosting", "logistic", "tree"],
)
def test_a_blind_model_does_not_see_the_protected_columns(model):
    frame = some_frame().assign(y=lambda frame: np.where(frame["z"] == "g0", "p", "n"))
    people = people_of(frame)
    for blind in (False, True):
        held_out = cross_fit(
            choose_labeller(people.inputs.roles, model, blind=blind), people
        )
        auc = roc_auc_score(people.outcome[held_out.record], held_out.chances[:, 1])
        assert auc < 0.65 if blind else auc > 0.95


def test_an_outcome_that_a_lesson_lacks_gets_zero():
    people = people_of(some_frame())
    lacking = Lesson(people.inputs, np.tile([0.5, 0.0, 0.5], (300, 1)))
    for model in (None, LogisticRegression()):
        labeller = choose_labeller(people.inputs.roles, model)
        predicted = labeller.learn(lacking)(people.inputs)
        assert predicted.shape == (300, 3)
        assert (predicted[:, 1] == 0).all()
        np.testing.assert_allclose(predicted.sum(axis=1), 1)


def test_inputs_by_hand():
    columns = {
        "colour": ["red", "blue", None, "red"] * 3,
        "y": ["n", "p", "n", "p"] * 3,
    }
    frame = pd.DataFrame(
        columns | {"age": [1.0, 2.0, None, 3.0] * 3, "z": ["a", "b", "a", "b"] * 3}
    )
    people = people_of(
        frame, protected=("z",), domain=Domain.infer(frame, kinds={"age": "numeric"})
    )
    four = people.inputs.take(slice(4))
    # colour: blue, red, missing; z: a, b
    np.testing.assert_array_equal(
        four.matrix(blind=False, with_categories=True),
        [[1, 1, 0], [0, 2, 1], [2, np.nan, 0], [1, 3, 1]],
    )
    np.testing.assert_array_equal(
        four.matrix(blind=True, with_categories=True),
        [[1, 1], [0, 2], [2, np.nan], [1, 3]],
    )
    spread = np.sqrt(2 / 3)  # of 1, 2, 3
    low, high = -1 / spread, 1 / spread
    expected = [
        [0, 1, 0, low, 0, 1, 0],
        [1, 0, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 1, 1, 0],
        [0, 1, 0, high, 0, 0, 1],
    ]
    np.testing.assert_allclose(
        four.matrix(blind=False, with_categories=False), expected, atol=1e-12
    )
    np.testing.assert_allclose(
        four.matrix(blind=True, with_categories=False),
        np.array(expected)[:, :5],
        atol=1e-12,
    )


def test_models_see_raw_numbers_and_bins_where_there_are_none():
    rng = np.random.default_rng(2)
    columns = {
        "n": rng.normal(size=500),
        "z": rng.choice(["a", "b"], 500),
        "y": rng.choice(["n", "p"], 500),
    }
    frame = pd.DataFrame(columns)
    people = people_of(frame, protected=("z",))
    np.testing.assert_array_equal(people.inputs.numbers[0], frame["n"])
    counted = people_of(frame, protected=("z",), rows=False)
    attribute = counted.inputs.roles.domain.attributes[0]
    assert len(np.unique(counted.inputs.numbers[0])) == attribute.size < 30
    means = (
        pd.Series(people.inputs.numbers[0]).groupby(people.inputs.levels[:, 0]).mean()
    )
    np.testing.assert_allclose(
        counted.inputs.numbers[0], means[counted.inputs.levels[:, 0]]
    )


def test_without_scikit_learn_there_is_the_tree(monkeypatch):
    roles, _, _ = profiles_of(some_frame())
    assert labellers.name_of(choose_labeller(roles)) == "gradient boosting"
    assert (
        labellers.name_of(choose_labeller(roles, LogisticRegression()))
        == "LogisticRegression"
    )
    monkeypatch.setattr(labellers, "has_library", lambda name: False)
    assert isinstance(choose_labeller(roles), TreeLabeller)
    assert labellers.name_of(choose_labeller(roles)) == "rooted tree"


def test_boosting_knows_which_columns_are_categories(monkeypatch):
    """Words are categories, numbers have an order, and more levels than boosting can
    take are taken in order.
    """
    rng, rows = np.random.default_rng(4), 900
    columns = {
        "word": rng.choice(list("abcd"), rows),
        "age": rng.integers(18, 80, rows),
    }
    columns["town"] = [f"t{code:03}" for code in rng.permutation(np.arange(rows) % 300)]
    frame = pd.DataFrame(
        columns | {"z": rng.choice(["f", "m"], rows), "y": rng.choice(["n", "p"], rows)}
    )
    people = people_of(
        frame, protected=("z",), domain=Domain.infer(frame, max_levels=400)
    )
    models = []
    fit = classifier._fit

    def spying(model, *rest):
        models.append(model)
        fit(model, *rest)

    monkeypatch.setattr(classifier, "_fit", spying)
    ScikitLabeller(people.inputs.roles, None).learn(people.lesson(people.size))
    # word, age, town, z
    assert models[0].categorical_features == [True, False, False, True]


@pytest.mark.more
def test_the_last_digits_of_the_weights_change_no_rule_of_a_boosting():
    """They differ between kinds of machines, and so would the labels."""
    rng = np.random.default_rng(8)
    frame = some_frame(seed=8, rows=400, outcomes=2).assign(x=rng.normal(size=400))
    domain = Domain.infer(frame)
    people, roles = people_of(frame, domain=domain), Roles.of(domain, "y", ["z", "w"])
    chance = rng.uniform(0.1, 0.9, len(people.profiles.counts))[people.profile]
    lesson = Lesson(people.inputs, np.column_stack([chance, 1 - chance]))
    expected = ScikitLabeller(roles, None).learn(lesson)(people.inputs)
    for _ in range(2):
        noisy = replace(
            lesson,
            weights=lesson.weights
            * (1 + 1e-14 * rng.standard_normal(lesson.weights.shape)),
        )
        assert np.array_equal(
            ScikitLabeller(roles, None).learn(noisy)(people.inputs), expected
        )
