"""How documents write numbers and names."""

import math
import re
import textwrap
from collections.abc import Sequence

_NUMBER = r"[<+−-]?\d[\d.,]*(?:e[+-]\d+)?(?: ?%)?"
_NUMBERS = re.compile(rf"(?:{_NUMBER}(?: (?:–|to|…) {_NUMBER})?(?: \([^)]*\))?|–|any)?")

# In units of the last digit shown: what differs from a half by less is one, whatever
# the last bit of a float says.
_SLACK = 1e-6


def percent(share: float | None) -> str:
    """Write a share, with more digits if it is small; a dash if there is none.

    >>> percent(0.2), percent(0.0002), percent(1e-7), percent(0.0), percent(None)
    ('20.0%', '0.02%', '<0.01%', '0.0%', '–')
    >>> percent(math.nan)
    '–'
    """
    if share is None or math.isnan(share):
        return "–"
    if 0 < share < 0.0001:
        return "<0.01%"
    digits = 2 if 0 < share < 0.001 else 1
    return f"{rounded(100 * share, digits):.{digits}f}%"


def three_digits(rate: float | None) -> str:
    """Write a rate; a dash if there is none."""
    return "–" if rate is None else f"{rate:.3f}"


def rounded(value: float, digits: int) -> float:
    """Round as people do, a half away from zero.

    So equal values that were computed in two ways look equal.

    >>> rounded(6.25, 1), rounded(-6.25, 1), rounded(6.2499999999, 1), rounded(6.24, 1)
    (6.3, -6.3, 6.3, 6.2)
    """
    step = 10.0**digits
    return math.copysign(math.floor(abs(value) * step + 0.5 + _SLACK) / step, value)


def times(multiple: float) -> str:
    """Write a multiple, with a digit after the point if it is small."""
    digits = 1 if multiple < 9.95 else 0
    return f"{rounded(multiple, digits):,.{digits}f}"


def short_name(name: str, most: int = 160) -> str:
    """Cut long names of columns and levels at their end.

    Of "column = level", each side is cut, so that groups stay apart.

    >>> short_name("religion of the respondent = none at all", 32)
    'religion … = none at all'
    >>> short_name("sex = f, age = 9", 16)
    'sex = f, age = 9'
    """
    if len(name) <= most:
        return name
    pairs = [pair.partition(" = ") for pair in name.split(", ")]
    room = max(most // len(pairs), 12)
    parts = []
    for column, _, level in pairs[: max(most // 12, 1)]:
        if level:
            parts.append(
                f"{_cut(column, room * 2 // 5)} = {_cut(level, room * 3 // 5)}"
            )
        else:
            parts.append(_cut(column, room))
    return ", ".join(parts)


def _cut(text: str, most: int) -> str:
    """Cut after a word, inside one only if it alone is too long."""
    if len(text) <= most:
        return text
    if " " in text[: most - 1]:
        return shortened(text, most)
    return f"{text[: most - 1]}…"


def shortened(text: str, most: int) -> str:
    """Cut a long text after a word."""
    return textwrap.shorten(text, most, placeholder=" …")


def counted(number: int, noun: str) -> str:
    """Write a number of things: 1 row, 1,200 more rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def more(
    count: int,
    shown: int,
    noun: str,
    where: str = "",
) -> list[str]:
    """A line that counts what there is no room for, if there is anything.

    >>> more(14, 12, "group", ": see the appendix."), more(12, 12, "group")
    (['and 2 more groups: see the appendix.'], [])
    """
    if count <= shown:
        return []
    return [f"and {counted(count - shown, f'more {noun}')}{where}"]


def first(
    lines: Sequence[str],
    most: int,
    noun: str,
    where: str = "",
) -> list[str]:
    """The first lines, and one that counts the others, if there are any.

    >>> first(["a", "b", "c"], 2, "line"), first(["a", "b"], 2, "line")
    (['a', 'b', 'and 1 more line'], ['a', 'b'])
    """
    return [*lines[:most], *more(len(lines), most, noun, where)]


def capital(text: str) -> str:
    """A text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def numeric_columns(rows: Sequence[Sequence[str]], count: int) -> tuple[bool, ...]:
    """Which columns of texts hold numbers, ranges of them, or nothing.

    The first never does: it names the rows.

    >>> numeric_columns([["sex", "0.5000", "yes"], ["race", "any", "12"]], 3)
    (False, True, False)
    """
    return (
        False,
        *(
            all(_NUMBERS.fullmatch(row[column]) for row in rows)
            for column in range(1, count)
        ),
    )
