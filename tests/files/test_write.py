"""Every write, every name and every flush of an output fails once: nothing is lost,
half-written or left behind.
"""

import contextlib
import errno
import itertools
import os
import stat
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from clifiles import biased_table
from fairmaxent import debias
from fairmaxent.errors import StorageError
from fairmaxent.files import write
from fairmaxent.files.write import Staging, write_table, write_whole
from faults import REASONS, Faults, all_or_nothing

TABLE = pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]})


def seen(folder):
    """Names, contents and permissions of everything in a folder."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.stat().st_mode),
            path.is_file() and path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


@pytest.fixture
def folders(tmp_path):
    """Make new folders, each with the same files: old results, and something else."""
    numbers = itertools.count()

    def make(*, old=True):
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        (folder / "mine.txt").write_text("precious")
        for name in ("fair.csv", "fit.fme") if old else ():
            (folder / name).write_text(f"old {name}")
            (folder / name).chmod(0o640)
        return folder

    return make


@pytest.mark.more
@pytest.mark.parametrize("exists", [False, True])
def test_a_file_alone_and_a_folder_of_parts(folders, exists):
    fit = debias(biased_table(), "income", "sex")

    def make():
        folder = folders(old=exists)
        if exists:
            (folder / "parts").mkdir(mode=0o750)
        return folder

    run = lambda folder: fit.write_sample(60, folder / "parts", size=20, random_state=1)  # noqa: E731
    assert all_or_nothing(make, run, seen) > 15
    assert (
        all_or_nothing(
            make, lambda folder: write_whole(folder / "fair.csv", b"new" * 1000), seen
        )
        > 5
    )
    assert all_or_nothing(make, lambda folder: fit.save(folder / "fit.fme"), seen) > 5


def test_a_pipe_gets_what_is_complete_before_any_file_appears(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    other = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    names = [tmp_path / "fair.csv", tmp_path / "pipe"]
    with Staging(names) as staging:
        staging.write_table(TABLE, names[1])
        write_whole(staging.path_for(names[0]), b"table")
        # nothing temporary stands beside a pipe
        assert len(list(tmp_path.iterdir())) == 2
    assert other.communicate(timeout=60)[0].decode() == TABLE.write_csv()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fair.csv", "pipe"]
    other = subprocess.Popen(
        ["head", "-c", "1", tmp_path / "pipe"], stdout=subprocess.DEVNULL
    )
    with (
        pytest.raises(StorageError, match="Broken pipe"),
        Staging([tmp_path / "new", names[1]]) as staging,
    ):
        staging.write_table(pl.concat([TABLE] * 20_000), names[1])
    other.wait(timeout=60)
    assert not (tmp_path / "new").exists()


THREE = ("fair.csv", "fit.fme", "report.html")


def write_three(folder, *, force):
    names = [folder / name for name in THREE]
    with Staging(names, force=force, readable=names[2:]) as staging:
        staging.write_table(TABLE, names[0])
        write_whole(staging.path_for(names[1]), b"model")
        write_whole(staging.path_for(names[2]), b"report")


@pytest.mark.some(1)
@pytest.mark.parametrize("force", [False, True])
def test_of_three_files_each_is_complete_or_not_there(folders, force):
    """Wherever it fails, each name has the old content or the new one, and what is new
    was named in order.
    """
    calm = folders(old=force)
    with pytest.MonkeyPatch.context() as patch:
        calls = Faults(patch).calls
        write_three(calm, force=force)
    new, failed = seen(calm), 0
    for failing in range(1, len(calls) + 1):
        folder = folders(old=force)
        old = seen(folder)
        with pytest.MonkeyPatch.context() as patch:
            Faults(patch, failing, REASONS[failing % len(REASONS)])
            with contextlib.suppress(StorageError):
                write_three(folder, force=force)
                failed -= 1
            failed += 1
        changed = [seen(folder).get(name) != old.get(name) for name in THREE]
        assert changed == sorted(changed, reverse=True), failing
        for name, content in seen(folder).items():
            assert content in (old.get(name), new[name]), (failing, name)
    assert failed > 10


@pytest.mark.parametrize("name", ["fair.csv", "link.csv"])
def test_a_file_stays_without_force_and_keeps_its_place_and_rights_with_it(
    folders, name
):
    folder = folders()
    (folder / "link.csv").symlink_to("fair.csv")
    before = seen(folder)
    with pytest.raises(StorageError, match=r"fair\.csv exists; use force=True"):
        write_table(TABLE, folder / name)
    assert seen(folder) == before
    write_table(TABLE, folder / name, force=True)
    assert (folder / "link.csv").is_symlink()
    assert seen(folder)["fair.csv"] == (0o640, b"a,b\n1,x\n2,y\n3,\n")


@pytest.mark.process
def test_a_temporary_file_goes_with_the_process(tmp_path):
    program = (
        "import sys; from pathlib import Path; from fairmaxent.files.write import"
        " new_temporary; new_temporary(Path(sys.argv[1]));"
        " new_temporary(Path(sys.argv[1]), folder_mode=0o700);"
        " print(len(list(Path(sys.argv[1]).iterdir())))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "2\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [None, errno.EPERM, errno.EINVAL],
    ids=["links", "Linux on FAT", "Windows on FAT"],
)
def test_a_name_taken_in_the_meantime_is_left_alone_also_without_hard_links(
    answer, folders, monkeypatch
):
    if answer is not None:
        monkeypatch.setattr(
            os, "link", Mock(side_effect=OSError(answer, os.strerror(answer)))
        )
    folder = folders(old=False)
    with Staging([folder / "new.csv"]) as staging:
        staging.path_for(folder / "new.csv").write_text("new")
    assert (folder / "new.csv").read_text() == "new"
    taken = r"b\.csv was made by another program.*force=True"
    staging = Staging([folder / "b.csv"])
    staging.__enter__()
    staging.path_for(folder / "b.csv").write_text("ours")
    (folder / "b.csv").write_text("theirs")
    with pytest.raises(StorageError, match=taken):
        staging.__exit__(None, None, None)
    assert (folder / "b.csv").read_text() == "theirs"
    assert sorted(seen(folder)) == ["b.csv", "mine.txt", "new.csv"]
    # a link made in the meantime is not followed, and replaced only with force
    target = folder / "c.csv"
    for force, refused in (
        (False, pytest.raises(StorageError, match="made by an")),
        (True, contextlib.nullcontext()),
    ):
        with refused, Staging([target], force=force) as staging:
            target.symlink_to("mine.txt")
            staging.path_for(target).write_text("new")
        assert (folder / "mine.txt").read_text() == "precious"
        assert target.is_symlink() is not force
        target.unlink()


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("windows", [False, True])
def test_an_empty_folder_is_replaced_and_a_filled_one_never(
    theirs, windows, folders, monkeypatch
):
    folder, fcntl, rename = folders(), pytest.importorskip("fcntl"), os.rename
    names = [folder / "fair.csv", folder / "parts"]
    names[1].mkdir()

    def windows_flush(file):
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")

    def windows_rename(old, new):
        if os.path.exists(new):
            raise FileExistsError(
                errno.EEXIST, "Cannot create a file when that file already exists"
            )
        rename(old, new)

    if windows:
        monkeypatch.setattr(os, "fsync", windows_flush)
        monkeypatch.setattr(os, "rename", windows_rename)
    refused = (
        pytest.raises(StorageError, match="cannot write")
        if theirs
        else contextlib.nullcontext()
    )
    with refused, Staging(names[:1], folders=names[1:], force=True) as staging:
        staging.path_for(names[0]).write_text("new")
        (staging.path_for(names[1]) / "one").write_text("new")
        (names[1] / "theirs").write_text("theirs") if theirs else None
    assert [path.name for path in names[1].iterdir()] == ["theirs" if theirs else "one"]
    assert names[0].read_text() == "new"


def test_only_the_owner_can_read_rows_and_models_unless_asked(tmp_path):
    mask = os.umask(0o022)
    try:
        fit = debias(biased_table(), "income", "sex")
        fit.save(tmp_path / "fit.fme")
        fit.save(tmp_path / "shared.fme", readable_by_others=True)
        fit.write_sample(10, tmp_path / "parts")
        fit.write_sample(10, tmp_path / "shared", readable_by_others=True)
        write_whole(tmp_path / "report.html", b"", readable=True)
    finally:
        os.umask(mask)
    modes = {name: mode for name, (mode, _) in seen(tmp_path).items()}
    mine = {"fit.fme": 0o600, "parts": 0o700, "parts/part-00000.parquet": 0o600}
    shared = {
        "shared.fme": 0o644,
        "shared": 0o755,
        "shared/part-00000.parquet": 0o644,
        "report.html": 0o644,
    }
    assert modes == mine | shared


def test_a_failure_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(write, "open_temporary", full)
    target = tmp_path / "fit.fme"
    with pytest.raises(StorageError) as problem, Staging([target]) as staging:
        write_whole(staging.path_for(target), b"x")
    expected = (
        f"cannot write {target}: No space left on device; choose another location"
    )
    assert str(problem.value) == problem.value.spelled(str) == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs a device that is always full"
)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "jsonl", "xlsx"])
def test_a_full_disk_is_said_of_the_table_that_was_asked_for(
    suffix, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        write,
        "open_temporary",
        lambda _: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb"),
    )
    with pytest.raises(
        StorageError, match=rf"^cannot write \S*/fair\.{suffix}\b.*No space left"
    ):
        write_table(pl.DataFrame({"x": range(10_000)}), tmp_path / f"fair.{suffix}")
    assert list(tmp_path.iterdir()) == []
