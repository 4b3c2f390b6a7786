"""The report as PDF, with stand-ins for a browser: what it is given, and what becomes
of one that fails or hangs.
"""

import json
import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from clifiles import ROLES, biased_table, run
from fairmaxent.errors import DependencyError, StorageError
from fairmaxent.report import browser, write_report

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts"),
]
PDF = b"%PDF-1.4\nstand-in\n%%EOF\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """No browser at all, and a folder for temporary files that shows what is left
    behind.
    """
    monkeypatch.setattr("fairmaxent.report.refits.LARGEST_TABLE", 0)
    monkeypatch.setattr(browser, "_PATHS", ())
    (tmp_path / "bin").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path


def stand_in(folder, body, name="chromium"):
    """A browser that runs some Python; `target` is the PDF that it is to print, `page`
    the path of the page.
    """
    script = folder / "bin" / name
    head = (
        "import pathlib, subprocess, sys, time, urllib.parse\ntarget = next(a for a in"
        " sys.argv if a.startswith('--print-to-pdf=')).partition('=')[2]\npage ="
        " urllib.parse.unquote(sys.argv[-1].removeprefix('file://'))\n"
    )
    script.write_text(f"#!{sys.executable}\n{head}{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


WORKS = f"pathlib.Path(target).write_bytes({PDF!r})"


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 200), "y": rng.choice(["a", "b"], 200)}
    )
    return fairmaxent.debias(frame, "y", "sex", favourable="a", random_state=0)


def write(fit, name="report.pdf"):
    write_report(fit, name, mode="weights", trade_off=False)


def test_without_a_browser_it_says_what_to_do_before_any_work(folder):
    with pytest.raises(
        DependencyError,
        match=r"Chromium, Chrome or Edge.*install.*or write an \.html report",
    ):
        write_report(None, "report.pdf")
    biased_table().write_csv("data.csv")
    for command in (
        ["debias", "data.csv", *ROLES, "--pdf", "a.pdf"],
        ["report", "fit.fme", "--pdf", "a.pdf"],
    ):
        assert "install one" in run(*command, code=3).output
    assert [path.name for path in Path.cwd().iterdir()] == ["data.csv"]


def test_the_page_is_printed_on_a4_from_a_private_folder_that_goes_away(fit, folder):
    seen = folder / "seen"
    checks = (
        "import os, stat, json; text = pathlib.Path(page).read_text()\nmode ="
        f" stat.S_IMODE(os.stat(os.path.dirname(page)).st_mode)\npathlib.Path({str(seen)!r}).write_text(json.dumps([sys.argv,"
        " text, mode, os.getcwd()]))\n"
    )
    stand_in(folder, checks + WORKS)
    write(fit)
    arguments, text, mode, where = json.loads(seen.read_text())
    assert Path("report.pdf").read_bytes() == PDF
    assert "@page { size: A4; }" in text
    assert mode == 0o700
    assert where.startswith(str(folder / "tmp"))
    assert "--headless=new" in arguments
    assert any(
        argument.startswith(f"--user-data-dir={folder / 'tmp'}")
        for argument in arguments
    )
    assert "--host-resolver-rules=MAP * ~NOTFOUND" in arguments
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["--remote-debugging-port=1.pdf", "; touch x #.pdf", "a b\n'\"$(x).pdf", "-.pdf"],
)
def test_hostile_names_are_only_names(fit, folder, name):
    stand_in(folder, f"assert not any({name!r} in part for part in sys.argv)\n{WORKS}")
    write(fit, Path(name))
    assert [path.name for path in Path.cwd().iterdir()] == [name]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "sys.exit('no sandbox')",
            r"did not print a PDF \(no sandbox\); write an \.html report",
        ),
        ("pass", "did not print a PDF; write"),
        ("pathlib.Path(target).write_bytes(b'%PDF-1.4 half')", "did not print a PDF"),
        ("pathlib.Path(target).write_bytes(b'<html>%%EOF')", "did not print a PDF"),
    ],
)
def test_a_browser_that_fails_leaves_nothing(fit, folder, body, message):
    stand_in(folder, body)
    Path("report.pdf").write_bytes(b"old")
    with pytest.raises(StorageError, match=message):
        write(fit)
    assert Path("report.pdf").read_bytes() == b"old"
    assert [path.name for path in Path.cwd().iterdir()] == ["report.pdf"]
    assert list((folder / "tmp").iterdir()) == []


def test_a_browser_that_hangs_is_ended_with_its_children(folder):
    stand_in(
        folder,
        "subprocess.Popen(['/bin/sh', '-c', 'echo $$ > ../../child; sleep 60']);"
        " time.sleep(60)",
    )
    with pytest.raises(StorageError, match=r"did not print within 1\.5 seconds; write"):
        browser.print_pdf("<p>page</p>", seconds=1.5)
    child = int((folder / "child").read_text())
    deadline = time.monotonic() + 10
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)
    assert list((folder / "tmp").iterdir()) == []


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_browser_that_cannot_be_run_is_named(folder):
    script = folder / "bin" / "chromium"
    script.write_bytes(b"\x7fELF not a program")
    script.chmod(0o755)
    with pytest.raises(StorageError, match="cannot be run"):
        browser.print_pdf("<p>page</p>")


@pytest.mark.parametrize(
    "name", ["google-chrome", "chrome", "microsoft-edge", "chromium-browser"]
)
def test_other_browsers_do(folder, name):
    stand_in(folder, WORKS, name)
    assert browser.print_pdf("<p>page</p>") == PDF


def test_the_commands_print_it_beside_other_forms(folder):
    stand_in(folder, WORKS)
    biased_table().write_csv("data.csv")
    written = ["--report", "report.html", "--pdf", "report.pdf", "--save", "fit.fme"]
    result = run("debias", "data.csv", *ROLES, *written)
    assert "wrote report.html\nwrote report.pdf" in result.output
    assert Path("report.pdf").read_bytes() == PDF
    assert stat.S_IMODE(os.stat("report.pdf").st_mode) == stat.S_IMODE(
        os.stat("report.html").st_mode
    )
    result = run("report", "fit.fme", "--no-trade-off", "--pdf", "later.pdf")
    assert result.stdout.startswith("wrote later.pdf\n\nNext: open later.pdf")
    assert (
        "end the name with .pdf"
        in run("debias", "data.csv", *ROLES, "--pdf", "report.txt", code=2).output
    )
