"""Groups that are probabilities, in a fit: people split, weighed, promised about."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import Frame
from fairmaxent.data.likely import Chances, Likely
from fairmaxent.data.reading import Reading
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Reals,
    Spread,
    Summed,
    Table,
    highest,
    ratio,
    tally,
)
from fairmaxent.errors import InfeasibleError, Option, SolverError
from fairmaxent.facts.groups import NEARLY, LikelyFacts, LikelyRate
from fairmaxent.fairness.likely import (
    Membership,
    bounds,
    contradiction,
    ends_of,
    likely_factors,
    ratio_bounds,
)
from fairmaxent.fairness.people import People
from fairmaxent.fairness.rates import (
    Grouping,
    Measure,
    Rates,
    by_stratum,
    group_table,
    rates_of_many,
)

_HALVINGS = 12  # of the way to a table that limited weights cannot reach
_BELOW = 1 - 1e-9  # of a limit: a factor that is less is free


@dataclass(frozen=True, eq=False)
class Split:
    """People, split between the groups that they may be in; the data of a fit."""

    likely: Likely
    chances: Chances
    membership: Membership
    recorded: Roles  # of the columns that the table has
    roles: Roles  # the same, and the groups as a column

    @classmethod
    def of(cls, likely: Likely, data: Reading) -> "Split":
        """Sort the people of a table."""
        chances = data.chances
        assert chances is not None
        groups = likely.attribute(data.roles.domain.library, chances.shares)
        outcomes, *others = data.roles.blocks.shape(0)
        combinations = math.prod(others)
        roots = data.table.collect().codes[chances.row, 0].astype(np.intp)
        people = People.of(
            chances.shares,
            roots % combinations * outcomes + roots // combinations,
            (combinations, outcomes),
            chances.weight,
            chances.squares,
        )
        return cls(
            likely=likely,
            chances=chances,
            membership=Membership.of(people, likely.told_by),
            recorded=data.roles,
            roles=data.roles.with_groups(groups),
        )

    @property
    def axis(self) -> int:
        """Where the groups are in fairness tables."""
        return len(self.roles.protected)

    @property
    def people(self) -> People:
        """The people, one cell after the other."""
        return self.membership.people

    @cached_property
    def cells(self) -> Mapping[Summed, Reals]:
        """What people in each cell of a fairness table add up to."""
        people = self.people
        return {
            "counts": self.table_of(people.weight),
            "rows": self.table_of(people.summed(self.chances.rows)),
            "squares": self.table_of(people.squares),
        }

    def table_of(self, values: Reals) -> Reals:
        """Values of people, shared between groups, as a fairness table."""
        return self.as_root(self.membership.table(values))

    def as_root(self, tables: Reals) -> Reals:
        """Tables of combinations × outcomes × groups in the axes of fairness tables."""
        first = tables.shape[:-3]
        _, *others = self.recorded.blocks.shape(0)
        spread = tables.reshape(*first, *others, *tables.shape[-2:])
        at = len(first)
        return np.moveaxis(spread, (-2, -1), (at, at + self.axis))

    def by_cell(self, table: Reals) -> Reals:
        """A fairness table as combinations × outcomes × groups."""
        moved = np.moveaxis(table, (0, self.axis), (-2, -1))
        return moved.reshape(-1, *moved.shape[-2:])

    @cached_property
    def before(self) -> "Weighed":
        """People with the weights that they have."""
        return Weighed(self, np.ones_like(self.people.weight), None)

    def weigh(self, fair: Reals, most: float | None) -> "Weighed":
        """Give people the nearest weights that give their likely groups a fair table.

        If a limit on weights is in the way, a table that is on the way there.
        """
        now = self.cells["counts"]
        wanted = fair * now.sum()
        try:
            factor = self._factors(wanted, most)
        except SolverError as problem:
            if most is None:
                raise self._out_of_reach(now, wanted) from problem
            factor = self._on_the_way(now, wanted, most)
        return Weighed(self, factor, most)

    def _factors(self, wanted: Reals, most: float | None) -> Reals:
        return likely_factors(
            self.people, self.membership.shares, self.by_cell(wanted), most
        )

    def _on_the_way(self, now: Reals, wanted: Reals, most: float) -> Reals:
        """Factors that lead as far from one table to another as limited ones can."""
        factor = np.ones_like(self.people.weight)
        near = 0.0
        far = 1.0
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            try:
                factor = self._factors(now + middle * (wanted - now), most)
            except SolverError:
                far = middle
            else:
                near = middle
        return factor

    def _out_of_reach(self, now: Reals, wanted: Reals) -> InfeasibleError:
        """Name the group that would have to grow most, and what helps."""
        growth = np.moveaxis(ratio(wanted, now), self.axis, 0)
        most = growth.reshape(len(growth), -1).max(axis=1)
        group = self.roles.attributes[self.axis].describe(int(most.argmax()))
        return InfeasibleError(
            f"no weights give {group} its fair share of each outcome: too few people"
            " with that outcome are likely enough to be in this group. Perhaps the data"
            " contradict ",
            Option("told_by", self.likely.told_by),
            "; otherwise set small groups apart, ask for a lower rate, or limit how"
            " much a row may count, to go as far as that leads",
        )


@dataclass(frozen=True, eq=False)
class Weighed:
    """People with fair weights: d·f."""

    split: Split
    factor: Reals  # f of each of the people
    most: float | None  # limit of f

    @cached_property
    def weights(self) -> Reals:
        """w of each entry, as it was read."""
        return self.split.chances.weight * self.factor[self.split.people.place]

    @cached_property
    def weight(self) -> Reals:
        """w of each of the people."""
        return self.split.people.weight * self.factor

    @cached_property
    def table(self) -> Reals:
        """The fairness table of the fair weights, which sums to 1."""
        return self.split.table_of(self.weight / self.weight.sum())

    @cached_property
    def spread(self) -> Spread:
        """How weights, which sum to 1, spread over people in each cell.

        People count in a group as far as they are likely to be in it.
        """
        people = self.split.people
        own = self.split.membership.shares
        # of people who are alike, the one who weighs most
        peaks = highest(people.place, self.split.chances.peaks, len(people.weight))
        each = peaks * self.factor
        largest = np.zeros((*people.shape, own.shape[1]))
        for cell, part in people.cells:
            largest[cell] = (own[part] * each[part, None]).max(axis=0)
        squares = people.table(own, people.squares * self.factor**2)
        parts = (people.table(own, self.weight), squares, largest)
        return Spread(*map(self.split.as_root, parts)).scaled(1 / self.weight.sum())

    def drawn(self, counts: Reals) -> Reals:
        """The fairness table of drawn rows: so many of each distinct row."""
        rows = self.split.chances.row
        each = ratio(counts, tally(rows, self.weights, len(counts)))
        return self.split.table_of(self.split.people.summed(self.weights * each[rows]))

    def weighted_rows(self, rows: Table) -> Table:
        """The distinct rows of the data, counting by the weights of their people."""
        mass = tally(self.split.chances.row, self.weights, len(rows.codes))
        return rows.counting(mass)

    def weigh(self, frame: Frame, domain: Domain) -> Reals:
        """The weights of the rows of a table, by their probabilities: f = e^{λ·q}."""
        split = self.split
        shares = split.likely.read(frame).shares
        codes = split.recorded.blocks.pool(domain.encode(frame))
        roots = codes[:, 0].astype(np.intp)
        combinations, _ = split.people.shape
        cells = (roots % combinations, roots // combinations)
        if split.likely.told_by == "names":
            shares = shares * split.membership.rates[cells]
        own = shares / shares.sum(axis=1, keepdims=True)
        logarithm = (own * self._multipliers[cells]).sum(axis=1)
        return np.exp(np.minimum(logarithm, math.log(self.most or math.inf)))

    @cached_property
    def _multipliers(self) -> Reals:
        """λ of each cell and group, from the factors that no limit holds."""
        own = self.split.membership.shares
        found = np.zeros((*self.split.people.shape, own.shape[1]))
        limit = self.most or math.inf
        for cell, part in self.split.people.cells:
            factor = self.factor[part]
            free = (factor > 0) & (factor < limit * _BELOW)
            found[cell], *_ = np.linalg.lstsq(own[part][free], np.log(factor[free]))
            if not free.any():  # all are at the limit
                found[cell] = math.log(limit)
        return found

    @cached_property
    def true_tables(self) -> Reals:
        """Fairness tables that the true groups of these people may have."""
        return self.split.as_root(self.split.membership.true_tables(self.factor))

    def of_these(self, measure: Measure, grouping: Grouping) -> Reals:
        """The same, summed to outcomes × groups that are compared."""
        return np.stack([measure.having(table, grouping) for table in self.true_tables])

    def like_these(self, measure: Measure, grouping: Grouping) -> Reals:
        """The same of people like these, with the weights that they had."""
        cells = self.split.cells
        return self.split.membership.like_these(
            self.split.before.of_these(measure, grouping),
            measure.having(cells["counts"], grouping),
            measure.having(cells["squares"], grouping),
        )


# ---------------------------------------------------------------- what is promised


def likely_facts(weighed: Weighed, measure: Measure, wanted: Rates) -> LikelyFacts:
    """What is to be said about a fit; ``measure`` says what is compared.

    ``wanted``: its rates; empty: nothing was made fair. Then a table is looked at, and
    its rates are those of people like these.
    """
    split = weighed.split
    drawn = Weighed.of_these if wanted else Weighed.like_these
    after: tuple[LikelyRate, ...] = ()
    if wanted:
        after = tuple(_rates(weighed, measure, drawn))
    short = 0.0
    for rate in after:
        least = wanted["statistical_rate"][rate.grouping] or 0.0
        short = max(short, 1 - rate.expected / max(least, rate.expected))
    needed = None
    is_told = bool(np.ptp(split.chances.shares, axis=0).any())
    if is_told and short > 1 - NEARLY:
        # it falls with √n
        needed = math.ceil((short / (1 - NEARLY)) ** 2 * split.chances.rows.sum())
    return LikelyFacts(
        name=split.likely.name,
        told_by=split.likely.told_by,
        is_told=is_told,
        contradiction=contradiction(split.people, split.membership.rates),
        before=tuple(_rates(split.before, measure, drawn)),
        after=after,
        needed=needed,
        reliability=split.chances.reliability,
    )


def _rates(
    weighed: Weighed,
    measure: Measure,
    drawn: Callable[[Weighed, Measure, Grouping], Reals],
) -> Iterator[LikelyRate]:
    """The rates of each grouping that is about groups that are probabilities."""
    split = weighed.split
    tables = {
        told_by: split.as_root(table)
        for told_by, table in split.membership.assumed(weighed.weight).items()
    }
    known = {name: measure.rates(table) for name, table in tables.items()}
    limits = [*map(split.as_root, bounds(split.people, weighed.factor))]
    for name, grouping in measure.named_groupings:
        if split.axis not in grouping:
            continue
        _, rates = rates_of_many(
            drawn(weighed, measure, grouping),
            measure.having(tables["columns"], grouping),
            tuple(range(1, 1 + len(grouping))),
            measure.favourable_of(grouping),
            strata=measure.strata,
            apart=measure.apart_of(grouping),
        )
        low, high = ends_of(rates[~np.isnan(rates)])
        yield LikelyRate(
            grouping=name,
            names=known["names"]["statistical_rate"][name],
            columns=known["columns"]["statistical_rate"][name],
            bounds=_limits(measure, grouping, tables["columns"], limits),
            expected=float(np.nanmean(rates)),
            interval=(float(low), float(high)),
        )


def _limits(
    measure: Measure, grouping: Grouping, table: Reals, limits: Sequence[Reals]
) -> tuple[float, float]:
    """The rate at least and at most, if so many of each group have each outcome."""
    chosen = list(measure.favourable_of(grouping))
    sizes = measure.having(table, grouping).sum(axis=0)
    compared = measure.rates_compared(table, grouping)[chosen]
    low, high = (
        by_stratum(
            np.where(
                np.isnan(compared),
                np.nan,
                ratio(group_table(limit, grouping)[chosen], sizes, math.nan),
            ),
            measure.strata,
            first=1,
        )
        for limit in limits
    )
    lowest, highest = ratio_bounds(low, high)
    return float(np.nanmin(lowest)), float(np.nanmin(highest))
