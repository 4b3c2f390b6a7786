"""Quick answers: a fit of the cells of outcome and groups alone has every number that moves with a slider, but copies.

Fair weights multiply every row of a cell by the same t(y, z) / e(y, z), so shares, rates, effective rows and the
largest weight are functions of the fair table and of a few sums of each cell, however many rows there are.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Reading, Roles
from fairmaxent.data.table import Table, highest
from fairmaxent.errors import FairMaxEntError
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.groups import group_changes
from fairmaxent.fit.pipeline import fit_rows
from fairmaxent.fit.request import Request
from fairmaxent.plain_text import plain_json
from fairmaxent.progress import Progress, silent

POINTS = 30  # of a curve


@lru_cache(2)  # summed once, while rates move
def cells_of(data: Reading) -> Reading:
    """The same people by outcome, groups and strata alone, one distinct row for each cell that has rows."""
    roles, levels = data.roles, data.roles.blocks.levels
    columns = roles.attributes
    ends = np.cumsum([1, len(roles.protected), len(roles.others), len(roles.strata)]).tolist()
    protected, others, strata = (tuple(range(*part)) for part in pairwise(ends))
    small = Roles(Domain(columns, roles.domain.notes, roles.domain.identifiers), 0, protected, strata, others)
    rows = data.table.collect()
    counts, people, squares = (rows.tables([(0,)], levels, of=of)[0] for of in ("counts", "rows", "squares"))
    seen, peaks = np.flatnonzero(people), highest(rows.codes[:, 0], rows.largest, levels[0])
    table = Table(seen[:, np.newaxis], counts[seen], people[seen], squares[seen], peaks=peaks[seen])
    return replace(data, roles=small, table=table, design=None, positions=None)


def is_quick(request: Request, data: Reading) -> bool:
    """Whether all that is asked for is about the cells, and no row changes its outcome."""
    mentioned = {*(request.target or ()), *(name for rule in request.forbid or () for name in rule)}
    binned = request.means is not None and not data.roles.attributes[0].is_value_coded
    slow = (request.relabelling, request.training, request.privacy)
    return not binned and mentioned <= {*data.roles.names} and all(plan is None for plan in slow)


def quick_fit(cells: Reading, request: Request, progress: Progress = silent) -> Fit:
    """A fit of the cells, which says nothing about copies of rows."""
    fit = fit_rows(cells, request, progress)
    costs = fit.certificate.costs
    assert costs is not None
    groups = tuple(replace(group, most_copies=0.0) for group in costs.groups)
    return replace(fit, certificate=replace(fit.certificate, costs=replace(costs, groups=groups)))


def says_all(fit: Fit) -> bool:
    """Whether no cell is filled in, and none left out."""
    return not (fit.certificate.filled_cells or fit.certificate.emptied_cells)


def curve(cells: Reading, request: Request, kind: str, column: str | None, ends: Any, progress: Progress) -> Any:
    """What one rate does over its whole range to the groups that it is about: points, and the groups' names."""
    asked, points, names = getattr(request, kind), [], []
    present = asked.get(column) if isinstance(asked, Mapping) else asked
    grid = np.linspace(ends[0], ends[1], POINTS).round(3).tolist()
    for value in sorted({*grid, *([] if present is None else [float(present)])}):
        other: dict[str, Any] = {kind: {**asked, column: value} if isinstance(asked, Mapping) else value}
        try:
            fit = quick_fit(cells, replace(request, **other), progress)
        except FairMaxEntError:  # there is no fair table with this rate
            continue
        worth, measure = fit.certificate.effective_rows if says_all(fit) else None, fit.certificate.measure
        grouping = next((name for name in measure.names if measure.columns_of(name) == column), measure.names[0])
        groups = [change for change in group_changes(fit) if change.column == grouping]
        names = [{"group": one.group, "outcome": one.outcome} for one in groups]
        after = [[one.share_after, one.rate_after, one.having_after] for one in groups]
        points.append({"value": value, "effective_rows": worth, "groups": after})
    return plain_json({"kind": kind, "column": column, "asked": present, "groups": names, "points": points})
