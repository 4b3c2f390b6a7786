"""The sheets of an Excel workbook: their names, and the cells of one of them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fairmaxent.data.limits import need_memory
from fairmaxent.errors import InputError, Option, StorageError, cut, did_you_mean
from fairmaxent.files.xlsx_package import Package, open_package
from fairmaxent.files.xlsx_values import (
    BUILT_IN,
    CellValue,
    ErrorValue,
    NumberKind,
    kind_of_format,
    number_of_text,
    timed_value,
    unescaped,
)

MOST_SHEET_COLUMNS = 16_384
"""How many columns a sheet can have."""

_XML_MEMORY = 8  # bytes of memory for each byte of XML
_LONGEST_FORMAT = 255  # characters, as in Excel
_STYLED_ROWS = 200  # whose number formats are remembered
_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")


@dataclass(frozen=True)
class SheetName:
    """A sheet, and the part that holds it."""

    name: str
    part: str
    is_hidden: bool


@dataclass(eq=False)
class SheetCells:
    """The cells of a sheet that hold something, by row and column; both are numbered from 0."""

    rows: dict[int, dict[int, CellValue | ErrorValue]] = field(default_factory=dict)
    formats: dict[int, dict[int, int]] = field(default_factory=dict)  # the styles of the first rows
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)  # first and last row, first and last column
    formulas: int = 0
    without_value: list[tuple[int, int]] = field(default_factory=list)  # formulas that were never computed


@dataclass(eq=False)
class Workbook:
    """A workbook, whose sheets are read when they are asked for."""

    package: Package
    sheets: tuple[SheetName, ...]
    from_1904: bool
    strings_part: str
    styles_part: str

    @property
    def has_macros(self) -> bool:
        """Whether it holds a program, which is neither run nor kept."""
        return any(name.endswith("vbaProject.bin") for name in self.package.parts)

    def sheet(self, wanted: str | int) -> SheetName:
        """The sheet of this name, or else of this number."""
        by_name = {sheet.name: sheet for sheet in self.sheets}
        if wanted in by_name:
            return by_name[str(wanted)]
        number = int(wanted) if str(wanted).isdecimal() and len(str(wanted)) < 9 else 0
        if 1 <= number <= len(self.sheets):
            return self.sheets[number - 1]
        raise InputError(
            Option("sheet"), f" is {wanted!r}, which {self.package.path} does not have; {did_you_mean(wanted, by_name)}"
        )

    @cached_property
    def strings(self) -> list[str]:
        """Texts that several cells share."""
        self._need_memory(self.strings_part)
        strings: list[str] = []
        pieces: list[str] = []
        phonetic = 0

        def start(name: str, _: Mapping[str, str]) -> None:
            nonlocal phonetic
            phonetic += name == "rPh"

        def end(name: str, text: str) -> None:
            nonlocal phonetic
            if name == "t" and not phonetic:
                pieces.append(text)
            elif name == "si":
                strings.append(unescaped("".join(pieces)))
                pieces.clear()
            phonetic -= name == "rPh"

        self.package.parse(self.strings_part, start, end)
        return strings

    @cached_property
    def number_formats(self) -> tuple[list[int], dict[int, str]]:
        """The number format of each style, and the text of those that have one."""
        styles: list[int] = []
        codes: dict[int, str] = {}
        inside = False

        def start(name: str, attributes: Mapping[str, str]) -> None:
            nonlocal inside
            inside = inside or name == "cellXfs"
            if name == "numFmt":
                codes[_index(attributes.get("numFmtId"))] = attributes.get("formatCode", "")[:_LONGEST_FORMAT]
            elif name == "xf" and inside:
                styles.append(_index(attributes.get("numFmtId")))

        def end(name: str, _: str) -> None:
            nonlocal inside
            inside = inside and name != "cellXfs"

        self.package.parse(self.styles_part, start, end)
        return styles, codes

    @cached_property
    def kinds(self) -> list[NumberKind]:
        """What each style shows numbers as."""
        styles, codes = self.number_formats
        return [kind_of_format(number, codes) for number in styles]

    def format_code(self, style: int) -> str | None:
        """The text of a style's number format; None: the general one."""
        styles, codes = self.number_formats
        number = styles[style] if 0 <= style < len(styles) else 0
        code = codes.get(number, BUILT_IN.get(number))
        return None if code in (None, "", "General", "@") else code

    def cells(self, sheet: SheetName) -> SheetCells:
        """Read a sheet."""
        if sheet.part not in self.package.parts:
            raise self.package.damaged(f"the sheet {cut(sheet.name)!r} is missing")
        self._need_memory(sheet.part)
        reader = _SheetReader(self)
        self.package.parse(sheet.part, reader.start, reader.end)
        return reader.cells

    def _need_memory(self, part: str) -> None:
        what = f"reading {self.package.path}"
        need_memory(_XML_MEMORY * self.package.size(part), what, "save the sheet as CSV, take a part of the rows")


class _SheetReader:
    """What is known while a sheet is read: the row, the cell, and what it holds so far."""

    def __init__(self, workbook: Workbook) -> None:
        self.cells = SheetCells()
        self._workbook = workbook
        self._damaged = workbook.package.damaged
        self._columns: dict[str, int] = {}
        self._row, self._column = -1, -1
        self._kind, self._style = "n", 0
        self._text: str | None = None
        self._pieces: list[str] = []
        self._formula = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if name == "c":
            self._column = self._column_of(attributes.get("r"))
            self._kind, self._style = attributes.get("t", "n"), _index(attributes.get("s"))
            self._text, self._formula = None, False
            self._pieces.clear()
        elif name == "row":
            self._row = max(_index(attributes.get("r")) - 1, self._row + 1)
            self._column = -1
        elif name == "f":
            self._formula = True
        elif name == "mergeCell":
            self._merge(attributes.get("ref", ""))

    def end(self, name: str, text: str) -> None:
        """An element ends."""
        if name == "v":
            self._text = text
        elif name == "t":
            self._pieces.append(text)
        elif name == "c":
            self._keep()

    def _column_of(self, reference: str | None) -> int:
        if reference is None:
            column = self._column + 1
        else:
            letters = reference.rstrip("0123456789")
            if letters not in self._columns:
                self._columns[letters] = _column_number(letters)
            column = self._columns[letters]
        if not 0 <= column < MOST_SHEET_COLUMNS:
            raise self._damaged(f"there is no cell {cut(reference or 'beyond the last column')}")
        return column

    def _keep(self) -> None:
        """Keep what the cell holds, if anything."""
        self.cells.formulas += self._formula
        value = self._value()
        if value is None:
            if self._formula:
                self.cells.without_value.append((self._row, self._column))
            return
        self.cells.rows.setdefault(self._row, {})[self._column] = value
        if len(self.cells.rows) <= _STYLED_ROWS:
            self.cells.formats.setdefault(self._row, {})[self._column] = self._style

    def _value(self) -> CellValue | ErrorValue | None:
        kind, text = self._kind, self._text
        if kind == "inlineStr":
            return _filled(unescaped("".join(self._pieces)))
        if text is None or text == "":
            return None
        if kind == "s":
            return _filled(self._shared(text))
        if kind == "str":
            return _filled(unescaped(text))
        if kind == "b":
            return text.strip() in ("1", "true")
        if kind == "e":
            return ErrorValue(text)
        return _iso_moment(text) if kind == "d" else self._number(text)

    def _number(self, text: str) -> CellValue | None:
        number = number_of_text(text)
        kinds = self._workbook.kinds
        if number is None or not 0 <= self._style < len(kinds) or kinds[self._style] == "number":
            return number
        return timed_value(number, kinds[self._style], from_1904=self._workbook.from_1904)

    def _shared(self, text: str) -> str:
        strings, index = self._workbook.strings, _index(text, -1)
        if not 0 <= index < len(strings):
            raise self._damaged(f"it has no text number {cut(text)}")
        return strings[index]

    def _merge(self, reference: str) -> None:
        corners = [_REFERENCE.fullmatch(corner) for corner in reference.split(":")]
        if len(corners) == 2 and corners[0] and corners[1]:
            rows = sorted(int(corner[2]) - 1 for corner in corners if corner)
            columns = sorted(_column_number(corner[1]) for corner in corners if corner)
            self.cells.merged.append((rows[0], rows[1], columns[0], columns[1]))


def open_workbook(content: bytes, path: str) -> Workbook:
    """Open a workbook; its sheets are listed, but not read."""
    package = open_package(content, path)
    main = next((one.target for one in package.relations("").values() if one.kind == "officeDocument"), None)
    if main is None or main not in package.parts:
        raise StorageError(f"{path} is a zip archive, not an Excel workbook; unpack it, and pass the table in it")
    if main.endswith(".bin"):
        raise StorageError(f"{path} is a binary Excel workbook (.xlsb); save it as .xlsx, or save the sheet as CSV")
    relations = package.relations(main)
    listed: list[tuple[str, str, bool]] = []
    from_1904 = False

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal from_1904
        if name == "sheet":
            local = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
            hidden = local.get("state", "visible") != "visible"
            listed.append((local.get("name", ""), local.get("id", ""), hidden))
        elif name == "workbookPr":
            from_1904 = attributes.get("date1904") in ("1", "true")

    package.parse(main, start, lambda *_: None)
    sheets = tuple(
        SheetName(name, relations[identifier].target, hidden)
        for name, identifier, hidden in listed
        if identifier in relations and relations[identifier].kind == "worksheet"
    )
    if not sheets:
        raise StorageError(f"{path} is not an Excel workbook with sheets; save the sheet as CSV")
    by_kind = {relation.kind: relation.target for relation in relations.values()}
    return Workbook(package, sheets, from_1904, by_kind.get("sharedStrings", ""), by_kind.get("styles", ""))


def _index(text: str | None, otherwise: int = 0) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) <= 9 else otherwise


def _column_number(letters: str) -> int:
    """Number columns from 0: A, B, …, Z, AA; -1 if there is no such column."""
    number = 0
    for letter in letters.upper():
        if not "A" <= letter <= "Z" or number > MOST_SHEET_COLUMNS:
            return -1
        number = 26 * number + ord(letter) - 64
    return number - 1


def _filled(text: str) -> str | None:
    return text if text.strip() else None


def _iso_moment(text: str) -> CellValue:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment.date() if "T" not in text else moment.replace(tzinfo=None)
