"""Private fits and rows to share, on the command line."""

import json
import re
from unittest.mock import Mock

import numpy as np
import polars
import pytest
from click.testing import CliRunner

from fairmaxent.cli import result
from fairmaxent.cli.config import read_domain
from fairmaxent.cli.group import group
from fairmaxent.errors import InputError, StorageError
from fairmaxent.fit import pipeline
from quiet import Seeded, people

ROLES = [
    "--outcome",
    "hired",
    "--protected",
    "sex",
    "--favourable",
    "yes",
    "--estimate",
    "none",
]
PRIVATE = ["--epsilon", 1, "--domain", "domain.toml"]
DOMAIN = """\
missing = ["town"]
[levels]
hired = ["no", "yes"]
sex = ["f", "m"]
job = ["a", "b", "c"]
town = ["x", "y"]
[edges]
age = [0, 18, 40, 65, 120]
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    people().write_csv(tmp_path / "data.csv")
    (tmp_path / "domain.toml").write_text(DOMAIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
    return tmp_path


def run(*args, code=0):
    result = CliRunner().invoke(group, [*map(str, args)])
    assert result.exit_code == code, result.stderr
    return " ".join((result.stderr if code else result.stdout).split())


def test_a_private_fit_from_file_to_file(files):
    said = run("debias", "data.csv", *ROLES, "--epsilon", 2, "--domain", "domain.toml", "-o", "new.csv",
               "--save", "m.fme", "--report", "r.md")  # fmt: skip
    assert "Private with ε = 2, δ = 1e-09" in said
    assert (
        "at most e^2 times (e is 2.7) more or less likely, up to a probability of δ"
        in said
    )
    assert "it holds no row of the data" in said
    rows = polars.read_csv(files / "new.csv")
    assert rows.columns == people().columns
    report = (files / "r.md").read_text(encoding="utf-8")
    assert "Private with ε = 2" in report
    assert re.search(
        r"Of 100 people with sex = ., \d+ have hired = yes by noisy", report
    )
    assert "| hired × sex | discrete Gaussian |" in report
    assert "**Running it again spends another ε = 2. More rows" in report
    assert (
        "to estimate it, which spends nothing, write a report from its file with"
        " --estimate rows" in report
    )
    assert "with k times as many rows, the cost is k² times as high" in report
    assert "private with ε = 2" in run("verify", "m.fme")
    run("sample", "m.fme", "-n", 20, "-o", "more.csv")


@pytest.mark.more
def test_nothing_is_paid_for_twice(files, monkeypatch):
    """The model is kept without being asked for, and before anything else can fail;
    what comes next is free.
    """
    args = ["debias", "data.csv", *ROLES[:-2], "--domain", "domain.toml", "--epsilon"]
    assert json.loads(run(*args, 1, "-o", "new.csv", "--json"))["files"] == [
        "new.csv",
        "new.fme",
    ]
    assert f"paid for already: {files / 'new.fme'} holds" in run(
        *args, 1, "-o", "new.csv", "--force", code=3
    )
    assert "would bring it to 1.44, beyond the" in run(
        *args, 1, "--rows", 9, "-o", "b.csv", "--budget", 1.4, code=3
    )
    said, following = run(*args, 0.5, "-o", "b.csv.gz", "--budget", 1.4).split("Next: ")
    assert (
        f"ε = 1.13 (δ = 1e-09), in 2 private fits; {files / 'data.csv.ledger.json'}"
        " keeps count." in said
    )
    assert following.startswith(
        "write a report to file; this, and drawing more rows, spends nothing"
    )
    command = following.split("fairmaxent ")[1].split()
    monkeypatch.setattr(pipeline, "OpenDP", None)
    run(*command)
    assert "Expected of gradient boosting" in (files / command[-1]).read_text(
        encoding="utf-8"
    )
    monkeypatch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
    monkeypatch.setattr(
        result, "make_result", Mock(side_effect=StorageError("the disk is full"))
    )
    late = [*args, 2, "-o", "late.csv", "--save", "kept.fme"]
    # another ledger would not know of the budget
    assert "has private fits of the same people" in run(
        *late, "--ledger", "other.json", code=2
    )
    run("ledger", "data.csv.ledger.json", "--budget", 9)
    said = run(*late, "--ledger", "./data.csv.ledger.json", code=5)
    assert "what was paid for is in kept.fme: 'fairmaxent sample'" in said
    run("verify", "kept.fme")
    made = {
        "b.csv.gz",
        "b.fme",
        command[-1],
        "kept.fme",
        "new.csv",
        "new.fme",
        "data.csv.ledger.json",
    }
    assert {path.name for path in files.iterdir()} == {"data.csv", "domain.toml", *made}


@pytest.mark.more
def test_the_ledger_is_beside_what_holds_all_rows_and_stdin_has_no_place(files):
    (files / "parts").mkdir()
    people().write_parquet(files / "parts" / "a.parquet")
    (files / "link").symlink_to("parts")
    for number, data in enumerate(
        ("parts", "link/", "parts/*.parquet", "link/a.*", "parts/a.parquet")
    ):
        run(
            "debias",
            data,
            *ROLES,
            *PRIVATE[2:],
            "--epsilon",
            1 + number,
            "-o",
            f"{number}.csv",
        )
    counts = {
        path.name: len(json.loads(path.read_text())["fits"])
        for path in files.rglob("*.ledger.json")
    }
    assert counts == {"parts.ledger.json": 4, "a.parquet.ledger.json": 1}
    typed = [*map(str, ["debias", "-", *ROLES, *PRIVATE, "-o", "s.csv"])]
    assert (
        "is in no ledger"
        in CliRunner().invoke(group, typed, input=people().write_csv()).stdout
    )


def test_a_damaged_line_is_for_the_user_alone(files):
    text = people().write_csv()
    (files / "data.csv").write_text(f"{text}no,f,a\n", encoding="utf-8")
    private = ["--epsilon", 2, "--domain", "domain.toml", "-o", "new.csv"]
    said = run("debias", "data.csv", *ROLES, *private, code=5)
    assert "line 802" in said
    assert "do not pass it on" in said
    assert "do not pass it on" not in run(
        "debias", "data.csv", *ROLES, "-o", "new.csv", code=5
    )
    assert "do not pass it on" not in run(
        "debias", "nowhere.csv", *ROLES, *private, code=5
    )


@pytest.mark.more
def test_how_an_office_writes_is_in_the_draft_and_in_the_next_command(files):
    lines = ["Staff 2024", "", "hired;sex;town;age;since;email"]
    for at, (hired, sex, _, town, age) in enumerate(people(300).rows()):
        more = f"{1 + at % 28:02}/{1 + at % 12:02}/{1970 + at % 40};p{at}@example.org"
        lines.append(
            f"{hired};{sex};{'Köln' if town == 'x' else town or ''};{age:.2f};".replace(
                ".", ","
            )
            + more
        )
    (files / "data.csv").write_bytes("\n".join([*lines, ""]).encode("cp1252"))
    roles = ["--outcome", "hired", "--protected", "sex", "--favourable", "yes"]
    said = run("inspect", "data.csv", *roles, "--write-domain", "draft.toml")
    assert "must be public knowledge" in said
    assert "says what a private fit would be worth, and spends nothing" in said
    command = said.partition("fairmaxent debias ")[2]
    assert (
        "--encoding cp1252 --skip-lines 2 --drop email --domain draft.toml --epsilon 1"
        in command
    )
    text = (files / "draft.toml").read_text(encoding="utf-8")
    assert 'decimal = ","\ndates = "dmy"\n' in text
    assert "remove the line 'draft = true'" in run("debias", *command.split(), code=3)
    assert "remove the line 'draft = true'" in run(
        "debias", *command.replace("--epsilon 1", "--release").split(), code=3
    )
    (files / "draft.toml").write_text(
        text.replace("\ndraft = true\n", "\n"), encoding="utf-8"
    )
    run("debias", *command.split())
    assert "Köln" in (files / "data-fair.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["--epsilon", 1, "-o", "new.csv"], 3, "needs a declared domain"),
        (PRIVATE, 2, "spends its budget each time"),
        (
            ["--epsilon", 0, "--domain", "domain.toml", "-o", "new.csv"],
            3,
            "--epsilon is 0.0; it must be a positive",
        ),
        ([*PRIVATE, "-o", "x.csv", "--like-input"], 2, "--like-input cannot go"),
        ([*PRIVATE, "--report", "r.md", "--evaluate"], 2, "judge the drawn"),
        (["--delta", "1e-6"], 2, "--delta needs --epsilon"),
        (
            [*PRIVATE, "-o", "x.csv", "--ledger", "x.csv", "--force"],
            2,
            "x.csv is the ledger",
        ),
        ([*PRIVATE, "--mode", "weights", "-o", "x.csv"], 2, "--mode weights cannot go"),
        (
            [*PRIVATE, "--weight", "age", "-o", "x.csv"],
            2,
            "--weight cannot go together with --epsilon",
        ),
        (
            [*PRIVATE, "--detail", "rows", "-o", "x.csv"],
            2,
            "--detail rows cannot go together with --epsilon",
        ),
        (
            ["--domain", "domain.toml", "--bins", "8"],
            2,
            "--bins cannot go together with --domain",
        ),
        (["--domain", "nowhere.toml"], 5, "cannot read the domain"),
        (
            ["--release", "--mode", "weights", "-o", "x.csv"],
            2,
            "--mode weights cannot go together with --",
        ),
    ],
)
def test_refusals(files, args, code, why):
    assert why in run("debias", "data.csv", *ROLES, *args, code=code)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("levels = 3", "levels is 3; give a list for each column"),
        ("[levels]\nsex = 'f'", "give a list for each column"),
        ("missing = 3", "list the columns that can have missing"),
        ("[level]\nsex = ['f']", "unknown key 'level'"),
        ("[edges]\nage = [3, 1]", "ascending"),
        ("sex = [", "not valid TOML"),
    ],
)
def test_a_domain_file_that_makes_no_sense(tmp_path, text, why):
    path = tmp_path / "domain.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        read_domain(str(path))


@pytest.mark.more
def test_rows_to_share(files):
    said = run("debias", "data.csv", *ROLES, "-o", "new.csv")
    assert (
        "are copies of rows of the data, and sharing them means sharing real people;"
        " for rows to share" in said
    )
    polars.read_csv(files / "data.csv").write_parquet(files / "data.parquet")
    said = run(
        "debias", "data.parquet", *ROLES, "-o", "redrawn.csv", "--report", "redrawn.md"
    )
    assert (
        "rows of the data but for their numbers, which are redrawn within bins, and"
        " sharing them can still" in said
    )
    assert (
        "sharing them can still give real people away"
        in (files / "redrawn.md").read_text()
    )
    said = run(
        "debias",
        "data.csv",
        *ROLES,
        "-o",
        "shared.csv",
        "--release",
        "--report",
        "r.md",
    )
    assert "sharing real people" not in said
    real, shared = (
        polars.read_csv(files / name) for name in ("data.csv", "shared.csv")
    )
    assert not set(real["age"]) & set(shared["age"])
    assert np.unique(shared["age"]).size <= 16


@pytest.mark.parametrize("undeclared", ["refuse", "missing", "drop"])
def test_a_damaged_stream_without_columns_is_named(files, undeclared):
    polars.DataFrame().write_ipc_stream(files / "z.arrow")
    said = run(
        "debias",
        "z.arrow",
        *ROLES,
        *PRIVATE,
        "--undeclared",
        undeclared,
        "-o",
        "new.csv",
        code=3,
    )
    assert "z.arrow has no columns; pass a table with column names" in said
