"""Staging: several files that appear together, each whole, or none of them."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError, StorageError, first_line
from fairmaxent.files.formats import STANDARD, Compression, FileFormat, output_format
from fairmaxent.files.parquet import schema_record


class Staging:
    """Files that appear all together once each is whole, or none of them.

    The names are checked when it is made. Inside, each file is written to the place that `place` names, beside its
    target; at the end they are renamed.
    """

    def __init__(self, targets: Sequence[str | os.PathLike[str]], *, force: bool = False) -> None:
        paths = [_target(target) for target in targets if target != STANDARD]
        repeated = next((path for path in paths if paths.count(path) > 1), None)
        if repeated is not None or list(targets).count(STANDARD) > 1:
            raise InputError(f"{repeated or 'stdout'} would be written twice; give each output a name of its own")
        for path in paths:
            _check_target(path, force=force)
        mark = os.urandom(6).hex()
        self._places = {path: _folder_for(path) / f".{mark}.{path.name}" for path in paths}
        for place in self._places.values():
            _probe(place)

    def place(self, target: str | os.PathLike[str]) -> Path:
        """Where to write what is to appear at ``target``."""
        return self._places[_target(target)]

    def write_table(
        self, frame: Any, target: str | os.PathLike[str], *, format: FileFormat | None = None, schema: Any = None
    ) -> None:
        """Write a polars table to its place, or to stdout; a lazy one in pieces, where it goes to a file.

        ``schema`` is what a Parquet file is to declare, where categories stand for the texts of a column.
        """
        kind, compression = output_format(target, format)
        if target == STANDARD:
            buffer = io.BytesIO()
            _write(frame, buffer, kind, compression, schema)
            _write_stdout(sys.stdout.buffer, buffer.getvalue())
            return
        with self.place(target).open("wb") as file:
            _write(frame, file, kind, compression, schema)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        try:
            if kind is None:
                for finish in (_to_disk, _rename):
                    for path, place in self._places.items():
                        finish(place, path)
        finally:
            for place in self._places.values():
                place.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    """Where a link leads, so that the file is replaced and not the link."""
    return Path(path) if _is_special(Path(path)) else Path(os.path.realpath(path))


def _folder_for(path: Path) -> Path:
    """The folder to write in: the same, or that for temporary files if the target is no file to be replaced."""
    return Path(tempfile.gettempdir()) if _is_special(path) else path.parent


def _check_target(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise StorageError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if path.exists() and not _is_special(path) and not force:
        raise StorageError(f"{path} exists; use --force (force=True) to replace it, or name another file")


def _is_special(path: Path) -> bool:
    """Whether it is a device or a pipe, which is written to, not replaced."""
    return path.exists() and not path.is_file()


def _probe(place: Path) -> None:
    """Find out before the work whether a file can be made there."""
    try:
        place.open("xb").close()
        place.unlink()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise StorageError(f"cannot write in {place.parent}: {reason}; choose another place") from problem


def _to_disk(place: Path, path: Path) -> None:
    """Bring a file to the disk, with the rights of the one it replaces; a device or pipe gets its content."""
    try:
        with place.open("rb") as file:
            if _is_special(path):
                with path.open("wb") as device:
                    shutil.copyfileobj(file, device)
                return
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, place)
    except OSError as problem:
        raise StorageError(f"cannot write {path}: {problem.strerror}; choose another place") from problem


def _rename(place: Path, path: Path) -> None:
    try:
        if not _is_special(path):
            os.replace(place, path)
    except OSError as problem:
        raise StorageError(f"cannot write {path}: {problem.strerror}; choose another place") from problem


def _write(frame: Any, file: Any, kind: FileFormat, compression: Compression, schema: Any = None) -> None:
    polars, lazy = load_library("polars"), frame.lazy()
    try:
        if kind == "parquet":
            # Drawn rows come in no order, so that the least and largest of a part tell a reader nothing.
            drawn = schema is not None
            lazy.sink_parquet(file, metadata=schema_record(schema) if drawn else None, statistics=not drawn)
        elif kind == "arrow":
            lazy.sink_ipc(file)
        elif kind == "jsonl":
            lazy.sink_ndjson(file, compression=compression, check_extension=False)
        else:
            lazy.sink_csv(
                file,
                separator="\t" if kind == "tsv" else ",",
                datetime_format="%Y-%m-%dT%H:%M:%S%.f",
                compression=compression,
                check_extension=False,
            )
    except (polars.exceptions.PolarsError, OSError) as problem:
        if isinstance(problem, BrokenPipeError):
            raise
        raise StorageError(
            f"cannot write the table as {kind} ({first_line(problem)}); free some space, or choose another place"
        ) from problem


def _write_stdout(stream: Any, content: bytes) -> None:
    """Write to stdout, which may take a part only where it is not buffered (python -u)."""
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]
