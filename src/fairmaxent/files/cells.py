"""Cells of text as values: each column gets the type that all its cells have.

Beside plain numbers and dates, these are amounts (thousands separated, a currency, a
per cent sign) and dates such as 31/12/2025, as offices write them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairmaxent.data.declaration import DateOrder
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import load_library
from fairmaxent.data.identifiers import is_total
from fairmaxent.document.words import counted
from fairmaxent.errors import Option, cut
from fairmaxent.files.reading import FileReading, Remark
from fairmaxent.plain_text import Values

polars = load_library("polars")

_LOOKED_AT = 1000  # cells of a column, to see how they are written
_BOTH = ".,"
_MOSTLY = 0.5  # of the cells are numbers
_FEW = 3  # other texts
# a number or an amount, more or less
_DIGITS = r"^\D{0,5}\d[\d.,'’ \u00a0\u202f]*\D{0,5}$"

# Plain values: what all cells of each kind match, in the order in which they are tried;
# codes are no numbers.
_KINDS = {
    "whole": "",
    "number": "",
    "thousands": r"^[+-]?(0|[1-9]\d{0,2}(\.\d{3})*)$",  # such as 1.234
    # such as 1.234,5
    "comma number": (
        r"^[+-]?(0|[1-9]\d{0,14}|[1-9]\d{0,2}(\.\d{3})+)(,\d+([eE][+-]?\d+)?)?$"
    ),
    "truth": "^(true|false)$",
    "date": r"^\d{4}-\d\d-\d\d$",
    "time": r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d",
}
_COMMA_NUMBERS = ("thousands", "comma number")
_CODE = r"^[+-]?(0\d|\d{16,}$)"  # leading zeros, or more digits than a number can hold
# of numbers with a country, and of codes such as 1E3
_PLUS = r"^\+?\d[\d ]*$"
_EXPONENT = r"^\d+E\d+$"
_COMMA_GROUPS = r"^[+-]?(0|[1-9]\d{0,2}(,\d{3})*)$"

# Amounts: numbers with a currency or a per cent sign, or with thousands separated.
_CODES = (
    "AUD|BGN|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|ISK|JPY|KRW|MXN|NOK|NZD|PLN"
    "|RON|RUB|SEK|SGD|TRY|USD|ZAR"
)
_UNIT = (
    rf"[$€£¥₹₽₩₺₴₪₫฿₦₱%‰]|(?:US|A|C|NZ|HK|R)\$|{_CODES}|kr\.?|Kr\.?|Fr\.?|zł|Kč|Ft|lei"
)
_SPACE = "[ \u00a0\u202f]?"
_FIRST_AMOUNT = re.compile(
    rf"[-+]?(?P<prefix>(?:(?:{_UNIT}){_SPACE})?)[-+]?"
    rf"\d[\d.,'’ \u00a0\u202f]*?(?P<suffix>(?:{_SPACE}(?:{_UNIT}))?)"
)
# what may separate thousands, by the decimal mark
_GROUPS = {".": ",'’ \u00a0\u202f", ",": ".'’ \u00a0\u202f"}

# Dates such as 31/12/2025.
_WRITTEN = r"^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})( \d{1,2}:\d\d(?::\d\d)?)?$"
_CLOCKS = {
    "": "",
    " %H:%M": r" \d{1,2}:\d\d",
    " %H:%M:%S": r" \d{1,2}:\d\d:\d\d",
}
_MONTHS = 12
_ORDERS: dict[DateOrder, tuple[str, str]] = {
    "dmy": ("%d{0}%m{0}%Y", "day{0}month{0}year"),
    "mdy": ("%m{0}%d{0}%Y", "month{0}day{0}year"),
}


@dataclass(eq=False)
class Typed:
    """Columns with their types, as what each was read, and what to say about them."""

    columns: Values
    kinds: dict[str, str]  # "" is text, and "code" is text that looks like numbers
    marks: set[str] = field(default_factory=set)  # of amounts with decimals
    dates: DateOrder | None = None  # the order that some are written in
    remarks: list[Remark] = field(default_factory=list)

    @property
    def frame(self) -> Any:
        """The columns as a table."""
        return polars.DataFrame(list(self.columns.values()))

    def names_of(self, *kinds: str) -> list[str]:
        """The columns that were read as one of these."""
        return [name for name, kind in self.kinds.items() if kind in kinds]

    @property
    def decimal(self) -> str | None:
        """The decimal mark of the file, if a number shows it."""
        if "," in self.marks or self.names_of(*_COMMA_NUMBERS):
            return ","
        if self.marks or self.names_of("number"):
            return "."
        return None


class _Dates(NamedTuple):
    """How the dates of a column are written."""

    mark: str  # between day, month and year
    clock: str  # the pattern of the time of day; empty: none
    orders: tuple[DateOrder, ...]  # that fit


def typed_table(
    cells: Any,
    missing: Sequence[str],
    reading: FileReading,
    separator: str = "",
    *,
    marked: Iterable[str] = (),
) -> Typed:
    """Strip spaces, read markers as missing, and give each column its type.

    That is the type that all its cells have. A comma that separates cells is no decimal
    mark unless asked for. Cells that were ``marked`` as missing are already.
    """
    stripped = cells.select(polars.all().str.strip_chars())
    is_present = ~polars.all().is_in(list(missing))
    present = stripped.select(polars.when(is_present).then(polars.all()))
    typed, decimal, remark = _numbers_read(present, reading.decimal, separator)
    markers = [marker for marker in missing if marker]
    with_marks = [column for column in stripped if column.is_in(markers).any()]
    counts = {
        marker: {column.name: (column == marker).sum() for column in with_marks}
        for marker in markers
    }
    typed.remarks += missing_remarks(counts)
    if remark:
        typed.remarks.append(remark)
    codes = typed.names_of("code")
    if codes:
        typed.remarks.append(
            (
                "as numbers, different texts would become one, such as 1.1 and 1.10, or"
                " lose a plus or an E, so these columns were read as text"
                f" ({', '.join(codes)}); if they are numbers, set ",
                Option("decimal"),
            )
        )

    _read_amounts(present, typed, decimal or (",." if typed.decimal == "," else _BOTH))
    _read_dates(present, typed, reading.date_order)
    used = [marker for marker in markers if any(counts[marker].values())]
    typed.remarks += _almost_numbers(present, typed, [*marked, *used])
    return typed


def _numbers_read(
    present: Any, decimal: str | None, separator: str
) -> tuple[Typed, str | None, Remark]:
    """Columns with plain types, the decimal mark if known, and what to say of it."""
    are_numbers = bool(decimal)
    marks = decimal or ("." if separator == "," else _BOTH)
    typed = _inferred(present, marks, are_numbers=are_numbers)
    numbers = typed.names_of(*_COMMA_NUMBERS) or typed.names_of("number")
    other = ""
    if marks == _BOTH and numbers:
        decimal, other = _decimal_mark(present, typed, separator)
        if decimal is not None:
            marks = "." if decimal == "." else ",."
            typed = _inferred(present, marks, are_numbers=are_numbers)

    if other:
        column = numbers[0]
        example = present[column].str.contains("[.,]").arg_max()
        what = (
            f"numbers such as {present[column][example]!r} were read as"
            f" {typed.columns[column][example]} ({', '.join(numbers)}); if that is"
            " wrong, set "
        )
        return typed, decimal, (what, Option("decimal", other))

    remark = ""
    commas = typed.names_of(*_COMMA_NUMBERS)
    if commas:
        remark = (
            "a comma was read as the decimal mark, and a point as the thousands"
            f" separator ({', '.join(commas)})"
        )
    return typed, decimal, remark


def missing_remarks(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Say which markers were read as missing, in which columns, and how often."""
    for marker, by_name in counts.items():
        found = [f"{name} {count:,}" for name, count in by_name.items() if count]
        if found:
            yield f"{marker!r} was read as missing ({', '.join(found)})"


def _almost_numbers(
    present: Any, typed: Typed, used: Sequence[str]
) -> Iterator[Remark]:
    """Say that a few texts, such as a hyphen, keep a column from being numbers.

    A text that is a value in a column of texts does not mean missing. The marks that
    are ``used`` have to be named, too, because the texts would replace them.
    """
    texts = typed.names_of("")
    mostly = [name for name in texts if _are_mostly_numbers(present[name])]
    values = [present[name] for name in texts if name not in mostly]
    for name in mostly:
        column = present[name]
        is_other = ~column.str.contains(_DIGITS)
        others = column.filter(is_other).unique(maintain_order=True)
        if not 1 <= len(others) <= _FEW or any(map(is_total, others)):
            continue
        if any(column.is_in(others.to_list()).any() for column in values):
            continue
        rest = column.set(column.is_in(others.to_list()), None)
        is_numeric = _infer(rest, _BOTH)[0].dtype.is_numeric()
        if not is_numeric and _amounts(rest, _BOTH) is None:
            continue
        # which are left out, and may name a person
        if not Domain.infer(present.select(name)).identifiers:
            shown = ", ".join(repr(cut(text)) for text in others)
            cells = counted(rest.null_count() - column.null_count(), "cell")
            yield (
                f"{name} was read as text because of {shown} in {cells}; if this means"
                " missing, set ",
                Option("missing_text", (*used, *others)),
            )


def _are_mostly_numbers(column: Any) -> bool:
    looks = column.head(_LOOKED_AT).drop_nulls().str.contains(_DIGITS)
    return bool(len(looks) and looks.mean() >= _MOSTLY)


def _inferred(present: Any, marks: str, *, are_numbers: bool) -> Typed:
    typed = Typed({}, {})
    for column in present:
        read, kind = _infer(column, marks)
        if not are_numbers and _are_codes(column.drop_nulls(), read, kind):
            read = column
            kind = "code"
        typed.columns[column.name] = read
        typed.kinds[column.name] = kind
    return typed


def _are_codes(cells: Any, numbers: Any, kind: str) -> bool:
    """Whether numbers would merge texts (1.1 and 1.10), or lose +49 or 1E3."""
    has_plus = cells.str.starts_with("+").any()
    if has_plus and cells.str.contains(_PLUS).all():
        return True
    if kind not in ("number", *_COMMA_NUMBERS) and not (has_plus and kind == "whole"):
        return False
    count = numbers.drop_nulls().n_unique()
    if count < cells.n_unique():
        without_minus_zero = cells.str.replace(r"^-(0[.,0]*)$", "${1}")
        if count < without_minus_zero.n_unique():
            return True
    return cells.str.contains(_EXPONENT).any()


def _decimal_mark(present: Any, typed: Typed, separator: str) -> tuple[str | None, str]:
    """The decimal mark of the file, and the other one, if that may be it.

    None if it is the point, as it was read. A comma is the decimal mark unless an
    amount, such as 1,234.50, says otherwise, and no column contradicts it. If nothing
    but 2.100 shows what a point means, it separates thousands where the comma is free,
    beside semicolons.
    """
    commas = typed.names_of(*_COMMA_NUMBERS)
    groups = _KINDS["thousands"]
    if commas:
        groups = _COMMA_GROUPS
    are_groups = all(
        present[name].str.contains(groups).all()
        for name in commas or typed.names_of("number")
    )
    if are_groups and not _shows_points(present, typed):
        if commas or separator == ";":
            return ",", "."
        return None, ","

    if not commas:
        return None, ""
    if not are_groups:
        return ",", ""
    return ".", ""


def _shows_points(present: Any, typed: Typed) -> bool:
    """Whether an amount, such as 1,234.50, has a point that can only be decimal."""
    texts = (_amounts(present[name], _BOTH) for name in typed.names_of(""))
    return any(text and text.is_decisive and text.decimal == "." for text in texts)


def _infer(column: Any, marks: str) -> tuple[Any, str]:
    """The column as what every cell is, else as text; and which kind that is."""
    cells = column.drop_nulls()
    if not len(cells):
        return column, ""
    kinds = ["whole"]
    for mark in marks:
        kinds += _COMMA_NUMBERS if mark == "," else ("number",)
    for kind in (*kinds, "truth", "date", "time"):
        if _parsed(cells[:1], kind).null_count() == 0:
            parsed = _parsed(column, kind)
            if parsed.null_count() == column.null_count():
                return parsed, kind
    return column, ""


def _parsed(column: Any, kind: str) -> Any:
    """Read a column of text as values of a kind; what is none becomes missing."""
    if _KINDS[kind]:
        others = ~column.str.contains(_KINDS[kind])
    else:
        others = column.str.contains(_CODE)

    text = column.set(others, None)
    if kind == "truth":
        return text == "true"
    if kind == "date":
        return text.str.to_date("%Y-%m-%d", strict=False)
    if kind == "time":
        return text.str.replace(" ", "T").str.to_datetime(
            "%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us"
        )

    if kind in _COMMA_NUMBERS:
        text = text.str.replace_all(".", "", literal=True)
        text = text.str.replace(",", ".", literal=True)
    is_whole = kind in ("whole", "thousands")
    return text.cast(polars.Int64 if is_whole else polars.Float64, strict=False)


@dataclass(frozen=True, eq=False)
class _Amounts:
    """A column of amounts as numbers, and how they are written."""

    column: Any
    decimal: str
    # the decimal mark, what separates thousands, and what stands before and after
    form: tuple[str, ...]
    has_decimals: bool  # all of the first ones
    example: str
    is_decisive: bool  # no other decimal mark is possible


def _read_amounts(present: Any, typed: Typed, marks: str) -> None:
    """Read the columns of text that hold amounts."""
    read = {name: _amounts(present[name], marks) for name in typed.names_of("")}
    amounts = {name: amount for name, amount in read.items() if amount is not None}
    decisive = {amount.decimal for amount in amounts.values() if amount.is_decisive}
    if marks == _BOTH and decisive == {","}:
        # then the other columns are probably written in the same way
        amounts = {
            name: _amounts(present[name], ",.") or amount
            for name, amount in amounts.items()
        }

    by_form: dict[tuple[str, ...], list[str]] = {}
    for name, amount in amounts.items():
        typed.columns[name] = amount.column
        typed.kinds[name] = "amount"
        if amount.has_decimals:
            typed.marks |= {amount.decimal}
        by_form.setdefault(amount.form, []).append(name)

    for names in by_form.values():
        amount = amounts[names[0]]
        value = amount.column.filter(present[names[0]] == amount.example)[0]
        typed.remarks.append(
            f"numbers such as {cut(amount.example)!r} were read as {value}"
            f" ({', '.join(names)})"
        )


def _amounts(column: Any, decimals: Sequence[str]) -> _Amounts | None:
    """Read a column of text as amounts; None if none of these decimal marks fits.

    The first that fits all cells is taken. All cells must have the same sign of a
    currency, or none and a separator of thousands in one of them at least.
    """
    first = _FIRST_AMOUNT.fullmatch(column.first(ignore_nulls=True) or "")
    if first is None:
        return None
    prefix = first["prefix"].strip()
    suffix = first["suffix"].strip()
    pattern = _amount_pattern(prefix, suffix)
    if not column.str.contains(pattern).all():
        return None
    bare = column.str.replace(pattern, "${1}${2}${3}")
    fitting = _fitting_marks(bare, decimals, has_unit=bool(prefix or suffix))
    if not fitting:
        return None
    decimal, group = fitting[0]
    if not bare.str.contains(group, literal=True).any():
        group = ""
    plain = bare.str.replace_all(group, "", literal=True)
    plain = plain.str.replace(decimal, ".", literal=True)
    has_points = bare.str.contains(decimal, literal=True).any()
    numbers = plain.cast(polars.Float64 if has_points else polars.Int64, strict=False)
    if numbers.null_count() != column.null_count():
        return None
    example = column.drop_nulls().head(_LOOKED_AT)
    for sign in filter(None, (group, decimal)):  # that shows best how all are written
        narrowed = example.filter(example.str.contains(sign, literal=True))
        if len(narrowed):
            example = narrowed

    with_decimals = rf"{re.escape(decimal)}\d+$"
    looked_at = bare.head(_LOOKED_AT).drop_nulls()
    return _Amounts(
        column=numbers,
        decimal=decimal,
        form=(decimal, group, first["prefix"], first["suffix"]),
        has_decimals=looked_at.str.contains(with_decimals).all(),
        example=example[0],
        is_decisive=len({mark for mark, _ in fitting}) == 1 and len(decimals) > 1,
    )


def _amount_pattern(prefix: str, suffix: str) -> str:
    """What all cells match that are written like the first."""
    start = "^([-+]?)()"
    if prefix:
        start = rf"^([-+]?)\s*{re.escape(prefix)}\s*([-+]?)"
    end = "$"
    if suffix:
        end = rf"\s*{re.escape(suffix)}$"
    return rf"{start}(\d[\d.,'’ \u00a0\u202f]*?){end}"


def _fitting_marks(
    bare: Any, decimals: Sequence[str], *, has_unit: bool
) -> list[tuple[str, str]]:
    """The decimal marks and separators of thousands that fit all cells, best first.

    An amount of money has three decimals only if it cannot be read otherwise: € 1.234
    is more than a thousand.
    """
    parts: tuple[str, ...] = (r"\d+",)
    if has_unit:
        parts = (r"(?:\d{1,2}|\d{4,})", r"\d+")
    return [
        (decimal, group)
        for part in parts
        for decimal in decimals
        for group in _GROUPS[decimal]
        if _fits(bare, re.escape(decimal), re.escape(group), part)
        and (has_unit or bare.str.contains(group, literal=True).any())
    ]


def _fits(
    bare: Any,
    decimal: str,
    group: str,
    part: str,
) -> bool:
    whole = rf"(?:0|[1-9]\d{{0,14}}|[1-9]\d{{0,2}}(?:{group}\d{{3}}){{1,4}})"
    return bare.str.contains(rf"^[-+]?{whole}(?:{decimal}{part})?$").all()


def _read_dates(present: Any, typed: Typed, assumed: DateOrder | None) -> None:
    """Read the columns of text that hold dates.

    Those that allow both orders follow the others, and else the assumed order.
    """
    found = {name: _dates(present[name]) for name in typed.names_of("")}
    candidates = {name: dates for name, dates in found.items() if dates is not None}
    clear = {
        name: dates.orders[0]
        for name, dates in candidates.items()
        if len(dates.orders) == 1
    }
    why = "" if assumed else ", like other dates or numbers in the file"
    evidence = {order for name, order in clear.items() if candidates[name].mark != "."}
    if not evidence and (typed.decimal == "," or clear):  # by points
        evidence = {"dmy"}
    if assumed is None and len(evidence) == 1:
        assumed = evidence.pop()
    for name, dates in candidates.items():
        column = present[name]
        order = clear.get(name, assumed)
        read = None
        if order is not None and order in dates.orders:
            read = _dates_read(column, dates, order)
        if order is not None and read is not None:
            typed.columns[name] = read
            typed.kinds[name] = "dates"
            typed.dates = order
            words = _ORDERS[order][1].format(dates.mark)
            because = "" if name in clear else why
            typed.remarks.append(f"dates were read as {words}{because} ({name})")
        elif len(dates.orders) > 1:
            both = " or ".join(
                words.format(dates.mark) for _, words in _ORDERS.values()
            )
            typed.remarks.append(
                (
                    f"{name} was read as text, because"
                    f" {column.first(ignore_nulls=True)} can be {both}; set ",
                    Option("date_order", "dmy"),
                    " or ",
                    Option("date_order", "mdy"),
                )
            )


def _dates_read(column: Any, dates: _Dates, order: DateOrder) -> Any | None:
    """The dates, written in this order; None if there is a day such as 31 February."""
    pattern = _ORDERS[order][0].format(dates.mark) + dates.clock
    kind = polars.Datetime("us") if dates.clock else polars.Date
    read = column.str.strptime(kind, pattern, strict=False)
    if read.null_count() != column.null_count():
        return None
    return read


def _dates(column: Any) -> _Dates | None:
    """How the dates of a column are written; None if a cell is no date.

    With points the day comes first; with slashes or hyphens the order must show in a
    day after the 12th.
    """
    first = re.fullmatch(_WRITTEN, column.first(ignore_nulls=True) or "")
    if first is None or first[2] != first[4]:
        return None
    cells = column.drop_nulls()
    mark = re.escape(first[2])
    clock = list(_CLOCKS)[(first[6] or "").count(":")]
    written = rf"^\d{{1,2}}{mark}\d{{1,2}}{mark}\d{{4}}{_CLOCKS[clock]}$"
    if not cells.str.contains(written).all():
        return None
    whole = polars.Int64
    largest_first = cells.str.extract(_WRITTEN, 1).cast(whole).max()
    largest_second = cells.str.extract(_WRITTEN, 3).cast(whole).max()
    orders: list[DateOrder] = []
    if largest_second <= _MONTHS:
        orders.append("dmy")
    if largest_first <= _MONTHS and first[2] != ".":
        orders.append("mdy")
    if not orders:
        return None
    return _Dates(first[2], clock, tuple(orders))
