"""Tables in files: CSV, TSV, Parquet, Arrow and JSON lines, read and written with polars.

A CSV is read the way people mean it: encoding and delimiter are detected, spaces around a cell do not count, a few
markers stand for a missing value, and a column holds numbers or dates only if all its cells do. Every file is written
completely or not at all, and several files appear together.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.errors import ColumnError, InputError, Option, StorageError, check_choice, did_you_mean, first_line
from fairmaxent.files.atomic import reason_of
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
    """A table that was read, and what the user should know about how it was read."""

    frame: Any  # a polars DataFrame, or a LazyFrame if it is not in memory
    notes: tuple[str, ...]
    whole: Any = None  # the same table with the columns that were left out; None: no column was


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
        By default taken from the first bytes, then from the suffix, else CSV. Gzip and zstd are recognised by their
        first bytes.
    delimiter, encoding
        Of a CSV; detected by default.
    decimal
        Decimal mark of a CSV. By default a point; if the comma does not separate cells, also a comma, in a column whose
        cells are all such numbers.
    missing
        Cells of a CSV that stand for a missing value.
    columns
        Names of the columns, for a CSV without a header.
    """
    if format is not None:
        check_choice("format", format, FileFormat)
    content = _decompressed(_content(path), path)
    kind = format or _format_of(content, path)
    if kind in ("csv", "tsv"):
        frame, notes = read_csv(
            content,
            str(path),
            delimiter="\t" if kind == "tsv" and delimiter is None else delimiter,
            encoding=encoding,
            decimal=decimal,
            missing=missing,
            columns=columns,
        )
    else:
        given = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "columns": columns}
        refuse_csv_options(path, kind, given | {"missing": None if missing is MISSING else missing})
        frame, notes = _read_typed(content, kind, path), []
    if not len(frame):
        raise InputError(f"{path} has column names but no rows; pass a table with at least one row")
    return TableFile(frame, tuple(notes))


def refuse_csv_options(path: object, kind: FileFormat, given: Mapping[str, object]) -> None:
    """Refuse options of a CSV for a file that stores its columns and types itself; None or empty was not given."""
    for name, value in given.items():
        if value:
            raise InputError(Option(name), f" is for CSV files, and {path} is {kind}; leave it out")


def _content(path: str | os.PathLike[str]) -> bytes:
    if path == STANDARD:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except IsADirectoryError as problem:
        raise StorageError(f"{path} is a folder; pass one of the files in it") from problem
    except (OSError, ValueError) as problem:
        raise StorageError(f"cannot read {path}: {reason_of(problem)}; {_nearby(Path(path))}") from problem


def _nearby(path: Path) -> str:
    """Suggest what a mistyped path may have meant."""
    with contextlib.suppress(OSError, ValueError):
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
        hint = did_you_mean(path.name, names)
        if not path.exists() and hint.startswith("did you mean"):
            return hint
    return "check the path and its permissions"


def _decompressed(content: bytes, path: object) -> bytes:
    if content.startswith(_GZIP):
        try:
            return gzip.decompress(content)
        except (OSError, EOFError, ValueError) as problem:
            raise StorageError(f"{path} is a damaged gzip file ({problem}); download or write it again") from problem
    return _from_zstd(content, path) if content.startswith(_ZSTD) else content


def _from_zstd(content: bytes, path: object) -> bytes:
    """Let polars decompress lines of UTF-8; Python has zstd only since version 3.14."""
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
        raise StorageError(f"{path} is a JSON array; write one object per line: jq -c '.[]'")
    return SUFFIXES.get(suffix, "csv")


def _read_typed(content: bytes, format: FileFormat, path: object) -> Any:
    """Read a format that stores the types of its columns."""
    polars = load_library("polars")
    if not content.strip():
        raise InputError(f"{path} is empty; pass a table with column names and at least one row")
    try:
        if format == "parquet":
            return polars.read_parquet(content)
        if format == "arrow":
            return polars.read_ipc(content)
        if format == "jsonl":
            return polars.read_ndjson(content, infer_schema_length=None)
        raise ValueError("fairmaxent cannot read this format")
    except polars.exceptions.DuplicateError as problem:
        raise ColumnError(f"{path} has two columns of the same name ({first_line(problem)}); rename one") from problem
    except (polars.exceptions.PolarsError, OSError, ValueError) as problem:
        raise StorageError(
            f"cannot read {path} as {format} ({first_line(problem)}); write the file again, or specify its format"
        ) from problem


# ---------------------------------------------------------------- writing


def write_table(
    frame: Any, path: str | os.PathLike[str], *, format: FileFormat | None = None, force: bool = False
) -> None:
    """Write a polars table completely or not at all; ``"-"`` is stdout. The suffix sets format and compression."""
    output_format(path, format)
    with Staging([path], force=force) as staging:
        staging.write_table(frame, path, format=format)


def as_polars(frame: Any) -> Any:
    """Convert a pandas or pyarrow table to polars; a model returns rows in the library it was fitted with."""
    import narwhals

    opened = narwhals.from_native(frame, eager_only=True)
    return frame if opened.implementation.is_polars() else opened.to_polars()
