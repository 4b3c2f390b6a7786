"""What a command reads is never overwritten, under whatever name, and nothing is
written where it would be read.
"""

import os
import subprocess
import sys

import polars as pl
import pytest
from click.testing import CliRunner

import clifiles
from clifiles import QUIET, ROLES, ROWS, biased_table, listing
from fairmaxent import debias
from fairmaxent.cli.group import group

R = " ".join(ROLES)


def filled(tmp_path):
    table = biased_table()
    table.write_csv(tmp_path / "data.csv")
    table.write_parquet(tmp_path / "data.parquet")
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    table.head(120).write_parquet(tmp_path / "parts" / "a.parquet")
    table.tail(120).write_parquet(tmp_path / "parts" / "deep" / "b.parquet")
    (tmp_path / "link.csv").symlink_to("data.csv")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to("../parts")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "data.csv")
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "parts" / "a.parquet")
    (tmp_path / "c.toml").write_text("base_share = 0.3\n")
    (tmp_path / "d.toml").write_text('[levels]\nsex = ["F", "M"]\n')
    debias(table, "income", "sex").save(tmp_path / "fit.fme")
    return tmp_path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which nothing changes."""
    return filled(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return filled(tmp_path)


@pytest.mark.some(6)
@pytest.mark.parametrize(
    "typed",
    [
        f"debias data.csv {R} -o data.csv",
        f"debias data.csv {R} -o link.csv",
        f"debias data.csv {R} -o hard.csv",
        f"debias data.parquet {R} --report ./data.parquet",
        f"debias parts {R} -o parts/new.parquet",
        f"debias parts {R} -o other/link/new.csv",
        f"debias parts {R} -o hard.parquet",
        f"debias parts/*.parquet {R} -o parts/new.parquet",
        f"debias parts/**/*.parquet {R} -o parts/deep/new.parquet",
        f"debias data.csv {R} --config c.toml -o c.toml",
        f"inspect data.csv {R} --config c.toml --write-config c.toml",
        f"debias data.csv {R} --domain d.toml -o d.toml --output-format csv",
        "rake data.csv --margins link.csv --domain d.toml -o x.csv --report d.toml",
        "inspect data.csv --domain d.toml --write-domain d.toml",
        "inspect data.csv --report link.csv",
        "sample fit.fme -n 5 -o fit.fme",
        "report fit.fme --data data.csv -o data.csv",
        "report fit.fme --result data.csv -o link.csv",
    ],
)
def test_refused_even_with_force(kept, typed, monkeypatch):
    monkeypatch.chdir(kept)
    before = listing(kept)
    result = CliRunner().invoke(group, [*typed.split(), "--force"])
    assert result.exit_code in (2, 5), result.output  # 5: a report has other suffixes
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 5 or "input" in result.stderr
    assert listing(kept) == before


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "typed",
    [
        f"debias parts/*.parquet {R} -o parts/fair.csv --seed 1",
        f"debias parts/*.parquet {R} -o parts/deep/new.parquet --seed 1",
    ],
)
def test_what_is_not_read_may_be_written(folder, typed):
    clifiles.run(*typed.split())


def run(*args, folder, **options):
    command = [sys.executable, "-m", "fairmaxent", *args]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output="stdout" not in options,
        timeout=120,
        **options,
    )


@pytest.mark.process
def test_the_file_behind_stdin_and_stdout(folder):
    before = listing(folder)
    with open(folder / "data.csv", "rb") as file:
        done = run(
            "debias",
            "-",
            *ROLES,
            *QUIET,
            "-o",
            "data.csv",
            "--force",
            folder=folder,
            stdin=file,
        )
    assert done.returncode == 2
    assert b"data.csv is an input file" in done.stderr
    with open(folder / "data.csv", "ab") as file:
        piped = {"stdout": file, "stderr": subprocess.PIPE}
        done = run(
            "debias", "data.csv", *ROLES, *QUIET, "-o", "-", folder=folder, **piped
        )
    assert done.returncode == 2
    assert listing(folder) == before


def test_hidden_files_and_records_of_other_tools_are_not_data(folder):
    extreme = biased_table().with_columns(income=pl.lit("other"))
    for name in (
        ".hidden.parquet",
        "_temporary/part.parquet",
        ".fairmaxent-0.tmp/part.parquet",
        "deep/._x.parquet",
    ):
        (folder / "parts" / name).parent.mkdir(exist_ok=True)
        extreme.write_parquet(folder / "parts" / name)
    typed = ["debias", "parts", *ROLES, *QUIET, "-o", "fair.csv", "--seed", "1"]
    clifiles.run(*typed)
    fair = pl.read_csv("fair.csv")
    assert (len(fair), set(fair["income"])) == (ROWS, {"<=50K", ">50K"})
    (folder / "parts" / "empty.parquet").write_bytes(b"")
    refused = CliRunner().invoke(group, [*typed, "--force"]).stderr
    assert (
        f"parts{os.sep}empty.parquet, a part of the table, is an empty file" in refused
    )


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("demo", "fair.csv exists; use --force"),
    ],
)
def test_files_and_folders_of_others_are_left_alone(folder, typed, says):
    (folder / "fair.csv").write_text("precious")
    before = listing(folder)
    assert says in clifiles.run(*typed.split(), "--out", ".", code=5).stderr
    assert listing(folder) == before
