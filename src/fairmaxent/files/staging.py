"""Staging: several files that appear together, each complete, or not at all."""

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
from fairmaxent.errors import InputError, Option, StorageError, first_line
from fairmaxent.files.atomic import flush_to_disk, reason_of, write_errors
from fairmaxent.files.formats import STANDARD, Compression, FileFormat, output_format
from fairmaxent.files.parquet import schema_record


class Staging:
    """Files that appear all together once each is complete, or not at all.

    The targets are checked at the start. Each file is then written to a temporary path beside its target, the one that
    `path_for` returns; at the end all of them are renamed.
    """

    def __init__(self, targets: Sequence[str | os.PathLike[str]], *, force: bool = False) -> None:
        paths = [_target(target) for target in targets if target != STANDARD]
        repeated = next((path for path in paths if paths.count(path) > 1), None)
        if repeated is not None or list(targets).count(STANDARD) > 1:
            raise InputError(f"{repeated or 'stdout'} would be written twice; give each output its own name")
        for path in paths:
            _check_target(path, force=force)
        mark = os.urandom(6).hex()
        self._temporary = {path: _folder_for(path) / f".{mark}.{path.name}" for path in paths}
        for temporary in self._temporary.values():
            _probe(temporary)

    def path_for(self, target: str | os.PathLike[str]) -> Path:
        """Return the temporary path to write the content of ``target`` to."""
        return self._temporary[_target(target)]

    def write_table(
        self, frame: Any, target: str | os.PathLike[str], *, format: FileFormat | None = None, schema: Any = None
    ) -> None:
        """Write a polars table to its temporary path, or to stdout; a lazy frame goes to a file in pieces.

        ``schema`` holds the types that a Parquet file declares, if the frame has categories in place of texts.
        """
        kind, compression = output_format(target, format)
        if target == STANDARD:
            buffer = io.BytesIO()
            _write(frame, buffer, kind, compression, schema)
            _write_stdout(sys.stdout.buffer, buffer.getvalue())
            return
        with self.path_for(target).open("wb") as file:
            _write(frame, file, kind, compression, schema)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        try:
            if kind is None:
                for finish in (_complete, _publish):
                    for path, temporary in self._temporary.items():
                        with write_errors(path):
                            finish(temporary, path)
        finally:
            for temporary in self._temporary.values():
                temporary.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    """Follow links, so that the file is replaced and not the link to it."""
    return Path(path) if _is_special(Path(path)) else Path(os.path.realpath(path))


def _folder_for(path: Path) -> Path:
    """The target's own folder, or the system's folder for temporary files if the target is a device or a pipe."""
    return Path(tempfile.gettempdir()) if _is_special(path) else path.parent


def _check_target(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise StorageError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")
    if path.exists() and not _is_special(path) and not force:
        raise StorageError(f"{path} exists; use ", Option("force"), " to replace it, or name another file")


def _is_special(path: Path) -> bool:
    """Whether it is a device or a pipe, which is written to and not replaced."""
    return path.exists() and not path.is_file()


def _probe(temporary: Path) -> None:
    """Check before the work starts that the file can be created."""
    try:
        temporary.open("xb").close()
        temporary.unlink()
    except (OSError, ValueError) as problem:
        raise StorageError(
            f"cannot write in {temporary.parent}: {reason_of(problem)}; choose another location"
        ) from problem


def _complete(temporary: Path, path: Path) -> None:
    """Flush a file to disk, with the permissions of the one it replaces; a device or a pipe gets the content now."""
    with temporary.open("rb") as file:
        if _is_special(path):
            with path.open("wb") as device:
                shutil.copyfileobj(file, device)
            return
        flush_to_disk(file)
    if path.exists():
        shutil.copymode(path, temporary)


def _publish(temporary: Path, path: Path) -> None:
    """Give a complete file its name."""
    if not _is_special(path):
        os.replace(temporary, path)


def _write(frame: Any, file: Any, kind: FileFormat, compression: Compression, schema: Any = None) -> None:
    polars, lazy = load_library("polars"), frame.lazy()
    try:
        if kind == "parquet":
            # Drawn rows come in no order, so the minimum and maximum of a row group would not help a reader.
            drawn = schema is not None
            lazy.sink_parquet(file, metadata=schema_record(schema) if drawn else None, statistics=not drawn)
        elif kind == "arrow":
            lazy.sink_ipc(file)
        elif kind == "jsonl":
            lazy.sink_ndjson(file, compression=compression, check_extension=False)
        elif kind in ("csv", "tsv"):
            lazy.sink_csv(
                file,
                separator="\t" if kind == "tsv" else ",",
                datetime_format="%Y-%m-%dT%H:%M:%S%.f",
                compression=compression,
                check_extension=False,
            )
        else:
            raise StorageError(f"fairmaxent cannot write {kind} files; choose another format")
    except (polars.exceptions.PolarsError, OSError) as problem:
        if isinstance(problem, BrokenPipeError):
            raise
        raise StorageError(
            f"cannot write the table as {kind} ({first_line(problem)}); free some space, or choose another location"
        ) from problem


def _write_stdout(stream: Any, content: bytes) -> None:
    """Write to stdout, which may accept only a part at a time if it is not buffered (python -u)."""
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]
