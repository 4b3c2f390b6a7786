"""Tables written with polars, to a file or to stdout."""

from __future__ import annotations

import io
import sys
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError, StorageError, first_line, shown
from fairmaxent.files.csv_writer import csv_in_form
from fairmaxent.files.form import CsvForm, SheetForm, TableForm
from fairmaxent.files.formats import Compression, FileFormat
from fairmaxent.files.parquet import schema_record
from fairmaxent.plain_text import visible

# Columns that polars writes to no such file; of bytes in JSON it panics.
_UNWRITABLE = {
    "csv": ("Binary", "Duration"),
    "tsv": ("Binary", "Duration"),
    "jsonl": ("Binary",),
    "xlsx": ("Duration",),
}


def write_to_file(
    frame: Any,
    file: Any,
    kind: FileFormat,
    compression: Compression,
    *,
    target: object = "stdout",
    schema: Any = None,
    form: TableForm | None = None,
) -> tuple[str, ...]:
    """Write a polars table or lazy frame to an open file, and return what could not be kept.

    ``target`` is what the user calls the file, ``form`` the form of a file that was read, which the result is to have.
    """
    polars, lazy = load_library("polars"), frame.lazy()
    _refuse_columns(lazy, kind, target)
    try:
        if isinstance(form, CsvForm):
            content, notes = csv_in_form(frame, form, compression)
            file.write(content)
            return notes
        if kind == "xlsx":
            from fairmaxent.files.xlsx_writer import write_xlsx  # here, because XML takes a while to import

            return write_xlsx(frame, file, form if isinstance(form, SheetForm) else None)
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
            f"cannot write {target} as {kind} ({first_line(problem)}); free some space, or choose another location"
        ) from problem
    return ()


def _refuse_columns(lazy: Any, kind: FileFormat, target: object) -> None:
    """Refuse a table with a column that a file of this kind cannot hold."""
    for name, kept in lazy.collect_schema().items():
        if type(kept).__name__ in _UNWRITABLE.get(kind, ()):
            raise StorageError(
                f"cannot write {target}: {kind} files cannot hold column {shown(name)} ({kept}); write a .parquet or "
                ".arrow file, or convert the column to text"
            )


def write_on_stdout(
    frame: Any,
    kind: FileFormat,
    compression: Compression,
    *,
    schema: Any = None,
    form: TableForm | None = None,
) -> tuple[str, ...]:
    """Write a table to stdout; on a terminal, characters that would steer it are shown as escapes."""
    on_terminal = sys.stdout.isatty()
    if on_terminal and kind in ("parquet", "arrow", "xlsx"):
        raise InputError(f"{kind} is not text, and stdout is a terminal; redirect it, or choose another format")
    buffer = io.BytesIO()
    notes = write_to_file(frame, buffer, kind, compression, schema=schema, form=form)
    content = buffer.getvalue()
    if on_terminal:
        content = visible(content.decode(errors="replace")).encode()
    _write_all(sys.stdout.buffer, content)
    return notes


def _write_all(stream: Any, content: bytes) -> None:
    """Write to stdout, which may accept only a part at a time if it is not buffered (python -u)."""
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]
