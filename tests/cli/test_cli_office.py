"""Office files on the command line: from `inspect` to a fair file of the same form."""

import csv
import datetime as dt
import io
import shlex
import stat

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from fairmaxent.cli.group import group
from fairmaxent.files.formats import read_table

openpyxl = pytest.importorskip(
    "openpyxl", reason="workbooks are compared with what openpyxl reads and writes"
)
ROWS = 160
ROLES = "--outcome Zusage --protected Geschlecht --favourable ja"
DEBIAS = f"{ROLES} --representation-rate 1 --estimate none --seed 1"


def people():
    """Applicants as plain values; men get a yes more often."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["männlich", "weiblich"], ROWS, p=[0.7, 0.3])
    yes = rng.random(ROWS) < np.where(sex == "männlich", 0.6, 0.3)
    return pl.DataFrame(
        {
            "Geschlecht": sex,
            "Gehalt": (rng.integers(80_000, 900_000, ROWS) * 5 / 100).round(2),
            "Quote": (rng.integers(0, 4000, ROWS) / 100).round(2),
            "Eintritt": [
                dt.date(2010, 1, 13) + dt.timedelta(days=int(days))
                for days in rng.integers(0, 5000, ROWS)
            ],
            "Zusage": np.where(yes, "ja", "nein"),
        }
    )


def german(number, suffix=""):
    return (
        f"{number:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") + suffix
    )


def text_of(rows, *, delimiter=";", end="\r\n"):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator=end).writerows(rows)
    return buffer.getvalue()


def german_rows(currency=""):
    return [
        [row[0], german(row[1], currency), german(row[2]), f"{row[3]:%d.%m.%Y}", row[4]]
        for row in people().rows()
    ]


def american_rows():
    return [
        [row[0], f"${row[1]:,.2f}", f"{row[2]:.2f}%", f"{row[3]:%m/%d/%Y}", row[4]]
        for row in people().rows()
    ]


def write_workbook(path):
    """An Excel workbook with titles, bands, a row of sums, formats and a second
    sheet.
    """
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Bewerbungen"
    above = (
        ["Bewerbungen 2025"],
        ["Stand:", dt.date(2025, 12, 31)],
        [],
        ["Person", None, None, "Bewerbung"],
    )
    for row in (
        *above,
        people().columns,
        *people().rows(),
        ["Summe", people()["Gehalt"].sum()],
    ):
        sheet.append(row)
    sheet.merge_cells("A4:C4")
    for row in range(6, 6 + ROWS):
        sheet[f"B{row}"].number_format = '#,##0.00 "€"'
        sheet[f"D{row}"].number_format = "dd/mm/yyyy"
    book.create_sheet("Notizen")["A1"] = "vertraulich"
    book.save(path)


HEADER = people().columns
TEXTS = {
    "german.csv": text_of([HEADER, *german_rows()]).encode("utf-8-sig"),
    "sep.csv": b"sep=;\r\n" + text_of([HEADER, *german_rows()]).encode(),
    "money.csv": (
        text_of(
            [["Applications 2025"], [], HEADER, *american_rows()],
            delimiter=",",
            end="\n",
        ).encode()
    ),
    "latin.csv": (
        text_of([["Bewerbungen; Größe"], HEADER, *german_rows(" €")]).encode("cp1252")
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in TEXTS.items():
        (tmp_path / name).write_bytes(content)
    write_workbook(tmp_path / "book.xlsx")
    return tmp_path


def run(line, code=0):
    result = CliRunner().invoke(group, shlex.split(line), prog_name="fairmaxent")
    assert result.exit_code == code, result.stderr
    return result


@pytest.mark.some(1)
@pytest.mark.parametrize("name", [*TEXTS, "book.xlsx"])
def test_a_fair_file_has_the_form_of_the_input(name, folder):
    fair = f"fair.{name.rsplit('.')[-1]}"
    run(f"debias {name} {DEBIAS} --like-input -o {fair}")
    run(f"debias {name} {DEBIAS} -o plain.parquet")
    table, source = read_table(folder / fair), read_table(folder / name)
    assert table.frame.equals(pl.read_parquet("plain.parquet"))
    assert table.form == source.form
    counts = table.frame["Geschlecht"].value_counts().rows()
    assert sorted(counts) == [("männlich", ROWS // 2), ("weiblich", ROWS // 2)]
    assert stat.S_IMODE((folder / fair).stat().st_mode) == 0o600


@pytest.mark.more
@pytest.mark.parametrize("name", ["latin.csv", "book.xlsx"])
def test_the_command_that_inspect_prints_writes_a_fair_file_of_the_same_form(
    name, folder
):
    printed = run(f"inspect {name}").stdout.splitlines()[-1].strip()
    program, _, line = printed.partition(" ")
    assert program == "fairmaxent"
    run(f"{line} --estimate none")
    fair = folder / name.replace(".", "-fair.")
    table, source = read_table(fair), read_table(folder / name)
    assert sorted(table.frame["Geschlecht"].value_counts()["count"]) == [
        ROWS // 2,
        ROWS // 2,
    ]
    assert table.form == source.form
    assert (
        folder / name.replace(".", "-report.").replace(name.rsplit(".")[-1], "html")
    ).exists()


def test_a_workbook_comes_back_as_a_workbook(folder):
    said = run(f"debias book.xlsx {DEBIAS} --like-input -o fair.xlsx").stdout
    assert (
        "Note: book.xlsx has 2 sheets, and 'Bewerbungen' was read; to read 'Notizen',"
        " set --sheet" in said
    )
    assert (
        "is in row 5, and what stands above it is taken for a title; if it is not, set"
        " --skip-lines 0" in said
    )
    assert (
        "only the table was written; titles, number formats, formulas and other sheets"
        in said
    )
    book = openpyxl.load_workbook("fair.xlsx")
    header, *rows = book.active.iter_rows(values_only=True)
    assert (header, len(rows)) == (tuple(HEADER), ROWS)
    assert {tuple(map(type, row)) for row in rows} <= {
        (str, kind, other, dt.datetime, str)
        for kind in (int, float)
        for other in (int, float)
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (
            f"debias book.xlsx {DEBIAS} --like-input -o fair.csv",
            3,
            (
                "--like-input writes xlsx, as the input is, and fair.csv is to be csv;"
                " name a file that ends in .xlsx"
            ),
        ),
        (
            f"debias german.csv {DEBIAS} --like-input -o fair.tsv",
            3,
            "fair.tsv is to be tsv",
        ),
        (
            f"debias german.csv {DEBIAS} --like-input",
            2,
            "--like-input needs -o: no table is written; add -o",
        ),
        (
            f"debias german.csv {DEBIAS} --like-input --scheduler tcp://h:1 -o out",
            2,
            "--scheduler cannot go together with --like-input",
        ),
        (
            f"inspect german.csv {ROLES} --sheet 2",
            3,
            "--sheet is for other files, and german.csv is csv",
        ),
        (
            f"inspect book.xlsx {ROLES} --sheet Bewerbung",
            3,
            (
                "--sheet is 'Bewerbung', which book.xlsx does not have; did you mean"
                " 'Bewerbungen'?"
            ),
        ),
        (f"inspect book.xlsx {ROLES} --sheet 2", 3, "no rows"),
        (
            f"inspect book.xlsx {ROLES} --encoding latin-1",
            3,
            "--encoding is for other files",
        ),
        (f"inspect book.xlsx {ROLES} --max-memory 10kB", 3, "--max-memory"),
        ("sample fit.fme -n 2000000 -o big.xlsx", 3, "at most 1,048,576 rows"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(line, code, says, folder):
    if line.startswith("sample"):
        run(f"debias german.csv {DEBIAS} --save fit.fme")
    before = sorted(folder.iterdir())
    result = run(line, code)
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.more
def test_a_config_file_keeps_how_a_file_is_read(folder):
    run(f"inspect book.xlsx {ROLES} --sheet 1 --skip-lines 4 --write-config fair.toml")
    text = (folder / "fair.toml").read_text()
    assert 'sheet = "1"' in text
    assert "skip_lines = 4" in text
    run("debias book.xlsx --config fair.toml --like-input -o fair.xlsx --estimate none")
    assert openpyxl.load_workbook("fair.xlsx").active["A1"].value == "Geschlecht"
