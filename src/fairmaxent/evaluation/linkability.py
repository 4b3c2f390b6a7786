"""Linkability: two tables about the same people can be joined with the help of the new rows.

As anonymeter does it: somebody's columns are split into two parts, as if two tables held one part each. They are linked
if the same new row is nearest to both parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.roles import read_columns
from fairmaxent.errors import InputError
from fairmaxent.evaluation.nearest import Nearest
from fairmaxent.evaluation.pooled import Pooled
from fairmaxent.evaluation.success import Risk

Parts = tuple[tuple[int, ...], tuple[int, ...]]


def linkability(real: Nearest, control: Nearest | None, *, confidence: float) -> Risk:
    """Count the people who are linked."""
    against = None if control is None else (_linked(control), len(control.distance))
    return Risk.of(_linked(real), len(real.distance), against, confidence=confidence)


def _linked(people: Nearest) -> int:
    first, second = people.by_parts.T
    return int(np.count_nonzero(first == second))


def read_parts(pooled: Pooled, given: Sequence[Sequence[str]] | None) -> Parts | None:
    """The two parts of the columns, by position: every other one by default; None if there is only one column."""
    width = len(pooled.columns)
    if given is None:
        return (tuple(range(0, width, 2)), tuple(range(1, width, 2))) if width > 1 else None
    if isinstance(given, str) or len(given) != 2:
        raise InputError(f"parts is {given!r}; pass two lists of columns")
    first, second = (read_columns("parts", part) for part in given)
    shared = sorted(set(first) & set(second))
    if shared or not first or not second:
        problem = f"column {shared[0]!r} is in both parts" if shared else "a part has no columns"
        raise InputError(f"{problem}; pass two lists of different columns as parts")
    for name in (*first, *second):
        pooled.column(name)
    return (tuple(map(pooled.names.index, first)), tuple(map(pooled.names.index, second)))
