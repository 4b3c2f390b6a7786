"""A terminal, recorded: no sequence that came from the data reaches it, whatever the
command.
"""

import io
import json
import os
import pty
import re
import subprocess
import sys
import traceback
import unicodedata

import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from fairmaxent.cli import terminal
from fairmaxent.cli.group import group
from fairmaxent.errors import InputError
from fairmaxent.plain_text import escaped_json, isolated, visible

CLIPBOARD = "F\x1b]52;c;cm0gLXJm\x07"
TITLE = "M\x1b]0;owned\x1b\\\x9b2J"
HIDDEN = "x\x1b[8mhidden\x1b[0m\u202egnp.exe\u2066\U000e0041\x7f"
FORGED = "y\nNote: all is well\r\x08"
# What rich may send itself: colours, the cursor, erasing a line.
OURS = re.compile(rb"\x1b\[[0-9;]*[mK]|\x1b\[\?25[hl]|\x1b\[[0-9]*[ABCDGJ]|\r")
# control, format, half a character, ends of lines and paragraphs
STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
COLUMN = "a\x1b]0;column\x07"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    sexes, notes = [CLIPBOARD, TITLE] * 60, [HIDDEN, FORGED, "z"] * 40
    outcomes = (["yes\x1b[31m"] * 3 + ["no\x1b[5m"] * 5) * 15
    table = pl.DataFrame(
        {"sex": sexes, "note": notes, COLUMN: [1, 2, 3, 4] * 30, "out": outcomes}
    )
    table.write_parquet(folder / "data.parquet")
    table.write_csv(folder / "data.csv")
    table.write_csv(folder / "name\x1b]0;file\x07.csv")
    fairmaxent.debias(table, "out", "sex").save(folder / "fit.fme")
    (folder / "default.toml").write_text(
        'base = "\\u001b]0;toml\\u0007"\nencoding = "\\u001b]0;toml\\u0007"\n'
    )
    (folder / "c.toml").write_text('"key\\u001b]0;toml\\u0007" = 1\n')
    return folder


def recorded(args, folder):
    """Run a command with a terminal as all of its streams, and return its code and what
    the terminal got.
    """
    master, slave = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
    process = subprocess.Popen(
        [sys.executable, "-m", "fairmaxent", *args], cwd=folder, **streams
    )
    os.close(slave)
    content = b""
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        content += more
    os.close(master)
    return process.wait(timeout=600), content


def steering(content):
    """Every control, direction or invisible character that is not ours."""
    text = OURS.sub(b"", content).decode().replace("\r", "").replace("\n", "")
    return {
        character for character in text if unicodedata.category(character) in STEERING
    }


ROLES = ["--outcome", "out", "--protected", "sex"]
QUIET = ["--estimate", "none"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["inspect", "data.csv", *ROLES], 0),
        (["debias", "data.parquet", *ROLES, *QUIET], 0),
        pytest.param(
            ["debias", "name\x1b]0;file\x07.csv", *ROLES, *QUIET],
            0,
            marks=pytest.mark.slow,
        ),
        (["debias", "data.csv", *ROLES, *QUIET, "--favourable", "\x1b]0;x\x07"], 3),
        (["debias", "data.csv", *ROLES, *QUIET, "-o", "-"], 0),
        (
            [
                "--debug",
                "debias",
                "data.csv",
                "--outcome",
                COLUMN + "x",
                "--protected",
                "sex",
            ],
            3,
        ),
        pytest.param(
            ["debias", "data.csv", *ROLES, *QUIET, "--config", "c.toml"],
            3,
            marks=pytest.mark.slow,
        ),
        (["compare", "data.csv", "--config", "default.toml", "--help"], 0),
        (["debias", "data.csv", "--config", "default.toml", "--help"], 0),
        (["sample", "fit.fme", "-n", "20"], 0),
        pytest.param(
            ["sample", "fit.fme", "-n", "20", "--given", "sex=\x1b]0;x\x07"],
            3,
            marks=pytest.mark.slow,
        ),
        (
            [
                "report",
                "fit.fme",
                "-o",
                "report\x1b]0;r\x07.md",
                "--force",
                "--no-trade-off",
            ],
            0,
        ),
        pytest.param(
            ["compare", "data.csv", *ROLES, "--folds", "2"], 0, marks=pytest.mark.slow
        ),
        (["demo", "--out", "fit.fme/\x1b]0;x\x07"], 5),
    ],
    ids=lambda value: "-" if isinstance(value, int) else visible(" ".join(value))[:40],
)
def test_no_sequence_from_the_data_reaches_the_terminal(folder, args, code):
    if args[0] not in ("inspect", "sample") and "--config" not in args and code == 0:
        pytest.importorskip("rich")
    got, content = recorded(args, folder)
    assert got == code, content
    assert content
    assert steering(content) == set()
    assert b"\nNote: all is well" not in content or "-o" in args or args[0] == "sample"


def test_a_pipe_gets_the_table_as_it_is(folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(group, ["sample", "fit.fme", "-n", "50", "--seed", "1"])
    assert CLIPBOARD in result.stdout
    result = CliRunner().invoke(group, ["inspect", "data.csv", *ROLES, "--json"])
    assert steering(result.stdout.encode()) == set()
    assert any(
        column["name"] == COLUMN for column in json.loads(result.stdout)["columns"]
    )


def test_messages_in_python_are_safe_to_show_and_letters_that_people_use_stay():
    problem = InputError(f"column {CLIPBOARD} is unknown")
    assert "\x1b" not in str(problem)
    assert "\\x1b]52" in str(problem)
    assert "\x1b" not in "".join(traceback.format_exception(problem))
    for text in ("Müller", "मनीषा", "می‌خواهم", "👩‍🔬", "日本語", "Ελένη", "a\tb"):
        assert visible(text) == text
    assert isolated("שם: 5") == "\u2068שם\u2069: 5"
    assert escaped_json('"é\x85"') == '"é\\u0085"'


def test_a_report_hides_and_moves_nothing(folder, monkeypatch, tmp_path):
    frame = pl.DataFrame(
        {"sex": ["שם\u202e", HIDDEN] * 60, "out": (["a"] * 3 + ["b"] * 5) * 15}
    )
    fit = fairmaxent.debias(frame, "out", "sex")
    for suffix in ("html", "md", "json"):
        fairmaxent.report.write_report(fit, tmp_path / f"report.{suffix}")
        text = (tmp_path / f"report.{suffix}").read_text(encoding="utf-8")
        assert steering(text.encode()) <= {"\u2068", "\u2069"}
        assert text.count("\u2068") == text.count("\u2069")
        assert suffix == "json" or "\u2068שם\u2069" in text


def test_on_windows_files_and_pipes_get_utf_8_and_no_thread_waits_for_signals(
    monkeypatch,
):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    for name in ("warnings.showwarning", "signal.signal"):
        monkeypatch.setattr(name, lambda *_: None)
    monkeypatch.setattr("os.pipe", None)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    with monkeypatch.context() as windows:
        windows.setattr(sys, "stdout", stdout)
        windows.setattr(os, "name", "nt")
        terminal.prepare_streams(5)
        terminal.clean_up_on_signals()
        print("ε → ✓", flush=True)
    assert stdout.buffer.getvalue().decode().split() == ["ε", "→", "✓"]
