"""Private fits and rows to share, on the command line."""

import json

import numpy as np
import polars
import pytest
from click.testing import CliRunner

from fairmaxent.cli.config import read_domain
from fairmaxent.cli.group import group
from fairmaxent.errors import InputError
from fairmaxent.files.write import write_table
from fairmaxent.fit import pipeline
from quiet import Deaf, Seeded, people

ROLES = ["--outcome", "hired", "--protected", "sex", "--favourable", "yes", "--estimate", "none"]
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
               "--model", "m.fme", "--report", "r.md")  # fmt: skip
    assert "Private with ε = 2, δ = 1e-09" in said
    assert "it holds no row of the data" in said
    rows = polars.read_csv(files / "new.csv")
    assert rows.columns == people().columns
    report = (files / "r.md").read_text(encoding="utf-8")
    assert "It is private with ε = 2" in report
    assert "| hired × sex | discrete Gaussian |" in report
    assert "private with ε = 2" in run("verify", "m.fme")
    run("sample", "m.fme", "-n", 20, "-o", "more.csv")
    run("report", "m.fme", "-o", "again.md")


def test_nothing_about_the_file_but_its_name_is_in_report_and_json(files, monkeypatch):
    """With noise that is deaf to the rows, two tables give the same report, rows and JSON."""
    monkeypatch.setattr(pipeline, "OpenDP", Deaf)
    outputs = []
    for number, frame in enumerate((people(), people(333, seed=4).with_columns(job=polars.lit("b")))):
        frame.write_csv(files / "data.csv")
        folder = files / str(number)
        folder.mkdir()
        said = run("debias", "data.csv", *ROLES, "--epsilon", 1, "--domain", "domain.toml", "--seed", 1, "--force",
                   "-o", "new.csv", "--model", "m.fme", "--report", "r.md", "--json")  # fmt: skip
        record = json.loads(said)
        parts = [(files / name).read_bytes() for name in ("new.csv", "m.fme", "r.md")]
        outputs.append((record, parts))
    assert outputs[0] == outputs[1]


def test_what_reading_showed_is_for_the_user_alone(files):
    text = people().write_csv()
    header = text.split("\n", 1)[0].split(",")
    row = {"hired": "no", "sex": "m", "job": "a", "town": "?", "age": "33"}
    lines = [*text.rstrip("\n").split("\n")[:-1], ",".join(row[name] for name in header)]
    (files / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ["debias", "data.csv", *ROLES, "--epsilon", 2, "--domain", "domain.toml", "--force", "-o", "new.csv"]
    said = run(*asked)
    assert "About your file, not private, so do not pass it on: '?' was read as missing" in said
    assert "Note: '?'" not in said
    assert "read as missing" not in run(*asked, "--json")


@pytest.mark.parametrize(
    ("levels", "suffix"),
    [(["1", "2", "unknown"], "csv"), (["2024-01-01", "2025-01-01", "never"], "xlsx"), (["€ 5", "€ 7", "-"], "csv")],
)
def test_whether_a_level_is_in_the_file_does_not_decide_how_it_is_read(files, levels, suffix):
    """Without the last level, all cells look like numbers, dates or amounts."""
    (files / "domain.toml").write_text(DOMAIN.replace('["a", "b", "c"]', json.dumps(levels, ensure_ascii=False)))
    for lacking in (0, 1):
        named = people().with_columns(polars.col("job").replace_strict(dict(zip("abc", levels, strict=True))))
        write_table(named.filter(polars.col("job") != levels[2]) if lacking else named, f"{lacking}.{suffix}")
        private = ["--epsilon", 50, "--domain", "domain.toml", "-o", f"{lacking}.jsonl"]
        run("debias", f"{lacking}.{suffix}", *ROLES, *private)
        assert set(polars.read_ndjson(files / f"{lacking}.jsonl")["job"]) <= set(levels)


def test_a_damaged_line_is_for_the_user_alone(files):
    text = people().write_csv()
    (files / "data.csv").write_text(f"{text}no,f,a\n", encoding="utf-8")
    private = ["--epsilon", 2, "--domain", "domain.toml", "-o", "new.csv"]
    said = run("debias", "data.csv", *ROLES, *private, code=5)
    assert "line 802" in said
    assert "do not pass it on" in said
    assert "do not pass it on" not in run("debias", "data.csv", *ROLES, "-o", "new.csv", code=5)
    assert "do not pass it on" not in run("debias", "nowhere.csv", *ROLES, *private, code=5)


def test_a_domain_is_drafted_and_can_be_used(files):
    said = run("inspect", "data.csv", "--outcome", "hired", "--protected", "sex", "--write-domain", "draft.toml")
    assert "must be public knowledge" in said
    text = (files / "draft.toml").read_text(encoding="utf-8")
    assert '"sex" = ["f", "m"]' in text
    draft = [*ROLES, "--domain", "draft.toml", "-o", "new.csv", "--force"]
    for option in (["--epsilon", 2], ["--release"]):
        assert "remove the line 'draft = true'" in run("debias", "data.csv", *draft, *option, code=3)
    run("debias", "data.csv", *draft)
    (files / "draft.toml").write_text(text.replace("\ndraft = true\n", "\n"), encoding="utf-8")
    run("debias", "data.csv", *ROLES, "--epsilon", 2, "--domain", "draft.toml", "-o", "new.csv", "--force")


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["--epsilon", 1, "-o", "new.csv"], 3, "needs a declared domain"),
        (PRIVATE, 2, "spends its budget each time"),
        (["--epsilon", 0, "--domain", "domain.toml", "-o", "new.csv"], 3, "--epsilon is 0.0; it must be a positive"),
        ([*PRIVATE, "-o", "x.csv", "--like-input"], 2, "--like-input cannot go"),
        ([*PRIVATE, "--report", "r.md", "--evaluate"], 2, "judge the drawn"),
        (["--delta", "1e-6"], 2, "--delta is for --epsilon; add --epsilon"),
        ([*PRIVATE, "--mode", "weights", "-o", "x.csv"], 2, "--mode weights cannot go"),
        ([*PRIVATE, "--weight", "age", "-o", "x.csv"], 3, "no design weights"),
        ([*PRIVATE, "--detail", "rows", "-o", "x.csv"], 3, "exact values"),
        (["--domain", "domain.toml", "--bins", "8"], 2, "--domain cannot go together with --bins"),
        (["--domain", "nowhere.toml"], 5, "cannot read the domain"),
        (["--release", "--mode", "weights", "-o", "x.csv"], 2, "--mode weights cannot go together with --"),
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


def test_rows_to_share(files):
    said = run("debias", "data.csv", *ROLES, "-o", "new.csv")
    assert "are copies of rows of the data, and sharing them means sharing real people; for rows to share" in said
    polars.read_csv(files / "data.csv").write_parquet(files / "data.parquet")
    said = run("debias", "data.parquet", *ROLES, "-o", "redrawn.csv", "--report", "redrawn.md")
    assert "rows of the data but for their numbers, which are redrawn within bins, and sharing them can still" in said
    assert "sharing them can still give real people away" in (files / "redrawn.md").read_text()
    said = run("debias", "data.csv", *ROLES, "-o", "shared.csv", "--release", "--report", "r.md")
    assert "sharing real people" not in said
    real, shared = (polars.read_csv(files / name) for name in ("data.csv", "shared.csv"))
    assert not set(real["age"]) & set(shared["age"])
    assert np.unique(shared["age"]).size <= 16
