"""How the report writes numbers."""

from __future__ import annotations


def nats(distance: float) -> str:
    """Write a distance; a zero has no sign, whatever rounding made of it.

    >>> nats(0.25), nats(-1e-17)
    ('0.2500', '0.0000')
    """
    return f"{round(distance, 4) + 0.0:.4f}"


def more(count: int, what: str) -> str:
    """Count what is not shown.

    >>> more(1, "level"), more(2, "level")
    ('1 more level', '2 more levels')
    """
    return f"{count:,} more {what}{'s' if count != 1 else ''}"


def percent(share: float | None) -> str:
    r"""Write a share for people, on one line.

    >>> percent(0.12345), percent(0.0004), percent(1e-9), percent(0.0), percent(None)
    ('12.3\xa0%', '0.04\xa0%', '<\xa00.01\xa0%', '0.0\xa0%', '–')
    """
    if share is None:
        return "–"
    if 0 < share < 0.0001:
        return "<\u00a00.01\u00a0%"
    return f"{100 * share:.{2 if 0 < share < 0.001 else 1}f}\u00a0%"


def points(before: float | None, after: float | None) -> str:
    """Write a change of a share in percentage points, with its sign.

    >>> points(0.25, 0.5), points(0.5, 0.25)
    ('+25.0', '−25.0')
    """
    if before is None or after is None:
        return "–"
    change = round(100 * (after - before), 1)
    return f"{change:+.1f}".replace("-", "−") if change else "0.0"
