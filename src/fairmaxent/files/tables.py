"""Tables in files: CSV, TSV, Parquet, Arrow and JSON lines, read and written with polars.

A CSV is read the way people mean it: encoding and delimiter are detected, spaces around a cell do not count, a few
markers stand for a missing value, and a column holds numbers or dates only if all its cells do. Every file is written
completely or not at all, and several files appear together.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.data.library_errors import library_errors
from fairmaxent.data.limits import need_memory
from fairmaxent.errors import ColumnError, InputError, Option, StorageError, check_choice, first_line
from fairmaxent.files.arrow_footer import check_arrow_footer
from fairmaxent.files.content import read_content
from fairmaxent.files.csv_reader import MISSING, Decimal, read_csv
from fairmaxent.files.formats import COMPRESSED, SUFFIXES, FileFormat, output_format, suffixes_of
from fairmaxent.files.parquet_footer import check_footer
from fairmaxent.files.staging import Staging

_CELL_MEMORY = 8  # bytes of a cell, at least
_JSON_MEMORY = 2.5  # bytes of memory for each byte of JSON lines
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
    content = read_content(path)
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

    def explain(why: str) -> StorageError:
        return StorageError(f"cannot read {path} as {format} ({why}); write the file again, or specify its format")

    with library_errors(explain, OSError, ValueError, RecursionError):
        _refuse_too_large(content, format, path, polars)
        try:
            if format == "parquet":
                return polars.read_parquet(content)
            if format == "arrow":
                return polars.read_ipc(content)
            return polars.read_ndjson(content, infer_schema_length=None)
        except polars.exceptions.DuplicateError as repeated:
            raise ColumnError(
                f"{path} has two columns of the same name ({first_line(repeated)}); rename one"
            ) from repeated


def _refuse_too_large(content: bytes, format: FileFormat, path: object, polars: Any) -> None:
    """Refuse a table that would not fit in memory: a few bytes of a compressed file can stand for many rows."""
    needed = float(_JSON_MEMORY * len(content))
    if format in ("parquet", "arrow"):
        if format == "parquet":
            check_footer(io.BytesIO(content), path)
        else:
            check_arrow_footer(content, path)
        scanned = (polars.scan_parquet if format == "parquet" else polars.scan_ipc)(io.BytesIO(content))
        cells = len(scanned.collect_schema()) * int(scanned.select(polars.len()).collect().item())
        needed = len(content) + float(_CELL_MEMORY * cells)
    need_memory(needed, f"reading {path}", "leave out columns, or take a part of the rows")


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
