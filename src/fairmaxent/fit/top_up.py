"""Rows to add to a table that make it fair."""

import numpy as np

from fairmaxent.data.quotas import Sums, held_counts
from fairmaxent.data.table import Indices, Reals
from fairmaxent.errors import InfeasibleError, Option, WeightError
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.weights import MODE_ROWS, NOTHING

LARGEST_TOP_UP = 10_000_000  # more rows are not added to anybody's table
# totals that are tried one after the other; nearly always the first one will do
_MOST_TRIALS = 10_000


def missing_rows(fit: Solved, sums: Sums) -> Indices:
    """How many rows each cell lacks, at the smallest total of which none has too many.

    Sums are held if possible.
    """
    fair = fit.root_table.ravel()
    old = fit.problem.cells().ravel()
    instead = MODE_ROWS, " or ", Option("mode", "weights")
    surplus = np.flatnonzero((old > 0) & (fair <= 0))
    if len(surplus):  # adding other rows does not remove these
        cell = np.unravel_index(int(surplus[0]), fit.root_table.shape)
        name = fit.roles.describe_cell([int(level) for level in cell])
        state = "must have no share"
        if not fit.problem.allowed[cell]:
            state = "is forbidden"
        raise InfeasibleError(
            f"adding rows cannot meet the fair table: {name} {state}, but has rows."
            " Remove them first, or use ",
            *instead,
            ".",
        )

    average = old.sum() / fit.table.size * fit.weight_scale
    if not 0.2 <= average <= 5:
        raise WeightError(
            f"each added row has weight 1, but the design weights are {average:.3g} on"
            " average; scale them to an average of about 1 before fitting"
        )

    present = old * fit.weight_scale
    fullest = np.max((present - 1) / np.where(fair > 0, fair, np.inf))
    more = int(max(0.0, np.ceil(fullest - present.sum() - NOTHING)))
    trials = _MOST_TRIALS if more <= LARGEST_TOP_UP else 0
    for added in range(more, more + trials):
        lacking = fair * (present.sum() + added) - present
        counts = fair_counts(lacking, added)
        if counts is not None:
            shaped = lacking.reshape(fit.root_table.shape)
            held = held_counts(counts, shaped, np.zeros_like(counts), sums)
            return held.astype(np.intp)

    raise InfeasibleError(
        f"meeting the fair table takes at least {more:,} more rows (the limit is"
        f" {LARGEST_TOP_UP:,}), because a group must become far rarer than it is. Use ",
        *instead,
        ", or change the target.",
    )


def fair_counts(lacking: Reals, total: int) -> Reals | None:
    """Whole numbers within one of what cells lack that add up to ``total``.

    A cell that has too much lacks less than nothing. None: there are no such numbers.
    Rows that are left over go to the largest remainders, the same way each time. At the
    smallest total, some cells are full with the rows that they have, so no rounding is
    without bias here, and this one is closest to the fair table.

    >>> fair_counts(np.array([-0.5, 2.5]), 2)
    array([0., 2.])
    """
    wanted = np.round(lacking, 9)  # 2.4999999999999996 is meant to be 2.5
    counts = np.maximum(np.floor(wanted), 0.0)
    most = np.ceil(wanted)
    short = total - int(counts.sum())
    open_cells = np.flatnonzero(counts < most)
    if (counts > most).any() or not 0 <= short <= len(open_cells):
        return None

    largest = open_cells[
        np.argsort((counts - wanted)[open_cells], kind="stable")[:short]
    ]
    counts[largest] += 1
    return counts
