"""The archive of a workbook: what is looked at here is what is read afterwards.

calamine makes room for every cell between the first and the last of a sheet, though a
sheet of three cells may have 17,179,869,184 between them. So where the cells are is
found here, whatever the sheet says of itself. What calamine gets is an archive of its
own: nothing of it is larger than it says, there twice, or of another format.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from functools import cache
from xml.parsers import expat

from fairmaxent.data.limits import MOST_FILE_COLUMNS, need_memory
from fairmaxent.errors import LimitError, StorageError
from fairmaxent.files.content import check_growth

# bytes of memory for each byte of XML, and for each cell up to the last one
_XML_MEMORY = 8
_CELL_MEMORY = 100
# cells up to the last one: any number of them up to this, or for each that is there
_FREE = 1 << 20
_FOR_EACH = 10
_MOST_ROWS = 1 << 20  # of a sheet
_READ = (".xml", ".rels")
_CELLS = b"sheetData"  # without which there is no cell


def plain_archive(content: bytes, path: str) -> bytes:
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
        plain = io.BytesIO()
        with zipfile.ZipFile(plain, "w") as copied:
            for name, entry in entries.items():
                if name.endswith(_READ):
                    part = archive.open(entry).read(entry.file_size)
                    if _CELLS in part:
                        _check_places(part, path)
                    copied.writestr(name, part)
    return plain.getvalue()


def _check_places(sheet: bytes, path: str) -> None:
    """Refuse cells so far from each other that there is no room for those between.

    A cell that does not say where it is follows the one before.
    """
    digits = set()
    columns = set()
    count = 0
    row = "0"
    column = -1

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal count, row, column
        if name[-1] not in "cw":  # which most are not
            return
        if name == "c" or name.endswith(":c"):
            place = attributes.get("r", row)
            letters = place.rstrip("0123456789")
            column += 1
            if letters:
                column = column_number(letters)
            columns.add(column)
            digits.add(place[len(letters) :])
            count += 1
        elif name == "row" or name.endswith(":row"):
            row = attributes.get("r") or str(int(row) + 1)
            column = -1

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.Parse(sheet, True)  # noqa: FBT003
    if not count:
        return
    rows = set(map(int, digits))
    if max(rows) > _MOST_ROWS or max(columns) >= MOST_FILE_COLUMNS:
        raise ValueError("a cell is beyond the last that a sheet can have")
    room = (max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1)
    if room > max(_FREE, _FOR_EACH * count):
        raise LimitError(
            f"{path} has {count:,} cells in a sheet, so far from each other that room"
            f" for {room:,} would be needed; delete the rows and columns outside the"
            f" table, as far as {column_letters(max(columns))}{max(rows)}, or save the"
            " table as CSV"
        )
    need_memory(
        float(_CELL_MEMORY * room), f"reading {path}", "remove cells beside the table"
    )


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
