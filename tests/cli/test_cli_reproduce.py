"""``fairmaxent reproduce`` and ``fairmaxent demo``, from the command to the files."""

import html.parser
from dataclasses import replace

import pandas as pd
import pytest
from click.testing import CliRunner

import fairmaxent
from fairmaxent import datasets
from fairmaxent.cli.group import group
from fairmaxent.experiments import cells, reproduce

BLOCK = ("compas-small", "sex")


@pytest.fixture
def small_plan(monkeypatch, tmp_path):
    """One data set, one fold, one repetition; and a folder without the files of COMPAS
    large.
    """
    monkeypatch.setattr(reproduce, "QUICK", cells.Plan((0,), 2, (0,), 1))
    monkeypatch.setattr(reproduce, "TABLE_2_BLOCKS", (BLOCK, ("compas-large", "sex")))
    monkeypatch.setattr(reproduce, "CURVE_BLOCKS", (BLOCK,))
    monkeypatch.setattr(cells, "SHARES", (0.0, 1.0))
    monkeypatch.setenv("FAIRMAXENT_DATA", str(tmp_path))
    cells.load.cache_clear()  # another test may have loaded COMPAS large


def run(*arguments):
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def interrupt_halfway(share: float) -> None:
    if share > 0.5:
        raise KeyboardInterrupt


@pytest.mark.process
@pytest.mark.slow
def test_tables_figures_and_page(small_plan, tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        reproduce.reproduce(folder, quick=True, workers=2, progress=interrupt_halfway)
    shares = []
    reproduce.reproduce(folder, quick=True, workers=1, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    again = tmp_path / "again"
    reproduce.reproduce(again, quick=True, workers=2)
    for name in ("table2.csv", "curves.csv"):
        assert (folder / name).read_bytes() == (again / name).read_bytes()
    table = pd.read_csv(folder / "table2.csv")
    assert list(table.columns) == [
        "dataset",
        "protected",
        "method",
        "metric",
        "mean",
        "sd",
    ]
    assert set(table["method"]) == set(cells.TABLE_2_METHODS)
    curves = pd.read_csv(folder / "curves.csv")
    assert len(curves.drop_duplicates(["prior", "theta", "C"])) == 3 * 2 * 2
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".png"}
    page = (folder / "index.html").read_text(encoding="utf-8")
    html.parser.HTMLParser().feed(page)
    assert "Left out: compas-large" in page


def test_what_is_missing_is_said_before_the_work(small_plan, tmp_path, monkeypatch):
    monkeypatch.setattr(
        reproduce.importlib.util,
        "find_spec",
        lambda name: None if name == "matplotlib" else True,
    )
    with pytest.raises(
        fairmaxent.errors.DependencyError,
        match=r"needs matplotlib; pip install matplotlib$",
    ):
        reproduce.reproduce(tmp_path / "out", quick=True)
    assert not (tmp_path / "out").exists()


def test_demo_leaves_data_rows_model_and_report(tmp_path, monkeypatch):
    census = datasets.load("acs", library="polars")
    few = replace(census, frame=census.frame[::8])
    monkeypatch.setattr(datasets, "load", lambda *_, **__: few)
    folder = tmp_path / "demo"
    done = run("demo", "--out", folder)
    assert done.exit_code == 0, done.output
    assert {path.name for path in folder.iterdir()} == {
        "census.csv",
        "fair.csv",
        "model.fme",
        "report.html",
    }
    assert "$ fairmaxent debias" in done.stdout
    assert "statistical rate of sex, income = >50K" in done.stdout
    *_, why, command = done.stdout.splitlines()
    assert why.startswith(f"Next: open {folder / 'report.html'} in a browser.")
    assert command == "  fairmaxent inspect your-table.csv"
    fair = pd.read_csv(folder / "fair.csv")
    rates = (fair["income"] == ">50K").groupby(fair["sex"]).mean()
    assert rates.min() / rates.max() > 0.99
    assert len(fair) == len(few.frame)
    assert fairmaxent.load(folder / "model.fme").certificate.achieved[
        "statistical_rate"
    ]["sex"] == pytest.approx(1)
    again = run("demo", "--out", folder)
    assert again.exit_code == 5
    assert "census.csv exists; use --force" in again.stderr
