"""Formats of tables in files: how each is recognised, read and written.

Every file is written completely or not at all: see `files.write`.
"""

import codecs
import importlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import narwhals
import numpy as np

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.declared import declared_rows
from fairmaxent.data.frames import library_errors
from fairmaxent.data.levels import Notes
from fairmaxent.data.table import Names
from fairmaxent.errors import (
    InputError,
    Option,
    StorageError,
    did_you_mean,
    shown,
    unfit,
)
from fairmaxent.files.content import read_content
from fairmaxent.files.reading import (
    STANDARD,
    FileReading,
    Name,
    Remark,
    TableFile,
    TableForm,
)
from fairmaxent.files.surroundings import find_sums
from fairmaxent.plain_text import visible

FileFormat = str  # the name of a format: a key of FORMATS
COMPRESSED = {".gz": "gzip"}
STREAM = b"\xff\xff\xff\xff"  # the beginning of an Arrow stream
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": (
        "an old Excel workbook, or one with a password; save it as .xlsx without one,"
        " or as CSV"
    ),
    b"%PDF": "a PDF document; export the table as CSV",
    b"SQLite format 3": "a database; export the table as CSV",
    b"BZh": "compressed with bzip2; decompress it first",
    b"\xfd7zXZ": "compressed with xz; decompress it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; decompress it first: zstd -d",
}
# beside which a file is empty: marks of an encoding, and blanks
_NO_CONTENT = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"
_OF_CELLS = frozenset(
    {"skip_lines", "skip_last", "decimal", "date_order", "missing_text", "columns"}
)
_OF_CSV = _OF_CELLS | {"delimiter", "encoding"}
_NOT_OF_FORMATS = ("input_format", "levels")


@dataclass(frozen=True, kw_only=True)
class Format:
    """How files in a format are called and begin, who reads and writes them."""

    title: str  # for people
    suffixes: Names
    only_read: Names = ()  # suffixes that are read, and never written
    read: str  # the function, in a module that is loaded when it is used
    write: str  # likewise; it returns what could not be kept
    # likewise, for declared columns: each row by itself; none: the file has types of
    # its own
    read_each: str = ""
    magic: tuple[bytes, ...] = ()
    is_text: bool = False  # and can be compressed, or shown on a terminal
    options: frozenset[str] = frozenset()  # of `FileReading` that are about it
    # columns of these types; polars panics over bytes in JSON
    cannot_hold: Names = ()


_CSV = Format(
    title="CSV",
    suffixes=(".csv", ".data", ".txt"),
    read="csv.read_csv",
    write="csv.write_csv",
    read_each="csv_lines.cells_by_line",
    is_text=True,
    options=_OF_CSV,
    cannot_hold=("Binary", "Duration"),
)
FORMATS = {
    "csv": _CSV,
    "tsv": replace(_CSV, suffixes=(".tab", ".tsv")),
    "parquet": Format(
        title="Parquet",
        suffixes=(".parquet", ".pq"),
        read="parquet.read_typed",
        write="parquet.write_parquet",
        magic=(b"PAR1",),
    ),
    "arrow": Format(
        title="Arrow",
        suffixes=(".arrow", ".feather", ".ipc"),
        read="parquet.read_typed",
        write="parquet.write_arrow",
        magic=(b"ARROW1", STREAM),
    ),
    "jsonl": Format(
        title="JSON lines",
        suffixes=(".jsonl", ".ndjson"),
        read="json_lines.read_json_lines",
        write="json_lines.write_json_lines",
        is_text=True,
        cannot_hold=("Binary",),
    ),
    "xlsx": Format(
        title="Excel",
        suffixes=(".xlsx",),
        only_read=(".xlsm",),
        read="excel.read_xlsx",
        write="excel_writer.write_xlsx",
        read_each="excel.cells_by_row",
        magic=(b"PK\x03\x04",),
        options=_OF_CELLS | {"sheet", "range"},
        cannot_hold=("Duration",),
    ),
}
SUFFIXES = {
    suffix: name for name, format in FORMATS.items() for suffix in format.suffixes
}
READ_SUFFIXES = [
    suffix
    for format in FORMATS.values()
    for suffix in (*format.suffixes, *format.only_read)
]


def _function(name: str) -> Callable[..., Any]:
    module, function = name.split(".")
    return getattr(importlib.import_module(f"fairmaxent.files.{module}"), function)


def read_table(
    path: Name,
    reading: FileReading | None = None,
    *,
    declaration: Declaration | None = None,
) -> TableFile:
    """Read a table with polars; ``"-"`` is stdin.

    With a ``declaration``, that alone says what a cell means, whatever the others are;
    see `declared_rows`.
    """
    reading = reading or FileReading()
    if reading.input_format is not None:
        _check_format("input_format", reading.input_format)
    content = read_content(path)
    format = reading.input_format or _format_of(content, path)
    refuse_options(path, reading, format)
    if not content.strip(_NO_CONTENT):
        raise InputError(
            f"{path} is empty; pass a table with column names and at least one row"
        )

    if declaration is not None:
        if reading.levels:
            raise InputError(
                Option("levels"),
                " is for levels that are learned; a declared domain names its own",
            )
        return _read_declared(content, str(path), reading, declaration, format)
    return _read_detected(content, str(path), reading, format)


def _read_detected(
    content: bytes,
    path: str,
    reading: FileReading,
    format: str,
) -> TableFile:
    """Read a table by what is in it; rows that hold sums are left out."""
    read = _function(FORMATS[format].read)
    frame, remarks, form = read(content, path, reading, format)
    if not len(frame):
        raise _no_rows(path, frame)
    form = form or TableForm(format)
    if reading.skip_last == 0 or "skip_last" not in FORMATS[format].options:
        return TableFile(reading.renamed(frame), tuple(remarks), form=form)

    sums = find_sums(frame)
    if reading.skip_last is None and sums.at_end:
        without = replace(reading, skip_last=sums.at_end)
        frame, remarks, form = read(content, path, without, format)
        remarks.append(_sums_left_out(sums.at_end, "the last", path))
        form = replace(form, found=(*form.found, ("skip_last", str(sums.at_end))))
        sums = find_sums(frame)
    if sums.inside:
        kept = np.delete(np.arange(len(frame)), sums.inside)
        frame = frame[kept]
        remarks.append(_sums_left_out(len(sums.inside), "an inner", path))
    return TableFile(reading.renamed(frame), tuple(remarks), form=form)


def _sums_left_out(count: int, which: str, path: str) -> Remark:
    what = f"{which} row of {path} is called a total, so it was"
    keep = "it"
    if count > 1:
        _, place = which.split()
        what = f"{count:,} {place} rows of {path} are called totals, so they were"
        keep = "them"
    return f"{what} left out; to keep {keep}, set ", Option("skip_last", 0)


def _read_declared(
    content: bytes,
    path: str,
    reading: FileReading,
    declaration: Declaration,
    format: str,
) -> TableFile:
    """Read each row by itself, and by the declaration.

    A line that does not fit the header is not declared, either.
    """
    if format == "jsonl":
        raise InputError(
            f"{path} has no header: each of its lines says which columns there are, and"
            " of which type, which a declared domain does not allow; write the table as"
            " CSV or Parquet"
        )

    declared = replace(
        declaration,
        decimal=reading.decimal or declaration.decimal,
        dates=reading.date_order or declaration.dates,
    )
    if FORMATS[format].read_each:
        read = _function(FORMATS[format].read_each)
        frame, misfit, form = read(content, path, reading, declared.names, format)
        if misfit is not None and declared.refuses:
            raise misfit
        form = replace(form, decimal=declared.decimal)
        markers = ["", *reading.markers]
    else:
        frame = _function(FORMATS[format].read)(content, path, reading, format)[0]
        form = TableForm(format)
        markers = []

    if not len(frame) and (declared.refuses or not frame.width):
        raise _no_rows(path, frame)
    cells = narwhals.from_native(frame, eager_only=True)
    rows = declared_rows(cells, declared, markers)
    return TableFile(rows.to_native(), form=form)


def _no_rows(path: str, frame: Any) -> InputError:
    has = "column names but no rows" if frame.width else "no columns"
    return InputError(
        f"{path} has {has}; pass a table with column names and at least one row"
    )


def refuse_options(path: object, reading: FileReading, format: str) -> None:
    """Refuse options that do not apply to a file of this format."""
    for name in (field.name for field in fields(FileReading)):
        is_given = getattr(reading, name) not in (None, (), [])
        applies = name in FORMATS[format].options or name in _NOT_OF_FORMATS
        if is_given and not applies:
            option = Option(name)
            raise InputError(
                option, f" is for other files, and {path} is {format}; leave it out"
            )


def _format_of(content: bytes, path: Name) -> str:
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise StorageError(f"{path} is {what}")

    for name, format in FORMATS.items():
        if format.magic and content.startswith(format.magic):
            return name

    suffix = _format_suffix(path)
    start = content[:100].removeprefix(codecs.BOM_UTF8).lstrip()
    if suffix not in SUFFIXES and start.startswith(b"{"):
        return "jsonl"
    if suffix == ".json" and start.startswith(b"["):
        raise StorageError(
            f"{path} is a JSON array; write one object per line: jq -c '.[]'"
        )
    return SUFFIXES.get(suffix, "csv")


def _suffixes_of(path: Name) -> list[str]:
    """Return the last two suffixes, the outermost first."""
    return [suffix.lower() for suffix in reversed(Path(path).suffixes[-2:])]


def _format_suffix(path: Name) -> str:
    """The suffix that says the format, empty if there is none."""
    uncompressed = (name for name in _suffixes_of(path) if name not in COMPRESSED)
    return next(uncompressed, "")


def _check_format(option: str, name: str) -> None:
    if name not in FORMATS:
        raise unfit(option, name, did_you_mean(name, FORMATS))


def output_format(
    path: Name, format: str | None = None, form: TableForm | None = None
) -> tuple[str, str]:
    """Return the format and compression for a file of this name, or refuse the name.

    ``form`` is that of the input, if the result is to be written like it.
    """
    if format is not None:
        _check_format("format", format)
    if form is not None:
        _check_like_input(path, format, form)
        format = form.format
    suffix = _format_suffix(path) or ".csv"
    name = format or SUFFIXES.get(suffix)
    if name is None:
        raise InputError(
            f"{path}: the format of {suffix!r} is not known;"
            f" {did_you_mean(suffix, SUFFIXES)}; for a compressed text file, add"
            f" {' or '.join(COMPRESSED)}"
        )

    outermost = next(iter(_suffixes_of(path)), "")
    compression = COMPRESSED.get(outermost, "uncompressed")
    if outermost in COMPRESSED and not FORMATS[name].is_text:
        raise InputError(
            f"{path}: {name} files are already compressed; leave out {outermost!r}"
        )
    return name, compression


def _check_like_input(path: Name, format: str | None, form: TableForm) -> None:
    """Refuse a name or a format that is not that of the input."""
    by_suffix = filter(None, map(SUFFIXES.get, _suffixes_of(path)))
    wanted = format or next(by_suffix, form.format)
    if wanted != form.format:
        raise InputError(
            Option("like_input"),
            f" writes {form.format}, as the input is, and {path} is to be {wanted};"
            f" name a file that ends in .{form.format}, or leave out ",
            Option("like_input"),
        )


def write_to_file(
    frame: Any,
    file: Any,
    target: Name,
    *,
    format: str | None = None,
    schema: Any = None,
    form: TableForm | None = None,
) -> Notes:
    """Write a polars table or lazy frame to an open file; return what is not kept.

    The user calls the file ``target``. ``schema`` holds the types that a Parquet file
    declares, if the frame has categories in place of texts.
    """
    lazy = frame.lazy()
    name, compression = output_format(target, format, form)
    called = "stdout" if target == STANDARD else target
    for column, kind in lazy.collect_schema().items():
        if type(kind).__name__ in FORMATS[name].cannot_hold:
            raise StorageError(
                f"cannot write {called}: {name} files cannot hold column"
                f" {shown(column)} ({kind}); write a .parquet or .arrow file, or"
                " convert the column to text"
            )

    remedy = "free some space, or choose another location or format"
    with library_errors(f"cannot write {called} as {name}", remedy, OSError):
        write = _function(FORMATS[name].write)
        return write(
            lazy,
            file,
            format=name,
            compression=compression,
            form=form,
            schema=schema,
        )


def write_on_stdout(frame: Any, **how: Any) -> Notes:
    """Write a table to stdout.

    On a terminal, characters that would steer it are shown as escapes.
    """
    name = output_format(STANDARD, how.get("format"), how.get("form"))[0]
    on_terminal = sys.stdout.isatty()
    if on_terminal and not FORMATS[name].is_text:
        raise InputError(
            f"{name} is not text, and stdout is a terminal; redirect it, or choose"
            " another format"
        )

    buffer = io.BytesIO()
    notes = write_to_file(frame, buffer, STANDARD, **how)
    content = buffer.getvalue()
    if on_terminal:
        content = visible(content.decode(errors="replace")).encode()
    rest = memoryview(content)
    # Only a part may be accepted if stdout is not buffered (python -u).
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    return notes


def as_polars(frame: Any) -> Any:
    """Convert a pandas or pyarrow table to polars.

    A model returns rows in the library it was fitted with.
    """
    return narwhals.from_native(frame, eager_only=True).to_polars()
