"""The archive of a workbook: what is looked at here is what is read afterwards.

calamine makes room for every cell between the first and the last of a sheet, though a
sheet of three cells may have 17,179,869,184 between them. So where the cells are is
found here, whatever the sheet says of itself, and empty rows and columns are squeezed
out of a sheet that has many. What calamine gets is an archive of its own: nothing of it
is larger than it says, there twice, or of another format.
"""

import io
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from fairmaxent.data.limits import MOST_FILE_COLUMNS, need_memory
from fairmaxent.errors import LimitError, StorageError
from fairmaxent.files.content import check_growth

# bytes of memory for each byte of XML, and for each cell up to the last one
_XML_MEMORY = 8
_CELL_MEMORY = 100
# cells up to the last one: any number of them up to this, or for each that is there,
# before and after empty rows and columns are squeezed out
_FREE = 1 << 20
_FOR_EACH = 10
_MOST_FOR_EACH = 100
_MOST_ROWS = 1 << 20  # of a sheet
_EVERY = range(sys.maxsize)
_READ = (".xml", ".rels")
_CELLS = b"sheetData"  # without which there is no cell
# A cell as Excel and others write it; and tags and places, however they are written.
_LETTERS = re.compile(rb'<c r="([A-Z]{1,3})[0-9]{1,7}"')
_DIGITS = re.compile(rb'<c r="[A-Z]{1,3}([0-9]{1,7})"')
_PLAIN = re.compile(rb"<(?:c|row)[\s/>]")
_PREFIXED = re.compile(rb":(?:c|row)[\s/>]")
_PLACE = re.compile(rb"r(?<=[\s\"']r)\s*=")
_TAG = re.compile(rb"<(?:[^>/\"']|\"[^\"]*\"|'[^']*')*")  # up to its end, /> or >

# What is done with a cell: where its tag begins, its name, attributes, row and column.
_Visit = Callable[[int, str, Mapping[str, str], int, int], None]


class Archive(NamedTuple):
    """A workbook that is safe to read, and where its rows and columns stood before."""

    content: bytes
    rows: Sequence[int] = _EVERY
    columns: Sequence[int] = _EVERY


class _Extent:
    """The rows and columns in which a sheet has cells, from 0; and how many cells."""

    def __init__(self, sheet: bytes) -> None:
        letters = _LETTERS.findall(sheet)
        self.cells = len(letters)
        self.columns = {column_number(found.decode()) for found in set(letters)}
        self.rows = {int(digits) - 1 for digits in set(_DIGITS.findall(sheet))}
        tags = self.cells + sheet.count(b'<row r="')
        is_usual = tags == len(_PLAIN.findall(sheet)) == len(_PLACE.findall(sheet))
        if not is_usual or _PREFIXED.search(sheet):
            self.cells = 0
            _visit_cells(sheet, self._add)
        last_row = max(self.rows, default=0)
        last_column = max(self.columns, default=0)
        if last_row >= _MOST_ROWS or last_column >= MOST_FILE_COLUMNS:
            raise ValueError("a cell is beyond the last that a sheet can have")
        self.room = 0
        if self.cells:
            height = last_row - min(self.rows) + 1
            self.room = height * (last_column - min(self.columns) + 1)

    def _add(self, _: int, __: str, ___: object, row: int, column: int) -> None:
        self.rows.add(row)
        self.columns.add(column)
        self.cells += 1


def plain_archive(content: bytes, path: str) -> Archive:
    """The parts of a workbook that hold cells, or say what they mean."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        # OpenDocument, .xlsb, or files in it
        if "[Content_Types].xml" not in entries or "xl/workbook.xml" not in entries:
            raise StorageError(
                f"{path} is a zip archive, but not an Excel workbook; save it as .xlsx"
                " or CSV, or unpack it"
            )
        sizes = [entry.file_size for entry in archive.infolist()]
        check_growth(sum(sizes), content, path, "save the sheet as CSV")
        need_memory(
            _XML_MEMORY * max(sizes),
            f"reading {path}",
            "save the sheet as CSV, take a part of the rows",
        )
        parts = {
            name: archive.open(entry).read(entry.file_size)
            for name, entry in entries.items()
            if name.endswith(_READ)
        }
    sheets = [name for name, part in parts.items() if _CELLS in part]
    extents = [_Extent(parts[name]) for name in sheets]
    if all(extent.room <= max(_FREE, _FOR_EACH * extent.cells) for extent in extents):
        most = max((extent.room for extent in extents), default=0)
        _need_cells(most, path)
        return Archive(_archived(parts))

    rows = sorted(set().union(*(extent.rows for extent in extents)))
    columns = sorted(set().union(*(extent.columns for extent in extents)))
    room = len(rows) * len(columns)
    count = sum(extent.cells for extent in extents)
    if room > max(_FREE, _MOST_FOR_EACH * count):
        raise LimitError(
            f"{path} has {count:,} cells, so far from each other that room for"
            f" {room:,} would be needed; remove cells beside the table, or save the"
            " sheet as CSV"
        )
    _need_cells(room, path)
    for name in sheets:
        parts[name] = _squeezed(parts[name], rows, columns)
    return Archive(_archived(parts), rows, columns)


def _archived(parts: Mapping[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return plain.getvalue()


def _need_cells(count: int, path: str) -> None:
    need_memory(
        float(_CELL_MEMORY * count), f"reading {path}", "remove cells beside the table"
    )


def _visit_cells(sheet: bytes, visit: _Visit) -> None:
    """Visit each cell; one that does not say where it is follows the one before."""
    parser = expat.ParserCreate()
    row = -1
    column = -1

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal row, column
        if name[-1] not in "cw":  # which most are not
            return
        kind = name[name.rfind(":") + 1 :]
        place = attributes.get("r", "")
        letters = place.rstrip("0123456789")
        digits = place[len(letters) :]
        if kind == "row":
            row = int(digits or row + 2) - 1
            column = -1
        elif kind == "c":
            column += 1
            if letters:
                column = column_number(letters)
            own_row = int(digits or row + 1) - 1
            visit(parser.CurrentByteIndex, name, attributes, own_row, column)

    parser.StartElementHandler = start
    parser.Parse(sheet, True)  # noqa: FBT003


def _squeezed(sheet: bytes, rows: Sequence[int], columns: Sequence[int]) -> bytes:
    """The sheet with its cells moved to where they are in these rows and columns."""
    new_row = {row: number for number, row in enumerate(rows, 1)}
    letters = {column: column_letters(place) for place, column in enumerate(columns)}
    written = []
    end = 0

    def move(
        start: int, name: str, attributes: Mapping[str, str], row: int, column: int
    ) -> None:
        nonlocal end
        said = {"r": f"{letters[column]}{new_row[row]}"}
        said |= {key: attributes[key] for key in ("s", "t") if key in attributes}
        text = "".join(f" {key}={quoteattr(value)}" for key, value in said.items())
        written.append(sheet[end:start])
        written.append(f"<{name}{text}".encode())
        tag = _TAG.match(sheet, start)
        if tag is not None:
            end = tag.end()

    _visit_cells(sheet, move)
    written.append(sheet[end:])
    return b"".join(written)


@cache
def column_number(letters: str) -> int:
    """Number a column from 0.

    >>> column_number("A"), column_number("aa"), column_number("XFD")
    (0, 26, 16383)
    """
    if not re.fullmatch("[A-Za-z]{1,3}", letters):
        raise ValueError("a cell does not say where it is")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number - 1


def column_letters(number: int) -> str:
    """Name a column that is numbered from 0.

    >>> column_letters(0), column_letters(26), column_letters(16383)
    ('A', 'AA', 'XFD')
    """
    letters = ""
    rest = number + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(65 + letter) + letters
    return letters
