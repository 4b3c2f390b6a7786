"""Generated calls: frames of any library with cells of any kind, and options that are
right, wrong, or absurd.
"""

import contextlib
import dataclasses
import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from fairmaxent import Domain, Estimate, FairMaxEntError, Privacy
from fairmaxent.fit.request import Request
from tables import EQUAL_PROBABILITIES

TEXTS = [
    "a",
    "b",
    "B",
    "é",
    "",
    " ",
    "1",
    "1.0",
    "NaN",
    "None",
    "=1+1",
    "<b>",
    "\x1b]0;x\a",
    "\u202e",
    "x" * 200,
]
DATES = [
    datetime.date(1, 1, 1),
    datetime.date(1999, 12, 31),
    datetime.date(2024, 2, 29),
    datetime.date(9999, 12, 31),
]
TIMES = [
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2024, 2, 29, 12, 30),
    datetime.datetime(2262, 4, 11),
]
CELLS = {
    "few": st.sampled_from(["p", "q", "r"]),
    "texts": st.sampled_from(TEXTS),
    "words": st.text(max_size=4),
    "bits": st.sampled_from([0, 1]),
    "counts": st.integers(-3, 9),
    "integers": st.integers(-(2**63), 2**63 - 1),
    "numbers": st.floats(),
    "amounts": st.sampled_from([0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, math.inf]),
    "truths": st.booleans(),
    "dates": st.sampled_from(DATES),
    "times": st.sampled_from(TIMES),
    "decimals": st.sampled_from([Decimal("0.1"), Decimal("2.50"), Decimal(7)]),
    "bytes": st.binary(max_size=2),
    "lists": st.lists(st.integers(0, 1), max_size=2),
    "anything": st.one_of(
        st.sampled_from([*TEXTS, 1, 1.5, True, math.nan, b"a"]), st.none()
    ),
}
ORDINARY = ("few", "bits", "counts", "texts", "truths")


def mostly(right, wrong):
    """One of the right values, or a wrong one at times."""
    return st.sampled_from([*right * (1 + 9 * len(wrong) // len(right)), *wrong])


@st.composite
def columns(draw, rows, kinds):
    """A list of cells of one kind, some of them missing."""
    cells = CELLS[draw(st.sampled_from(kinds))]
    if draw(st.booleans()):
        cells = st.one_of(cells, cells, cells, st.none())
    return draw(st.lists(cells, min_size=rows, max_size=rows))


@st.composite
def tables(draw):
    """Columns y, z, sometimes more: mostly ordinary ones, sometimes of any kind."""
    rows = draw(st.one_of(st.integers(0, 5), st.integers(6, 40), st.integers(20, 40)))
    likely = st.sampled_from([ORDINARY, ORDINARY, tuple(CELLS)])
    names = [
        "y",
        "z",
        *draw(st.sampled_from([(), ("a",), ("z2", "a"), ("a", "w", "y ")])),
    ]
    return {name: draw(columns(rows, draw(likely))) for name in names}


@st.composite
def plain_tables(draw):
    """Columns of a few levels each, without a missing one, in which y depends on the
    others.
    """
    # a draw for each cell would take long
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(30, 150))
    z, z2, a = (
        rng.choice(["p", "q", "r"][:levels], rows) for levels in rng.integers(2, 4, 3)
    )
    chances = rng.dirichlet([0.7, 2.0, 2.0], (3, 3))[
        (z == "p").astype(int), (a == "q").astype(int)
    ]
    level = (chances.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(0, 2)
    y = draw(st.sampled_from([np.array(["no", "yes", "later"]), np.array([0, 1, 5])]))[
        level
    ]
    return {
        name: cells.tolist()
        for name, cells in {"y": y, "z": z, "z2": z2, "a": a}.items()
    }


def framed(table, library):
    """The table in a library, or None if the library itself cannot hold it."""
    try:
        if library == "pandas":
            return pd.DataFrame(table)
        if library == "category":
            return pd.DataFrame(table).astype("category")
        return (
            pl.DataFrame(table, strict=False)
            if library == "polars"
            else pa.table(table)
        )
    except Exception:  # whatever that library raises is not ours
        return None


RATES = st.sampled_from(
    [
        None,
        1.0,
        0.8,
        0.5,
        0.0,
        1e-9,
        1,
        2.0,
        -1.0,
        math.nan,
        "x",
        {"z": 0.8},
        {"q": 1.0},
        [1.0],
    ]
)
LEVELS = st.sampled_from(["p", "q", "a", "", 0, 1, True, 1.5, None, "nobody", math.nan])
OPTIONS = {
    "representation_rate": RATES,
    "statistical_rate": RATES,
    "base_share": st.sampled_from([0.0, 0.3, 1.0, 1.5, -1, None, "x"]),
    "base": st.sampled_from(["tree", "product", "uniform", "oak"]),
    "favourable": st.one_of(LEVELS, st.lists(LEVELS, max_size=2)),
    "groups": st.sampled_from(["each", "joint", "all"]),
    "compare_missing": st.sampled_from([False, True, "drop"]),
    "largest_weight": st.sampled_from([None, 1.5, 10.0, 0.5, math.inf, "x"]),
    "random_state": st.sampled_from([0, 7, -1, 2**70, "x"]),
    "detail": st.sampled_from(["bins", "rows", "values", 3]),
    "weight": st.sampled_from(["a", "w", "y", "nobody"]),
    "keep_columns": st.sampled_from([["a"], ["nobody"], "a", 3]),
    "target": st.dictionaries(
        st.sampled_from(["y", "z", "a", "q"]),
        st.one_of(
            st.just("free"),
            st.dictionaries(
                LEVELS, st.sampled_from([0.0, 0.5, 1.0, 1e-12, -1]), max_size=3
            ),
        ),
        max_size=2,
    ),
    "forbid": st.lists(
        st.dictionaries(st.sampled_from(["y", "z", "a", "q"]), LEVELS, max_size=2),
        max_size=2,
    ),
    "model": st.sampled_from([None, None, "x", "logistic", EQUAL_PROBABILITIES]),
    "within": st.sampled_from(
        ["a", ["a", "z2"], {"a": "p"}, {"a": None, "z2": 1}, "y", "nobody", [], 3]
    ),
    "equal_means": st.sampled_from([True, False, "equal"]),
    "release": st.sampled_from([True, False, "x"]),
    "privacy": st.sampled_from([Privacy(), "x"]),
    "estimate": st.sampled_from(
        [
            None,
            None,
            "x",
            *(Estimate(output=way, model="tree") for way in ("rows", "weights")),
        ]
    ),
}
# What no option takes, or only some do, in the types of the libraries that people use.
STRANGE = st.sampled_from(
    [
        *(
            pd.NA,
            pd.NaT,
            np.datetime64("NaT"),
            10**400,
            -(10**400),
            1 + 2j,
            b"x",
            object(),
            Ellipsis,
            (),
            {},
            set(),
        ),
        *(
            np.array([1.0, 2.0]),
            np.array(["a"]),
            np.array(3),
            np.float32(math.nan),
            np.str_("each"),
            [pd.NA],
            [[]],
        ),
        *(
            {pd.NA: 1},
            {"a": pd.NA},
            {"z": np.array([1, 2])},
            {"z": {"p": 10**400}},
            pd.Series(["a"]),
            pl.Series("a"),
        ),
    ]
)
# Every option that there is: those without values above have strange ones only, the
# others now and then.
OPTIONS = {
    field.name: (
        st.one_of(*[OPTIONS[field.name]] * 9, STRANGE)
        if field.name in OPTIONS
        else STRANGE
    )
    for field in dataclasses.fields(Request)
    if field.name not in ("outcome", "protected")
}
# What people ask for, so that many calls are not refused.
RIGHT = {
    "representation_rate": st.sampled_from([1.0, 0.8, {"z": 0.5}]),
    "statistical_rate": st.sampled_from([0.9, 0.5, None]),
    "base_share": st.sampled_from([0.0, 0.3, 1.0]),
    "favourable": st.sampled_from(["yes", ["yes", "later"], {"y": "yes"}, 1]),
    "target": st.sampled_from(
        [{"z": None}, {"a": None}, {"y": "free"}, {"z2": {"p": 0.4, "q": 0.6}}]
    ),
    "within": st.sampled_from(
        ["a", "z2", "z2", ["a", "z2"], {"a": "p"}, {"z2": ["p", "q"]}]
    ),
    "equal_means": st.just(True),
    "release": st.just(True),
    "largest_weight": st.sampled_from([2.0, 10.0]),
    "forbid": st.just([{"z": "p", "a": "q"}]),
    "estimate": st.just(Estimate(model="tree")),
    "keep_columns": st.sampled_from(["a", ["a", "z2"]]),
}


PRIVACY = [
    None,
    Privacy(epsilon=5.0),
    Privacy(epsilon=100.0),
    Privacy(epsilon=1e6, delta=1e-3),
]
EDGES = st.sampled_from(
    [[0, 1], [-3, 0, 4, 9], [0.5, 1.5], DATES, TIMES, [1, 1], [], ["a", "b"]]
)


@st.composite
def options(draw, table, choices):
    """A few options of debias, most of them left at their defaults; one call in eight
    declares its domain.
    """
    chosen = draw(st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=4))
    asked = {name: draw(choices[name]) for name in chosen}
    if draw(st.integers(0, 7)) == 0:  # by the values that the columns have, mostly
        values = {
            name: [cell for cell in cells if cell is not None and cell == cell]
            for name, cells in table.items()
        }
        edges = {
            name: draw(EDGES)
            for name in table
            if choices is OPTIONS and draw(st.integers(0, 4)) == 0
        }
        missing = (
            draw(st.sampled_from([list(table), [], ["nobody"]]))
            if choices is OPTIONS
            else []
        )
        levels = {
            name: [value for at, value in enumerate(cells) if value not in cells[:at]]
            for name, cells in values.items()
            if name not in edges
        }
        with contextlib.suppress(FairMaxEntError):
            asked["domain"] = Domain.declare(
                levels=levels, edges=edges, missing=missing
            )
            asked["privacy"] = draw(st.sampled_from(PRIVACY))
    return asked


LIBRARIES = st.sampled_from(["pandas", "polars", "pyarrow", "category"])
ROLES = st.sampled_from([("y", "z"), ("y", "z"), ("y", "z"), (["y", "a"], "z")])
ODD_ROLES = [
    ("y", ["z", "z2"]),
    ("y", ["z", "a"]),
    ("y", "y"),
    ("nobody", "z"),
    (3, []),
    ([], "z"),
    (["y", "y"], "z"),
]


@st.composite
def calls(draw):
    """A table, its library, outcomes and protected columns, and options: of each two
    calls, one is sensible.
    """
    if draw(st.booleans()):
        table = draw(plain_tables())
        return table, draw(LIBRARIES), draw(ROLES), draw(options(table, RIGHT))
    table = draw(tables())
    return (
        table,
        draw(LIBRARIES),
        draw(st.one_of(ROLES, st.sampled_from(ODD_ROLES))),
        draw(options(table, OPTIONS)),
    )
