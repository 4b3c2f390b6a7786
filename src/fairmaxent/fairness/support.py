"""Support: the cells that get mass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.fairness.projection import LEAST_ROOM, Conditions, fewest_cells, most_cells, room


def supported(
    conditions: Conditions,
    *,
    seen: Mask,
    allowed: Mask,
    floor: Reals,
    fill: float,
    describe: Callable[[int], str],
    joint: bool,
    levels: Sequence[Mask] = (),
    groups: NDArray[np.intp] | None = None,
) -> Mask:
    """Return the cells with rows if they suffice, otherwise also the empty ones that are needed.

    Some wishes can only be met if nobody in a cell counts any more: such a cell is left out, unless one of the
    ``levels`` (cells of an outcome that must not vanish) would lose all its cells. ``groups`` number the combination z
    of each cell: one without any rows has no outcome to prefer, so if one of its cells is opened, all are.
    """
    if seen.all() or room(conditions.on(seen), floor[seen]) > LEAST_ROOM:
        return seen
    widest = np.zeros_like(seen)
    widest[seen] = most_cells(conditions.on(seen), floor[seen])
    if widest.any() and all((widest & level).any() for level in levels):
        return widest
    fewest = fewest_cells(conditions.on(allowed), floor[allowed], ~seen[allowed])
    if fewest is None:
        raise _impossible(conditions, floor, ~allowed, describe)
    needed = np.zeros_like(seen)
    needed[allowed] = fewest
    if fill == 0.0:
        raise _rows_missing(_list(np.flatnonzero(needed & ~seen), describe), joint=joint)
    opened = seen | needed
    if groups is None:
        return opened
    unknown = ~np.isin(groups, groups[seen]) & np.isin(groups, groups[needed & ~seen])
    wide = opened | (allowed & unknown)
    pseudo = np.where(seen, floor, fill)
    return wide if room(conditions.on(wide), pseudo[wide]) > LEAST_ROOM else opened


def _rows_missing(cells: str, *, joint: bool) -> InfeasibleError:
    """Name the cells that would have to be filled."""
    return InfeasibleError(
        f"the wanted shares and rates need rows in combinations that have none: {cells}; set ",
        Option("base_share"),
        " > 0 to fill them, merge levels, ",
        *(("lower the rate, or use ", Option("groups", "each")) if joint else ("or lower the rate",)),
    )


def _impossible(
    conditions: Conditions, floor: Reals, forbidden: Mask, describe: Callable[[int], str]
) -> InfeasibleError:
    """Name the forbidden cells that are in the way, if that is the reason."""
    needed = fewest_cells(conditions, floor, forbidden)
    if needed is None or not (needed & forbidden).any():
        return InfeasibleError(
            "no table has the wanted shares and rates without emptying a group or an outcome that has rows; "
            "lower the rates, or change ",
            Option("target"),
        )
    return InfeasibleError(
        "the wanted shares and rates need combinations that are forbidden: "
        f"{_list(np.flatnonzero(needed & forbidden), describe)}; remove a rule from ",
        Option("forbid"),
        ", merge levels, or lower the rate",
    )


def _list(cells: NDArray[np.intp], describe: Callable[[int], str]) -> str:
    """Name up to three cells."""
    names = [describe(int(cell)) for cell in cells[:3]]
    return "; ".join(names) + (f" and {len(cells) - 3} more" if len(cells) > 3 else "")
