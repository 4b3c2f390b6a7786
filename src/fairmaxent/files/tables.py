"""Tables in files: CSV, TSV, Parquet, Arrow and JSON lines in and out, through polars.

A CSV is read as people mean it: encoding and delimiter are found, spaces around a cell do not count, a few markers
stand for a missing value, and a column is numbers or dates only if all of it is. Every file is written whole or not at
all, several of them together.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.errors import ColumnError, InputError, StorageError, check_choice, did_you_mean, first_line
from fairmaxent.files.csv_reader import MISSING, Decimal, read_csv
from fairmaxent.files.formats import COMPRESSED, STANDARD, SUFFIXES, FileFormat, output_format, suffixes_of
from fairmaxent.files.staging import Staging

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
    suffix = next((suffix for suffix in suffixes_of(path) if suffix not in COMPRESSED), "")
    start = content[:100].lstrip()
    if suffix not in SUFFIXES and start.startswith(b"{"):
        return "jsonl"
    if suffix == ".json" and start.startswith(b"["):
        raise StorageError(f"{path} is one JSON array; write one object per line: jq -c '.[]'")
    return SUFFIXES.get(suffix, "csv")


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
