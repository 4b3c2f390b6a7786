"""Text from data, as it may be shown: characters that steer are written as escapes.

A cell can hold anything: a sequence that writes to the clipboard, a mark that reverses
the rest of a line, letters that nobody sees. All text passes through here before it
reaches a terminal or a report; only tables keep it as it is.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

Values = dict[str, Any]  # as JSON holds them, by name

# Control characters but tab and line feed, marks that change the direction of text,
# invisible ones, lone surrogates. The joiners U+200C and U+200D stay, because Persian,
# Hindi and emoji need them.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# Letters written from right to left, and what stands between them.
_FROM_THE_RIGHT = (
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe"
    "\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_RIGHT_TO_LEFT = re.compile(f"{_FROM_THE_RIGHT}+(?:[^\\w\n]+{_FROM_THE_RIGHT}+)*")
_ISOLATE = "\u2068"
_END = "\u2069"


def visible(text: str) -> str:
    r"""Write characters that steer a terminal, or that nobody sees, as escapes.

    Tabs and line ends stay.

    >>> print(visible("F\x1b]0;title\x07emale, \u202eelam"))
    F\x1b]0;title\x07emale, \u202eelam
    """
    return _STEERING.sub(_shortest, text)


def isolated(text: str) -> str:
    r"""Make text visible, and keep right-to-left letters from moving their neighbours.

    >>> isolated("\u05d0: 5 %") == "\u2068\u05d0\u2069: 5 %"
    True
    """
    return _RIGHT_TO_LEFT.sub(
        lambda match: f"{_ISOLATE}{match[0]}{_END}", visible(text)
    )


def escaped_json(text: str) -> str:
    r"""Escape the same characters in JSON, which then means the same.

    >>> escaped_json('"\x7f\U000e0041"')
    '"\\u007f\\udb40\\udc41"'
    """
    return _STEERING.sub(_json_escape, text)


def plain_json(
    value: Any, text: Callable[[Any], Any] = str, *, exact: bool = False
) -> Any:
    """The value as JSON can hold it: records are objects, infinite and NaN null.

    If it is to be ``exact``, infinite and NaN stay.
    """
    if value is None or type(value) in (str, int, bool):  # at once, because most are
        return value
    if isinstance(value, float):
        if exact or math.isfinite(value):
            return float(value)
        return None
    if isinstance(value, list | tuple):
        return [plain_json(item, text, exact=exact) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain_json(getattr(value, field.name), text, exact=exact)
            for field in fields(value)
        }
    if isinstance(value, Mapping):
        return {
            str(key): plain_json(item, text, exact=exact) for key, item in value.items()
        }
    if isinstance(value, bool | int | str | None):
        return value
    return text(value)


def json_text(value: Any, *, indent: int = 1, text: Callable[[Any], Any] = str) -> str:
    """Plain JSON, with the same characters escaped."""
    return escaped_json(
        json.dumps(
            plain_json(value, text),
            indent=indent,
            ensure_ascii=False,
            allow_nan=False,
        )
    )


def escaped_toml(text: str) -> str:
    r"""Escape the same characters in TOML, which has its own escapes beyond 16 bits.

    >>> escaped_toml('"\x7f\U000e0041"')
    '"\\u007f\\U000e0041"'
    """
    return _STEERING.sub(_wide, text)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2)
    )


def _shortest(match: re.Match[str]) -> str:
    if match[0] < "\u0100":
        return f"\\x{ord(match[0]):02x}"
    return _wide(match)


def _wide(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x10000:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"
