"""Every command says what to type next, and what it prints can be typed as it
stands.
"""

import shlex
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from clifiles import ROLES, ROWS, biased_table, listing, run
from fairmaxent.cli.group import group
from fairmaxent.cli.options import next_step
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading

QUICK = ["--estimate", "none"]


def printed_command(text):
    """The command on the last line, as a shell would split it."""
    head, command = text.rstrip("\n").splitlines()[-2:]
    assert head.startswith("Next: ")
    assert command.startswith("  fairmaxent ")
    return shlex.split(command)[1:]


def drawn(*levels, seed=0):
    return (
        np.random.default_rng([seed, *map(len, levels)]).choice(levels, ROWS).tolist()
    )


TABLES = {
    "plain": {"sex": drawn("f", "m"), "hired": drawn("no", "yes")},
    "names with commas": {
        "race, ethnicity": drawn("a", "b"),
        "sex": drawn("f", "m"),
        "hired": drawn("no", "yes"),
    },
    "names for a shell": {
        "it's sex = 1": drawn("f", "m"),
        '$(touch x) "hired" `y`': drawn("not hired", "hired"),
    },
    "names like options": {"--sex": drawn("f", "m"), "-hired: x": drawn("-1", "1")},
    "a tiny group": {
        "sex": drawn("f", "m"),
        "race": [*"a" * 120, *"b" * 115, *"c" * 5],
        "hired": drawn("no", "yes"),
    },
    "a group without the outcome": {
        "race": ["a"] * 230 + ["b"] * 10,
        "hired": ["no", "yes"] * 115 + ["no"] * 10,
    },
    "gaps": {"sex": [None, "f", "m"] * 80, "hired": drawn("no", "yes")},
    "truth values": {"sex": drawn("f", "m"), "approved": [True, False, True] * 80},
    "codes": {"sex": drawn("f", "m"), "class": [1, 2, 2] * 80},
    "three outcomes": {
        "sex": drawn("f", "m"),
        "loan_status": drawn("Fully Paid", "Charged Off", "Late"),
    },
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", [name for name in TABLES if name != "plain"])
def test_the_printed_command_runs_unedited(name, folder):
    pl.DataFrame(TABLES[name]).write_csv("table.csv")
    before = listing(folder)
    command = printed_command(run("inspect", "table.csv").stdout)
    assert listing(folder) == before
    assert command[:2] == ["debias", "table.csv"]
    run(*command, *QUICK)
    assert read_table("table-fair.csv").frame.columns == list(TABLES[name])
    assert (folder / "table-report.html").exists()
    assert not (folder / "x").exists()


def test_what_was_given_is_used_and_repeated(folder):
    biased_table().write_csv("semicolons.txt", separator=";")
    given = [
        "--outcome",
        "income",
        "--protected",
        "job",
        "--groups",
        "joint",
        "--weight",
        "weight",
    ]
    read = [
        "--delimiter",
        ";",
        "--missing-text",
        "cook",
        "--missing-text",
        "?",
        "--drop",
        "race",
        "--bins",
        "age: 0, 40, 100",
    ]
    command = printed_command(run("inspect", "semicolons.txt", *given, *read).stdout)
    assert command[:6] == [
        "debias",
        "semicolons.txt",
        "--outcome",
        "income",
        "--favourable",
        ">50K",
    ]
    run(*command, *QUICK, "--json")
    # of the same form as the table
    rows = read_table(
        "semicolons-fair.csv", FileReading(missing_text=["cook", "?"])
    ).frame
    assert "race" not in rows.columns
    assert set(rows["job"]) == {"clerk", "nurse", None}


@pytest.mark.more
def test_an_unknown_outcome_is_asked_for_with_a_command_that_runs(folder):
    score = np.random.default_rng(7).normal(50, 9, ROWS).round(1)
    pl.DataFrame(
        {
            "sex": drawn("f", "m"),
            "score": score,
            "x": drawn("a", "b", "c", "d", "e", "g"),
        }
    ).write_csv("t.csv")
    shown = run("inspect", "t.csv").stdout
    assert "Which column is the outcome?" in shown
    command = printed_command(shown)
    assert command[:2] == ["inspect", "t.csv"]
    assert command[command.index("--outcome") + 1] == "score"
    follows = printed_command(run(*command).stdout)
    assert follows[0] == "debias"
    run(*follows, *QUICK)


def test_without_a_good_outcome_the_worst_is_shown_and_one_is_proposed(folder):
    shown = run("debias", "data.csv", *ROLES, *QUICK).stdout
    table = biased_table().to_pandas()
    ratios = []
    for level in (">50K", "<=50K"):
        rates = (table["income"] == level).groupby(table["sex"]).mean()
        ratios.append(rates.min() / rates.max())
    (line,) = [
        line
        for line in shown.splitlines()
        if line.startswith("statistical rate of sex ")
    ]
    assert line.split()[-4] == f"{min(ratios):.4f}"
    assert (
        "the good one is probably '>50K' (more income is better): add --favourable"
        " '>50K'" in shown
    )


@pytest.mark.more
def test_after_debias(folder):
    fit = ["debias", "data.csv", *ROLES, *QUICK, "--seed", "1"]
    command = printed_command(run(*fit).stdout)
    assert command[-4:] == ["-o", "data-fair.csv", "--report", "data-report.html"]
    assert run(*command).stdout.endswith(
        "Next: open data-report.html and read its first page before you use the"
        " result\n"
    )
    command = printed_command(run(*fit, "--save", "m.fme").stdout)
    assert command[:4] == ["report", "m.fme", "--data", "data.csv"]
    assert "Next: open m-report.html" in run(*command, "--no-trade-off").stdout
    assert (
        "Next: pass the column 'fair_weight' as sample weights"
        in run(*fit, "--mode", "weights", "-o", "w.csv").stdout
    )


@pytest.mark.more
def test_after_sample_and_verify(folder):
    run("debias", "data.csv", *ROLES, *QUICK, "--save", "m.fme")
    command = printed_command(run("verify", "m.fme").stdout)
    assert command[:4] == ["sample", "m.fme", "-n", "1000"]
    shown = run(*command).stdout
    assert "wrote m-rows.csv (1,000 rows)" in shown
    run(*printed_command(shown), "--no-trade-off")
    assert (folder / "m-report.html").exists()


@pytest.mark.parametrize("name", ["--outcome", "--protected"])
def test_a_missing_role_points_to_inspect(folder, name):
    given = {"--outcome": "income", "--protected": "sex"}
    typed = [
        part
        for option, value in given.items()
        if option != name
        for part in (option, value)
    ]
    result = CliRunner().invoke(group, ["debias", "data.csv", *typed])
    assert result.exit_code == 2
    assert (
        f"Missing option '{name}'. 'fairmaxent inspect' proposes one" in result.stderr
    )


@pytest.mark.more
def test_names_are_like_the_table(folder):
    biased_table().write_csv("d.tsv", separator="\t")
    biased_table().write_parquet("d.v1.parquet")
    for data, fair in (("d.tsv", "d-fair.tsv"), ("d.v1.parquet", "d.v1-fair.parquet")):
        command = printed_command(run("inspect", data).stdout)
        assert command[command.index("-o") + 1] == fair


def test_names_that_cannot_be_typed_are_not_printed():
    shown = next_step("go on", ["debias", "a\x1b[2Jb"])
    assert "\x1b" not in shown
    assert "--write-config" in shown
    assert "\n" not in shown


@pytest.mark.parametrize("found", ["my env", "my env/Scripts", "other env", None])
def test_the_program_is_named_so_that_a_shell_finds_it(tmp_path, monkeypatch, found):
    """Both environments are made from the same interpreter, and call it python3, as the
    system does.
    """
    for name in ("my env", "my env/Scripts", "other env"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python3").symlink_to(sys.executable)
        (tmp_path / name / "fairmaxent").touch(0o755)
    python = str(tmp_path / "my env" / "python3")
    monkeypatch.setattr("sys.argv", [str(tmp_path / "my env" / "fairmaxent")])
    monkeypatch.setattr("sys.executable", python)
    monkeypatch.setenv("PATH", "" if found is None else str(tmp_path / found))
    words = (
        ["fairmaxent"]
        if found in ("my env", "my env/Scripts")
        else [python, "-m", "fairmaxent"]
    )
    assert shlex.split(next_step("go on", ["inspect", "a.csv"]).splitlines()[-1]) == [
        *words,
        "inspect",
        "a.csv",
    ]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("levels", "good"),
    [
        (["Sí", "Sí", "sí", "NO", "no", "no"], "Sí"),
        (["yes ", "Yes", "Yes", "no", "no", "no"], "Yes"),
        (["yes, in time", "Yes, in time", "no", "no", "no", "no"], "Yes, in time"),
    ],
)
def test_levels_that_are_only_written_differently_become_one(
    levels, good, tmp_path, monkeypatch
):
    """The command that is proposed makes them one, and the next one works."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    pl.DataFrame(
        {
            "Sexo": rng.choice(["Mujer", "Hombre"], 300).tolist(),
            "Ascenso": [levels[number % 6] for number in range(300)],
        }
    ).write_parquet("staff.parquet")
    command = printed_command(
        run("inspect", "staff.parquet", "--outcome", "Ascenso").stdout
    )
    assert command[:2] == ["inspect", "staff.parquet"]
    assert "--levels" in command
    again = run(*command)
    assert "may be the same" not in again.stdout
    command = printed_command(again.stdout)
    assert command[0] == "debias"
    assert command.count("--favourable") == 1
    assert command[command.index("--favourable") + 1] == good
    run(*command, "--estimate", "none")
    assert set(pl.read_parquet("staff-fair.parquet")["Ascenso"]) == {good, "no"}
