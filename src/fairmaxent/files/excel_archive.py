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
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from fairmaxent.data.limits import MOST_FILE_COLUMNS, need_memory
from fairmaxent.errors import LimitError, StorageError
from fairmaxent.files.content import check_growth

# bytes of memory for each byte of XML, and for each cell up to the last one
_XML_MEMORY = 8
_CELL_MEMORY = 100
# cells up to the last one: any number of them up to this, or for each that is there
_FREE = 1 << 20
_FOR_EACH = 10
_MOST_FOR_EACH = 100  # once empty rows and columns are squeezed out
_MOST_ROWS = 1 << 20  # of a sheet
_PIECE = 1 << 20  # bytes of XML that are looked at together
_EVERY = range(sys.maxsize)
_READ = (".xml", ".rels")
_CELLS = b"sheetData"  # without which there is no cell

# A cell or a row as Excel and others write it, and anything that may be one.
_USUAL = re.compile(rb'<(?:c|row) r="([A-Z]*)([0-9]+)"')
_PLAIN = re.compile(rb"<(?:c|row)[\s/>]")
_PREFIXED = re.compile(rb":(?:c|row)[\s/>]")
_ANY = re.compile(rb"<(?:[^\s<>]*:)?(?:c|row)(?=[\s/>])")
_PLACE = re.compile(rb"r(?<=[\s\"']r)\s*=")
# A cell or a row as XML allows it: its name, and its attributes.
_ATTRIBUTE = rb"\s+[^\s=<>/\"']+\s*=\s*(?:\"[^\"]*\"|'[^']*')"
_TAG = re.compile(rb"<(?:[\w.-]+:)?(c|row)((?:" + _ATTRIBUTE + rb")*)\s*/?>")
_OWN_PLACE = re.compile(rb"\sr\s*=\s*[\"']([^\"']*)[\"']")
_REFERENCE = re.compile(rb"([A-Za-z]*)([0-9]*)")


class Archive(NamedTuple):
    """A workbook that is safe to read, and where its rows and columns stood before."""

    content: bytes
    rows: Sequence[int] = _EVERY
    columns: Sequence[int] = _EVERY


class _Extent(NamedTuple):
    """The rows and columns in which a sheet has cells, from 0; and how many cells."""

    rows: set[int]
    columns: set[int]
    count: int

    @property
    def is_sparse(self) -> bool:
        """Whether too few of the cells up to the last are there."""
        return _area(self) > max(_FREE, _FOR_EACH * self.count)


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
        parts = (
            (name, archive.open(entry).read(entry.file_size))
            for name, entry in entries.items()
            if name.endswith(_READ)
        )
        plain, extents = _gathered(parts)
    if any(extent.is_sparse for extent in extents):
        return _squeezed(plain, extents, path)
    for extent in extents:
        _need_cells(_area(extent), path)
    return Archive(plain)


def _gathered(parts: Iterator[tuple[str, bytes]]) -> tuple[bytes, list[_Extent]]:
    """An archive of these parts, and where the cells of its sheets are."""
    plain = io.BytesIO()
    extents = []
    with zipfile.ZipFile(plain, "w") as archive:
        for name, part in parts:
            archive.writestr(name, part)
            if _CELLS in part:
                extents.append(_extent(part))
    return plain.getvalue(), extents


def _area(extent: _Extent) -> float:
    """How many cells there are from the first to the last, empty or not."""
    if not extent.count:
        return 0.0
    height = max(extent.rows) - min(extent.rows) + 1
    width = max(extent.columns) - min(extent.columns) + 1
    return float(height * width)


def _need_cells(count: float, path: str) -> None:
    need_memory(
        _CELL_MEMORY * count, f"reading {path}", "remove cells beside the table"
    )


# ---------------------------------------------------------------- where cells are


def _extent(sheet: bytes) -> _Extent:
    """Where the cells of a sheet are, by what each says, or else by counting."""
    rows: set[bytes] = set()
    columns: set[bytes] = set()
    count = 0
    for piece in _pieces(sheet):
        usual = _USUAL.findall(piece)
        tags = len(_PLAIN.findall(piece))
        places = len(_PLACE.findall(piece))
        if not len(usual) == tags == places or _PREFIXED.search(piece):
            return _extent_counted(sheet)
        in_cells = [digits for letters, digits in usual if letters]
        rows.update(in_cells)
        columns.update(letters for letters, _ in usual)
        count += len(in_cells)
    columns.discard(b"")
    extent = _Extent(
        rows={int(digits) - 1 for digits in rows},
        columns=set(map(column_number, columns)),
        count=count,
    )
    _check_within(extent)
    return extent


def _check_within(extent: _Extent) -> None:
    beyond_rows = max(extent.rows, default=0) >= _MOST_ROWS
    beyond_columns = max(extent.columns, default=0) >= MOST_FILE_COLUMNS
    if beyond_rows or beyond_columns:
        raise ValueError("a cell is beyond the last that a sheet can have")


def _pieces(sheet: bytes) -> Iterator[bytes]:
    """Parts of a sheet that begin with a row."""
    start = 0
    while start < len(sheet):
        end = sheet.find(b"<row ", start + _PIECE)
        if end < 0:
            end = len(sheet)
        yield sheet[start:end]
        start = end


def _extent_counted(sheet: bytes) -> _Extent:
    """The same for a sheet whose cells need not say where they are."""
    rows = set()
    columns = set()
    count = 0
    for _, row, column in _places(sheet):
        if column is not None:
            rows.add(row)
            columns.add(column)
            count += 1
    extent = _Extent(rows, columns, count)
    _check_within(extent)
    return extent


def _places(sheet: bytes) -> Iterator[tuple[re.Match[bytes], int, int | None]]:
    """Each row and each cell, with its place; a row has no column.

    One that does not say where it is follows the one before.
    """
    row = -1
    column = -1
    count = 0
    for tag in _TAG.finditer(sheet):
        count += 1
        said = _OWN_PLACE.findall(tag[2])
        reference = _REFERENCE.fullmatch(b"".join(said))
        if len(said) > 1 or reference is None:
            raise ValueError("it does not say where a cell is")
        letters, digits = reference.groups()
        if tag[1] == b"row":
            row = int(digits) - 1 if digits else row + 1
            column = -1
            yield tag, row, None
        else:
            column = column_number(letters) if letters else column + 1
            yield tag, int(digits) - 1 if digits else row, column
    if count != len(_ANY.findall(sheet)):
        raise ValueError("it is not well-formed")


def column_number(letters: bytes) -> int:
    """Number a column from 0.

    >>> column_number(b"A"), column_number(b"aa"), column_number(b"XFD")
    (0, 26, 16383)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
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


# ---------------------------------------------------------------- squeezed sheets


def _squeezed(plain: bytes, extents: Sequence[_Extent], path: str) -> Archive:
    """The archive without rows and columns in which no sheet has a cell."""
    rows = sorted(set().union(*(extent.rows for extent in extents)))
    columns = sorted(set().union(*(extent.columns for extent in extents)))
    room = len(rows) * len(columns)
    count = sum(extent.count for extent in extents)
    if room > max(_FREE, _MOST_FOR_EACH * count):
        raise LimitError(
            f"{path} has {count:,} cells, so far from each other that room for"
            f" {room:,} would be needed; remove cells beside the table, or save the"
            " sheet as CSV"
        )
    _need_cells(float(room), path)
    new_row = {row: number for number, row in enumerate(rows)}
    new_column = {column: number for number, column in enumerate(columns)}

    def place_of(row: int, column: int | None) -> str:
        if column is None:
            return ""
        return f"{column_letters(new_column[column])}{new_row[row] + 1}"

    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    squeezed = [
        (name, _placed(part, place_of) if _CELLS in part else part)
        for name, part in parts
    ]
    return Archive(_gathered(iter(squeezed))[0], rows, columns)


def _placed(sheet: bytes, place_of: Callable[[int, int | None], str]) -> bytes:
    """The sheet with other places for its cells, and rows that say none."""
    written = []
    end = 0
    for tag, row, column in _places(sheet):
        place = place_of(row, column)
        written.append(sheet[end : tag.start(2)])
        if place:
            written.append(f' r="{place}"'.encode())
        written.append(_OWN_PLACE.sub(b"", tag[2]))
        end = tag.end(2)
    written.append(sheet[end:])
    return b"".join(written)
