"""Tables in files: CSV, TSV, Excel, Parquet, Arrow and JSON lines, read and written with polars.

A CSV is read the way people mean it: encoding and delimiter are detected, spaces around a cell do not count, a few
markers stand for a missing value, and a column holds numbers or dates only if all its cells do. Every file is written
completely or not at all, and several files appear together.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.data.arrow_stream import BEGINNING as STREAM
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import check_file_columns, need_memory
from fairmaxent.errors import (
    ColumnError,
    InputError,
    Option,
    StorageError,
    check_choice,
    first_line,
    spelled,
)
from fairmaxent.files.arrow_footer import CELL_MEMORY, check_arrow_footer, check_arrow_stream
from fairmaxent.files.cell_kinds import MISSING, Decimal, Remark
from fairmaxent.files.content import most_inflated, read_content, too_long_texts
from fairmaxent.files.csv_reader import read_csv
from fairmaxent.files.date_forms import DateOrder
from fairmaxent.files.form import TableForm
from fairmaxent.files.formats import COMPRESSED, SUFFIXES, FileFormat, output_format, suffixes_of
from fairmaxent.files.json_lines import refuse_half_characters, refuse_repeated_keys
from fairmaxent.files.parquet_footer import check_footer
from fairmaxent.files.staging import Staging
from fairmaxent.files.xlsx_reader import read_xlsx

_JSON_LINES = 17_000  # that are looked at before the others: polars takes long to collect many columns
_JSON_MEMORY = 2.5  # bytes of memory for each byte of JSON lines
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook, or one with a password; save it as .xlsx without one, or as CSV",
    b"%PDF": "a PDF document; export the table as CSV",
    b"SQLite format 3": "a database; export the table as CSV",
    b"BZh": "compressed with bzip2; decompress it first",
    b"\xfd7zXZ": "compressed with xz; decompress it first",
}


_MEANT_FOR = {"sheet": "Excel workbooks", "delimiter": "CSV files", "encoding": "CSV files"}
_PARQUET = TableForm("parquet")


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table that was read, and what the user should know about how it was read."""

    frame: Any  # a polars DataFrame, or a LazyFrame if it is not in memory
    remarks: tuple[Remark, ...]
    whole: Any = None  # the same table with the columns that were left out; None: no column was
    form: TableForm = _PARQUET  # how it is written, so that a result can be written like it
    may_end_in_sum: bool = False  # the last row looks like a sum or a remark, and was read as data

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that were left out."""
        if self.whole is None:
            return ()
        kept = self.frame.collect_schema().names()
        return tuple(name for name in self.whole.collect_schema().names() if name not in kept)

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks as sentences, with options as Python spells them."""
        return self.notes_spelled(str)

    def notes_spelled(self, spell: Callable[[Option], str]) -> tuple[str, ...]:
        """The remarks as sentences, with their options spelled by ``spell``."""
        return tuple(remark if isinstance(remark, str) else spelled(remark, spell) for remark in self.remarks)


# ---------------------------------------------------------------- reading


def read_table(
    path: str | os.PathLike[str],
    *,
    format: FileFormat | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: Decimal | None = None,
    date_order: DateOrder | None = None,
    missing: Sequence[str] = MISSING,
    columns: Sequence[str] | None = None,
    skip_lines: int | None = None,
    skip_last: int | None = None,
    sheet: str | int | None = None,
    texts: Collection[str] = (),
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
        Decimal mark of numbers in text. By default a point; if the comma does not separate cells, also a comma, in a
        column whose cells are all such numbers.
    date_order
        Whether 1/2/2025 is in February (``"dmy"``) or in January (``"mdy"``). By default a column is read as dates if
        one of its days, or another column, shows the order.
    missing
        Cells of a CSV or a sheet that stand for a missing value.
    columns
        Names of the columns, for a CSV or a sheet without a header.
    skip_lines
        How many lines (of a sheet: rows) stand above the header. By default titles are skipped if nothing else can be
        meant.
    skip_last
        How many rows to leave out at the end of a CSV or a sheet, such as sums and remarks.
    sheet
        Name or number of the sheet of a workbook; by default the first that holds a table.
    texts
        Columns of a CSV or a sheet that stay text, even if all of their cells look like numbers or dates.
    """
    if format is not None:
        check_choice("format", format, FileFormat)
    content = read_content(path)
    kind = format or _format_of(content, path)
    written: dict[str, Any] = {
        "decimal": decimal,
        "date_order": date_order,
        "missing": missing,
        "columns": columns,
        "skip_lines": skip_lines,
        "skip_last": skip_last,
    }
    in_text: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding}
    form = TableForm(kind)
    remarks: list[Remark] = []
    if kind in ("csv", "tsv"):
        refuse_options(path, kind, {"sheet": sheet})
        if kind == "tsv" and delimiter is None:
            in_text["delimiter"] = "\t"
        frame, remarks, form = read_csv(content, str(path), format=kind, texts=texts, **written, **in_text)
    elif kind == "xlsx":
        refuse_options(path, kind, in_text)
        frame, remarks, form = read_xlsx(content, str(path), sheet=sheet, texts=texts, **written)
    else:
        given = {**in_text, **written, "sheet": sheet}
        refuse_options(path, kind, given | {"missing": None if missing is MISSING else missing})
        frame = _read_typed(content, kind, path)
    if not len(frame):
        raise InputError(f"{path} has column names but no rows; pass a table with at least one row")
    about_end = any(Option("skip_last", 1) in remark for remark in remarks if not isinstance(remark, str))
    return TableFile(frame, tuple(remarks), form=form, may_end_in_sum=about_end)


def refuse_options(path: object, kind: FileFormat, given: Mapping[str, object]) -> None:
    """Refuse options that do not apply to a file of this kind; None or empty was not given."""
    for name, value in given.items():
        if value not in (None, (), []):
            what = _MEANT_FOR.get(name, "CSV files and Excel workbooks")
            option = Option("missing_text" if name == "missing" else name)
            raise InputError(option, f" is for {what}, and {path} is {kind}; leave it out")


def _format_of(content: bytes, path: str | os.PathLike[str]) -> FileFormat:
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise StorageError(f"{path} is {what}")
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(b"PK\x03\x04"):
        return "xlsx"
    if content.startswith((b"ARROW1", STREAM)):
        return "arrow"
    suffix = next((suffix for suffix in suffixes_of(path) if suffix not in COMPRESSED), "")
    start = content[:100].removeprefix(codecs.BOM_UTF8).lstrip()
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
            if format in ("parquet", "arrow"):
                return _with_texts(_reader(content, format, polars)(content), content, path)
            content = content.removeprefix(codecs.BOM_UTF8)
            refuse_half_characters(content, path)
            frame = polars.read_ndjson(content, schema=_json_schema(content, path, polars))
            refuse_repeated_keys(content, frame, path)
            return frame
        except polars.exceptions.DuplicateError as repeated:
            raise ColumnError(
                f"{path} has two columns of the same name ({first_line(repeated)}); rename one"
            ) from repeated


def _reader(content: bytes, format: FileFormat, polars: Any) -> Callable[[bytes], Any]:
    if format == "parquet":
        return polars.read_parquet  # type: ignore[no-any-return]
    return polars.read_ipc_stream if content.startswith(STREAM) else polars.read_ipc  # type: ignore[no-any-return]


def _refuse_too_large(content: bytes, format: FileFormat, path: object, polars: Any) -> None:
    """Refuse a table that would not fit in memory: a few bytes of a compressed file can stand for many rows."""
    needed = float(_JSON_MEMORY * len(content))
    if format == "arrow" and content.startswith(STREAM):
        needed = check_arrow_stream(content, path)
    elif format in ("parquet", "arrow"):
        if format == "parquet":
            check_footer(io.BytesIO(content), path)
        else:
            check_arrow_footer(content, path)
        scanned = (polars.scan_parquet if format == "parquet" else polars.scan_ipc)(io.BytesIO(content))
        cells = len(scanned.collect_schema()) * int(scanned.select(polars.len()).collect().item())
        needed = len(content) + float(CELL_MEMORY * cells)
    need_memory(needed, f"reading {path}", "leave out columns, or take a part of the rows")


def _with_texts(frame: Any, content: bytes, path: object) -> Any:
    """Refuse a table whose texts are much longer than its file: one may stand in a dictionary for many rows."""
    size, most = sum(_text_bytes(column) for column in frame), most_inflated(content)
    if size > most:
        raise too_long_texts(path, size=len(content), texts=size, most=most)
    return frame


def _text_bytes(column: Any) -> int:
    """The bytes of all texts of a column; those of categories are not written out for it."""
    polars = load_library("polars")
    if column.dtype == polars.String:
        return int(column.str.len_bytes().sum())
    if column.dtype not in (polars.Categorical, polars.Enum):
        return 0
    counted = column.alias("text").value_counts(name="rows")
    return int((counted["text"].cast(polars.String).str.len_bytes().cast(polars.UInt64) * counted["rows"]).sum())


def _json_schema(content: bytes, path: object, polars: Any) -> Any:
    """The columns of JSON lines; each line may have its own, and then a small file stands for a table of many cells."""
    lines = content.count(b"\n") + 1
    for looked_at in (_JSON_LINES, None) if lines > _JSON_LINES else (None,):
        schema = polars.scan_ndjson(io.BytesIO(content), infer_schema_length=looked_at).collect_schema()
        check_file_columns(len(schema), path)
        need_memory(
            float(CELL_MEMORY * len(schema) * lines),
            f"reading {path}",
            "leave out columns, or take a part of the rows",
        )
    return schema


# ---------------------------------------------------------------- writing


def write_table(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: FileFormat | None = None,
    form: TableForm | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a polars table completely or not at all; ``"-"`` is stdout. The suffix sets format and compression.

    ``form``, of a table that was read, writes the table in the same form; what could not be kept is returned.
    """
    output_format(path, format if form is None else form.output_format(path, format))
    with Staging([path], force=force) as staging:
        return staging.write_table(frame, path, format=format, form=form)


def as_polars(frame: Any) -> Any:
    """Convert a pandas or pyarrow table to polars; a model returns rows in the library it was fitted with."""
    import narwhals

    opened = narwhals.from_native(frame, eager_only=True)
    return frame if opened.implementation.is_polars() else opened.to_polars()
