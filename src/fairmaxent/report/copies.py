"""How many drawn rows are copies of real rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent import frames
from fairmaxent.errors import InputError
from fairmaxent.fit import Fit
from fairmaxent.levels import value_key
from fairmaxent.report.delivered import Delivered
from fairmaxent.table import match_rows, row_keys, tally


@dataclass(frozen=True)
class Copies:
    """Shares of the drawn rows that repeat a real row; of raw values None where the data were not at hand."""

    rows: int
    same_levels: float  # the same levels (bins, say) as a real row in every column
    expected_same_levels: float  # the same, exactly: p* of all combinations of levels in the data
    same_values: float | None  # the same raw values as a real row in every column
    same_values_as_one: float | None  # the same raw values as a real row that occurs once
    twins_in_data: float | None  # share of the real rows with the same raw values as another real row


def copies(fit: Fit, delivered: Delivered, data: Any) -> Copies | None:
    """Count the copies among the drawn rows; None where none was drawn."""
    known, sample, drawn = fit.table.codes, delivered.frame, delivered.codes
    if drawn is None or not len(drawn):
        return None
    found = match_rows(known, drawn.astype(known.dtype), fit.roles.blocks.levels) >= 0
    raw = None if data is None else _raw_copies(fit, data, sample)
    return Copies(
        rows=len(drawn),
        same_levels=float(found.mean()),
        expected_same_levels=seen_mass(fit),
        same_values=None if raw is None else float((raw[0] > 0).mean()),
        same_values_as_one=None if raw is None else float((raw[0] == 1).mean()),
        twins_in_data=None if raw is None else float((raw[1] > 1).mean()),
    )


def seen_mass(fit: Fit) -> float:
    """p*(S): the probability that a drawn row has a combination of levels that the data have."""
    return float(np.exp(fit.distribution.log_probability(fit.table.codes)).sum())


def check_data(fit: Fit, data: Any) -> None:
    """Refuse a table that the fit was not made from."""
    pooled = fit.roles.blocks.pool(fit.domain.encode(data))
    known = fit.table.codes[fit.table.inverse]
    if len(pooled) != len(known):
        raise InputError(
            f"data has {len(pooled)} rows, the fit was made from {len(known)}; pass the table it was made from"
        )
    other = np.flatnonzero((pooled != known).any(axis=1))
    if len(other):
        raise InputError(
            f"row {other[0]} of data is not what the fit was made from, nor are {len(other) - 1} others; "
            "pass the table it was made from, in the same order"
        )


def _raw_copies(fit: Fit, data: Any, sample: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many real rows equal each drawn row, and how many equal each real row, itself included."""
    real, new = frames.open_frame(data), frames.open_frame(sample)
    columns = [_common_codes(real, new, name) for name in fit.domain.names]
    codes = np.column_stack([np.concatenate(pair) for pair in columns])
    keys, _ = row_keys(codes, [int(column.max()) + 1 for column in codes.T])
    _, places = np.unique(keys, return_inverse=True)
    count = tally(places[: len(real)], None, int(places.max()) + 1)
    return count[places[len(real) :]], count[places[: len(real)]]


def _common_codes(
    real: nw.DataFrame[Any], new: nw.DataFrame[Any], name: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the values of a column alike in both frames; 0 is missing."""
    (old_codes, old_values), (codes, values) = (frames.factorize(frames.column(frame, name)) for frame in (real, new))
    numbers = {value_key(value): number for number, value in enumerate(old_values.to_list(), start=1)}
    own = [numbers.setdefault(value_key(value), len(numbers) + 1) for value in values.to_list()]
    return old_codes + 1, np.array([0, *own], dtype=np.intp)[codes + 1]
