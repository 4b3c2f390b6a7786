"""Cell values: the numbers that the levels of a numeric outcome stand for, in each cell of outcome and groups.

A bin stands for the mean of the numbers in it, which differs from group to group. Reweighing keeps what is inside a
cell as it is, so the mean of a group is linear in the table: Σ v(y, z)·t(y, z) / t(z).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Positions, Reals
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, tally
from fairmaxent.errors import InputError, Option
from fairmaxent.fit.option_values import read_rules
from fairmaxent.fit.plans import PaperRequest
from fairmaxent.fit.request import Request
from fairmaxent.fit.target import read_target
from fairmaxent.maxent.forbidden import break_any


@dataclass(frozen=True, eq=False)
class CellValues:
    """v(y, z), one axis per column, NaN for a missing outcome."""

    data: Reals  # of all rows
    counted: Reals  # of the rows that no rule forbids: those that weights are given to


def cell_values(
    request: Request | PaperRequest, roles: Roles, table: Counted, positions: Positions | None, design: Reals | None
) -> CellValues | None:
    """The numbers that cells stand for; None if nobody asked for equal means.

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
        values = np.asarray(np.broadcast_to(levels, shape))
        return CellValues(values, values)
    if positions is None or roles.outcome not in positions:
        raise InputError(
            Option("means", request.means),
            f" needs the exact numbers of {outcome.name!r}, which are only at hand for a table in memory with ",
            Option("detail", "rows"),
        )
    if request.base_share == 1:
        raise InputError(
            Option("means", request.means),
            f" needs the exact numbers of {outcome.name!r}, but no row is drawn with those of a real one with ",
            Option("base_share", 1),
            "; use a lower share",
        )
    _refuse_other_targets(request, roles)
    rows, numbers = table.collect(), frames.to_numbers(outcome.values)[positions[roles.outcome]]
    weights = np.ones(len(numbers)) if design is None else design
    forbidden = break_any(read_rules(roles, request.forbid), rows.codes)[rows.inverse]
    cells = rows.codes[rows.inverse, 0].astype(np.intp)
    return CellValues(
        *(_means(cells, numbers, counting, levels, shape) for counting in (weights, np.where(forbidden, 0.0, weights)))
    )


def _means(cells: Codes, numbers: Reals, weights: Reals, levels: Reals, shape: tuple[int, ...]) -> Reals:
    """The mean number of each cell, or of its level if no row of the cell counts."""
    known = ~np.isnan(numbers)
    totals, sums = (
        tally(cells[known], (weights * value)[known], int(np.prod(shape))).reshape(shape) for value in (1.0, numbers)
    )
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), levels)


def _refuse_other_targets(request: Request, roles: Roles) -> None:
    """Refuse targets of other columns, which weigh the rows inside a cell unequally, so that its mean moves."""
    others = [index for index in read_target(roles, request.target) if index not in roles.root]
    if others:
        raise InputError(
            Option("means", request.means),
            f" cannot be kept together with a target of {roles.domain.names[others[0]]!r}, which weighs the numbers "
            f"inside a bin of {roles.names[0]!r} unequally; leave one of the two out, or give each number a level of "
            "its own with ",
            Option("bins"),
        )
