"""Sheets as offices make them: the table is found, or a note says how to read it.

Every command that a note prints is followed here.
"""

import datetime as dt
import random
import re
import shlex

import polars as pl
import pytest

from clifiles import run
from fairmaxent import Domain, InputError
from fairmaxent.cli.values import as_typed
from fairmaxent.files.block import Block, find_table, read_range
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading

openpyxl = pytest.importorskip("openpyxl", reason="workbooks are made with openpyxl")

HEADER = ["name", "sex", "pay", "hired"]
STAFF = [
    (
        f"Person {number}",
        "FM"[number % 2],
        900 + 37 * number,
        "yes" if number % 3 else "no",
    )
    for number in range(12)
]
PIVOT = [
    ["Row labels", "Sum of pay"],
    ["F", 5400],
    ["M", 5622],
    ["Grand total", 11022],
]


def put(sheet, rows, top=1, left=1):
    """Write rows into a sheet, from a cell on."""
    for down, row in enumerate(rows):
        for across, value in enumerate(row):
            if value is not None:
                sheet.cell(top + down, left + across, value)


@pytest.fixture
def sheet():
    return openpyxl.Workbook().active


def read(sheet, tmp_path, **options):
    sheet.parent.save(tmp_path / "book.xlsx")
    return read_table(tmp_path / "book.xlsx", FileReading(**options))


def followed(table, tmp_path, *, of=1, number=-1):
    """The table that the command in the notes gives, or one of several."""
    notes = " ".join(table.notes_spelled(as_typed))
    ranges = re.findall(r"--range ([A-Z0-9:]+)", notes)
    assert len(ranges) == of
    return read_table(tmp_path / "book.xlsx", FileReading(range=ranges[number]))


def staff(rows=STAFF):
    return pl.DataFrame(rows, schema=HEADER, orient="row")


# ---------------------------------------------------------------- twelve workbooks


def test_a_pivot_beside_the_table_is_left_out(sheet, tmp_path):
    put(sheet, [["Staff list"]])
    put(sheet, [HEADER, *STAFF], top=5)
    put(sheet, PIVOT, top=3, left=7)
    table = read(sheet, tmp_path)
    assert table.frame.equals(staff())
    assert table.notes_spelled(as_typed) == (
        f"the table in {tmp_path}/book.xlsx is in A1:D17, and what stands apart from it"
        " was left out (G3:H6); to read G3:H6, set --range G3:H6",
        f"the header of {tmp_path}/book.xlsx (name, sex, pay, …) is in row 5, and what"
        " stands above it is taken for a title; if it is not, set --skip-lines 0",
    )
    assert table.form.found == (("range", "A5:D17"),)
    pivot = followed(table, tmp_path)
    assert pivot.frame.rows() == [("F", 5400), ("M", 5622)]
    said = read(sheet, tmp_path, range="a5:d17")
    assert said.frame.equals(staff())
    assert said.notes == ()


@pytest.mark.parametrize("top", [1, 3])
def test_of_two_tables_the_longer_one_is_read_and_the_other_can_be(
    top, sheet, tmp_path
):
    put(sheet, [HEADER, *STAFF])
    put(sheet, [["unit", "budget"], ["A", 10], ["B", 20]], top, left=6)
    table = read(sheet, tmp_path)
    assert table.frame.equals(staff())
    assert followed(table, tmp_path).frame.rows() == [("A", 10), ("B", 20)]


def test_two_tables_of_the_same_names_are_two(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    put(sheet, [HEADER, *STAFF[:11]], left=6)
    table = read(sheet, tmp_path)
    assert table.frame.equals(staff())
    assert followed(table, tmp_path).frame.equals(staff(STAFF[:11]))


def test_two_tables_as_long_as_each_other_are_read_as_one_unless_a_range_is_said(
    sheet, tmp_path
):
    put(sheet, [HEADER, *STAFF])
    put(sheet, [["unit", "room"], *(("A", number) for number in range(12))], left=6)
    table = read(sheet, tmp_path)
    assert table.frame.columns == [*HEADER, "unit", "room"]
    assert followed(table, tmp_path).frame.equals(staff())


def test_of_two_tables_one_below_the_other_the_note_gives_each(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    put(sheet, [["unit", "budget"], ["A", 10], ["B", 20]], top=16)
    table = read(sheet, tmp_path)
    assert len(table.frame) == 15
    assert followed(table, tmp_path, of=2, number=0).frame.equals(staff())
    below = followed(table, tmp_path, of=2, number=1)
    assert below.frame.rows() == [("A", 10), ("B", 20)]


@pytest.mark.parametrize("more", [[], ["no", "yes"]])
def test_a_pivot_above_the_table_is_a_title_or_the_note_gives_the_table(
    more, sheet, tmp_path
):
    put(sheet, [[*PIVOT[0], *more], *([*row, *map(len, more)] for row in PIVOT[1:])])
    put(sheet, [HEADER, *STAFF], top=7)
    table = read(sheet, tmp_path)
    if more:
        table = followed(table, tmp_path, of=2)
    assert table.frame.equals(staff())


def test_notes_below_the_table_are_left_out_as_each_note_says(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    put(sheet, [["Source: HR"], ["All figures without bonus"]], top=15)
    put(sheet, [["Printed in May"], ["a"], ["b"], ["c"]], top=18)
    table = read(sheet, tmp_path)
    assert len(table.frame) == 18
    assert followed(table, tmp_path).frame.equals(staff())
    assert "with --skip-last 6" in " ".join(table.notes_spelled(as_typed))
    assert read(sheet, tmp_path, skip_last=6).frame.equals(staff())


def test_many_notes_that_touch_the_table_are_left_out_as_the_note_says(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF, ["Source: HR"], *([f"Note {n}"] for n in range(6))])
    table = read(sheet, tmp_path)
    assert (
        "leave out the last 7 rows with --skip-last 7"
        in (table.notes_spelled(as_typed)[-1])
    )
    assert read(sheet, tmp_path, skip_last=7).frame.equals(staff())


def test_merged_bands_above_the_header(sheet, tmp_path):
    put(sheet, [["Person", None, "Job"], HEADER, *STAFF])
    sheet.merge_cells("A1:B1")
    sheet.merge_cells("C1:D1")
    assert read(sheet, tmp_path).frame.equals(staff())


def test_hidden_rows_are_read_because_a_filter_only_hides_them(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    sheet.auto_filter.ref = "A1:D13"
    for row in (3, 4, 9):
        sheet.row_dimensions[row].hidden = True
    assert read(sheet, tmp_path).frame.equals(staff())


def test_a_chart_sheet_first(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    chart = openpyxl.chart.BarChart()
    chart.add_data(openpyxl.chart.Reference(sheet, min_col=3, min_row=1, max_row=13))
    sheet.parent.create_chartsheet(index=0).add_chart(chart)
    assert read(sheet, tmp_path).frame.equals(staff())


def test_dates_percents_and_currencies_as_numbers_and_as_text(sheet, tmp_path):
    put(sheet, [["sex", "day", "share", "pay", "due", "rise", "fee"]])
    for number in range(8):
        row = number + 2
        put(sheet, [["FM"[number % 2], f"{13 + number}/02/2024", f"{number} %"]], row)
        put(sheet, [[f"€ {number + 1}.250,50"]], row, left=4)
        put(sheet, [[dt.date(2024, 2, number + 1), number / 100, number]], row, left=5)
        sheet.cell(row, 6).number_format = "0.00%"
        sheet.cell(row, 7).number_format = "#,##0.00 [$€-407]"
    frame = read(sheet, tmp_path).frame
    assert frame.row(2) == (
        "F",
        dt.date(2024, 2, 15),
        2,
        3250.5,
        dt.date(2024, 2, 3),
        0.02,
        2,
    )


def test_totals_between_the_rows_are_left_out(sheet, tmp_path):
    first = sum(row[2] for row in STAFF[:5])
    second = sum(row[2] for row in STAFF[5:])
    rows = [
        *STAFF[:5],
        ("Total", "F", first, "both"),
        *STAFF[5:],
        ("Subtotal", "M", second, "both"),
        ("Grand total", "all", first + second, "both"),
    ]
    put(sheet, [HEADER, *rows])
    table = read(sheet, tmp_path)
    assert table.frame.equals(staff())
    assert "set --skip-last 0" in table.notes_spelled(as_typed)[-1]
    assert read(sheet, tmp_path, skip_last=0).frame.rows() == rows
    # no sum, and as full as others
    rows[5] = ("Total", "F", 1, "both")
    put(sheet, [HEADER, *rows])
    assert "Total" in read(sheet, tmp_path).frame["name"].to_list()


def test_a_filter_row_above_the_table(sheet, tmp_path):
    put(sheet, [["Region", "(all)"], ["Year", "2024"], [], HEADER, *STAFF])
    table = read(sheet, tmp_path)
    assert table.frame.equals(staff())
    assert "is in row 4, and what stands above it" in table.notes[0]
    assert table.form.found == (("skip_lines", "3"),)


def test_a_table_object_with_a_total(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF, ["Total", None, sum(row[2] for row in STAFF)]], 3, 2)
    made = openpyxl.worksheet.table.Table(displayName="Staff", ref="B3:E16")
    made.totalsRowCount = 1
    sheet.add_table(made)
    put(sheet, [["checked", "by Ann"]], top=9, left=9)
    assert read(sheet, tmp_path).frame.equals(staff())


# ---------------------------------------------------------------- what belongs to it


def test_an_empty_column_or_row_parts_no_table(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF[:6], [], *STAFF[6:]])
    put(sheet, [["remark"], [None], [None], ["late"], [None], [None], ["left"]], left=6)
    table = read(sheet, tmp_path)
    assert table.frame.columns == [*HEADER, "remark"]
    assert table.frame.select(HEADER).equals(staff())
    assert len(followed(table, tmp_path).frame) == 6


def test_advice_about_names_further_down_gives_names(sheet, tmp_path):
    put(sheet, [["Staff", "of", "HR", None], HEADER, *STAFF])
    table = read(sheet, tmp_path)
    assert "if the names stand further down, set" in table.notes[0]
    assert followed(table, tmp_path).frame.equals(staff())
    text = "\n".join(",".join(map(str, row)) for row in (HEADER, *STAFF))
    path = tmp_path / "staff.csv"
    path.write_text(f"Staff,of,HR,\n\n{text}\n")
    note = read_table(path).notes_spelled(as_typed)[0]
    assert note.endswith("if the names stand further down, set --skip-lines 1")
    assert read_table(path, FileReading(skip_lines=1)).frame.equals(staff())
    path.write_text(f"a,a,b,c\n{text}\n")
    with pytest.raises(InputError, match="further down, set skip_lines=1"):
        read_table(path)
    path.write_text("a,a,b,c\n1,2,3,4\n")
    with pytest.raises(InputError) as refused:
        read_table(path)
    assert "further down" not in str(refused.value)


@pytest.mark.parametrize(
    ("pay", "is_advised"),
    [
        (["1", "2", "-", "k. A.", "NA", "3", "4", "5"], True),
        (["1", "2", "F", "4", "5", "6", "7", "8"], False),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_advice_about_missing_gives_numbers_and_takes_no_value_for_a_mark(
    suffix, pay, is_advised, sheet, tmp_path
):
    rows = [("sex", "pay"), *(("FM"[n % 2], cell) for n, cell in enumerate(pay))]
    put(sheet, rows)
    sheet.parent.save(tmp_path / "book.xlsx")
    (tmp_path / "book.csv").write_text("".join(f"{a};{b}\n" for a, b in rows))
    path = tmp_path / f"book.{suffix}"
    notes = " ".join(read_table(path).notes_spelled(as_typed))
    advice = re.search(r"if this means missing, set (--missing-text .*)", notes)
    assert (advice is not None) == is_advised
    if advice is not None:
        marks = [word for word in shlex.split(advice[1]) if word != "--missing-text"]
        frame = read_table(path, FileReading(missing_text=marks)).frame
        assert frame["pay"].to_list() == [1, 2, None, None, None, 3, 4, 5]


@pytest.mark.parametrize(
    "text", ["A5", "5:9", "L9:A1", "A9:L5", "A0:B2", "Staff!A1:B2", "", "A1:B99999999"]
)
def test_what_is_no_range_is_refused(text, sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    with pytest.raises(InputError, match="such as A5:L945"):
        read(sheet, tmp_path, range=text)


def test_an_empty_range_and_one_of_another_file_are_refused(sheet, tmp_path):
    put(sheet, [HEADER, *STAFF])
    with pytest.raises(InputError, match="is empty; its table is in A1:D13"):
        read(sheet, tmp_path, range="H1:K9")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"range is for other files, and .* is csv"):
        read_table(tmp_path / "a.csv", FileReading(range="A1:B2"))


def test_the_command_and_a_config_read_a_range(sheet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(sheet, [HEADER, *STAFF], top=5)
    put(sheet, PIVOT, top=3, left=7)
    sheet.parent.save("book.xlsx")
    roles = ["--outcome", "hired", "--protected", "sex", "--favourable", "yes"]
    roles += ["--representation-rate", "0.1"]
    typed = run("check", "book.xlsx", *roles, "--range", "A5:D11")
    assert "6 rows" in typed.output
    (tmp_path / "fair.toml").write_text('range = "A5:D11"\n')
    config = ["--config", "fair.toml"]
    assert run("check", "book.xlsx", *roles, *config).output == typed.output


def test_each_row_of_a_range_is_read_by_a_declaration_as_inspect_proposes(
    sheet, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    put(sheet, [HEADER, *STAFF], top=5)
    put(sheet, PIVOT, top=3, left=7)
    sheet.parent.save("book.xlsx")
    roles = ["--outcome", "hired", "--protected", "sex", "--favourable", "yes"]
    said = run("inspect", "book.xlsx", *roles, "--write-domain", "domain.toml")
    assert "--range A5:D17" in re.sub(r"\s+", " ", said.output)
    declared = Domain.declare(levels={"sex": ["F", "M"], "hired": ["yes", "no"]})
    how = FileReading(range="A5:D17")
    table = read_table("book.xlsx", how, declaration=declared)
    assert table.frame.select("sex", "hired").rows() == [
        (row[1], row[3]) for row in STAFF
    ]


def test_blocks_are_found_as_by_hand():
    """Random sheets of a table and blocks that do not touch it, against their plan."""
    rng = random.Random(3)
    for _ in range(60):
        top = rng.randrange(4)
        width = rng.randrange(2, 6)
        height = rng.randrange(8, 20)
        rows: dict[int, dict[int, object]] = {}
        for row in range(top, top + height):
            for column in range(width):
                is_name = row == top
                value = (
                    f"name {column}" if is_name else rng.choice([row, f"text {row}"])
                )
                rows.setdefault(row, {})[column] = value
        beside = rng.randrange(2, 5)
        first = rng.choice([top + 1, top + 2])
        for row in range(first, first + beside):
            for column in range(width + 1, width + 3):
                rows.setdefault(row, {})[column] = row
        found = find_table(dict(sorted(rows.items())))
        assert found.block == Block(top, 0, top + height - 1, width - 1)
        assert found.apart == [Block(first, width + 1, first + beside - 1, width + 2)]
        assert read_range(str(found.block)) == found.block
