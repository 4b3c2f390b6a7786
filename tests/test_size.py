"""The ledger of a change, which `scripts/size.py --since` prints, on a source whose nodes
are counted by hand.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "size.py"
# Seven nodes: the definition, its (empty) arguments, return, +, its sign, two numbers.
SUM = "def {name}():\n    return 1 + 2\n"
# Four: the definition, its arguments, return, a number.
ONE = "def {name}():\n    return 1\n"


@pytest.fixture
def size(tmp_path, monkeypatch):
    """The script as a module, of a repository with three files in two wings."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    spec = importlib.util.spec_from_file_location("size", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "size", module)
    spec.loader.exec_module(module)
    package = tmp_path / "src" / "fairmaxent"
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PACKAGE", package)
    write(package / "near.py", ONE.format(name="near"))
    write(package / "far" / "first.py", SUM.format(name="total"))
    write(package / "far" / "second.py", ONE.format(name="other"))
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return module


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def git(folder, *words):
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    command = ["git", *who, "-c", "commit.gpgsign=false", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a change")


def ledger(size, capsys, revision="HEAD"):
    """Each line of the ledger, as numbers: added, removed and their sum."""
    assert size.print_ledger(revision) == 0
    printed = capsys.readouterr().out.splitlines()
    parts = [
        line.replace("=", "").replace(",", "").rsplit(maxsplit=3) for line in printed
    ]
    return {name: tuple(map(int, numbers)) for name, *numbers in parts}


def test_nothing_changed(size, capsys):
    assert ledger(size, capsys) == {"nodes": (0, 0, 0)}


def test_a_definition_counts_by_what_it_grew_or_shrank(size, capsys):
    write(size.PACKAGE / "far" / "first.py", ONE.format(name="total"))
    write(size.PACKAGE / "far" / "second.py", SUM.format(name="other"))
    assert ledger(size, capsys) == {"far": (3, -3, 0), "nodes": (3, -3, 0)}


def test_a_move_inside_a_wing_is_seen(size, capsys):
    first, second = (size.PACKAGE / "far" / name for name in ("first.py", "second.py"))
    both = second.read_text() + first.read_text()
    first.unlink()
    write(second, both)
    # the module itself is one more node that is gone
    assert ledger(size, capsys) == {"far": (7, -8, -1), "nodes": (7, -8, -1)}


def test_new_files_count_before_git_knows_them(size, capsys):
    write(size.PACKAGE / "new" / "file.py", SUM.format(name="total"))
    assert ledger(size, capsys) == {"new": (8, 0, 8), "nodes": (8, 0, 8)}


def test_files_of_the_package_itself_are_a_wing(size, capsys):
    (size.PACKAGE / "near.py").unlink()
    assert ledger(size, capsys) == {"(top level)": (0, -5, -5), "nodes": (0, -5, -5)}


def test_methods_are_counted_one_by_one(size, capsys):
    method = "    def {name}(self):\n        return {value}\n"
    both = [method.format(name=name, value="1") for name in ("first", "second")]
    write(size.PACKAGE / "near.py", "class Near:\n" + "".join(both))
    commit(size.ROOT)
    longer = method.format(name="second", value="1 + 2")
    write(size.PACKAGE / "near.py", "class Near:\n" + longer)
    # gone: a definition, its arguments with self, return, a number
    assert ledger(size, capsys)["nodes"] == (3, -5, -2)


def test_what_was_committed_is_compared_with_any_commit_before(size, capsys):
    write(size.PACKAGE / "near.py", SUM.format(name="near"))
    commit(size.ROOT)
    write(size.PACKAGE / "far" / "second.py", SUM.format(name="other"))
    commit(size.ROOT)
    assert ledger(size, capsys, "HEAD~2") == {
        "(top level)": (3, 0, 3),
        "far": (3, 0, 3),
        "nodes": (6, 0, 6),
    }


def test_what_no_python_file_says_is_not_counted(size, capsys):
    write(size.PACKAGE / "far" / "words.toml", "a = 1\n")
    assert ledger(size, capsys) == {"nodes": (0, 0, 0)}


def test_a_commit_that_is_not_here_is_an_error_with_the_way_out(size, capsys):
    assert size.print_ledger("v9.9.9") == 2
    said = capsys.readouterr()
    assert "no source of 'v9.9.9' here" in said.err
    assert "git fetch --unshallow" in said.err
    assert not said.out


def test_no_git_is_an_error(size, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert size.print_ledger("HEAD") == 2
    assert "there is no git here" in capsys.readouterr().err
