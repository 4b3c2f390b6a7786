"""Reading a file: what may be said about it before, and the table that it becomes."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from fairmaxent.data.declaration import DateOrder, DecimalMark
from fairmaxent.data.frames import load_library
from fairmaxent.data.levels import Notes
from fairmaxent.data.table import Names
from fairmaxent.errors import (
    ColumnError,
    InputError,
    Option,
    check_choice,
    spelled,
    unfit,
)
from fairmaxent.options import documented, option

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Cells of a CSV or a sheet that stand for a missing value, unless others are named."""

STANDARD = "-"  # stdin or stdout
Name = str | os.PathLike[str]
FoundOptions = tuple[tuple[str, str], ...]  # names and values of what was detected
Remark = str | tuple[object, ...]  # a sentence, or its parts, some of which are options
_MARKERS = ", ".join(mark or "empty" for mark in MISSING)


@documented
@dataclass(frozen=True, kw_only=True)
class FileReading:
    """How a file becomes a table; what is not given is detected."""

    input_format: str | None = option(
        None, doc="By default from the first bytes, then from the suffix, else CSV."
    )
    sheet: str | int | None = option(
        None,
        text="sheet",
        label="Sheet",
        help=(
            "Name or number of the sheet of an Excel workbook; by default the first"
            " that holds a table."
        ),
    )
    range: str | None = option(
        None,
        metavar="CELLS",
        label="Cells of the table",
        help=(
            "First and last cell of the table in a sheet, header included, such as"
            " A5:L945; by default the largest block of connected cells."
        ),
    )
    skip_lines: int | None = option(
        None,
        text="whole",
        least=0,
        label="Lines above the header",
        help=(
            "How many lines (of a sheet: rows) stand above the header; titles are"
            " detected by default."
        ),
    )
    skip_last: int | None = option(
        None,
        text="whole",
        least=0,
        label="Rows to leave out at the end",
        help="How many rows to leave out at the end, such as sums and remarks.",
    )
    delimiter: str | None = option(
        None,
        metavar="CHAR",
        label="Separator",
        help="Delimiter of a CSV; detected by default.",
    )
    encoding: str | None = option(
        None, label="Encoding", help="Encoding of a CSV; detected by default."
    )
    decimal: DecimalMark | None = option(
        None,
        choices=(",", "."),
        label="Decimal mark",
        help="Decimal mark of a CSV; detected by default.",
        doc=(
            "Decimal mark of numbers in text. By default a point; if the comma does not"
            " separate cells, also a comma, in a column whose cells are all such"
            " numbers."
        ),
    )
    date_order: DateOrder | None = option(
        None,
        choices=get_args(DateOrder),
        label="Order of dates",
        help=(
            "Whether 1/2/2025 is in February (dmy) or in January (mdy); by default"
            " other dates show it."
        ),
    )
    missing_text: Sequence[str] = option(
        (),
        text="texts",
        metavar="TEXT",
        label="Marks of missing values",
        help=(
            "Text of a cell that means missing; repeatable. Replaces the default:"
            f" {_MARKERS}."
        ),
        page_help=(
            "Text of a cell that means missing; several are separated by commas. They"
            f" replace the default: {_MARKERS}."
        ),
        doc=(
            "Cells of a CSV or a sheet that stand for a missing value; by default"
            " `MISSING`."
        ),
    )
    columns: Sequence[str] | None = option(
        None,
        text="columns",
        label="Names of the columns",
        help=(
            "Names of the columns, if there is no header line; one that contains a"
            " comma goes in double quotes."
        ),
        doc="Names of the columns, for a CSV or a sheet without a header.",
    )
    levels: Mapping[str, Mapping[str, str]] | None = option(
        None,
        text="names",
        label="Names of levels",
        help=(
            "New names for codes, 'SEX: 1=men, 2=women'; values that get the same name"
            " are merged. Repeatable."
        ),
    )

    def renamed(self, frame: Any) -> Any:
        """A polars frame, lazy or not, whose levels have the names that were given."""
        polars = load_library("polars")
        wanted = self.levels or {}
        for column, names in wanted.items():
            if column not in frame.collect_schema().names():
                raise ColumnError(
                    Option("levels"),
                    f" names {column!r}, which is not a column; check its spelling",
                )
            text = polars.col(column).cast(polars.String)
            is_lazy = hasattr(frame, "collect")
            if not is_lazy:
                _check_levels(column, names, frame.select(text.unique()).to_series())
            frame = frame.with_columns(text.replace(dict(names)))
        return frame

    @property
    def markers(self) -> Sequence[str]:
        """Cells that stand for a missing value."""
        return self.missing_text or MISSING

    def __post_init__(self) -> None:
        if self.decimal is not None:
            check_choice("decimal", self.decimal, DecimalMark)
        if self.date_order is not None:
            check_choice("date_order", self.date_order, DateOrder)
        _check_count("skip_lines", self.skip_lines, "lines above the header")
        _check_count("skip_last", self.skip_last, "rows below the table")


def _check_count(name: str, count: int | None, what: str) -> None:
    if count is not None and count < 0:
        raise unfit(name, count, f"give the number of {what}")


def _check_levels(column: str, names: Mapping[str, str], known: Iterable[str]) -> None:
    unknown = [*names.keys() - known]
    if unknown:
        raise InputError(
            Option("levels", column=column),
            f" names {unknown[0]!r}, which no row has",
        )


@dataclass(frozen=True)
class TableForm:
    """What a result can keep of the form of its input."""

    format: str
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"  # utf-8-sig and utf-16 begin with a mark (BOM)
    dates: DateOrder | None = field(default=None, compare=False)
    # options that say what was detected
    found: FoundOptions = field(default=(), compare=False)


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table that was read, and what the user should know about how it was read."""

    frame: Any  # a polars DataFrame, or a LazyFrame if it is not in memory
    remarks: tuple[Remark, ...] = ()
    # the same table with the columns that were left out; None: no column was
    whole: Any = None
    dropped: Names = ()  # the columns that were left out
    # how it is written, so that a result can be written like it
    form: TableForm = TableForm("parquet")

    @property
    def complete(self) -> Any:
        """The same table with the columns that were left out."""
        if self.whole is None:
            return self.frame
        return self.whole

    @property
    def notes(self) -> Notes:
        """The remarks as sentences, with options as Python spells them."""
        return self.notes_spelled(str)

    def notes_spelled(self, spell: Callable[[Option], str]) -> Notes:
        """The remarks as sentences, with their options spelled by ``spell``."""
        return tuple(
            remark if isinstance(remark, str) else spelled(remark, spell)
            for remark in self.remarks
        )
