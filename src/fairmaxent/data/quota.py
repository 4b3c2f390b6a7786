"""Quota: how many rows each cell of a table gets, rounded at random, without bias and within one row.

The table t has one axis for the outcome and one for each protected column, and n·t has to become whole numbers. If the
rows that are left over went to the largest remainders, the same cells would be favoured at every seed. *Controlled
rounding* rounds totals up or down as well as cells, and is *unbiased* if the expectation of every count is n·t.

Totals are controlled along two chains of ever finer sums. The first has the groups of the column with the fewest
levels, then those of this column and the next one jointly, and at last the joint groups z of all columns. The second
has the outcomes y, then y with the column that has the most levels, then y with the two columns that have the most, and
so on. Each chain is a tree whose leaves are the cells. So the counts are flows in a network that balance at every sum,
and such flows can always be rounded (two-way tables: Bacharach 1966, Causey, Cox and Ernst 1985; without bias: Cox
1987). Totals outside both chains cannot always be rounded along with these. With two protected columns, the one with
more levels is controlled within each outcome, so that its totals are off by less than the number of outcomes.

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

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals

Shares = NDArray[np.float64] | NDArray[np.intp]

# Counts start as multiples of 2^-32. So a total that is a whole number by itself is hit in all but one of 10^9 draws,
# even if float64 sees 0.3·10 as 2.9999999999999996.
_BITS = 32
_MANY = 500  # elements of a permutation from which SciPy finds its cycles faster


def quota(table: Shares, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Divide ``count`` rows among the cells of a table (outcome first), at random; the result has the table's shape.

    On average each cell gets exactly its share. Each time, it gets its share rounded up or down, and so does each
    outcome, each joint group, and each group of the column that has the fewest levels.

    >>> quota(np.array([[0.3, 0.3], [0.2, 0.2]]), 10, np.random.default_rng(0))
    array([[3, 3],
           [2, 2]])
    """
    return np.asarray(quotas(table, count, 1, rng)[0])


def quotas(table: Shares, count: int, draws: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw several quotas, independently of each other, along a new first axis."""
    wanted = table / table.sum() * count
    whole = np.floor(wanted)
    network = _network(table.shape)
    parts = _in_bits((wanted - whole).ravel(), count - int(whole.sum())).reshape(table.shape)
    flows = np.tile(network.flows(parts), (draws, 1))
    for bit in range(_BITS):
        network.round_off(flows, 1 << bit, rng)
    rounded = (flows[:, : table.size] >> _BITS).reshape(draws, *table.shape)
    return np.asarray(whole + rounded, dtype=np.intp)


def _in_bits(fractions: Reals, total: int) -> NDArray[np.int64]:
    """Fractions in units of the smallest bit, which add up to the total; zeros stay zero."""
    running = np.cumsum(fractions)
    if running[-1] > 0:
        running *= total / running[-1]
    bits = np.rint(running * (1 << _BITS)).astype(np.int64)
    return np.asarray(np.diff(bits, prepend=0), dtype=np.int64)


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
        tour = _cycles(other.take(np.arange(len(other)) ^ 1))
        coin = rng.random(int(tour.max(initial=-1)) + 1).take(tour)  # the same tour backwards has another one
        gains = self.enters.take(end)
        along = np.where(coin > coin.take(other), bit, -bit)
        flows[draw[gains], self.flow.take(end[gains])] += along[gains]


def _cycles(following: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number the cycles of a permutation by their first elements: the cycle of each element."""
    return _short_cycles(following) if len(following) < _MANY else _long_cycles(following)


def _short_cycles(following: NDArray[np.int32]) -> NDArray[np.int32]:
    """Walk around each cycle."""
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
