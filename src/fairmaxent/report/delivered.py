"""What was delivered, with its rates: new rows, weights for the rows of the data, or rows to add to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import ravel
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import tally
from fairmaxent.errors import InputError, check_choice
from fairmaxent.fairness.rates import (
    Grouping,
    Measure,
    Rates,
    by_stratum,
    group_shares,
    group_table,
    outcome_rates,
    smallest_over_largest,
    worst_ratio,
)
from fairmaxent.fit.fit import Fit
from fairmaxent.relabelling.people import root_shape

Mode = Literal["rows", "weights", "top-up"]

# The seed for a fit that has none, so that a report can be repeated.
_SEED = 0


@dataclass(frozen=True, eq=False)
class Delivered:
    """What was delivered, and its table of outcome and protected columns, which sums to one."""

    mode: Mode
    iid: bool
    seed: int | None  # of the draws; None: not known, or nothing is random
    rows: int  # drawn or added
    frame: Any  # those rows, or the first of them where they came in batches; None: weights come without any
    codes: Codes | None  # the same as block codes
    table: Reals  # of all of them


class DrawnBatches:
    """New rows that come in batches: all are counted by outcome and protected columns, the first batch is kept."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self._domain = Domain(tuple(fit.roles.attributes), ())
        self._cells: Reals = np.zeros(fit.roles.blocks.levels[0])
        self._rows = 0
        self._first: Any = None

    def add(self, frame: Any) -> None:
        """Count the rows of a batch."""
        shape = self._fit.roles.blocks.shape(0)
        self._cells += tally(ravel(self._domain.encode(frame), shape), None, self._cells.size)
        self._rows += len(frame)
        self._first = frame if self._first is None else self._first

    @property
    def table(self) -> Reals:
        """The share of each combination of outcome and protected columns so far."""
        return _shaped(self._fit, self._cells)

    def delivered(self, *, iid: bool, seed: int | None) -> Delivered:
        """What has come so far."""
        codes = _encoded(self._fit, self._first)
        return Delivered("rows", iid, seed, self._rows, self._first, codes, self.table)


def deliver(fit: Fit, given: Any, *, mode: Mode, iid: bool, seed: int | None) -> Delivered:
    """Take what was delivered or, if it is None, make it: the same number of rows, with the fit's seed."""
    if isinstance(given, Delivered):
        return given
    check_choice("mode", mode, Mode)
    if mode != "rows" and iid:
        raise InputError(f"iid is for mode 'rows', not for {mode!r}; leave it out")
    if mode == "weights":
        table = _table_by_weights(fit, given)
        return Delivered(mode, iid=False, seed=None, rows=0, frame=None, codes=None, table=table)
    if given is None:
        seed = next(choice for choice in (seed, fit.request.random_state, _SEED) if choice is not None)
        if mode == "rows":
            return _drawn(fit, seed, iid=iid)
        given = fit.top_up(random_state=seed)
    codes = _encoded(fit, given)
    return Delivered(mode, iid, seed, len(codes), given, codes, rows_table(fit, codes, added=mode == "top-up"))


def _drawn(fit: Fit, seed: int, *, iid: bool) -> Delivered:
    drawn = DrawnBatches(fit)
    for batch in fit.sample_batches(fit.table.size, random_state=seed, iid=iid):
        drawn.add(batch)
    return drawn.delivered(iid=iid, seed=seed)


def _table_by_weights(fit: Fit, given: Any) -> Reals:
    """The table by weights, one per row; if an engine holds the rows, their weights have the table of the fit."""
    if given is None and not fit.table.keeps_rows:
        return fit.distribution.root_table
    return weighted_table(fit, fit.weights() if given is None else given)


def _encoded(fit: Fit, frame: Any) -> Codes:
    """Rows as block codes; a table that is fair already needs no row added."""
    if not len(frame):
        return np.empty((0, len(fit.roles.blocks.levels)), dtype=fit.distinct_rows.codes.dtype)
    return fit.roles.blocks.pool(fit.domain.encode(frame))


# ---------------------------------------------------------------- tables of outcome and protected columns


def data_table(fit: Fit) -> Reals:
    """The table of the rows that the fit was made from."""
    return _shaped(fit, _fitted_cells(fit))


def rows_table(fit: Fit, codes: Codes, *, added: bool = False) -> Reals:
    """The table of rows given as block codes, with ``added`` of the fitted rows and these together.

    An added row has the weight 1, beside the raw design weights of the others.
    """
    cells = _cells(fit, codes, None)
    return _shaped(fit, cells + _fitted_cells(fit) * fit.weight_scale.mean if added else cells)


def weighted_table(fit: Fit, weights: Reals) -> Reals:
    """The table of the fitted rows, each counting by its weight, or by one for each outcome if relabelled."""
    outcomes, groups = root_shape(fit.roles.blocks)
    shape = (fit.table.size,) if fit.soft is None else (fit.table.size, outcomes)
    if np.shape(weights) != shape:
        each = "row" if fit.soft is None else "row and outcome"
        raise InputError(f"the fit has {fit.table.size} rows; pass one weight per {each}, as fit.weights() gives them")
    table = fit.distinct_rows
    cells = table.codes[table.inverse, 0]
    if fit.soft is None:
        return _shaped(fit, tally(cells, weights, outcomes * groups))
    return _shaped(fit, np.concatenate([tally(cells % groups, by_row, groups) for by_row in weights.T]))


def _fitted_cells(fit: Fit) -> Reals:
    return fit.table.tables([(0,)], fit.roles.blocks.levels)[0]


def _cells(fit: Fit, codes: Codes, counts: Reals | None) -> Reals:
    return tally(codes[:, 0], counts, fit.roles.blocks.levels[0])


def _shaped(fit: Fit, cells: Reals) -> Reals:
    return np.asarray(cells / cells.sum()).reshape(fit.roles.blocks.shape(0))


# ---------------------------------------------------------------- rates


def delivered_rates(fit: Fit, table: Reals) -> Rates:
    """Both rates of what was delivered, by grouping; None where there is nothing to compare.

    A group that the fitted distribution has, and the table has not, counts with the share 0. It has no rate of an
    outcome, and an outcome that no row has compares nothing. Missing values count only if they are compared.
    """
    measure = fit.certificate.measure
    named = list(zip(measure.names, measure.groupings, strict=True))
    return {
        "representation_rate": {name: _representation(fit, table, axes) for name, axes in named},
        "statistical_rate": {
            name: _statistical(measure.outcomes_compared(table, axes), axes, measure) for name, axes in named
        },
    }


def known_groups(fit: Fit, axes: Grouping) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which groups of a grouping the fitted distribution has."""
    return np.asarray(group_shares(fit.distribution.root_table, axes) > 0)


def _representation(fit: Fit, table: Reals, axes: Grouping) -> float:
    compared = fit.certificate.measure.groups_compared
    shares, fitted = (group_shares(compared(one, axes), axes) for one in (table, fit.distribution.root_table))
    known = np.where((fitted > 0) | (shares > 0), shares, np.nan)
    return worst_ratio(known, fit.certificate.measure.strata)


def _statistical(table: Reals, axes: Grouping, measure: Measure) -> float | None:
    rates = by_stratum(outcome_rates(table, axes)[list(measure.favourable_of(axes))], measure.strata, first=1)
    ratios = smallest_over_largest(rates, if_all_zero=np.nan)
    several = np.count_nonzero(~np.isnan(rates), axis=-1) > 1
    return None if np.isnan(ratios[several]).all() else float(np.nanmin(ratios[several]))


def absences(fit: Fit, table: Reals) -> Iterator[str]:
    """Name the groups and favourable outcomes of the fit that no delivered row has."""
    measure, attributes = fit.certificate.measure, fit.roles.attributes
    for _, axes in measure.of_first_outcome:
        for group in np.argwhere(known_groups(fit, axes) & (group_shares(table, axes) == 0)):
            yield f"no row has {fit.roles.describe_group(axes, group.tolist())}: its share is 0, and it has no rate"
    possible, seen = (group_table(cells, ()) > 0 for cells in (fit.distribution.root_table, table))
    for level in measure.favourable:
        if possible[level] and not seen[level]:
            yield f"no row has {attributes[0].name} = {attributes[0].labels[level]}, so groups cannot be compared by it"
