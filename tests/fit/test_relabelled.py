"""Fits that relabel: exact by enumeration of the whole domain, and every output of
them.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairmaxent.fit.relabel
from fairmaxent import InputError, Model, datasets, debias, load
from fairmaxent.fit.pipeline import refit
from tables import EQUAL_PROBABILITIES, rates_of

QUICK = {"model": EQUAL_PROBABILITIES}
AS_THEY_ARE = {**QUICK, "representation_rate": None, "base_share": 0.0}


def discrete_frame(seed, groups=(2,), outcomes=2, rows=240):
    """Biased and small enough to write its whole domain out."""
    rng = np.random.default_rng([seed, *groups, outcomes])
    codes = [
        rng.choice(size, rows, p=rng.dirichlet(np.full(size, 8.0))) for size in groups
    ]
    a, b = rng.integers(0, 4, rows), rng.integers(0, 3, rows)
    lean = np.stack(
        [0.8 * a * y / outcomes + 0.7 * codes[0] * (y == 1) for y in range(outcomes)],
        axis=1,
    )
    y = (lean + rng.gumbel(size=lean.shape)).argmax(axis=1)
    frame = {f"z{i}": [f"g{c}" for c in column] for i, column in enumerate(codes)}
    return pd.DataFrame(
        frame
        | {
            "a": [f"a{c}" for c in a],
            "b": [f"b{c}" for c in b],
            "y": [f"o{c}" for c in y],
        }
    )


def enumerated(fit, frame):
    """Every point of the domain with its probability under p*."""
    levels = [sorted(frame[name].dropna().unique()) for name in frame]
    whole = pd.DataFrame(list(itertools.product(*levels)), columns=frame.columns)
    whole["probability"] = fit.distribution.probability(whole)
    assert whole["probability"].sum() == pytest.approx(1, abs=1e-10)
    return whole


def shares(table, columns, weight="probability"):
    found = table.groupby(columns)[weight].sum()
    return found / found.sum()


def same_shares(left, right, tolerance):
    left, right = left.align(right, fill_value=0.0)
    np.testing.assert_allclose(
        left.to_numpy(), right.to_numpy(), rtol=0, atol=tolerance
    )


def laid_out(fit, frame):
    """weights() as a long table: every row once per outcome."""
    weights, labels = fit.weights(), fit.domain.attribute("y").labels
    return pd.concat(
        [
            frame.assign(y=label, probability=weights[:, y])
            for y, label in enumerate(labels)
        ]
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("groups", "outcomes", "option", "rate"),
    [((4,), 3, "each", 1.0), ((2, 3), 2, "joint", 0.8), ((2, 2), 2, "each", None)],
)
def test_the_fair_table_holds_exactly(groups, outcomes, option, rate):
    frame = discrete_frame(0, groups, outcomes)
    names = [f"z{i}" for i in range(len(groups))]
    groupings = [[name] for name in names] if option == "each" else [names]
    for share, representation in ((0.0, None), (0.5, 0.9)):
        fit = debias(
            frame, "y", names, groups=option, statistical_rate=rate, representation_rate=representation,
            base_share=share, **QUICK,
        )  # fmt: skip
        whole = enumerated(fit, frame)
        for columns in groupings:
            represented, statistical = rates_of(whole, columns, "y")
            assert statistical >= (rate or 0) - 1e-8
            assert represented >= (representation or 0) - 1e-8
        np.testing.assert_allclose(
            shares(whole, ["y", *names]), fit.certificate.table.ravel(), atol=1e-8
        )
        people = frame.assign(n=1.0)
        if rate is None:  # each group keeps its own outcomes
            by_group = shares(whole, ["y", *names]) / shares(whole, names)
            in_data = shares(people, ["y", *names], "n") / shares(people, names, "n")
            same_shares(by_group, in_data, 1e-8)
        else:  # who has it, not how many
            same_shares(shares(whole, ["y"]), shares(people, ["y"], "n"), 1e-8)


@pytest.mark.some(1)
@pytest.mark.parametrize(("groups", "outcomes"), [((2,), 2), ((2, 2, 2), 3)])
def test_nobody_but_the_outcome_changes(groups, outcomes):
    frame = discrete_frame(1, groups, outcomes)
    names = [f"z{i}" for i in range(len(groups))]
    fit = debias(frame, "y", names, **AS_THEY_ARE)
    columns = [*names, "a", "b"]
    same_shares(
        shares(enumerated(fit, frame), columns),
        shares(frame.assign(n=1.0), columns, "n"),
        1e-10,
    )
    np.testing.assert_allclose(fit.weights().sum(axis=1), 1, atol=1e-9)
    assert fit.certificate.effective_rows == pytest.approx(len(frame), rel=1e-9)


def test_with_a_representation_rate_only_the_size_of_the_groups_changes():
    frame = discrete_frame(2, (3,))
    fit = debias(
        frame, "y", "z0", representation_rate=1.0, **QUICK | {"base_share": 0.0}
    )
    whole = enumerated(fit, frame)
    np.testing.assert_allclose(shares(whole, ["z0"]), 1 / 3, atol=1e-9)
    for group, rows in frame.groupby("z0"):
        same_shares(
            shares(whole[whole["z0"] == group], ["a", "b"]),
            shares(rows.assign(n=1.0), ["a", "b"], "n"),
            1e-10,
        )
    expected = len(frame) / (3 * frame.groupby("z0")["y"].transform("size"))
    np.testing.assert_allclose(fit.weights().sum(axis=1), expected, atol=1e-9)
    kish = expected.sum() ** 2 / (expected**2).sum()  # the parts of a row are one row
    assert fit.certificate.effective_rows == pytest.approx(kish, rel=1e-9)


@pytest.mark.more
def test_real_data():
    data = datasets.load("german")
    protected = list(data.protected)[:1]
    fit = debias(data.frame, data.outcome, protected, **AS_THEY_ARE)
    assert fit.certificate.achieved["statistical_rate"][protected[0]] == pytest.approx(
        1, abs=1e-8
    )
    np.testing.assert_allclose(fit.weights().sum(axis=1), 1, rtol=0, atol=1e-8)
    fair = np.exp(fit.distribution.density.log_probability(fit.weighted.codes))
    cells = np.bincount(
        fit.weighted.codes[:, 0], weights=fair, minlength=fit.certificate.table.size
    )
    np.testing.assert_allclose(cells, fit.certificate.table.ravel(), atol=1e-8)
    same_shares(
        by_profile(fit, fit.weighted.codes, fair),
        by_profile(fit, fit.table.codes, fit.table.counts),
        1e-10,
    )


def by_profile(fit, codes, mass):
    """p(x, z) by group-by."""
    table = pd.DataFrame(codes.astype(int)).assign(mass=mass)
    table[0] %= fit.certificate.table[0].size
    return shares(table, list(range(codes.shape[1])), "mass")


def test_weights_are_the_distribution_on_the_rows():
    frame = discrete_frame(3, (2,), 3)
    rng = np.random.default_rng(3)
    frame["w"] = rng.integers(0, 4, len(frame)) / 2
    fit = debias(frame, "y", "z0", weight="w", **QUICK | {"base_share": 0.0})
    weights = fit.weights()
    assert weights.shape == (len(frame), 3)
    assert weights.sum() == pytest.approx(len(frame), abs=1e-6)
    assert (weights[frame["w"] == 0] == 0).all()
    columns = ["z0", "a", "b", "y"]
    same_shares(
        shares(laid_out(fit, frame), columns),
        shares(enumerated(fit, frame.drop(columns="w")), columns),
        1e-9,
    )


@pytest.mark.more
def test_a_missing_outcome_is_a_level_if_it_is_compared_and_otherwise_stays_as_common_as_it_is():
    frame = discrete_frame(9)
    frame.loc[::7, "y"] = None
    fit = debias(frame, "y", "z0", compare_missing=True, **AS_THEY_ARE)
    table = np.array(
        [fit.weights()[frame["z0"] == group].mean(axis=0) for group in ("g0", "g1")]
    )
    np.testing.assert_allclose(table[0], table[1], atol=1e-8)
    assert fit.sample(70, random_state=0)["y"].isna().any()
    assert (
        fit.weigh(frame.assign(old=frame["y"]))
        .query("old.isna() != y.isna()")["fair_weight"]
        .sum()
        > 1
    )
    weights, rates = debias(frame, "y", "z0", **AS_THEY_ARE).weights(), []
    assert weights.shape == (len(frame), 3)
    for group in ("g0", "g1"):
        *known, missing = weights[frame["z0"] == group].mean(axis=0)
        assert missing == pytest.approx(
            frame["y"][frame["z0"] == group].isna().mean(), abs=1e-8
        )
        rates.append(np.array(known) / np.sum(known))
    np.testing.assert_allclose(rates[0], rates[1], atol=1e-8)
    np.testing.assert_allclose(
        rates[0], frame["y"].value_counts(normalize=True).sort_index(), atol=1e-8
    )


def test_save_and_load(tmp_path):
    frame = discrete_frame(11, (2,), 3)
    fit = debias(frame, "y", "z0", **QUICK)
    fit.save(tmp_path / "fit")
    back = load(tmp_path / "fit")
    np.testing.assert_array_equal(back.weights(), fit.weights())
    np.testing.assert_array_equal(back.soft, fit.soft)
    assert str(back.certificate) == str(fit.certificate)
    pd.testing.assert_frame_equal(
        back.sample(50, random_state=1), fit.sample(50, random_state=1)
    )
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "fit").read_bytes()


@pytest.mark.some(1)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_drawn_rows_and_a_topped_up_table_are_fair(share):
    frame = discrete_frame(12, (2,), 2)
    fit = debias(frame, "y", "z0", random_state=0, **QUICK | {"base_share": share})
    drawn = fit.sample(1000).groupby(["y", "z0"]).size()
    assert (np.abs(drawn - 1000 * fit.certificate.table.ravel()) <= 1).all()
    whole = pd.concat([frame, fit.top_up()])
    cells = whole.groupby(["y", "z0"]).size()
    assert (np.abs(cells - len(whole) * fit.certificate.table.ravel()) <= 1).all()


@pytest.mark.more
def test_a_lazy_table_gives_the_same_fit():
    frame = discrete_frame(13, (2,), 3)
    fits = [
        debias(table, "y", "z0", **QUICK)
        for table in (pl.from_pandas(frame), pl.from_pandas(frame).lazy())
    ]
    np.testing.assert_allclose(
        fits[1].weighted.counts, fits[0].weighted.counts, atol=1e-12
    )
    np.testing.assert_allclose(
        fits[1].certificate.table, fits[0].certificate.table, atol=1e-12
    )
    with pytest.raises(InputError, match="weighs tables in memory only"):
        fits[1].weigh(pl.from_pandas(frame).lazy())


@pytest.mark.more
def test_fitting_again_with_other_rates_keeps_the_soft_labels(monkeypatch):
    frame = discrete_frame(14, (3,))
    fit = debias(frame, "y", "z0", representation_rate=1.0, **QUICK)
    # nothing is learned again
    monkeypatch.setattr(fairmaxent.fit.relabel, "cross_fit", None)
    again = refit(
        fit, replace(fit.request, statistical_rate=0.8, representation_rate=None)
    )
    monkeypatch.undo()
    anew = debias(
        frame, "y", "z0", **QUICK, statistical_rate=0.8, representation_rate=None
    )
    np.testing.assert_allclose(
        again.certificate.table, anew.certificate.table, atol=1e-8
    )
    np.testing.assert_allclose(again.soft, fit.soft, rtol=1e-14)


@pytest.mark.more
@pytest.mark.parametrize("name", ["boosting", "decision tree"])
def test_any_named_model_may_label(name):
    frame = discrete_frame(15, (2,), 3)
    model = Model(name, parity="probabilities")
    fit = debias(frame, "y", "z0", **AS_THEY_ARE | {"model": model})
    assert rates_of(laid_out(fit, frame), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)
    np.testing.assert_allclose(fit.weights().sum(axis=1), 1, atol=1e-9)
    assert fit.soft.min() > 0


@pytest.mark.more
def test_a_model_without_a_name_is_logistic():
    frame = discrete_frame(16)
    unnamed = debias(
        frame, "y", "z0", **AS_THEY_ARE | {"model": Model(parity="probabilities")}
    )
    named = debias(frame, "y", "z0", **AS_THEY_ARE)
    np.testing.assert_array_equal(unnamed.weights(), named.weights())


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"estimator": LogisticRegression()}, "is for a model by name: 'logistic', "),
        (
            {"threshold": 0.4},
            "threshold cannot go together with parity='probabilities'",
        ),
        ({"decided": "best"}, "decided cannot go together"),
        ({"hide_protected": True}, "hide_protected cannot go together"),
    ],
)
def test_what_only_decisions_have_is_refused(plan, message):
    with pytest.raises(InputError, match=message):
        Model(**plan, parity="probabilities")


@pytest.mark.parametrize(
    "asked",
    [
        {"equal_means": True},
        {"largest_weight": 3.0},
        {"outcome": ["y", "a"]},
        {"target": {"a": None}},
        {"forbid": [{"a": "a0"}]},
    ],
)
def test_what_no_model_goes_with_is_refused(asked):
    (name,) = asked
    with pytest.raises(InputError, match=f"{name} cannot go together with model"):
        debias(discrete_frame(17), protected="z0", **QUICK, **{"outcome": "y", **asked})


def test_it_is_split_for_and_not_trained():
    fit = debias(discrete_frame(18), "y", "z0", **QUICK)
    assert fit.certificate.decisions is None
    assert any("split between the outcomes" in line for line in fit.request.words())
    with pytest.raises(InputError, match="no model was trained"):
        fit.model()
