"""How a table is read where its rows are.

The engine of a lazy frame finds the values of each column, then counts the rows; none
of them is kept. Those of a cluster stay on its workers.
"""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from fairmaxent.data.domain import Domain, fitting
from fairmaxent.data.likely import Chances
from fairmaxent.data.reading import (
    Found,
    InMemory,
    Reading,
    ReadingRequest,
    Shareable,
    Source,
    read,
)
from fairmaxent.data.roles import Roles
from fairmaxent.data.shareable import needs_memory
from fairmaxent.data.table import Counted
from fairmaxent.engines.cluster_partitions import count_on_workers
from fairmaxent.engines.cluster_tasks import active_client
from fairmaxent.engines.lazy_counts import (
    Coding,
    average_weight,
    count_likely,
    count_rows,
)
from fairmaxent.engines.lazy_frame import (
    Lazy,
    check_column,
    check_known,
    collect,
    engine_errors,
    learn_domain,
    names_of,
    open_lazy,
)
from fairmaxent.errors import InputError, Option


def read_rows(frame: Any, request: ReadingRequest) -> Reading:
    """Read a table where its rows are."""
    source = _source(frame, request)
    return read(source, request)


def _source(frame: Any, request: ReadingRequest) -> Source:
    """Who reads a table."""
    lazy = open_lazy(frame)
    if lazy is None:
        return Shareable(frame) if request.shared else InMemory(frame)
    if request.shared:
        raise needs_memory()
    return InEngine(lazy)


class InEngine(Source):
    """A lazy frame, whose engine finds the values and then counts the rows."""

    frame: Lazy

    def find(self, request: ReadingRequest) -> Found:
        """Look at the design weights, then at each column."""
        with _engine_errors(self.frame):
            self._check_columns(request)
            lazy = self.frame.select(request.without_chances(names_of(self.frame)))
            scale = 1.0
            weight = None
            if request.weight is not None:
                scale = average_weight(lazy, request.weight)
                first = collect(lazy.select(request.weight).head(1))
                weight = first.get_column(request.weight)
            domain, left_out = _domain(lazy, request).without_identifiers(request.keep)
            if request.own_domain is not None and request.by_value is None:
                check_known(lazy, domain, request.progress)
        return Found(
            columns=names_of(lazy),
            domain=domain,
            left_out=left_out,
            count=partial(self._count, request, scale),
            weight=weight,
            weight_scale=scale,
            forgets="the rows are not kept in memory",
        )

    def _check_columns(self, request: ReadingRequest) -> None:
        """Refuse what is not there before anything is computed."""
        used = () if request.likely is None else request.likely.used
        for name in (*request.named, *used):
            check_column(self.frame, name)
        if request.likely is not None and self.frame.implementation.is_dask():
            raise InputError(
                Option("likely"),
                " needs the probabilities in one place, and the rows of a Dask frame"
                " stay in parts; compute it first, or scan its files with polars",
            )

    def _count(
        self, request: ReadingRequest, scale: float, roles: Roles
    ) -> tuple[Counted, Chances | None]:
        """Count in the engine, or on the workers of a cluster if one is at hand."""
        lazy = self.frame
        coding = Coding.of(
            roles.domain,
            roles.blocks,
            request.weight,
            taken=names_of(lazy),
            declaration=request.by_value,
        )
        client = None
        # a private fit needs all of them
        if lazy.implementation.is_dask() and request.by_value is None:
            client = active_client()
        with _engine_errors(lazy):
            if request.likely is not None:
                return count_likely(lazy, coding, request.likely, scale)
            if client is not None:
                return count_on_workers(client, lazy, coding, request.progress), None
            return count_rows(lazy, coding), None


def _engine_errors(lazy: Lazy) -> AbstractContextManager[None]:
    """Of any query; pandas raises the former for a part of Dask without a column."""
    return engine_errors(lazy, KeyError, OSError)


def _domain(lazy: Lazy, request: ReadingRequest) -> Domain:
    """The domain that is given, or that is learned from the values."""
    given = request.own_domain
    if given is None:
        return learn_domain(lazy, weight=request.weight, progress=request.progress)
    first = collect(lazy.head(1))
    if request.weight is not None:
        first = first.drop(request.weight)
    return fitting(given, first, request.weight)
