"""The cells of a table by what was declared of its columns, whatever type they have.

A private fit reads cell by cell, by what was declared. A library gives all cells of a
column one type, so one more row may turn the truth values of everybody into numbers,
and numbers or dates into text. So what is equal in another type is the same here.
"""

import datetime
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data.columns import distinct_values
from fairmaxent.data.declaration import (
    DateOrder,
    Declaration,
    at_midnight,
    column_of,
    edge_kind,
)
from fairmaxent.data.frames import (
    Column,
    Frame,
    build,
    is_missing,
    library_of,
    plain_value,
    take,
    to_numbers,
    within_years,
    without_dictionary,
)
from fairmaxent.data.levels import value_key, value_text
from fairmaxent.data.table import (
    Mask,
)
from fairmaxent.errors import ColumnError, LevelError, shown

UNDECLARED = object()  # what a cell is read as that no declaration knows
_NAN = "nan"  # as libraries write it in a column of text, in whatever case
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(E[+-]?\d+)?|INF(INITY)?)", re.ASCII)
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:\d\d)?)?)?",
    re.ASCII,
)
_WRITTEN = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?: (\d{1,2})(:\d\d(?::\d\d)?))?", re.ASCII
)
_COMMA = str.maketrans(",.", ". ")  # a point is no part of a number then
_WHOLE = 2**53  # below which a float is exact
_WHOLE_SINGLE = 2**24  # and one in single precision
_DAY_LENGTH = 10  # of 2025-02-01


@dataclass(frozen=True)
class DeclaredColumn:
    """How the cells of a column are read by what was declared of it."""

    name: str
    declaration: Declaration
    # texts that mean missing, in a file of text
    markers: Collection[str] = ()

    def read(self, cell: object) -> Any:
        """A level, or a number or date within edges, or `UNDECLARED`; None: missing.

        It does not depend on the other cells, nor on the type that these give it.
        """
        try:
            return self._meant(_scalar(cell))
        # whatever a cell of a strange type raises: 31 February, an overflow, an
        # unhashable list
        except Exception:
            return UNDECLARED

    def check_type(self, dtype: Any) -> None:
        """Refuse types that cannot be read cell by cell.

        That is lists, lengths and times of day, which become numbers or other texts;
        dates that became numbers of days or of microseconds; and whole numbers that
        single precision rounds. Levels that are equal in another type, such as "true"
        and "1", are told apart in text only.
        """
        kinds = {kind for kind, _ in self._levels}
        for edge in self.declaration.edges.get(self.name, ()):
            kinds.add(value_key(edge)[0])
        are_numbers = dtype.is_numeric() and "time" in kinds
        are_times = dtype.is_temporal() and "number" in kinds
        is_rounded = dtype == nw.Float32 and any(
            kind == "number" and abs(plain) > _WHOLE_SINGLE
            for kind, plain in self._levels
        )
        is_read_apart = dtype.is_nested() or dtype in (nw.Duration, nw.Time)
        if are_numbers or are_times or is_rounded or is_read_apart:
            raise ColumnError(
                f"column {self.name!r} is of type {dtype}, whose cells are not read as"
                " what was declared; convert it. A library may have chosen the type by"
                " the rows, so do not pass it on"
            )
        is_text = not (dtype.is_numeric() or dtype.is_temporal() or dtype == nw.Boolean)
        if self._equal_levels and not is_text:
            raise ColumnError(
                f"the levels {self._equal_levels} of column {self.name!r} are equal in"
                f" a column of type {dtype}; declare one of them, or convert the column"
                " to text. A library may have chosen the type by the rows, so do not"
                " pass it on"
            )

    def _meant(self, cell: Any) -> Any:
        is_gap = is_missing(cell)
        if isinstance(cell, str):
            is_gap = cell in self.markers or cell.lower() == _NAN
        if not is_missing(cell):
            for key in self._keys(cell):
                if key in self._levels:
                    return self._levels[key]
            value = self._spelled(cell)
            if self.name in self.declaration.edges and edge_kind(value):
                is_date = isinstance(value, datetime.date)
                if is_date == self.declaration.has_dates(self.name):
                    return within_edges(value)
        if is_gap and self.name in self.declaration.missing:
            return None
        return UNDECLARED

    @cached_property
    def _levels(self) -> dict[tuple[str, Any], Any]:
        """Each level by what it is equal to; a text is itself first of all."""
        levels = self.declaration.levels.get(self.name, ())
        texts = {("text", level): level for level in levels}
        return {key: level for level in levels for key in self._keys(level)} | texts

    @cached_property
    def _equal_levels(self) -> tuple[Any, ...]:
        """Two levels that are equal in another type, if there are such."""
        seen: dict[tuple[str, Any], Any] = {}
        for level in self.declaration.levels.get(self.name, ()):
            for key in self._keys(level):
                other = seen.setdefault(key, level)
                if other is not level:
                    return other, level
        return ()

    def _keys(self, value: Any) -> Iterator[tuple[str, Any]]:
        """What a value is equal to, whatever type a table gives it; the best first.

        1, true and their texts are equal; a date and its midnight; and 0.7 in single
        precision and in double.
        """
        if isinstance(value, str):
            yield "text", value.strip()
            value = self._spelled(value)
        kind, plain = value_key(value)
        if kind in ("truth", "number"):
            kind = "number"
            plain = float(plain)
        yield "text", value_text(value)
        yield kind, plain
        if kind == "number" and not plain.is_integer():
            yield "single", float(np.float32(plain))

    def _spelled(self, cell: Any) -> Any:
        """The number or time that a text spells; a truth value is 0 or 1."""
        if isinstance(cell, bool):
            return int(cell)
        if not isinstance(cell, str):
            return cell
        text = cell.strip().upper()
        if text in ("TRUE", "FALSE"):
            return int(text == "TRUE")
        if self.declaration.decimal == "," and ("," in text or self.markers):
            text = text.translate(_COMMA)
        if _NUMBER.fullmatch(text):
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
        if self.declaration.dates is not None:
            text = _iso_date(text, self.declaration.dates)
        if not _MOMENT.fullmatch(text):
            return cell
        if len(text) == _DAY_LENGTH:
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(text)


def _scalar(cell: object) -> Any:
    """A cell as Python has it: bytes and periods as their text, and complex numbers as
    real ones.

    One such cell makes a library turn all others of the column into them.
    """
    value = plain_value(cell)
    if isinstance(value, bytes | bytearray):
        value = value.decode()
    if isinstance(value, str) or type(value).__name__ == "Period":  # of pandas
        return str(value).strip()
    if isinstance(value, complex) and not value.imag:
        return value.real
    return value


def within_edges(value: Any) -> Any:
    """A number or date of Python's own type; a moment is in UTC without saying so."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        seconds = datetime.datetime(*value.timetuple()[:6])
        return seconds.replace(microsecond=value.microsecond)
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, int) and abs(value) < _WHOLE:
        return value
    return float(value)


def _iso_date(text: str, order: DateOrder) -> str:
    """Write 1/2/2025 9:30 as 2025-02-01 09:30, or as 2025-01-02; others stay."""
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return text
    day, _, month, year, hour, minute = written.groups()
    if order == "mdy":
        day, month = month, day
    date = f"{year}-{month:0>2}-{day:0>2}"
    return date if hour is None else f"{date} {hour:0>2}{minute}"


def declared_rows(
    frame: Frame, declaration: Declaration, markers: Collection[str] = ()
) -> Frame:
    """Read a table by a declaration alone, each cell by itself.

    No cell changes how those of other people are read. A value that was not declared is
    refused. Or its row is left out ("drop"), or it is "missing" where that can be, and
    its row is left out otherwise. Columns that were not declared stay as they are.
    ``markers`` are those of a file that is text. Elsewhere, text may be numbers that a
    library wrote, with points, whatever decimal mark was declared.
    """
    kept = np.ones(len(frame), dtype=bool)
    columns = {
        name: without_dictionary(frame.get_column(name)) for name in frame.columns
    }
    declared = [
        DeclaredColumn(name, declaration, markers)
        for name in declaration.names
        if name in columns
    ]
    for how in declared:
        how.check_type(columns[how.name].dtype)
    for how in declared:
        column = columns[how.name]
        columns[how.name], unknown = _declared_column(column, how)
        if unknown.any() and declaration.refuses:
            within, _ = within_years(column)  # Python lacks other dates
            cell = within.to_list()[int(np.argmax(unknown))]
            raise LevelError(
                f"column {how.name!r} holds {shown(cell)}, which was not declared;"
                " declare all that the column can hold, which numbers have a decimal"
                " comma, and the order of dates",
                column=how.name,
            )
        if declaration.undeclared != "missing" or how.name not in declaration.missing:
            kept &= ~unknown
    rows: Frame = nw.from_native(build(columns), eager_only=True)
    if kept.all():  # as in a table without rows, which cannot be filtered
        return rows
    return rows.filter(kept.tolist())


def _declared_column(column: Column, how: DeclaredColumn) -> tuple[Column, Mask]:
    """A column as it was declared, and which of its rows hold what was not."""
    name = how.name
    edges = how.declaration.edges.get(name, ())
    column, beyond = within_years(column)
    dtype = column.dtype
    are_numbers = dtype.is_numeric() or dtype in (nw.Date, nw.Datetime)
    if edges and are_numbers and not beyond.any():
        missing = np.isnan(to_numbers(column))
        return column, missing & (name not in how.declaration.missing)

    # objects may be anything, also what cannot be compared
    if dtype == nw.Object:
        cells = column.to_list()
        codes = np.arange(len(column))
    else:
        distinct = distinct_values(column)
        cells = distinct.values.to_list()
        codes = distinct.codes
    codes = np.where(beyond, len(cells), codes)
    # the last is at -1
    values = [*map(how.read, cells), UNDECLARED, how.read(None)]
    unknown = np.array([value is UNDECLARED for value in values])
    # What is declared comes first, so that the type does not depend on what is there.
    known = [*how.declaration.levels.get(name, ()), *map(within_edges, edges)]
    start = len(known)
    known += [None if value is UNDECLARED else value for value in values]
    if any(isinstance(value, datetime.datetime) for value in known):
        known = [at_midnight(value) for value in known]
    listed = column_of(name, known, library_of(column))
    places = np.where(codes < 0, len(known) - 1, codes + start)
    return take(listed, places), unknown[codes]
