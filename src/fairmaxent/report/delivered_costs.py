"""What was delivered costs each group, and how many drawn rows are copies of real rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.distinct_values import factorize
from fairmaxent.data.levels import value_key
from fairmaxent.data.table import highest, match_rows, row_keys, tally
from fairmaxent.engines.lazy_frame import Lazy, check_column, collect, fresh_name, open_lazy
from fairmaxent.errors import InputError
from fairmaxent.fairness.rates import group_shares, group_table
from fairmaxent.fit.costs import GroupCost
from fairmaxent.fit.facts import OutcomeShare
from fairmaxent.fit.fit import Fit
from fairmaxent.relabelling.people import root_shape
from fairmaxent.report.delivered import Delivered


@dataclass(frozen=True)
class Copies:
    """Shares of the drawn rows that repeat a real row; None for raw values if the data were not available."""

    rows: int  # that were looked at
    same_levels: float  # the same levels (bins, say) as a real row in every column
    expected_same_levels: float  # the same, exactly: p* of all combinations of levels in the data
    same_values: float | None  # the same raw values as a real row in every column
    same_values_as_one: float | None  # the same raw values as a real row that occurs once
    twins_in_data: float | None  # real rows with the same raw values as another; None also where an engine has them


def copies(fit: Fit, delivered: Delivered, data: Any) -> Copies | None:
    """Count the copies among the drawn rows; None where none was drawn."""
    known, sample, drawn = fit.distinct_rows.codes, delivered.frame, delivered.codes
    if drawn is None or not len(drawn):
        return None
    is_seen = match_rows(known, drawn.astype(known.dtype), fit.roles.blocks.levels) >= 0
    raw = None if data is None else _raw_copies(fit, data, sample)
    count, twins = (None, None) if raw is None else raw
    return Copies(
        rows=len(drawn),
        same_levels=float(is_seen.mean()),
        expected_same_levels=seen_mass(fit),
        same_values=None if count is None else float((count > 0).mean()),
        same_values_as_one=None if count is None else float((count == 1).mean()),
        twins_in_data=None if twins is None else float((twins > 1).mean()),
    )


def seen_mass(fit: Fit) -> float:
    """p*(S): the probability that a drawn row has a combination of levels that the data have."""
    return float(np.exp(fit.distribution.density.log_probability(fit.distinct_rows.codes)).sum())


def check_data(fit: Fit, data: Any) -> None:
    """Refuse a table that the fit was not made from; if an engine holds it, only the rows are counted."""
    lazy = open_lazy(data)
    if lazy is not None:
        for name in fit.columns:
            check_column(lazy, name)
        _check_rows(int(collect(lazy.select(nw.len())).item()), fit.table.size)
        return
    pooled = fit.roles.blocks.pool(fit.domain.encode(data))
    table = fit.distinct_rows
    known = table.codes[table.inverse]
    _check_rows(len(pooled), len(known))
    other = np.flatnonzero((pooled != known).any(axis=1))
    if len(other):
        raise InputError(
            f"row {other[0]} of data is not the row that the fit was made from (rows that differ: {len(other):,}); "
            "pass the table that it was made from, in the same order"
        )


def _check_rows(rows: int, fitted: int) -> None:
    if rows != fitted:
        raise InputError(
            f"data has {rows} rows, but the fit was made from {fitted}; pass the table that it was made from"
        )


def _raw_copies(fit: Fit, data: Any, sample: Any) -> tuple[Reals, Reals | None]:
    """How many real rows equal each drawn row, and how many equal each real row, itself included."""
    lazy = open_lazy(data)
    if lazy is not None:
        return _lazy_copies(fit, lazy, sample), None
    real, new = row_values(data, sample, fit.domain.names)
    count = tally(real, None, int(max(real.max(), new.max())) + 1)
    return count[new], count[real]


def row_values(data: Any, sample: Any, names: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the rows of both tables by their raw values in some columns: equal rows have the same number."""
    real, new = frames.open_frame(data), frames.open_frame(sample)
    columns = [_common_codes(real, new, name) for name in names]
    codes = np.column_stack([np.concatenate(pair) for pair in columns])
    keys, _ = row_keys(codes, [int(column.max()) + 1 for column in codes.T])
    _, numbers = np.unique(keys, return_inverse=True)
    return numbers[: len(real)], numbers[len(real) :]


def _lazy_copies(fit: Fit, data: Lazy, sample: Any) -> Reals:
    """How many rows that an engine has equal each drawn row: only rows with the hash of a drawn one are counted."""
    if not data.implementation.is_polars():
        raise InputError(
            f"copies are not counted in {data.implementation.value} lazy frames, only polars ones; leave data out"
        )
    polars, names = frames.load_library("polars"), list(fit.domain.names)
    real = data.to_native().select(_plain(polars, name, data.collect_schema()[name]) for name in names)
    new = frames.open_frame(sample).select(names).to_polars().cast(dict(real.collect_schema()))
    counted, key = fresh_name("rows", names), polars.struct(names).hash()
    # A join would hold far more of the table at a time.
    near = real.filter(key.is_in(new.select(key.unique().implode()).item()))
    counts = collect(nw.from_native(near.group_by(names).len(name=counted))).to_native()
    joined = new.join(counts, on=names, how="left", nulls_equal=True, maintain_order="left")
    return np.asarray(joined[counted].fill_null(0).to_numpy(), dtype=np.float64)


def _plain(polars: Any, name: str, dtype: Any) -> Any:
    """A column with its categories as texts, which have one hash wherever they come from."""
    column = polars.col(name)
    return column.cast(polars.String) if dtype in (nw.Categorical, nw.Enum) else column


def _common_codes(
    real: nw.DataFrame[Any], new: nw.DataFrame[Any], name: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the values of a column in the same way in both frames; 0 is missing."""
    (old_codes, old_values), (codes, values) = (factorize(frames.column(frame, name)) for frame in (real, new))
    numbers = {value_key(value): number for number, value in enumerate(old_values.to_list(), start=1)}
    new_numbers = [numbers.setdefault(value_key(value), len(numbers) + 1) for value in values.to_list()]
    return old_codes + 1, np.array([0, *new_numbers], dtype=np.intp)[codes + 1]


Numbers = NDArray[np.intp]


@dataclass(frozen=True)
class DeliveredCosts:
    """Shares after are those of what was delivered, and `most_copies` of a group is about its rows.

    Copies are counted if the data are in memory: how often a real row's values come, divided by how many real rows
    have them; among old and added rows, each old one counts once more. Otherwise they are expected.
    """

    outcomes: tuple[OutcomeShare, ...]  # those that are compared
    groups: tuple[GroupCost, ...]  # none: not known for this fit
    worst_cell: GroupCost | None
    filled: float  # share of combinations of outcome and groups that nobody in the data has
    counted: bool


def delivered_costs(fit: Fit, delivered: Delivered | None, data: Any) -> DeliveredCosts:
    """Take the costs of what was delivered; None: nothing was, so they are those of the fitted distribution."""
    table = fit.distribution.root_table if delivered is None else delivered.table
    outcomes, filled, costs = _outcomes(fit, table), _filled(fit, table), fit.certificate.costs
    if costs is None:
        return DeliveredCosts(outcomes, (), None, filled, counted=False)
    if delivered is None:
        return DeliveredCosts(outcomes, costs.groups, costs.worst_cell, filled, counted=False)
    copies = _Copies.counted(fit, delivered, data)
    drawn = delivered.rows / fit.table.size
    groups: list[GroupCost] = []
    for columns, axes in fit.certificate.measure.of_first_outcome:
        shares, most = group_shares(table, axes), None if copies is None else copies.by_group(axes)
        listed = [cost for cost in costs.groups if cost.grouping == columns]
        groups += _delivered(fit, listed, axes, shares, most, drawn)
    (cell,) = _delivered(
        fit, [costs.worst_cell], tuple(range(table.ndim)), table, None if copies is None else copies.cells, drawn
    )
    return DeliveredCosts(outcomes, tuple(groups), cell, filled, counted=copies is not None)


def _delivered(
    fit: Fit, costs: Sequence[GroupCost], axes: tuple[int, ...], shares: Reals, most: Reals | None, drawn: float
) -> Iterator[GroupCost]:
    """Replace what is expected by what was delivered; ``drawn`` is how many rows were, for each row of the data."""
    cells = {fit.roles.describe_group(axes, cell): cell for cell in np.ndindex(shares.shape)}
    for cost in costs:
        cell = cells[cost.name]
        copies = cost.most_copies * drawn if most is None else float(most[cell])
        yield replace(cost, after=float(shares[cell]), most_copies=copies)


def _outcomes(fit: Fit, table: Reals) -> tuple[OutcomeShare, ...]:
    certificate = fit.certificate
    measure = certificate.measure
    levels = [(0, level) for level in measure.favourable]
    levels += [(axis, level) for axis, favourable in measure.others for level in favourable]
    return tuple(
        replace(share, after=float(group_table(np.swapaxes(table, 0, axis), ())[level]))
        for (axis, level), share in zip(levels, certificate.compared_outcomes, strict=False)
    )


def _filled(fit: Fit, table: Reals) -> float:
    names = set(fit.certificate.filled_cells)
    cells = np.ndindex(table.shape) if names else ()
    return float(sum(table[cell] for cell in cells if fit.roles.describe_cell(cell) in names))


@dataclass(frozen=True, eq=False)
class _Copies:
    """The most copies of one person, in each cell (y, z) and each group z, one axis per column."""

    cells: Reals
    groups: Reals

    @classmethod
    def counted(cls, fit: Fit, delivered: Delivered, data: Any) -> _Copies | None:
        """Count copies of real rows among all delivered rows; a relabelled copy may have any outcome."""
        codes = delivered.codes
        if data is None or open_lazy(data) is not None or codes is None or len(codes) < delivered.rows:
            return None
        shape, (_, groups) = fit.roles.blocks.shape(0), root_shape(fit.roles.blocks)
        once = 1.0 if delivered.mode == "top-up" else 0.0
        if not len(codes):
            return cls(np.full(shape, once), np.full(shape[1:], once))
        names = [name for name in fit.domain.names if fit.soft is None or name != fit.roles.names[0]]
        real, new = row_values(data, delivered.frame, names)
        people = tally(real, None, int(max(real.max(), new.max())) + 1)
        root = codes[:, 0].astype(np.intp)
        return cls(
            (once + _most(new, root, people, int(np.prod(shape)))).reshape(shape),
            (once + _most(new, root % groups, people, groups)).reshape(shape[1:]),
        )

    def by_group(self, axes: tuple[int, ...]) -> Reals:
        """The most copies in each group of a grouping."""
        others = tuple(axis for axis in range(self.groups.ndim) if axis + 1 not in axes)
        return np.asarray(self.groups.max(axis=others))


def _most(values: Numbers, cells: Numbers, people: Reals, size: int) -> Reals:
    """The most copies of one person in each cell: how often equal values come, shared by the people who have them."""
    pairs, counts = np.unique(cells * len(people) + values, return_counts=True)
    sharing = people[pairs % len(people)]
    copies = np.divide(counts, sharing, out=np.zeros(len(counts)), where=sharing > 0)
    return highest(pairs // len(people), copies, size)
