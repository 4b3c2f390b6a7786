"""Files that appear complete or not at all: written under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any

from fairmaxent.errors import StorageError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    temporary = path.parent / f".{os.urandom(8).hex()}.tmp"
    try:
        with write_errors(path):
            with temporary.open("xb") as file:
                file.write(content)
                flush_to_disk(file)
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()


def flush_to_disk(file: IO[Any]) -> None:
    """Return once the content is on disk, where a power cut cannot take it."""
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into one that names the file that was to be written."""
    try:
        yield
    except (OSError, ValueError) as problem:
        raise StorageError(f"cannot write {path}: {reason_of(problem)}; choose another location") from problem


def reason_of(problem: OSError | ValueError) -> str:
    """Return what the system says, without the path; a ValueError means a null character in the path."""
    return str(getattr(problem, "strerror", None) or problem)


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while writing into a folder that only we write to."""
    for temporary in folder.glob(".*.tmp"):
        temporary.unlink(missing_ok=True)


def new_folder(path: str | PathLike[str]) -> Path:
    """Create a folder to write files into, or accept an empty one; return its absolute path."""
    folder = check_folder(path)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot make the folder {path}: {problem.strerror}; choose another location") from problem
    return folder


def check_folder(path: str | PathLike[str]) -> Path:
    """Refuse anything that exists already, except an empty folder; return its absolute path, valid in any process."""
    folder = Path(path).absolute()
    try:
        entry = next(folder.iterdir(), None) if folder.exists() else None
    except (OSError, ValueError) as problem:
        raise StorageError(f"cannot write into {path}: {reason_of(problem)}; name a new folder") from problem
    if entry is not None:
        raise StorageError(f"{path} is not empty: it contains {entry.name}; empty it, or name another folder")
    return folder
