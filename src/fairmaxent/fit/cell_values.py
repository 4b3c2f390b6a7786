"""Cell values: the numbers that the levels of a numeric outcome stand for, in each cell of outcome and groups.

A bin stands for the mean of the numbers in it, which differs from group to group. Reweighing keeps what is inside a
cell as it is, so the mean of a group is linear in the table: Σ v(y, z)·t(y, z) / t(z).
"""

from __future__ import annotations

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.positions import Positions
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, tally
from fairmaxent.errors import InputError, Option
from fairmaxent.fit.request import PaperRequest, Request


def cell_values(
    request: Request | PaperRequest, roles: Roles, table: Counted, positions: Positions | None, design: Reals | None
) -> Reals | None:
    """v(y, z), one axis per column, NaN for a missing outcome; None if nobody asked for equal means.

    ``positions`` say which raw value each input row has, and ``design`` are the design weights of these rows.
    """
    if not isinstance(request, Request) or request.means is None:
        return None
    outcome, shape = roles.attributes[0], roles.blocks.shape(0)
    if outcome.kind != "numeric":
        raise InputError(
            Option("means", request.means), f" needs an outcome of numbers, but {outcome.name!r} is {outcome.kind}"
        )
    if request.relabelling is not None:
        raise InputError(
            Option("means", request.means), " is not available with ", Option("relabel"), "; leave one of the two out"
        )
    levels = outcome.scores().reshape(-1, *(1,) * (len(shape) - 1))
    if outcome.is_value_coded:
        return np.asarray(np.broadcast_to(levels, shape))
    if positions is None or roles.outcome not in positions:
        raise InputError(
            Option("means", request.means),
            f" needs the exact numbers of {outcome.name!r}, which are only at hand for a table in memory with ",
            Option("detail", "rows"),
        )
    rows = table.collect()
    cells = rows.codes[rows.inverse, 0].astype(np.intp)
    weights = np.ones(len(cells)) if design is None else design
    numbers = frames.to_numbers(outcome.values)[positions[roles.outcome]]
    known = ~np.isnan(numbers)
    totals, sums = (
        tally(cells[known], (weights * value)[known], int(np.prod(shape))).reshape(shape) for value in (1.0, numbers)
    )
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), levels)
