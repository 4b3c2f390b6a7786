"""Hidden folders for unfinished files: private, and removed in every case, by the next run if this one was killed.

A folder is locked by the process that made it. The system releases the lock when the process ends, however it ends, so
a folder that can be locked was abandoned.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from fairmaxent.files.interrupts import BUSY, undisturbed

try:
    import fcntl
except ImportError:  # not on Windows: nothing is locked there, and abandoned folders stay
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\.fairmaxent-[0-9a-f]{16}\.tmp")
_LOCK = "lock"

# The folders of this process that still exist. A forked process must not remove them.
_open: dict[HiddenFolder, int] = {}


class HiddenFolder:
    """A folder beside the files that it will become; others cannot look into it unless it is ``shared``."""

    def __init__(self, parent: Path, *, shared: bool = False) -> None:
        self._parent, self._mode = parent, 0o777 if shared else 0o700
        undisturbed(self._create)

    def remove(self) -> None:
        """Remove the folder with everything in it; nobody can add anything meanwhile, because it has a new name."""
        undisturbed(self._remove)

    def _create(self) -> None:
        self.path, self._lock = _create(self._parent, self._mode)
        _open[self] = os.getpid()

    def _remove(self) -> None:
        if _open.pop(self, None) == os.getpid():
            os.close(self._lock)  # first: without a free descriptor, nobody can look into the folder
            _remove(self.path)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


@atexit.register
def remove_all() -> None:
    """Remove every hidden folder of this process, which is about to end."""
    with BUSY:
        for folder in list(_open):
            folder._remove()


def remove_abandoned(parent: Path) -> None:
    """Remove the hidden folders of processes that were killed; a folder in use, or of another user, stays."""
    for path in _hidden_in(parent) if fcntl else ():
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.getuid():
                _remove_if_abandoned(path)


def remove_every(parent: Path) -> None:
    """Remove all hidden folders in a folder that nobody else writes to any more."""
    for path in _hidden_in(parent):
        _remove(path)


def _hidden_in(parent: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for name in [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]:
            if _NAME.fullmatch(name):
                yield parent / name


def _create(parent: Path, mode: int) -> tuple[Path, int]:
    """Make a folder and lock it; again, if another process took it for abandoned in between."""
    while True:
        path = _new_path(parent)
        os.mkdir(path, mode)
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        except OSError:
            os.rmdir(path)  # there is nothing in it, and a umask may keep even its owner from looking
            raise
        _lock(lock, wait=True)
        if (path / _LOCK).exists():
            return path, lock
        os.close(lock)


def _new_path(parent: Path) -> Path:
    return parent / f".fairmaxent-{os.urandom(8).hex()}.tmp"


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock a file, and return whether that worked; some file systems have no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove_if_abandoned(path: Path) -> None:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:  # its process ended, or is about to lock it and will then make another
        os.rmdir(path)
        return
    try:
        if _lock(lock, wait=False):
            _remove(path)
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    aside = _new_path(path.parent)
    try:
        os.rename(path, aside)
    except OSError:
        aside = path
    for _ in range(2):  # a failure may pass
        with contextlib.suppress(OSError):
            _remove_lock_last(aside)


def _remove_lock_last(path: Path) -> None:
    """Remove a folder such that, if this is cut short, the next run still recognises it."""
    import shutil  # slow to import

    for one in list(path.iterdir()):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one, ignore_errors=True)
        elif one.name != _LOCK:
            with contextlib.suppress(OSError):
                os.unlink(one)
    if os.listdir(path) == [_LOCK]:
        os.unlink(path / _LOCK)
    os.rmdir(path)


@contextlib.contextmanager
def locked(folders: set[Path]) -> Iterator[None]:
    """Let no other process give names to its files in these folders at the same time, if the file system can lock."""
    descriptors = []
    try:
        for folder in sorted(folders):
            with contextlib.suppress(OSError):
                descriptors.append(os.open(folder, os.O_RDONLY))
                _lock(descriptors[-1], wait=True)
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
