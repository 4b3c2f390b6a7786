"""A lazy frame gives the fit that the same table in memory gives, whichever engine
holds it.
"""

import datetime as dt
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import fairmaxent
from fairmaxent import Domain, InputError, debias
from fairmaxent.engines import lazy_frame as engine
from fairmaxent.engines.lazy_counts import level_expression
from fairmaxent.engines.lazy_frame import learn_domain
from fairmaxent.errors import ColumnError, LevelError, StorageError, WeightError
from mixed import ROWS, polars_table

duckdb = pytest.importorskip("duckdb")
dask = pytest.importorskip("dask.dataframe", reason="Dask is not installed")


@pytest.fixture(autouse=True)
def _without_a_cluster():
    """Dask computes here, whatever a cluster that another test closed has left in
    Dask's configuration.
    """
    with pytest.importorskip("dask.config").set(scheduler="threads"):
        yield


def table(seed=0):
    """Every kind of column, with gaps, NaN, and weights; some rows are zero by
    weight.
    """
    rng = np.random.default_rng(seed)
    heights = pl.Series("height", rng.normal(1.7, 0.1, ROWS)).set(
        pl.Series(rng.random(ROWS) < 0.05), float("nan")
    )
    income = pl.Series("income", np.where(rng.random(ROWS) < 0.3, "high", "low"))
    weight = pl.Series("weight", rng.integers(0, 4, ROWS) / 2)
    late = pl.Series(
        "late", [dt.timedelta(seconds=int(s)) for s in rng.integers(0, 9999, ROWS)]
    )
    begins = pl.Series(
        "begins",
        [dt.time(int(m) // 60, int(m) % 60) for m in rng.integers(0, 1440, ROWS)],
    )
    return polars_table(seed).with_columns(heights, income, weight, late, begins)


def as_polars(frame):
    return frame.lazy()


def as_duckdb(frame):
    """A connection of its own, and without durations and times of day, which narwhals
    does not know in DuckDB.
    """
    return duckdb.connect().from_arrow(
        frame.drop("late", "begins", strict=False)
        .with_columns(pl.col("rank", "group").cast(pl.String))
        .to_arrow()
    )


def as_dask(frame):
    plain = frame.select(
        "age", "height", "sex", "city", "income", "weight", "member", "paid"
    )
    return dask.from_pandas(
        plain.to_pandas().astype({"paid": "boolean"}), npartitions=2
    )


def as_parquet(frame, path="table.parquet"):
    frame.write_parquet(path)
    return pl.scan_parquet(path)


ENGINES = {
    "polars": as_polars,
    "duckdb": as_duckdb,
    "dask": as_dask,
    "parquet": as_parquet,
}
OPTIONS = {
    "favourable": "high",
    "target": {"age": None},
    "forbid": [{"sex": "M", "member": True}],
    "random_state": 3,
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def collected(frame):
    return nw.from_native(frame).collect().to_native()


def same_domain(ours, twin):
    assert ours.notes == twin.notes
    for own, other in zip(ours.attributes, twin.attributes, strict=True):
        assert (own.name, own.kind, own.labels, own.missing) == (
            other.name,
            other.kind,
            other.labels,
            other.missing,
        )
        assert own.values.dtype == other.values.dtype
        assert [str(value) for value in own.values.to_list()] == [
            str(value) for value in other.values.to_list()
        ]
        np.testing.assert_array_equal(own.counts, other.counts)
        np.testing.assert_array_equal(own.level_starts, other.level_starts)
        assert (own.edges is None) == (other.edges is None)
        if own.edges is not None:
            np.testing.assert_array_equal(own.edges, other.edges)


def same_fit(ours, twin):
    same_domain(ours.domain, twin.domain)
    assert ours.table.codes.dtype == twin.table.codes.dtype
    for name in ("codes", "counts", "rows", "squares"):
        np.testing.assert_array_equal(
            getattr(ours.table, name), getattr(twin.table, name)
        )
    np.testing.assert_array_equal(
        ours.optimum.solution.multipliers, twin.optimum.solution.multipliers
    )
    assert ours.certificate.to_dict() == twin.certificate.to_dict()
    assert ours.columns == twin.columns


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "weight"),
    [("polars", None), ("duckdb", "weight"), ("dask", "weight"), ("parquet", "weight")],
)
def test_the_fit_is_that_of_the_table_in_memory(name, weight):
    frame = table() if weight else table().drop("weight").with_columns(weight=pl.lit(1))
    frame = ENGINES[name](frame)
    protected = ["sex", "height"]
    ours = debias(frame, "income", protected, weight=weight, detail="bins", **OPTIONS)
    twin = debias(
        collected(frame), "income", protected, weight=weight, detail="bins", **OPTIONS
    )
    same_fit(ours, twin)
    # NaN and all
    assert str(nw.from_native(ours.sample(50)).rows()) == str(
        nw.from_native(twin.sample(50)).rows()
    )


@pytest.mark.more
def test_a_domain_of_more_points_than_an_integer_holds():
    rng = np.random.default_rng(0)
    wide = pl.DataFrame({f"x{i}": rng.choice(list("abcdefgh"), 300) for i in range(24)})
    wide = wide.with_columns(
        y=pl.Series(rng.choice(["n", "p"], 300)),
        z=pl.Series(rng.choice(["f", "m"], 300)),
    )
    wide = pl.concat([wide, wide.head(100)])
    frame = duckdb.from_arrow(wide.to_arrow())
    ours = debias(frame, "y", "z", base="product", detail="bins")
    assert ours.domain.size > 2**70
    twin = debias(collected(frame), "y", "z", base="product", detail="bins")
    same_fit(ours, twin)
    weighed = nw.from_native(ours.weigh(frame)).collect()["fair_weight"].to_numpy()
    np.testing.assert_allclose(np.sort(weighed), np.sort(twin.weights()), rtol=1e-12)


@pytest.mark.more
def test_columns_may_have_the_names_that_we_would_give():
    odd = table().select(
        "sex",
        "income",
        pl.col("few").alias("Rows"),
        MASS="city",
        KEY0="paid",
        weight="weight",
    )
    # to DuckDB, "rows" is "Rows"
    for frame in (odd.lazy(), duckdb.from_arrow(odd.to_arrow())):
        ours = debias(frame, "income", "sex", weight="weight", detail="bins")
        same_fit(
            ours,
            debias(collected(frame), "income", "sex", weight="weight", detail="bins"),
        )
        assert (
            nw.from_native(ours.weigh(frame)).collect()["fair_weight"].to_numpy().min()
            >= 0
        )


def test_levels_inside_the_engine_are_those_of_the_domain():
    frame = table().drop("weight")
    options = {
        "bins": {"age": [0, 18, 40, 65, 120], "when": 5},
        "kinds": {"born": "categorical", "few": "ordered"},
    }
    domain = learn_domain(
        engine.open_lazy(frame.lazy()),
        **options,
        order={"sex": ["M", "F"]},
        max_levels=8,
    )
    same_domain(
        domain, Domain.infer(frame, **options, order={"sex": ["M", "F"]}, max_levels=8)
    )
    codes = domain.encode(frame)
    for api, opened in ((pl, frame.lazy()), (nw, nw.from_native(frame.lazy()))):
        schema = nw.from_native(frame.lazy()).collect_schema()
        levels = [
            level_expression(own, schema[own.name], api).alias(own.name)
            for own in domain.attributes
        ]
        np.testing.assert_array_equal(
            opened.select(*levels).collect().to_numpy(), codes
        )


@pytest.mark.more
def test_a_domain_that_is_given():
    frame = table().drop("weight")
    domain = Domain.infer(frame, bins=4, max_levels=5)
    same_fit(
        *(
            debias(own, "income", "sex", domain=domain, detail="bins")
            for own in (frame.lazy(), frame)
        )
    )
    with pytest.raises(LevelError, match="'X', which was not in the data"):
        debias(
            frame.with_columns(sex=pl.lit("X")).lazy(), "income", "sex", domain=domain
        )
    with pytest.raises(LevelError, match="no missing values"):
        debias(
            frame.with_columns(age=pl.lit(None, pl.Int64)).lazy(),
            "income",
            "sex",
            domain=domain,
        )
    with pytest.raises(ColumnError, match="not in the given Domain"):
        debias(
            frame.with_columns(more=pl.lit(1)).lazy(), "income", "sex", domain=domain
        )
    with pytest.raises(InputError, match="learned from a polars table"):
        debias(as_duckdb(frame), "income", "sex", domain=domain)


def many(rows=20_000, seed=2):
    rng = np.random.default_rng(seed)
    amount = np.where(rng.random(rows) < 0.3, 0.0, rng.lognormal(size=rows))
    names = np.where(
        rng.random(rows) < 0.5,
        rng.choice(["ann", "bob"], rows),
        [f"n{i:05}" for i in range(rows)],
    )
    columns = {
        "y": rng.choice(["n", "p"], rows),
        "z": rng.choice(["f", "m"], rows),
        "amount": amount,
        "name": names,
    }
    known = pl.when(pl.int_range(rows) % 50 > 0).then("amount")
    return pl.DataFrame(columns).with_columns(amount=known)


@pytest.mark.more
@pytest.mark.parametrize(
    ("engine_of", "at_once"),
    [
        (pl.DataFrame.lazy, 3000),
        (lambda frame: duckdb.from_arrow(frame.to_arrow()), 100_000),
    ],
)
def test_columns_of_too_many_values_are_thinned(engine_of, at_once, monkeypatch):
    monkeypatch.setattr(engine, "MOST_VALUES", 1000)
    # polars then counts in several passes
    monkeypatch.setattr(engine, "_AT_ONCE", at_once)
    frame = many()
    fit = debias(engine_of(frame), "y", "z", detail="bins", keep_columns="name")
    shuffled = engine_of(frame.sample(fraction=1, shuffle=True, seed=1))
    same_fit(fit, debias(shuffled, "y", "z", detail="bins", keep_columns="name"))
    twin = debias(frame, "y", "z", detail="bins", keep_columns="name")
    amount, whole = fit.domain.attribute("amount"), twin.domain.attribute("amount")
    assert len(amount.values) <= 1100
    assert amount.size == whole.size
    assert amount.labels[0] == whole.labels[0] == "0"
    assert amount.missing == whole.missing
    # a value that was kept counts for those that were not
    assert amount.counts.sum() == pytest.approx(whole.counts.sum(), rel=0.02)
    shares = (
        fit.table.counts
        @ (fit.table.codes[:, [1]] == np.arange(amount.size))
        / fit.table.size
    )
    expected = (
        twin.table.counts
        @ (twin.table.codes[:, [1]] == np.arange(amount.size))
        / twin.table.size
    )
    # Bins of about equal weight, and 0 exact; the last value of each pass counts a
    # little more.
    np.testing.assert_allclose(
        shares, expected, atol=0.004 if at_once > len(frame) else 0.01
    )
    assert shares[0] == expected[0]
    assert sum("too many to keep" in note for note in fit.domain.notes) == 2
    # the frequent names stand alone, and bins and rare names decode to values that were
    # seen
    assert {"ann", "bob"} < {*fit.domain.attribute("name").labels}
    drawn = nw.from_native(fit.sample(500))
    assert {*drawn["name"].to_list()} <= {*frame["name"].to_list()}
    assert {*drawn["amount"].drop_nulls().to_list()} <= {*frame["amount"].to_list()}


@pytest.mark.parametrize(
    "engine_of",
    [
        pl.DataFrame.lazy,
        lambda frame: duckdb.from_arrow(frame.to_arrow()),
        lambda frame: dask.from_pandas(frame.to_pandas(), npartitions=2),
    ],
)
def test_what_is_known_of_the_weights_of_equal_rows(engine_of):
    """In a table so narrow that hundreds of rows are equal."""
    narrow = table().select("sex", "income", "weight")
    ours, twin = (
        debias(frame, "income", "sex", weight="weight").table
        for frame in (engine_of(narrow), narrow)
    )
    assert ours.distinct < 10
    for known in ("codes", "counts", "rows", "squares", "peaks"):
        np.testing.assert_allclose(
            getattr(ours, known), getattr(twin, known), rtol=1e-12, err_msg=known
        )


# workers of Dask have tests of their own
@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["polars", "duckdb", "parquet"])
def test_weights_are_joined_inside_the_engine(name):
    narrow = (
        "age",
        "gain",
        "height",
        "sex",
        "city",
        "income",
        "weight",
        "when",
        "member",
        "rank",
        "group",
    )
    frame = ENGINES[name](table().select(narrow))
    fit = debias(frame, "income", "sex", weight="weight", base_share=0, detail="bins")
    rows = nw.from_native(fit.weigh(frame, weight_name="w")).collect()
    native = rows.drop("w").to_native()
    # The engine may give rows in another order.
    twin = debias(native, "income", "sex", weight="weight", base_share=0, detail="bins")
    np.testing.assert_allclose(rows["w"].to_numpy(), twin.weights(), rtol=1e-9)
    rate = fairmaxent.metrics.statistical_rate(
        native, "income", "sex", weight=rows["w"].to_numpy()
    )
    assert float(rate) == pytest.approx(1)


def test_what_needs_the_rows_says_so():
    frame = table().lazy()
    fit = debias(frame, "income", "sex")
    with pytest.raises(InputError, match=r"fit\.weigh"):
        fit.weights()
    with pytest.raises(InputError, match="row 0 was not in the fitted table"):
        fit.weigh(table().with_columns(age=pl.lit(1_000_000)))
    shuffled = table().sample(fraction=1, shuffle=True, seed=1)
    weighed, twin = (
        fit.weigh(shuffled),
        debias(shuffled, "income", "sex", detail="bins"),
    )
    np.testing.assert_allclose(
        weighed["fair_weight"].to_numpy(), twin.weights(), rtol=1e-9
    )
    with pytest.raises(ColumnError, match="already"):
        fit.weigh(frame, weight_name="age")
    with pytest.raises(ColumnError, match="no column 'city'"):
        fit.weigh(frame.drop("city"))


@pytest.mark.more
def test_the_other_outputs_are_those_of_the_table_in_memory():
    asked = {"weight": "weight", "random_state": 1, "detail": "bins"}
    ours, twin = (
        debias(own, "income", "sex", **asked) for own in (table().lazy(), table())
    )
    assert ours.top_up().equals(twin.top_up())
    ours.save("fit.fme")
    again = fairmaxent.load("fit.fme")
    same_fit(again, twin)
    assert again.table.places is None
    assert again.sample(20).equals(twin.sample(20))
    assert repr(again) == repr(twin)


@pytest.mark.parametrize("bad", [None, float("nan"), -1.0])
def test_weights_that_mean_nothing(bad):
    with pytest.raises(WeightError, match="not numbers"):
        debias(table().lazy(), "income", "sex", weight="city")
    weights = pl.Series("weight", [1.0] * (ROWS - 1) + [bad])
    for frame in (
        table().with_columns(weights).lazy(),
        duckdb.from_arrow(
            table().select("income", "sex").with_columns(weights).to_arrow()
        ),
    ):
        with pytest.raises(WeightError, match="holds 1 unusable or missing values"):
            debias(frame, "income", "sex", weight="weight")
    with pytest.raises(WeightError, match="zero everywhere"):
        debias(
            table().with_columns(weight=pl.lit(0)).lazy(),
            "income",
            "sex",
            weight="weight",
        )


def test_tables_without_rows_columns_or_files():
    for empty in (
        table().clear().lazy(),
        duckdb.from_arrow(table().select("sex", "income").clear().to_arrow()),
    ):
        with pytest.raises(InputError, match="no rows"):
            debias(empty, "income", "sex")
    with pytest.raises(InputError, match="no columns"):
        debias(pl.LazyFrame(), "income", "sex")
    for asked in (("incom", "sex"), ("income", ["sex", "incom"])):
        with pytest.raises(
            ColumnError, match="no column 'incom'; did you mean 'income'"
        ):
            debias(table().lazy(), *asked)
    table().write_parquet("gone.parquet")
    scanned = pl.scan_parquet("gone.parquet")
    scanned.collect_schema()
    Path("gone.parquet").unlink()
    with pytest.raises(StorageError, match="polars could not read"):
        debias(scanned, "income", "sex")
