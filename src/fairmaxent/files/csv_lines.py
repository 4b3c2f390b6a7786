"""CSV files whose columns are declared: each line is read by itself.

So no line changes how another is read, and what a row is depends on nobody else's.
"""

import codecs
import csv
from collections.abc import Collection
from typing import Any

import numpy as np

from fairmaxent.data.frames import load_library
from fairmaxent.data.limits import LONGEST_CELL
from fairmaxent.data.table import NameList
from fairmaxent.errors import InputError, Option, StorageError
from fairmaxent.files.cells import typed_table
from fairmaxent.files.content import need_room
from fairmaxent.files.csv import (
    BYTE_MEMORY,
    CELL_MEMORY,
    NO_VALUE,
    SEPARATOR_LINE,
    USUAL,
    misfit,
    possible_separators,
)
from fairmaxent.files.encodings import unknown_encoding
from fairmaxent.files.reading import FileReading, TableForm
from fairmaxent.files.surroundings import column_names

polars = load_library("polars")


def cells_by_line(
    content: bytes,
    path: str,
    reading: FileReading,
    declared: Collection[str],
    format: str,
) -> tuple[Any, StorageError | None, TableForm]:
    """Read each line as text; say which is the first that does not fit the header.

    Of the header, which is the first line, only the separator is detected. Columns that
    are not ``declared`` are typed.
    """
    csv.field_size_limit(LONGEST_CELL)
    need_room(BYTE_MEMORY * len(content) + CELL_MEMORY * content.count(b"\n"), path)
    lines, encoding = _decoded_lines(content, reading.encoding)
    found = SEPARATOR_LINE.match(lines[0])
    above = max(reading.skip_lines or 0, int(found is not None))
    filled = [
        number
        for number, line in enumerate(lines)
        if number >= above and line.strip(NO_VALUE)
    ]
    filled = filled[: max(len(filled) - (reading.skip_last or 0), 0)]
    separators = possible_separators(
        reading.delimiter, USUAL.get(format), found and found[1]
    )
    # if names are given, the first line is a row
    separator = separators[0]
    header = list(reading.columns or ())
    if not header and filled:
        first = lines[filled.pop(0)]
        separator = max(separators, key=lambda mark: len(_line_cells(first, mark)))
        header = _line_cells(first, separator)

    if not header:
        raise InputError(
            f"{path} has no line with the names of its columns; set ", Option("columns")
        )

    names = column_names(header, reading, path, [], "")
    cells, fits = _split_lines([lines[number] for number in filled], separator, names)
    problem = None
    if not fits.all():
        odd = filled[int(np.argmin(fits))]
        record = _line_cells(lines[odd], separator)
        problem = misfit(
            f"{path}, line {odd + 1}",
            record,
            names,
            is_first=False,
        )

    others = cells.drop([name for name in names if name in declared])
    if others.width:
        typed = typed_table(others, ["", *reading.markers], reading, separator)
        cells = cells.with_columns(**typed.columns)
    form = TableForm(format, separator, reading.decimal or ".", encoding)
    return cells, problem, form


def _decoded_lines(content: bytes, encoding: str | None) -> tuple[list[str], str]:
    """The lines, and the encoding: given, or that of the mark at the beginning.

    Bytes that the encoding lacks spoil one line.
    """
    used = encoding or "utf-8"
    if not encoding and content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        used = "utf-16"
    try:
        if codecs.lookup(used).name.startswith(("utf-16", "utf-32")):
            content = content.decode(used, "replace").encode()
            used = "utf-8"
        lines = [line.decode(used, "replace") for line in content.split(b"\n")]
    except LookupError as problem:
        raise unknown_encoding(used) from problem
    return [lines[0].removeprefix("\ufeff"), *lines[1:]], codecs.lookup(used).name


def _line_cells(line: str, separator: str) -> list[str]:
    """The cells of a line; none if its quotes do not match."""
    reader = csv.reader(
        [line.rstrip("\r")],
        delimiter=separator,
        skipinitialspace=True,
        strict=True,
    )
    try:
        return next(reader, [])
    except csv.Error:
        return []


def _split_lines(
    lines: list[str], separator: str, names: NameList
) -> tuple[Any, np.ndarray[Any, Any]]:
    """The cells of the lines that have one for each name, and which lines these are."""
    text = polars.Series(lines, dtype=polars.String)
    parts = text.str.split(separator)
    is_quoted = text.str.contains('"', literal=True)
    fits = ((parts.list.len() == len(names)) & ~is_quoted).to_numpy()
    split = parts.filter(fits)
    table = polars.DataFrame(
        [split.list.get(place).alias(name) for place, name in enumerate(names)]
    )
    quoted = {}  # lines with quotes, which are few
    for number in is_quoted.arg_true():
        record = _line_cells(lines[number], separator)
        if len(record) == len(names):
            quoted[number] = record

    if quoted:
        schema = dict.fromkeys(names, polars.String)
        records = polars.DataFrame(list(quoted.values()), schema=schema, orient="row")
        order = np.argsort([*np.flatnonzero(fits), *quoted], kind="stable")
        table = table.vstack(records)[order]
        fits[list(quoted)] = True
    return table.select(polars.all().str.strip_chars()), fits
