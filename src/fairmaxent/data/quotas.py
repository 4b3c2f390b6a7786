"""Quotas: how many rows each cell of a table t (outcome, protected columns) gets.

All totals are to be right, too. n·t is rounded at random and without bias: on average
each cell gets exactly its share. (By largest remainders, the same cells would be
favoured at every seed.) Each time, every outcome, every group of every column and every
group with every outcome has its share of the rows, rounded up or down, and so have the
cells and the joint groups. There are two ways.

*A network* holds totals on two chains of ever finer sums: the groups of the column with
the fewest levels, those of this and the next column jointly, and so on to the joint
groups z; and the outcomes y, y with the column of most levels, and so on. Each chain is
a tree whose leaves are the cells, so counts are flows which balance at every sum; such
flows can always be rounded (Bacharach 1966, Causey, Cox and Ernst 1985; without bias:
Cox 1987). One protected column, or intersections, need no more. The flows are rounded
bit by bit. If all are multiples of a bit, an even number of them are odd multiples at
each sum. Paired there, these form closed tours. Pushing one bit around each tour, in
the direction of a fair coin, keeps the balance and all expectations, and no flow passes
a whole number on its way.

*A mixture of whole tables* holds the totals of several columns. All tables whose cells
and totals are n·t rounded up or down, but not yet whole, form a polytope. An integer
program finds a whole one, v, close to the point x = n·t. From v through x, a line
leaves the polytope at x': x = λv + (1 - λ)x'. So v is taken with probability λ, and
otherwise x' is rounded in the same way, with one more cell or total that is whole
already. As in the cube method (Deville and Tillé 2004), expectations never change. If
there is no such v, the joint groups give way first, the cells next, by one row more,
and at last the totals that are not on the two chains of a network.

References
----------
M. Bacharach, "Matrix rounding problems", Management Science 12 (1966).
B. D. Causey, L. H. Cox, L. R. Ernst, "Applications of transportation theory to
statistical problems", JASA 80 (1985).
L. H. Cox, "A constructive procedure for unbiased controlled rounding", JASA 82 (1987).
J.-C. Deville, Y. Tillé, "Efficient balanced sampling: the cube method", Biometrika 91
(2004).
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator

from fairmaxent.data.table import (
    Axes,
    Codes,
    Indices,
    Mask,
    Reals,
)

# the axes of the totals, ascending; those of a column are of one axis
Sums = Collection[Axes]
Shares = Reals | Indices

# Counts start as multiples of 2^-32. So a total that is a whole number by itself is hit
# in all but one of 10^9 draws, even if float64 sees 0.3·10 as 2.9999999999999996.
_BITS = 32
# to a whole number: what counts as one, of a cell and of a total
_CLOSE = 1e-9
_SLACK = 1e-7
# first and last distance from a whole number that is tried before `_CLOSE`
_AWAY = 0.48
_NEAREST = 0.02
# of a table whose joint groups are held as well, and of one that is mixed
_FEW_CELLS = 300
_MOST_CELLS = 4096
# of an integer program, and programs
_NODES = 100
_MOST_STEPS = 1000


def quota(
    table: Shares,
    count: int,
    rng: Generator,
    *,
    sums: Sums | None = None,
) -> Indices:
    """Divide ``count`` rows among the cells of a table (outcome first), at random.

    The result has the table's shape. On average each cell gets exactly its share. Each
    time, it gets its share rounded up or down, and so do the totals over the axes in
    ``sums``, where the table allows it; None: each axis alone, and each with the first.
    """
    return quotas(
        table,
        count,
        1,
        rng,
        sums=sums,
    )[0]


def divided(wanted: Indices, size: int, rng: Generator) -> Iterator[Indices]:
    """Divide the rows of each cell into shares of ``size`` rows, each by quota."""
    while wanted.sum() > size:
        share = quota(wanted, size, rng, sums=())
        wanted = wanted - share
        yield share
    yield wanted


def quotas(
    table: Shares,
    count: int,
    draws: int,
    rng: Generator,
    *,
    sums: Sums | None = None,
) -> Indices:
    """Draw several quotas, independently of each other, along a new first axis."""
    wanted = table / table.sum() * count
    if sums is None:
        columns = range(1, table.ndim)
        sums = {(0,), *((axis,) for axis in columns), *((0, axis) for axis in columns)}
    if table.size > _MOST_CELLS or _network(table.shape).holds(sums):
        return _along_chains(wanted, count, draws, rng)
    walk = _Walk.to_hold(wanted, count, sums)
    counts = np.empty((draws, table.size), dtype=int)
    waiting = np.arange(draws)  # those that have taken no whole table yet
    for _ in range(_MOST_STEPS):
        if not len(waiting):
            break
        whole = walk.whole_table()
        if whole is None:
            break
        taken = rng.random(len(waiting)) < walk.go_on(whole)
        counts[waiting[taken]] = whole
        waiting = waiting[~taken]
    if len(waiting):
        cells = walk.cells.reshape(table.shape)
        rounded = _along_chains(cells, count, len(waiting), rng)
        counts[waiting] = rounded.reshape(len(waiting), -1)
    return counts.reshape(draws, *table.shape)


def held_counts(
    counts: Reals,
    wanted: Reals,
    least: Reals,
    sums: Sums,
) -> Reals:
    """Counts, none below ``least``, that hold the ``sums`` too; the same if none do."""
    walk = _Walk.to_hold(wanted, int(counts.sum()), sums)
    walk.let_joint_groups_go()
    totals = walk.sums @ counts
    if ((totals >= walk.least) & (totals <= walk.most)).all():
        return counts
    low = np.maximum(walk.low, least)
    high = np.maximum(low, walk.high)
    cost = 0.5 - walk.cells % 1
    found = whole_table(cost, low, high, walk.sums, walk.least, walk.most)
    return counts if found is None else found


# ------------------------------------------------------ a mixture of whole tables


@dataclass(eq=False)
class _Walk:
    """The table that is still to be rounded, as a point, with bounds."""

    cells: Reals
    low: Reals
    high: Reals
    lowest: Reals  # bounds of cells that give way
    highest: Reals
    sums: Any  # sparse: a row for each total; those of the joint groups come last
    least: Reals  # bounds of the totals
    most: Reals
    firm: int  # how many of them are no joint groups
    # from a whole number: how far what is not yet rounded to the nearer one must be
    away: float = _AWAY

    @classmethod
    def to_hold(
        cls,
        wanted: Reals,
        count: int,
        sums: Sums,
    ) -> "_Walk":
        """Begin at the wanted counts; joint groups join in if there are few enough."""
        every = tuple(range(wanted.ndim))
        joint = every[1:]
        firm = tuple(sorted({(), *sums} - {every}))
        held = firm
        if joint not in firm and wanted.size <= _FEW_CELLS:
            held = (*firm, joint)
        matrix = _totals(wanted.shape, held)
        cells = wanted.ravel()
        totals = matrix @ cells
        totals[0] = count
        low = np.floor(cells + _CLOSE)
        high = np.ceil(cells - _CLOSE)
        return cls(
            cells=cells,
            low=low,
            high=high,
            lowest=np.maximum(low - 1, 0),
            highest=np.where(cells > 0, high + 1, 0),
            sums=matrix,
            least=np.floor(totals + _SLACK),
            most=np.ceil(totals - _SLACK),
            firm=_totals(wanted.shape, firm).shape[0],
        )

    def let_joint_groups_go(self) -> None:
        """Hold the other totals alone."""
        self.sums = self.sums[: self.firm]
        self.least = self.least[: self.firm]
        self.most = self.most[: self.firm]

    def whole_table(self) -> Reals | None:
        """Find a whole table with these bounds, close to the point.

        None: there is none, even if cells give way.
        """
        while (whole := self._near()) is None:
            if self.away > _NEAREST:
                self.away = 0.8 * self.away
            elif self.away > _CLOSE:  # also unlikely roundings
                self.away = _CLOSE
            elif self.sums.shape[0] > self.firm:
                self.let_joint_groups_go()
                self.away = _AWAY
            else:
                return self._near(give_way=True)
        return whole

    def _near(self, *, give_way: bool = False) -> Reals | None:
        """Find a whole table in which only what is far from whole is open."""
        base = np.floor(self.cells + _CLOSE)
        part = self.cells - base
        cost = 0.5 - part
        low = base + (part > 1 - self.away)
        high = base + (part >= self.away)
        totals = self.sums @ self.cells
        least = np.where(self.most - totals < self.away, self.most, self.least)
        most = np.where(totals - self.least < self.away, self.least, self.most)
        if not give_way:
            return whole_table(cost, low, high, self.sums, least, most)
        from scipy.sparse import hstack

        # One row more or less where a cell is not at its last bound, which it could not
        # leave without bias.
        above = self.cells > self.lowest + _CLOSE
        free = above & (self.cells < self.highest - _CLOSE)
        up = np.where(free, np.minimum(self.highest - high, 1), 0)
        down = np.where(free, np.minimum(low - self.lowest, 1), 0)
        size = len(part)
        found = whole_table(
            cost=np.concatenate([cost, np.full(2 * size, float(size))]),
            low=np.concatenate([low, np.zeros(2 * size)]),
            high=np.concatenate([high, up, down]),
            sums=hstack([self.sums, self.sums, -self.sums]).tocsr(),
            least=least,
            most=most,
        )
        if found is None:
            return None
        return [1.0, 1.0, -1.0] @ found.reshape(3, -1)

    def go_on(self, whole: Reals) -> float:
        """Go on to the end of the line from a whole table through the point.

        Return that table's share of the point.
        """
        below = whole < np.floor(self.cells + _CLOSE)
        beyond = below | (whole > np.ceil(self.cells - _CLOSE))
        self.low = np.where(beyond, self.lowest, self.low)
        self.high = np.where(beyond, self.highest, self.high)
        here = np.concatenate([self.cells, self.sums @ self.cells])
        there = np.concatenate([whole, self.sums @ whole])
        low = np.concatenate([self.low, self.least])
        high = np.concatenate([self.high, self.most])
        end = np.where(there > here, low, high)  # that each cell or total moves to
        room = np.ones_like(here)
        np.divide(
            here - end,
            there - end,
            out=room,
            where=there != end,
        )
        share = float(np.clip(room.min(), 0, 1))
        if share > 1 - _CLOSE:
            return 1.0
        rest = (self.cells - share * whole) / (1 - share)
        self.cells = np.clip(rest, self.low, self.high)
        return share


def whole_table(
    cost: Reals,
    low: Reals,
    high: Reals,
    sums: Any,
    least: Reals,
    most: Reals,
) -> Reals | None:
    """Find whole numbers of little cost, with bounds on them and on their sums.

    None: not found.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    free = high > low
    fixed = sums @ low
    if not free.any():
        holds = ((fixed >= least) & (fixed <= most)).all()
        return low if holds else None
    found = milp(
        cost[free],
        integrality=np.ones(int(free.sum())),
        bounds=Bounds(0, (high - low)[free]),
        constraints=LinearConstraint(sums[:, free], least - fixed, most - fixed),
        # Limited in nodes, not in seconds, so that a seed gives the same rows on a slow
        # machine.
        options={"mip_rel_gap": 0.5, "node_limit": _NODES},
    )
    if found.x is None:
        return None
    return low + np.bincount(np.flatnonzero(free), np.rint(found.x), len(low))


@lru_cache(maxsize=8)
def _totals(shape: Axes, sums: tuple[Axes, ...]) -> Any:
    """A sparse matrix that adds the cells up to totals over some axes."""
    from scipy.sparse import csr_array

    rows = []
    used = 0
    for axes in sums:
        sizes = [size if axis in axes else 1 for axis, size in enumerate(shape)]
        numbers = used + np.arange(math.prod(sizes)).reshape(sizes)
        rows.append(np.broadcast_to(numbers, shape).ravel())
        used += numbers.size
    cells = np.arange(math.prod(shape))
    places = np.concatenate(rows), np.tile(cells, len(rows))
    return csr_array((np.ones(len(places[0])), places), shape=(used, len(cells)))


# ---------------------------------------------------------------- a network


def _along_chains(
    wanted: Reals,
    count: int,
    draws: int,
    rng: Generator,
) -> Indices:
    """Round the wanted counts so that the totals of both chains are held."""
    whole = np.floor(wanted)
    network = _network(wanted.shape)
    running = np.cumsum((wanted - whole).ravel())
    if running[-1] > 0:
        running *= (count - int(whole.sum())) / running[-1]
    # differences add up to the total, and zeros stay zero
    bits = np.rint(running * (1 << _BITS)).astype(int)
    cells = np.diff(bits, prepend=0).reshape(wanted.shape)
    sums = [cells.sum(axis=axes).ravel() for axes in network.summed]
    flows = np.tile(np.concatenate([cells.ravel(), *sums]), (draws, 1))
    for bit in range(_BITS):
        network.round_off(flows, 1 << bit, rng)
    rounded = (flows[:, : wanted.size] >> _BITS).reshape(draws, *wanted.shape)
    return np.asarray(whole + rounded, dtype=int)


@dataclass(frozen=True, eq=False)
class _Network:
    """The flows are the cells, then the sums of both chains.

    Each flow has two ends, which are listed sum by sum.
    """

    # the axes that are summed over, for each step of each chain
    summed: tuple[Axes, ...]
    flow: Indices  # of each end
    other: Indices  # the other end of the same flow
    # whether the flow enters a sum at this end; at its other end it leaves one
    enters: Mask

    def holds(self, sums: Sums) -> bool:
        """Whether all these totals are on the chains."""
        every = range(max(map(len, self.summed), default=0) + 1)
        kept = {
            tuple(axis for axis in every if axis not in axes) for axes in self.summed
        }
        return {*sums} <= {(), tuple(every), *kept}

    def round_off(
        self,
        flows: Codes,
        bit: int,
        rng: Generator,
    ) -> None:
        """Turn the flows of each draw from multiples of a bit to those of the next."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        is_odd = ((flows & bit) != 0).take(self.flow, axis=1)  # by draw and end
        draw, end = np.nonzero(is_odd)
        # Odd ends are numbered across all draws, and `other` is the number of the end
        # at the other side of the same flow.
        number = np.cumsum(is_odd, dtype=np.int32).reshape(is_odd.shape) - 1
        other = number[draw, self.other.take(end)]
        # Ends are listed sum by sum, and at each sum an even number are odd, so
        # neighbours are at the same sum. A tour comes out at one end of a flow, goes in
        # at the neighbour, and comes out at the other end of that flow.
        size = len(other)
        neighbour = np.arange(size) ^ 1  # of 0 is 1, of 1 is 0, of 2 is 3
        following = other.take(neighbour)
        starts = np.arange(size + 1, dtype=np.int32)
        graph = csr_array((np.ones(size), following, starts), shape=(size, size))
        tour = connected_components(graph, connection="strong")[1]
        # Backwards, it is another tour with a coin of its own: the higher one wins.
        coin = rng.random(int(tour.max(initial=-1)) + 1).take(tour)
        push = np.where(coin > coin.take(other), bit, -bit)
        # A flow enters at one of its ends, so it is pushed once.
        enters = self.enters.take(end)
        flows[draw[enters], self.flow.take(end[enters])] += push[enters]


@lru_cache(maxsize=8)
def _network(shape: Axes) -> _Network:
    """The two chains of sums over a table.

    Flows go from the groups through the cells to the outcomes.
    """
    columns = sorted(range(1, len(shape)), key=lambda axis: shape[axis])
    cells = np.arange(math.prod(shape)).reshape(shape)
    summed = []
    ends = []
    used = cells.size
    for top, chain, rising in ((-1, columns, False), (-2, [0, *columns[::-1]], True)):
        above = np.full([1] * len(shape), top)
        for depth in range(1, len(shape)):
            kept = chain[:depth]
            sizes = [size if axis in kept else 1 for axis, size in enumerate(shape)]
            sums = used + np.arange(math.prod(sizes)).reshape(sizes)
            ends += [(sums, above, rising), (sums, sums, not rising)]
            summed.append(tuple(axis for axis in range(len(shape)) if axis not in kept))
            above = sums
            used = used + sums.size
        ends.append((cells, above, rising))
    flow = np.concatenate([flows.ravel() for flows, _, _ in ends])
    at = np.concatenate(
        [np.broadcast_to(sums, flows.shape).ravel() for flows, sums, _ in ends]
    )
    enters = np.repeat(
        [enters for _, _, enters in ends], [flows.size for flows, _, _ in ends]
    )
    order = np.argsort(at, kind="stable")
    flow = flow[order]
    two = np.argsort(flow, kind="stable").reshape(-1, 2)  # both ends of each flow
    other = np.empty_like(flow)
    other[two] = two[:, ::-1]
    return _Network(tuple(summed), flow, other, enters[order])
