"""Keys that stand twice in an object of JSON lines, of which polars silently takes the first.

Reading every line once more in Python would take several times as long as polars does. So the colons after keys are
counted first, and only if there are more than the table accounts for, lines are looked at.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from typing import Any

from fairmaxent.errors import ColumnError, shown

_COLON = re.compile(rb'"\s{0,2}:\s{0,2}')


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

    A program writes all colons alike, so they are counted the way that the first is written.
    """
    first = _COLON.search(content)
    colon = b'":' if first is None else first[0]
    keys, cells = content.count(colon.rstrip()), len(frame) * frame.width
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
