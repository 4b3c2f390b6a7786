"""``make reproduce``, from the command to the files."""

import html.parser

import pandas as pd
import pytest

import fairmaxent
from reproduction import __main__, cells, reproduce

pytestmark = pytest.mark.more

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


def test_a_folder_with_files_of_others_is_left_alone(tmp_path):
    (tmp_path / "fair.csv").write_text("precious")
    with pytest.raises(SystemExit, match="holds no earlier reproduction"):
        __main__.main(["--quick", "--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["fair.csv"]


def test_the_command_passes_on_what_was_asked_and_says_what_was_left_out(
    tmp_path, monkeypatch, capsys
):
    asked = {}

    def recorded(folder, **options):
        asked.update(options, folder=folder)
        return folder / "index.html", ["compas-large is not shipped"]

    monkeypatch.setattr(__main__, "reproduce", recorded)
    __main__.main(["--quick", "--workers", "2", "--out", str(tmp_path)])
    assert asked.pop("progress")
    assert asked == {
        "folder": tmp_path,
        "quick": True,
        "workers": 2,
        "download": False,
    }
    said = capsys.readouterr()
    assert f"Wrote {tmp_path / 'index.html'}" in said.out
    assert "Left out: compas-large is not shipped" in said.err


def test_a_run_that_is_stopped_says_that_it_can_go_on(monkeypatch, capsys):
    def stopped(folder, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, "reproduce", stopped)
    with pytest.raises(SystemExit) as ended:
        __main__.main([])
    assert ended.value.code == 130
    assert "the same command continues" in capsys.readouterr().err


def test_one_row_of_table_2_is_printed_beside_the_papers(small_plan, tmp_path, capsys):
    asked = ["--quick", "--out", str(tmp_path), "--workers", "1"]
    row = ["--data", "compas-small", "--methods", "maxent_theta_w"]
    __main__.main([*asked, *row])
    lines = capsys.readouterr().out.splitlines()
    (divergence,) = [line.split() for line in lines if "kl_plugin" in line]
    assert divergence[:4] == ["compas-small", "sex", "maxent_theta_w", "kl_plugin"]
    # one fold of five; 0.35 over all of them
    assert 0.3 < float(divergence[4]) < 0.45
    assert divergence[-3:] == ["0.350", "0.010", "0.357"]
    assert not any("kamiran" in line for line in lines)
    assert len(list((tmp_path / "cells").iterdir())) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["--data", "compas"], "--data compas: did you mean 'compas-small'"),
        (["--data", "compas-small", "--methods", "rew"], "--methods rew: did you mean"),
    ],
)
def test_a_row_that_is_not_in_table_2_is_refused(row, message, tmp_path):
    with pytest.raises(SystemExit, match=message):
        __main__.main(["--out", str(tmp_path), *row])
