"""Design weights on any scale: the same fit, certificate and metrics as with an average
of 1.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairmaxent
from fairmaxent import Domain, Estimate, debias
from fairmaxent.data.frames import in_range
from fairmaxent.errors import WeightError
from fairmaxent.inspection import inspect
from fairmaxent.report.delivered import deliver
from tables import EQUAL_PROBABILITIES

CLOSE = {"rtol": 1e-12, "atol": 1e-14}
SCALES = (1e-99, 1e99)
PLAIN = LogisticRegression(max_iter=2000, tol=1e-10)


def survey(rows=500):
    """Whole weights, whose sums have ties, and numbers in bins."""
    rng = np.random.default_rng(5)
    sex = rng.choice(["F", "M"], rows)
    weight = rng.integers(1, 6, rows).astype(float)
    columns = {"sex": sex, "race": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])}
    columns["hours"] = rng.normal(40, 10, rows).round(1)
    columns["town"] = rng.choice([f"t{number}" for number in range(90)], rows)
    columns["pay"] = np.where(
        rng.random(rows) < 0.3 + 0.2 * (sex == "M"), "high", "low"
    )
    return pd.DataFrame(columns | {"w": weight / weight.mean()})


def scaled(frame, scale):
    return frame.assign(w=frame["w"] * scale)


def fitted(frame, **options):
    return debias(frame, "pay", ["sex", "race"], weight="w", random_state=1, **options)


def check_equal(fit, unit):
    """The two fits are one."""
    assert [column.labels for column in fit.domain.attributes] == [
        column.labels for column in unit.domain.attributes
    ]
    np.testing.assert_allclose(
        fit.distribution.root_table, unit.distribution.root_table, **CLOSE
    )
    np.testing.assert_allclose(
        fit.table.collect().counts, unit.table.collect().counts, **CLOSE
    )
    ours, theirs = fit.certificate, unit.certificate
    assert ours.effective_rows == pytest.approx(theirs.effective_rows, rel=1e-12)
    assert ours.wanted == theirs.wanted  # None where nothing was asked for
    for kind in ("before", "achieved"):
        for name, rates in getattr(theirs, kind).items():
            assert getattr(ours, kind)[name] == pytest.approx(rates, rel=1e-12)
    for name, distance in theirs.distance.items():
        assert ours.distance[name] == pytest.approx(distance, rel=1e-10, abs=1e-12)
    assert ours.warnings == theirs.warnings
    names = ["sex", "hours", "pay"]
    shares = (
        made.distribution.marginal(names)["probability"].to_numpy()
        for made in (fit, unit)
    )
    np.testing.assert_allclose(*shares, rtol=1e-9, atol=1e-14)


@pytest.fixture(scope="module")
def unit():
    return fitted(survey())


@pytest.mark.some(1)
@pytest.mark.parametrize("scale", SCALES)
def test_in_memory(unit, scale):
    frame = scaled(survey(), scale)
    fit = fitted(frame)
    check_equal(fit, unit)
    weights = fit.weights()
    np.testing.assert_allclose(weights, unit.weights(), rtol=1e-9)
    assert weights.sum() == pytest.approx(len(frame), rel=1e-12)
    weighed = fit.weigh(frame)
    np.testing.assert_allclose(weighed["fair_weight"], weights, **CLOSE)
    np.testing.assert_array_equal(weighed["w"], frame["w"])
    few = frame.iloc[[7, 3, 200]]  # their own average is another one
    np.testing.assert_allclose(
        fit.weigh(few)["fair_weight"], weights[[7, 3, 200]], **CLOSE
    )
    assert fit.sample(300).equals(unit.sample(300))


def test_lazily(unit):
    frame = scaled(survey(), 1e-99)
    fit = fitted(pl.from_pandas(frame).lazy())
    check_equal(fit, fitted(pl.from_pandas(survey()).lazy()))
    np.testing.assert_allclose(
        fit.distribution.root_table, unit.distribution.root_table, **CLOSE
    )
    numbered = pl.from_pandas(frame.assign(row=range(len(frame)))).lazy()
    weighed = fit.weigh(numbered).collect().sort("row")
    np.testing.assert_allclose(weighed["fair_weight"], unit.weights(), rtol=1e-9)
    np.testing.assert_array_equal(weighed["w"], frame["w"])


@pytest.mark.more
@pytest.mark.parametrize("scale", SCALES)
def test_metrics_inspection_and_domain(scale):
    plain, frame = survey(), scaled(survey(), scale)
    chance = np.random.default_rng(0).random(len(plain))
    decided = np.where(chance > 0.5, "high", "low")
    calls = [
        lambda rows: fairmaxent.metrics.representation_rate(
            rows, ["sex", "race"], weight="w"
        ),
        lambda rows: fairmaxent.metrics.representation_rate(
            rows, "race", weight=rows["w"].to_numpy()
        ),
        lambda rows: fairmaxent.metrics.statistical_rate(
            rows, "pay", ["sex", "race"], weight="w"
        ),
        lambda rows: fairmaxent.metrics.equal_opportunity(
            rows, "pay", decided, "sex", favourable="high", weight="w"
        ),
        lambda rows: fairmaxent.metrics.calibration(
            rows, "pay", chance, "sex", favourable="high", weight="w"
        ),
        lambda rows: inspect(rows, "pay", ["sex", "race"], weight="w"),
    ]
    for call in calls:
        same_numbers(call(frame), call(plain))
    ours, theirs = (
        Domain.infer(survey().drop(columns="w"), weight=rows["w"].to_numpy())
        for rows in (frame, plain)
    )
    assert str(ours) == str(theirs)


def same_numbers(ours, theirs):
    """Two results agree in every number, wherever it is."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same_numbers(one, other)
    elif isinstance(theirs, np.ndarray | float | int):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    elif hasattr(theirs, "__dict__") and not isinstance(theirs, type):
        same_numbers(vars(ours), vars(theirs))
    else:
        assert str(ours) == str(theirs)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("weight", [5e-324, 1e-101, 1e101, 1e308])
def test_weights_that_no_sum_can_hold_are_refused(weight, lazily):
    frame = survey(20).assign(w=[1.0] * 19 + [weight])
    with pytest.raises(
        WeightError, match=r"weights must be zero, or from 1e-100 to 1e\+100"
    ):
        fitted(pl.from_pandas(frame).lazy() if lazily else frame)


@pytest.mark.slow
def test_relabelled_rows_and_an_estimate():
    options = {
        "model": EQUAL_PROBABILITIES,
        "estimate": Estimate(output="weights", model=PLAIN),
    }
    fit, unit = (
        fitted(frame, **options) for frame in (scaled(survey(), 1e99), survey())
    )
    check_equal(fit, unit)
    np.testing.assert_allclose(fit.weights(), unit.weights(), rtol=1e-6)
    assert fit.certificate.estimate.after.auc == pytest.approx(
        unit.certificate.estimate.after.auc, rel=1e-6
    )


def test_saved_and_loaded(tmp_path):
    frame = scaled(survey(), 1e99)
    fit = fitted(frame)
    fit.save(tmp_path / "fit.fme")
    loaded = fairmaxent.load(tmp_path / "fit.fme")
    assert loaded.weight_scale == fit.weight_scale
    np.testing.assert_array_equal(loaded.weights(), fit.weights())
    np.testing.assert_array_equal(
        loaded.weigh(frame)["fair_weight"], fit.weigh(frame)["fair_weight"]
    )


def test_added_rows_count_one_beside_the_raw_weights():
    """Weights of 1.5 on average: the old rows count 1.5 each, and the report counts
    them so too.
    """
    frame = survey().assign(w=lambda rows: rows["w"] * 1.5)
    fit = fitted(frame)
    both = pd.concat([frame, fit.top_up()])
    fair = fit.distribution.marginal(["pay", "sex", "race"]).set_index(
        ["pay", "sex", "race"]
    )["probability"]
    mass = (
        both.groupby(["pay", "sex", "race"])["w"]
        .sum()
        .reindex(fair.index, fill_value=0)
    )
    assert (abs(mass - fair * mass.sum()) < 1).all()
    made = deliver(fit, fit.top_up(), mode="top-up", iid=False, seed=None)
    np.testing.assert_allclose(made.table.ravel(), mass / mass.sum(), atol=1e-12)
    with pytest.raises(fairmaxent.errors.WeightError, match=r"1e\+99 on average"):
        fitted(scaled(survey(), 1e99)).top_up()


def test_what_depends_on_ratios_alone_is_brought_in_range_exactly():
    assert in_range(np.array([3.0, 24.0])).tolist() == [3 / 16, 1.5]


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(4))
def test_added_rows_meet_the_fair_table_up_to_one_row_beside_any_weights(seed):
    rng = np.random.default_rng(seed)
    frame = survey().assign(w=lambda rows: rng.uniform(0.3, 2.5, len(rows)))
    fit = fitted(frame)
    both = pd.concat([frame, fit.top_up()])
    names = ["pay", "sex", "race"]
    fair = fit.distribution.marginal(names).set_index(names)["probability"]
    mass = both.groupby(names)["w"].sum().reindex(fair.index, fill_value=0)
    assert (abs(mass - fair * mass.sum()) < 1 + 1e-9).all()
