"""Tables that are larger than memory: the rates of what was counted, and rows that are written as they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairmaxent.blocks import ravel
from fairmaxent.domain import Domain
from fairmaxent.engines.lazy import Progress, silent
from fairmaxent.engines.parquet import as_lazy, with_categories
from fairmaxent.files import as_polars, output_format
from fairmaxent.table import Reals, tally

if TYPE_CHECKING:
    from fairmaxent.distribution import Evidence
    from fairmaxent.files import FileFormat, Staging
    from fairmaxent.fit import Fit


class Cells:
    """Rows of each combination of outcome and protected columns, counted as batches pass by."""

    def __init__(self, fit: Fit) -> None:
        self._attributes = fit.roles.attributes
        self._domain = Domain(tuple(self._attributes), ())
        self.counts: Reals = np.zeros([attribute.size for attribute in self._attributes])

    def add_fitted(self, fit: Fit) -> Cells:
        """Count the rows that were fitted, by weight."""
        (cells,) = fit.table.tables([(0,)], fit.roles.blocks.levels)
        self.counts += cells.reshape(self.counts.shape)
        return self

    def add(self, frame: Any) -> None:
        """Count the rows of a frame; rows that complete a table may be none."""
        if not len(frame):
            return
        cells = ravel(self._domain.encode(frame), self.counts.shape)
        self.counts += tally(cells, None, self.counts.size).reshape(self.counts.shape)

    @property
    def table(self) -> Reals:
        """The cells as shares of all rows."""
        return np.asarray(self.counts / self.counts.sum())


def write_drawn(
    fit: Fit,
    n: int,
    staging: Staging,
    target: str,
    *,
    format: FileFormat | None,
    given: Evidence | None = None,
    random_state: int | None = None,
    iid: bool = False,
    cells: Cells | None = None,
    progress: Progress = silent,
) -> None:
    """Draw rows and write them as they are drawn; Parquet takes texts as categories."""
    source, schema = fit, None
    if output_format(target, format)[0] == "parquet":
        schema = as_polars(fit.sample(1)).schema
        distribution = replace(fit.distribution, domain=with_categories(fit.domain))
        source = replace(fit, distribution=distribution)
    batches = source.sample_batches(n, given=given, random_state=random_state, iid=iid)
    lazy = as_lazy(watched(map(as_polars, batches), cells, n, progress))
    staging.write_table(lazy, target, format=format, schema=schema)


def watched(batches: Iterable[Any], cells: Cells | None, total: int, progress: Progress) -> Iterator[Any]:
    """Pass batches on, counted and reported."""
    done = 0
    for batch in batches:
        if cells is not None:
            cells.add(batch)
        yield batch
        done += len(batch)
        progress("rows", done / total)
