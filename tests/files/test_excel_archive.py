"""Workbooks of few bytes whose cells are far apart: refused in our words.

calamine would make room for 549,755,813,888 bytes, and end the process.
"""

import functools
import io
import json
import os
import random
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from cliprocesses import COMMAND, start
from fairmaxent.app.upload import read_upload
from fairmaxent.errors import FairMaxEntError
from fairmaxent.files.excel import _choose
from fairmaxent.files.excel_archive import column_letters, plain_archive
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading

openpyxl = pytest.importorskip("openpyxl", reason="workbooks are made with openpyxl")

SHEET = "xl/worksheets/sheet1.xml"
LAST = "XFD1048576"
MOST_KB = 300_000
FAR_APART = "cells in a sheet, so far from each other that room for"
FAR = "outside the table, as far as {}, or save the table as CSV"


def text(place, value):
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def number(place, value=1):
    return f'<c r="{place}"><v>{value}</v></c>'


def row(place, *cells):
    return f'<row r="{place}">{"".join(cells)}</row>'


def staff():
    """The rows of 59 people."""
    rows = [row(1, text("A1", "sex"), text("B1", "pay"), text("C1", "hired"))]
    for place in range(2, 61):
        sex = text(f"A{place}", "FM"[place % 2])
        hired = text(f"C{place}", "yes" if place % 3 else "no")
        rows.append(row(place, sex, number(f"B{place}", 900 + place), hired))
    return "".join(rows)


def workbook(*rows, before="", **parts):
    """A workbook of one sheet with these rows, and other parts."""
    made = openpyxl.Workbook()
    made.active.append(["a"])
    content = io.BytesIO()
    made.save(content)
    with zipfile.ZipFile(content) as archive:
        every = {name: archive.read(name) for name in archive.namelist()}
    data = f"<sheetData>{''.join(rows)}</sheetData>"
    every[SHEET] = f"<worksheet>{before}{data}</worksheet>".encode()
    return zipped(every | parts)


def zipped(parts):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


def wide():
    """16,384 columns, of which most are empty in each of 1,000 rows."""
    names = [text(f"{column_letters(place)}1", place) for place in range(16_384)]
    rest = [row(n, number(f"A{n}"), number(f"XFD{n}")) for n in range(2, 1002)]
    return workbook(row(1, *names), *rest)


@functools.cache
def bombs():
    """The content of each, and what is said of it."""
    far = row(1048576, number(LAST))
    stray = row(1048576, text("AA1048576", "x"))
    wrong = '<dimension ref="A1:C60"/>'
    plain = workbook(staff(), far)
    return {
        "no dimension": (plain, FAR.format(LAST)),
        "wrong dimension": (workbook(staff(), far, before=wrong), FAR.format(LAST)),
        "stray cell": (workbook(staff(), stray), FAR.format("AA1048576")),
        "wide": (wide(), FAR_APART),
        "nested": (zipped({"inner.xlsx": plain}), "but not an Excel workbook"),
        "diagonal": (
            workbook(
                *(row(n, number(f"{column_letters(n)}{n}")) for n in range(1, 16_384))
            ),
            FAR_APART,
        ),
        "inflated": (workbook(staff(), " " * (40 << 20)), "once decompressed"),
    }


def said_of(path, read=read_table):
    """What is said of a file that is refused."""
    with pytest.raises(FairMaxEntError) as refused:
        read(path, FileReading())
    return str(refused.value)


@pytest.mark.parametrize("name", bombs())
def test_a_bomb_is_refused_in_our_words(name, tmp_path):
    content, says = bombs()[name]
    path = tmp_path / "bomb.xlsx"
    path.write_bytes(content)
    assert says in said_of(path)


# What the process itself took, not the one that started it, is said in its end.
BY_COMMAND = """
from click.testing import CliRunner
from fairmaxent.cli.group import group
print(CliRunner().invoke(group, ["inspect", "bomb.xlsx"]).output)
"""
BY_PYTHON = """
from fairmaxent.files.formats import read_table
print(*read_table("bomb.xlsx").notes)
"""
BY_UPLOAD = """
import pathlib
from fairmaxent.app.upload import read_or_refused
from fairmaxent.files.reading import FileReading
answer = read_or_refused(pathlib.Path("bomb.xlsx"), FileReading(), None)
print(answer, *getattr(answer, "notes", ()))
"""
MEASURED = """
import re
from fairmaxent.errors import FairMaxEntError
try:
    exec({!r})
except FairMaxEntError as problem:
    print(problem)
with open("/proc/self/status") as status:
    print(re.search("VmHWM.*", status.read())[0])
"""


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
@pytest.mark.parametrize("name", list(bombs())[:5])
def test_a_bomb_takes_little_memory_by_every_door(name, tmp_path):
    content, says = bombs()[name]
    path = tmp_path / "bomb.xlsx"
    path.write_bytes(content)
    for script in (BY_COMMAND, BY_PYTHON, BY_UPLOAD):
        done = subprocess.run(
            [sys.executable, "-c", MEASURED.format(script)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        said = re.sub(r"\s+", " ", done.stdout + done.stderr)
        assert says in said
        assert int(re.search(r"VmHWM: (\d+)", said)[1]) < MOST_KB
    typed = subprocess.run(
        [*COMMAND, "inspect", "bomb.xlsx"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert typed.returncode in (3, 5)  # beyond a limit, or not readable
    assert says in re.sub(r"\s+", " ", typed.stdout + typed.stderr)
    # in a child, which may not take much more than libraries reserve
    assert says in said_of(path, read_upload)


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
@pytest.mark.parametrize("name", list(bombs())[:5])
def test_an_app_that_is_started_with_a_bomb_says_so_on_its_page(name, tmp_path):
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    content, says = bombs()[name]
    (tmp_path / "bomb.xlsx").write_bytes(content)
    own = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    app = start("app", "bomb.xlsx", "--no-browser", folder=tmp_path, env=own)
    try:
        address = app.stdout.readline().decode().split()[1]
        state = state_of(address)
        took = Path(f"/proc/{app.pid}/status").read_text()
    finally:
        app.terminate()
        _, problems = app.communicate(timeout=60)
    assert state["table"] is None
    assert says in state["problem"]
    assert str(tmp_path) not in state["problem"]
    assert problems == b""
    assert int(re.search(r"VmHWM:\s*(\d+)", took)[1]) < MOST_KB


def state_of(address):
    """What the page of an app is told first."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address, timeout=60) as first:
        page = re.search(rb"#page=(\w+)", first.read())[1].decode()
    opener.addheaders.append(("X-Fairmaxent-Page", page))
    with opener.open(address.split("?")[0] + "api/state", timeout=60) as answer:
        return json.load(answer)


# ---------------------------------------------------------------- where cells are


def sheet_of(cells, rng):
    """A sheet with these values by row and column, written in one of many ways."""
    quote = rng.choice("'\"")
    prefix = rng.choice(["", "", "x:"])
    mixed = rng.random() < 0.5
    lines = []
    for number in sorted({row for row, _ in cells}):
        lines.append(f"<{prefix}row r={quote}{number + 1}{quote}>")
        last = -1
        for column in sorted(column for row, column in cells if row == number):
            place = f"{column_letters(column)}{number + 1}"
            if mixed:
                place = place.lower()
            said = f' s="0" r = {quote}{place}{quote}'
            if column == last + 1 and rng.random() < 0.5:
                said = rng.choice(["", " foo='>'"])
            value = cells[number, column]
            lines.append(f"<{prefix}c{said}><{prefix}v>{value}</{prefix}v></{prefix}c>")
            last = column
        lines.append(f"</{prefix}row>")
    data = f"<{prefix}sheetData>{''.join(lines)}</{prefix}sheetData>"
    return f"<{prefix}worksheet xmlns:x='x'>{data}</{prefix}worksheet>".encode()


@pytest.mark.more
def test_every_cell_is_read_where_it_stands():
    rng = random.Random(1)
    for _ in range(60):
        far = rng.choice([9, 100, 1_000])
        cells = {
            (rng.randrange(far), rng.randrange(far)): rng.randrange(1000)
            for _ in range(rng.randrange(1, 40))
        }
        content = workbook(**{SHEET: sheet_of(cells, rng)})
        read = _choose(content, FileReading(), "book.xlsx", []).rows
        found = {
            (row, column): read[row][column] for row in read for column in read[row]
        }
        assert found == cells


def test_numbers_are_those_of_the_rows_before_if_nothing_is_said():
    rows = [
        "<row><c><v>1</v></c><c><v>2</v></c></row>",
        "<row/><row><c><v>3</v></c></row>",
        '<row r="970"><c r="ALC970"><v>4</v></c><c><v>5</v></c></row>',
        '<row><c r="B9"><v>6</v></c><c><v>7</v></c></row>',
    ]
    sheet = f"<worksheet><sheetData>{''.join(rows)}</sheetData></worksheet>"
    content = workbook(**{SHEET: sheet.encode()})
    assert _choose(content, FileReading(), "book.xlsx", []).rows == {
        0: {0: 1, 1: 2},
        2: {0: 3},
        8: {1: 6},
        969: {990: 4, 991: 5},
        970: {2: 7},
    }


@pytest.mark.parametrize(
    "far",
    [
        row(1048576, "<x:c><v>4</v></x:c>"),
        "<row r='1048575'/><x:row><c><v>4</v></c></x:row>",
        row(70, text("xfc70", "x"), "<c><v>4</v></c>"),
        row(61, '<c r="B&#49;048576"><v>4</v></c>'),
    ],
)
def test_a_far_cell_is_seen_however_it_is_written(far, tmp_path):
    path = tmp_path / "book.xlsx"
    path.write_bytes(workbook(staff(), far))
    assert FAR_APART in said_of(path)


@pytest.mark.parametrize(
    "cell",
    [
        f'<c r="A1" r="{LAST}"><v>1</v></c>',
        f'<c r="A1" foo="<c" r="{LAST}"><v>1</v></c>',
        "<c r='1A'><v>1</v></c>",
        '<c r="A1048577"><v>1</v></c>',
        '<c r="XFE1"><v>1</v></c>',
        '<c r="AAAA1"><v>1</v></c>',
        '<c r="A4294967297"><v>1</v></c>',
        '<c r="$A$1"><v>1</v></c>',
        "<c r=A1><v>1</v></c>",
    ],
)
def test_a_cell_in_two_places_or_in_none_is_damage(cell, tmp_path):
    path = tmp_path / "book.xlsx"
    path.write_bytes(workbook(staff(), row(61, cell)))
    said = said_of(path)
    assert "is a damaged Excel workbook" in said
    assert "\n" not in said


def test_what_is_looked_at_is_what_is_read():
    """An entry twice, one that is larger than it says, and parts of other formats."""
    other = f"<worksheet><sheetData>{row(7, number('B7'))}</sheetData></worksheet>"
    content = io.BytesIO(workbook(staff(), **{"content.xml": b"<ods/>"}))
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("xl/workbook.bin", b"xlsb")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(SHEET, other)
    plain = plain_archive(content.getvalue(), "book.xlsx")
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names))
        assert not {"mimetype", "xl/workbook.bin"} & set(names)
        assert archive.read(SHEET).decode() == other
    lying = workbook(staff() + row(1048576, number(LAST)))
    with zipfile.ZipFile(io.BytesIO(lying)) as archive:
        entry = archive.getinfo(SHEET)
    size = entry.file_size.to_bytes(4, "little")
    shorter = (entry.file_size - 90).to_bytes(4, "little")
    with pytest.raises(zipfile.BadZipFile):
        plain_archive(lying.replace(size, shorter), "book.xlsx")
