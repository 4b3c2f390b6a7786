"""Tables written in the form of a CSV that was read: its separator, marks, dates, encoding, and the lines above."""

from __future__ import annotations

import codecs
import gzip
import io
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.files.form import ColumnForm, CsvForm, DateForm, NumberForm
from fairmaxent.files.formats import Compression

_MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_MOMENT = DateForm("%Y-%m-%dT%H:%M:%S%.f")


def csv_in_form(frame: Any, form: CsvForm, compression: Compression) -> tuple[bytes, tuple[str, ...]]:
    """Return the content of the file, and what could not be kept."""
    text = _text(frame.lazy().collect(), form)
    encoding = form.encoding
    notes: tuple[str, ...] = ()
    try:
        content = text.encode(encoding)
    except UnicodeEncodeError as problem:
        encoding, content = "utf-8", text.encode()
        character = text[problem.start]
        notes = (f"{form.encoding} has no character {character!r}, so the table was written as utf-8",)
    if form.has_mark:
        content = _MARKS.get(encoding, b"") + content
    if compression == "gzip":
        return gzip.compress(content, mtime=0), notes
    if compression == "zstd":
        return _zstd(content.decode(encoding)), notes if encoding == "utf-8" else (*notes, _as_utf8(encoding))
    return content, notes


def _as_utf8(encoding: str) -> str:
    return f"files compressed with zstd are written as utf-8, not as {encoding}"


def _text(table: Any, form: CsvForm) -> str:
    columns = [_written(column, form) for column in table]
    body = table.with_columns(columns).write_csv(separator=form.separator, include_header=form.has_header)
    above = f"{form.separator_line}\n" if form.separator_line else ""
    text = f"{above}{form.title}{body}"
    return text if form.line_end == "\n" else text.replace("\n", form.line_end)


def _written(column: Any, form: CsvForm) -> Any:
    """A column as the texts of its cells."""
    polars = load_library("polars")
    dtype, how = column.dtype, form.columns.get(column.name)
    if dtype.is_integer() or dtype.is_float():
        texts = _numbers(column, how if isinstance(how, NumberForm) else NumberForm(form.decimal))
    elif dtype == polars.Date or dtype == polars.Datetime:
        texts = _dates(column, how)
    else:
        texts = column.cast(polars.String)
    return texts.fill_null(form.missing.get(column.name)) if column.name in form.missing else texts


def _numbers(column: Any, form: NumberForm) -> Any:
    """Numbers as texts; each distinct one is written once."""
    polars = load_library("polars")
    values = column.fill_nan(None) if column.dtype.is_float() else column
    distinct = values.drop_nulls().unique()
    texts = polars.Series([form.written(value) for value in distinct.to_list()], dtype=polars.String)
    return values.replace_strict(distinct, texts, default=None, return_dtype=polars.String)


def _dates(column: Any, form: ColumnForm | None) -> Any:
    polars = load_library("polars")
    if isinstance(form, DateForm):
        return column.dt.strftime(form.pattern)
    if column.dtype == polars.Datetime and column.dtype.time_zone is None:
        return column.dt.strftime(_MOMENT.pattern)
    return column.cast(polars.String)


def _zstd(text: str) -> bytes:
    """Let polars compress the text, as one cell without quotes; Python has zstd only since version 3.14."""
    polars = load_library("polars")
    buffer = io.BytesIO()
    polars.LazyFrame({"text": [text]}).sink_csv(
        buffer, include_header=False, quote_style="never", line_terminator="", compression="zstd", check_extension=False
    )
    return buffer.getvalue()
