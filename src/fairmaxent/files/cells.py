"""Cells of text as values: each column gets the type that all its cells have, and notes say how it was read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import load_library
from fairmaxent.errors import Option, cut
from fairmaxent.files.amounts import LOOKED_AT, Amounts, first_cell, read_amounts
from fairmaxent.files.reading import DateOrder, Decimal, Remark

_Parser = Callable[[Any, Any], Any]
_BOTH = ".,"
_MOSTLY = 0.5  # of the cells are numbers
_FEW = 3  # other texts


@dataclass(frozen=True)
class Conventions:
    """What is known about how cells are written: the separator of a CSV, and what the user says."""

    separator: str = ""
    decimal: Decimal | None = None
    date_order: DateOrder | None = None
    texts: Collection[str] = ()  # columns that stay text, whatever their cells look like

    @property
    def marks(self) -> str:
        """Which decimal marks numbers may have. If the comma separates cells, it is not one unless asked for."""
        return self.decimal or ("." if self.separator == "," else _BOTH)


@dataclass(eq=False)
class Typed:
    """Columns with their types, how they were read, and what to say about them."""

    columns: dict[str, Any]
    parsers: dict[str, _Parser | None]
    amounts: dict[str, Amounts] = field(default_factory=dict)
    dates: list[str] = field(default_factory=list)  # those that were first taken for text
    remarks: list[Remark] = field(default_factory=list)

    @property
    def frame(self) -> Any:
        """The columns as a table."""
        return load_library("polars").DataFrame(list(self.columns.values()))

    def names_of(self, *parsers: _Parser) -> list[str]:
        """The columns that were read by one of these."""
        return [name for name, parse in self.parsers.items() if parse in parsers]

    @property
    def texts(self) -> list[str]:
        """The columns that are text so far."""
        read = {*self.amounts, *self.dates}
        return [name for name, parse in self.parsers.items() if parse is None and name not in read]

    @property
    def decimal(self) -> str | None:
        """The decimal mark of the file, if a number shows it."""
        marks = {amounts.decimal for amounts in self.amounts.values() if amounts.has_decimals}
        if "," in marks or self.names_of(*_COMMA_NUMBERS):
            return ","
        return "." if marks or self.names_of(_number) else None


def typed_table(cells: Any, missing: Sequence[str], conventions: Conventions) -> Typed:
    """Strip spaces, read markers as missing, and give each column the type that all its cells have."""
    polars = load_library("polars")
    stripped = cells.select(polars.all().str.strip_chars())
    present = stripped.select(polars.when(~polars.all().is_in(list(missing))).then(polars.all()))
    markers = _marker_counts(stripped, [marker for marker in missing if marker])
    everything = present
    present = everything.drop([name for name in everything.columns if name in conventions.texts])
    typed = _inferred(present, conventions.marks)
    if conventions.marks == _BOTH and typed.names_of(*_COMMA_NUMBERS):
        # A comma is the decimal mark, and the point in 1.234 separates thousands, unless an amount says otherwise.
        american = _is_american(present, typed)
        typed = _inferred(present, "." if american else ",.")
        conventions = replace(conventions, decimal="." if american else ",")
    typed.remarks += missing_remarks(markers)
    typed.remarks += _european_remarks(typed)
    _read_amounts(present, typed, conventions)
    _read_dates(present, typed, conventions)
    typed.remarks += _almost_numbers(present, typed)
    typed.columns = {column.name: typed.columns.get(column.name, column) for column in everything}
    return typed


# ---------------------------------------------------------------- missing values


def _marker_counts(stripped: Any, markers: Sequence[str]) -> dict[str, dict[str, int]]:
    """How often each marker stands for a missing value, by column."""
    marked = [column for column in stripped if column.is_in(list(markers)).any()]
    counts = {marker: {column.name: int((column == marker).sum()) for column in marked} for marker in markers}
    return {marker: {name: count for name, count in by_name.items() if count} for marker, by_name in counts.items()}


def missing_remarks(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Say which markers were read as a missing value, in which columns, and how often."""
    for marker, by_name in counts.items():
        if by_name:
            columns = ", ".join(f"{name} {count:,}" for name, count in by_name.items())
            yield f"{marker!r} was read as missing ({columns})"


# ---------------------------------------------------------------- kinds


def _inferred(present: Any, marks: str) -> Typed:
    polars = load_library("polars")
    pairs = {column.name: _infer(column, polars, marks) for column in present}
    return Typed({name: column for name, (column, _) in pairs.items()}, {name: how for name, (_, how) in pairs.items()})


def _infer(column: Any, polars: Any, marks: str) -> tuple[Any, _Parser | None]:
    """The column as integers, numbers, Booleans, dates or times if every cell is one, else as text."""
    cells = column.drop_nulls()
    numbers = [parse for mark in marks for parse in (_COMMA_NUMBERS if mark == "," else (_number,))]
    for parse in (_whole, *numbers, *_OTHERS):
        if len(cells) and parse(cells[:1], polars).null_count() == 0:
            parsed = parse(column, polars)
            if parsed.null_count() == column.null_count():
                return parsed, parse
    return column, None


def _european_remarks(typed: Typed) -> Iterator[str]:
    """Say which columns were read by European conventions."""
    numbers, dates = typed.names_of(*_COMMA_NUMBERS), typed.names_of(_european_date)
    if numbers:
        yield f"a comma was read as the decimal mark, and a point as the thousands separator ({', '.join(numbers)})"
    if dates:
        yield f"dates were read as day.month.year ({', '.join(dates)})"


def _is_american(present: Any, typed: Typed) -> bool:
    """Whether commas must separate thousands: one amount is written such as 1,234.50, and no column says otherwise."""
    amounts = (read_amounts(present[name], _BOTH) for name in typed.texts)
    if not any(amount is not None and amount.is_decisive and amount.decimal == "." for amount in amounts):
        return False
    return all(present[name].str.contains(_COMMA_GROUPS).all() for name in typed.names_of(*_COMMA_NUMBERS))


def _read_amounts(present: Any, typed: Typed, conventions: Conventions) -> None:
    """Read the columns of text that hold amounts."""
    marks = conventions.decimal or (",." if typed.decimal == "," else _BOTH)
    read = {name: read_amounts(present[name], marks) for name in typed.texts}
    amounts = {name: amount for name, amount in read.items() if amount is not None}
    decisive = {amount.decimal for amount in amounts.values() if amount.is_decisive}
    if decisive == {","} and marks == _BOTH:  # then the other columns are probably written in the same way
        amounts = {name: read_amounts(present[name], ",.") or amount for name, amount in amounts.items()}
    by_form: dict[object, list[tuple[str, Amounts]]] = {}
    for name, amount in amounts.items():
        typed.columns[name], typed.amounts[name] = amount.column, amount
        by_form.setdefault((amount.decimal, amount.group, amount.prefix, amount.suffix), []).append((name, amount))
    for same in by_form.values():
        name, amount = same[0]
        cells = present[name]
        value = amount.column.filter(cells == amount.example)[0]
        names = ", ".join(name for name, _ in same)
        typed.remarks.append(f"numbers such as {cut(amount.example)!r} were read as {value} ({names})")


def _read_dates(present: Any, typed: Typed, conventions: Conventions) -> None:
    """Read the columns of text that hold dates; those that allow both orders follow the others."""
    candidates = {name: dates for name in typed.texts if (dates := _written_dates(present[name])) is not None}
    clear = {name: dates.orders[0] for name, dates in candidates.items() if len(dates.orders) == 1}
    evidence = {order for name, order in clear.items() if candidates[name].mark != "."}
    assumed, why = conventions.date_order, ""
    if assumed is None and len(evidence) == 1:
        assumed, why = evidence.pop(), ", like other dates in the file"
    if assumed is None and not evidence and (typed.decimal == "," or typed.names_of(_european_date)):
        assumed, why = "dmy", ", like the European numbers or dates in the file"
    for name, dates in candidates.items():
        order = clear.get(name, assumed)
        read = dates.read(order) if order in dates.orders and order is not None else None
        if read is not None and order is not None:
            typed.columns[name] = read
            typed.dates.append(name)
            reason = "" if name in clear else why
            typed.remarks.append(f"dates were read as {_ORDERS[order].format(dates.mark)}{reason} ({name})")
        elif len(dates.orders) > 1:
            typed.remarks.append(_unclear(name, dates))


def _unclear(name: str, dates: _WrittenDates) -> Remark:
    return (
        f"{name} was read as text, because {dates.example} can be day{dates.mark}month{dates.mark}year or "
        f"month{dates.mark}day{dates.mark}year; set ",
        Option("date_order", "dmy"),
        " or ",
        Option("date_order", "mdy"),
    )


def _almost_numbers(present: Any, typed: Typed) -> Iterator[Remark]:
    """Say that a few other texts keep a column from being numbers, such as a hyphen that means missing."""
    polars = load_library("polars")
    for name in typed.texts:
        looks = present[name].head(LOOKED_AT).drop_nulls().str.contains(_DIGITS)
        if not len(looks) or looks.mean() < _MOSTLY:
            continue
        column = present[name]
        others = column.filter(~column.str.contains(_DIGITS)).unique(maintain_order=True)
        rest = column.set(column.is_in(others.to_list()), None)
        if 1 <= len(others) <= _FEW and (
            _infer(rest, polars, _BOTH)[0].dtype.is_numeric() or read_amounts(rest, _BOTH) is not None
        ):
            if Domain.infer(present.select(name)).identifiers:
                continue  # it is left out, and the text may be a person's
            shown = ", ".join(repr(cut(text)) for text in others)
            count = rest.null_count() - column.null_count()
            cells = "1 cell" if count == 1 else f"{count:,} cells"
            yield (
                f"{name} was read as text because of {shown} in {cells}; if this means missing, set ",
                Option("missing_text", others[0]),
            )


# ---------------------------------------------------------------- dates such as 31/12/2025

_WRITTEN = r"^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})( \d{1,2}:\d\d(?::\d\d)?)?$"
_FIRST_DATE = re.compile(_WRITTEN)
_MONTHS = 12
_ORDERS = {"dmy": "day{0}month{0}year", "mdy": "month{0}day{0}year"}  # with the mark between the parts


@dataclass(frozen=True, eq=False)
class _WrittenDates:
    """A column of text that may be dates, and which orders of day and month all its cells allow."""

    column: Any
    mark: str
    time: str  # the pattern of the time of day; empty: none
    orders: tuple[DateOrder, ...]
    example: str

    def read(self, order: DateOrder) -> Any | None:
        """Read the dates in this order; None if there is no such day as 31 February."""
        parts = ("%d", "%m", "%Y") if order == "dmy" else ("%m", "%d", "%Y")
        pattern = self.mark.join(parts) + self.time
        if self.time:
            parsed = self.column.str.to_datetime(pattern, strict=False, time_unit="us")
        else:
            parsed = self.column.str.to_date(pattern, strict=False)
        return parsed if parsed.null_count() == self.column.null_count() else None


def _written_dates(column: Any) -> _WrittenDates | None:
    """Return what a column of text can be as dates; None if a cell is none.

    With points the day comes first; with slashes or hyphens the order must show in a day after the 12th.
    """
    polars = load_library("polars")
    first = _FIRST_DATE.fullmatch(first_cell(column) or "")
    if first is None or first[2] != first[4]:
        return None
    cells = column.drop_nulls()
    time = "" if first[6] is None else " %H:%M" if first[6].count(":") == 1 else " %H:%M:%S"
    mark = re.escape(first[2])
    clock = {"": "", " %H:%M": r" \d{1,2}:\d\d", " %H:%M:%S": r" \d{1,2}:\d\d:\d\d"}[time]
    if not cells.str.contains(rf"^\d{{1,2}}{mark}\d{{1,2}}{mark}\d{{4}}{clock}$").all():
        return None
    largest = [int(cells.str.extract(_WRITTEN, group).cast(polars.Int64).max()) for group in (1, 3)]
    orders: list[DateOrder] = []
    if largest[1] <= _MONTHS:
        orders.append("dmy")
    if largest[0] <= _MONTHS and first[2] != ".":
        orders.append("mdy")
    return _WrittenDates(column, first[2], time, tuple(orders), str(cells[0])) if orders else None


# ---------------------------------------------------------------- parsers


def _whole(column: Any, polars: Any) -> Any:
    """Integers; 007 is a code, not a number."""
    return column.set(column.str.contains(_CODE), None).cast(polars.Int64, strict=False)


def _number(column: Any, polars: Any) -> Any:
    return column.set(column.str.contains(_CODE), None).cast(polars.Float64, strict=False)


def _thousands(column: Any, polars: Any) -> Any:
    """Integers such as 1.234, with points that separate thousands."""
    text = column.set(~column.str.contains(_POINTED), None).str.replace_all(".", "", literal=True)
    return text.cast(polars.Int64, strict=False)


def _comma_number(column: Any, polars: Any) -> Any:
    """Numbers such as 1,5 or 1.234,5."""
    text = column.set(~column.str.contains(_COMMA), None).str.replace_all(".", "", literal=True)
    return text.str.replace(",", ".", literal=True).cast(polars.Float64, strict=False)


def _truth(column: Any, polars: Any) -> Any:
    return column.replace_strict({"true": True, "false": False}, default=None, return_dtype=polars.Boolean)


def _date(column: Any, polars: Any) -> Any:
    return column.set(~column.str.contains(_DAY), None).str.to_date("%Y-%m-%d", strict=False)


def _european_date(column: Any, polars: Any) -> Any:
    return column.set(~column.str.contains(_EUROPEAN_DAY), None).str.to_date("%d.%m.%Y", strict=False)


def _time(column: Any, polars: Any) -> Any:
    text = column.set(~column.str.contains(_MOMENT), None).str.replace(" ", "T")
    return text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us")


_DIGITS = r"^\D{0,5}\d[\d.,'’ \u00a0\u202f]*\D{0,5}$"  # a number or an amount, more or less
_CODE = r"^[+-]?(0\d|\d{16,}$)"  # leading zeros, or more digits than a number can hold
_DAY = r"^\d{4}-\d\d-\d\d$"
_MOMENT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_POINTED = r"^[+-]?(0|[1-9]\d{0,2}(\.\d{3})*)$"
_COMMA = r"^[+-]?(0|[1-9]\d{0,14}|[1-9]\d{0,2}(\.\d{3})+)(,\d+([eE][+-]?\d+)?)?$"
_COMMA_GROUPS = r"^[+-]?(0|[1-9]\d{0,2}(,\d{3})*)$"
_EUROPEAN_DAY = r"^\d{1,2}\.\d{1,2}\.\d{4}$"
_COMMA_NUMBERS = (_thousands, _comma_number)
_OTHERS = (_truth, _date, _european_date, _time)
