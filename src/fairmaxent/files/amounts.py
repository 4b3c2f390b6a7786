"""Amounts: numbers as offices write them, with separators between thousands, a currency, or a per cent sign."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.data.frames import load_library

LOOKED_AT = 1000
"""How many cells of a column are looked at to see how they are written."""

_CODES = "AUD|BGN|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|ISK|JPY|KRW|MXN|NOK|NZD|PLN|RON|RUB|SEK|SGD|TRY|USD|ZAR"
_UNIT = rf"[$€£¥₹₽₩₺₴₪₫฿₦₱%‰]|(?:US|A|C|NZ|HK|R)\$|{_CODES}|kr\.?|Kr\.?|Fr\.?|zł|Kč|Ft|lei"
_SPACE = "[ \u00a0\u202f]?"
_FIRST = re.compile(
    rf"[-+]?(?P<prefix>(?:(?:{_UNIT}){_SPACE})?)[-+]?"
    rf"\d[\d.,'’ \u00a0\u202f]*?(?P<suffix>(?:{_SPACE}(?:{_UNIT}))?)"
)
_GROUPS = {".": ",'’ \u00a0\u202f", ",": ".'’ \u00a0\u202f"}  # what may separate thousands, by the decimal mark


@dataclass(frozen=True, eq=False)
class Amounts:
    """A column of amounts as numbers, and how they are written."""

    column: Any
    decimal: str
    group: str  # between thousands
    prefix: str  # such as "€ "
    suffix: str  # such as " €"
    has_decimals: bool  # all of the first ones
    example: str
    is_decisive: bool  # no other decimal mark is possible


def read_amounts(column: Any, decimals: Sequence[str]) -> Amounts | None:
    """Read a column of text as amounts with the first of these decimal marks that fits all cells; None if none does.

    All cells must have the same sign of a currency, or none and a separator of thousands in one of them at least.
    """
    first = _FIRST.fullmatch(first_cell(column) or "")
    if first is None:
        return None
    bare = _without_unit(column, first["prefix"].strip(), first["suffix"].strip())
    if bare is None:
        return None
    has_unit = bool(first["prefix"] or first["suffix"])
    fitting = [form for form in _candidates(decimals, has_unit) if _fits(bare, *form)]
    if not has_unit:
        fitting = [form for form in fitting if bare.str.contains(form[1], literal=True).any()]
    if not fitting:
        return None
    decimal, group, _ = fitting[0]
    group = group if bare.str.contains(group, literal=True).any() else ""
    numbers = _numbers(bare, decimal, group)
    if numbers.null_count() != column.null_count():
        return None
    return Amounts(
        numbers,
        decimal,
        group,
        first["prefix"],
        first["suffix"],
        bool(bare.head(LOOKED_AT).drop_nulls().str.contains(rf"{re.escape(decimal)}\d+$").all()),
        _example(column.drop_nulls(), group, decimal),
        is_decisive=len({mark for mark, _, _ in fitting}) == 1 and len(decimals) > 1,
    )


def first_cell(column: Any) -> str | None:
    """The first cell of a column of text that is not missing."""
    cells = column.head(LOOKED_AT).drop_nulls()
    cells = cells if len(cells) else column.drop_nulls()
    return str(cells[0]) if len(cells) else None


def _candidates(decimals: Sequence[str], has_unit: bool) -> Iterator[tuple[str, str, bool]]:  # noqa: FBT001
    """Decimal mark, separator of thousands, and whether three decimals are possible.

    An amount of money has three decimals only if it cannot be read otherwise: € 1.234 is more than a thousand.
    """
    for three in (False, True) if has_unit else (True,):
        for decimal in decimals:
            for group in _GROUPS[decimal]:
                yield decimal, group, three


def _fits(bare: Any, decimal: str, group: str, three: bool) -> bool:  # noqa: FBT001
    whole = rf"(?:0|[1-9]\d{{0,14}}|[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}}){{1,4}})"
    part = r"\d+" if three else r"(?:\d{1,2}|\d{4,})"
    return bool(bare.str.contains(rf"^[-+]?{whole}(?:{re.escape(decimal)}{part})?$").all())


def _without_unit(column: Any, prefix: str, suffix: str) -> Any | None:
    """The cells as sign and digits, or None if one has another unit."""
    start = rf"^([-+]?)\s*{re.escape(prefix)}\s*([-+]?)" if prefix else r"^([-+]?)()"
    end = rf"\s*{re.escape(suffix)}$" if suffix else "$"
    pattern = rf"{start}(\d[\d.,'’ \u00a0\u202f]*?){end}"
    return column.str.replace(pattern, "${1}${2}${3}") if column.str.contains(pattern).all() else None


def _numbers(bare: Any, decimal: str, group: str) -> Any:
    polars = load_library("polars")
    whole = not bare.str.contains(decimal, literal=True).any()
    plain = bare.str.replace_all(group, "", literal=True) if group else bare
    plain = plain.str.replace(decimal, ".", literal=True)
    return plain.cast(polars.Int64 if whole else polars.Float64, strict=False)


def _example(cells: Any, *signs: str) -> str:
    """A cell that shows best how all are written."""
    best = cells.head(LOOKED_AT)
    for sign in signs:
        narrowed = best.filter(best.str.contains(sign, literal=True)) if sign else best
        best = narrowed if len(narrowed) else best
    return str(best[0])
