"""Files are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from os import PathLike
from pathlib import Path

from fairmaxent.errors import StorageError


def write_whole(path: Path, content: bytes) -> None:
    """Write to a temporary file beside the wanted one, then rename."""
    temporary = path.parent / f".{os.urandom(8).hex()}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, ValueError) as problem:  # ValueError: a null character in the path
        raise StorageError(f"cannot write {path}: {problem}; choose another place") from problem
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove what processes that were killed while writing have left in a folder of ours."""
    for left in folder.glob(".*.tmp"):
        left.unlink(missing_ok=True)


def new_folder(path: str | PathLike[str]) -> Path:
    """Make a folder to write files into, or take an empty one."""
    place = check_folder(path)
    try:
        place.mkdir(exist_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot make the folder {path}: {problem.strerror}; choose another place") from problem
    return place


def check_folder(path: str | PathLike[str]) -> Path:
    """Refuse what is there already unless it is an empty folder; return where it is, whoever asks from wherever."""
    place = Path(path).absolute()
    try:
        taken = next(place.iterdir(), None) if place.exists() else None
    except (OSError, ValueError) as problem:  # ValueError: a null character in the path
        raise StorageError(f"cannot write into {path}: {problem}; name a new folder") from problem
    if taken is not None:
        raise StorageError(f"{path} has files in it, such as {taken.name}; empty it, or name another folder")
    return place
