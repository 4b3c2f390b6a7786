"""What polars reads from JSON lines without a word, though something else is written there.

Of keys that stand twice in an object it takes the first. Reading every line once more in Python would take several
times as long as polars does. So the colons after keys are counted first, and only if there are more than the table
accounts for, lines are looked at. And the first half of a character, where the second is missing, becomes a zero.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from typing import Any

from fairmaxent.errors import ColumnError, StorageError, shown

_COLON = re.compile(rb'"\s{0,2}:\s{0,2}')
_COLONS_AFTER_KEYS = (b'":', b" :", b"\t:", b"\r:")
_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")


def refuse_half_characters(content: bytes, path: object) -> None:
    """Refuse lines with the first half of a character that takes two escapes, as texts have that were cut off."""
    if not _HALF.search(content):
        return
    half = _HALF.search(content.replace(rb"\\", b"__"))  # two backslashes are one that begins no escape
    if half is not None:
        number = content.count(b"\n", 0, half.start()) + 1
        raise StorageError(
            f"line {number} of {path} has half a character ({half[0].decode()} without its second half); "
            "write the file again, or take it out"
        )


def refuse_repeated_keys(content: bytes, frame: Any, path: object) -> None:
    """Refuse lines in which a key stands twice; ``frame`` is what was read from them."""
    if not _has_more_keys(content, frame):
        return
    for number, line in enumerate(io.BytesIO(content), start=1):
        key = _repeated_key(line)
        if key is not None:
            raise ColumnError(f"line {number} of {path} has the key {shown(key)} twice; remove or rename one of them")


def _has_more_keys(content: bytes, frame: Any) -> bool:
    """Whether there seem to be more keys than values; texts with a quote before a colon seem so, too.

    A program writes all colons alike, so nulls are counted the way that the first colon is written. Each mistake makes
    keys more or values less, and then costs time only.
    """
    first = _COLON.search(content)
    colon = b'":' if first is None else first[0]
    keys, cells = sum(content.count(each) for each in _COLONS_AFTER_KEYS), len(frame) * frame.width
    missing = sum(frame.null_count().row(0))
    values = cells - missing + (content.count(colon + b"null") if missing else 0)
    return bool(keys > min(cells, values))


def _repeated_key(line: bytes) -> str | None:
    repeated: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            repeated.extend(name for name in names if names.count(name) > 1)

    with contextlib.suppress(ValueError, RecursionError):  # polars has read the line, so it is no worse than it was
        json.loads(line, object_pairs_hook=look, parse_int=str, parse_float=str)
    return repeated[0] if repeated else None
