"""The form of a table in a file: what people see beside its values, kept so that a result can look the same."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal as Exact
from typing import Any

from fairmaxent.errors import InputError, Option
from fairmaxent.files.formats import SUFFIXES, FileFormat, output_format, suffixes_of

_TOO_LONG = 10**15  # more digits are read as a code


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written: marks, signs before and after, and how many decimals at least."""

    decimal: str = "."
    group: str = ""  # between thousands
    prefix: str = ""  # such as "€ "
    suffix: str = ""  # such as " €"
    decimals: int = 0
    minus_first: bool = True  # -€ 5, not € -5

    @property
    def is_plain(self) -> bool:
        """Whether programs write numbers like this."""
        return self.decimal == "." and not (self.group or self.prefix or self.suffix)

    def written(self, number: float) -> str:
        """Write a number; no digit is lost.

        >>> NumberForm(",", ".", suffix=" €", decimals=2).written(-1234.5)
        '-1.234,50 €'
        """
        if not math.isfinite(number):
            return str(number)
        if abs(number) >= _TOO_LONG:
            return f"{Exact(repr(number)):.17E}".replace(".", self.decimal)
        digits = format(Exact(repr(number)), "f")
        minus = "-" if digits.startswith("-") else ""
        whole, _, part = digits.lstrip("-").partition(".")
        part = part.rstrip("0").ljust(self.decimals, "0")
        text = f"{int(whole):,}".replace(",", self.group) + (self.decimal + part if part else "")
        return (
            f"{minus}{self.prefix}{text}{self.suffix}"
            if self.minus_first
            else f"{self.prefix}{minus}{text}{self.suffix}"
        )


@dataclass(frozen=True)
class DateForm:
    """How the dates or times of a column are written, as a pattern of strftime."""

    pattern: str

    @property
    def is_plain(self) -> bool:
        """Whether programs write dates like this."""
        return self.pattern.startswith("%Y-")


ColumnForm = NumberForm | DateForm


@dataclass(frozen=True)
class TableForm:
    """The form of a table whose file stores its types itself; only the format can be kept."""

    format: FileFormat

    @property
    def is_office(self) -> bool:
        """Whether an office would miss the form of its file in a result written as programs do."""
        return False

    @property
    def has_title(self) -> bool:
        """Whether lines above the header are kept."""
        return False

    @property
    def suffix(self) -> str:
        """The suffix of a file in this form."""
        return f".{self.format}"

    def output_format(self, path: str | os.PathLike[str], format: FileFormat | None = None) -> FileFormat:
        """Return the format of a result in this form, or refuse a name or format that means another."""
        named = format or (output_format(path)[0] if any(map(SUFFIXES.get, suffixes_of(path))) else self.format)
        if named != self.format and {named, self.format} != {"csv", "tsv"}:
            raise InputError(
                Option("like_input"),
                f" writes {self.format}, as the input is, and {path} is to be {named}; name a file that ends in "
                f"{self.suffix}, or leave out ",
                Option("like_input"),
            )
        return self.format


@dataclass(frozen=True)
class CsvForm(TableForm):
    """The form of a CSV."""

    separator: str
    encoding: str = "utf-8"
    has_mark: bool = False  # it begins with the mark of its encoding (BOM)
    line_end: str = "\n"
    separator_line: str = ""  # such as "sep=;"
    title: str = ""  # the lines above the header, with line feeds
    has_header: bool = True
    decimal: str = "."
    columns: Mapping[str, ColumnForm] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # what stands for a missing value, if it is not empty

    @property
    def has_title(self) -> bool:
        """Whether lines above the header are kept."""
        return bool(self.title.strip())

    @property
    def is_office(self) -> bool:
        """Whether it has more than commas or tabs, UTF-8, and numbers and dates as programs write them."""
        plain = self.separator in ",\t" and self.encoding == "utf-8" and self.decimal == "."
        return (
            not plain
            or self.has_mark
            or bool(self.separator_line or self.title)
            or not all(form.is_plain for form in self.columns.values())
        )


@dataclass(frozen=True)
class SheetForm(TableForm):
    """The form of a table in a sheet of an Excel workbook."""

    sheet: str
    title: tuple[tuple[Any, ...], ...] = ()  # the rows above the header
    first_column: int = 0  # how many columns are empty before the table
    has_header: bool = True
    columns: Mapping[str, str] = field(default_factory=dict)  # number formats, as Excel writes them
    lost: tuple[str, ...] = ()  # what the sheet or the workbook has that a result does not

    @property
    def has_title(self) -> bool:
        """Whether rows above the header are kept."""
        return any(value is not None for row in self.title for value in row)

    @property
    def is_office(self) -> bool:
        """Always: no program writes a workbook unasked."""
        return True
