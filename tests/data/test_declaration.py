"""Declared domains, their drafts, and tables without rare values."""

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from fairmaxent import Domain, InputError, debias
from fairmaxent.data import frames
from fairmaxent.data.declaration import VALUES_PER_BIN
from fairmaxent.data.declared import declared_rows
from fairmaxent.data.domain import bound
from fairmaxent.data.shareable import FEWEST_ROWS, shareable
from fairmaxent.engines.lazy_counts import level_expression
from fairmaxent.errors import ColumnError, LevelError

D = datetime.date
NOON = datetime.datetime(2020, 1, 1, 12, 0, 0, 750_000)


def domain_of(frame, **declared):
    return bound(Domain.declare(**declared), frames.open_frame(frame))


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, polars.DataFrame, lambda rows: polars.DataFrame(rows).to_arrow()],
)
def test_codes_and_back(make):
    rows = {
        "sex": ["f", "m", "f"],
        "age": [3, 70, None],
        "pay": [0.5, 12.25, 99.0],
        "born": [D(1990, 5, 1), D(2001, 1, 1), D(1960, 1, 1)],
        "member": [True, False, True],
    }
    frame = make(rows)
    if isinstance(frame, pd.DataFrame):
        frame["born"] = pd.to_datetime(frame["born"])
    domain = domain_of(
        frame,
        levels={"sex": ["m", "f"], "member": [False, True]},
        edges={
            "age": [0, 18, 65],
            "pay": [0.0, 10.0, 50.0],
            "born": [D(1950, 1, 1), D(1980, 1, 1), D(2010, 1, 1)],
        },
        missing=["age"],
    )
    codes = domain.encode(frame)
    assert codes.tolist() == [[1, 0, 0, 1, 1], [0, 1, 1, 1, 0], [1, 2, 1, 0, 1]]
    drawn = domain.decode(np.repeat(codes, 50, axis=0), rng=np.random.default_rng(0))
    assert (domain.encode(drawn) == np.repeat(codes, 50, axis=0)).all()
    far = frames.open_frame(
        polars.DataFrame({"x": polars.Series([3_000_000]).cast(polars.Date)})
    )
    # no text can say this date, so that it was not declared
    edges = {"x": [D(1950, 1, 1), D(2010, 1, 1)]}
    with pytest.raises(LevelError, match=r"'x' holds .* which was not declared"):
        declared_rows(far, Domain.declare(edges=edges))


def test_numbers_are_spread_evenly_over_their_bin():
    frame = polars.DataFrame({"age": [1], "pay": [1.0]})
    age, pay = domain_of(
        frame, edges={"age": [0, 18, 1000], "pay": [0.0, 1.0]}
    ).attributes
    assert age.values.to_list()[:18] == list(range(18))
    inside = age.values.to_list()[18:]
    assert len(inside) == VALUES_PER_BIN
    assert len(set(np.diff(inside))) <= 2
    assert min(inside) >= 18
    assert max(inside) <= 1000
    assert len(pay.values) == VALUES_PER_BIN
    assert 0 <= min(pay.values) < max(pay.values) < 1


MAKERS = [
    pd.DataFrame,
    polars.DataFrame,
    lambda rows: polars.DataFrame(rows, strict=False).to_arrow(),
]


@pytest.mark.some(8)
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("declared", "columns"),
    [
        ({"levels": {"x": [True, False]}}, [[True, False], [True, None], [None, None]]),
        (
            {"levels": {"x": [2, 1]}},
            [[1, 2], [1.0, 2.0], np.array([1, 2], np.uint8), [1, None], [None, None]],
        ),
        ({"levels": {"x": [0.5, 1]}}, [[0.5, 1.0], [1, 1], [None, None]]),
        ({"levels": {"x": ["u", "v"]}}, [["u", "v"], ["u", None], [None, None]]),
        (
            {"levels": {"x": [D(2020, 1, 1)]}},
            [[D(2020, 1, 1)] * 2, [D(2020, 1, 1), None], [None, None]],
        ),
        (
            {"edges": {"x": [0, 20, 40]}},
            [
                [7, 33],
                [7.0, 33.5],
                np.array([7, 33], np.uint8),
                [7, None],
                [None, None],
            ],
        ),
        ({"edges": {"x": [0.0, 20, 40]}}, [[7, 33], [7.0, 33.5], [None, None]]),
        (
            {"edges": {"x": [D(2020, 1, 1), D(2021, 1, 1)]}},
            [[D(2020, 1, 1)] * 2, [D(2020, 1, 1), None], [None, None]],
        ),
    ],
)
def test_the_type_of_drawn_values_is_declared_whatever_the_rows_hold(
    make, declared, columns
):
    """One person's 33.5 among whole numbers, or one gap, must not show in the type of
    what is drawn.
    """
    drawn = []
    for column in columns:
        frame = make({"x": column})
        domain = domain_of(frame, **declared, missing=["x"])
        codes = domain.encode(frame)
        known = [value is not None for value in column]
        assert (codes[:, 0] == domain.attributes[0].size - 1).tolist() == [
            not value for value in known
        ]
        lazy = nw.from_native(polars.DataFrame({"x": column}, strict=False).lazy())
        levels = level_expression(
            bound_to_polars(declared), lazy.collect_schema()["x"], polars
        )
        assert (
            lazy.to_native().select(levels).collect().to_series().to_list()
            == codes[:, 0].tolist()
        )
        values = domain.attributes[0].values.to_native()
        drawn.append(
            (str(getattr(values, "dtype", getattr(values, "type", None))), str(values))
        )
    assert len(set(drawn)) == 1


def bound_to_polars(declared):
    return domain_of(
        polars.DataFrame({"x": [None]}), **declared, missing=["x"]
    ).attributes[0]


@pytest.mark.parametrize(
    ("declared", "kind", "why"),
    [
        ({"levels": {"a": []}}, LevelError, "without a level"),
        ({"levels": {"a": ["x", "x"]}}, LevelError, "a value twice"),
        ({"levels": {"a": ["x", None]}}, LevelError, "name the column in missing"),
        ({"levels": {"a": "xyz"}}, InputError, "give a list for each column"),
        ({"levels": ["a"]}, InputError, "give a list for each column"),
        ({"levels": {"a": 3}}, InputError, "give a list for each column"),
        ({"levels": {"a": [[0, 1], [1]]}}, LevelError, "declare single values"),
        ({"levels": {"a": ["x"]}, "missing": 3}, InputError, "list the columns"),
        ({"edges": {"a": [1]}}, InputError, "ascending"),
        ({"edges": {"a": [1, 1]}}, InputError, "ascending"),
        ({"edges": {"a": [2, 1]}}, InputError, "ascending"),
        ({"edges": {"a": [0, float("inf")]}}, InputError, "ascending"),
        ({"edges": {"a": ["x", "y"]}}, InputError, "ascending"),
        (
            {"edges": {"a": [datetime.timedelta(0), datetime.timedelta(1)]}},
            InputError,
            "ascending",
        ),
        (
            {"edges": {"a": [datetime.time(8), datetime.time(9)]}},
            InputError,
            "ascending",
        ),
        (
            {"edges": {"a": [D(2020, 1, 1), datetime.datetime(2021, 1, 1)]}},
            InputError,
            "ascending",
        ),
        (
            {"edges": {"a": [NOON, NOON.replace(year=2021, tzinfo=datetime.UTC)]}},
            InputError,
            "ascending",
        ),
        ({"edges": {"a": [0, D(2021, 1, 1)]}}, InputError, "ascending"),
        (
            {"levels": {"a": [1]}, "edges": {"a": [1, 2]}},
            ColumnError,
            "with levels and with edges",
        ),
        ({"missing": ["b"]}, ColumnError, "missing names 'b'"),
    ],
)
def test_what_makes_no_sense_is_refused(declared, kind, why):
    with pytest.raises(kind, match=why):
        Domain.declare(**declared)


def test_values_without_a_common_type_are_refused():
    with pytest.raises(LevelError, match="do not fit into one column"):
        domain_of(
            polars.DataFrame({"a": [1, 2]}), levels={"a": [D(2020, 1, 1), "never"]}
        )


def test_a_draft_declares_what_was_learned_with_rounded_ends():
    rng = np.random.default_rng(0)
    frame = polars.DataFrame(
        {
            "sex": ["f", "m"] * 100,
            "pay": rng.integers(1013, 98_761, 200),
            "share": rng.uniform(0.0123, 0.98765, 200),
            "job": ["a", None] * 100,
            "since": [
                D(2000, 1, 1) + datetime.timedelta(int(days))
                for days in rng.integers(0, 5000, 200)
            ],
        }
    )
    draft = Domain.infer(frame).draft()
    assert draft.levels == {"sex": ["f", "m"], "job": ["a"]}
    assert draft.missing == ("job",)
    assert all(isinstance(edge, int) for edge in draft.edges["pay"])
    for name in ("pay", "share"):
        edges, values = draft.edges[name], frame[name]
        assert edges[0] <= values.min() < values.max() <= edges[-1]
        assert 5 <= len(edges) <= 9
        # digits
        assert all(len(f"{edge:g}".lstrip("0.").rstrip("0")) <= 3 for edge in edges)
        assert not {*edges[1:-1]} & {*values}
    gains = polars.DataFrame(
        {"gain": [0] * 900 + rng.integers(1, 90_000, 100).tolist()}
    )
    assert Domain.infer(gains).draft().edges["gain"][:2] == [0, 1]
    # 0.4 − 0.3 is less than 0.1
    hundredths = polars.DataFrame({"score": [number * 0.01 for number in range(80)]})
    assert Domain.infer(hundredths).draft().edges["score"] == pytest.approx(
        np.linspace(0, 0.8, 9)
    )
    codes = bound(draft, frames.open_frame(frame)).encode(frame)
    assert [len(np.unique(column)) for column in codes.T] == list(
        bound(draft, frames.open_frame(frame)).sizes
    )


@pytest.mark.parametrize(
    ("first", "days", "is_beginning"),
    [
        (D(2000, 1, 17), 5000, lambda edge: edge.day == 1),
        (D(1950, 3, 9), 25_000, lambda e: (e.month, e.day) == (1, 1)),
    ],
)
@pytest.mark.parametrize(
    ("hour", "kind"), [(None, nw.Date), (0, nw.Date), (7, nw.Datetime)]
)
def test_drafted_dates_are_not_those_of_people(first, days, is_beginning, hour, kind):
    born = [
        first + datetime.timedelta(int(day))
        for day in np.random.default_rng(1).integers(0, days, 300)
    ]
    frame = polars.DataFrame({"born": born})
    if hour is not None:
        frame = frame.with_columns(
            polars.col("born").cast(polars.Datetime) + datetime.timedelta(hours=hour)
        )
    draft = Domain.infer(frame).draft()
    edges = draft.edges["born"]
    assert draft.draft
    assert 5 <= len(edges) <= 11
    assert all(is_beginning(edge) for edge in edges)
    low, *_, high = map(frames.number_of, edges)
    assert (
        low
        <= frames.number_of(frame["born"].min())
        < frames.number_of(frame["born"].max())
        < high
    )
    assert bound(draft, frames.open_frame(frame)).attributes[0].values.dtype == kind


@pytest.mark.parametrize("zone", [None, datetime.UTC])
@pytest.mark.parametrize(
    "step",
    [datetime.timedelta(days=1, microseconds=7), datetime.timedelta(microseconds=1)],
)
def test_drawn_moments_lie_in_their_bins(zone, step):
    edges = [
        moment.replace(tzinfo=zone)
        for moment in (NOON, NOON + step, datetime.datetime.max)
    ]
    attribute = domain_of(
        polars.DataFrame({"x": edges[:2]}), edges={"x": edges}
    ).attributes[0]
    for level, (start, stop) in enumerate(
        zip(attribute.level_starts[:-1], attribute.level_starts[1:], strict=True)
    ):
        inside = attribute.values.to_list()[start:stop]
        assert len(set(inside)) == len(inside) > 0
        assert all(edges[level] <= moment < edges[level + 1] for moment in inside)


def recognisable(rows=400):
    rng = np.random.default_rng(1)
    columns = {
        "hired": rng.choice(["no", "yes"], rows),
        "sex": rng.choice(["f", "m"], rows),
    }
    columns["job"] = (
        ["clerk"] * (rows // 2)
        + ["nurse"] * (rows // 2 - 3)
        + ["astronaut", "pope", "queen"]
    )
    columns["pay"] = np.round(rng.lognormal(8, 1, rows), 2)
    columns["children"] = [0] * (rows // 2) + [2] * (rows // 2 - 1) + [13]
    return polars.DataFrame(
        columns | {"email": [f"person{number}@example.org" for number in range(rows)]}
    )


@pytest.mark.parametrize(
    "make", [lambda t: t, lambda t: t.to_pandas(), lambda t: t.to_arrow()]
)
def test_rows_to_share_hold_no_rare_value_and_no_identifier(make):
    frame = make(recognisable())
    fit = debias(frame, "hired", "sex", release=True, random_state=0, estimate=None)
    rows = frames.open_frame(fit.sample(3000))
    assert "email" not in rows.columns
    assert set(rows["job"].to_list()) == {"clerk", "nurse", "other"}
    assert set(rows["children"].to_list()) == {0, 2}
    assert not set(recognisable()["pay"].to_list()) & set(rows["pay"].to_list())
    common, _ = shareable(frames.open_frame(recognisable()), ["hired", "sex"], None)
    for counts in (
        common[name].to_native().value_counts() for name in ("pay", "children")
    ):
        assert counts["count"].min() >= FEWEST_ROWS  # that have a number that is shared
    assert fit.certificate.copied_share == 0
    assert "email" in fit.certificate.left_out_columns
    assert fit.certificate.achieved["statistical_rate"]["sex"] == pytest.approx(
        1, abs=1e-9
    )
    for ask in (fit.weights, fit.top_up):
        with pytest.raises(InputError, match="real people's rows"):
            ask()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"keep_columns": "email"}, "rows to share have no identifiers"),
        ({"detail": "rows"}, "no row's exact values are kept"),
        ({"base_share": 0.5}, "all of its rows come from its model"),
        ({"domain": Domain.infer(recognisable())}, "leave the domain out"),
        ({"release": "yes"}, "must be True or False"),
    ],
)
def test_what_contradicts_sharing_is_refused(options, why):
    with pytest.raises(InputError, match=why):
        debias(recognisable(), "hired", "sex", **({"release": True} | options))


def test_a_rare_group_cannot_be_shared():
    frame = recognisable().with_columns(
        sex=polars.Series(["d"] * 3 + ["f"] * 197 + ["m"] * 200)
    )
    with pytest.raises(LevelError, match="fewer than 10 rows with 'd'"):
        debias(frame, "hired", "sex", release=True)
    with pytest.raises(InputError, match="needs the table in memory"):
        debias(recognisable().lazy(), "hired", "sex", release=True)
    with pytest.raises(ColumnError, match="no column 'nobody'"):
        debias(recognisable(), "hired", "sex", release=True, weight="nobody")


def shared(column, library=pd.DataFrame):
    """The column x of a table to share."""
    frame, identifiers = shareable(frames.open_frame(library({"x": column})), [], None)
    assert not identifiers
    return frame.get_column("x").to_native()


@pytest.mark.parametrize("library", [pd.DataFrame, polars.DataFrame, pa.table])
def test_years_stay_in_their_bins(library):
    years = np.random.default_rng(0).integers(1940, 2006, 400)
    changed = np.asarray(shared(years, library))
    assert len(np.unique(changed)) == 16
    assert np.abs(changed - years).max() <= 5  # bins of about four years
    assert abs(changed.mean() - years.mean()) < 0.1


def test_an_outlier_moves_no_number_that_is_shared():
    pay = np.random.default_rng(1).normal(50_000, 9_000, 399).round(2)
    usual, moved = (shared(np.append(pay, highest)) for highest in (90_000.0, 4e9))
    assert usual.tolist() == moved.tolist()
    assert not set(usual) & set(pay)


@pytest.mark.parametrize(
    "dtype",
    ["Int64", "Int16", "UInt8", "int64[pyarrow]", "Float64", "Float32", "float32"],
)
def test_pandas_numbers_with_gaps_keep_their_type(dtype):
    numbers = np.random.default_rng(0).integers(1, 90, 400)
    column = pd.Series(
        pd.array(np.where(numbers % 7 == 0, None, numbers), dtype="Int64")
    ).astype("Float64")
    column = column.astype(dtype)
    changed = shared(column)
    assert changed.dtype == column.dtype
    assert (changed.isna() == column.isna()).all()
    # a bin is about as wide
    assert (
        changed.dropna().astype(float) - column.dropna().astype(float)
    ).abs().max() <= 6
