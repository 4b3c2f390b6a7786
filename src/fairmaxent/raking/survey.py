"""The rows of a survey as margins see them: distinct combinations of the margins' columns, with their weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Encoded
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.table import Codes, Reals, Table, highest, tally
from fairmaxent.engines.lazy_counts import average_weight
from fairmaxent.engines.lazy_frame import Lazy, check_column, collect, engine_errors, fresh_name, numbers, open_lazy
from fairmaxent.errors import ColumnError, InputError, Option

# A margin lists every level, so none is lumped together with others.
_MOST_LEVELS = 1 << 30


@dataclass(frozen=True, eq=False)
class Survey:
    """The cells of a survey: distinct combinations of the levels of some columns."""

    frame: Any  # as the user passed it
    domain: Domain  # of these columns alone
    table: Table  # the cells; design weights are 1 on average
    lightest: Reals  # the smallest design weight of a row in each cell
    design: Reals | None  # of each row, 1 on average; None: there are none, or an engine keeps the rows
    weight: str | None
    weight_scale: float = 1.0

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.table.size


def columns_of(frame: Any) -> list[str]:
    """Names of the columns of a table, wherever its rows are."""
    lazy = open_lazy(frame)
    return frames.open_frame(frame).columns if lazy is None else lazy.collect_schema().names()


def read_survey(frame: Any, columns: Sequence[str], *, weight: str | None, domain: Domain | None) -> Survey:
    """Count the cells; only these columns and the weights are read."""
    if not isinstance(weight, str | None):
        raise ColumnError(Option("weight"), f" is a {type(weight).__name__}; pass the name of a column of the table")
    if weight in columns:
        raise ColumnError(f"column {weight!r} is the weight, so it cannot have a margin; name another one")
    if domain is not None:
        if not isinstance(domain, Domain):
            raise InputError(f"domain is {domain!r}; pass a Domain, e.g. Domain.infer(frame), or None")
        domain = replace(domain, attributes=tuple(domain.attribute(name) for name in columns))
    lazy = open_lazy(frame)
    if lazy is None:
        return _read_in_memory(frame, columns, weight, domain)
    with engine_errors(lazy):
        return _read_lazy(lazy, columns, weight, domain)


def _encoded(
    cells: nw.DataFrame[Any], columns: Sequence[str], weights: Reals | None, domain: Domain | None
) -> tuple[Domain, Codes]:
    """Every value is a level of its own, unless a domain says something else."""
    chosen = cells.select(*columns)
    if domain is not None:
        return domain, domain.encode(chosen)
    options = ColumnOptions(columns, kinds=dict.fromkeys(columns, "categorical"), max_levels=_MOST_LEVELS)
    learned, encoded = Domain.learn_rows(chosen, options, weights=weights)
    return learned, Encoded.stacked(encoded).codes


def _read_in_memory(frame: Any, columns: Sequence[str], weight: str | None, domain: Domain | None) -> Survey:
    opened = frames.open_frame(frame)
    raw = frames.read_weights(opened, weight)
    scale = 1.0 if raw is None else float(raw.mean())
    design = None if raw is None else raw / scale
    learned, codes = _encoded(opened, columns, design, domain)
    table = Table.compress(codes, learned.sizes, design)
    lightest = np.ones(table.distinct) if design is None else _lowest(table.inverse, design, table.distinct)
    return Survey(frame, learned, table, lightest, design, weight, scale)


def _lowest(cells: Codes, weights: Reals, size: int) -> Reals:
    """The smallest weight in each of ``size`` cells."""
    result = np.full(size, np.inf)
    np.minimum.at(result, cells, weights)
    return result


def _read_lazy(lazy: Lazy, columns: Sequence[str], weight: str | None, domain: Domain | None) -> Survey:
    """Let the engine count the cells in one pass; only these come back."""
    for name in columns:
        check_column(lazy, name)
    scale = 1.0 if weight is None else average_weight(lazy, weight)
    taken = list(columns)
    rows, mass, squares, most, least = (
        fresh_name(name, taken) for name in ("rows", "mass", "squares", "most", "least")
    )
    totals = [nw.len().alias(rows)]
    chosen = lazy.select(*columns)
    if weight is not None:
        design = nw.col(weight).cast(nw.Float64) / scale
        copies = [design.alias(mass), (design * design).alias(squares), design.alias(most), design.alias(least)]
        chosen = lazy.select(*columns, *copies)
        totals += [nw.col(mass).sum(), nw.col(squares).sum(), nw.col(most).max(), nw.col(least).min()]
    counted = collect(chosen.group_by(*columns).agg(*totals))
    if not len(counted):
        raise InputError("the table has no rows; pass at least one")
    names = [rows] * 5 if weight is None else [rows, mass, squares, most, least]
    sums = [numbers(counted, name) for name in names]
    if weight is None:
        sums[3] = sums[4] = np.ones(len(counted))
    learned, codes = _encoded(counted, columns, sums[1], domain)
    # Merge what an engine counts separately, such as the numbers of a bin, or null and NaN.
    merged = Table.compress(codes, learned.sizes)
    size, cell = merged.distinct, merged.inverse
    size_of, weight_of, squared = (tally(cell, part, size) for part in sums[:3])
    table = Table(merged.codes, weight_of, size_of, squared, peaks=highest(cell, sums[3], size))
    return Survey(lazy.to_native(), learned, table, _lowest(cell, sums[4], size), None, weight, scale)
