"""What was delivered, rows or weights: its rates, copies of real rows, and costs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import (
    Axes,
    Codes,
    NameList,
    Reals,
    highest,
    ratio,
    ravel,
    tally,
)
from fairmaxent.engines.lazy_frame import (
    Lazy,
    collect,
    fresh_name,
    open_lazy,
)
from fairmaxent.engines.rows import among, mass_on
from fairmaxent.errors import InputError, check_choice
from fairmaxent.evaluation.pooled import pool
from fairmaxent.facts.costs import GroupCost
from fairmaxent.facts.output import Copies, DeliveredCosts, Mode, Output
from fairmaxent.fairness.rates import (
    Rates,
    group_shares,
    group_table,
    worst_ratio,
)
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.facts import outcome_shares
from fairmaxent.relabelling.people import root_shape

MostCopies = tuple[Reals, Reals]  # of one person, by cell and by group
_SEED = 0  # for a fit that has none, so that a report can be repeated


@dataclass(frozen=True, eq=False)
class Delivered:
    """What was delivered, and its table of outcome and groups, which sums to one."""

    mode: Mode
    iid: bool
    seed: int | None  # of the draws; None: not known, or nothing is random
    rows: int  # drawn or added
    # those rows, or the first of them where they came in batches; None: weights come
    # without any
    frame: Any
    codes: Codes | None  # the same as block codes
    table: Reals  # of all of them


class DrawnBatches:
    """New rows that come in batches: all are counted, the first batch is kept."""

    def __init__(self, fit: Certified) -> None:
        self._fit = fit
        self._domain = Domain(tuple(fit.roles.attributes), ())
        self._cells: Reals = np.zeros(fit.root_table.shape)
        self._rows = 0
        self.shown: Any = None  # rows for a report to look at

    def add(self, frame: Any) -> None:
        """Count the rows of a batch."""
        shape = self._cells.shape
        if self._fit.weighed is not None:
            self._cells += self._fit.cells_of(_encoded(self._fit, frame))
        else:
            cells = ravel(self._domain.encode(frame), shape)
            self._cells += tally(cells, None, self._cells.size).reshape(shape)
        self._rows += len(frame)
        if self.shown is None:
            self.shown = frame

    @property
    def table(self) -> Reals:
        """The share of each combination of outcome and protected columns so far."""
        return _shaped(self._fit, self._cells)

    def delivered(
        self, *, iid: bool, seed: int | None, mode: Mode = "rows"
    ) -> Delivered:
        """What has come so far."""
        codes = _encoded(self._fit, self.shown)
        table = self.table
        if mode == "top-up":
            table = _with_old(self._fit, self._cells)
        return Delivered(mode, iid, seed, self._rows, self.shown, codes, table)


def deliver(
    fit: Certified,
    given: Any,
    *,
    mode: Mode,
    iid: bool,
    seed: int | None,
) -> Delivered:
    """Take what was delivered, or make it if that is None, with the fit's seed."""
    if isinstance(given, Delivered):
        return given
    check_choice("mode", mode, Mode)
    if mode == "weights":
        table = _table_of_weights(fit, given)
        return Delivered(
            mode,
            iid=False,
            seed=None,
            rows=0,
            frame=None,
            codes=None,
            table=table,
        )
    if given is None:
        choices = (seed, fit.request.random_state, _SEED)
        seed = next(choice for choice in choices if choice is not None)
        if mode == "rows":
            drawn = DrawnBatches(fit)
            for batch in fit.sample_batches(fit.table.size, random_state=seed, iid=iid):
                drawn.add(batch)
            return drawn.delivered(iid=iid, seed=seed)
        given = fit.top_up(random_state=seed)
    codes = _encoded(fit, given)
    cells = fit.cells_of(codes)
    table = _with_old(fit, cells) if mode == "top-up" else _shaped(fit, cells)
    return Delivered(mode, iid, seed, len(codes), given, codes, table)


def _with_old(fit: Certified, cells: Reals) -> Reals:
    """The table of old and new rows.

    A new row has the weight 1, beside the raw design weights of the others.
    """
    return _shaped(fit, cells + fit.problem.cells() * fit.weight_scale)


def _encoded(fit: Certified, frame: Any) -> Codes:
    """Rows as block codes; a table that is fair already needs no row added."""
    if frame is None or not len(frame):
        return np.empty((0, len(fit.blocks.levels)), dtype=int)
    return fit.encoded(frame)


# --------------------------------------------------- tables of outcome and groups


def _table_of_weights(fit: Certified, weights: Reals | None) -> Reals:
    if weights is not None:
        return weighted_table(fit, weights)
    # If an engine holds the rows, their weights have the table of the fit.
    if not fit.table.keeps_rows:
        return fit.root_table
    return weighted_table(fit, fit.weights())


def weighted_table(fit: Certified, weights: Reals) -> Reals:
    """The table of the fitted rows, each counting by its weight.

    A relabelled row counts by one weight for each outcome.
    """
    outcomes, groups = root_shape(fit.blocks)
    shape: Axes = (fit.table.size,)
    each = "row"
    if fit.soft is not None:
        shape = (fit.table.size, outcomes)
        each = "row and outcome"
    if np.shape(weights) != shape:
        raise InputError(
            f"the fit has {fit.table.size} rows; pass one weight per {each}, as"
            " fit.weights() gives them"
        )
    if fit.weighed is not None:
        return _shaped(fit, fit.weighed.split.table_of(weights))
    table = fit.distinct_rows
    cells = table.codes[table.inverse, 0]
    if fit.soft is None:
        return _shaped(fit, tally(cells, weights, outcomes * groups))
    by_outcome = [tally(cells % groups, by_row, groups) for by_row in weights.T]
    return _shaped(fit, np.concatenate(by_outcome))


def _shaped(fit: Certified, cells: Reals) -> Reals:
    return (cells / cells.sum()).reshape(fit.root_table.shape)


def unless_nan(number: float) -> float | None:
    """The number, None if it is none."""
    if np.isnan(number):
        return None
    return float(number)


# ---------------------------------------------------------------- rates


def delivered_rates(fit: Certified, table: Reals) -> Rates:
    """Both rates of what was delivered; None where there is nothing to compare.

    A group that the fitted distribution has, and the table has not, counts with the
    share 0. It has no rate of an outcome, and an outcome that no row has compares
    nothing. Missing values count only if they are compared.
    """
    measure = fit.certificate.measure
    rates = Rates(representation_rate={}, statistical_rate={})
    for name, axes in measure.named_groupings:
        shares = measure.shares_compared(table, axes)
        fitted = measure.shares_compared(fit.root_table, axes)
        is_absent = np.isnan(shares) & ~np.isnan(fitted)
        shares = np.where(is_absent, 0.0, shares)
        rates["representation_rate"][name] = worst_ratio(shares, measure.strata)
        of_outcomes = measure.rates_compared(table, axes)
        ratios = [
            worst_ratio(of_outcomes[level], measure.strata, if_nothing=np.nan)
            for level in measure.favourable_of(axes)
        ]
        known = [ratio for ratio in ratios if not np.isnan(ratio)]
        rates["statistical_rate"][name] = min(known, default=None)
    return rates


def output_of(fit: Certified, delivered: Delivered, costs: DeliveredCosts) -> Output:
    """What was delivered, counted."""
    return Output(
        mode=delivered.mode,
        rows=delivered.rows,
        costs=costs,
        rates=delivered_rates(fit, delivered.table),
        absent=tuple(absences(fit, delivered.table)),
        is_relabelled=fit.soft is not None,
    )


def absences(fit: Certified, table: Reals) -> Iterator[str]:
    """Name the groups and favourable outcomes of the fit that no delivered row has."""
    measure = fit.certificate.measure
    outcome = fit.roles.attributes[0]
    fair = fit.root_table
    for _, axes in measure.of_first_outcome:
        for group in np.argwhere(
            (group_shares(fair, axes) > 0) & (group_shares(table, axes) == 0)
        ):
            yield (
                f"no row has {fit.roles.describe_group(axes, group.tolist())}: its"
                " share is 0, and it has no rate"
            )
    possible, seen = (group_table(cells, ()) > 0 for cells in (fair, table))
    for level in measure.favourable:
        if possible[level] and not seen[level]:
            yield (
                f"no row has {outcome.describe(level)}, so groups cannot"
                " be compared by it"
            )


# ---------------------------------------------------------------- copies of real rows


def copies(fit: Certified, delivered: Delivered, data: Any) -> Copies | None:
    """Count the copies among the drawn rows; None if none was drawn, or in private."""
    drawn = delivered.codes
    if drawn is None or not len(drawn) or not fit.provenance.has_real_rows:
        return None
    is_seen = among(fit.table, drawn, fit.blocks.levels)
    found = Copies(
        rows=len(drawn),
        same_levels=float(is_seen.mean()),
        expected_same_levels=seen_mass(fit),
        same_values=None,
        same_values_as_one=None,
        twins_in_data=None,
    )
    if data is None:
        return found
    lazy = open_lazy(data)
    if lazy is None:
        real, new, people = _numbered(data, delivered.frame, fit.domain.names)
        equal = people[new]
        found = replace(found, twins_in_data=float((people[real] > 1).mean()))
    else:
        equal = _lazy_copies(fit, lazy, delivered.frame)
    return replace(
        found,
        same_values=float((equal > 0).mean()),
        same_values_as_one=float((equal == 1).mean()),
    )


def seen_mass(fit: Certified) -> float:
    """p*(S): the probability of the combinations of levels that the data have."""
    density = fit.distribution.density
    return mass_on(fit.table, density)


def _numbered(data: Any, sample: Any, names: NameList) -> tuple[Codes, Codes, Reals]:
    """Number the rows of both tables by their raw values, and count the real ones."""
    real, new = (
        frames.open_frame(frame).select(names).to_native() for frame in (data, sample)
    )
    pooled, _ = pool({"real": real, "new": new})
    numbers = pooled.row_numbers
    old = numbers[pooled.parts["real"]]
    people = tally(old, None, int(numbers.max()) + 1)
    return old, numbers[pooled.parts["new"]], people


def _lazy_copies(fit: Certified, data: Lazy, sample: Any) -> Reals:
    """How many rows that an engine has equal each drawn row.

    Only rows with the hash of a drawn one are counted.
    """
    if not data.implementation.is_polars():
        raise InputError(
            f"copies are not counted in {data.implementation.value} lazy frames, only"
            " polars ones; leave data out"
        )
    polars = frames.load_library("polars")
    names = list(fit.domain.names)
    schema = data.collect_schema()
    # Categories as texts, which have one hash wherever they come from.
    texts = [
        polars.col(name).cast(polars.String)
        for name in names
        if schema[name] in (nw.Categorical, nw.Enum)
    ]
    real = data.to_native().select(names).with_columns(texts)
    new = (
        frames.open_frame(sample)
        .select(names)
        .to_polars()
        .cast(dict(real.collect_schema()))
    )
    counted = fresh_name("rows", names)
    key = polars.struct(names).hash()
    # A join would hold far more of the table at a time.
    near = real.filter(key.is_in(new.select(key.unique().implode()).item()))
    counts = collect(nw.from_native(near.group_by(names).len(name=counted))).to_native()
    joined = new.join(
        counts,
        on=names,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return joined[counted].fill_null(0).cast(polars.Float64).to_numpy()


# ---------------------------------------------------------------- costs


def costs_of(fit: Certified, delivered: Delivered | None, data: Any) -> DeliveredCosts:
    """The costs of what was delivered; of the fitted distribution if nothing was."""
    certificate = fit.certificate
    table = fit.root_table if delivered is None else delivered.table
    filled = 0.0
    if certificate.filled_cells:
        filled = float(sum(table[cell] for cell in fit.filled))
    outcomes = tuple(certificate.compared(outcome_shares(fit.problem, table)))
    costs = certificate.costs
    expected = DeliveredCosts(outcomes, (), None, filled, counted=False)
    if costs is None:
        return expected
    if delivered is None:
        return replace(expected, groups=costs.groups, worst_cell=costs.worst_cell)
    most = _most_copies(fit, delivered, data)
    found = dict(_delivered_groups(fit, table, most))

    def updated(cost: GroupCost) -> GroupCost:
        """Replace what is expected by what was delivered."""
        share, copies = found[cost.name]
        if copies is None:
            copies = cost.most_copies * (delivered.rows / fit.table.size)
        return replace(cost, after=share, most_copies=copies)

    return replace(
        expected,
        groups=tuple(map(updated, costs.groups)),
        worst_cell=updated(costs.worst_cell),
        counted=most is not None,
    )


def _delivered_groups(
    fit: Certified, table: Reals, most: MostCopies | None
) -> Iterator[tuple[str, tuple[float, float | None]]]:
    """By the name of a cell or group: its share, and the most copies of one person."""
    every = tuple(range(table.ndim))
    groupings = [axes for _, axes in fit.certificate.measure.of_first_outcome]
    for axes in (every, *groupings):
        shares = table if axes is every else group_shares(table, axes)
        copies = None
        if most is not None and axes is every:
            copies = most[0]
        elif most is not None:
            others = tuple(axis - 1 for axis in every[1:] if axis not in axes)
            copies = most[1].max(axis=others)
        for group in np.ndindex(shares.shape):
            times = None if copies is None else float(copies[group])
            yield fit.roles.describe_group(axes, group), (float(shares[group]), times)


def _most_copies(fit: Certified, delivered: Delivered, data: Any) -> MostCopies | None:
    """The most copies of one person in each cell (y, z) and each group z.

    None: they cannot be counted.
    """
    codes = delivered.codes
    if data is None or open_lazy(data) is not None:
        return None
    if codes is None or len(codes) < delivered.rows or fit.weighed is not None:
        return None
    shape = fit.root_table.shape
    once = 1.0 if delivered.mode == "top-up" else 0.0
    if not len(codes):
        return np.full(shape, once), np.full(shape[1:], once)
    # A relabelled copy may have any outcome.
    names = list(fit.domain.names)
    if fit.soft is not None:
        names.remove(fit.roles.names[0])
    _, new, people = _numbered(data, delivered.frame, names)

    def most(cells: Codes, shape: Axes) -> Reals:
        """How often equal values come in each cell, shared by those who have them."""
        pairs, counts = np.unique(cells * len(people) + new, return_counts=True)
        shared = ratio(counts.astype(float), people[pairs % len(people)])
        highest_share = highest(pairs // len(people), shared, int(np.prod(shape)))
        return once + highest_share.reshape(shape)

    root = codes[:, 0].astype(np.intp)
    _, groups = root_shape(fit.blocks)
    return most(root, shape), most(root % groups, shape[1:])
