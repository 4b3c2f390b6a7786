"""Cells of text as values: each column gets the type that all its cells have, and notes
say how it was read.

Beside plain numbers and dates, these are amounts (thousands separated, a currency, a
per cent sign) and dates such as 31/12/2025, as offices write them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairmaxent.data.declaration import DateOrder
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import load_library
from fairmaxent.data.identifiers import is_total
from fairmaxent.document.words import counted
from fairmaxent.errors import Option, cut
from fairmaxent.files.reading import FileReading, Remark

_LOOKED_AT = 1000  # cells of a column, to see how they are written
_BOTH = ".,"
_MOSTLY = 0.5  # of the cells are numbers
_FEW = 3  # other texts
# a number or an amount, more or less
_DIGITS = r"^\D{0,5}\d[\d.,'’ \u00a0\u202f]*\D{0,5}$"
# ---------------------------------------------------------------- plain values What all
# cells of each kind match, in the order in which they are tried; codes are no numbers.
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
# ---------------------------------------------------------------- amounts
_CODES = "AUD|BGN|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|ISK|JPY|KRW|MXN|NOK|NZD|PLN|RON|RUB|SEK|SGD|TRY|USD|ZAR"
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
# ---------------------------------------------------------------- dates such as
# 31/12/2025
_WRITTEN = r"^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})( \d{1,2}:\d\d(?::\d\d)?)?$"
_CLOCKS = {"": "", " %H:%M": r" \d{1,2}:\d\d", " %H:%M:%S": r" \d{1,2}:\d\d:\d\d"}
_MONTHS = 12
_ORDERS: dict[DateOrder, tuple[str, str]] = {
    "dmy": ("%d{0}%m{0}%Y", "day{0}month{0}year"),
    "mdy": ("%m{0}%d{0}%Y", "month{0}day{0}year"),
}


@dataclass(eq=False)
class Typed:
    """Columns with their types, as what each was read, and what to say about them."""

    columns: dict[str, Any]
    kinds: dict[str, str]  # "" is text, and "code" is text that looks like numbers
    marks: set[str] = field(default_factory=set)  # of amounts with decimals
    dates: DateOrder | None = None  # the order that some are written in
    remarks: list[Remark] = field(default_factory=list)

    @property
    def frame(self) -> Any:
        """The columns as a table."""
        return load_library("polars").DataFrame(list(self.columns.values()))

    def names_of(self, *kinds: str) -> list[str]:
        """The columns that were read as one of these."""
        return [name for name, kind in self.kinds.items() if kind in kinds]

    @property
    def decimal(self) -> str | None:
        """The decimal mark of the file, if a number shows it."""
        if "," in self.marks or self.names_of(*_COMMA_NUMBERS):
            return ","
        return "." if self.marks or self.names_of("number") else None


def typed_table(
    cells: Any, missing: Sequence[str], reading: FileReading, separator: str = ""
) -> Typed:
    """Strip spaces, read markers as missing, and give each column the type that all its
    cells have.

    A comma that separates cells is no decimal mark unless asked for.
    """
    polars = load_library("polars")
    stripped = cells.select(polars.all().str.strip_chars())
    present = stripped.select(
        polars.when(~polars.all().is_in(list(missing))).then(polars.all())
    )
    decimal: str | None = reading.decimal
    marks = decimal or ("." if separator == "," else _BOTH)
    are_numbers = bool(decimal)
    other = ""
    typed = _inferred(present, marks, are_numbers=are_numbers)
    if marks == _BOTH and (
        numbers := typed.names_of(*_COMMA_NUMBERS) or typed.names_of("number")
    ):
        decimal, other = _decimal_mark(present, typed, separator)
        if decimal is not None:
            typed = _inferred(
                present, "." if decimal == "." else ",.", are_numbers=are_numbers
            )
    markers = [marker for marker in missing if marker]
    marked = [column for column in stripped if column.is_in(markers).any()]
    counts = {
        marker: {column.name: int((column == marker).sum()) for column in marked}
        for marker in markers
    }
    typed.remarks += missing_remarks(counts)
    if other:
        example = int(present[numbers[0]].str.contains("[.,]").arg_max())
        text = present[numbers[0]][example]
        value = typed.columns[numbers[0]][example]
        what = (
            f"numbers such as {text!r} were read as {value} ({', '.join(numbers)}); if"
            " that is wrong, set "
        )
        typed.remarks.append((what, Option("decimal", other)))
    elif numbers := typed.names_of(*_COMMA_NUMBERS):
        what = (
            "a comma was read as the decimal mark, and a point as the thousands"
            " separator"
        )
        typed.remarks.append(f"{what} ({', '.join(numbers)})")
    if codes := typed.names_of("code"):
        what = (
            "as numbers, different texts would become one, such as 1.1 and 1.10, or"
            " lose a plus or an E, so these "
        )
        what += (
            f"columns were read as text ({', '.join(codes)}); if they are numbers, set "
        )
        typed.remarks.append((what, Option("decimal")))
    _read_amounts(present, typed, decimal or (",." if typed.decimal == "," else _BOTH))
    _read_dates(present, typed, reading.date_order)
    typed.remarks += _almost_numbers(present, typed)
    return typed


def missing_remarks(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Say which markers were read as a missing value, in which columns, and how
    often.
    """
    for marker, by_name in counts.items():
        if columns := ", ".join(
            f"{name} {count:,}" for name, count in by_name.items() if count
        ):
            yield f"{marker!r} was read as missing ({columns})"


def _almost_numbers(present: Any, typed: Typed) -> Iterator[Remark]:
    """Say that a few other texts keep a column from being numbers, such as a hyphen
    that means missing.
    """
    for name in typed.names_of(""):
        column = present[name]
        looks = column.head(_LOOKED_AT).drop_nulls().str.contains(_DIGITS)
        if not len(looks) or looks.mean() < _MOSTLY:
            continue
        others = column.filter(~column.str.contains(_DIGITS)).unique(
            maintain_order=True
        )
        rest = column.set(column.is_in(others.to_list()), None)
        are_few = 1 <= len(others) <= _FEW and not any(map(is_total, others))
        if not are_few or not (
            _infer(rest, _BOTH)[0].dtype.is_numeric()
            or _amounts(rest, _BOTH) is not None
        ):
            continue
        # which are left out, and may name a person
        if not Domain.infer(present.select(name)).identifiers:
            shown = ", ".join(repr(cut(text)) for text in others)
            cells = counted(rest.null_count() - column.null_count(), "cell")
            what = (
                f"{name} was read as text because of {shown} in {cells}; if this means"
                " missing, set "
            )
            yield (what, Option("missing_text", others[0]))


def _inferred(present: Any, marks: str, *, are_numbers: bool) -> Typed:
    typed = Typed({}, {})
    for column in present:
        read, kind = _infer(column, marks)
        if not are_numbers and _are_codes(column.drop_nulls(), read, kind):
            read = column
            kind = "code"
        typed.columns[column.name], typed.kinds[column.name] = read, kind
    return typed


def _are_codes(cells: Any, numbers: Any, kind: str) -> bool:
    """Whether numbers would make different texts one, such as 1.1 and 1.10, or lose
    what codes have: +4912345, 1E3.
    """
    has_plus = cells.str.starts_with("+").any()
    if has_plus and cells.str.contains(_PLUS).all():
        return True
    if kind not in ("number", *_COMMA_NUMBERS) and not (has_plus and kind == "whole"):
        return False
    count = numbers.drop_nulls().n_unique()
    merges = (
        count < cells.n_unique()
        and count < cells.str.replace(r"^-(0[.,0]*)$", "${1}").n_unique()
    )
    return bool(merges or cells.str.contains(_EXPONENT).any())


def _decimal_mark(present: Any, typed: Typed, separator: str) -> tuple[str | None, str]:
    """The decimal mark of the file, None if it is the point as it was read, and the
    other one, if that may be it.
    """
    # A comma is the decimal mark unless an amount, such as 1,234.50, says otherwise,
    # and no column contradicts it. If nothing but 2.100 shows what a point means, it
    # separates thousands where the comma is free, beside semicolons.
    commas = typed.names_of(*_COMMA_NUMBERS)
    amounts = filter(
        None, (_amounts(present[name], _BOTH) for name in typed.names_of(""))
    )
    has_points = any(amount.is_decisive and amount.decimal == "." for amount in amounts)
    if commas:
        groups = _COMMA_GROUPS
    else:
        groups = _KINDS["thousands"]
    are_groups = all(
        present[name].str.contains(groups).all()
        for name in commas or typed.names_of("number")
    )
    if not are_groups or has_points:
        return ("." if are_groups else ",") if commas else None, ""
    return ("," if commas or separator == ";" else None), (
        "." if commas or separator == ";" else ","
    )


def _infer(column: Any, marks: str) -> tuple[Any, str]:
    """The column as integers, numbers, Booleans, dates or times if every cell is one,
    else as text; and which.
    """
    cells = column.drop_nulls()
    numbers = [
        kind
        for mark in marks
        for kind in (_COMMA_NUMBERS if mark == "," else ("number",))
    ]
    for kind in ("whole", *numbers, "truth", "date", "time") if len(cells) else ():
        if _parsed(cells[:1], kind).null_count() == 0:
            parsed = _parsed(column, kind)
            if parsed.null_count() == column.null_count():
                return parsed, kind
    return column, ""


def _parsed(column: Any, kind: str) -> Any:
    """Read a column of text as values of a kind; what is none becomes missing."""
    polars = load_library("polars")
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
        text = text.str.replace_all(".", "", literal=True).str.replace(
            ",", ".", literal=True
        )
    return text.cast(
        polars.Int64 if kind in ("whole", "thousands") else polars.Float64, strict=False
    )


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
    if marks == _BOTH and {
        amount.decimal for amount in amounts.values() if amount.is_decisive
    } == {","}:
        # then the other columns are probably written in the same way
        amounts = {
            name: _amounts(present[name], ",.") or amount
            for name, amount in amounts.items()
        }
    by_form: dict[tuple[str, ...], list[str]] = {}
    for name, amount in amounts.items():
        typed.columns[name], typed.kinds[name] = amount.column, "amount"
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
    """Read a column of text as amounts with the first of these decimal marks that fits
    all cells; None if none does.
    """
    # All cells must have the same sign of a currency, or none and a separator of
    # thousands in one of them at least.
    polars = load_library("polars")
    first = _FIRST_AMOUNT.fullmatch(column.first(ignore_nulls=True) or "")
    if first is None:
        return None
    prefix = re.escape(first["prefix"].strip())
    suffix = re.escape(first["suffix"].strip())
    if prefix:
        start = rf"^([-+]?)\s*{prefix}\s*([-+]?)"
    else:
        start = "^([-+]?)()"
    pattern = rf"{start}(\d[\d.,'’ \u00a0\u202f]*?)" + (
        rf"\s*{suffix}$" if suffix else "$"
    )
    if not column.str.contains(pattern).all():
        return None
    bare = column.str.replace(pattern, "${1}${2}${3}")
    has_unit = bool(prefix or suffix)
    fitting = [
        (decimal, group)
        # An amount of money has three decimals only if it cannot be read otherwise: €
        # 1.234 is more than a thousand.
        for part in ((r"(?:\d{1,2}|\d{4,})", r"\d+") if has_unit else (r"\d+",))
        for decimal in decimals
        for group in _GROUPS[decimal]
        if _fits(bare, re.escape(decimal), re.escape(group), part)
        and (has_unit or bare.str.contains(group, literal=True).any())
    ]
    if not fitting:
        return None
    decimal, group = fitting[0]
    group = group if bare.str.contains(group, literal=True).any() else ""
    plain = (
        bare.str.replace_all(group, "", literal=True) if group else bare
    ).str.replace(decimal, ".", literal=True)
    whole = not bare.str.contains(decimal, literal=True).any()
    numbers = plain.cast(polars.Int64 if whole else polars.Float64, strict=False)
    if numbers.null_count() != column.null_count():
        return None
    example = column.drop_nulls().head(_LOOKED_AT)
    for sign in filter(None, (group, decimal)):  # that shows best how all are written
        narrowed = example.filter(example.str.contains(sign, literal=True))
        example = narrowed if len(narrowed) else example
    form = decimal, group, first["prefix"], first["suffix"]
    has_decimals = bool(
        bare.head(_LOOKED_AT)
        .drop_nulls()
        .str.contains(rf"{re.escape(decimal)}\d+$")
        .all()
    )
    is_decisive = len({mark for mark, _ in fitting}) == 1 and len(decimals) > 1
    return _Amounts(numbers, decimal, form, has_decimals, str(example[0]), is_decisive)


def _fits(bare: Any, decimal: str, group: str, part: str) -> bool:
    whole = rf"(?:0|[1-9]\d{{0,14}}|[1-9]\d{{0,2}}(?:{group}\d{{3}}){{1,4}})"
    return bool(bare.str.contains(rf"^[-+]?{whole}(?:{decimal}{part})?$").all())


def _read_dates(present: Any, typed: Typed, assumed: DateOrder | None) -> None:
    """Read the columns of text that hold dates; those that allow both orders follow the
    others.
    """
    polars = load_library("polars")
    candidates = {
        name: dates
        for name in typed.names_of("")
        if (dates := _dates(present[name])) is not None
    }
    clear = {
        name: orders[0]
        for name, (_, _, orders) in candidates.items()
        if len(orders) == 1
    }
    evidence = {order for name, order in clear.items() if candidates[name][0] != "."}
    why = "" if assumed else ", like other dates or numbers in the file"
    if not evidence and (typed.decimal == "," or clear):  # by points
        evidence = {"dmy"}
    if assumed is None and len(evidence) == 1:
        assumed = evidence.pop()
    for name, (mark, time, orders) in candidates.items():
        order = clear.get(name, assumed)
        column = present[name]
        if order is not None and order in orders:
            pattern, words = (text.format(mark) for text in _ORDERS[order])
            read = column.str.strptime(
                polars.Datetime("us") if time else polars.Date,
                pattern + time,
                strict=False,
            )
            # otherwise there is a day such as 31 February
            if read.null_count() == column.null_count():
                typed.columns[name], typed.kinds[name], typed.dates = (
                    read,
                    "dates",
                    order,
                )
                typed.remarks.append(
                    f"dates were read as {words}{'' if name in clear else why} ({name})"
                )
                continue
        if len(orders) > 1:
            both = " or ".join(words.format(mark) for _, words in _ORDERS.values())
            what = (
                f"{name} was read as text, because {column.first(ignore_nulls=True)}"
                f" can be {both}; set "
            )
            typed.remarks.append(
                (what, Option("date_order", "dmy"), " or ", Option("date_order", "mdy"))
            )


def _dates(column: Any) -> tuple[str, str, tuple[DateOrder, ...]] | None:
    """The mark, the pattern of the time of day (empty: none) and the orders that fit;
    None if a cell is no date.
    """
    # With points the day comes first; with slashes or hyphens the order must show in a
    # day after the 12th.
    first = re.fullmatch(_WRITTEN, column.first(ignore_nulls=True) or "")
    if first is None or first[2] != first[4]:
        return None
    cells = column.drop_nulls()
    mark = re.escape(first[2])
    time = list(_CLOCKS)[(first[6] or "").count(":")]
    if not cells.str.contains(
        rf"^\d{{1,2}}{mark}\d{{1,2}}{mark}\d{{4}}{_CLOCKS[time]}$"
    ).all():
        return None
    largest = [
        int(cells.str.extract(_WRITTEN, group).cast(load_library("polars").Int64).max())
        for group in (1, 3)
    ]
    allowed = {
        "dmy": largest[1] <= _MONTHS,
        "mdy": largest[0] <= _MONTHS and first[2] != ".",
    }
    orders = tuple(order for order in _ORDERS if allowed[order])
    if orders:
        return (first[2], time, orders)
    return None
