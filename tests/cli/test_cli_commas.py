"""Names and levels that contain a comma: every option that takes a list can name them,
and errors say how.
"""

import json
import random

import polars as pl
import pytest

import clifiles
from fairmaxent.cli.values import as_typed
from fairmaxent.errors import Option
from fairmaxent.options import values
from fairmaxent.options.values import HOW, quoted, split, unquoted

RACE, PLACE = "race, ethnicity", "Washington, DC"
ROWS = 240


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, places = random.Random(1), [PLACE, "Reno, NV"]
    levels = {"sex": "fm", RACE: "ab", "city, state": places, "hired": ["yes", "no"]}
    columns = {name: rng.choices(levels[name], k=ROWS) for name in levels}
    pl.DataFrame(
        columns | {"id, of person": [f"P{number:04d}" for number in range(ROWS)]}
    ).write_csv("t.csv")
    return tmp_path


def run(*args, code=0):
    result = clifiles.run(*args, code=code)
    return result.stderr if code else result.stdout


DEBIAS = [
    "debias",
    "t.csv",
    "--outcome",
    "hired",
    "--protected",
    "sex",
    "--estimate",
    "none",
    "--json",
]


@pytest.mark.more
def test_within_outcomes_forbid_target_drop_and_keep(folder):
    record = json.loads(run(*DEBIAS, "--within", f'"{RACE}"'))
    assert list(record["certificate"]["wanted"]["statistical_rate"]) == [
        f"sex within {RACE}"
    ]
    record = json.loads(run(*DEBIAS, "--outcome", f'"city, state"="{PLACE}"'))
    assert list(record["certificate"]["wanted"]["statistical_rate"]) == [
        "hired by sex",
        "city, state by sex",
    ]
    run(*DEBIAS, "--forbid", f'"city, state"="{PLACE}","{RACE}"=a', "-o", "fair.csv")
    fair = pl.read_csv("fair.csv")
    assert fair.filter(
        (pl.col("city, state") == PLACE) & (pl.col(RACE) == "a")
    ).is_empty()
    many = ["--rows", "4000", "--seed", "0", "-o", "fair.csv", "--force"]
    run(*DEBIAS, "--target", f'city, state: "{PLACE}"=0.25, "Reno, NV"=0.75', *many)
    assert abs((pl.read_csv("fair.csv")["city, state"] == PLACE).mean() - 0.25) < 0.03
    kept = [
        "--drop",
        f'"{RACE}"',
        "--drop",
        '"city, state"',
        "--keep-columns",
        '"id, of person"',
    ]
    run(*DEBIAS, *kept, "-o", "fair.csv", "--force")
    assert pl.read_csv("fair.csv").columns == ["sex", "hired", "id, of person"]


@pytest.mark.parametrize("option", ["--representation-rate", "--statistical-rate"])
def test_rates(folder, option):
    roles = [
        "debias",
        "t.csv",
        "--outcome",
        "hired",
        "--protected",
        f'sex,"{RACE}"',
        "--estimate",
        "none",
    ]
    record = json.loads(run(*roles, "--json", option, f'"{RACE}"=0.9,sex=none'))
    assert record["certificate"]["wanted"][option[2:].replace("-", "_")] == {
        "sex": None,
        RACE: 0.9,
    }


WRONG = [
    ("protected", RACE),
    ("representation-rate", f"{RACE}=0.9,sex=none"),
    ("forbid", f"{RACE}=a"),
]


@pytest.mark.parametrize(
    ("option", "value"), [("drop", "race"), ("drop", "sex,,id"), *WRONG]
)
def test_an_error_says_how(folder, option, value):
    code = 3 if value in ("race", RACE) else 2
    assert HOW in " ".join(run(*DEBIAS, f"--{option}", value, code=code).split())


@pytest.mark.parametrize(
    ("option", "value", "instead"),
    [
        ("target", f"city, state: {PLACE}=0.25, Reno, NV=0.75", HOW),
        ("within", f'"{RACE}",hired=yes', "label=yes in an option of its own"),
    ],
)
def test_a_form_that_a_config_file_does_not_know_says_what_to_type(
    folder, option, value, instead
):
    said = " ".join(run(*DEBIAS, f"--{option}", value, code=2).split())
    assert "is not written as in" in said
    assert instead in said


def test_levels_before_a_number_may_have_an_equals_sign():
    assert values.TEXTS["shares"].read(["income: <=50K=0.7, >50K=0.3"]) == {
        "income": {"<=50K": 0.7, ">50K": 0.3}
    }


def test_columns_and_levels_of_a_column_go_together_in_two_options():
    assert values.TEXTS["strata"].read(["department", "label=yes,label=no"]) == {
        "department": None,
        "label": ["yes", "no"],
    }


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_can_be_typed_and_any_names_come_back(seed):
    assert (
        as_typed(Option("keep_columns", ["id, of person", "sex"]))
        == "--keep-columns '\"id, of person\",sex'"
    )
    assert '"race, ethnicity"=none' in as_typed(
        Option("representation_rate", {RACE: None, "sex": 1.0})
    )
    rng = random.Random(seed)
    for _ in range(50):
        names = [
            "".join(rng.choices('ab",=: ', k=rng.randint(1, 6)))
            for _ in range(rng.randint(1, 4))
        ]
        assert [
            unquoted(part) for part in split(",".join(map(quoted, names)), ",")
        ] == names
        event = dict(zip(names, reversed(names), strict=False))
        by_kind = {
            "columns": names,
            "rate": dict.fromkeys(names, 0.5),
            "pairs": [event],
            "several columns": [names],
        }
        by_kind |= {
            "strata": {name: [name] for name in names},
            "levels": dict.fromkeys(names, names),
        }
        for kind, value in by_kind.items():
            typed = values.TEXTS[kind].typed(value)
            assert typed is not None
            assert values.TEXTS[kind].read(typed) == value
