"""A population: rows drawn from the private model, which take the place of the people in everything that follows.

A fit measures, relabels, estimates and reports by looking at rows. Once these are drawn from the private model instead
of being anybody's, all of that is arithmetic on what was paid for, and reveals nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.draws import quota, shuffled_cells
from fairmaxent.data.roles import Reading
from fairmaxent.data.table import Table, tally
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.privacy.budget import Ledger
from fairmaxent.privacy.model import PrivateModel

# More rows than these are not drawn one by one: each that is drawn then stands for several.
MOST_DRAWN = 1 << 20


@dataclass(frozen=True, eq=False)
class PrivateReading(Reading):
    """A table whose rows were drawn from a private model, with that model and what it cost."""

    tree: Tree | None = None  # None: rows were relabelled since
    ledger: Ledger | None = None


def private_reading(data: Reading, model: PrivateModel, rng: np.random.Generator) -> PrivateReading:
    """Replace the rows of a table by as many drawn from the private model, about; nothing else of the rows is kept."""
    return PrivateReading(
        columns=data.columns,
        roles=data.roles,
        table=drawn_table(model, rng),
        design=None,
        weight_column=None,
        tree=model.tree,
        ledger=model.ledger,
    )


def drawn_table(model: PrivateModel, rng: np.random.Generator) -> Table:
    """Draw the rows of a model: by quota and evenly, so that their tables are close to those of the model."""
    blocks, drawn = model.tree.blocks, min(model.rows, MOST_DRAWN)
    tilted = model.tree.tilt(np.zeros(blocks.width))
    cells = shuffled_cells(quota(tilted.root.reshape(blocks.shape(0)), drawn, rng), rng)
    codes = tilted.draw_evenly(cells, rng).codes.astype(np.min_scalar_type(max(blocks.levels)))
    table = Table.compress(np.asfortranarray(codes), blocks.levels)
    each, rest = divmod(model.rows, drawn)
    rows = tally(table.inverse, each + (np.arange(drawn) < rest).astype(np.float64), table.distinct)
    return replace(table, counts=rows, rows=rows, squares=rows, places=None)
