"""The population that raked weights describe: a distribution over all columns, to draw from and to ask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.roles import LARGEST_ROOT, without_identifiers
from fairmaxent.data.table import Table
from fairmaxent.engines.lazy_counts import count_rows
from fairmaxent.engines.lazy_frame import Lazy, engine_errors
from fairmaxent.engines.lazy_values import learn_domain
from fairmaxent.fit.distribution import Distribution
from fairmaxent.maxent.priors.rows import Rows


def population_in_memory(frame: Any, weights: Reals, columns: Sequence[str], weight: str | None) -> Distribution:
    """Give the rows of a table their raked weights; ``columns`` are those of the margins."""
    opened = frames.open_frame(frame)
    attributes = opened if weight is None else opened.drop(weight)
    whole, encoded = Domain.learn_rows(attributes, ColumnOptions(attributes.columns), weights=weights)
    domain, left_out = without_identifiers(whole, columns)
    encoded = encoded.without([whole.index(name) for name in left_out])
    blocks = _blocks(domain, columns)
    table = Table.compress(blocks.pool(encoded.codes), blocks.levels, weights)
    population = _weighted(domain, blocks, table)
    return population.detailed(encoded.positions, table, weights, relabelled=False)


def population_in_engine(lazy: Lazy, name: str, columns: Sequence[str], weight: str | None) -> Distribution:
    """Let the engine of a lazy frame count the rows; its column ``name`` holds the raked weights."""
    with engine_errors(lazy):
        attributes = lazy if weight is None else lazy.drop(weight)
        domain, _ = without_identifiers(learn_domain(attributes, weight=name), columns)
        blocks = _blocks(domain, columns)
        return _weighted(domain, blocks, count_rows(attributes, domain, blocks, name))


def _weighted(domain: Domain, blocks: Blocks, table: Table) -> Distribution:
    return Distribution(domain, blocks, Rows.of(blocks, table), np.zeros(blocks.width))


def _blocks(domain: Domain, columns: Sequence[str]) -> Blocks:
    """Pool as many columns of the margins as a table in memory can have: rows are drawn by quota from it."""
    root: list[int] = []
    for name in columns:
        index = domain.index(name)
        if not root or math.prod(domain.sizes[other] for other in (*root, index)) <= LARGEST_ROOT:
            root.append(index)
    return Blocks.rooted(domain.sizes, root)


def arranged(frame: Any, like: Any, weight: str | None) -> Any:
    """Put the columns of drawn rows in the order of the table; a column of weights comes back as ones."""
    names = like.collect_schema().names() if isinstance(like, nw.LazyFrame) else like.columns
    opened: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    ones = None
    if weight is not None:
        first = like.select(weight).head(1)
        ones = frames.one_like((first.collect() if isinstance(first, nw.LazyFrame) else first).get_column(weight))
    kept = [name for name in names if name in opened.columns or name == weight]
    return frames.arrange(frame, kept, ones)
