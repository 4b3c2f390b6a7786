"""Hidden folders: in use they stay, abandoned they go, and nothing else is touched."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import time

import pytest

from fairmaxent.files.hidden import HiddenFolder, remove_abandoned
from fairmaxent.files.interrupts import undisturbed

KILLED = """
import os, signal, sys
from pathlib import Path
from fairmaxent.files.hidden import HiddenFolder

folder = HiddenFolder(Path(sys.argv[1]))
(folder.path / "rows.csv").write_text("people")
print(folder.path, flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.process
def test_of_a_killed_process_it_is_removed_and_of_a_running_one_not(tmp_path):
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], **piped)
    hidden = process.stdout.readline().strip()
    remove_abandoned(tmp_path)
    assert os.listdir(hidden)
    process.communicate("")
    assert process.returncode == -signal.SIGKILL
    assert os.listdir(hidden)
    remove_abandoned(tmp_path)
    assert os.listdir(tmp_path) == []


KILLED_WHILE_NAMING = """
import os, signal, sys
from pathlib import Path
from fairmaxent.files.staging import Staging

targets = [Path(sys.argv[1]) / name for name in sys.argv[4:]]
force, left = sys.argv[2] == "force", int(sys.argv[3])

def counted(call):
    def counting(*args, **options):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)
    return counting

for name in ("mkdir", "open", "chmod", "fsync", "link", "replace", "rename", "unlink", "rmdir"):
    setattr(os, name, counted(getattr(os, name)))
with Staging(targets, force=force) as staging:
    for target in targets:
        staging.path_for(target).write_text("new")
"""
RESULTS = ("fair.csv", "model.fme", "report.html")


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.process
def test_a_run_killed_at_any_step_leaves_complete_results_in_order_and_the_next_removes_the_rest(tmp_path, force):
    seen = []
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        folder.mkdir()
        for name in RESULTS if force else ():
            (folder / name).write_text("old")
        typed = [str(folder), "force" if force else "new", str(step), *RESULTS]
        ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_NAMING, *typed], check=False).returncode
        remove_abandoned(folder)
        left = {path.name: path.read_text() for path in folder.iterdir()}
        seen.append([left.pop(name, None) for name in RESULTS])
        assert not left, step
        if not ended:
            break
        assert ended == -signal.SIGKILL
    before = "old" if force else None
    steps = [["new"] * number + [before] * (3 - number) for number in range(4)]
    assert [each for each, _ in itertools.groupby(seen)] == steps


def test_without_a_lock_file_it_goes_only_if_it_is_empty(tmp_path):
    empty, full = (tmp_path / f".fairmaxent-{digit * 16}.tmp" for digit in "01")
    empty.mkdir()
    full.mkdir()
    (full / "something").write_text("")
    remove_abandoned(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [full.name]


def test_links_and_other_names_are_left_alone(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").write_text("")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / f".fairmaxent-{'0' * 16}.tmp").symlink_to(elsewhere)
    for name in (".fairmaxent", ".fairmaxent-1.tmp", ".0123.tmp"):
        (inside / name).mkdir()
        (inside / name / "lock").write_text("")
    remove_abandoned(inside)
    assert len(list(inside.iterdir())) == 4
    assert (elsewhere / "lock").exists()


def test_others_cannot_look_into_it_and_it_is_gone_at_the_end(tmp_path):
    with HiddenFolder(tmp_path) as path:
        assert path.stat().st_mode & 0o777 == 0o700
        (path / "a" / "b").mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []


def test_one_that_even_its_owner_may_not_look_into_is_removed(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in ("open", "listdir", "scandir"):  # as with umask 777, which stops everyone but root
        monkeypatch.setattr(os, name, denied)
    with pytest.raises(PermissionError):
        HiddenFolder(tmp_path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


NO_DESCRIPTORS = """
import os, resource, sys
from pathlib import Path
from fairmaxent.files.hidden import HiddenFolder

folder = HiddenFolder(Path(sys.argv[1]))
(folder.path / "rows.csv").write_text("people")
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
try:
    while True:
        os.dup(0)
except OSError:
    folder.remove()
"""


@pytest.mark.process
def test_it_is_removed_when_no_more_files_can_be_opened(tmp_path):
    pytest.importorskip("resource")
    subprocess.run([sys.executable, "-c", NO_DESCRIPTORS, str(tmp_path)], check=True, stdin=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_takes_effect_after_the_steps():
    done = []

    def steps():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        done.append("first")
        os.kill(os.getpid(), signal.SIGINT)
        undisturbed(lambda: done.append("second"))
        time.sleep(0.1)
        done.append("third")

    with pytest.raises(KeyboardInterrupt):
        undisturbed(steps)
    assert done == ["first", "second", "third"]
    assert undisturbed(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        undisturbed(lambda: 1 // 0)
