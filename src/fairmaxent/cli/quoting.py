"""Double quotes in lists on the command line: within them, a comma, an equals sign or a colon belongs to a name."""

from __future__ import annotations

import re

HOW = "a name or level that contains a comma goes in double quotes, as in --drop 'id,\"race, ethnicity\"'"
_MARKS = ",=:"
_QUOTED = re.compile(r'"(?:[^"]|"")*"(?=\s*(?:[,=:]|$))')


def split(text: str, mark: str, *, once: bool = False) -> list[str]:
    """Split a text at each mark, or at the first, that is not in double quotes; the parts keep their quotes.

    >>> split('id, "race, ethnicity"', ","), split('"a=b"=c=d', "=", once=True)
    (['id', '"race, ethnicity"'], ['"a=b"', 'c=d'])
    >>> split('a 12" pipe, b', ",")
    ['a 12" pipe', 'b']
    """
    parts: list[str] = []
    start = at = 0
    while at < len(text):
        quoted = _QUOTED.match(text, at) if _begins_name(text, at) else None
        if quoted is None and text[at] == mark and not (once and parts):
            parts.append(text[start:at].strip())
            start = at + 1
        at = at + 1 if quoted is None else quoted.end()
    return [*parts, text[start:].strip()]


def _begins_name(text: str, at: int) -> bool:
    """Whether only blanks are between a place and the mark, or the beginning, before it."""
    before = text[:at].rstrip()
    return text[at] == '"' and (not before or before[-1] in _MARKS)


def unquoted(part: str) -> str:
    """A name without its quotes, in which two stand for one.

    >>> unquoted('"race, ethnicity"'), unquoted('"the ""big"" one"'), unquoted('12" pipe')
    ('race, ethnicity', 'the "big" one', '12" pipe')
    """
    return part[1:-1].replace('""', '"') if len(part) > 1 and _QUOTED.fullmatch(part) else part


def quoted(name: str) -> str:
    """A name as it is typed in a list: in quotes if it would not be read as one name otherwise.

    >>> quoted("sex"), quoted("race, ethnicity"), quoted(" a")
    ('sex', '"race, ethnicity"', '" a"')
    """
    plain = name and name == name.strip() and not name.startswith('"') and not any(mark in name for mark in _MARKS)
    return name if plain else '"' + name.replace('"', '""') + '"'
