"""Rates of a table: representation rate and statistical rate.

These are Definitions 2.1 and 2.2; `Measure` says what they measure.

A table holds probabilities or counts: axis 0 is the outcome, the other axes are
protected attributes. A *grouping* is a tuple of protected axes; its groups are the
levels of one axis, or the intersections of several. Groups without mass are not
compared. The last axes of a grouping may be *strata*: then groups are compared with the
others of their stratum only, and the worst stratum counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TypeVar

import numpy as np

from fairmaxent.data.roles import GroupsOption, Roles, WithinOption, listed, read_within
from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import LevelError, Option, RateError

LEAST_RATE = 1e-6  # that can be asked for: below, what is asked is lost in rounding
_TIE = 1e-9  # values that differ by less, relatively, are equal

Array = TypeVar("Array", Reals, Mask)
Grouping = tuple[int, ...]
Levels = tuple[int, ...]
ByGrouping = dict[str, float | None]
Rates = dict[str, ByGrouping]
# by axis, the levels that were asked for; None: all
AskedStrata = Mapping[int, Levels | None]


class OutcomeGrouping(tuple[int, ...]):
    """A grouping whose rates are about another outcome than that of axis 0.

    That of the axis `outcome`.
    """

    outcome: int

    def __new__(cls, axes: Iterable[int], outcome: int = 0) -> "OutcomeGrouping":
        """Take the axes of the groups, and the axis of the outcome."""
        grouping = super().__new__(cls, axes)
        grouping.outcome = outcome
        return grouping


def outcome_axis(grouping: Grouping) -> int:
    """The axis of the outcome that the rates of a grouping are about."""
    if isinstance(grouping, OutcomeGrouping):
        return grouping.outcome
    return 0


@dataclass(frozen=True)
class WorstPair:
    """The two groups that determine a rate: the lowest's value over the highest's."""

    rate: float
    outcome: int | None  # whose rates are compared; None: shares are
    lowest: Levels  # of the group, on each axis of its grouping
    highest: Levels


def check_rate(name: object, rate: float, *, hint: object = "") -> float:
    """Refuse a wanted rate outside (0, 1].

    `name` and `hint` are parts of the message, as errors take them.
    """
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate <= 1:
        said = f" is {rate!r}; a rate must be above 0 and at most 1"
        if isinstance(rate, Real) and 1 < rate <= 100:
            said += f"; write {rate / 100:g} for {rate:g} %"
        raise RateError(name, said, hint)
    if rate < LEAST_RATE:
        raise RateError(
            name,
            f" is {rate!r}; a rate below {LEAST_RATE:g} asks for next to nothing",
            hint,
        )
    return float(rate)


def smallest_over_largest(rates: Reals, *, if_all_zero: float = 1.0) -> Reals:
    """Ratio of the smallest to the largest group rate, the groups being the last axis.

    A rate of NaN means that the group has none: it is not compared, and without any
    rate the ratio is NaN. If every rate is zero (nobody has the outcome), the ratio is
    `if_all_zero`: 1 because all groups are treated the same way, or NaN if nothing can
    be compared then.

    >>> smallest_over_largest(np.array([[0.2, 0.4, np.nan], [0.0, 0.0, np.nan]]))
    array([0.5, 1. ])
    >>> smallest_over_largest(np.array([[np.nan, np.nan, np.nan]]))
    array([nan])
    >>> float(smallest_over_largest(np.zeros(2), if_all_zero=np.nan))
    nan
    """
    smallest = np.fmin.reduce(rates, axis=-1, initial=np.nan)
    largest = np.fmax.reduce(rates, axis=-1, initial=np.nan)
    otherwise = np.where(np.isnan(largest), np.nan, if_all_zero)
    return np.divide(
        smallest,
        largest,
        out=otherwise,
        where=largest > 0,
    )


def group_table(table: Reals, grouping: Grouping) -> Reals:
    """Sum a table to outcome × groups, with axes in the order of the grouping."""
    table = np.swapaxes(table, 0, outcome_axis(grouping))
    others = tuple(axis for axis in range(1, table.ndim) if axis not in grouping)
    ordered = table.transpose(0, *grouping, *others)
    return ordered.sum(axis=tuple(range(len(grouping) + 1, table.ndim)))


def group_shares(table: Reals, grouping: Grouping) -> Reals:
    """Share P(g) of each group g.

    >>> group_shares(np.array([[3.0, 1.0], [5.0, 1.0]]), (1,))
    array([0.8, 0.2])
    """
    mass = group_table(table, grouping).sum(axis=0)
    return mass / mass.sum()


def outcome_rates(table: Reals, grouping: Grouping) -> Reals:
    """Rate P(y | g) of each outcome y in each group g; NaN in a group without mass.

    >>> outcome_rates(np.array([[3.0, 1.0], [5.0, 1.0]]), (1,))
    array([[0.375, 0.5  ],
           [0.625, 0.5  ]])
    """
    mass = group_table(table, grouping)
    total = mass.sum(axis=0)
    return np.divide(
        mass,
        total,
        out=np.full_like(mass, np.nan),
        where=total > 0,
    )


def statistical_pair(
    rates: Reals, outcomes: Sequence[int], *, strata: int = 0
) -> WorstPair:
    """The statistical rate, with the groups and the outcome that determine it.

    On a tie the first. A rate of NaN is not compared.
    """
    pairs = [
        worst_pair(rates[y], outcome=y, strata=strata)
        for y in outcomes
        if not np.isnan(rates[y]).all()
    ]
    ratios = [pair.rate for pair in pairs]
    # a tie is not quite equal
    return replace(pairs[first_smallest(ratios)], rate=float(np.nanmin(ratios)))


def rates_of_many(
    tables: Reals,
    model: Reals,
    grouping: Grouping,
    outcomes: Sequence[int],
    *,
    strata: int = 0,
    apart: Mask | None = None,
) -> tuple[Reals, Reals]:
    """Representation and statistical rate of each table in a stack (first axis).

    All are drawn from one model. ``apart`` are outcomes × groups that are too small to
    decide the latter.
    """
    known = by_stratum(group_shares(model, grouping), strata) > 0
    tables = np.swapaxes(tables, 1, outcome_axis(grouping) + 1)
    axes = [axis + 1 for axis in grouping]
    moved = np.moveaxis(tables, axes, range(2, 2 + len(grouping)))
    mass = moved.sum(axis=tuple(range(2 + len(grouping), moved.ndim)))
    mass = by_stratum(mass, strata, first=2)
    # A group that the model has but a table lacks has share zero in that table, and no
    # rate of an outcome.
    total = np.where(known, mass.sum(axis=1), np.nan)
    rates = mass[:, list(outcomes)] / np.where(total > 0, total, np.nan)[:, None]
    if apart is not None and apart.any():
        too_small = by_stratum(apart, strata, first=1)[list(outcomes)]
        rates = np.where(too_small, np.nan, rates)
    representation = smallest_over_largest(total)
    statistical = smallest_over_largest(rates).reshape(len(tables), -1)
    return np.fmin.reduce(representation, axis=-1), np.fmin.reduce(statistical, axis=-1)


def by_stratum(values: Array, strata: int, *, first: int = 0) -> Array:
    """Lay the values of groups out as (…, strata, groups).

    The axes of a grouping begin at ``first``.

    >>> by_stratum(np.array([[0.1, 0.2], [0.3, 0.4]]), 1)
    array([[0.1, 0.3],
           [0.2, 0.4]])
    """
    kept = values.shape[:first]
    end = values.ndim - strata
    within = int(np.prod(values.shape[end:]))
    return np.swapaxes(values.reshape(*kept, -1, within), -1, -2)


def without_strata(values: Array, shape: Sequence[int]) -> Array:
    """Lay values out again as `by_stratum` found them: (…, groups, strata)."""
    kept = values.shape[:-2]
    return np.swapaxes(values, -1, -2).reshape(*kept, *shape)


def worst_ratio(values: Reals, strata: int, *, if_nothing: float = 1.0) -> float:
    """Smallest over the strata of the smallest over the largest value of a group.

    NaN is ignored, and if all is NaN.

    Where there is nothing to compare, because a group is alone or all values are zero,
    the ratio is `if_nothing`.
    """
    rows = by_stratum(values, strata)
    alone = np.count_nonzero(~np.isnan(rows), axis=-1) == 1
    ratios = smallest_over_largest(rows, if_all_zero=if_nothing)
    return float(np.fmin.reduce(np.where(alone, if_nothing, ratios)))


def worst_pair(
    values: Reals, *, outcome: int | None = None, strata: int = 0
) -> WorstPair:
    """The groups with the smallest and the largest value in the worst stratum.

    NaN is ignored.
    """
    rows = by_stratum(values, strata)
    ratios = smallest_over_largest(rows)
    worst = first_smallest(ratios)
    ends = (first_smallest(rows[worst]), first_largest(rows[worst]))
    lowest, highest = (
        np.unravel_index(end * len(rows) + worst, values.shape) for end in ends
    )
    return WorstPair(
        rate=float(np.nanmin(ratios)),
        outcome=outcome,
        lowest=tuple(map(int, lowest)),
        highest=tuple(map(int, highest)),
    )


def first_smallest(values: Sequence[float] | Reals) -> int:
    """Where the smallest value is, the first of those that differ by rounding only.

    NaN is ignored.

    >>> first_smallest([0.3, 0.2 + 1e-16, 0.2])
    1
    """
    values = np.asarray(values)
    least = values[np.nanargmin(values)]
    return int(np.argmax(values <= least + _TIE * abs(least)))


def first_largest(values: Sequence[float] | Reals) -> int:
    """Where the largest value is; see `first_smallest`."""
    return first_smallest(-np.asarray(values))


@dataclass(frozen=True)
class Measure:
    """What is compared: groupings with names, and the favourable outcomes.

    Some levels are not compared.
    """

    groupings: tuple[Grouping, ...]
    names: tuple[str, ...]
    favourable: Levels
    # axis and level of missing values that are not compared
    left_out: tuple[tuple[int, int], ...] = ()
    # how many axes the strata have, which are the last ones of every grouping
    strata: int = 0
    # axis and level of strata that nobody asked to compare
    outside: tuple[tuple[int, int], ...] = ()
    # axis and favourable levels of each other outcome
    others: tuple[tuple[int, Levels], ...] = ()
    columns: tuple[str, ...] = field(default=(), compare=False)  # of each grouping
    # by outcome and grouping (see `apart_of`): outcome × groups that are too small
    apart: Mapping[Grouping, Mask] = field(default_factory=dict, compare=False)
    sizes_apart: bool = field(default=False, compare=False)  # nor are sizes compared
    # how many a table has, if not even the last one is in a grouping
    axes: int | None = None

    def __post_init__(self) -> None:
        if self.others:  # the groupings of one outcome come after those of the other
            each = len(self.groupings) // (1 + len(self.others))
            axes = np.repeat([0, *dict(self.others)], each).tolist()
            groupings = tuple(map(OutcomeGrouping, self.groupings, axes))
            object.__setattr__(self, "groupings", groupings)

    @classmethod
    def of(
        cls,
        roles: Roles,
        *,
        groups: GroupsOption = "each",
        favourable: object = None,
        compare_missing: bool = True,
        within: WithinOption = None,
    ) -> "Measure":
        """Compare the protected columns one by one or jointly.

        For the favourable outcomes (None: all).
        """
        groupings = roles.groupings(groups)
        strata = _asked_strata(roles, within)
        left_out = {
            axis: attribute.missing
            for axis, attribute in enumerate(roles.attributes)
            if not compare_missing and attribute.missing is not None
        }
        chosen, *others = (
            _chosen_levels(roles, favourable, axis, left_out)
            for axis in (0, *roles.other_axes)
        )
        # anyone who names missing strata wants to compare them
        for axis, levels in strata.items():
            if levels is not None and left_out.get(axis) in levels:
                del left_out[axis]
        columns = tuple(map(roles.grouping_name, groupings))
        names = tuple(column + _within_name(roles, strata) for column in columns)
        if others:
            names = tuple(
                f"{outcome} by {name}"
                for outcome in roles.outcome_names
                for name in names
            )
        outside = [
            (axis, level)
            for axis, levels in strata.items()
            for level in range(roles.attributes[axis].size)
            if levels is not None and level not in (*levels, left_out.get(axis, -1))
        ]
        axes = tuple((*grouping, *strata) for grouping in groupings)
        outcomes = 1 + len(others)
        return cls(
            groupings=axes * outcomes,
            names=names,
            favourable=chosen,
            left_out=tuple(left_out.items()),
            strata=len(strata),
            outside=tuple(outside),
            others=tuple(zip(roles.other_axes, others, strict=True)),
            columns=columns * outcomes,
        )

    def favourable_of(self, grouping: Grouping) -> Levels:
        """The favourable levels of the outcome that a grouping's rates are about."""
        return dict(self.others).get(outcome_axis(grouping), self.favourable)

    @property
    def named_groupings(self) -> tuple[tuple[str, Grouping], ...]:
        """Each grouping with its name."""
        return tuple(zip(self.names, self.groupings, strict=True))

    @property
    def of_first_outcome(self) -> tuple[tuple[str, Grouping], ...]:
        """Each grouping once, with its name, however many outcomes there are."""
        count = len(self.groupings) // (1 + len(self.others))
        return self.named_groupings[:count]

    def groups_of(self, name: str) -> str:
        """Name a grouping by its groups alone.

        Of several outcomes, without the one that its name begins with.
        """
        if not self.others or not self.columns:
            return name
        return name[name.rindex(f" by {self.columns_of(name)}") + len(" by ") :]

    @property
    def sums(self) -> frozenset[Grouping]:
        """The axes of the totals that rates are made of: outcomes, groups, and both."""
        found: set[Grouping] = set()
        for grouping in self.groupings:
            outcome = outcome_axis(grouping)
            found |= {
                (outcome,),
                tuple(sorted(grouping)),
                tuple(sorted((outcome, *grouping))),
            }
        return frozenset(found)

    def columns_of(self, name: str) -> str:
        """The protected columns of a grouping, without strata."""
        if self.columns:
            return self.columns[self.names.index(name)]
        return name

    def about(self, kind: str, name: str) -> str:
        """What a rate of a grouping is about.

        A representation rate is about groups, whatever the outcome.
        """
        if kind == "representation_rate":
            return self.groups_of(name)
        return name

    def rate_name(self, kind: str, name: str) -> str:
        """Name a rate of a grouping.

        >>> Measure(((1,),), ("sex",), (0,)).rate_name("statistical_rate", "sex")
        'statistical rate of sex'
        """
        return f"{kind.replace('_', ' ')} of {self.about(kind, name)}"

    def groups_compared(self, tables: Reals, grouping: Grouping) -> Reals:
        """A table, or a stack of them, without groups that are not compared."""
        skipped = (*self.left_out, *self.outside)
        return self._without(tables, skipped, grouping)

    def is_compared(self, grouping: Grouping, group: Sequence[int]) -> bool:
        """Whether no level of a group is left out, and its stratum was asked for."""
        return not set(zip(grouping, group, strict=True)) & {
            *self.left_out,
            *self.outside,
        }

    def outcomes_compared(self, tables: Reals, grouping: Grouping) -> Reals:
        """The same, also without the rows that have no outcome.

        They do not count in its rates.
        """
        return self.with_outcome(self.groups_compared(tables, grouping), grouping)

    def having(self, table: Reals, grouping: Grouping) -> Reals:
        """Such a table summed to outcomes × groups."""
        return group_table(self.outcomes_compared(table, grouping), grouping)

    def with_outcome(self, tables: Reals, grouping: Grouping) -> Reals:
        """A table, or a stack of them, without rows whose outcome is not compared."""
        return self._without(tables, self.left_out, (outcome_axis(grouping),))

    def apart_of(self, grouping: Grouping) -> Mask:
        """The outcomes × groups of a grouping that are too small to decide a rate."""
        nobody = np.zeros((1,) * (1 + len(grouping)), dtype=bool)
        return self.apart.get((outcome_axis(grouping), *grouping), nobody)

    def shares_compared(self, table: Reals, grouping: Grouping) -> Reals:
        """P(g) of the groups that are compared; NaN of those without mass, too."""
        shares = group_shares(self.groups_compared(table, grouping), grouping)
        apart = self.apart_of(grouping).all(axis=0) & self.sizes_apart
        return np.where((shares > 0) & ~apart, shares, np.nan)

    def rates_compared(self, table: Reals, grouping: Grouping) -> Reals:
        """P(y | g) of the groups that are compared; NaN of the others."""
        rates = outcome_rates(self.outcomes_compared(table, grouping), grouping)
        return np.where(self.apart_of(grouping), np.nan, rates)

    def rates(self, table: Reals) -> Rates:
        """Both rates of a table, by grouping."""
        shares: ByGrouping = {}
        outcomes: ByGrouping = {}
        for name, grouping in self.named_groupings:
            sizes = self.shares_compared(table, grouping)
            shares[name] = worst_ratio(sizes, self.strata)
            rates = self.rates_compared(table, grouping)
            ratios = [
                worst_ratio(rates[level], self.strata)
                for level in self.favourable_of(grouping)
            ]
            outcomes[name] = float(np.fmin.reduce(ratios))
        return {"representation_rate": shares, "statistical_rate": outcomes}

    def _without(
        self,
        tables: Reals,
        skipped: Sequence[tuple[int, int]],
        axes: Grouping,
    ) -> Reals:
        """Tables without the skipped levels of some axes.

        The axes of a table are the last ones of a stack.
        """
        last = max(*map(max, self.groupings), *dict(self.others), 0)
        result = tables.copy()
        for axis, level in skipped:
            if axis in axes:
                front = np.moveaxis(result, axis - (self.axes or 1 + last), 0)
                front[level] = 0.0
        return result


def _chosen_levels(
    roles: Roles,
    favourable: object,
    axis: int,
    left_out: dict[int, int],
) -> Levels:
    """The favourable levels of an outcome.

    Missing ones are not left out if they are among them.
    """
    chosen = roles.favourable_levels(favourable, axis)
    named = favourable
    if isinstance(favourable, Mapping):
        named = favourable.get(roles.names[axis])
    if named is None:
        return tuple(level for level in chosen if level != left_out.get(axis))
    # anyone who calls it favourable wants to compare it
    if left_out.get(axis) in chosen:
        del left_out[axis]
    return chosen


def _asked_strata(roles: Roles, within: WithinOption) -> AskedStrata:
    """Look up the levels of the strata that were asked for."""
    asked = read_within(within)
    result = dict[int, Levels | None](dict.fromkeys(roles.strata_axes))
    for axis in result:
        named = asked.get(roles.names[axis])
        if named is None:
            continue
        values = listed(named)
        if not values:
            raise LevelError(
                Option("within", column=roles.names[axis]),
                " is empty; name a level, or use None for every level",
            )
        levels = {roles.attributes[axis].exact_level(value) for value in values}
        result[axis] = tuple(sorted(levels))
    return result


def _within_name(roles: Roles, strata: AskedStrata) -> str:
    """The strata as the end of a grouping's name.

    Nothing, or e.g. " within department".
    """
    if not strata:
        return ""
    names = []
    for axis, levels in strata.items():
        name = roles.names[axis]
        if levels is not None:
            labels = roles.attributes[axis].labels
            name += f" = {', '.join(labels[level] for level in levels)}"
        names.append(name)
    return f" within {' × '.join(names)}"
