"""A PySpark frame is counted by Spark, and gives the fit that the same table in memory
gives.
"""

import importlib.util
import shutil
import sys

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from test_lazy import OPTIONS, collected, same_fit, table
from test_types import assert_same_rows, fits_of

import fairmaxent
from fairmaxent import debias
from fairmaxent.errors import ColumnError, InputError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
# What Spark compiles per query costs more than these small tables do.
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
COLUMNS = [
    "age",
    "few",
    "height",
    "sex",
    "city",
    "paid",
    "born",
    "when",
    "income",
    "weight",
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """A session of its own, on this machine alone, that leaves nothing behind."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: make engines")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is no command java")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_LOCAL_DIRS", str(folder))
        builder = SparkSession.builder.master("local[2]").appName("fairmaxent")
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    """Whole numbers, gaps, NaN, truth values, dates, times with a zone, texts,
    weights.
    """
    return spark.createDataFrame(table().select(COLUMNS).to_arrow())


@pytest.mark.parametrize("weight", [None, "weight"])
def test_the_fit_is_that_of_the_table_in_memory(frame, weight):
    options = OPTIONS | {"forbid": [{"sex": "M", "paid": True}]}
    ours = debias(
        frame, "income", ["sex", "height"], weight=weight, detail="bins", **options
    )
    twin = debias(
        collected(frame),
        "income",
        ["sex", "height"],
        weight=weight,
        detail="bins",
        **options,
    )
    same_fit(ours, twin)
    # NaN and all
    assert str(nw.from_native(ours.sample(50)).rows()) == str(
        nw.from_native(twin.sample(50)).rows()
    )


def test_weights_are_joined_by_spark(frame):
    narrow = frame.select("few", "height", "sex", "income", "weight")
    fit = debias(narrow, "income", "sex", weight="weight", base_share=0, detail="bins")
    weighed = fit.weigh(narrow, weight_name="w")
    assert type(weighed) is type(frame)
    rows = nw.from_native(weighed).collect()
    native = rows.drop("w").to_native()
    # Spark may give rows in another order.
    twin = debias(native, "income", "sex", weight="weight", base_share=0, detail="bins")
    same_fit(fit, twin)
    np.testing.assert_allclose(rows["w"].to_numpy(), twin.weights(), rtol=1e-9)
    rate = fairmaxent.metrics.statistical_rate(
        native, "income", "sex", weight=rows["w"].to_numpy()
    )
    assert float(rate) == pytest.approx(1)


def test_names_that_spark_reads_in_its_own_way(spark):
    odd = table().select(
        "sex", "income", pl.col("few").alias("Rows"), pl.col("paid").alias("KEY0")
    )
    tables = (spark.createDataFrame(odd.to_arrow()), odd.to_arrow())
    same_fit(*(debias(own, "income", "sex", detail="bins") for own in tables))
    dotted = spark.createDataFrame(odd.rename({"Rows": "a.b"}).to_arrow())
    with pytest.raises(
        ColumnError,
        match=r"dot or backtick in a column name .*; rename the column 'a\.b'",
    ):
        debias(dotted, "income", "sex")


@pytest.mark.parametrize("seed", range(25))
def test_random_tables_give_the_same_fit_rows_and_weights(spark, seed, tmp_path):
    def read(folder):
        return spark.read.parquet(str(folder))

    frame, there, here = fits_of(seed, "spark", tmp_path, read)
    assert_same_rows(there, here)
    drawn = there.sample_lazily(frame, 400, random_state=1).toArrow()
    cells = pl.from_arrow(drawn).group_by("y", "z").len().sort("y", "z")["len"]
    wanted = here.distribution.root_table.ravel() * 400
    np.testing.assert_allclose(cells, wanted, atol=1)


SHIFT = {"target": {"few": {"0": 0.1, "1": 0.2, "2": 0.2, "3": 0.5}}}


@pytest.mark.parametrize("options", [{}, SHIFT, {"forbid": [{"sex": "M", "few": 1}]}])
def test_weights_of_tasks_are_those_in_memory(spark, options):
    """By the levels of each row alone: no join in the plan."""
    rows = table().select("sex", "few", "city", "income", "weight").drop_nulls()
    frame = spark.createDataFrame(rows.to_arrow())
    options = options | {"weight": "weight", "random_state": 1}
    fit = debias(frame, "income", "sex", **options)
    twin = debias(rows, "income", "sex", **options)
    weighed = fit.weigh(frame, weight_name="w")
    plan = weighed._jdf.queryExecution().toString()
    assert "MapInArrow" in plan
    assert "Join" not in plan
    np.testing.assert_allclose(
        weighed.toArrow()["w"].to_numpy(), twin.weights(), rtol=1e-7, atol=1e-12
    )


def test_tasks_draw_their_shares(frame, monkeypatch):
    monkeypatch.setattr("fairmaxent.fit.certified.BATCH", 700)
    fit = debias(frame, "income", "sex", weight="weight", detail="bins")
    drawn = fit.sample_lazily(frame, 3000, random_state=1)
    assert drawn.schema.fieldNames() == frame.columns
    rows = drawn.toArrow()
    again = fit.sample_lazily(frame, 3000, random_state=1).toArrow()
    assert pl.from_arrow(rows).equals(pl.from_arrow(again))  # NaN and all
    cells = pl.from_arrow(rows).group_by("income", "sex").len().sort("income", "sex")
    fair = fit.distribution.marginal(["income", "sex"]).to_pandas()
    wanted = fair.sort_values(["income", "sex"])["probability"] * 3000
    np.testing.assert_allclose(cells["len"], wanted, atol=1)
    assert (rows["weight"].to_numpy() == 1).all()
    women = fit.sample_lazily(frame, 50, given={"sex": "F"}, iid=True).toArrow()
    assert set(women["sex"].to_pylist()) == {"F"}
    with pytest.raises(InputError, match="drawn lazily for Spark alone"):
        fit.sample_lazily(table(), 10)
