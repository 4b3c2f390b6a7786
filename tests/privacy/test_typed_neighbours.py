"""Neighbouring tables with types: a row that changes the type of a column changes how
nobody else is read.

Rows, all odd, join tables of people: in a library, in a lazy engine, in a file that the
command or the page reads. Each library decides of which type the column then is. With
noise that records what it is asked, every table that is measured must change by one
person or not at all.
"""

import datetime as dt
import io
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

from fairmaxent import Domain, Privacy, debias
from fairmaxent.app.scenario import OpenedTable, Readings, Scenario
from fairmaxent.cli.config import domain_text
from fairmaxent.cli.group import group
from fairmaxent.data.declared import UNDECLARED, DeclaredColumn, declared_rows
from fairmaxent.data.domain import bound
from fairmaxent.data.frames import open_frame
from fairmaxent.errors import FairMaxEntError, InputError
from fairmaxent.files import formats
from quiet import Recording

MODES = ["refuse", "drop", "missing"]
PEOPLE = 40
LEVELS = {
    "hired": [False, True],
    "sex": ["f", "m"],
    "code": ["1", "2", "10"],
    "grade": [1, 2, 3],
    "town": ["Köln", "x", "2001-01-05"],
}
EDGES = {
    "pay": [0.0, 0.7, 1000.5, 5000.0],
    "hours": [0, 20, 40, 80],
    "born": [dt.date(1990, 1, 1), dt.date(2000, 6, 1), dt.date(2010, 1, 1)],
    "seen": [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1), dt.datetime(2022, 1, 1)],
}
NAMES = [*LEVELS, *EDGES]
# how libraries say that they have no type, or no place in a file, for some values
FAILURES = (Exception, pl.exceptions.PanicException)
DOMAIN = Domain.declare(
    levels=LEVELS, edges=EDGES, missing=["code", "town", "pay", "born", "grade"]
)
ASKED = {"favourable": True, "domain": DOMAIN, "estimate": None, "random_state": 0}
NOON = dt.datetime(2020, 6, 1, 12, 30)
ZONE = dt.timezone(dt.timedelta(hours=2))
# What one more person may have in a cell, of whatever type.
ODD = [
    *[None, float("nan"), float("inf"), -float("inf"), True, False, 0, 1, 2, -1, 10],
    *[2**31, 2**53 + 1, 10**19, 1.0, 0.5, 0.7, 2.5, -0.0, 1e-300, 1e300, 1e16],
    *["", "x", "1", "1.0", "true", "True", "f", "nan", "None", "inf", "2001-01-05"],
    *["1,5", "2001-01-05 10:00", "Köln", "?", "\0", "Ω" * 100, "1e400", "{}"],
    *[b"x", b"1", b"true", b"\xff", b"", bytearray(b"m")],
    *[dt.date(2001, 1, 5), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    *[NOON, NOON.replace(tzinfo=dt.UTC), NOON.replace(tzinfo=ZONE)],
    *[dt.time(3, 30), dt.timedelta(days=1, microseconds=1)],
    *[Decimal("1.50"), Decimal("0.7"), Decimal(2), Fraction(1, 2), 1 + 0j, 1 + 2j],
    *[[1], ["x"], [], [None], (1,), {"a": 1}, {}, {1, 2}, np.array([1, 2]), object()],
    *[np.float32(0.7), np.int8(1), np.bool_(True), np.datetime64("2001-01-05", "ns")],
    *[pd.Timestamp("2001-01-05"), pd.NaT, pd.NA, pd.Timedelta("1D"), pd.Period("2001")],
]


def texts(name, how=str):
    return lambda frame: frame.with_columns(
        pl.Series(name, [how(value) for value in frame[name]])
    )


def cast(name, kind):
    return lambda frame: frame.with_columns(pl.col(name).cast(kind))


# How the columns of a table may be typed, before anybody joins.
TYPINGS = [
    lambda frame: frame,
    cast("hired", pl.Int8),
    cast("hired", pl.Float64),
    cast("hired", pl.String),
    texts("hired"),
    texts("hired", lambda value: str(int(value))),
    cast("sex", pl.Binary),
    cast("sex", pl.Categorical),
    cast("sex", pl.Enum(["f", "m"])),
    cast("code", pl.Int64),
    cast("code", pl.Float64),
    cast("code", pl.UInt8),
    cast("code", pl.Categorical),
    cast("grade", pl.Float64),
    cast("grade", pl.String),
    cast("grade", pl.Decimal(10, 2)),
    texts("grade", lambda value: f"{value:.2f}"),
    cast("town", pl.Binary),
    cast("pay", pl.Float32),
    cast("pay", pl.String),
    cast("pay", pl.Decimal(12, 3)),
    cast("hours", pl.Float64),
    cast("hours", pl.Int16),
    cast("hours", pl.String),
    cast("born", pl.Datetime("ms")),
    cast("born", pl.Datetime("ns")),
    cast("born", pl.Datetime("us", "UTC")),
    cast("born", pl.String),
    cast("seen", pl.Datetime("ns")),
    cast("seen", pl.String),
    cast("seen", pl.Datetime("us", "UTC")),
]


def people(seed, typing):
    """A table of people who hold declared values only, in columns of some types."""
    rng = random.Random(seed)
    rows = [
        [rng.choice(values) for values in LEVELS.values()]
        + [
            rng.choice([0.5, 0.7, 1.234, 1000.0, 4000.25]),
            rng.randrange(80),
            dt.date(1992, 1, 1) + dt.timedelta(days=rng.randrange(6000)),
            dt.datetime(2020, 3, 1) + dt.timedelta(minutes=rng.randrange(10**6)),
        ]
        for _ in range(PEOPLE)
    ]
    frame = pl.DataFrame(rows, schema=NAMES, orient="row", strict=False)
    frame = frame.with_columns(pl.col("seen").cast(pl.Datetime("us")))
    return TYPINGS[typing](frame)


# ---------------------------------------------------------------- one more person


def joined_polars(frame, odd):
    """As polars itself finds a type for both; if it finds none, Python's values."""
    columns = []
    for name in frame.columns:
        people = frame[name]
        if name not in odd:
            columns.append(people.extend(people.head(1)))
            continue
        try:
            parts = [pl.DataFrame({name: people}), pl.DataFrame({name: [odd[name]]})]
            columns.append(pl.concat(parts, how="vertical_relaxed")[name])
        except FAILURES:
            columns.append(pl.Series(name, [*people, odd[name]], strict=False))
    return pl.DataFrame(columns)


def joined_pandas(frame, odd):
    """As pandas itself finds a type for both."""
    columns = {}
    for name in frame.columns:
        cell = frame[name].iloc[:1]
        if name in odd:
            cell = pd.Series([odd[name]], dtype=object)
            if np.isscalar(odd[name]):
                cell = cell.infer_objects()
        columns[name] = pd.concat([frame[name], cell], ignore_index=True)
    return pd.DataFrame(columns)


def as_arrow(frame):
    """Arrow has no Python objects; polars would write where they are in memory."""
    assert pl.Object not in frame.dtypes
    return frame.to_arrow()


def joined_arrow(table, odd):
    import pyarrow as pa

    try:
        one = {
            name: pa.array([odd[name]])
            if name in odd
            else table[name].combine_chunks().slice(0, 1)
            for name in table.column_names
        }
        return pa.concat_tables([table, pa.table(one)], promote_options="permissive")
    except (pa.ArrowException, OverflowError):
        return as_arrow(joined_polars(pl.from_arrow(table), odd))


def joined_duckdb(frame, odd):
    duckdb = pytest.importorskip("duckdb")
    first = frame.head(1).with_columns(
        *[pl.Series(name, [value], strict=False) for name, value in odd.items()]
    )
    connection = duckdb.connect()
    connection.register("people", frame.to_arrow())
    connection.register("joining", first.to_arrow())
    columns = ", ".join(NAMES)
    query = f"SELECT {columns} FROM people UNION ALL SELECT {columns} FROM joining"
    relation = connection.sql(query)
    relation.to_arrow_table()  # a value that has no place in the type fails here
    return relation


# ---------------------------------------------------------------- the routes


def fitted(frame, mode, folder):
    debias(
        frame,
        "hired",
        "sex",
        privacy=Privacy(epsilon=9, undeclared=mode),
        **ASKED,
    )


def written(form):
    """A table as a file of some form; none if the form does not hold it."""

    def write(frame):
        buffer = io.BytesIO()
        if form == "parquet":
            frame.write_parquet(buffer)
        else:
            frame.write_ipc(buffer)
        return buffer.getvalue()

    return write


def command(content, mode, folder, form):
    path = folder / f"data.{form}"
    path.write_bytes(content)
    (folder / f"{path.name}.ledger.json").unlink(missing_ok=True)
    (folder / "domain.toml").write_text(domain_text(DOMAIN, []), encoding="utf-8")
    words = (
        f"debias {path.name} --outcome hired --protected sex --favourable true --domain"
        f" domain.toml --epsilon 9 --undeclared {mode} --estimate none --seed 1 -o"
        " new.csv --save m.fme --force"
    )
    result = CliRunner().invoke(group, words.split())
    if result.exit_code:
        assert isinstance(result.exception, SystemExit), result.exception
        raise FairMaxEntError(result.stderr)


def page(content, mode, folder):
    path = folder / "page.parquet"
    path.write_bytes(content)
    options = {
        "outcome": "hired",
        "protected": ["sex"],
        "favourable": ["true"],
        "epsilon": 9,
        "undeclared": mode,
        "domain": domain_text(DOMAIN, []),
        "representation_rate": None,
    }
    opened = OpenedTable(1, path, typed=path.name, title=path.name)
    scenario = Scenario.from_json(options, opened)
    Readings().get(scenario, scenario.request(), spend=True)


def estimator(frame, mode, folder):
    sklearn = pytest.importorskip("fairmaxent.estimator")
    model = sklearn.FairMaxEnt(
        "sex",
        privacy=Privacy(epsilon=9, undeclared=mode),
        **ASKED,
    )
    model.fit(frame.drop(columns="hired"), frame["hired"])


def joined_file(form):
    def join(frame, odd):
        return written(form)(joined_polars(frame, odd))

    return join


def as_pandas(frame):
    """With Python's own values in columns that pandas has no type of its own for."""
    return pd.DataFrame(
        {name: pd.Series(frame[name].to_list(), name=name) for name in frame.columns}
    )


def as_pandas_on_arrow(frame):
    return frame.to_pandas(use_pyarrow_extension_array=True)


# what the people are in, how one joins, and how the table is fitted
ROUTES = {
    "pandas": (as_pandas, joined_pandas, fitted),
    "pandas on Arrow": (as_pandas_on_arrow, joined_pandas, fitted),
    "polars": (lambda frame: frame, joined_polars, fitted),
    "pyarrow": (lambda frame: frame.to_arrow(), joined_arrow, fitted),
    "lazy polars": (
        lambda frame: frame,
        joined_polars,
        lambda frame, mode, folder: fitted(frame.lazy(), mode, folder),
    ),
    "DuckDB": (lambda frame: frame, joined_duckdb, fitted),
    "Parquet": (
        written("parquet"),
        joined_file("parquet"),
        lambda *given: command(*given, "parquet"),
    ),
    "Arrow": (
        written("arrow"),
        joined_file("arrow"),
        lambda *given: command(*given, "arrow"),
    ),
    "page": (written("parquet"), joined_file("parquet"), page),
    "estimator": (as_pandas, joined_pandas, estimator),
}


def tables(route, frame, mode, folder):
    """The tables that are measured, or why the table is refused."""
    Recording.tables = []
    problem = None
    try:
        ROUTES[route][2](frame, mode, folder)
    except FairMaxEntError as error:
        problem = str(error)
    if problem is None:
        return Recording.tables
    assert "do not pass it on" in problem, problem
    assert not Recording.tables
    assert mode == "refuse" or "is of type" in problem, problem
    return problem


def case(number):
    """Who joins, and of which types the columns were before."""
    rng = random.Random(number)
    odd = {rng.choice(NAMES): ODD[number % len(ODD)]}
    if rng.random() < 0.3:
        odd[rng.choice(NAMES)] = rng.choice(ODD)
    return people(number, rng.randrange(len(TYPINGS))), odd


def compare(route, number, mode, folder):
    """Let somebody join; return what became of it."""
    frame, odd = case(number)
    make, join, _ = ROUTES[route]
    try:
        before = make(frame)
        after = join(frame if isinstance(before, bytes) else before, odd)
    except FAILURES:
        return "cannot be held"  # by the library, or in a file of this form
    if route == "DuckDB":
        before = join(frame, {}).limit(PEOPLE)
    had = tables(route, before, mode, folder)
    has = tables(route, after, mode, folder)
    about = (route, number, mode, odd)
    assert isinstance(had, list), (*about, had)
    if isinstance(has, str):
        return "refused"
    changes = {
        float(np.abs(one - other).sum()) for one, other in zip(had, has, strict=True)
    }
    assert changes in ({0.0}, {1.0}), (*about, changes)
    return "counted" if changes == {1.0} else "left out"


@pytest.mark.more
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("numbers", "modes"),
    [
        (range(0, len(ODD), 9), ["drop"]),
        pytest.param(range(len(ODD)), MODES, marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_a_row_changes_its_own_count_whatever_type_it_gives_the_others(
    recording, route, numbers, modes
):
    outcomes = Counter(
        compare(route, number, mode, recording) for number in numbers for mode in modes
    )
    print(route, dict(outcomes))
    assert outcomes["counted"] + outcomes["left out"] > len(modes) * len(numbers) / 3


def test_what_fails_in_a_file_is_refused_without_its_words(recording, monkeypatch):
    late = people(0, 0).with_columns(seen=pl.lit(10**18).cast(pl.Datetime("us")))
    assert "'seen' has a value" in tables(
        "Arrow", written("arrow")(late), "refuse", recording
    )
    monkeypatch.setattr(formats, "declared_rows", Mock(side_effect=ValueError("37,5")))
    problem = tables("Arrow", written("arrow")(late), "refuse", recording)
    assert "37,5" not in problem


@pytest.mark.more
@pytest.mark.parametrize(
    "numbers",
    [range(4, len(ODD), 15), pytest.param(range(len(ODD)), marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_engines_read_rows_as_they_are_read_in_memory(recording, numbers):
    for number in numbers:
        frame, odd = case(number)
        try:
            joined = joined_polars(frame, odd)
            table = as_arrow(joined)
        except FAILURES:
            continue
        relation = pytest.importorskip("duckdb").from_arrow(table)
        kinds = {"polars": joined, "lazy polars": joined, "pyarrow": table}
        kinds["DuckDB"] = relation
        for mode in MODES:
            said = {
                kind: tables(kind, given, mode, recording)
                for kind, given in kinds.items()
            }
            if isinstance(said["polars"], str):
                assert all(isinstance(each, str) for each in said.values()), said
                continue
            for each in said.values():
                np.testing.assert_equal(each, said["polars"])


# ---------------------------------------------------------------- one cell

DAY = dt.date(2001, 1, 5)
MIDNIGHT = dt.datetime(2001, 1, 5)
# What is declared of a column, how a cell may come, and what it means.
MEANT = [
    ({"levels": [False, True]}, [True, 1, 1.0, "true", " True ", "1", b"1"], True),
    ({"levels": [0, 1]}, [False, 0, -0.0, "false", "0.0", 0j, Decimal(0)], 0),
    ({"levels": ["1", "2"]}, [2, 2.0, "2", "2.0", b"2", np.int8(2)], "2"),
    ({"levels": ["true", "no"]}, [True, 1, "TRUE"], "true"),
    ({"levels": [0.7, 1.5]}, [0.7, np.float32(0.7), "0.7", Decimal("0.7")], 0.7),
    ({"levels": [DAY]}, [DAY, MIDNIGHT, "2001-01-05", "2001-01-05 00:00"], DAY),
    ({"levels": ["2001-01-05"]}, [DAY, MIDNIGHT, b"2001-01-05"], "2001-01-05"),
    ({"levels": ["x", "y"]}, ["z", 1, [1], {}, None, "", object()], UNDECLARED),
    ({"levels": [1, 2]}, [3, "1,0", "one", b"\xff", 1 + 1j, True + 2], UNDECLARED),
    ({"edges": [0, 5, 9]}, [7, 7.0, "7", "7e0", b" 7 ", Decimal(7), 7 + 0j], 7),
    ({"edges": [0, 5, 9]}, [True, "true"], 1),
    ({"edges": [0, 5, 9]}, [DAY, "x", "7,0", None, dt.time(7)], UNDECLARED),
    (
        {"edges": [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]},
        [NOON, "2020-06-01 12:30", NOON.replace(tzinfo=dt.UTC)],
        NOON,
    ),
    (
        {"edges": [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]},
        [NOON.replace(tzinfo=ZONE), "2020-06-01T12:30:00+02:00"],
        NOON - dt.timedelta(hours=2),
    ),
]


@pytest.mark.parametrize(("declared", "cells", "meant"), MEANT)
def test_a_cell_means_the_same_in_whatever_type_it_comes(declared, cells, meant):
    declaration = Domain.declare(**{kind: {"a": it} for kind, it in declared.items()})
    column = DeclaredColumn("a", declaration)
    for cell in cells:
        read = column.read(cell)
        assert read == meant, (cell, read)
        assert type(read) is type(meant) or "edges" in declared, (cell, read)


# ---------------------------------------------------------------- types that told

FAR = pl.Series("a", [3_000_000, -900_000]).cast(pl.Int32).cast(pl.Date)
NIGHT = dt.time(3, 30)
HOUR = dt.timedelta(hours=1)
# What is declared of a column, its people, and what these become when one of another
# type joins: each of these once changed how everybody is read.
TOLD = {
    "true and 1": (
        {"levels": {"a": ["true", "1", "0", "false"]}},
        pl.Series("a", [True, False]),
        pl.Series("a", [1, 0, 2]),
    ),
    "true and 1 in pandas": (
        {"levels": {"a": ["true", "1", "0", "false"]}},
        pd.Series([True, False], name="a"),
        pd.Series([1.0, 0.0, 0.5], name="a"),
    ),
    "true and 1 in a dictionary": (
        {"levels": {"a": ["true", "1", "0", "false"]}},
        pl.Series("a", [True, False]).to_arrow().dictionary_encode(),
        pl.Series("a", [1, 0, 2]).to_arrow(),
    ),
    "1 and 1.0": (
        {"levels": {"a": ["1", "1.0"]}},
        pl.Series("a", [1.0, 1.0]),
        pl.Series("a", ["1.0", "1.0", "x"]),
    ),
    "large whole numbers": (
        {"levels": {"a": [2**53, 2**53 + 1]}},
        pl.Series("a", [2**53, 2**53 + 1]),
        pl.Series("a", [2.0**53, 2.0**53, 0.5]),
    ),
    "levels in single precision": (
        {"levels": {"a": [123456790, 5]}},
        pl.Series("a", [123456790.0, 5.0], dtype=pl.Float32),
        pl.Series("a", ["1.2345679e8", "5.0", "x"]),
    ),
    "an edge in single precision": (
        {"edges": {"a": [0, 123456791, 200000000]}},
        pl.Series("a", [123456792.0, 5.0], dtype=pl.Float32),
        pl.Series("a", ["1.2345679e8", "5.0", "x"]),
    ),
    "times of day": (
        {"levels": {"a": [NIGHT, dt.time(4)]}},
        pl.Series("a", [NIGHT, dt.time(4)]),
        pl.Series("a", [1.26e13, 1.44e13, 0.5]),
    ),
    "times of day in a dictionary": (
        {"levels": {"a": ["03:30:00", "04:00:00"]}},
        pl.Series("a", [NIGHT, dt.time(4)]).to_arrow().dictionary_encode(),
        pl.Series("a", [1.26e13, 1.44e13, 0.5]).to_arrow(),
    ),
    "lengths": (
        {"levels": {"a": ["1 day, 0:00:00", "1:00:00"]}},
        pl.Series("a", [24 * HOUR, HOUR]),
        pl.Series("a", ["1d", "1h", "x"]),
    ),
    "years beyond Python's": (
        {"edges": {"a": [dt.date(1990, 1, 1), dt.date(2010, 1, 1)]}},
        FAR,
        pl.Series("a", ["+10183-09-25", "-495-11-29", "x"]),
    ),
    "a level that dates beyond it became": (
        {"levels": {"a": [dt.date.max, dt.date.min]}},
        FAR,
        pl.Series("a", ["+10183-09-25", "-495-11-29", "x"]),
    ),
}


def levels_of(column, declared):
    """The level of each row; none is left out."""
    declaration = Domain.declare(missing=["a"], **declared)
    declaration = replace(declaration, undeclared="missing")
    frame = pd.DataFrame({"a": column}) if isinstance(column, pd.Series) else None
    if isinstance(column, pl.Series):
        frame = column.to_frame()
    elif frame is None:
        frame = pytest.importorskip("pyarrow").table({"a": column})
    rows = declared_rows(open_frame(frame), declaration)
    return bound(declaration, rows).encode(rows)[:, 0].tolist()


@pytest.mark.parametrize("case", TOLD)
def test_a_type_is_refused_or_changes_how_nobody_is_read(case):
    declared, people, joined = TOLD[case]
    try:
        before = levels_of(people, declared)
    except InputError as problem:
        assert "do not pass it on" in str(problem)  # noqa: PT017 (it need not be raised)
        return
    assert levels_of(joined, declared)[: len(people)] == before


def test_levels_that_are_equal_in_another_type_are_told_apart_in_text():
    codes = {"levels": {"a": ["1", "01", "1.0"]}}
    assert levels_of(pl.Series("a", ["01", "1", "1.0", "2"]), codes) == [1, 0, 2, 3]
