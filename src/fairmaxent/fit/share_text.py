"""How remarks and certificates write shares and multiples."""

from __future__ import annotations

_READABLE = 1e15  # longer numbers are written with an exponent


def percent(share: float) -> str:
    """Write a share, with more digits if it is small.

    >>> percent(0.2), percent(0.0002), percent(1e-7), percent(0.0)
    ('20.0%', '0.02%', '<0.01%', '0.0%')
    """
    if 0 < share < 0.0001:
        return "<0.01%"
    return f"{share:.{2 if 0 < share < 0.001 else 1}%}"


def times(multiple: float) -> str:
    """Write a multiple, with a digit after the point if it is small.

    >>> times(2.345), times(924.4), times(3e124)
    ('2.3', '924', '3e+124')
    """
    if multiple >= _READABLE:
        return f"{multiple:.0e}"
    return f"{multiple:,.{1 if multiple < 9.95 else 0}f}"
