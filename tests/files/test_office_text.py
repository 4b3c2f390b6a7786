"""Text files as offices write them: titles, sep=, amounts, dates, encodings; and
written back.
"""

import datetime as dt

import polars as pl
import pytest

from fairmaxent import InputError
from fairmaxent.cli.values import as_typed
from fairmaxent.errors import StorageError
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading
from fairmaxent.files.write import write_table

BODY = "name;sex;pay\nAnn;F;10\nBob;M;20\nCem;M;30\nDee;F;40\n"
ROWS = [("Ann", "F", 10), ("Bob", "M", 20), ("Cem", "M", 30), ("Dee", "F", 40)]

GERMAN = "".join(
    [
        "Personal der Größe 2025\r\nStand: 31.12.2025;vertraulich\r\n\r\n",
        "Name;Geschlecht;Gehalt;Eintritt;Quote;Stück;Bemerkung\r\n",
        "Müller;w;1.234,50 €;01.03.2019;0,25;1.200;k. A.\r\n",
        'Öz;m;-12.000,00 €;31.12.2020;1,50;950;"a;b"\r\n',
        "Weiß;w;0,00 €;15.07.2021;-3,75;12.000;NA\r\n",
        "Jäger;m;999,99 €;02.02.2022;10,00;0;k. A.\r\n",
    ]
)
AMERICAN = (
    'sep=,\nname,sex,pay,hired,rate,units\n"Doe,'
    ' J.",F,"$1,234.50",12/31/2019,12.5%,"1,200"\n'
    'Roe,M,"-$12,000.00",01/05/2020,7.0%,950\nPoe,F,$0.75,07/15/2021,0.5%,"1,234,567"\n'
)
PLAIN = (
    "a,b,c,d\n1,2.50,x,2020-01-02 10:00:00\n2,0.25,y,2020-01-03"
    " 11:30:00\n3,,NA,2020-01-04 12:00:05\n"
)


@pytest.mark.parametrize(
    "above",
    [
        "Staff list 2025\n",
        "Staff list 2025\n\n",
        "\n\nStaff list 2025\nprinted by HR\n\n",
        "Staff list 2025;;\n;;\n",
        '"Staff list; 2025"\n',
        "Staff, sex, pay and more\n",
        "Person;;Work\n",
        "Staff list 2025\n;Person;\n",
    ],
)
def test_titles_are_skipped_with_a_note(above, put):
    table = read_table(put(above + BODY))
    assert table.frame.rows() == ROWS
    lines = above.count("\n")
    assert [f"is in line {lines + 1}, and" in note for note in table.notes] == [True]
    assert "skip_lines=0" in table.notes[0]
    assert "--skip-lines 0" in table.notes_spelled(as_typed)[0]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (BODY, ["name", "sex", "pay"]),
        ("\n\n" + BODY, ["name", "sex", "pay"]),
        # a header of which only one column has a name: what follows are rows, because F
        # occurs again
        (
            "name;;\nAnn;F;yes\nBob;F;no\nCem;M;no\nDee;M;yes\n",
            ["name", "column_2", "column_3"],
        ),
        (";a;b\n0;x;1\n1;y;2\n2;z;3\n3;x;4\n", ["column_1", "a", "b"]),
        ("name;\nAnn;F\nBob;M\nCem;F\n", ["name", "column_2"]),
        ("title;;\n1;2;3\n4;5;6\n7;8;9\n", ["title", "column_2", "column_3"]),
        (
            "2023;;2024;\nm;w;m;w\n1;2;3;4\n5;6;7;8\n9;8;7;6\n",
            ["2023", "column_2", "2024", "column_4"],
        ),
        ("word\none\ntwo\nthree\nfour\n", ["word"]),
    ],
)
def test_what_may_be_a_header_is_no_title(text, header, put):
    table = read_table(put(text))
    assert table.frame.columns == header
    # no row below can be a header, so none is advised
    assert not any("further down" in note for note in table.notes)


def test_lines_to_skip_can_be_said(put):
    path = put("a;b;c\n" + BODY)
    assert read_table(path).frame.columns == ["a", "b", "c"]
    said = read_table(path, FileReading(skip_lines=1))
    assert (said.frame.rows(), said.notes) == (ROWS, ())
    titled = put("Staff\n" + BODY)
    with pytest.raises(
        StorageError, match=r"line 2: 3 cells, but 1 column;.* or skip_lines"
    ):
        read_table(titled, FileReading(skip_lines=0, delimiter=";"))
    with pytest.raises(
        InputError,
        match="no table beside the rows that are skipped; set skip_lines or skip_last",
    ):
        read_table(path, FileReading(skip_lines=99))
    with pytest.raises(InputError, match="skip_lines is -1"):
        read_table(path, FileReading(skip_lines=-1))
    with pytest.raises(
        StorageError, match=r"line 8: 2 cells, but .* or skip_last if it is no row"
    ):
        read_table(put("Staff\n\n" + BODY + "Eve;F\n"))


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "sep=; "])
def test_the_line_that_says_the_separator_is_no_header(first, put):
    table = read_table(put(f"{first}\n{BODY.replace('Ann', 'Ann, A., B.')}"))
    assert table.frame.columns == ["name", "sex", "pay"]
    assert table.frame["name"][0] == "Ann, A., B."
    assert "first line" in table.notes[0]
    assert (
        read_table(put(f"{first}\n{BODY}"), FileReading(delimiter=",")).frame.width == 1
    )


@pytest.mark.parametrize(
    "last", ["Total;;100\n", "Total;;100", "Total;;100\n\n;;\n", "Source: HR\n"]
)
def test_what_stands_below_the_table_can_be_left_out(last, put):
    table = read_table(put(BODY + last), FileReading(skip_last=1))
    assert table.frame.rows() == ROWS
    assert not any("looks like" in note for note in table.notes)
    with pytest.raises(InputError, match="no table beside the rows that are skipped"):
        read_table(put(BODY + last), FileReading(skip_last=10**30))
    with pytest.raises(InputError, match="skip_last is -1"):
        read_table(put(BODY + last), FileReading(skip_last=-1))


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("last", "rows", "noted"),
    [
        ("Total;;100\n", 4, "left out; to keep it, set --skip-last 0"),
        ("Summe:;;100\n\n", 4, "left out; to keep it"),
        (";Grand total;100\n;;\n", 4, "left out; to keep it"),
        ("Łącznie;;100\n", 4, "left out; to keep it"),
        ("Gesamt;;\n", 4, "left out; to keep it"),
        ("Total;;99\n", 5, "looks like a sum or a remark"),
        ("Source: HR;;\n", 5, "looks like a sum or a remark, and was read as data"),
        (
            "Total;;100\nSource: HR;;\n",
            6,
            "leave out the last 2 rows with --skip-last 2",
        ),
        ("Totally;F;100\n", 5, None),
        ("Ann;;100\n", 5, None),
    ],
)
def test_sums_are_left_out_only_if_they_are_and_other_remarks_below_are_noted(
    last, rows, noted, put
):
    table = read_table(put(BODY + last))
    assert (table.frame.rows()[:4], len(table.frame)) == (ROWS, rows)
    assert [noted in note for note in table.notes_spelled(as_typed)] == [True] * (
        noted is not None
    )
    assert len(read_table(put(BODY + last), FileReading(skip_last=0)).frame) == max(
        rows, 5
    )


def test_empty_rows_at_the_end_are_left_out_with_a_note(put):
    table = read_table(put(BODY + ";;\n;;\n"))
    assert table.frame.rows() == ROWS
    assert table.notes[-1].endswith("ends with 2 empty rows, left out")
    # in between they are rows
    assert len(read_table(put("a;b\n1;2\n;\n3;4\n")).frame) == 3


@pytest.mark.some(7)
@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,234.50", "12.00", "-1,000,000.25"], [1234.5, 12.0, -1000000.25]),
        (["1,234", "500", "12,345,678"], [1234, 500, 12345678]),
        (["$1,234", "$5", "-$12"], [1234, 5, -12]),
        (["$ 1,234.5", "$ -5.25", "$0"], [1234.5, -5.25, 0.0]),
        (["€ 1.234,50", "€ 5", "€ 0,25"], [1234.5, 5.0, 0.25]),
        # money has no three decimals
        (["1.234 €", "12.500 €", "7 €"], [1234, 12500, 7]),
        # unless nothing else fits
        (["0,759 €", "1,659 €", "2 €"], [0.759, 1.659, 2.0]),
        (["1 234,50", "12", "1 000 000,5"], [1234.5, 12.0, 1000000.5]),
        (["1\u00a0234", "12", "1\u00a0000\u00a0000"], [1234, 12, 1000000]),
        (["1'234.50", "12", "1'000'000"], [1234.5, 12.0, 1000000.0]),
        (["CHF 1'234.50", "CHF 12", "CHF 3"], [1234.5, 12.0, 3.0]),
        (["Fr. 1'234.50", "Fr. 12", "Fr. 3"], [1234.5, 12.0, 3.0]),
        (["100 kr", "1 234 kr", "7 kr"], [100, 1234, 7]),
        (["12.5 %", "100 %", "0.25 %"], [12.5, 100.0, 0.25]),
        # different currencies are not one number
        (["£5", "€5", "£6"], ["£5", "€5", "£6"]),
        (["$1,23", "$4,567.00", "$1"], ["$1,23", "$4,567.00", "$1"]),
        (["1,234", "007", "1,000"], ["1,234", "007", "1,000"]),
        (["ABC 123", "ABC 124", "ABC 1"], ["ABC 123", "ABC 124", "ABC 1"]),
        # in a file whose cells are separated by commas
        (["1,23", "4,56", "7,89"], ["1,23", "4,56", "7,89"]),
        (["12,34,567", "1,234", "1"], ["12,34,567", "1,234", "1"]),
        (["1,234.5.6", "1,234", "1"], ["1,234.5.6", "1,234", "1"]),
    ],
)
def test_amounts_are_numbers_if_all_of_a_column_is(cells, values, put):
    table = column_in(put, ",", cells)
    assert table.frame["a"].to_list() == [*values[:2], None, *values[2:]]
    assert any("were read as" in note and "(a)" in note for note in table.notes) == (
        values != cells
    )


def column_in(put, separator, cells):
    """A file with these cells and an empty one in column a."""
    lines = "".join(f'"{cell}"{separator}x\n' for cell in [*cells[:2], "", *cells[2:]])
    return read_table(put(f"a{separator}b\n{lines}"))


@pytest.mark.some(10)
@pytest.mark.parametrize(
    ("separator", "cells", "kind"),
    [
        (",", ["1", "-2", "+3"], pl.Int64),
        (",", ["1", "2.5", "1e3"], pl.Float64),
        (",", ["007", "010", "123"], pl.String),
        *(
            (",", codes.split(), pl.String)
            for codes in ("1E3 10E2 1000", "5E2 7E1 3", "1e3 1000 5", "1.10 1.1 2")
        ),
        *(
            (",", codes.split(), pl.String)
            for codes in ("+491701234567 +33612345678 112", "+3 3 -1")
        ),
        *(
            (",", prices.split(), pl.Float64)
            for prices in ("1.10 2.50 3", "-0.0 0.0 1.5")
        ),
        (",", ["+33 612 345 678", "+33 612 345 679", "+33 612 345 670"], pl.String),
        (",", ["0", "10", "0.5"], pl.Float64),
        (",", ["12345678901234567890", "1", "2"], pl.String),
        (",", ["1", "2", "x"], pl.String),
        (",", ["true", "false", "true"], pl.Boolean),
        (",", ["True", "False", "True"], pl.String),
        (",", ["2020-01-31", "2020-02-01", "1999-12-31"], pl.Date),
        (",", ["2020-01-31", "2020-02-31", "1999-12-31"], pl.String),
        (
            ",",
            ["2020-01-31 10:00:00", "2020-01-31T10:00:00.5", "2020-01-31 10:00:01"],
            pl.Datetime("us"),
        ),
        (";", ["1,5", "-2", "0,25"], [1.5, -2.0, 0.25]),
        (";", ["1.234,5", "12", "1.234.567,0"], [1234.5, 12.0, 1234567.0]),
        (";", ["1,5", "2,5", "x"], pl.String),
        (";", ["1,5", "0.5", "2,5"], pl.String),  # no number is written in both ways
        (";", ["0,5,1", "1,5", "2"], pl.String),
        (";", ["01,5", "1,5", "2"], pl.String),
        (
            ";",
            ["31.12.2020", "1.2.1999", "29.02.2020"],
            [*map(dt.date, (2020, 1999, 2020), (12, 2, 2), (31, 1, 29))],
        ),
        (";", ["31.12.2020", "31.02.2020", "1.1.2020"], pl.String),
        (";", ["12.31.2020", "1.1.2020", "1.1.2020"], pl.String),
    ],
)
def test_a_column_is_of_a_kind_only_if_all_of_it_is(separator, cells, kind, put):
    column = column_in(put, separator, cells).frame["a"]
    values = cells if kind == pl.String else kind
    if isinstance(values, list):
        assert column.to_list() == [*values[:2], None, *values[2:]]
    else:
        assert (column.dtype, column.null_count()) == (kind, 1)


def test_texts_that_would_become_one_number_are_noted_with_the_option_that_makes_them_numbers(
    put,
):
    path = put("a;b;c\n1,1;+49301;1,5\n1,10;+49302;2,5\n")
    table = read_table(path)
    assert table.frame["a"].to_list() == ["1,1", "1,10"]
    assert table.notes_spelled(as_typed)[1].endswith(
        "(a, b); if they are numbers, set --decimal"
    )
    assert read_table(path, FileReading(decimal=",")).frame["a"].to_list() == [1.1, 1.1]


@pytest.mark.parametrize(
    ("text", "read", "other"),
    [
        ("a;b\n;x\n2.100;x\n950;x\n", "'2.100' were read as 2100 (a)", "."),
        ("a|b\n|x\n2.100|x\n950|x\n", "'2.100' were read as 2.1 (a)", ","),
        ("a;b\n1,234;x\n2,500;x\n", "'1,234' were read as 1.234 (a)", "."),
    ],
)
def test_a_mark_that_may_separate_thousands_is_noted_with_the_option_that_decides(
    text, read, other, put
):
    (note,) = read_table(put(text)).notes_spelled(as_typed)
    assert note == f"numbers such as {read}; if that is wrong, set --decimal {other}"
    otherwise = read_table(put(text), FileReading(decimal=other))
    assert otherwise.frame["a"].drop_nulls().to_list() in (
        [2.1, 950.0],
        [2100, 950],
        [1234, 2500],
    )
    assert f"were read as {otherwise.frame['a'].drop_nulls()[0]} " not in note


@pytest.mark.parametrize(
    ("text", "rows"),
    [  # one column shows what a comma means, or the order of dates, in another
        (
            "a;b;c\n1,234;$1,234.50;1.5\n2,500;$2.00;2.5\n",
            [(1234, 1234.5, 1.5), (2500, 2.0, 2.5)],
        ),
        ("a;b\n1,234;x\n2,500;y\n", [(1.234, "x"), (2.5, "y")]),
        ("a;b\n2.100;1.5\n950;0.5\n", [(2.1, 1.5), (950.0, 0.5)]),
        (
            "a;b;c\n1,5;1.234;0.5\n2,5;2.500;0.25\n",
            [(1.5, 1234, 0.5), (2.5, 2500, 0.25)],
        ),
        (
            "a;b\n01/02/2020;1,5\n03/04/2020;2,5\n",
            [(dt.date(2020, 2, 1), 1.5), (dt.date(2020, 4, 3), 2.5)],
        ),
        (
            "a,b\n01/02/2020,12/31/2020\n",
            [(dt.date(2020, 1, 2), dt.date(2020, 12, 31))],
        ),
        (
            "a,b,c\n1/2/2020,12/31/2020,31/12/2020\n",
            [("1/2/2020", dt.date(2020, 12, 31), dt.date(2020, 12, 31))],
        ),
    ],
)
def test_one_column_shows_how_another_is_written(text, rows, put):
    assert read_table(put(text)).frame.rows() == rows


DAYS = [dt.date(2020, 2, 1), dt.date(2020, 12, 31)]
TIMES = [dt.datetime(2020, 12, 31, 8, 30), dt.datetime(2021, 1, 1, 17, 5, 9)]


@pytest.mark.parametrize(
    ("cells", "days", "order"),
    [
        (
            ["31.12.2020 08:30", "1.1.2021 17:05"],
            [TIMES[0], TIMES[1].replace(second=0)],
            "day.",
        ),
        (["12/31/2020 8:30:00", "1/1/2021 17:05:09"], TIMES, "month/"),
        (["01/02/2020", "31/12/2020"], DAYS, "day/month/year"),
        (["2/1/2020", "12/31/2020"], DAYS, "month/day/year"),
        (["1-2-2020", "31-12-2020"], DAYS, "day-month-year"),
        (["1.2.2020", "31.12.2020"], DAYS, "day.month.year"),
        (["31/12/2020", "12/31/2020"], None, None),
        (["31/02/2020", "30/12/2020"], None, None),
        (["01/02/20", "31/12/20"], None, None),
        (["1/2-2020", "31/12-2020"], None, None),
    ],
)
def test_a_day_after_the_12th_shows_the_order(cells, days, order, put):
    table = read_table(put("a,b\n" + "".join(f"{cell},x\n" for cell in cells)))
    assert table.frame["a"].to_list() == (days or cells)
    assert [order in note for note in table.notes] == ([True] if order else [])


def test_dates_that_can_be_read_in_two_ways_stay_text_and_the_note_says_how_to_read_them(
    put,
):
    path = put("a,b\n01/02/2020,x\n03/04/2020,y\n")
    table = read_table(path)
    assert table.frame["a"].to_list() == ["01/02/2020", "03/04/2020"]
    assert "date_order='dmy' or date_order='mdy'" in table.notes[0]
    assert "--date-order dmy or --date-order mdy" in table.notes_spelled(as_typed)[0]
    for order, days in (("dmy", [(2, 1), (4, 3)]), ("mdy", [(1, 2), (3, 4)])):
        read = read_table(path, FileReading(date_order=order)).frame["a"].to_list()
        assert read == [dt.date(2020, month, day) for month, day in days]
    with pytest.raises(InputError, match="date_order is 'ymd'"):
        read_table(path, FileReading(date_order="ymd"))


def test_new_values_and_columns_are_written_by_the_marks_of_the_file_and_lose_no_digit(
    put, tmp_path
):
    table = read_table(put(GERMAN.encode("cp1252")))
    frame = table.frame.with_columns(
        pl.Series("Gehalt", [1234567.125, -0.001, 1e-7, None]),
        pl.Series("fair_weight", [0.1 + 0.2, 1.0, 1e14, 0.25]),
    )
    write_table(frame, tmp_path / "new.csv", form=table.form)
    lines = (tmp_path / "new.csv").read_text(encoding="cp1252").splitlines()
    assert (
        lines[0] == "Name;Geschlecht;Gehalt;Eintritt;Quote;Stück;Bemerkung;fair_weight"
    )
    assert (
        lines[1]
        == "Müller;w;1234567,125;2019-03-01;0,25;1200;k. A.;0,30000000000000004"
    )
    assert lines[2].endswith('"a;b";1')
    assert read_table(tmp_path / "new.csv").frame.equals(frame)


def test_beside_semicolons_the_comma_is_the_decimal_mark_though_no_number_shows_it(
    put, tmp_path
):
    table = read_table(put("a;b\n1;x\n2;y\n"))
    frame = table.frame.with_columns(fair_weight=pl.Series([0.5, 1.5]))
    write_table(frame, tmp_path / "new.csv", form=table.form)
    lines = (tmp_path / "new.csv").read_text().splitlines()
    assert lines == ["a;b;fair_weight", "1;x;0,5", "2;y;1,5"]


def test_what_the_encoding_cannot_hold_is_written_as_utf_8_with_a_note(put, tmp_path):
    table = read_table(put(GERMAN.encode("cp1252")))
    frame = table.frame.with_columns(Name=pl.Series(["Łuk", "b", "c", "d"]))
    assert write_table(frame, tmp_path / "new.csv", form=table.form) == (
        "cp1252 has no character 'Ł', so the table was written as utf-8",
    )
    assert read_table(tmp_path / "new.csv").frame.equals(frame)


def test_the_format_of_the_input_is_kept_and_another_one_is_refused(put, tmp_path):
    table = read_table(put(BODY))
    write_table(table.frame, tmp_path / "back", form=table.form)
    assert (tmp_path / "back").read_text() == BODY
    with pytest.raises(InputError, match=r"like_input writes csv, .* is to be xlsx"):
        write_table(table.frame, tmp_path / "back", form=table.form, format="xlsx")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (
            ["1", "2.5", "-", "4", "5", "6", "-"],
            "because of '-' in 2 cells; if this means missing, set missing",
        ),
        (
            ["€ 1", "€ 2", "k. A.", "€ 4", "€ 5", "€ 6", "€ 7"],
            "because of 'k. A.' in 1 cell",
        ),
        (["a1", "a2", "b", "a3", "a4", "a5", "a6"], None),
        (["1", "2", "a", "b", "c", "d", "7"], None),
        (["007", "008", "-", "009", "010", "011", "012"], None),
    ],
)
def test_a_text_that_keeps_a_column_from_being_numbers_is_named(cells, says, put):
    path = put("a;b\n" + "".join(f"{cell};x\n" for cell in cells))
    table = read_table(path)
    assert table.frame["a"].to_list() == cells
    assert [says in note for note in table.notes] == ([True] if says else [])
    if says:
        assert "--missing-text " in table.notes_spelled(as_typed)[0]
        assert (
            read_table(path, FileReading(missing_text=["-", "k. A."]))
            .frame["a"]
            .dtype.is_numeric()
        )
