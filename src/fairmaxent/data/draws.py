"""Draws: quotas for the cells of a table, exact draws from many distributions, and where randomness comes from.

A *quota* says how many rows each cell of a table t (outcome, protected columns) gets: n·t, rounded at random, within
one row and without bias. (By largest remainders, the same cells would be favoured at every seed.)

Totals are rounded along, on two chains of ever finer sums. The first has the groups of the column with the fewest
levels, then those of this column and the next one jointly, and at last the joint groups z of all columns. The second
has the outcomes y, then y with the column that has the most levels, then y with the two columns that have the most, and
so on. Each chain is a tree whose leaves are the cells, so the counts are flows in a network that balance at every sum,
and such flows can always be rounded (two-way tables: Bacharach 1966, Causey, Cox and Ernst 1985; without bias: Cox
1987). Totals outside both chains cannot always be rounded along with these.

The flows are rounded bit by bit, from the smallest bit to 1/2. If all flows are multiples of a bit, an even number of
them are odd multiples at each sum, because they balance. Paired there, the odd flows form closed tours. Pushing one bit
around each tour, in a direction that a fair coin decides, keeps the balance and all expectations, and makes all flows
multiples of the next bit. No flow passes a whole number on its way.

References
----------
M. Bacharach, "Matrix rounding problems", Management Science 12 (1966).
B. D. Causey, L. H. Cox, L. R. Ernst, "Applications of transportation theory to statistical problems", JASA 80 (1985).
L. H. Cox, "A constructive procedure for unbiased controlled rounding", JASA 82 (1987).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Reals, tally
from fairmaxent.errors import InputError, Option

RandomState = int | np.random.Generator | None
_MOST_ROWS = 10**12

# Steps from a bucket's first item to the one wanted, before the few that are still short are searched for.
_STEPS = 4


@dataclass(frozen=True, eq=False)
class Choice:
    """Distributions laid end to end: group g fills [g, g + 1) of one increasing array, so a draw is a look-up of g + u.

    Scaling each group to length one keeps full precision in groups of tiny probability. A guide table says for each of
    some equal buckets of [g, g + 1) where to begin, which makes a look-up O(1) (Chen and Asau, 1974).
    """

    bounds: Reals  # upper end of each item's interval
    starts: NDArray[np.intp]  # first item of each group
    guide: NDArray[np.intp]  # (groups, buckets): first item that ends beyond the bucket's beginning

    @classmethod
    def grouped(cls, weights: Reals, starts: NDArray[np.intp]) -> "Choice":
        """Build from non-negative ``weights``, group g holding the items from ``starts[g]`` on."""
        lengths = np.diff(np.append(starts, len(weights)))
        group = np.repeat(np.arange(len(starts)), lengths)
        totals = tally(group, weights, len(starts))
        share = weights / np.where(totals > 0, totals, 1.0)[group]
        running = np.cumsum(share)
        before = np.concatenate(([0.0], running))[starts]
        bounds = np.clip(running - before[group], 0.0, 1.0)
        last = np.full(len(starts), len(share), dtype=np.intp)
        positive = np.flatnonzero(share > 0)
        last[group[positive]] = positive  # later assignments win
        bounds[np.arange(len(share)) >= last[group]] = 1.0  # from its last positive share on, a group's interval ends
        return cls(bounds + group, starts, _guide(bounds + group, len(starts)))

    @classmethod
    def rows_of(cls, weights: Reals) -> "Choice":
        """Build from a two-dimensional array, one group per row."""
        groups, size = weights.shape
        running = np.cumsum(weights, axis=1)
        totals = running[:, -1:]
        # From its last positive weight on, a row's running sum is its total and its interval must end at 1.
        share = np.where(running < totals, running / np.where(totals > 0, totals, 1.0), 1.0)
        bounds = (share + np.arange(groups, dtype=np.float64)[:, None]).ravel()
        return cls(bounds, np.arange(groups, dtype=np.intp) * size, _guide(bounds, groups))

    def draw(self, groups: NDArray[np.integer], rng: np.random.Generator, *, spread: bool = False) -> NDArray[np.intp]:
        """Draw one item from each group, numbered from 0; ``spread``: each as often as its share says, up to one."""
        point = _spread_points(groups, rng) if spread else rng.random(len(groups))
        bucket = (point * self.guide.shape[1]).astype(np.intp) + groups * np.intp(self.guide.shape[1])
        # g + u may round up to g + 1, which belongs to the next group.
        below = np.nextafter(np.arange(1.0, len(self.starts) + 1.0), 0.0)
        point = np.minimum(point + groups, below.take(groups))
        item = self.guide.ravel().take(bucket)
        short = np.flatnonzero(self.bounds.take(item) <= point)
        wanted, reached = point.take(short), item.take(short)
        for _ in range(_STEPS):
            reached += 1
            item[short] = reached
            still = np.flatnonzero(self.bounds.take(reached) <= wanted)
            short, wanted, reached = short.take(still), wanted.take(still), reached.take(still)
        item[short] = np.searchsorted(self.bounds, wanted, side="right")
        return np.asarray(item - self.starts.take(groups))


def _spread_points(groups: NDArray[np.integer], rng: np.random.Generator) -> Reals:
    """Points in [0, 1) at equal steps within each group from a random begin, in random order; each is uniform."""
    rows = len(groups)
    order = np.argsort(groups + rng.random(rows))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(np.append(starts, rows))
    steps = np.arange(rows) - np.repeat(starts - rng.random(len(starts)), lengths)
    points = np.empty(rows)
    points[order] = steps / np.repeat(lengths, lengths)
    return np.minimum(points, np.nextafter(1.0, 0.0))


def _guide(bounds: Reals, groups: int) -> NDArray[np.intp]:
    """For a power of two of buckets per group, so that their beginnings are exact, about two per item."""
    buckets = 1 << int(np.ceil(np.log2(max(2.0, 2.0 * len(bounds) / groups))))
    # An item ends at or before the beginnings from its upper end on, rounded up; counting those searches for them all.
    ended = np.cumsum(np.bincount(np.ceil(bounds * buckets).astype(np.intp), minlength=groups * buckets + 1))
    return np.minimum(ended[: groups * buckets], len(bounds) - 1).reshape(groups, buckets)


def largest_remainders(shares: Reals, count: int) -> NDArray[np.intp]:
    """Round count·shares to whole numbers of the same sum by largest remainder; ties go to the first.

    This is for dividing work, the same way each time. Rows are drawn by `quota`, which favours no cell.
    """
    # Rounded to 9 digits, so that an exact 0.3·10 that float64 sees as 2.9999999999999996 counts as 3.
    wanted = np.round(shares / shares.sum() * count, 9)
    whole = np.floor(wanted).astype(np.intp)
    short = count - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:short]] += 1
    return np.asarray(whole)


def cells_of(table: Reals, count: int, rng: np.random.Generator, *, independent: bool) -> NDArray[np.intp]:
    """Return the cells, in C order, of ``count`` new rows in random order: by quota, or drawn independently."""
    if independent:
        return Choice.rows_of(table.reshape(1, -1)).draw(np.zeros(count, dtype=np.intp), rng)
    return shuffled_cells(quota(table, count, rng), rng)


def shuffled_cells(counts: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return each cell as often as its count says, in random order."""
    return rng.permutation(np.repeat(np.arange(counts.size), counts.ravel()))


def generator(random_state: RandomState) -> np.random.Generator:
    """Turn a seed, a generator, or None into a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    check_seed(random_state)
    return np.random.default_rng(random_state)


def check_seed(seed: object) -> None:
    """Refuse what is not a non-negative whole number or None."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise InputError(Option("random_state"), f" is {seed!r}; pass a whole number that is not negative")


def check_count(n: object) -> int:
    """Refuse what is not a positive number of rows."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n is {n!r}; ask for a positive whole number of rows")
    if n > _MOST_ROWS:
        raise InputError(f"n is {n:,}, which is too many rows; ask for at most {_MOST_ROWS:,}")
    return int(n)


Shares = NDArray[np.float64] | NDArray[np.intp]

# Counts start as multiples of 2^-32. So a total that is a whole number by itself is hit in all but one of 10^9 draws,
# even if float64 sees 0.3·10 as 2.9999999999999996.
_BITS = 32
_MANY = 500  # elements of a permutation from which SciPy finds its cycles faster


def quota(table: Shares, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Divide ``count`` rows among the cells of a table (outcome first), at random; the result has the table's shape.

    On average each cell gets exactly its share. Each time, it gets its share rounded up or down, and so does each
    outcome, each joint group, and each group of the column that has the fewest levels.
    """
    return np.asarray(quotas(table, count, 1, rng)[0])


def quotas(table: Shares, count: int, draws: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw several quotas, independently of each other, along a new first axis."""
    wanted = table / table.sum() * count
    whole = np.floor(wanted)
    network = _network(table.shape)
    running = np.cumsum((wanted - whole).ravel())
    if running[-1] > 0:
        running *= (count - int(whole.sum())) / running[-1]
    bits = np.rint(running * (1 << _BITS)).astype(np.int64)  # differences add up to the total, and zeros stay zero
    flows = np.tile(network.flows(np.diff(bits, prepend=0).reshape(table.shape)), (draws, 1))
    for bit in range(_BITS):
        network.round_off(flows, 1 << bit, rng)
    rounded = (flows[:, : table.size] >> _BITS).reshape(draws, *table.shape)
    return np.asarray(whole + rounded, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Network:
    """The flows are the cells, then the sums of both chains. Each flow has two ends, which are listed sum by sum."""

    summed: tuple[tuple[int, ...], ...]  # the axes that are summed over, for each step of each chain
    flow: NDArray[np.intp]  # of each end
    other: NDArray[np.intp]  # the other end of the same flow
    enters: NDArray[np.bool_]  # whether the flow enters a sum at this end; at its other end it leaves one

    def flows(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells and all sums of them."""
        return np.concatenate([cells.ravel(), *(cells.sum(axis=axes).ravel() for axes in self.summed)])

    def round_off(self, flows: NDArray[np.int64], bit: int, rng: np.random.Generator) -> None:
        """Turn the flows of each draw from multiples of ``bit`` into multiples of the next bit."""
        odd = ((flows & bit) != 0).take(self.flow, axis=1)
        draw, end = np.divmod(np.flatnonzero(odd), len(self.flow))
        position = np.cumsum(odd, dtype=np.int32) - 1
        other = position.take(draw * len(self.flow) + self.other.take(end))
        # Ends are listed sum by sum, and at each sum an even number are odd, so neighbours are at the same sum. A tour
        # comes out at one end of a flow, goes in at the neighbour, and comes out at the other end of that flow.
        following = other.take(np.arange(len(other)) ^ 1)
        tour = _short_cycles(following) if len(following) < _MANY else _long_cycles(following)
        coin = rng.random(int(tour.max(initial=-1)) + 1).take(tour)  # the same tour backwards has another one
        gains = self.enters.take(end)
        along = np.where(coin > coin.take(other), bit, -bit)
        flows[draw[gains], self.flow.take(end[gains])] += along[gains]


def _short_cycles(following: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number the cycles of a permutation by their first elements: the cycle of each element."""
    after = following.tolist()
    cycle, cycles = [-1] * len(after), 0
    for first in range(len(after)):
        if cycle[first] < 0:
            element = first
            while cycle[element] < 0:
                cycle[element] = cycles
                element = after[element]
            cycles += 1
    return np.array(cycle, dtype=np.int32)


def _long_cycles(following: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same by SciPy, which is slow to import and to call, but fast."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(following)
    graph = csr_array((np.ones(size), following, np.arange(size + 1, dtype=np.int32)), shape=(size, size))
    return np.asarray(connected_components(graph, connection="strong")[1])


@lru_cache(maxsize=8)
def _network(shape: tuple[int, ...]) -> _Network:
    """The two chains of sums over a table: flows go from the groups through the cells to the outcomes."""
    columns = sorted(range(1, len(shape)), key=lambda axis: shape[axis])
    cells = np.arange(np.prod(shape, dtype=np.intp)).reshape(shape)
    summed, ends, used = [], [], cells.size
    for top, chain, rising in ((-1, columns, False), (-2, [0, *columns[::-1]], True)):
        above = np.full([1] * len(shape), top)
        for depth in range(1, len(shape)):
            kept = chain[:depth]
            sizes = [size if axis in kept else 1 for axis, size in enumerate(shape)]
            sums = used + np.arange(np.prod(sizes, dtype=np.intp)).reshape(sizes)
            ends += [(sums, above, rising), (sums, sums, not rising)]
            summed.append(tuple(axis for axis in range(len(shape)) if axis not in kept))
            above, used = sums, used + sums.size
        ends.append((cells, above, rising))
    flow = np.concatenate([flows.ravel() for flows, _, _ in ends])
    at = np.concatenate([np.broadcast_to(sums, flows.shape).ravel() for flows, sums, _ in ends])
    enters = np.repeat([enters for _, _, enters in ends], [flows.size for flows, _, _ in ends])
    order = np.argsort(at, kind="stable")
    flow = flow[order]
    two = np.argsort(flow, kind="stable").reshape(-1, 2)  # both ends of each flow
    other = np.empty_like(flow)
    other[two] = two[:, ::-1]
    return _Network(tuple(summed), flow, other, enters[order])
