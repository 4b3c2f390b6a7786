"""What a fit asks of its rows, answered where they are: in memory, or on the workers of a cluster."""

from __future__ import annotations

from typing import Any, Protocol, cast

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Counted, Spread, Table
from fairmaxent.errors import InputError
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import Density, Prior, Tilted, divergence_in_memory
from fairmaxent.maxent.priors.rows import Rows, TiltedRows


class RowWeights(Tilted, Protocol):
    """Rows with new weights, which sum to one, wherever the rows are."""

    @property
    def rows(self) -> Prior:
        """The rows with their old weights."""
        ...


def row_prior(blocks: Blocks, weighted: Counted) -> Prior:
    """Return w as a prior."""
    elsewhere: Any = weighted
    prior: Prior = Rows.of(blocks, weighted) if isinstance(weighted, Table) else elsewhere.prior(blocks)
    return prior


def divergence(rows: Counted, density: Density) -> float:
    """Return KL(rows‖p)."""
    elsewhere: Any = rows
    return float(divergence_in_memory(rows, density) if isinstance(rows, Table) else elsewhere.divergence(density))


def tilted_rows(tilted: Tilted) -> tuple[float, RowWeights] | None:
    """Return the rows in a tilted prior and their share; None if it has none."""
    shares = zip(tilted.shares, tilted.parts, strict=True) if isinstance(tilted, TiltedMixture) else [(1.0, tilted)]
    # Of all that can be tilted, only rows have rows.
    return next(((float(share), cast(RowWeights, part)) for share, part in shares if hasattr(part, "rows")), None)


def row_spread(table: Counted, tilted: Tilted) -> Spread:
    """Spread the weights of tilted rows over the input rows of a table, by the levels of its first column."""
    elsewhere: Any = table
    if not isinstance(tilted, TiltedRows):
        return cast(Spread, elsewhere.spread(tilted))
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
