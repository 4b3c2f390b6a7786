"""The layout of a CSV: what separates its cells, and where the table begins below titles."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.errors import InputError, Option
from fairmaxent.files.cell_kinds import Remark
from fairmaxent.files.csv_text import line_start, separator_line
from fairmaxent.files.header import title_count, title_remark

DELIMITERS = ",;\t|"

_SNIFFED = 50  # lines


@dataclass(frozen=True)
class Layout:
    """Where the table begins in the text, and what separates its cells."""

    separator: str
    separator_line: str  # such as "sep=;", with its line end
    start: int  # of the table, in characters
    lines: int  # before it

    def remarks(self, path: str, header: Sequence[str]) -> Iterator[Remark]:
        """Say what was skipped unasked."""
        if self.separator_line:
            yield f"{path} says in its first line what separates the cells ({self.separator_line.strip()})"
        if self.lines > bool(self.separator_line):
            yield title_remark(path, f"line {self.lines + 1}", header)


def find_layout(text: str, delimiter: str | None, skip_lines: int | None, *, has_header: bool) -> Layout:
    """Find out what separates the cells, and skip lines above the header: as many as asked, or titles."""
    if skip_lines is not None and skip_lines < 0:
        raise InputError(Option("skip_lines"), f" is {skip_lines}; give the number of lines above the header")
    first, declared = separator_line(text)
    skipped = max(skip_lines or 0, 1 if first else 0)
    start = line_start(text, skipped)
    if delimiter is not None or declared is not None:
        separators = _check_delimiter(declared or "" if delimiter is None else delimiter)
    else:
        separators = DELIMITERS
    beginnings = {separator: _beginning(text[start:], separator) for separator in separators}
    separator = max(separators, key=lambda one: _regular_width(beginnings[one]))  # the first of equals: the comma
    if skip_lines is None and has_header:
        is_cut = text.count("\n", start) > _SNIFFED
        by_titles = {one: _titles(records, is_cut=is_cut) for one, records in beginnings.items()}
        if not _regular_width(beginnings[separator])[0]:
            titled = [one for one in separators if by_titles[one]]
            separator = min(titled, key=lambda one: by_titles[one], default=separator)
        if by_titles[separator]:
            skipped += beginnings[separator][by_titles[separator]][0]
            start = line_start(text, skipped)
    return Layout(separator, first, start, skipped)


def _beginning(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first records that are not empty, each with the number of lines before it; the last may be cut off."""
    start = text[: line_start(text, _SNIFFED)]
    reader = csv.reader(io.StringIO(start, newline=""), delimiter=separator, skipinitialspace=True)
    records, before = [], 0
    try:
        for record in reader:
            if record:
                records.append((before, record))
            before = reader.line_num
    except csv.Error:  # a cell beyond the limit
        return []
    return records


def _titles(records: Sequence[tuple[int, Sequence[str]]], *, is_cut: bool) -> int:
    """How many of the first records are titles; if there are more records than these, the last may be incomplete."""
    return title_count([record for _, record in (records[:-1] if is_cut else records)])


def _regular_width(records: Sequence[tuple[int, Sequence[str]]]) -> tuple[bool, int]:
    """Whether all records have the same number of cells, more than one, and how many the first has."""
    sizes = [len(record) for _, record in records]
    if not sizes:
        return False, 0
    return len(set(sizes[:-1] or sizes)) == 1 and sizes[0] > 1, sizes[0]


def _check_delimiter(delimiter: str) -> str:
    wanted = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(wanted) != 1 or wanted in '"\n' or ord(wanted) > 127:
        raise InputError(Option("delimiter"), f" is {delimiter!r}; pass one character, such as , or ; or \\t")
    return wanted
