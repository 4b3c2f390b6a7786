"""Tables in files: CSV, TSV, Parquet, Arrow and JSON lines in and out, through polars.

A CSV is read as people mean it: encoding and delimiter are found, spaces around a cell do not count, a few markers
stand for a missing value, and a column is numbers or dates only if all of it is. Every file is written whole or not at
all, several of them together.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairmaxent.data.frames import load_library
from fairmaxent.engines.lazy.frame import first_line
from fairmaxent.errors import ColumnError, InputError, StorageError, check_choice, did_you_mean
from fairmaxent.files.csv_reader import MISSING, Decimal, read_csv
from fairmaxent.files.parquet import schema_record

FileFormat = Literal["csv", "tsv", "parquet", "arrow", "jsonl"]
Compression = Literal["uncompressed", "gzip", "zstd"]

STANDARD = "-"  # stdin or stdout

_SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv",
    ".data": "csv",
    ".txt": "csv",
    ".tab": "tsv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_COMPRESSED: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or zip archive; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"%PDF": "a PDF document; export the table as CSV",
    b"SQLite format 3": "a database; export the table as CSV",
    b"BZh": "compressed with bzip2; decompress it first",
    b"\xfd7zXZ": "compressed with xz; decompress it first",
}


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table that was read, and what a user should know about how."""

    frame: Any  # a polars DataFrame, or where it is not in memory a LazyFrame
    notes: tuple[str, ...]
    whole: Any = None  # the same with the columns that take no part; None: there are none


# ---------------------------------------------------------------- reading


def read_table(
    path: str | os.PathLike[str],
    *,
    format: FileFormat | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: Decimal | None = None,
    missing: Sequence[str] = MISSING,
    columns: Sequence[str] | None = None,
) -> TableFile:
    """Read a table with polars; ``"-"`` is stdin.

    Parameters
    ----------
    format
        By default what the first bytes say, then the suffix, then CSV. Gzip and zstd are seen by their first bytes.
    delimiter, encoding
        Of a CSV; by default found out.
    decimal
        Decimal mark of a CSV; by default a point, or where cells are not parted by commas, a comma in a column whose
        cells are all such numbers.
    missing
        Cells of a CSV that stand for a missing value.
    columns
        Names of the columns of a CSV that has no line of names.
    """
    if format is not None:
        check_choice("format", format, FileFormat)
    content = _decompressed(_content(path), path)
    found = format or _format_of(content, path)
    if found in ("csv", "tsv"):
        wanted = "\t" if found == "tsv" and delimiter is None else delimiter
        frame, notes = read_csv(
            content,
            str(path),
            delimiter=wanted,
            encoding=encoding,
            decimal=decimal,
            missing=missing,
            columns=columns,
        )
    else:
        frame, notes = _read_typed(content, found, path), []
    if not len(frame):
        raise InputError(f"{path} has column names and no rows; pass a table with at least one row")
    return TableFile(frame, tuple(notes))


def _content(path: str | os.PathLike[str]) -> bytes:
    if path == STANDARD:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except IsADirectoryError as problem:
        raise StorageError(f"{path} is a folder; pass one of the files in it") from problem
    except (OSError, ValueError) as problem:  # ValueError: a null character in the path
        reason = getattr(problem, "strerror", None) or problem
        raise StorageError(f"cannot read {path}: {reason}; {_nearby(Path(path))}") from problem


def _nearby(path: Path) -> str:
    """What a mistyped path may have meant."""
    with contextlib.suppress(OSError, ValueError):
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
        hint = did_you_mean(path.name, names)
        if not path.exists() and hint.startswith("did you mean"):
            return hint
    return "look at the path and its rights"


def _decompressed(content: bytes, path: object) -> bytes:
    if content.startswith(_GZIP):
        try:
            return gzip.decompress(content)
        except (OSError, EOFError, ValueError) as problem:
            raise StorageError(f"{path} is damaged gzip ({problem}); fetch or write it again") from problem
    return _from_zstd(content, path) if content.startswith(_ZSTD) else content


def _from_zstd(content: bytes, path: object) -> bytes:
    """Let polars decompress lines of UTF-8; Python itself knows zstd only from 3.14 on."""
    polars = load_library("polars")
    try:
        lines = polars.read_lines(content).to_series()
    except (polars.exceptions.PolarsError, OSError) as problem:
        raise StorageError(
            f"cannot decompress {path} as lines of UTF-8 ({first_line(problem)}); decompress it first: zstd -d"
        ) from problem
    return "\n".join(lines.to_list()).encode()


def _format_of(content: bytes, path: str | os.PathLike[str]) -> FileFormat:
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise StorageError(f"{path} is {what}")
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(b"ARROW1"):
        return "arrow"
    suffix = next((suffix for suffix in _suffixes(path) if suffix not in _COMPRESSED), "")
    start = content[:100].lstrip()
    if suffix not in _SUFFIXES and start.startswith(b"{"):
        return "jsonl"
    if suffix == ".json" and start.startswith(b"["):
        raise StorageError(f"{path} is one JSON array; write one object per line: jq -c '.[]'")
    return _SUFFIXES.get(suffix, "csv")


def _suffixes(path: str | os.PathLike[str]) -> list[str]:
    """The last two suffixes, the outermost first."""
    return [suffix.lower() for suffix in reversed(Path(path).suffixes[-2:])]


def _read_typed(content: bytes, format: FileFormat, path: object) -> Any:
    """Read a format that knows its types."""
    polars = load_library("polars")
    if not content.strip():
        raise InputError(f"{path} is empty; pass a table with column names and at least one row")
    try:
        if format == "parquet":
            return polars.read_parquet(content)
        if format == "arrow":
            return polars.read_ipc(content)
        return polars.read_ndjson(content, infer_schema_length=None)
    except polars.exceptions.DuplicateError as problem:
        raise ColumnError(f"{path} has a column name twice ({first_line(problem)}); rename one") from problem
    except (polars.exceptions.PolarsError, OSError, ValueError) as problem:
        raise StorageError(
            f"cannot read {path} as {format} ({first_line(problem)}); write it again, or name its format"
        ) from problem


# ---------------------------------------------------------------- writing


def write_table(
    frame: Any, path: str | os.PathLike[str], *, format: FileFormat | None = None, force: bool = False
) -> None:
    """Write a polars table, whole or not at all; ``"-"`` is stdout. The suffix says format and compression."""
    output_format(path, format)
    with Staging([path], force=force) as staging:
        staging.write_table(frame, path, format=format)


def as_polars(frame: Any) -> Any:
    """A pandas or pyarrow table as a polars one; a model gives rows of the library it was fitted with."""
    import narwhals

    opened = narwhals.from_native(frame, eager_only=True)
    return frame if opened.implementation.is_polars() else opened.to_polars()


def output_format(path: str | os.PathLike[str], format: FileFormat | None = None) -> tuple[FileFormat, Compression]:
    """Say how a file of this name is written, or refuse the name."""
    if format is not None:
        check_choice("format", format, FileFormat)
    suffixes = _suffixes(path)
    compression = _COMPRESSED.get(suffixes[0], "uncompressed") if suffixes else "uncompressed"
    own = [suffix for suffix in suffixes if suffix not in _COMPRESSED][:1]
    if format is None and not own:
        format = "csv"
    kind = format or _SUFFIXES.get(own[0])
    if kind is None:
        also = f"; text may be compressed, with {' or '.join(_COMPRESSED)} behind it"
        raise InputError(f"{path}: no format is known for {own[0]!r}; {did_you_mean(own[0], _SUFFIXES)}{also}")
    if compression != "uncompressed" and kind in ("parquet", "arrow"):
        raise InputError(f"{path}: {kind} files are compressed inside; leave {suffixes[0]!r} out")
    return kind, compression


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


def _write_all(stream: Any, content: bytes) -> None:
    """Write to stdout, which may take a part only where it is not buffered (python -u)."""
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]


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
            _write_all(sys.stdout.buffer, buffer.getvalue())
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
