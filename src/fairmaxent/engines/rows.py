"""What a fit asks of its rows, answered where they are: in memory, or on the workers of a cluster."""

from __future__ import annotations

from typing import Any, Protocol, cast

from fairmaxent.data.table import Blocks, Counted, Spread, Table
from fairmaxent.errors import InputError
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import Density, Prior, Tilted, divergence_in_memory
from fairmaxent.maxent.priors.rows import Rows, TiltedRows


class RowsElsewhere(Counted, Protocol):
    """Rows that are not in memory: what needs all of them is computed where they are."""

    def prior(self, blocks: Blocks) -> Prior:
        """Return w as a prior."""
        ...

    def divergence(self, density: Density) -> float:
        """Return KL(rows‖p)."""
        ...

    def spread(self, tilted: Any) -> Spread:
        """Spread the weights of the prior, tilted, over the input rows, by the levels of the first column."""
        ...


class RowWeights(Tilted, Protocol):
    """Rows with new weights, which sum to one, wherever the rows are."""

    @property
    def rows(self) -> Prior:
        """The rows with their old weights."""
        ...


def row_prior(blocks: Blocks, weighted: Counted) -> Prior:
    """Return w as a prior."""
    return Rows.of(blocks, weighted) if isinstance(weighted, Table) else _elsewhere(weighted).prior(blocks)


def divergence(rows: Counted, density: Density) -> float:
    """Return KL(rows‖p)."""
    return divergence_in_memory(rows, density) if isinstance(rows, Table) else _elsewhere(rows).divergence(density)


def tilted_rows(tilted: Tilted) -> tuple[float, RowWeights] | None:
    """Return the rows in a tilted prior and their share; None if it has none."""
    shares = zip(tilted.shares, tilted.parts, strict=True) if isinstance(tilted, TiltedMixture) else [(1.0, tilted)]
    # Of all that can be tilted, only rows have rows.
    return next(((float(share), cast(RowWeights, part)) for share, part in shares if hasattr(part, "rows")), None)


def row_spread(table: Counted, tilted: Tilted) -> Spread:
    """Spread the weights of tilted rows over the input rows of a table, by the levels of its first column."""
    if not isinstance(tilted, TiltedRows):
        return _elsewhere(table).spread(tilted)
    rows = table.collect()
    return Spread.of(rows, tilted.on(rows.codes), tilted.rows.blocks.levels[0])


def in_memory(rows: Counted) -> Table:
    """Return the distinct rows; refuse if they are on the workers of a cluster."""
    if not isinstance(rows, Table):
        raise InputError(
            "the rows of this fit stay on the Dask cluster; use the fit that fit.collect() returns, which has the "
            "distinct rows in memory, or for weights use fit.weigh(dask_frame)"
        )
    return rows


def _elsewhere(rows: Counted) -> RowsElsewhere:
    return cast(RowsElsewhere, rows)
