"""Streams that are closed or full, disks without room, folders without permission: one
line and a code that is true.
"""

import ctypes
import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

import clifiles
from clifiles import QUIET, ROLES, biased_table, listing
from fairmaxent import debias
from fairmaxent.cli.group import _explain, group
from fairmaxent.cli.options import after_report, name_for, next_step

COMMAND = f"{sys.executable} -m fairmaxent"
R, Q = " ".join(ROLES), " ".join(QUIET)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    biased_table().write_csv(folder / "data.csv")
    debias(biased_table(), "income", "sex").save(folder / "fit.fme")
    (folder / "full.md").symlink_to("/dev/full")
    return folder


def shell(command, folder):
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, timeout=120
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (f"debias - {R} <&-", 5, "stdin is closed"),
        (f"inspect data.csv {R} >&-", 5, "stdout is closed"),
        (f"debias gone.csv {R} 2>&-", 5, ""),
        (
            f"inspect data.csv {R} >/dev/full",
            5,
            "cannot write to stdout: No space left on device",
        ),
        ("sample fit.fme -n 5 >/dev/full", 5, "stdout: No space left on device"),
        pytest.param(
            f"debias data.csv {R} {Q} -o - >/dev/full",
            5,
            "No space left on device",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.process
def test_closed_and_full_streams(folder, typed, code, said):
    before = listing(folder)
    got, _, err = shell(f"{COMMAND} {typed}", folder)
    assert got == code, err
    assert said in err
    assert err.count("\n") == (1 if said else 0)
    assert listing(folder) == before


def test_a_full_stream_is_named():
    full = OSError(errno.ENOSPC, "No space left on device")
    said, code = _explain(full)
    assert said.startswith("stdout: No space left on device; check")
    assert code == 5


def test_a_pipe_is_no_file_for_the_next_command(tmp_path):
    """As after -o >(gzip): whoever reads it next would wait forever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    said = next_step("write a report", ["report", "fit.fme", "--result", str(pipe)])
    assert said == (
        "Next: write a report (run it again with a file instead of the pipe, which is"
        " gone)"
    )
    assert after_report(str(pipe)).startswith("Next: open the report and read its")
    assert name_for(str(pipe), "report.html") == "table-report.html"


PIPED = ["--outcome", "income", "--protected", "sex", "--estimate", "none"]
LOOKED = ["inspect", "data.csv", *PIPED[:4]]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "typed",
    [
        ["debias", "data.csv", *PIPED, "-o", "PIPE"],
        ["debias", "data.csv", *PIPED, "--report", "PIPE.html"],
        ["debias", "data.csv", *PIPED, "--save", "PIPE"],
        ["debias", "data.csv", *PIPED, "-o", "f.csv", "--report", "PIPE.md"],
        ["debias", "data.csv", *PIPED, "-o", "PIPE", "--report", "r.md"],
        [*LOOKED, "--report", "PIPE.md"],
        [*LOOKED, "--write-config", "PIPE"],
        [*LOOKED, "--write-domain", "PIPE"],
        ["sample", "fit.fme", "-n", "9", "-o", "PIPE"],
        ["report", "fit.fme", "-o", "PIPE.html"],
        ["rake", "data.csv", "--margins", "margins.csv", "-o", "PIPE"],
        ["rake", "data.csv", "--margins", "margins.csv", "--report", "PIPE.md"],
    ],
    ids=lambda typed: f"{typed[0]} {typed[-2]}",
)
def test_the_next_step_names_no_pipe(typed, tmp_path, monkeypatch):
    """A shell's >(...) is a name such as /dev/fd/63, which is gone by then."""
    monkeypatch.chdir(tmp_path)
    data = biased_table()
    data.write_csv("data.csv")
    debias(data, "income", "sex", estimate=None).save("fit.fme")
    Path("margins.csv").write_text("columns,level,value\nsex,Female,1\nsex,Male,1\n")
    pipe = next(word for word in typed if word.startswith("PIPE"))
    os.mkfifo(pipe)
    reading = threading.Thread(target=Path(pipe).read_bytes, daemon=True)
    reading.start()
    said = clifiles.run(*typed).output
    reading.join(60)
    following = said[said.index("Next: ") :] if "Next: " in said else ""
    assert "PIPE" not in following


@pytest.mark.process
def test_what_polars_says_of_itself_is_not_shown(tmp_path):
    """RUST_BACKTRACE is for who works on polars: a panic is one line of ours."""
    pyarrow = pytest.importorskip("pyarrow")
    odd = pyarrow.array([(1, 2, 3)], pyarrow.month_day_nano_interval())
    table = pyarrow.table({"a": odd})
    with pyarrow.ipc.new_file(tmp_path / "odd.arrow", table.schema) as file:
        file.write_table(table)
    code, _, err = shell(f"RUST_BACKTRACE=1 {COMMAND} inspect odd.arrow", tmp_path)
    assert code == 5
    assert "stack backtrace" not in err
    assert err.splitlines()[-1].startswith("Error: cannot read odd.arrow as arrow")


@pytest.mark.process
def test_all_streams_closed_it_still_writes_nothing_into_them(tmp_path):
    """A file that is opened must not get the number of a closed stream: what is printed
    would go into it.
    """
    biased_table().write_csv(tmp_path / "data.csv")
    assert (
        shell(f"{COMMAND} debias data.csv {R} {Q} -o fair.csv --seed 1", tmp_path)[0]
        == 0
    )
    wanted = (tmp_path / "fair.csv").read_bytes()
    assert (
        shell(
            f"{COMMAND} debias data.csv {R} {Q} -o fair.csv --seed 1 --force <&- 2>&-",
            tmp_path,
        )[0]
        == 0
    )
    assert (tmp_path / "fair.csv").read_bytes() == wanted


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize(
    ("outputs", "size"),
    [
        ("-o fair.csv --rows 5000", 3000),
        pytest.param("-o fair.arrow --rows 5000", 3000, marks=pytest.mark.slow),
        ("-o fair.csv --save fit.fme --rows 10", 1500),
        pytest.param("--report report.md", 500, marks=pytest.mark.slow),
        pytest.param("--save /dev/full -o fair.csv", None, marks=pytest.mark.slow),
        ("--report full.md -o fair.csv --save fit.fme", None),
    ],
)
@pytest.mark.process
def test_a_disk_without_room_leaves_everything_as_it_was(tmp_path, outputs, size):
    biased_table().write_csv(tmp_path / "data.csv")
    (tmp_path / "full.md").symlink_to("/dev/full")
    (tmp_path / "fair.csv").write_text("old")
    before = listing(tmp_path)
    command = [
        *COMMAND.split(),
        "debias",
        "data.csv",
        *ROLES,
        *QUIET,
        *outputs.split(),
        "--force",
    ]
    options = {} if size is None else {"preexec_fn": limited(size)}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, timeout=120, **options
    )
    assert done.returncode == 5, done.stderr
    assert done.stderr.startswith(b"Error: ")
    assert done.stderr.count(b"\n") == 1
    assert listing(tmp_path) == before


def without_privileges():
    """The superuser may write anywhere, but not once it has given up that
    capability.
    """
    if os.getuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


@pytest.mark.parametrize(
    "outputs",
    [
        "-o shut/fair.csv",
        "-o fair.csv --save shut/fit.fme",
        "-o fair.csv --report shut/r.md",
        "-o shut/old.csv",
    ],
)
@pytest.mark.process
def test_without_permission_nothing_is_written(tmp_path, outputs):
    biased_table().write_csv(tmp_path / "data.csv")
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "old.csv").write_text("old")
    (tmp_path / "shut").chmod(0o555)
    options = {
        "cwd": tmp_path,
        "capture_output": True,
        "timeout": 120,
        "preexec_fn": without_privileges,
    }
    if subprocess.run(["sh", "-c", ": > shut/probe"], **options).returncode == 0:
        (tmp_path / "shut").chmod(0o755)
        pytest.skip("this user may write anywhere")
    before = listing(tmp_path)
    command = [
        *COMMAND.split(),
        "debias",
        "data.csv",
        *ROLES,
        *QUIET,
        *outputs.split(),
        "--force",
    ]
    done = subprocess.run(command, **options)
    (tmp_path / "shut").chmod(0o755)
    assert done.returncode == 5, done.stderr
    assert b"cannot write in" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert listing(tmp_path) == before


@pytest.mark.more
def test_only_you_can_read_rows_and_models_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    biased_table().write_csv("data.csv")
    mask = os.umask(0o022)
    try:
        outputs = ["-o", "fair.csv", "--save", "fit.fme", "--report", "report.md"]
        for options, mode in (([], 0o600), (["--readable-by-others"], 0o644)):
            for name in ("fair.csv", "fit.fme", "report.md", "rows.csv", "c.toml"):
                Path(name).unlink(missing_ok=True)
            assert (
                CliRunner()
                .invoke(
                    group, ["debias", "data.csv", *ROLES, *QUIET, *outputs, *options]
                )
                .exit_code
                == 0
            )
            typed = ["sample", "fit.fme", "-n", "5", "-o", "rows.csv", *options]
            assert CliRunner().invoke(group, typed).exit_code == 0
            typed = ["inspect", "data.csv", *ROLES, "--write-config", "c.toml"]
            assert CliRunner().invoke(group, typed).exit_code == 0
            modes = {
                name: stat.S_IMODE(os.stat(name).st_mode)
                for name in os.listdir()
                if name != "data.csv"
            }
            rows = dict.fromkeys(("fair.csv", "fit.fme", "rows.csv"), mode)
            assert modes == rows | {"report.md": 0o644, "c.toml": 0o644}
    finally:
        os.umask(mask)
