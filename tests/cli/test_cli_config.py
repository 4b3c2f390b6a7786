"""A file of options: each key does what the typed option does, and each changes
something.
"""

import shlex
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import click
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent.relabelling.labellers
from clifiles import ROWS, biased_table
from fairmaxent.cli.group import group

BASE = {"outcome": "income", "protected": "sex", "random_state": 1, "rows": 50}
QUIET = {"estimate": "none"}


@dataclass(frozen=True)
class Case:
    """A value of an option, the same typed, and what must stand beside it for it to
    matter.
    """

    value: Any
    typed: str
    beside: dict[str, Any] = field(default_factory=dict)


GROUPS = {"origin": {"near": "p", "far": "q"}}
GROUPS_TYPED = "origin: near=p, far=q"
OF_LIKELY = {"likely", "told_by", "known_groups", "recalibrated", "slack"}


# The options that say how labels change and whether a model is estimated, in one place.
ABOUT_MODELS = {
    "model": Case("logistic", "--model logistic", {"favourable": ">50K"}),
    "threshold": Case(
        0.3, "--threshold 0.3", {"model": "logistic", "favourable": ">50K"}
    ),
    "hide_protected": Case(
        True, "--hide-protected", {"model": "logistic", "favourable": ">50K"}
    ),
    "parity": Case(
        "opportunity",
        "--parity opportunity",
        {"model": "logistic", "favourable": ">50K"},
    ),
    "decided": Case(
        "best", "--decided best", {"model": "logistic", "favourable": ">50K"}
    ),
    "estimate": Case("rows", "--estimate rows"),
}
ONLY_TOLD = {"estimate"}  # it changes what is said, not the table
CASES = ABOUT_MODELS | {
    # roles
    "outcome": Case("job", "--outcome job"),
    "protected": Case(["race", "sex"], "--protected race,sex"),
    "favourable": Case("<=50K", "--favourable '<=50K'", {"statistical_rate": 0.9}),
    "groups": Case("joint", "--groups joint", {"protected": ["sex", "race"]}),
    "weight": Case("weight", "--weight weight"),
    # the fit
    "representation_rate": Case({"sex": 0.7, "race": "none"}, "--representation-rate sex=0.7,race=none",
                                {"protected": ["sex", "race"]}),
    "statistical_rate": Case(0.6, "--statistical-rate 0.6"),
    "within": Case(["job"], "--within job"),
    "equal_means": Case(True, "--equal-means", {"outcome": "age"}),
    "target": Case({"job": {"nurse": 0.6, "clerk": 0.4, "cook": 0}}, "--target 'job: nurse=0.6, clerk=0.4, cook=0'"),
    "compare_missing": Case(True, "--compare-missing", {"missing_text": ["cook"], "protected": "job"}),
    "smallest_group": Case("30%", "--smallest-group 30%", {"protected": "job"}),
    "largest_weight": Case(1.1, "--largest-weight 1.1", {"representation_rate": 1.0}),
    "base": Case("uniform", "--base uniform"),
    "base_share": Case(0.6, "--base-share 0.6"),
    "detail": Case("bins", "--detail bins"),
    "forbid": Case([{"sex": "Male", "job": "cook"}], "--forbid sex=Male,job=cook"),
    "keep_columns": Case(["person"], "--keep-columns person"),
    "random_state": Case(2, "--seed 2"),
    "release": Case(True, "--release"),
    "epsilon": Case(1.5, "--epsilon 1.5"),
    "delta": Case(1e-6, "--delta 1e-06"),
    "rows_per_person": Case(3, "--rows-per-person 3"),
    "ledger": Case("people.json", "--ledger people.json"),
    "budget": Case(2.5, "--budget 2.5"),
    "undeclared": Case("drop", "--undeclared drop"),
    "likely": Case(GROUPS, f"--likely '{GROUPS_TYPED}'", {"told_by": "names"}),
    "told_by": Case("columns", "--told-by columns", {"likely": GROUPS}),
    "known_groups": Case("truth", "--known-groups truth", {"likely": GROUPS, "told_by": "names"}),
    "recalibrated": Case(
        True,
        "--recalibrated",
        {
            "likely": GROUPS,
            "told_by": "names",
            "known_groups": "truth",
            "mode": "weights",
            "rows": None,
        },
    ),
    "slack": Case(0.01, "--slack 0.01", {"likely": GROUPS, "told_by": "names"}),
    # what is written
    "output_format": Case("jsonl", "--output-format jsonl"),
    "like_input": Case(True, "--like-input"),
    "mode": Case("top-up", "--mode top-up", {"rows": None}),
    "rows": Case(70, "--rows 70"),
    "iid": Case(True, "--iid"),
    "weight_name": Case("fair", "--weight-name fair", {"mode": "weights", "rows": None}),
    # columns as levels
    "bins": Case({"age": [0, 60, 100]}, "--bins 'age: 0, 60, 100'", {"base_share": 1.0}),
    "kinds": Case({"age": "categorical"}, "--kinds 'age: categorical'", {"base_share": 1.0}),
    "levels": Case({"job": {"nurse": "care", "cook": "care"}}, "--levels 'job: nurse=care, cook=care'"),
    "order": Case({"job": ["nurse", "cook", "clerk"]}, "--order 'job: nurse, cook, clerk'", {"base_share": 1.0}),
    "max_levels": Case(2, "--max-levels 2", {"base_share": 1.0}),
    "domain": Case("domain.toml", "--domain domain.toml"),
    # reading the file
    "input_format": Case("parquet", "--input-format parquet"),
    "sheet": Case("2", "--sheet 2"),
    "range": Case("A5:L945", "--range A5:L945"),
    "skip_lines": Case(1, "--skip-lines 1"),
    "skip_last": Case(9, "--skip-last 9"),
    "date_order": Case("dmy", "--date-order dmy"),
    "delimiter": Case(";", "--delimiter ';'"),
    "encoding": Case("utf-16", "--encoding utf-16"),
    "decimal": Case(".", "--decimal ."),
    "missing_text": Case(["nurse", "cook"], "--missing-text nurse --missing-text cook"),
    "columns": Case(["sex", "race", "job", "age", "weight", "income"], "--columns sex,race,job,age,weight,income"),
    "drop": Case(["age"], "--drop age"),
}  # fmt: skip
OWN_TABLES = {"columns", "decimal", "keep_columns", "like_input", "date_order"}
OWN_TABLES |= OF_LIKELY
PLAIN: dict[tuple[str, str], tuple[int, bytes, str]] = {}
EACH_TIME = {  # never in a file
    *("max_memory", "readable_by_others", "resume", "scheduler"),
    *("config", "output", "save", "report", "force", "json"),
}
ABOUT_REPORTS = {"title", "author", "purpose", "evaluate"}  # tried with a report
# the rest is slow
RUN = {
    "representation_rate",
    "target",
    "forbid",
    "weight_name",
    "domain",
    "decimal",
    "missing_text",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The tree learns in no time; which model is tried is not what is tested here.
    monkeypatch.setattr(
        fairmaxent.relabelling.labellers, "has_library", lambda name: False
    )
    return tmp_path


@cache
def table():
    """Ages with a comma for a decimal mark, which reads as numbers unless a point is
    asked for.
    """
    return biased_table().with_columns(
        age=pl.Series(np.random.default_rng(0).integers(40, 180, ROWS) / 2)
    )


def write_table(key):
    if key == "columns":
        table().write_csv("data.csv", include_header=False)
    elif key == "decimal":
        table().write_csv("data.csv", separator=";", decimal_comma=True)
    elif key == "like_input":
        table().write_csv("data.csv", separator=";")
    elif key == "date_order":
        days = pl.Series([f"0{1 + row % 3}/0{1 + row % 5}/2020" for row in range(ROWS)])
        table().with_columns(hired=days).write_csv("data.csv")
    elif key == "keep_columns":
        table().with_columns(
            person=pl.Series([f"p{row}" for row in range(ROWS)])
        ).write_csv("data.csv")
    elif key in OF_LIKELY:
        rng = np.random.default_rng(1)
        chance = rng.random(ROWS)
        truth = np.where(rng.random(ROWS) < chance, "near", "far").astype(object)
        truth[::2] = None
        # a little off, so that it is scaled or refused
        other = 1 - chance + 0.001 * (key == "slack")
        columns = {"p": chance, "q": other, "truth": pl.Series(list(truth))}
        table().with_columns(**columns).write_csv("data.csv")
    else:
        table().write_csv("data.csv")


def toml(value):
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f'"{name}" = {toml(inner)}' for name, inner in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def run(folder, options, typed=""):
    """Exit code, table and words of a run with these options in a file and those
    typed.
    """
    lines = [
        f"{name} = {toml(value)}"
        for name, value in options.items()
        if value is not None
    ]
    (folder / "options.toml").write_text("\n".join(lines))
    asked = [
        "debias",
        "data.csv",
        "--config",
        "options.toml",
        "-o",
        "-",
        *shlex.split(typed),
    ]
    result = CliRunner().invoke(group, asked)
    return result.exit_code, result.stdout_bytes, result.stderr


def plain_run(folder, key, beside):
    """What comes without the key: the same for many keys."""
    asked = (
        key if key in OWN_TABLES else "any",
        repr(beside),
    )
    if asked not in PLAIN:
        PLAIN[asked] = run(folder, beside)
    return PLAIN[asked]


def understood(folder, options, typed=""):
    """What the command is asked for by a file with these options and those typed."""
    (folder / "options.toml").write_text(
        "\n".join(f"{name} = {toml(value)}" for name, value in options.items())
    )
    command = group.get_command(click.Context(group), "debias")
    with command.make_context(
        "debias", ["data.csv", "--config", "options.toml", *shlex.split(typed)]
    ) as context:
        return context.params


@pytest.mark.some(20)
@pytest.mark.parametrize("key", CASES)
def test_a_key_is_read_as_the_typed_option_is(folder, key):
    case = CASES[key]
    others = {
        name: value
        for name, value in (BASE | QUIET | case.beside).items()
        if name != key and value is not None
    }
    in_file = understood(folder, others | {key: case.value})
    assert in_file == understood(folder, others, case.typed)
    assert key in BASE | QUIET or in_file[key] != understood(folder, others)[key]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "key",
    [key if key in RUN else pytest.param(key, marks=pytest.mark.slow) for key in CASES],
)
def test_a_key_does_what_the_typed_option_does(folder, key, monkeypatch):
    case = CASES[key]
    if "model" in (key, *case.beside):  # a model of scikit-learn
        monkeypatch.setattr(
            fairmaxent.relabelling.labellers, "has_library", lambda name: True
        )
    write_table(key)
    beside = BASE | QUIET | case.beside
    in_file = run(folder, beside | {key: case.value})
    without = {name: value for name, value in beside.items() if name != key}
    assert in_file == run(folder, without, case.typed)
    plain = plain_run(folder, key, beside)
    told, table_and_code = in_file[2] != plain[2], in_file[:2] != plain[:2]
    assert told if key in ONLY_TOLD else table_and_code
    assert 0 in (in_file[0], plain[0])  # one of them works


@pytest.mark.parametrize(
    ("outcomes", "typed"),
    [
        (["income", "job"], "--outcome income --outcome job"),
        ({"job": ["cook"]}, "--outcome income --outcome job=cook"),
    ],
)
def test_several_outcomes_are_a_list_or_their_good_levels(folder, outcomes, typed):
    write_table("")
    others = BASE | QUIET | {"outcome": None}
    in_file = {"outcome": outcomes}
    if isinstance(outcomes, dict):
        in_file = {"outcome": {"income": ">50K", **outcomes}}
        typed = f"{typed} --favourable '>50K'"
    found = run(folder, others | in_file)
    assert found[0] == 0
    assert found == run(folder, others, typed)
    assert found[1] != run(folder, others, "--outcome income")[1]


def test_a_good_level_is_named_once(folder):
    write_table("")
    twice = BASE | QUIET | {"outcome": {"income": ">50K", "job": "cook"}}
    code, _, said = run(folder, twice | {"favourable": ">50K"})
    assert code == 3
    assert "the good level of 'income' is given twice" in said


def test_other_spellings_and_keys_of_other_commands_are_known(folder):
    write_table("")
    seeded = (
        BASE
        | QUIET
        | {
            "random_state": None,
            "seed": 2,
            "favorable": ">50K",
            "folds": 4,
        }
    )
    named = BASE | QUIET | {"random_state": 2, "favourable": ">50K"}
    assert run(folder, seeded) == run(folder, named)


def test_every_option_that_a_file_may_hold_is_tried():
    command = group.get_command(click.Context(group), "debias")
    names = {
        option.name
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    }
    assert set(CASES) == names - EACH_TIME - ABOUT_REPORTS
