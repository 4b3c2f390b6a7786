"""What Spark's tasks do with their batches, without Spark, which takes long to start."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa

from fairmaxent import debias
from fairmaxent.data.quotas import divided
from fairmaxent.engines.cluster_output import draw_by_tasks
from fairmaxent.engines.cluster_tasks import with_numbers_by_part

ROLES = {"outcome": "y", "protected": "z", "detail": "bins"}


class Rows:
    """A frame of Spark whose tasks get two rows each."""

    def __init__(self, table, schema=None):
        self.table = table
        self.schema = schema

    def mapInArrow(self, function, _):  # noqa: N802 (as Spark calls it)
        made = []
        for batch in self.table.to_batches(max_chunksize=2):
            made += function(iter([batch]))
        return pa.Table.from_batches(made)


class Schema:
    """That of a frame of Spark, which is told of each column."""

    def __init__(self):
        self.added = []

    def add(self, name, kind):
        self.added.append((name, kind))
        return self


def numbers(count):
    return Rows(pa.table({"id": list(range(count))}))


def table(rows=600):
    rng = np.random.default_rng(0)
    group = rng.random(rows) < 0.4
    outcome = rng.random(rows) < 0.2 + 0.3 * group
    columns = {
        "y": np.where(outcome, "yes", "no"),
        "z": np.where(group, "f", "m"),
        "a": rng.integers(0, 30, rows),
        "b": rng.integers(0, 30, rows),
    }
    return pa.table(columns)


def test_batches_are_drawn_one_by_one_and_have_the_wanted_cells_together():
    fit = debias(table(), **ROLES)
    cells = np.array([40, 30, 20, 10])
    shares = np.array(list(divided(cells, 20, np.random.default_rng(1))))
    frame = SimpleNamespace(sparkSession=SimpleNamespace(range=numbers), schema=None)
    source = fit.distribution
    delivery = fit._delivery(source, evenly=True)
    drawn = draw_by_tasks(frame, source.tilted, shares, delivery, seed=1)
    assert len(shares) == 5
    assert drawn.column_names == ["y", "z", "a", "b"]
    found = pl.from_arrow(drawn).group_by("y", "z").len().sort("y", "z")["len"]
    assert found.to_list() == cells.tolist()


def test_batches_that_want_the_same_are_not_drawn_alike():
    fit = debias(table(), **ROLES)
    shares = np.array([[10, 10, 10, 10]] * 2)
    frame = SimpleNamespace(sparkSession=SimpleNamespace(range=numbers), schema=None)
    delivery = fit._delivery(fit.distribution, evenly=True)
    drawn = draw_by_tasks(frame, fit.distribution.tilted, shares, delivery, seed=1)
    assert not drawn.slice(0, 40).equals(drawn.slice(40))
    again = draw_by_tasks(frame, fit.distribution.tilted, shares, delivery, seed=1)
    assert again.equals(drawn)


def test_a_column_is_made_of_each_batch():
    schema = Schema()
    rows = Rows(pa.table({"a": [1.0, 2.0, 3.0, 4.0, 5.0]}), schema)
    lazy = SimpleNamespace(
        to_native=lambda: rows,
        implementation=SimpleNamespace(is_spark_like=lambda: True),
    )

    def less_the_first(batch):
        values = batch["a"].to_numpy()
        return values - values[0]

    made = with_numbers_by_part(lazy, less_the_first, "w")
    assert made["a"].to_pylist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert made["w"].to_pylist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert schema.added == []  # that of the frame itself is left alone
