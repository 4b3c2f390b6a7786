"""Values of cells in a workbook: which number formats are dates, and what day a number is."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NumberKind = Literal["number", "date", "moment", "time"]
CellValue = str | int | float | bool | dt.date | dt.datetime | dt.time


@dataclass(frozen=True)
class ErrorValue:
    """What a formula gives that cannot be computed, such as #N/A."""

    code: str


_EPOCH = dt.datetime(1899, 12, 30)  # Excel thinks that 1900 was a leap year, so day 60 does not exist
_EPOCH_1904 = dt.datetime(1904, 1, 1)
_FIRST_RIGHT_DAY = 61
_MOST_DAYS = 2_958_466  # the year 10000
_MOMENT_FORMAT = 22
_DATE_FORMATS = {*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58}
_TIME_FORMATS = {*range(18, 22), *range(32, 36), 45, 47, 55, 56}
BUILT_IN = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00"},
    **{14: "mm-dd-yy", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM"},
    **{20: "h:mm", 21: "h:mm:ss", 22: "m/d/yy h:mm", 37: "#,##0 ;(#,##0)", 39: "#,##0.00;(#,##0.00)"},
    **{45: "mm:ss", 47: "mm:ss.0", 49: "@"},
}
"""Number formats that have no text in a file."""

_SILENT = re.compile(r'"[^"]*"|\\.|[_*].|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)  # text, spaces, colours and conditions
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_PLAIN_WHOLE = 15  # digits


def kind_of_format(number: int, codes: Mapping[int, str]) -> NumberKind:
    """Tell what a number format shows.

    >>> kind_of_format(14, {}), kind_of_format(200, {200: 'dd/mm/yyyy hh:mm'}), kind_of_format(200, {200: '0 "days"'})
    ('date', 'moment', 'number')
    """
    if number not in codes:
        if number in _DATE_FORMATS:
            return "date"
        return "moment" if number == _MOMENT_FORMAT else "time" if number in _TIME_FORMATS else "number"
    letters = _SILENT.sub("", codes[number].partition(";")[0]).lower()
    if "[" in letters or "general" in letters:  # a duration such as [h]:mm
        return "number"
    has_clock = "h" in letters or "s" in letters
    has_day = "d" in letters or "y" in letters or ("m" in letters and not has_clock)
    return "moment" if has_day and has_clock else "date" if has_day else "time" if has_clock else "number"


def number_of_text(text: str) -> int | float | None:
    """The number in a cell; None if there is none, or none that is finite.

    >>> number_of_text("12"), number_of_text("1.5E-3"), number_of_text("nan")
    (12, 0.0015, None)
    """
    try:
        if len(text) <= _PLAIN_WHOLE and text.lstrip("-").isdecimal():
            return int(text)
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def timed_value(number: float, kind: NumberKind, *, from_1904: bool) -> CellValue:
    """A number as the day or time that its format shows; itself if there is no such day."""
    if kind == "number" or not 0 <= number < _MOST_DAYS:
        return number
    if kind == "time" and number < 1:
        return _moment(_EPOCH, number).time()
    epoch = _EPOCH_1904 if from_1904 else _EPOCH if number >= _FIRST_RIGHT_DAY else _EPOCH + dt.timedelta(days=1)
    try:
        moment = _moment(epoch, number)
    except OverflowError:
        return number
    return moment.date() if kind == "date" and number == int(number) else moment


def _moment(epoch: dt.datetime, days: float) -> dt.datetime:
    """Excel counts milliseconds; what is beyond them are rounding errors."""
    return epoch + dt.timedelta(days=int(days), milliseconds=round((days - int(days)) * 86_400_000))


def unescaped(text: str) -> str:
    """Text with the characters that XML cannot hold, which Excel writes as _x000D_."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda match: match[0] if 0xD800 <= int(match[1], 16) < 0xE000 else chr(int(match[1], 16)), text)


def text_of_value(value: object) -> str:
    """A value as a CSV would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return value.code if isinstance(value, ErrorValue) else str(value)
