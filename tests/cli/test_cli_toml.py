"""TOML files with values of any kind for every option: each is taken, or refused in one
line.
"""

import contextlib
import tomllib

import click
import polars as pl
import pytest
from click.testing import CliRunner

from clifiles import ROLES, biased_table
from fairmaxent.cli.config import config_keys
from fairmaxent.cli.group import group
from fairmaxent.errors import FairMaxEntError

SCALARS = (
    "true",
    "3",
    "-1",
    "2.5",
    "inf",
    "nan",
    '""',
    '"x"',
    '"none"',
    "1979-05-27",
    "07:32:00",
    "9" * 30,
)
LISTS = (
    "[]",
    '["sex"]',
    "[1, 2]",
    "[[1]]",
    "[[]]",
    "[{a=1}]",
    "[true]",
    "[1979-05-27]",
    "[nan]",
)
SECTIONS = (
    "{}",
    "{sex=1}",
    '{sex="x"}',
    '{sex=[1,"a"]}',
    "{sex={F=1}}",
    "{sex=true}",
    "{sex=1979-05-27}",
    "{age={}}",
)
VALUES = (
    *SCALARS,
    *LISTS,
    *SECTIONS,
    "{age=[1,2,3]}",
    "{sex=nan}",
    '{sex=[["a"]]}',
    '{"" = 1}',
    r'"\u0000"',
)
KEYS = [*config_keys(), "seed", "favorable"]


def roles(key):
    pairs = {"outcome": ROLES[:2], "protected": ROLES[2:]}
    return [part for name, typed in pairs.items() if name != key for part in typed]


@pytest.mark.some(15)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", KEYS)
def test_each_is_understood_or_refused(folder, key, every):
    name = "compare" if key in ("folds", "classifier", "truth") else "debias"
    command = group.get_command(click.Context(group), name)
    for value in VALUES[KEYS.index(key) % every :: every]:
        (folder / "c.toml").write_text(f"{key} = {value}\n")
        arguments = ["data.csv", *roles(key), "--config", "c.toml"]
        with (
            contextlib.suppress(click.UsageError, FairMaxEntError),
            command.make_context("command", arguments),
        ):
            pass


# which can run code here
DEEP, CLUSTER = "c.toml is nested too deeply", "pass --scheduler on the command line"


@pytest.mark.parametrize("option", ["--config", "--domain"])
@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 50_000,
        "a." * 20_000 + "b = 1",
        "[" + "a." * 20_000 + "b]",
        CLUSTER,
    ],
)
def test_endless_nesting_and_the_name_of_a_cluster_are_refused(folder, option, text):
    option, said = ("--config", CLUSTER) if text == CLUSTER else (option, DEEP)
    (folder / "c.toml").write_text(
        'scheduler = "tcp://127.0.0.1:1"\n' if text == CLUSTER else text
    )
    result = CliRunner().invoke(group, ["debias", "data.csv", *ROLES, option, "c.toml"])
    assert (result.exit_code, said in result.stderr) == (3, True)


def test_any_name_and_level_can_be_written_and_read_back(folder):
    """TOML has no character 127, and writes those beyond 16 bits in its own way."""
    odd = 'a\x7f\x1b\u202e\U000e0041\u0085é"\\\n'
    table = (
        biased_table()
        .with_columns(pl.lit(odd).alias("odd"))
        .rename({"job": f"job{odd}"})
    )
    table.with_columns(
        odd=pl.when(pl.col("age") > 40).then(pl.lit("b")).otherwise("odd")
    ).write_parquet("d.pq")
    assert (
        CliRunner()
        .invoke(group, ["inspect", "d.pq", *ROLES, "--write-config", "c.toml"])
        .exit_code
        == 0
    )
    text = (folder / "c.toml").read_text(encoding="utf-8")
    assert f"job{odd}" in tomllib.loads(text)["kinds"]
    assert not set(text) & set("\x7f\x1b\u202e\U000e0041\u0085")
    result = CliRunner().invoke(group, ["debias", "d.pq", "--config", "c.toml"])
    assert result.exit_code == 0, result.stderr
