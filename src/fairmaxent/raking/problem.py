"""The problem: the cells of a survey, its margins, and bounds on factors.

The factor of a row is its share of the new total over its share of the old one. Cells
and margins are the rows and blocks of a `BoundedDual`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain, EncodedTable, learn_columns
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Mask,
    NameList,
    Reals,
    Table,
    highest,
    tally,
)
from fairmaxent.engines.lazy_counts import average_weight, grouped, sums_of
from fairmaxent.engines.lazy_frame import (
    Lazy,
    check_column,
    collect,
    engine_errors,
    numbers,
    open_lazy,
)
from fairmaxent.errors import ColumnError, InputError, Option, unfit
from fairmaxent.maxent.bounded import BoundedDual, Bounds
from fairmaxent.maxent.reach import Conditions
from fairmaxent.raking.margins import MarginTarget

# a margin lists every level, so none is lumped together with others
_MOST_LEVELS = 1 << 30


@dataclass(frozen=True, eq=False)
class Survey:
    """The cells of a survey: distinct combinations of the levels of some columns."""

    frame: Any  # as the user passed it
    domain: Domain  # of these columns alone
    table: Table  # the cells; design weights are 1 on average
    lightest: Reals  # the smallest design weight of a row in each cell
    # of each row, 1 on average; None: there are none, or an engine keeps the rows
    design: Reals | None
    weight: str | None
    weight_scale: float = 1.0


def columns_of(frame: Any) -> list[str]:
    """Names of the columns of a table, wherever its rows are."""
    lazy = open_lazy(frame)
    if lazy is None:
        return frames.open_frame(frame).columns
    return lazy.collect_schema().names()


def read_survey(
    frame: Any,
    columns: NameList,
    *,
    weight: str | None,
    domain: Domain | None,
) -> Survey:
    """Count the cells; only these columns and the weights are read."""
    if not isinstance(weight, str | None):
        raise ColumnError(
            Option("weight"),
            f" is a {type(weight).__name__}; pass the name of a column of the table",
        )

    if weight in columns:
        raise ColumnError(
            f"column {weight!r} is the weight, so it cannot have a margin; name"
            " another one"
        )

    if domain is not None:
        if not isinstance(domain, Domain):
            raise InputError(
                f"domain is {domain!r}; pass a Domain, e.g. Domain.infer(frame), or"
                " None"
            )
        domain = replace(
            domain, attributes=tuple(domain.attribute(name) for name in columns)
        )

    lazy = open_lazy(frame)
    if lazy is None:
        return _read_in_memory(frame, columns, weight, domain)
    with engine_errors(lazy):
        return _read_lazy(lazy, columns, weight, domain)


def _encoded(
    cells: frames.Frame,
    columns: NameList,
    weights: Reals | None,
    domain: Domain | None,
) -> tuple[Domain, Codes]:
    """Every value is a level of its own, unless a domain says something else."""
    chosen = cells.select(*columns)
    if domain is not None:
        return domain, domain.encode(chosen)
    options = ColumnOptions(
        columns, kinds=dict.fromkeys(columns, "categorical"), max_levels=_MOST_LEVELS
    )
    encoded = learn_columns(chosen, options, weights)
    learned = Domain.of(encoded)
    return learned, EncodedTable.of(learned, encoded).codes


def _read_in_memory(
    frame: Any,
    columns: NameList,
    weight: str | None,
    domain: Domain | None,
) -> Survey:
    opened = frames.open_frame(frame)
    design = frames.read_weights(opened, weight)
    scale = 1.0
    if design is not None:
        scale = float(design.mean())
        design = design / scale
    learned, codes = _encoded(opened, columns, design, domain)
    table = Table.compress(codes, learned.sizes, design)
    lightest = np.ones(table.distinct)
    if design is not None:
        lightest = _lowest(table.inverse, design, table.distinct)
    return Survey(frame, learned, table, lightest, design, weight, scale)


def _lowest(cells: Codes, weights: Reals, size: int) -> Reals:
    """The smallest weight in each of ``size`` cells."""
    result = np.full(size, np.inf)
    np.minimum.at(result, cells, weights)
    return result


def _read_lazy(
    lazy: Lazy,
    columns: NameList,
    weight: str | None,
    domain: Domain | None,
) -> Survey:
    """Let the engine count the cells in one pass; only these come back."""
    for name in columns:
        check_column(lazy, name)
    scale = 1.0
    if weight is not None:
        scale = average_weight(lazy, weight)
    counted, (rows, mass, squares, most, least) = _cell_sums(
        lazy, columns, weight, scale
    )
    learned, codes = _encoded(counted, columns, mass, domain)
    # Merge what an engine counts separately, such as the numbers of a bin, or null and
    # NaN.
    merged = Table.compress(codes, learned.sizes)
    size = merged.distinct
    cell = merged.inverse
    table = Table(
        merged.codes,
        tally(cell, mass, size),
        tally(cell, rows, size),
        tally(cell, squares, size),
        peaks=highest(cell, most, size),
    )
    lightest = _lowest(cell, least, size)
    return Survey(lazy.to_native(), learned, table, lightest, None, weight, scale)


def _cell_sums(
    lazy: Lazy,
    columns: NameList,
    weight: str | None,
    scale: float,
) -> tuple[frames.Frame, list[Reals]]:
    """The cells as an engine counts them, and numbers of each.

    These are its rows, their design weights, the squares of these, the largest and the
    smallest of them.
    """
    sums = sums_of(weight, columns)
    counted = collect(grouped(lazy, columns, weight, sums, scale))
    if not len(counted):
        raise InputError("the table has no rows; pass at least one")
    of_cells, *design = (numbers(counted, name) for name in sums)
    if design:
        return counted, [of_cells, *design]
    ones = np.ones(len(counted))
    return counted, [of_cells, of_cells, of_cells, ones, ones]


def read_bounds(bounds: Sequence[float | None] | None) -> Bounds:
    """Read what a user passed.

    >>> read_bounds((0.3, 3)), read_bounds((None, 5)), read_bounds(None).given
    (Bounds(low=0.3, high=3.0), Bounds(low=0.0, high=5.0), False)
    """
    if bounds is None:
        return Bounds()
    try:
        low, high = bounds
        low = 0.0 if low is None else float(low)
        high = math.inf if high is None else float(high)
    except (TypeError, ValueError) as problem:
        raise unfit("bounds", bounds, "give two numbers, such as (0.3, 3)") from problem

    if not (0 <= low <= 1 <= high and low < high):
        raise InputError(
            Option("bounds"),
            f" is ({low:g}, {high:g}); the factor of a weight is 1 on average, so give"
            " a number from 0 to 1, and then one from 1 on, such as (0.3, 3)",
        )
    return Bounds(low, high)


@dataclass(frozen=True, eq=False)
class RakingProblem:
    """Cells with their masses, margins, bounds, and the margins that may be missed."""

    margins: tuple[MarginTarget, ...]
    masses: Reals  # the share of each cell of the survey in the old weights
    bounds: Bounds
    relaxed: frozenset[int] = frozenset()  # positions of the margins that may be missed

    @cached_property
    def blocks(self) -> Blocks:
        """One block per margin."""
        return Blocks.rooted([len(margin.wanted) for margin in self.margins], (0,))

    @cached_property
    def codes(self) -> Codes:
        """(cells, margins): the level that each cell has in each margin."""
        return np.asfortranarray(
            np.column_stack([margin.cells for margin in self.margins])
        )

    @cached_property
    def wanted(self) -> Reals:
        """The wanted share of each level, one margin after the other."""
        return np.concatenate([margin.wanted for margin in self.margins])

    @cached_property
    def used(self) -> Mask:
        """The cells that may get weight.

        They have some, and no margin that must be met wants their level at zero.
        """
        used = self.masses > 0
        if self.bounds.low == 0:
            for number, margin in enumerate(self.margins):
                if number not in self.relaxed:
                    used &= margin.wanted[margin.cells] > 0
        return used

    def dual(self, cells: Mask) -> BoundedDual:
        """The dual over some of the cells, which have masses."""
        return BoundedDual(
            blocks=self.blocks,
            codes=np.asfortranarray(self.codes[cells]),
            masses=self.masses[cells],
            wanted=self.wanted,
            bounds=self.bounds,
        )

    @property
    def conditions(self) -> Conditions:
        """What the weights of all cells must meet."""
        return self.dual(self.masses > 0).conditions

    def restricted(self, margins: Sequence[int]) -> "RakingProblem":
        """Ask for some margins only; cells that these do not tell apart are merged."""
        chosen = [self.margins[number] for number in margins]
        cells = np.column_stack([margin.cells for margin in chosen])
        _, first, cell = np.unique(
            cells,
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        merged = tuple(replace(margin, cells=margin.cells[first]) for margin in chosen)
        return RakingProblem(
            merged, tally(cell.reshape(-1), self.masses, len(first)), self.bounds
        )

    def describe(self, level: int) -> str:
        """Name a level by its position among the levels of all margins."""
        parts = zip(self.margins, self.blocks.slices, strict=True)
        margin, part = next(pair for pair in parts if level < pair[1].stop)
        return margin.describe(level - part.start)
