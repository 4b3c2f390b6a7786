"""What was delivered: new rows, weights, or rows to add; rates, copies of real rows,
costs of each group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import factorize
from fairmaxent.data.domain import Domain, shareable
from fairmaxent.data.levels import value_key
from fairmaxent.data.table import (
    Codes,
    Reals,
    highest,
    match_rows,
    ravel,
    row_keys,
    tally,
)
from fairmaxent.engines.lazy_frame import (
    Lazy,
    check_column,
    collect,
    fresh_name,
    open_lazy,
)
from fairmaxent.errors import InputError, LevelError, check_choice
from fairmaxent.fairness.rates import (
    Rates,
    group_shares,
    group_table,
    outcome_axis,
    outcome_rates,
    worst_ratio,
)
from fairmaxent.fit.costs import GroupCost
from fairmaxent.fit.facts import OutcomeShare
from fairmaxent.fit.fitted import Fitted
from fairmaxent.privacy.refusals import no_rows
from fairmaxent.relabelling.people import root_shape

Mode = Literal["rows", "weights", "top-up"]
_SEED = 0  # for a fit that has none, so that a report can be repeated


@dataclass(frozen=True, eq=False)
class Delivered:
    """What was delivered, and its table of outcome and protected columns, which sums to
    one.
    """

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
    """New rows that come in batches: all are counted by outcome and protected columns,
    the first batch is kept.
    """

    def __init__(self, fit: Fitted) -> None:
        self._fit = fit
        self._domain = Domain(tuple(fit.roles.attributes), ())
        self._cells: Reals = np.zeros(fit.roles.blocks.levels[0])
        self._rows = 0
        self._first: Any = None

    def add(self, frame: Any) -> None:
        """Count the rows of a batch."""
        shape = self._fit.roles.blocks.shape(0)
        self._cells += tally(
            ravel(self._domain.encode(frame), shape), None, self._cells.size
        )
        self._rows += len(frame)
        if self._first is None:
            self._first = frame

    @property
    def table(self) -> Reals:
        """The share of each combination of outcome and protected columns so far."""
        return _shaped(self._fit, self._cells)

    def delivered(self, *, iid: bool, seed: int | None) -> Delivered:
        """What has come so far."""
        codes = _encoded(self._fit, self._first)
        return Delivered("rows", iid, seed, self._rows, self._first, codes, self.table)


def deliver(
    fit: Fitted, given: Any, *, mode: Mode, iid: bool, seed: int | None
) -> Delivered:
    """Take what was delivered or, if it is None, make it: the same number of rows, with
    the fit's seed.
    """
    if isinstance(given, Delivered):
        return given
    check_choice("mode", mode, Mode)
    if mode != "rows" and iid:
        raise InputError(f"iid is for mode 'rows', not for {mode!r}; leave it out")
    if mode == "weights":
        # If an engine holds the rows, their weights have the table of the fit.
        exact = given is None and not fit.table.keeps_rows
        if given is None and not exact:
            weights = fit.weights()
        else:
            weights = given
        if exact:
            table = fit.distribution.root_table
        else:
            table = weighted_table(fit, weights)
        return Delivered(
            mode, iid=False, seed=None, rows=0, frame=None, codes=None, table=table
        )
    if given is None:
        seed = next(
            choice
            for choice in (seed, fit.request.random_state, _SEED)
            if choice is not None
        )
        if mode == "rows":
            drawn = DrawnBatches(fit)
            for batch in fit.sample_batches(fit.table.size, random_state=seed, iid=iid):
                drawn.add(batch)
            return drawn.delivered(iid=iid, seed=seed)
        given = fit.top_up(random_state=seed)
    codes = _encoded(fit, given)
    cells = tally(codes[:, 0], None, fit.roles.blocks.levels[0])
    # a new row has the weight 1, beside the raw design weights of the others
    if mode == "top-up":
        cells = cells + fit.problem.cells().ravel() * fit.weight_scale
    return Delivered(mode, iid, seed, len(codes), given, codes, _shaped(fit, cells))


def _encoded(fit: Fitted, frame: Any) -> Codes:
    """Rows as block codes; a table that is fair already needs no row added."""
    if not len(frame):
        return np.empty(
            (0, len(fit.roles.blocks.levels)), dtype=fit.distinct_rows.codes.dtype
        )
    return fit.roles.blocks.pool(fit.domain.encode(frame))


# ---------------------------------------------------------------- tables of outcome and
# protected columns


def weighted_table(fit: Fitted, weights: Reals) -> Reals:
    """The table of the fitted rows, each counting by its weight, or by one for each
    outcome if relabelled.
    """
    outcomes, groups = root_shape(fit.roles.blocks)
    if fit.soft is None:
        shape = (fit.table.size,)
    else:
        shape = (fit.table.size, outcomes)
    if np.shape(weights) != shape:
        each = "row" if fit.soft is None else "row and outcome"
        raise InputError(
            f"the fit has {fit.table.size} rows; pass one weight per {each}, as"
            " fit.weights() gives them"
        )
    table = fit.distinct_rows
    cells = table.codes[table.inverse, 0]
    if fit.soft is None:
        return _shaped(fit, tally(cells, weights, outcomes * groups))
    return _shaped(
        fit,
        np.concatenate([tally(cells % groups, by_row, groups) for by_row in weights.T]),
    )


def _shaped(fit: Fitted, cells: Reals) -> Reals:
    return np.asarray(cells / cells.sum()).reshape(fit.roles.blocks.shape(0))


def unless_nan(number: float) -> float | None:
    """The number, None if it is none."""
    if np.isnan(number):
        return None
    return float(number)


# ---------------------------------------------------------------- rates


def delivered_rates(fit: Fitted, table: Reals) -> Rates:
    """Both rates of what was delivered, by grouping; None where there is nothing to
    compare.

    A group that the fitted distribution has, and the table has not, counts with the
    share 0. It has no rate of an outcome, and an outcome that no row has compares
    nothing. Missing values count only if they are compared.
    """
    measure = fit.certificate.measure
    rates = Rates(representation_rate={}, statistical_rate={})
    for name, axes in zip(measure.names, measure.groupings, strict=True):
        both = (
            measure.groups_compared(cells, axes)
            for cells in (table, fit.distribution.root_table)
        )
        shares, fitted = (group_shares(cells, axes) for cells in both)
        shares = np.where((fitted > 0) | (shares > 0), shares, np.nan)
        rates["representation_rate"][name] = worst_ratio(shares, measure.strata)
    for name, ratios in outcome_ratios(fit, table).items():
        rates["statistical_rate"][name] = min(
            (ratio for ratio in ratios.values() if ratio is not None), default=None
        )
    return rates


def outcome_ratios(fit: Fitted, table: Reals) -> dict[str, dict[str, float | None]]:
    """The statistical rate of each outcome that is compared, by grouping; None where
    there is nothing to compare.
    """
    measure = fit.certificate.measure
    found = dict[str, dict[str, float | None]]()
    for name, axes in zip(measure.names, measure.groupings, strict=True):
        outcome = fit.roles.attributes[outcome_axis(axes)]
        rates = outcome_rates(measure.outcomes_compared(table, axes), axes)
        for level in measure.favourable_of(axes):
            ratio = unless_nan(
                worst_ratio(rates[level], measure.strata, if_nothing=np.nan)
            )
            found.setdefault(name, {})[f"{outcome.name} = {outcome.labels[level]}"] = (
                ratio
            )
    return found


def absences(fit: Fitted, table: Reals) -> Iterator[str]:
    """Name the groups and favourable outcomes of the fit that no delivered row has."""
    measure = fit.certificate.measure
    outcome = fit.roles.attributes[0]
    fair = fit.distribution.root_table
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
                f"no row has {outcome.name} = {outcome.labels[level]}, so groups cannot"
                " be compared by it"
            )


# ---------------------------------------------------------------- copies of real rows


@dataclass(frozen=True)
class Copies:
    """Shares of the drawn rows that repeat a real row; None for raw values if the data
    were not available.
    """

    rows: int  # that were looked at
    same_levels: float  # the same levels (bins, say) as a real row in every column
    # the same, exactly: p* of all combinations of levels in the data
    expected_same_levels: float
    same_values: float | None  # the same raw values as a real row in every column
    # the same raw values as a real row that occurs once
    same_values_as_one: float | None
    # real rows with the same raw values as another; None also where an engine has them
    twins_in_data: float | None


def copies(fit: Fitted, delivered: Delivered, data: Any) -> Copies | None:
    """Count the copies among the drawn rows; None where none was drawn."""
    rows = fit.distinct_rows.codes
    drawn = delivered.codes
    if drawn is None or not len(drawn):
        return None
    is_seen = match_rows(rows, drawn.astype(rows.dtype), fit.roles.blocks.levels) >= 0
    known = len(drawn), float(is_seen.mean()), seen_mass(fit)
    if data is None:
        return Copies(*known, None, None, None)
    lazy = open_lazy(data)
    twins = None
    if lazy is not None:
        # how many real rows equal each drawn one
        equal = _lazy_copies(fit, lazy, delivered.frame)
    else:
        real, new, people = _numbered(data, delivered.frame, fit.domain.names)
        equal = people[new]
        twins = float((people[real] > 1).mean())
    return Copies(*known, float((equal > 0).mean()), float((equal == 1).mean()), twins)


def seen_mass(fit: Fitted) -> float:
    """p*(S): the probability that a drawn row has a combination of levels that the data
    have.
    """
    return float(
        np.exp(fit.distribution.density.log_probability(fit.distinct_rows.codes)).sum()
    )


def checked_data(fit: Fitted, data: Any) -> Any:
    """The table as the fit saw it; one that it was not made from is refused, of an
    engine only if rows are missing.
    """
    if data is None:
        return None
    if fit.certificate.privacy is not None:
        raise no_rows("a comparison with the data", private=True)
    lazy = open_lazy(data)
    codes = None
    if lazy is None:
        try:
            encoded = fit.domain.encode(data)
        except LevelError:
            if not fit.request.release:
                raise
            data = shareable(
                frames.open_frame(data), fit.roles.names, (), fit.request.weight
            )[0].to_native()
            encoded = fit.domain.encode(data)
        codes = fit.roles.blocks.pool(encoded)
        rows = len(codes)
    else:
        for name in fit.columns:
            check_column(lazy, name)
        rows = int(collect(lazy.select(nw.len())).item())
    if rows != fit.table.size:
        raise InputError(
            f"data has {rows} rows, but the fit was made from {fit.table.size}; pass"
            " the table that it was made from"
        )
    fitted = fit.distinct_rows
    if codes is not None and len(
        other := np.flatnonzero((codes != fitted.codes[fitted.inverse]).any(axis=1))
    ):
        raise InputError(
            f"row {other[0]} of data is not the row that the fit was made from (rows"
            f" that differ: {len(other):,}); pass the table that it was made from, in"
            " the same order"
        )
    return data


def _numbered(
    data: Any, sample: Any, names: Sequence[str]
) -> tuple[Codes, Codes, Reals]:
    """Number the rows of both tables by their raw values in some columns, and count the
    real rows of each number.
    """
    real = frames.open_frame(data)
    new = frames.open_frame(sample)
    columns = []
    for name in names:
        (old_codes, old_values), (codes, values) = (
            factorize(frames.column(frame, name)) for frame in (real, new)
        )
        numbers = {
            value_key(value): number
            for number, value in enumerate(old_values.to_list(), start=1)
        }
        new_numbers = [
            numbers.setdefault(value_key(value), len(numbers) + 1)
            for value in values.to_list()
        ]
        columns.append(
            np.concatenate(
                [old_codes + 1, np.array([0, *new_numbers], dtype=np.intp)[codes + 1]]
            )
        )
    keys, _ = row_keys(
        np.column_stack(columns), [int(column.max()) + 1 for column in columns]
    )
    distinct, row_numbers = np.unique(keys, return_inverse=True)
    old = row_numbers[: len(real)]
    return old, row_numbers[len(real) :], tally(old, None, len(distinct))


def _lazy_copies(fit: Fitted, data: Lazy, sample: Any) -> Reals:
    """How many rows that an engine has equal each drawn row: only rows with the hash of
    a drawn one are counted.
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
        counts, on=names, how="left", nulls_equal=True, maintain_order="left"
    )
    return np.asarray(joined[counted].fill_null(0).to_numpy(), dtype=np.float64)


# ---------------------------------------------------------------- costs


@dataclass(frozen=True)
class DeliveredCosts:
    """What was delivered, by outcome and by group; old rows that stay count as one copy
    more.
    """

    outcomes: tuple[OutcomeShare, ...]  # those that are compared
    groups: tuple[GroupCost, ...]  # none: not known for this fit
    worst_cell: GroupCost | None
    # share of combinations of outcome and groups that nobody in the data has
    filled: float
    # how often a real row's values come, shared by the rows that have them; otherwise
    # expected
    counted: bool


def costs_of(fit: Fitted, delivered: Delivered | None, data: Any) -> DeliveredCosts:
    """Take the costs of what was delivered; None: nothing was, so they are those of the
    fitted distribution.
    """
    if delivered is None:
        table = fit.distribution.root_table
    else:
        table = delivered.table
    names = set(fit.certificate.filled_cells)
    costs = fit.certificate.costs
    measure = fit.certificate.measure
    if names:
        cells = np.ndindex(table.shape)
    else:
        cells = ()
    filled = float(
        sum(table[cell] for cell in cells if fit.roles.describe_cell(cell) in names)
    )
    levels = [
        (axis, level)
        for axis, favourable in ((0, measure.favourable), *measure.others)
        for level in favourable
    ]
    outcomes = tuple(
        replace(share, after=float(group_table(np.swapaxes(table, 0, axis), ())[level]))
        for (axis, level), share in zip(
            levels, fit.certificate.compared_outcomes, strict=False
        )
    )
    if costs is None or delivered is None:
        if costs is None:
            groups = ()
            worst = None
        else:
            groups = costs.groups
            worst = costs.worst_cell
        return DeliveredCosts(outcomes, groups, worst, filled, counted=False)
    most = _most_copies(fit, delivered, data)
    found = {}
    every = tuple(range(table.ndim))
    for axes in (every, *(axes for _, axes in measure.of_first_outcome)):
        if axes is every:
            shares = table
        else:
            shares = group_shares(table, axes)
        others = tuple(axis - 1 for axis in every[1:] if axis not in axes)
        by_group = None
        if most is not None:
            if axes is every:
                by_group = most[0]
            else:
                by_group = np.asarray(most[1].max(axis=others))
        for group in np.ndindex(shares.shape):
            times = None
            if by_group is not None:
                times = float(by_group[group])
            found[fit.roles.describe_group(axes, group)] = (float(shares[group]), times)

    def updated(cost: GroupCost) -> GroupCost:
        """Replace what is expected by what was delivered."""
        share, times = found[cost.name]
        expected = cost.most_copies * (delivered.rows / fit.table.size)
        return replace(
            cost, after=share, most_copies=expected if times is None else times
        )

    groups = tuple(map(updated, costs.groups))
    worst = updated(costs.worst_cell)
    return DeliveredCosts(outcomes, groups, worst, filled, counted=most is not None)


def _most_copies(
    fit: Fitted, delivered: Delivered, data: Any
) -> tuple[Reals, Reals] | None:
    """The most copies of one person in each cell (y, z) and each group z; None: not
    counted.
    """
    codes = delivered.codes
    if (
        data is None
        or open_lazy(data) is not None
        or codes is None
        or len(codes) < delivered.rows
    ):
        return None
    shape, (_, groups) = fit.roles.blocks.shape(0), root_shape(fit.roles.blocks)
    once = 1.0 if delivered.mode == "top-up" else 0.0
    if not len(codes):
        return np.full(shape, once), np.full(shape[1:], once)
    # A relabelled copy may have any outcome.
    names = [
        name
        for name in fit.domain.names
        if fit.soft is None or name != fit.roles.names[0]
    ]
    _, new, people = _numbered(data, delivered.frame, names)

    def most(cells: Codes, shape: tuple[int, ...]) -> Reals:
        """How often equal values come in each cell, shared by the people who have
        them.
        """
        pairs, counts = np.unique(cells * len(people) + new, return_counts=True)
        sharing = people[pairs % len(people)]
        shared = np.divide(
            counts, sharing, out=np.zeros(len(counts)), where=sharing > 0
        )
        return once + highest(
            pairs // len(people), shared, int(np.prod(shape))
        ).reshape(shape)

    root = codes[:, 0].astype(np.intp)
    return most(root, shape), most(root % groups, shape[1:])
