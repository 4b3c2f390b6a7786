"""Formats of tables in files: one record for each says how it is recognised, read and
written.

Every file is written completely or not at all: see `files.write`.
"""

import codecs
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import narwhals

from fairmaxent.data.declaration import Declaration, declared_rows
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.errors import InputError, Option, StorageError, did_you_mean, shown
from fairmaxent.files.reading import (
    STANDARD,
    Name,
    Reading,
    TableFile,
    TableForm,
    ends_with_sums,
    read_content,
)
from fairmaxent.plain_text import visible

FileFormat = str  # the name of a format: a key of FORMATS
COMPRESSED = {".gz": "gzip"}
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
STREAM = b"\xff\xff\xff\xff"  # the beginning of an Arrow stream
_OF_CELLS = frozenset(
    {"skip_lines", "skip_last", "decimal", "date_order", "missing", "columns"}
)
_TYPED = ("parquet.read_typed", "parquet.write_typed")
_CSV = ("csv.read_csv", "csv.write_csv", "csv.cells_by_line")
_EXCEL = ("excel.read_xlsx", "excel_writer.write_xlsx", "excel.cells_by_row")
_OF_CSV = _OF_CELLS | {"delimiter", "encoding"}
_TEXT: dict[str, Any] = {
    "is_text": True,
    "options": _OF_CSV,
    "cannot_hold": ("Binary", "Duration"),
}
_SHEETS: dict[str, Any] = {
    "options": _OF_CELLS | {"sheet"},
    "cannot_hold": ("Duration",),
}


@dataclass(frozen=True)
class Format:
    """A format: how files in it are called and begin, which functions read and write
    it, and what it cannot hold.
    """

    suffixes: tuple[str, ...]
    read: str  # the function, in a module that is loaded when it is used
    write: str  # likewise; it returns what could not be kept
    # likewise, for declared columns: each row by itself; none: the file has types of
    # its own
    read_each: str = ""
    magic: tuple[bytes, ...] = ()
    is_text: bool = False  # and can be compressed, or shown on a terminal
    options: frozenset[str] = frozenset()  # of `Reading` that are about it
    # columns of these types; polars panics over bytes in JSON
    cannot_hold: tuple[str, ...] = ()
    title: str = "CSV"  # for people


def _function(name: str) -> Callable[..., Any]:
    module, function = name.split(".")
    found: Callable[..., Any] = getattr(
        load_library(f"fairmaxent.files.{module}"), function
    )
    return found


def read_table(
    path: Name,
    reading: Reading | None = None,
    *,
    declaration: Declaration | None = None,
) -> TableFile:
    """Read a table with polars; ``"-"`` is stdin.

    With a ``declaration``, that alone says what a cell means, whatever the others are;
    see `declared_rows`.
    """
    reading = reading or Reading()
    if reading.input_format is not None:
        _check_format("input_format", reading.input_format)
    content = read_content(path)
    format = reading.input_format or _format_of(content, path)
    refuse_options(path, reading, format)
    # beside marks of an encoding
    if not content.strip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"):
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
    read = _function(FORMATS[format].read)
    frame, remarks, form = read(content, str(path), reading, format)
    if not len(frame):
        raise InputError(
            f"{path} has column names but no rows; pass a table with at least one row"
        )
    may_skip = reading.skip_last is None and "skip_last" in FORMATS[format].options
    if may_skip and ends_with_sums(frame):
        frame, remarks, form = read(
            content, str(path), replace(reading, skip_last=1), format
        )
        what = (
            f"the last row of {path} is called a total, so it was left out; to keep it,"
            " set "
        )
        remarks.append((what, Option("skip_last", 0)))
        form = replace(
            form or TableForm(format),
            found=(*(form.found if form else ()), ("skip_last", "1")),
        )
    return TableFile(
        reading.renamed(frame), tuple(remarks), form=form or TableForm(format)
    )


def _read_declared(
    content: bytes, path: str, reading: Reading, declaration: Declaration, format: str
) -> TableFile:
    """Read each row by itself, and by the declaration; a line that does not fit the
    header is not declared, either.
    """
    if format == "jsonl":
        what = (
            f"{path} has no header: each of its lines says which columns there are, and"
            " of which type"
        )
        raise InputError(
            f"{what}, which a declared domain does not allow; write the table as CSV or"
            " Parquet"
        )
    decimal = reading.decimal or declaration.decimal
    dates = reading.date_order or declaration.dates
    declared = replace(declaration, decimal=decimal, dates=dates)
    if FORMATS[format].read_each:
        read = _function(FORMATS[format].read_each)
        frame, misfit, form = read(content, path, reading, declared.names, format)
        if misfit is not None and declared.refuses:
            raise misfit
        form = replace(form, decimal=declared.decimal)
    else:
        frame = _function(FORMATS[format].read)(content, path, reading, format)[0]
        form = TableForm(format)
    if not len(frame) and declared.refuses:
        raise InputError(
            f"{path} has column names but no rows; pass a table with at least one row"
        )
    rows = declared_rows(
        narwhals.from_native(frame, eager_only=True), declared, ("", *reading.markers)
    )
    return TableFile(rows.to_native(), form=form)


def refuse_options(path: object, reading: Reading, format: str) -> None:
    """Refuse options that do not apply to a file of this format; None or empty was not
    given.
    """
    for name in (
        field.name
        for field in fields(Reading)
        if field.name not in ("input_format", "levels")
    ):
        if (
            getattr(reading, name) not in (None, (), [])
            and name not in FORMATS[format].options
        ):
            option = Option("missing_text" if name == "missing" else name)
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
    suffix = next(
        (suffix for suffix in _suffixes_of(path) if suffix not in COMPRESSED), ""
    )
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


def _check_format(option: str, name: str) -> None:
    if name not in FORMATS:
        raise InputError(Option(option), f" is {name!r}; {did_you_mean(name, FORMATS)}")


def output_format(
    path: Name, format: str | None = None, form: TableForm | None = None
) -> tuple[str, str]:
    """Return the format and compression for a file of this name, or refuse the name.

    ``form`` is that of the input, if the result is to be written like it.
    """
    if format is not None:
        _check_format("format", format)
    suffixes = _suffixes_of(path)
    if form is not None:
        named = format or next(filter(None, map(SUFFIXES.get, suffixes)), form.format)
        format = form.format
        if named != format:
            what = (
                f" writes {format}, as the input is, and {path} is to be {named}; name"
                f" a file that ends in .{format}"
            )
            raise InputError(
                Option("like_input"), f"{what}, or leave out ", Option("like_input")
            )
    if suffixes:
        compression = COMPRESSED.get(suffixes[0], "uncompressed")
    else:
        compression = "uncompressed"
    suffix = next((suffix for suffix in suffixes if suffix not in COMPRESSED), "")
    name = format or (SUFFIXES.get(suffix) if suffix else "csv")
    if name is None:
        what = (
            f"{path}: the format of {suffix!r} is not known;"
            f" {did_you_mean(suffix, SUFFIXES)}"
        )
        raise InputError(
            f"{what}; for a compressed text file, add {' or '.join(COMPRESSED)}"
        )
    if compression != "uncompressed" and not FORMATS[name].is_text:
        raise InputError(
            f"{path}: {name} files are already compressed; leave out {suffixes[0]!r}"
        )
    return name, compression


def write_to_file(
    frame: Any,
    file: Any,
    target: Name,
    *,
    format: str | None = None,
    schema: Any = None,
    form: TableForm | None = None,
) -> tuple[str, ...]:
    """Write a polars table or lazy frame to an open file, which the user calls
    ``target``; return what is not kept.

    ``schema`` holds the types that a Parquet file declares, if the frame has categories
    in place of texts.
    """
    lazy = frame.lazy()
    name, compression = output_format(target, format, form)
    called = "stdout" if target == STANDARD else target
    for column, kind in lazy.collect_schema().items():
        if type(kind).__name__ in FORMATS[name].cannot_hold:
            what = (
                f"cannot write {called}: {name} files cannot hold column"
                f" {shown(column)} ({kind})"
            )
            raise StorageError(
                f"{what}; write a .parquet or .arrow file, or convert the column to"
                " text"
            )
    remedy = "free some space, or choose another location or format"
    with library_errors(f"cannot write {called} as {name}", remedy, OSError):
        kept: tuple[str, ...] = _function(FORMATS[name].write)(
            lazy, file, compression, form, schema, name
        )
        return kept


def write_on_stdout(frame: Any, **how: Any) -> tuple[str, ...]:
    """Write a table to stdout; on a terminal, characters that would steer it are shown
    as escapes.
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
    rest = memoryview(
        visible(content.decode(errors="replace")).encode() if on_terminal else content
    )
    # which may be accepted only in parts if stdout is not buffered (python -u)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    return notes


def as_polars(frame: Any) -> Any:
    """Convert a pandas or pyarrow table to polars; a model returns rows in the library
    it was fitted with.
    """
    return narwhals.from_native(frame, eager_only=True).to_polars()


FORMATS = {
    "csv": Format((".csv", ".data", ".txt"), *_CSV, **_TEXT),
    "tsv": Format((".tab", ".tsv"), *_CSV, **_TEXT),
    "parquet": Format((".parquet", ".pq"), *_TYPED, magic=(b"PAR1",), title="Parquet"),
    "arrow": Format(
        (".arrow", ".feather", ".ipc"),
        *_TYPED,
        magic=(b"ARROW1", STREAM),
        title="Arrow",
    ),
    "jsonl": Format(
        (".jsonl", ".ndjson"),
        *_TYPED,
        is_text=True,
        cannot_hold=("Binary",),
        title="JSON lines",
    ),
    "xlsx": Format(
        (".xlsx",), *_EXCEL, magic=(b"PK\x03\x04",), title="Excel", **_SHEETS
    ),
}
SUFFIXES = {
    suffix: name for name, format in FORMATS.items() for suffix in format.suffixes
}
