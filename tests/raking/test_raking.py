"""A raking and its outputs: weights, tables, rows, a distribution, replicates and the
certificate.
"""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent

RNG = np.random.default_rng(0)
ROWS = 400
COLUMNS = {"person": [f"id-{number:06}" for number in range(ROWS)]}
COLUMNS["sex"] = RNG.choice(["F", "M"], ROWS, p=[0.3, 0.7])
COLUMNS["age"] = RNG.choice(["young", "middle", "old"], ROWS, p=[0.6, 0.3, 0.1])
FRAME = pl.DataFrame(
    COLUMNS | {"income": RNG.gamma(3, 1000, ROWS), "design": RNG.gamma(4, size=ROWS)}
)
MARGINS = {
    "sex": {"F": 0.51, "M": 0.49},
    "age": {"young": 0.3, "middle": 0.4, "old": 0.3},
}


@pytest.fixture(scope="module", params=["polars", "pandas", "pyarrow"])
def frame(request):
    return {"polars": FRAME, "pandas": FRAME.to_pandas(), "pyarrow": FRAME.to_arrow()}[
        request.param
    ]


def shares(frame, weights, column):
    table = pd.DataFrame({"level": np.asarray(frame[column]), "w": np.asarray(weights)})
    return (table.groupby("level")["w"].sum() / table["w"].sum()).to_dict()


def test_weights_and_weighed_tables(frame):
    raking = fairmaxent.rake(frame, MARGINS, weight="design")
    weighed = raking.weigh(frame)
    assert type(weighed) is type(frame)
    assert np.allclose(
        np.asarray(weighed["raked_weight"]), raking.weights(), rtol=0, atol=0
    )
    for column, wanted in MARGINS.items():
        assert shares(frame, raking.weights(), column) == pytest.approx(
            wanted, abs=1e-12
        )
    assert raking.weights().mean() == pytest.approx(1)


def test_rows_may_come_in_any_order_and_with_any_index_but_no_others():
    raking = fairmaxent.rake(FRAME, MARGINS, weight="design")
    shuffled = FRAME.sample(fraction=1.0, shuffle=True, seed=1)
    weights = dict(zip(FRAME["person"], raking.weights(), strict=True))
    weighed = raking.weigh(shuffled, weight_name="w")
    assert dict(zip(weighed["person"], weighed["w"], strict=True)) == pytest.approx(
        weights
    )
    pandas = FRAME.to_pandas().set_index("person", drop=False)
    result = fairmaxent.rake(pandas, MARGINS, weight="design").weigh(pandas)
    assert list(result.index) == list(pandas.index)
    assert result["raked_weight"].to_dict() == pytest.approx(weights)
    raking = fairmaxent.rake(
        FRAME.filter((pl.col("sex") == "F") | (pl.col("age") != "old")), MARGINS
    )
    with pytest.raises(fairmaxent.InputError, match="was not in the raked table"):
        raking.weigh(FRAME)
    with pytest.raises(
        fairmaxent.errors.ColumnError, match="already has a column 'income'"
    ):
        fairmaxent.rake(FRAME, MARGINS).weigh(FRAME, weight_name="income")


def test_rows_drawn_by_quota_have_the_margins(frame):
    raking = fairmaxent.rake(frame, MARGINS, weight="design", random_state=3)
    rows = raking.sample(1000)
    assert type(rows) is type(frame)
    names = list(
        rows.columns
        if hasattr(rows, "columns") and not hasattr(rows, "column_names")
        else rows.column_names
    )
    assert names == ["sex", "age", "income", "design"]  # without the identifier
    assert set(np.asarray(rows["design"])) == {1.0}
    assert shares(rows, np.ones(1000), "sex") == pytest.approx(MARGINS["sex"], abs=2e-3)
    assert shares(rows, np.ones(1000), "age") == pytest.approx(MARGINS["age"], abs=2e-3)
    assert set(np.asarray(rows["income"])) <= set(FRAME["income"])
    again = raking.sample(1000)
    assert (np.asarray(rows["income"]) == np.asarray(again["income"])).all()
    women = raking.sample(50, given={"sex": "F"})
    assert set(np.asarray(women["sex"])) == {"F"}


def test_rows_are_drawn_as_often_as_they_weigh():
    raking = fairmaxent.rake(FRAME, MARGINS, weight="design")
    rows = raking.sample(200_000, random_state=0)
    counted = (
        rows.group_by("income")
        .len()
        .join(FRAME.with_columns(w=raking.weights()), on="income", how="right")
    )
    expected = counted["w"] / ROWS * 200_000
    errors = (counted["len"].fill_null(0) - expected) / expected.sqrt()
    assert float(errors.abs().max()) < 5


def test_the_distribution_has_the_margins(frame):
    distribution = fairmaxent.rake(frame, MARGINS, weight="design").distribution
    marginal = distribution.marginal("age")
    assert dict(
        zip(
            np.asarray(marginal["age"]),
            np.asarray(marginal["probability"]),
            strict=True,
        )
    ) == pytest.approx(MARGINS["age"], abs=1e-9)
    weights = fairmaxent.rake(frame, MARGINS, weight="design").weights()
    mean = float(np.average(np.asarray(FRAME["income"]), weights=weights))
    assert distribution.expectation("income") == pytest.approx(mean, rel=1e-9)


def test_the_certificate_is_what_the_weights_show():
    raking = fairmaxent.rake(FRAME, MARGINS, weight="design")
    certificate, weights = raking.certificate, raking.weights()
    assert certificate.largest_error < 1e-12
    assert certificate.design_effect == pytest.approx(
        ROWS * (weights**2).sum() / weights.sum() ** 2
    )
    assert certificate.effective_rows == pytest.approx(
        weights.sum() ** 2 / (weights**2).sum()
    )
    assert certificate.weights == pytest.approx((weights.min(), weights.max()))
    factors = weights / (FRAME["design"] / FRAME["design"].mean()).to_numpy()
    assert certificate.factors == pytest.approx((factors.min(), factors.max()))
    sex, age = certificate.margins
    assert [level.level for level in age.levels] == ["middle", "old", "young"]
    for level in sex.levels:
        chosen = weights[(FRAME["sex"] == level.level).to_numpy()]
        assert level.rows == len(chosen)
        assert level.effective_rows == pytest.approx(
            chosen.sum() ** 2 / (chosen**2).sum()
        )
        design = FRAME.filter(pl.col("sex") == level.level)["design"]
        assert level.before == pytest.approx(design.sum() / FRAME["design"].sum())
    record = json.loads(json.dumps(certificate.to_dict()))
    assert record["largest_error"] == certificate.largest_error
    assert "design effect" in str(certificate)
    assert repr(raking).startswith("<Raking of 400 rows>")


def test_replicates_have_the_margins_and_vary_like_new_surveys():
    raking = fairmaxent.rake(
        FRAME, MARGINS, weight="design", replicates=60, random_state=1
    )
    replicates = raking.replicate_weights()
    assert replicates.shape == (ROWS, 60)
    for weights in replicates.T[:10]:
        for column, wanted in MARGINS.items():
            assert shares(FRAME, weights, column) == pytest.approx(wanted, abs=1e-9)
        assert 0.3 < (weights == 0).mean() < 0.45  # e^-1 of the rows are not drawn
    # The variance of a mean, against the usual formula for residuals of independent
    # rows.
    income, weights = FRAME["income"].to_numpy(), raking.weights()
    mean = np.average(income, weights=weights)
    bootstrap = np.mean(
        [(np.average(income, weights=column) - mean) ** 2 for column in replicates.T]
    )
    cells = (
        FRAME.with_columns(cell=pl.concat_str("sex", "age"))["cell"]
        .to_physical()
        .to_numpy()
    )
    residual = income - np.array(
        [
            np.average(income[cells == cell], weights=weights[cells == cell])
            for cell in cells
        ]
    )
    formula = ((weights * residual) ** 2).sum() / weights.sum() ** 2
    assert 0.6 < np.sqrt(bootstrap / formula) < 1.5


def test_replicates_are_the_same_for_a_seed_come_with_the_table_and_none_misses_a_level():
    first, second, other = (
        fairmaxent.rake(
            FRAME, MARGINS, replicates=3, random_state=seed
        ).replicate_weights()
        for seed in (1, 1, 2)
    )
    assert (first == second).all()
    assert not (first == other).all()
    raking = fairmaxent.rake(
        FRAME, {"sex": {"F": 510, "M": 490}}, replicates=2, random_state=1
    )
    weighed = raking.weigh(FRAME, weight_name="w")
    assert weighed.columns[-3:] == ["w", "w_1", "w_2"]
    assert weighed["w_2"].sum() == pytest.approx(1000)
    with pytest.raises(fairmaxent.InputError, match="same order"):
        raking.weigh(FRAME.reverse())
    frame = pl.DataFrame({"sex": ["F"] * 2 + ["M"] * 30})
    raking = fairmaxent.rake(
        frame, {"sex": {"F": 0.5, "M": 0.5}}, replicates=50, random_state=0
    )
    assert "could not have the margins" in raking.certificate.notes[-1]
    sums = raking.replicate_weights()[:2].sum(axis=0)
    assert sums == pytest.approx(np.full(50, 16))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("replicates", value) for value in (-1, 1.5, True, "many")),
        *(("random_state", s) for s in (-1, "one", 1.5)),
    ],
)
def test_options_that_make_no_sense_are_refused(option, value):
    with pytest.raises(fairmaxent.InputError, match=option):
        fairmaxent.rake(FRAME, MARGINS, **{option: value})


def engines():
    yield "polars", FRAME.lazy()
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    yield "duckdb", duckdb.from_arrow(FRAME.to_arrow())
    dask = pytest.importorskip("dask", reason="dask is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    with dask.config.set(scheduler="synchronous"):  # whatever cluster another test had
        yield "dask", frames.from_pandas(FRAME.to_pandas(), npartitions=3)


def collected(lazy):
    for method in ("collect", "pl", "compute"):
        if hasattr(lazy, method):
            result = getattr(lazy, method)()
            return (
                result if isinstance(result, pl.DataFrame) else pl.from_pandas(result)
            )
    raise TypeError(type(lazy))


@pytest.mark.more
@pytest.mark.parametrize("weight", [None, "design"])
def test_lazy_frames_are_raked_where_they_are(weight):
    usual = fairmaxent.rake(FRAME, MARGINS, weight=weight, bounds=(0.2, 6))
    expected = dict(zip(FRAME["person"], usual.weights(), strict=True))
    for engine, lazy in engines():
        raking = fairmaxent.rake(lazy, MARGINS, weight=weight, bounds=(0.2, 6))
        weighed = collected(raking.weigh(lazy))
        assert dict(
            zip(weighed["person"], weighed["raked_weight"], strict=True)
        ) == pytest.approx(expected), engine
        assert raking.certificate.design_effect == pytest.approx(
            usual.certificate.design_effect
        )
        assert raking.certificate.weights == pytest.approx(usual.certificate.weights)
        with pytest.raises(fairmaxent.InputError, match="an engine counted the rows"):
            raking.weights()
        with pytest.raises(fairmaxent.InputError, match="replicates"):
            fairmaxent.rake(lazy, MARGINS, replicates=2)


def test_rows_are_drawn_from_a_lazy_frame_and_its_missing_values_are_the_same():
    rows = fairmaxent.rake(FRAME.lazy(), MARGINS, weight="design").sample(
        500, random_state=0
    )
    assert rows.columns == ["sex", "age", "income", "design"]
    assert shares(rows, np.ones(500), "age") == pytest.approx(MARGINS["age"], abs=3e-3)
    frame = FRAME.with_columns(
        age=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("age"))
    )
    frame = frame.with_columns(
        code=pl.when(pl.col("sex") == "F").then(float("nan")).otherwise(1.0)
    )
    margins = {"age": MARGINS["age"], "code": {1.0: 0.6, None: 0.4}}
    usual = fairmaxent.rake(frame, margins)
    weighed = fairmaxent.rake(frame.lazy(), margins).weigh(frame.lazy()).collect()
    assert weighed["raked_weight"].to_list() == pytest.approx(usual.weights().tolist())


def test_rows_of_weight_zero_stay_at_zero_and_one_beside_which_a_level_vanishes_is_refused():
    frame = FRAME.with_columns(
        design=pl.when(pl.int_range(pl.len()) < 50).then(0.0).otherwise(1.0)
    )
    raking = fairmaxent.rake(frame, MARGINS, weight="design")
    assert (raking.weights()[:50] == 0).all()
    assert raking.certificate.largest_error < 1e-12
    assert raking.weights().mean() == pytest.approx(1)
    frame = FRAME.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(1e50).otherwise(1.0).alias("design")
    )
    with pytest.raises(
        fairmaxent.errors.WeightError,
        match=r"nearly all weight is on other rows .*; check weight",
    ):
        fairmaxent.rake(frame, MARGINS, weight="design")


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_the_scale_of_design_weights_does_not_matter(scale):
    scaled = FRAME.with_columns(pl.col("design") * scale)
    usual = fairmaxent.rake(FRAME, MARGINS, weight="design").weights()
    assert fairmaxent.rake(scaled, MARGINS, weight="design").weights() == pytest.approx(
        usual, rel=1e-12
    )


SURVEY = pl.DataFrame({"sex": ["F"] * 100 + ["M"] * 97 + ["X"] * 3})


@pytest.mark.parametrize(
    ("share", "times"), [(0.18, "12"), (0.016, "1.1"), (0.015, None), (0.01, None)]
)
def test_three_people_are_named_if_their_share_is_raised(share, times):
    certificate = fairmaxent.rake(
        SURVEY, {"sex": {"F": 0.5, "M": 0.5 - share, "X": share}}
    ).certificate
    warning = (
        f"sex = X: {100 * share:.1f}% of the total weight rests on 3 rows, {times}"
        " times as much as before. To avoid this, merge the level with another one, or"
        " let its margin be missed, with bounds and relax."
    )
    assert certificate.warnings == (() if times is None else (warning,))
    assert (warning in str(certificate)) == (times is not None)


def test_only_the_worst_are_named_one_by_one():
    frame = pl.DataFrame(
        {"town": [f"t{k}" for k in range(6) for _ in range(k + 1)] + ["large"] * 500}
    )
    wanted = {f"t{k}": 0.1 for k in range(6)} | {"large": 0.4}
    warnings = fairmaxent.rake(frame, {"town": wanted}).certificate.warnings
    assert [warning.split(":")[0] for warning in warnings[:3]] == [
        "town = t0",
        "town = t1",
        "town = t2",
    ]
    assert "a single row" in warnings[0]
    assert warnings[3:] == (
        (
            "3 more levels were raised beyond the same line: fewer than 30 effective"
            " rows, or 20 times as much."
        ),
    )
