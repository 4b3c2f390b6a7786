"""errors.py: bad input gets an error of the library's own that names the place and the
next step; nothing changes.

One table of cases drives one test: what is called, on which columns, which error comes,
and what its message says.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent import (
    Domain,
    FairMaxEntError,
    InfeasibleError,
    InputError,
    debias,
    paper,
)
from fairmaxent.errors import (
    ColumnError,
    EvidenceError,
    ForbiddenError,
    LevelError,
    RateError,
    RefusedError,
    TargetError,
    WeightError,
)

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
ROWS = 120


def random_columns() -> dict[str, list]:
    rng = np.random.default_rng(3)
    words = {
        "income": ["high", "low"],
        "sex": ["Female", "Male"],
        "race": ["Black", "Other", "White"],
        "job": ["clerk", "none", "nurse"],
        "town": ["Bonn", "Kiel"],
    }
    columns = {
        name: rng.choice(levels, ROWS).tolist() for name, levels in words.items()
    }
    return columns | {
        "age": rng.integers(17, 90, ROWS).tolist(),
        "weight": rng.uniform(0.5, 2, ROWS).tolist(),
    }


COLUMNS = random_columns()
# Every Female has a low income and every Male a high one: two cells have no rows.
SPLIT = {
    "sex": ["Female" if income == "low" else "Male" for income in COLUMNS["income"]]
}
# Nurses, and nobody else, live in Bonn.
TIED = {"town": ["Bonn" if job == "nurse" else "Kiel" for job in COLUMNS["job"]]}
MALE_NURSE = {"sex": "Male", "job": "nurse"}
CYCLE = [
    {"race": "Black", "job": "nurse"},
    {"job": "none", "town": "Kiel"},
    {"town": "Bonn", "race": "Other"},
]
UNREACHABLE = {
    "job": {"nurse": 0.1, "clerk": 0.1, "none": 0.8},
    "town": {"Bonn": 0.9, "Kiel": 0.1},
}


def starting_with(value, name="weight"):
    """Replace the first value of a column."""
    return {name: [value, *COLUMNS[name][1:]]}


def without(frame, name):
    """Drop one column, in any library."""
    return nw.from_native(frame, eager_only=True).drop(name).to_native()


@dataclass(frozen=True)
class Case:
    """What is called, the error that must come, texts its message must hold, and
    columns unlike the usual ones.
    """

    call: Callable
    error: type[FairMaxEntError]
    says: tuple[str, ...]
    columns: Mapping[str, list] = field(default_factory=dict)


def asking(**options):
    """Call the front door with some options."""
    return lambda frame: debias(
        frame, **({"outcome": "income", "protected": "sex"} | options)
    )


def after(use, **options):
    """Use a fit that is sound in itself."""
    return lambda frame: use(asking(**options)(frame))


def probability_of(**columns):
    """Ask a fit for the probability of rows that differ from those it has learned in
    some columns.
    """
    return lambda frame: asking()(frame).distribution.probability(
        LIBRARIES[type(frame).__module__.split(".")[0]](COLUMNS | columns)
    )


def as_paper(**options):
    """Call the paper's own configuration."""
    return lambda frame: paper.fit(
        frame, **({"outcome": "income", "protected": "sex"} | options)
    )


COLUMN_CASES = {
    "unknown outcome": Case(
        asking(outcome="incme"), ColumnError, ("'incme'", "did you mean 'income'")
    ),
    "unknown protected": Case(
        asking(protected=["race", "sexx"]),
        ColumnError,
        ("'sexx'", "did you mean 'sex'"),
    ),
    "unknown weight": Case(
        asking(weight="wieght"), ColumnError, ("'wieght'", "did you mean 'weight'")
    ),
    "unknown representation rate": Case(
        asking(representation_rate={"sx": 0.9}),
        ColumnError,
        ("representation_rate", "'sx'", "did you mean 'sex'"),
    ),
    "rate of a column that is not protected": Case(
        asking(statistical_rate={"race": 0.9}),
        ColumnError,
        ("statistical_rate", "'race'", "known: 'sex'"),
    ),
    "outcome protected": Case(
        asking(protected=["sex", "income"]),
        ColumnError,
        ("'income'", "only be one of the two"),
    ),
    "protected twice": Case(
        asking(protected=["sex", "sex"]),
        ColumnError,
        ("['sex', 'sex']", "name each once"),
    ),
    "no protected": Case(
        asking(protected=[]), ColumnError, ("protected", "pass at least one")
    ),
    "protected is None": Case(
        asking(protected=None), ColumnError, ("protected is None", "pass the name")
    ),
    "weight is protected": Case(
        asking(weight="age", protected="age"), ColumnError, ("'age'", "name another")
    ),
    "domain lacks a column": Case(
        lambda frame: asking(domain=Domain.infer(without(frame, "job")))(frame),
        ColumnError,
        ("'job'", "not in the given Domain", "infer the Domain from the same columns"),
    ),
    "domain is none": Case(
        asking(domain="sex"), InputError, ("domain is 'sex'", "Domain.infer(frame)")
    ),
    "cells are lists": Case(
        asking(),
        InputError,
        ("'job'", "unpack the column"),
        {"job": [["nurse"]] * ROWS},
    ),
    "infinite number": Case(
        asking(),
        InputError,
        ("'age'", "infinite", "replace it"),
        starting_with(np.inf, "age"),
    ),
}
LEVEL_CASES = {
    "single outcome": Case(
        asking(),
        LevelError,
        ("outcome column 'income'", "'low'", "Choose another"),
        {"income": ["low"] * ROWS},
    ),
    "single group": Case(
        asking(),
        LevelError,
        ("protected column 'sex'", "'Male'", "Choose another"),
        {"sex": ["Male"] * ROWS},
    ),
    "too many outcomes": Case(
        asking(),
        LevelError,
        ("'income' has 120 levels", "Merge levels"),
        {"income": [f"{i} €" for i in range(ROWS)]},
    ),
    "too many groups": Case(
        asking(protected=["race", "sex"]),
        LevelError,
        ("'sex' has 120 levels", "Merge levels", "max_levels"),
        {"sex": [f"name {i}" for i in range(ROWS)]},
    ),
    "too many cells": Case(
        asking(protected=["sex", "race", "job", "town", "age", "size"]),
        LevelError,
        ("18,432 combinations", "age: 16", "Merge levels", "protect fewer columns"),
        {"size": [number * 7 % 101 for number in range(ROWS)]},
    ),
    "unknown favourable": Case(
        asking(favourable="hihg"), LevelError, ("'income'", "did you mean 'high'")
    ),
    "unseen value at probability": Case(
        probability_of(**starting_with("nrse", "job")),
        LevelError,
        ("'job' holds 'nrse'", "did you mean 'nurse'", "replace it"),
    ),
    "missing value at probability": Case(
        probability_of(**starting_with(None, "job")),
        LevelError,
        ("'job' had no missing values", "fill them"),
    ),
}
RATE_CASES = {
    f"{option} = {rate!r}": Case(
        asking(**{option: rate}),
        RateError,
        (f"{option} is {rate!r}", "above 0", "at most 1", f"use {option}=None"),
    )
    for option in ("representation_rate", "statistical_rate")
    for rate in (0, 1.2, float("nan"), "a", True)
} | {
    "rate of one column": Case(
        asking(protected=["sex", "race"], representation_rate={"race": 1.2}),
        RateError,
        ("representation_rate['race'] is 1.2", "at most 1", "leave the column out"),
    ),
    "rates by column for intersections": Case(
        asking(
            protected=["sex", "race"], statistical_rate={"sex": 0.9}, groups="joint"
        ),
        RefusedError,
        ("statistical_rate", "groups='joint'", "give a number instead of columns"),
    ),
}
CHOICE_CASES = {
    "unknown base": Case(
        asking(base="tre"), InputError, ("base is 'tre'", "did you mean 'tree'")
    ),
    "unknown groups": Case(
        asking(groups="joined"),
        InputError,
        ("groups is 'joined'", "did you mean 'joint'"),
    ),
    **{
        f"base_share = {share!r}": Case(
            asking(base_share=share),
            InputError,
            (f"base_share is {share!r}", "0 (rows only) and 1 (base only)"),
        )
        for share in (-0.1, float("nan"), "half", True)
    },
    **{
        f"sample({count!r})": Case(
            after(lambda fit, count=count: fit.sample(count)),
            InputError,
            (f"n is {count!r}", "positive whole number"),
        )
        for count in (0, 2.5, "3", True)
    },
    **{
        f"{where} with seed {seed!r}": Case(
            call(seed), InputError, (f"random_state is {seed!r}", "not negative")
        )
        for seed in (-1, 2.5, "3", True)
        for where, call in {
            "debias": lambda seed: asking(random_state=seed),
            "sample": lambda seed: after(lambda fit: fit.sample(3, random_state=seed)),
            "top_up": lambda seed: after(lambda fit: fit.top_up(random_state=seed)),
        }.items()
    },
}
WEIGHT_CASES = {
    **{
        f"weight of {value}": Case(
            asking(weight="weight"),
            WeightError,
            ("'weight'", f"holds {shown} in row 0", "Repair or drop"),
            starting_with(value),
        )
        for value, shown in (
            (float("nan"), "nan"),
            (None, "nan"),
            (float("inf"), "inf"),
            (-1.0, "-1.0"),
        )
    },
    "weights all zero": Case(
        asking(weight="weight"),
        WeightError,
        ("'weight'", "at least one row"),
        {"weight": [0.0] * ROWS},
    ),
    "text as weights": Case(
        asking(weight="job"), WeightError, ("'job'", "not numbers", "convert it")
    ),
}
TARGET_CASES = {
    "target above 1 in sum": Case(
        asking(target={"sex": {"Female": 0.6, "Male": 0.6}}),
        TargetError,
        ("target['sex']", "to 1.2", "Give every"),
    ),
    "target below 1 in sum": Case(
        asking(target={"job": {"nurse": 0.6}}),
        TargetError,
        ("target['job']", "0.6", "not named", "'clerk'"),
    ),
    "target of an unknown level": Case(
        asking(target={"sex": {"Femal": 0.6, "Male": 0.4}}),
        LevelError,
        ("'sex'", "'Femal'", "did you mean 'Female'"),
    ),
    **{
        f"target of {share!r}": Case(
            asking(target={"sex": {"Male": share, "Female": 0.6}}),
            TargetError,
            (f"target['sex'] gives 'Male' the share {share!r}", "between 0 and 1"),
        )
        for share in (-0.6, float("nan"), "a")
    },
    "target without columns": Case(
        asking(target=[0.5, 0.5]),
        TargetError,
        ("[0.5, 0.5]", "{column: {level: share}}"),
    ),
    "empty cells and rows only": Case(
        asking(base_share=0),
        InfeasibleError,
        ("income = high, sex = Female", "income = low, sex = Male", "base_share > 0"),
        SPLIT,
    ),
    "marginals that rows cannot reach": Case(
        asking(base_share=0, target=UNREACHABLE),
        InfeasibleError,
        ("town = Kiel", "base_share > 0"),
        TIED,
    ),
}
FORBID_CASES = {
    "a needed cell": Case(
        asking(forbid=[{"sex": "Male", "income": "high"}]),
        InfeasibleError,
        ("forbidden", "income = high, sex = Male", "remove a rule from forbid"),
    ),
    "every row": Case(
        asking(forbid=[{"town": "Bonn"}, {"town": "Kiel"}]),
        ForbiddenError,
        ("forbid leaves no row", "drop the rule"),
    ),
    "a dict": Case(
        asking(forbid={"sex": "Male"}),
        ForbiddenError,
        ("{'sex': 'Male'}", "pass a list"),
    ),
    "an empty combination": Case(
        asking(forbid=[{}]), ForbiddenError, ("[{}]", "none of them empty")
    ),
    "three other columns": Case(
        asking(forbid=[{"race": "Black", "job": "nurse", "town": "Kiel"}]),
        ForbiddenError,
        ("race = Black, job = nurse, town = Kiel", "3 columns", "state it in pairs"),
    ),
    "a cycle": Case(
        asking(forbid=CYCLE),
        ForbiddenError,
        ("cycle", "Drop this rule, or join two of the columns"),
    ),
}
FIT_CASES = {
    "evidence that is forbidden": Case(
        after(lambda fit: fit.sample(3, given=MALE_NURSE), forbid=[MALE_NURSE]),
        EvidenceError,
        ("sex = 'Male', job = 'nurse'", "probability zero", "Relax the evidence"),
    ),
    "evidence that no row has": Case(
        after(
            lambda fit: fit.distribution.condition({"town": "Bonn", "job": "clerk"}),
            base_share=0,
        ),
        EvidenceError,
        ("town = 'Bonn', job = 'clerk'", "base_share > 0"),
        TIED,
    ),
    "evidence without columns": Case(
        after(lambda fit: fit.sample(3, given=["sex"])),
        InputError,
        ("given is ['sex']", "by name"),
    ),
    "marginal of an unknown column": Case(
        after(lambda fit: fit.distribution.marginal("jbo")),
        ColumnError,
        ("'jbo'", "did you mean 'job'"),
    ),
    "enormous marginal": Case(
        after(lambda fit: fit.distribution.marginal(list("abcdef"))),
        InputError,
        ("16,777,216 cells", "ask for fewer columns"),
        {
            name: [number * step % 101 for number in range(ROWS)]
            for step, name in enumerate("abcdef", start=2)
        },
    ),
    "weights where a cell had to be filled": Case(
        after(lambda fit: fit.weights()),
        InfeasibleError,
        ("income = high, sex = Female", "sample() or top_up()"),
        SPLIT,
    ),
    "top-up of a group that must vanish": Case(
        after(
            lambda fit: fit.top_up(),
            protected="race",
            target={"race": {"Black": 0, "Other": 0.5, "White": 0.5}},
        ),
        InfeasibleError,
        ("race = Black", "Remove them first", "sample() or weights()"),
    ),
}
PAPER_CASES = {
    "three groups": Case(
        as_paper(protected="race"),
        LevelError,
        ("'race' has 3", "Black, Other, White", "use fairmaxent.debias"),
    ),
    "a list of columns": Case(
        as_paper(protected=["sex"]),
        ColumnError,
        ("['sex']", "one column", "fairmaxent.debias"),
    ),
    "an unknown prior": Case(
        as_paper(prior="x"), InputError, ("prior is 'x'", "known: 'w', 'd'")
    ),
    "an unknown theta": Case(
        as_paper(theta="x"), InputError, ("theta is 'x'", "known: 'd', 'b', 'w'")
    ),
    "an unknown solver": Case(
        as_paper(solver="newtn"),
        InputError,
        ("solver is 'newtn'", "did you mean 'newton'"),
    ),
    "C above 1": Case(as_paper(C=1.5), InputError, ("C is 1.5", "between 0")),
    "no tau": Case(as_paper(tau=None), RateError, ("tau is None", "above 0")),
    "an empty cell": Case(
        as_paper(),
        InfeasibleError,
        ("income = high, sex = Female", "Merge levels, or use fairmaxent.debias"),
        SPLIT,
    ),
}
CASES = {
    f"{topic}: {name}": case
    for topic, cases in {
        "columns": COLUMN_CASES,
        "levels": LEVEL_CASES,
        "rates": RATE_CASES,
        "choices": CHOICE_CASES,
        "weights": WEIGHT_CASES,
        "target": TARGET_CASES,
        "forbid": FORBID_CASES,
        "fit": FIT_CASES,
        "paper": PAPER_CASES,
    }.items()
    for name, case in cases.items()
}


def picture(frame):
    """Everything a user can see of a table; text, so that NaN equals NaN."""
    opened = nw.from_native(frame, eager_only=True)
    return repr((opened.schema, opened.to_dict(as_series=False)))


# A library matters where its values are wrong; a wrong option is refused in the same
# way for all of them.
PAIRS = [
    (name, library)
    for name, case in CASES.items()
    for library in (LIBRARIES if case.columns else ["polars"])
]


@pytest.mark.some(20)
@pytest.mark.parametrize(("name", "library"), PAIRS)
def test_bad_input_is_refused_clearly_and_leaves_no_trace(
    name, library, tmp_path, monkeypatch, capsys
):
    case = CASES[name]
    frame = LIBRARIES[library](COLUMNS | case.columns)
    before = picture(frame)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FairMaxEntError) as caught:
        case.call(frame)
    assert type(caught.value) is case.error
    assert [text for text in case.says if text not in str(caught.value)] == [], str(
        caught.value
    )
    assert picture(frame) == before
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


TWINS = pd.DataFrame([[1, 2], [3, 4]], columns=["sex", "sex"])
NOT_TABLES = {
    "no rows, polars": (
        pl.DataFrame({"income": [], "sex": []}),
        InputError,
        "no rows; pass at least one",
    ),
    "no columns, polars": (pl.DataFrame(), InputError, "no columns; pass at least one"),
    "equal names, pandas": (TWINS, ColumnError, "more than once: 'sex'; rename"),
    "equal names, pyarrow": (
        pa.table([[1], [2]], names=["sex", "sex"]),
        ColumnError,
        "more than once: 'sex'; rename",
    ),
    "numbers as names": (
        pd.DataFrame([[1, 2]]),
        ColumnError,
        "must be text, but these are not: 0, 1; rename",
    ),
    "dict": (COLUMNS, InputError, "dict is not a table; pass a pandas DataFrame"),
    "array": (
        np.zeros((2, 2)),
        InputError,
        "ndarray is not a table; pass a pandas DataFrame",
    ),
    "None": (None, InputError, "NoneType is not a table; pass a pandas DataFrame"),
}


@pytest.mark.parametrize(
    ("frame", "error", "says"), NOT_TABLES.values(), ids=NOT_TABLES
)
@pytest.mark.parametrize(
    "call",
    [asking(), as_paper(), Domain.infer],
    ids=["debias", "paper.fit", "Domain.infer"],
)
def test_what_is_no_usable_table_is_refused(frame, error, says, call):
    with pytest.raises(error, match=says) as caught:
        call(frame)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "call", [as_paper(), Domain.infer], ids=["paper.fit", "Domain.infer"]
)
def test_only_debias_takes_lazy_frames(call):
    with pytest.raises(InputError, match=r"\.collect\(\)"):
        call(pl.LazyFrame(COLUMNS))
