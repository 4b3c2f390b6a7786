"""Files that appear complete or not at all: written in a hidden folder, flushed to disk, then given their names.

Files that hold people's rows can be read by their owner only, unless asked otherwise; a file that is replaced keeps its
permissions.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

from fairmaxent.errors import LimitError, Option, StorageError
from fairmaxent.files.hidden import HiddenFolder, remove_abandoned
from fairmaxent.files.interrupts import undisturbed

# What a file system answers that has no hard links, or no permissions.
_UNSUPPORTED = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


def write_whole(path: Path, content: bytes, *, readable: bool = False, tidy: bool = True) -> None:
    """Write a file completely or not at all, and replace an existing one.

    ``readable``: other users may read it, if the umask allows. ``tidy``: remove what killed processes left beside it.
    """
    with write_errors(path):
        target = target_of(path)
        if tidy:
            remove_abandoned(folder_for(target))
        with HiddenFolder(folder_for(target)) as hidden:
            temporary = hidden / "content"
            write_private(temporary, content)
            complete(temporary, target, readable=readable)
            if not is_special(target):
                undisturbed(lambda: publish([Pending(temporary, target, force=True)]))


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read."""
    with open_private(path) as file:
        file.write(content)


def open_private(path: Path) -> IO[bytes]:
    """Open a new file for writing that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def flush_to_disk(file: IO[Any]) -> None:
    """Return once the content is on disk, where a power cut cannot take it."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Return once the names in a folder are on disk; some file systems cannot say."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into one that names the file that was to be written."""
    try:
        yield
    except (StorageError, LimitError):
        raise
    except (OSError, ValueError) as problem:
        raise StorageError(f"cannot write {path}: {reason_of(problem)}; choose another location") from problem


def reason_of(problem: OSError | ValueError) -> str:
    """Return what the system says, without the path; a ValueError means a null character in the path."""
    return str(getattr(problem, "strerror", None) or problem)


# ---------------------------------------------------------------- targets


def target_of(path: str | PathLike[str]) -> Path:
    """Follow links, so that the file is replaced and not the link to it."""
    return Path(path) if is_special(Path(path)) else Path(os.path.realpath(path))


def folder_for(target: Path) -> Path:
    """The target's own folder, or the system's folder for temporary files if the target is a device or a pipe."""
    import tempfile  # slow to import

    return Path(tempfile.gettempdir()) if is_special(target) else target.parent


def is_special(path: Path) -> bool:
    """Whether it is a device or a pipe, which is written to and not replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_folder(path: str | PathLike[str]) -> Path:
    """Refuse anything that exists already, except an empty folder; return its absolute path, valid in any process."""
    try:
        folder = Path(os.path.realpath(path))
        entry = next(folder.iterdir(), None) if folder.exists() else None
    except (OSError, ValueError) as problem:
        raise StorageError(f"cannot write into {path}: {reason_of(problem)}; name a new folder") from problem
    if entry is not None:
        raise StorageError(f"{path} is not empty: it contains {entry.name}; empty it, or name another folder")
    if os.path.ismount(folder):
        raise StorageError(f"{path} is a mounted volume; name a new folder in it")
    return folder


# ---------------------------------------------------------------- from temporary files to files


def complete(temporary: Path, path: Path, *, readable: bool) -> None:
    """Flush a file to disk, with the permissions it is to have; a device or a pipe gets the content now."""
    with temporary.open("rb") as file:
        if is_special(path):
            import shutil  # slow to import

            with path.open("wb") as device:
                shutil.copyfileobj(file, device)
            return
        set_permissions(temporary, path, 0o666 if readable else 0o600)
        flush_to_disk(file)


def set_permissions(temporary: Path, path: Path, mode: int) -> None:
    """Give the permissions of what is replaced, or else this mode as far as the umask allows."""
    allowed = path.stat().st_mode & 0o777 if path.exists() else mode & ~_umask()
    try:
        os.chmod(temporary, allowed)
    except OSError as problem:
        if problem.errno not in _UNSUPPORTED:  # some file systems have no permissions
            raise


def _umask() -> int:
    """The umask, which can only be read by setting it: to one that lets no file of another thread be too open."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@dataclass(frozen=True)
class Pending:
    """A complete file or folder, and the name it is to get; ``force`` replaces an existing file."""

    temporary: Path
    path: Path
    force: bool


def publish(pending: list[Pending]) -> None:
    """Give files their names, all or none: if one cannot be named, those before it are taken back.

    On a file system without hard links, a file that was replaced before the failure stays replaced.
    """
    undo: list[tuple[Pending, _Before]] = []
    try:
        for one in pending:
            with write_errors(one.path):
                before = _before(one)
                undo.append((one, before))
                _name(one)
        for folder in {one.path.parent for one in pending}:
            with write_errors(folder):
                flush_folder(folder)
    except BaseException:
        for one, before in reversed(undo):
            with contextlib.suppress(OSError):
                _take_back(one, before)
        raise


@dataclass(frozen=True)
class _Before:
    """What there was: the inode of the new content, and the mode of what had the name, with a second name for it."""

    inode: int
    mode: int | None  # None: there was nothing
    backup: Path | None


def _before(one: Pending) -> _Before:
    inode, backup = one.temporary.stat().st_ino, None
    mode = one.path.stat().st_mode if one.path.exists() else None
    if mode is not None and one.force:
        name = one.temporary.with_name(f"{one.temporary.stem}-before")
        with contextlib.suppress(OSError):  # there may be no hard links
            os.link(one.path, name)
            backup = name
    return _Before(inode, mode, backup)


def _name(one: Pending) -> None:
    if one.force:
        os.replace(one.temporary, one.path)
    elif one.temporary.is_dir():
        os.rename(one.temporary, one.path)  # fails if the folder is there and not empty
    else:
        _name_new(one)


def _name_new(one: Pending) -> None:
    """Give a file a name that nothing else has, whatever has happened since that was checked."""
    try:
        try:
            os.link(one.temporary, one.path)
        except FileExistsError:
            raise
        except OSError as problem:
            if problem.errno not in _UNSUPPORTED:
                raise
            _claim_and_replace(one)
    except FileExistsError as problem:
        raise StorageError(
            f"{one.path} was made by another program in the meantime, and is left as it is; use ",
            Option("force"),
            " to replace it, or name another file",
        ) from problem


def _claim_and_replace(one: Pending) -> None:
    """Do the same without hard links: take the name with an empty file, and replace that."""
    os.close(os.open(one.path, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.replace(one.temporary, one.path)
    except BaseException:
        os.unlink(one.path)
        raise


def _take_back(one: Pending, before: _Before) -> None:
    if not one.path.exists() or one.path.stat().st_ino != before.inode:
        return
    if one.path.is_dir():
        os.rename(one.path, one.temporary)
        if before.mode is not None:
            os.mkdir(one.path)
            os.chmod(one.path, before.mode & 0o777)
    elif before.backup is not None:
        os.replace(before.backup, one.path)
    elif before.mode is None:
        os.unlink(one.path)
