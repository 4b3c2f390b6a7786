"""Top-up: the fewest rows to add so that old and new rows together meet the fair table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.errors import InfeasibleError, Option, WeightError
from fairmaxent.fit.learned import Learned

# More rows than this are not added to anybody's table.
LARGEST_TOP_UP = 10_000_000
# Totals that are tried one after the other; nearly always the first one will do.
_MOST_TRIALS = 10_000


def missing_rows(fit: Learned) -> NDArray[np.intp]:
    """How many rows each cell lacks, at the smallest total at which no cell has too many."""
    fair = fit.distribution.root_table.ravel()
    (old,) = fit.table.tables([(0,)], fit.roles.blocks.levels)
    _refuse_surplus(fit, old, fair)
    average = old.sum() / fit.table.size * fit.weight_scale.mean
    if not 0.2 <= average <= 5:
        raise WeightError(
            f"each added row has weight 1, but the design weights are {average:.3g} on average; scale them to an "
            "average of about 1 before fitting"
        )
    rows = np.round(np.round(old * fit.weight_scale.mean, 9))  # 2.4999999999999996 is meant to be 2.5
    least = int(max(rows.sum(), np.ceil(np.max((rows - 1) / np.where(fair > 0, fair, np.inf)))))
    if least - rows.sum() > LARGEST_TOP_UP:
        raise _too_many(f"meeting the fair table takes {least - int(rows.sum()):,} more rows")
    for total in range(least, least + _MOST_TRIALS):
        counts = fair_counts(fair, total, rows)
        if counts is not None:
            return np.asarray((counts - rows).astype(np.intp))
    raise _too_many("meeting the fair table takes very many rows")


def _too_many(what: str) -> InfeasibleError:
    return InfeasibleError(
        f"{what} (the limit is {LARGEST_TOP_UP:,}), because a group must become far rarer than it is. Use ",
        Option("mode", "rows"),
        " or ",
        Option("mode", "weights"),
        ", or change the target.",
    )


def _refuse_surplus(fit: Learned, old: Reals, fair: Reals) -> None:
    """Refuse rows in a cell that must be empty: adding others does not remove them."""
    surplus = np.flatnonzero((old > 0) & (fair <= 0))
    if len(surplus):
        cell = np.unravel_index(int(surplus[0]), fit.distribution.root_table.shape)
        raise InfeasibleError(
            f"adding rows cannot meet the fair table: {fit.roles.describe_cell([int(level) for level in cell])} must "
            "have no share, but has rows. Remove them first, or use ",
            Option("mode", "rows"),
            " or ",
            Option("mode", "weights"),
            ".",
        )


def fair_counts(fair: Reals, total: int, least: Reals) -> Reals | None:
    """Whole numbers within one of total·fair, none below ``least``, that add up to ``total``; None if there are none.

    Rows that are left over go to the largest remainders, the same way each time. At the smallest total, some cells are
    full with the rows that they have, so no rounding is without bias here, and this one is closest to the fair table.

    >>> fair_counts(np.array([0.5, 0.5]), 5, np.array([3.0, 0.0]))
    array([3., 2.])
    """
    wanted = np.round(fair * total, 9)
    counts, most = np.maximum(np.floor(wanted), least), np.ceil(wanted)
    short = total - int(counts.sum())
    open_cells = np.flatnonzero(counts < most)
    if (counts > most).any() or not 0 <= short <= len(open_cells):
        return None
    largest = open_cells[np.argsort((counts - wanted)[open_cells], kind="stable")[:short]]
    counts[largest] += 1
    return np.asarray(counts)
