"""Excel workbooks: read as openpyxl reads them, written so that openpyxl reads the
same, refused if hostile.
"""

import datetime as dt
import stat
import zipfile

import polars as pl
import pytest

from clifiles import listing
from fairmaxent import InputError
from fairmaxent.data.limits import max_memory
from fairmaxent.errors import LimitError, StorageError
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading
from fairmaxent.files.write import write_table

openpyxl = pytest.importorskip(
    "openpyxl", reason="workbooks are compared with what openpyxl reads and writes"
)

SHEET = "xl/worksheets/sheet1.xml"
CELLS, ENDS = "<worksheet><sheetData><row>", "</row></sheetData></worksheet>"
COLUMNS = ["name", "sex", "pay", "hired", "seen", "at", "ok", "share"]
ROWS = [
    (
        "Ann",
        "F",
        1200,
        dt.date(2019, 3, 1),
        dt.datetime(2020, 1, 1, 8, 30),
        dt.time(8, 30),
        True,
        0.1 + 0.2,
    ),
    (
        "Bob",
        "M",
        950,
        dt.date(1999, 12, 31),
        dt.datetime(2020, 1, 2, 17, 5, 3),
        dt.time(17, 5),
        False,
        1e-9,
    ),
    (
        "=1+1",
        "M",
        -3,
        dt.date(2024, 2, 29),
        dt.datetime(1905, 1, 1),
        dt.time(0),
        True,
        1e300,
    ),
    (
        "http://a.org",
        "F",
        10**14,
        dt.date(1900, 3, 1),
        dt.datetime(2020, 1, 3, 23, 59, 59, 999000),
        None,
        None,
        -2.5,
    ),
    (None, None, None, None, None, dt.time(23, 59, 59), False, None),
]


@pytest.fixture
def book(tmp_path):
    """Make a workbook with openpyxl out of sheets of rows, and return its path."""

    def book(*sheets, name="book.xlsx", change=lambda book: None):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for number, rows in enumerate(sheets, 1):
            sheet = made.create_sheet(f"Sheet {number}")
            for row in rows:
                sheet.append(row)
        change(made)
        made.save(tmp_path / name)
        return tmp_path / name

    return book


def altered(path, parts):
    """Replace parts of a workbook: each by a text, or by what a function makes of it;
    None removes it.
    """
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, new in parts.items():
        content[name] = new(content[name].decode()) if callable(new) else new
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in content.items():
            if part is not None:
                archive.writestr(name, part)
    return path


def table(rows=ROWS):
    return pl.DataFrame(rows, schema=COLUMNS, orient="row", infer_schema_length=None)


def test_a_workbook_is_read_with_its_types(book):
    read = read_table(book([COLUMNS, *ROWS]))
    # openpyxl writes 1+1 as a formula, whose value nobody has computed, and numbers
    # with 15 digits
    as_written = table().with_columns(
        name=pl.Series(["Ann", "Bob", None, "http://a.org", None]),
        share=pl.Series([0.3, *table()["share"][1:]]),
    )
    assert read.frame.equals(as_written)
    assert read.frame.schema == table().schema
    assert read.notes == ()


def test_numbers_that_are_whole_are_integers_and_markers_and_errors_are_missing(book):
    path = book(
        [["a", "b", "c"], [1.0, 1.5, "x"], ["NA", "#N/A", "?"], [3, 2, "#DIV/0!"]]
    )
    assert read_table(path).frame.rows() == [
        (1, 1.5, "x"),
        (None, None, None),
        (3, 2.0, None),
    ]
    assert read_table(path).notes == (
        "'NA' was read as missing (a 1)",
        "'?' was read as missing (c 1)",
    )
    chosen = read_table(
        path, FileReading(missing_text=["x"], columns=["d", "e", "f"], skip_lines=1)
    ).frame
    assert chosen["f"].to_list() == [None, "?", None]
    with pytest.raises(InputError, match="3 columns and 2 names"):
        read_table(path, FileReading(columns=["a", "b"]))


def test_texts_are_read_as_those_of_a_csv(book):
    rows = [
        ["code", "pay", "due", "n", "mix"],
        ["007", "1.234,50 €", "31.12.2020", "12", 1],
    ]
    read = read_table(book([*rows, ["010", "5,00 €", "1.1.2021", "7", "x"]]))
    days = dt.date(2020, 12, 31), dt.date(2021, 1, 1)
    assert read.frame.rows() == [
        ("007", 1234.5, days[0], 12, "1"),
        ("010", 5.0, days[1], 7, "x"),
    ]
    assert (
        "numbers and text are mixed, so these columns were read as text (mix)"
        in read.notes
    )
    assert "numbers stored as text were read as numbers (pay, n)" in read.notes


def test_titles_empty_columns_and_empty_rows_around_the_table(book):
    rows = [
        [None, "Staff list"],
        [None, "As of", dt.date(2025, 12, 31)],
        [],
        [None, *COLUMNS[:3]],
    ]
    read = read_table(
        book([*rows, *([None, *row[:3]] for row in ROWS[:2]), [], [None, *ROWS[3][:3]]])
    )
    assert read.frame.rows() == [row[:3] for row in (*ROWS[:2], ROWS[3])]
    assert "row 7 of the sheet" in read.notes[1]
    assert "is in row 4, and" in read.notes[0]
    said = read_table(
        book([["a", "b"], *rows[3:], [None, "x", "F", 1]]), FileReading(skip_lines=1)
    )
    assert said.frame.rows() == [("x", "F", 1)]
    with pytest.raises(InputError, match="no table beside the rows that are skipped"):
        read_table(book([["a", "b"], [1, 2]]), FileReading(skip_lines=99))


def test_rows_below_the_table_and_nothing_but_a_header(book):
    path = book([["sex", "pay"], ["F", 1], ["M", 2], ["Total", 4]])
    assert "looks like a sum" in read_table(path).notes[-1]
    assert read_table(path, FileReading(skip_last=1)).frame.rows() == [
        ("F", 1),
        ("M", 2),
    ]
    for skipped, says in (
        (3, "no rows"),
        (4, "no table beside the rows that are skipped"),
    ):
        with pytest.raises(InputError, match=says):
            read_table(path, FileReading(skip_last=skipped))
    with pytest.raises(InputError, match=r"'Sheet 1' .* is empty"):
        read_table(book([]))


def test_bands_above_the_header_and_names_as_high_as_both_rows(book):
    bands = [
        ["No.", "Person", None, "Application", None],
        [None, "sex", "age", "day", "hired"],
    ]
    rows = [
        (number, sex, 30 + number, dt.date(2024, 1, 2), "yes")
        for number, sex in enumerate("FMFM")
    ]
    merged = ("A2:A3", "B2:C2", "D2:E2")
    path = book(
        [["Applications"], *bands, *rows],
        change=lambda made: [*map(made.active.merge_cells, merged)],
    )
    read = read_table(path)
    assert read.frame.columns == ["No.", "sex", "age", "day", "hired"]
    assert read.frame.rows() == rows
    assert [
        "is in row 3, and what stands above it is taken for a title" in note
        for note in read.notes
    ] == [True]
    assert read_table(path, FileReading(skip_lines=2)).frame.equals(read.frame)


def test_merged_cells_each_have_the_value_that_people_see(book):
    rows = [
        ["dept", "name", "sex"],
        ["A", "Ann", "F"],
        [None, "Bob", "M"],
        ["B", "Cem", None],
        [None, "Dee", "F"],
    ]

    def change(made):
        made.active.merge_cells("A2:A3")
        made.active.merge_cells("A4:A5")

    read = read_table(book(rows, change=change))
    assert read.frame["dept"].to_list() == ["A", "A", "B", "B"]
    assert read.frame["sex"].to_list() == ["F", "M", None, "F"]
    assert "2 merged ranges" in read.notes[0]


def test_the_first_sheet_with_a_table_is_read_and_the_others_can_be_chosen(book):
    cover, staff, more = (
        [["About this workbook"], ["by HR"]],
        [["a", "b"], ["x", 1]],
        [["a", "b"], ["y", 2]],
    )
    path = book(
        cover,
        staff,
        more,
        change=lambda made: setattr(made.worksheets[2], "sheet_state", "hidden"),
    )
    altered(path, {"xl/vbaProject.bin": b"a program, which is not read"})
    read = read_table(path)
    assert read.frame.rows() == [("x", 1)]
    assert (
        "has 3 sheets, and 'Sheet 2' was read; to read 'Sheet 1', 'Sheet 3', set sheet"
        in read.notes[0]
    )
    for sheet in ("Sheet 3", 3, "3"):
        chosen = read_table(path, FileReading(sheet=sheet))
        assert (chosen.frame.rows(), chosen.notes) == ([("y", 2)], ())
    for sheet in ("Sheet 9", 4, 0, "-1"):
        with pytest.raises(
            InputError, match=f"sheet is {sheet!r}, which .* does not have"
        ):
            read_table(path, FileReading(sheet=sheet))


@pytest.mark.more
def test_a_cell_far_away_costs_no_memory(book):
    path = book(
        [["a", "b"], ["x", 1]], change=lambda made: made.active.cell(200_000, 1, "far")
    )
    assert read_table(path).frame.shape == (2, 2)
    path = book(
        [["a", "b"], ["x", 1]],
        change=lambda made: made.active.cell(1_048_576, 16_384, "far"),
    )
    with pytest.raises(LimitError, match="as far as XFD1048576, or save the table"):
        read_table(path)


@pytest.mark.more
def test_a_bomb_is_refused_before_it_is_inflated(book, monkeypatch):
    monkeypatch.setattr("fairmaxent.data.limits.FREELY_INFLATED", 1 << 20)
    path = book([["a", "b"], ["x", 1]])
    altered(path, {SHEET: b"<worksheet><sheetData>" + b" " * (1 << 22)})
    with pytest.raises(LimitError, match="once decompressed"):
        read_table(path)
    with max_memory("1MB"), pytest.raises(LimitError, match="max_memory"):
        read_table(book([["a", "b"], *([f"text {n}", n] for n in range(9000))]))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({SHEET: "<worksheet><sheetData>"}, "damaged Excel workbook"),
        (
            {SHEET: f"{CELLS}<c r='A1' t='s'><v>99</v></c>{ENDS}"},
            "damaged Excel workbook",
        ),
        ({SHEET: None}, r"damaged Excel workbook \(Sheet 1\)"),
        ({"xl/workbook.xml": None}, "not an Excel workbook"),
        ({"xl/workbook.xml": "<workbook/>"}, "not an Excel workbook with sheets"),
        ({"[Content_Types].xml": None}, "zip archive, but not an Excel workbook"),
    ],
)
def test_damaged_and_foreign_archives_are_refused_in_one_line(parts, says, book):
    with pytest.raises(StorageError, match=says) as refusal:
        read_table(altered(book([["a", "b"], ["x", 1]]), parts))
    assert "\n" not in str(refusal.value)


def test_cut_and_old_workbooks_are_refused(book, put):
    content = book([["a", "b"], ["x", 1]]).read_bytes()
    with pytest.raises(StorageError, match="damaged Excel workbook"):
        read_table(put(content[: len(content) // 2], "half.xlsx"))
    with pytest.raises(
        StorageError, match="old Excel workbook, or one with a password"
    ):
        read_table(put(b"\xd0\xcf\x11\xe0" + b"\0" * 600, "old.xls"))


def test_what_is_written_is_what_openpyxl_reads(tmp_path):
    path = tmp_path / "table.xlsx"
    assert write_table(table(), path) == ()
    sheet = openpyxl.load_workbook(path).active
    header, *rows = sheet.iter_rows(values_only=True)
    assert header == tuple(COLUMNS)
    moments = [
        [
            dt.datetime.combine(cell, dt.time()) if type(cell) is dt.date else cell
            for cell in row
        ]
        for row in ROWS
    ]
    assert [list(row) for row in rows] == moments
    # no formula, although one begins with =
    assert {cell.data_type for cell in sheet["A"] if cell.value} == {"s"}
    assert all(cell.hyperlink is None for row in sheet for cell in row)
    assert sheet["D2"].number_format == "yyyy-mm-dd"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_table(path).frame.equals(table())
    assert read_table(path).notes == ()
    write_table(table().lazy(), tmp_path / "again.xlsx")
    # whenever it is written
    assert (tmp_path / "again.xlsx").read_bytes() == path.read_bytes()


def test_texts_of_any_kind_come_back(tmp_path):
    texts = [
        *("<&>\"'", " spaces ", "a\nb\tc\r\nd", "\x00\x01\x1f\x7f", "_x0041_"),
        *("=cmd|' /C calc'!A0", "@x", "ü€😀", "-"),
    ]
    frame = pl.DataFrame({"<name> & \x02": texts, "n": range(len(texts))})
    write_table(frame, tmp_path / "t.xlsx")
    cells = openpyxl.load_workbook(tmp_path / "t.xlsx").active["A"][1:]
    assert {cell.data_type for cell in cells} == {"s"}
    back = read_table(tmp_path / "t.xlsx").frame
    assert [name.strip() for name in frame.columns] == back.columns
    assert back.to_series().to_list() == [text.strip() for text in texts]


def test_what_a_sheet_cannot_hold_is_written_as_text_with_a_note(tmp_path):
    frame = pl.DataFrame(
        {
            "id": [10**15, 1],
            "born": [dt.date(1899, 12, 31), dt.date(2000, 1, 1)],
            "seen": [dt.datetime(2020, 1, 1, 0, 0, 0, 1), dt.datetime(2020, 1, 2)],
            "most": [float("inf"), 1.5],
            "none": [float("nan"), 2.5],
        }
    )
    (note,) = write_table(frame, tmp_path / "t.xlsx")
    assert (
        note
        == "a sheet cannot hold the numbers or dates of 'id', 'born', 'seen', 'most',"
        " so they were written as text"
    )
    back = read_table(tmp_path / "t.xlsx").frame
    assert back.select("born", "seen").equals(frame.select("born", "seen"))
    assert back["id"].to_list() == ["1000000000000000", "1"]
    assert back["none"].to_list() == [None, 2.5]


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (
            pl.DataFrame({"a": ["x" * 32_768]}),
            "at most 32,767 characters, and one in column 'a' has more",
        ),
        (
            pl.DataFrame({"a": pl.int_range(1_048_576, eager=True)}),
            "at most 1,048,576 rows",
        ),
        (pl.DataFrame({f"c{n}": [1] for n in range(16_385)}), "at most 16,384 columns"),
    ],
)
def test_what_is_too_large_for_a_sheet_is_refused_and_leaves_nothing(
    frame, says, tmp_path
):
    with pytest.raises(LimitError, match=says):
        write_table(frame, tmp_path / "t.xlsx")
    assert listing(tmp_path) == {}
