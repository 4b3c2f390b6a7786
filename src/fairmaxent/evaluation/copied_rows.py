"""Copies: new rows that are a real row, in every column.

Some rows equal a real one by chance, so copies are compared with how many there would be if nobody was copied. With
control rows, that is how many new rows equal a control row. A control of c rows beside n real ones has fewer of them;
by Good and Toulmin, (n/c − 1) times as many as those that equal exactly one control row are added, which is at least as
many as there would be. Without control rows, it is the share of rows that equal another one of the same table: of the
new rows or of the real ones, whichever is smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import tally
from fairmaxent.evaluation.pooled import Pooled, TableName
from fairmaxent.evaluation.success import Risk

LIMIT = 0.01
"""More copies than this share, beyond those expected by chance, are too many."""


@dataclass(frozen=True)
class CopiedRows:
    """New rows that equal a real row."""

    copies: int
    of_one_person: int
    """Those that equal exactly one real row."""
    by_chance: float
    """The share of the new rows that would be copies if nobody was copied."""
    risk: Risk
    """The share of copies beyond those by chance."""
    control_overlap: Risk | None
    """The share of the control rows that equal a real row, beyond chance: they should be other people."""
    lone_values: dict[str, int]
    """Columns with values in the new rows that only one real row has, and how many such values."""


def copied_rows(pooled: Pooled, *, confidence: float) -> CopiedRows:
    """Count the copies."""
    numbers = pooled.row_numbers
    tables = {name: numbers[part] for name, part in pooled.parts.items()}
    times = {name: tally(rows, None, int(numbers.max()) + 1) for name, rows in tables.items()}
    new = tables["new"]
    copies = int(np.count_nonzero(times["real"][new]))
    by_chance = _by_chance(tables, times)
    return CopiedRows(
        copies=copies,
        of_one_person=int(np.count_nonzero(times["real"][new] == 1)),
        by_chance=by_chance,
        risk=Risk.of(copies, len(new), (by_chance * len(new), len(new)), confidence=confidence),
        control_overlap=_overlap(tables, times, confidence) if "control" in tables else None,
        lone_values={name: count for name, count in _lone_values(pooled).items() if count},
    )


def _by_chance(tables: Mapping[TableName, NDArray[np.intp]], times: Mapping[TableName, Reals]) -> float:
    real, new = tables["real"], tables["new"]
    if "control" in tables:
        met = times["control"][new]
        larger = max(len(real) / len(tables["control"]) - 1, 0.0)
        smaller = min(len(real) / len(tables["control"]), 1.0)  # only this part of a larger control
        return float(min(1.0, (1 - (1 - smaller) ** met).mean() + larger * (met == 1).mean()))
    shares = [(times["real"][real] > 1).mean()]
    if len(new) >= len(real):  # in fewer rows, fewer are equal to each other
        others = times["new"][new] - 1
        part = (len(real) - 1) / max(len(new) - 1, 1)
        shares.append((1 - (1 - part) ** others).mean())
    return float(min(shares))


def _overlap(tables: Mapping[TableName, NDArray[np.intp]], times: Mapping[TableName, Reals], confidence: float) -> Risk:
    """By chance, as many control rows would equal a real row as real rows equal another one."""
    real, control = tables["real"], tables["control"]
    shared, doubles = (int(np.count_nonzero(equal)) for equal in (times["real"][control], times["real"][real] > 1))
    return Risk.of(shared, len(control), (doubles, len(real)), confidence=confidence)


def _lone_values(pooled: Pooled) -> dict[str, int]:
    """How many values in the new rows only one real row has, by column."""
    real, new = pooled.parts["real"], pooled.parts["new"]
    return {
        column.name: int(
            np.count_nonzero(tally(column.codes[real], None, column.size)[np.unique(column.codes[new])] == 1)
        )
        for column in pooled.columns
    }
