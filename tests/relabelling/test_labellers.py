"""Labellers: what they learn from, that they never label what they learned from, and Bayes' rule for the tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairmaxent.relabelling.labellers as labellers
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.errors import InputError
from fairmaxent.fit.problem import compress
from fairmaxent.relabelling.labellers import (
    ScikitLabeller,
    TreeLabeller,
    choose_labeller,
    cross_fit,
    deal,
    dummies,
    ordinals,
)
from fairmaxent.relabelling.profiles import Profiles
from oracle import dense, points


def some_frame(seed=0, rows=300, outcomes=3):
    rng = np.random.default_rng(seed)
    y, a = rng.integers(0, outcomes, rows), rng.integers(0, 4, rows)
    return pd.DataFrame(
        {
            "a": [f"a{c}" for c in (a + y) % 4],
            "z": [f"g{c}" for c in rng.choice(3, rows, p=[0.5, 0.3, 0.2])],
            "y": [f"o{c}" for c in y],
            "b": rng.random(rows) < 0.2 + 0.2 * y,
            "w": [f"g{c}" for c in rng.integers(0, 2, rows)],
        }
    )


def profiles_of(frame, outcome="y", protected=("z", "w"), weights=None):
    domain = Domain.infer(frame)
    roles = Roles.of(domain, outcome, list(protected))
    table = compress(roles, domain.encode(frame), weights)
    return roles, table, Profiles.of(table, roles.blocks, table.counts)


class Spy:
    """Remembers the profiles that each model learned from and was asked about."""

    def __init__(self):
        self.calls = []

    def learn(self, codes, weights):
        taught = {tuple(row) for row in codes.tolist()}

        def predict(asked):
            self.calls.append((taught, {tuple(row) for row in asked.tolist()}))
            return np.tile(weights.sum(axis=0) / weights.sum(), (len(asked), 1))

        return predict


# ---------------------------------------------------------------- profiles


def test_profiles_count_what_a_group_by_counts():
    frame = some_frame()
    roles, _, profiles = profiles_of(frame)
    counted = frame.groupby(["z", "w", "a", "b", "y"]).size().unstack("y", fill_value=0)
    assert len(profiles.codes) == len(counted)
    np.testing.assert_array_equal(profiles.counts, counted.to_numpy())  # both in lexicographic order, root first
    assert roles.blocks.shape(0) == (3, 3, 2)
    np.testing.assert_array_equal(profiles.mass, counted.sum(axis=1))
    levels = counted.index.to_frame(index=False)
    np.testing.assert_array_equal(profiles.groups, 2 * levels["z"].str[1].astype(int) + levels["w"].str[1].astype(int))


def test_profiles_with_an_outcome_are_the_rows_again():
    _, table, profiles = profiles_of(some_frame())
    outcomes = profiles.counts.shape[1]
    rows = profiles.labelled().reshape(outcomes, len(profiles.codes), -1)
    np.testing.assert_array_equal(rows[profiles.outcomes, profiles.profile_of_row], table.codes)
    flat = profiles.labelled()
    assert sorted(map(tuple, flat.tolist())) == [tuple(row) for row in flat.tolist()]


def test_a_row_finds_its_profile_whatever_its_outcome():
    _, table, profiles = profiles_of(some_frame())
    np.testing.assert_array_equal(profiles.find(table.codes), profiles.profile_of_row)
    everyone = np.arange(len(profiles.codes))
    np.testing.assert_array_equal(profiles.find(profiles.labelled()), np.tile(everyone, profiles.counts.shape[1]))
    _, _, some = profiles_of(some_frame().query("a != 'a0'").reset_index(drop=True))
    assert (some.find(some.labelled()) >= 0).all()


# ---------------------------------------------------------------- cross-fitting


def test_no_model_labels_a_profile_that_it_learned_from():
    _, _, profiles = profiles_of(some_frame())
    spy = Spy()
    soft = cross_fit(spy, profiles)
    everybody = {tuple(row) for row in profiles.codes.tolist()}
    assert len(spy.calls) == labellers.FOLDS
    for taught, asked in spy.calls:
        assert not taught & asked
        assert taught | asked == everybody
    assert sum(len(asked) for _, asked in spy.calls) == len(everybody)
    np.testing.assert_allclose(soft.sum(axis=1), 1)


def test_folds_are_alike():
    _, _, profiles = profiles_of(some_frame(rows=2000))
    fold = deal(profiles, 5)
    sizes = np.bincount(fold, minlength=5)
    assert np.ptp(sizes) <= 1
    likeliest = np.argmax(profiles.counts, axis=1)
    for kind in set(zip(profiles.groups, likeliest, strict=True)):
        alike = (profiles.groups == kind[0]) & (likeliest == kind[1])
        assert np.ptp(np.bincount(fold[alike], minlength=5)) <= 1
    np.testing.assert_array_equal(fold, deal(profiles, 5))


def test_too_few_profiles_are_refused():
    frame = pd.DataFrame({"z": ["a", "b"] * 20, "y": ["n", "n", "p"] * 13 + ["p"]})
    _, _, profiles = profiles_of(frame, protected=("z",))
    with pytest.raises(
        InputError, match="2 distinct profiles are too few to learn from in 5 folds; use relabel=None and estimate=None"
    ):
        deal(profiles, 5)


# ---------------------------------------------------------------- models


def test_the_tree_labels_by_bayes_rule(monkeypatch):
    frame = some_frame()
    roles, _, profiles = profiles_of(frame)
    built = []

    def spying(*arguments, **options):
        built.append(original(*arguments, **options))
        return built[-1]

    original = labellers.build_base
    monkeypatch.setattr(labellers, "build_base", spying)
    predicted = TreeLabeller(roles.blocks).learn(profiles.codes, profiles.counts)(profiles.codes)
    grid, joint = points(roles.blocks.levels), dense(built[0])
    probability = dict(zip(map(tuple, grid.tolist()), joint, strict=True))
    for profile, labels in zip(profiles.codes.tolist(), predicted, strict=True):
        both = np.array([probability[(profile[0] + 6 * y, *profile[1:])] for y in range(3)])
        np.testing.assert_allclose(labels, both / both.sum(), rtol=1e-9)


def test_a_classifier_learns_each_profile_with_each_outcome_by_weight():
    frame = some_frame()
    roles, _, profiles = profiles_of(frame)
    predict = ScikitLabeller(roles, LogisticRegression(max_iter=2000, tol=1e-10)).learn(profiles.codes, profiles.counts)
    inputs = pd.get_dummies(frame.drop(columns="y").astype(str)).astype(float)  # every level, in order of the columns
    model = LogisticRegression(max_iter=2000, tol=1e-10).fit(inputs, frame["y"])
    distinct = inputs.drop_duplicates()
    codes = roles.blocks.pool(Domain.infer(frame).encode(frame.loc[distinct.index]))
    codes[:, 0] %= 6
    np.testing.assert_allclose(predict(codes), model.predict_proba(distinct), atol=1e-4)


def test_a_fold_of_a_single_outcome_is_certain():
    roles, _, profiles = profiles_of(some_frame())
    only = np.zeros_like(profiles.counts)
    only[:, 2] = profiles.mass
    predicted = ScikitLabeller(roles, LogisticRegression()).learn(profiles.codes, only)(profiles.codes[:4])
    np.testing.assert_array_equal(predicted, np.tile([0.0, 0.0, 1.0], (4, 1)))


def test_an_outcome_that_a_fold_lacks_gets_zero():
    roles, _, profiles = profiles_of(some_frame())
    lacking = profiles.counts.copy()
    lacking[:, 1] = 0
    for labeller in (choose_labeller(roles), choose_labeller(roles, LogisticRegression())):
        predicted = labeller.learn(profiles.codes, lacking)(profiles.codes)
        assert predicted.shape == profiles.counts.shape
        assert (predicted[:, 1] == 0).all()
        np.testing.assert_allclose(predicted.sum(axis=1), 1)


# ---------------------------------------------------------------- inputs


def test_inputs_by_hand():
    frame = pd.DataFrame(
        {
            "colour": ["red", "blue", None, "red"] * 3,
            "y": ["n", "p", "n", "p"] * 3,
            "age": [1.0, 2.0, None, 3.0] * 3,
            "z": ["a", "b", "a", "b"] * 3,
        }
    )
    domain = Domain.infer(frame, kinds={"age": "numeric"})
    roles = Roles.of(domain, "y", ["z"])
    codes = roles.blocks.pool(domain.encode(frame.head(4)))
    codes[:, 0] %= 2
    # colour: blue, red, missing; age: 1, 2, 3, missing; z: a, b
    np.testing.assert_array_equal(ordinals(roles, codes), [[1, 0, 0], [0, 1, 1], [2, np.nan, 0], [1, 2, 1]])
    spread = np.sqrt(2 / 4)  # of 1, 2, 3 and the missing at their mean
    np.testing.assert_allclose(
        dummies(roles, codes),
        [
            [0, 1, 0, -1 / spread, 0, 1, 0],
            [1, 0, 0, 0, 0, 0, 1],
            [0, 0, 1, 0, 1, 1, 0],
            [0, 1, 0, 1 / spread, 0, 0, 1],
        ],
        atol=1e-12,
    )


def test_without_scikit_learn_there_is_the_tree(monkeypatch):
    roles, _, _ = profiles_of(some_frame())
    assert labellers.name_of(choose_labeller(roles)) == "gradient boosting"
    assert labellers.name_of(choose_labeller(roles, LogisticRegression())) == "LogisticRegression"
    monkeypatch.setattr(labellers, "has_library", lambda name: False)
    assert isinstance(choose_labeller(roles), TreeLabeller)
    assert labellers.name_of(choose_labeller(roles)) == "rooted tree"


def test_boosting_knows_which_columns_are_categories():
    """Words are categories, numbers have an order, and more levels than boosting can take are taken in order."""
    rng = np.random.default_rng(4)
    rows = 900
    frame = pd.DataFrame(
        {
            "word": rng.choice(list("abcd"), rows),
            "age": rng.integers(18, 80, rows),
            "town": [f"t{code:03}" for code in rng.permutation(np.arange(rows) % 300)],
            "z": rng.choice(["f", "m"], rows),
            "y": rng.choice(["n", "p"], rows),
        }
    )
    roles = Roles.of(Domain.infer(frame, max_levels=400), "y", ["z"])
    model, _ = ScikitLabeller(roles, None)._boosting()
    assert dict(zip(["word", "age", "town", "z"], model.categorical_features, strict=True)) == {
        "word": True, "age": False, "town": False, "z": True,
    }  # fmt: skip
