"""The command line as real processes: start, pipes, signals, limits of the disk."""

import ast
import os
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from clifiles import QUIET, ROLES, ROWS, biased_table, listing
from cliprocesses import heed_signals, start
from fairmaxent.cli.group import group


@pytest.fixture
def folder(tmp_path):
    biased_table().write_csv(tmp_path / "data.csv")
    return tmp_path


def finish(process, typed_in=b""):
    out, err = process.communicate(typed_in, timeout=600)
    return process.returncode, out, err.decode()


def test_help_lists_every_command_and_the_exit_codes():
    result = CliRunner().invoke(group, ["--help"])
    assert (result.exit_code, result.stderr) == (0, "")
    for text in ("inspect", "debias", "sample", "compare", "Exit codes", "130"):
        assert text in result.stdout


@pytest.mark.process
def test_help_imports_nothing_heavy(folder):
    script = (
        "import sys\nfrom fairmaxent.cli.group import group\ntry:"
        " group.main(['--help'])\nexcept SystemExit: pass\nprint(repr([name for name in"
        " ('polars', 'pandas', 'rich', 'scipy', 'sklearn') if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, timeout=600
    )
    assert ast.literal_eval(done.stdout.decode().splitlines()[-1]) == []


def test_version():
    result = CliRunner().invoke(group, ["--version"], prog_name="fairmaxent")
    assert (result.exit_code, result.stdout.strip()) == (
        0,
        f"fairmaxent {fairmaxent.__version__}",
    )


@pytest.mark.process
def test_from_pipe_to_pipe(folder):
    content = (folder / "data.csv").read_bytes()
    code, out, err = finish(
        start("debias", "-", *ROLES, *QUIET, "-o", "-", "--seed", "1", folder=folder),
        content,
    )
    assert code == 0
    fit = fairmaxent.debias(biased_table(), "income", "sex")
    assert pl.read_csv(out).equals(fit.sample(ROWS, random_state=1))
    assert "\x1b" not in err
    assert "statistical rate" in err


@pytest.mark.process
@pytest.mark.parametrize("backtrace", ["0", "1", "full"])
def test_ctrl_c_is_one_line_and_leaves_nothing(folder, backtrace):
    """Neither Python nor Rust shows the way that led there."""
    before = listing(folder)
    process = start(
        "debias",
        "-",
        *ROLES,
        *QUIET,
        "-o",
        "fair.csv",
        folder=folder,
        env={**os.environ, "RUST_BACKTRACE": backtrace},
    )
    process.stdin.write(b"sex,income\n")
    process.stdin.flush()
    _wait_for_reading(process)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert err.strip() == "Error: interrupted; no incomplete file was left behind"
    assert listing(folder) == before


def _wait_for_reading(process):
    """Wait until the process sleeps in reading its stdin: its state is sleeping and
    files.py is loaded.
    """
    ended = time.monotonic() + 30
    while time.monotonic() < ended:
        with open(f"/proc/{process.pid}/wchan") as file:
            waiting = file.read()
        if "pipe" in waiting:
            return
        time.sleep(0.05)
    pytest.skip("this system does not say what a process waits for")


@pytest.mark.process
def test_a_closed_pipe_ends_it_quietly(folder):
    fairmaxent.debias(biased_table(), "income", "sex").save(folder / "fit.fme")
    process = start("sample", "fit.fme", "-n", "50000", folder=folder)
    assert process.stdout.readline().startswith(b"sex,race")
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stdin.close()
    process.stderr.close()
    assert process.wait(timeout=600) == 141
    assert err == ""


@pytest.mark.process
def test_what_happens_while_python_closes_down_does_not_change_the_code_of_a_failure(
    tmp_path,
):
    """An engine's thread that comes back to Python then would abort the process."""
    script = (
        "import atexit, os\natexit.register(os.abort)\nfrom fairmaxent.cli import"
        " main\nmain()"
    )
    arguments = ["inspect", "no-such-table.csv"]
    ended = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 5
    assert ended.stderr.startswith("Error: ")


@pytest.mark.process
def test_ctrl_c_before_there_is_anything_to_interrupt_ends_it_quietly(folder):
    """While click is imported."""
    script = (
        "import os, signal, sys\nclass Interrupting:\n    def find_spec(self, name,"
        " *_):\n        name != 'click' or os.kill(os.getpid(),"
        " signal.SIGINT)\nsys.meta_path.insert(0, Interrupting())\nfrom fairmaxent.cli"
        " import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        cwd=folder,
        preexec_fn=heed_signals,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.process
@pytest.mark.parametrize("said", ["", "ValueError"])
def test_ctrl_c_where_python_cannot_raise_it_ends_it_all_the_same(folder, said):
    """As while it cleans up after an import; other problems there are said."""
    script = f"""
import weakref
from fairmaxent.cli import main
from fairmaxent.cli.group import group

class Noted: pass

def clean_up(_):
    raise {said or "KeyboardInterrupt"}

def invoke(ctx):
    noted = Noted()
    reference = weakref.ref(noted, clean_up)
    del noted
    print("went on")

group.invoke = invoke
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "inspect", "data.csv"],
        capture_output=True,
        cwd=folder,
        text=True,
        preexec_fn=heed_signals,
    )
    assert said in done.stderr
    if said:
        assert (done.returncode, done.stdout) == (0, "went on\n")
    else:
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.process
def test_ctrl_c_ends_it_quietly_as_soon_as_python_itself_has_started(folder):
    """Nothing but two small modules is imported before it is heeded, at whichever
    moment it comes.
    """
    script = (
        "import importlib, signal, sys\nbefore = set(sys.modules)\nsignal.signal ="
        " lambda *_: sys.exit(' '.join(sorted(set(sys.modules) - before)))\nfrom"
        " fairmaxent.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        cwd=folder,
        preexec_fn=heed_signals,
    )
    assert done.stderr.split() == [b"fairmaxent", b"fairmaxent.cli"]
    for turn in range(20):
        process = start("--help", folder=folder)
        time.sleep(turn / 50)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=600)[1]
        assert process.returncode in (0, 130, 1, -signal.SIGINT), said
        # Python's own start (the frozen site module) has a main of its own.
        assert not re.search(rb'fairmaxent\S*", line \d+, in main', said), said


@pytest.mark.process
def test_without_click_it_says_what_to_install(folder):
    script = (
        "import sys\nsys.modules['click'] = None\nfrom fairmaxent.cli import"
        " main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=600, cwd=folder
    )
    assert done.returncode == 2
    assert (
        done.stderr.decode()
        == "Error: the command line needs click, which is not installed; pip install"
        " click polars rich\n"
    )


def finish_silently(process):
    """Wait for a process, and return its code and what it used."""
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used


@pytest.mark.slow
@pytest.mark.process
def test_the_census_table_is_made_fair_within_the_bars(tmp_path):
    adult = fairmaxent.datasets.load("adult", library="polars").frame
    adult.write_csv(tmp_path / "adult.csv", null_value="?")
    roles = ["--outcome", "income", "--protected", "sex,race", "--favourable", ">50K"]
    args = [
        "debias",
        "adult.csv",
        *roles,
        "-o",
        "fair.csv",
        "--save",
        "fit.fme",
        "--seed",
        "1",
        "--force",
    ]
    args += ["--estimate", "none"]  # which has bars of its own
    # An installed package is compiled already; the first run does that here, the second
    # is measured.
    compiled = {
        "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": os.environ | compiled,
    }
    assert finish_silently(start(*args, folder=tmp_path, **quiet))[0] == 0
    code, used = finish_silently(start(*args, folder=tmp_path, **quiet))
    assert code == 0
    assert used.ru_utime + used.ru_stime < 3
    assert used.ru_maxrss < 500 * 1024
    expected = fairmaxent.debias(
        adult, "income", ["sex", "race"], favourable=">50K"
    ).sample(len(adult), random_state=1)
    assert pl.read_csv(tmp_path / "fair.csv").equals(expected)
