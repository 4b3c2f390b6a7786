"""The text of a CSV: its encoding, its line ends, and the line with which Excel says what separates the cells."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from fairmaxent.errors import InputError, Option, StorageError

_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[^\n"])"?[ \t]*(?:\n|$)', re.IGNORECASE)
_BYTE_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class CsvText:
    """A text with Unix line ends and without a byte order mark, and how its bytes were."""

    text: str
    encoding: str
    has_mark: bool
    line_end: str
    notes: tuple[str, ...]


def decode(content: bytes, path: str, encoding: str | None) -> CsvText:
    """Return the text, and a note on its encoding if that is not UTF-8."""
    used = encoding or _encoding_of(content)
    try:
        text = content.decode(used)
    except LookupError as problem:
        raise InputError(
            Option("encoding"), f" {encoding!r} is not known; try utf-8, utf-16, cp1252 or latin-1"
        ) from problem
    except UnicodeDecodeError as problem:
        raise StorageError(
            f"{path} is not {used}: byte {problem.start + 1} cannot be read ({problem.reason}); set ",
            Option("encoding"),
        ) from problem
    if "\0" in text:
        raise StorageError(f"{path} is not text (byte {text.index(chr(0)) + 1} is zero); pass a table, e.g. a CSV file")
    line_end = "\n"
    if "\r" in text:
        line_end = "\r\n" if "\r\n" in text else "\r"
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    name, has_mark = _name_and_mark(content, used)
    notes = () if used == "utf-8" else (f"{path} was read as {used}",)
    return CsvText(text.removeprefix("\ufeff"), name, has_mark, line_end, notes)


def _name_and_mark(content: bytes, used: str) -> tuple[str, bool]:
    """The encoding that writes the same bytes but for the byte order mark, and whether there is one."""
    name = codecs.lookup(used).name
    if name.startswith("utf"):
        for mark, exact in _BYTE_MARKS:
            if content.startswith(mark):
                return exact, True
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(name, name), False


def _encoding_of(content: bytes) -> str:
    """UTF-8 if that is possible, UTF-16 by its mark or its zeros, else the usual encoding of old Windows files."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = content[:1000]
    for zeros, name in ((start[1::2], "utf-16-le"), (start[::2], "utf-16-be")):
        if len(start) > 3 and zeros.count(0) > 0.8 * len(zeros):
            return name
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        undefined = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
        return "latin-1" if any(byte in content for byte in undefined) else "cp1252"
    return "utf-8"


def separator_line(text: str) -> tuple[str, str | None]:
    """Return the first line if it says what separates the cells (sep=;), and what it says.

    >>> separator_line("sep=;\\na;b"), separator_line("a;b")
    (('sep=;\\n', ';'), ('', None))
    """
    match = _SEPARATOR_LINE.match(text)
    if match is None:
        return "", None
    return match[0], "\t" if match[1] == "\\t" else match[1]


def line_start(text: str, lines: int) -> int:
    """Return where a text goes on after this many lines; its length if it has no more."""
    position = 0
    for _ in range(lines):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position
