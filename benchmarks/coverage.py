"""Coverage: how often 95 % intervals hold the truth, with small groups and with weights that depend on the outcome.

Samples are drawn from groups whose rates are known, and the intervals of the metrics are computed from their counts,
many samples at once. The truth is the ratio (or the gap) in the population that the weights stand for. A cell is one
setting of metric, rows of each group, rates and weights. Where fewer than five rows are expected of some kind, coverage
may be higher than asked for, because counts are few; there the interval must not be wider than an exact one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.outcome import Bar, Outcome, Table
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.group_rates import ScoredRows, compared_surpluses
from fairmaxent.metrics.intervals import Compared, difference_ends, exact_interval, ratio_ends

Array = NDArray[Any]

CONFIDENCE = 0.95
FEW = 5  # rows expected of each kind, below which an interval may cover more often
LEAST, MOST = 0.93, 0.98


@dataclass(frozen=True)
class Cell:
    """One setting: the rows and rates of two groups, and the weights of rows with the outcome and without it.

    `of_population`: the rates are those of the population, and rows with large weights are rare in the sample.
    """

    metric: str
    rows: tuple[int, int]
    rates: tuple[float, float]
    weights: tuple[float, float] = (1.0, 1.0)
    of_population: bool = False
    varied: bool = False  # calibration: probabilities differ within a group

    @property
    def shares(self) -> Array:
        """Share of the rows of each group that have the outcome."""
        rates = np.array(self.rates)
        return _odds_times(rates, self.weights[1] / self.weights[0]) if self.of_population else rates

    @property
    def truth(self) -> Array:
        """Rate of each group in the population."""
        return _odds_times(self.shares, self.weights[0] / self.weights[1])

    @property
    def fewest(self) -> float:
        """Expected rows of the rarest kind."""
        shares = self.shares
        if self.metric == "representation rate":
            return float(min(self.rows))
        if self.metric == "equalised odds":  # of the rows without the outcome, both groups have the second rate
            shares = np.append(shares[:, np.newaxis], [shares[[1]]] * 2, axis=1).T
        return float((np.array(self.rows) * np.minimum(shares, 1 - shares)).min())


@dataclass(frozen=True)
class Covered:
    """How often the intervals of a cell hold the truth, and their mean width beside that of exact ones."""

    cell: Cell
    coverage: float
    width: float
    exact_width: float

    @property
    def is_sparse(self) -> bool:
        """Whether fewer than five rows of some kind are expected."""
        return self.cell.fewest < FEW


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    runs: int
    rows: tuple[int, ...]
    rates: tuple[float, ...]


FULL = Sizes(runs=2000, rows=(10, 30, 300), rates=(0.02, 0.1, 0.5))
QUICK = Sizes(runs=300, rows=(10, 30), rates=(0.1, 0.5))

WEIGHTS: Mapping[str, tuple[float, float]] = {
    "1:1": (1.0, 1.0), "3:1": (3.0, 1.0), "1:3": (1.0, 3.0), "10:1": (10.0, 1.0), "1:10": (1.0, 10.0),
}  # fmt: skip
OTHER_RATES = {0.02: 0.1, 0.1: 0.5, 0.5: 0.1}  # the other group's, where rates differ
LARGE_GROUP = 300


def cells(sizes: Sizes) -> Iterator[Cell]:
    """Every setting: equal and different rates, groups of equal size and beside a large one."""
    for metric, rows, rate, weights in product(SIMULATIONS, sizes.rows, sizes.rates, WEIGHTS.values()):
        populations = {False, metric == "statistical rate" and weights[0] != weights[1]}
        for other_rows, other_rate, of_population in product(
            sorted({rows, LARGE_GROUP}), (rate, OTHER_RATES[rate]), sorted(populations)
        ):
            cell = Cell(metric, (rows, other_rows), (rate, other_rate), weights, of_population)
            if metric == "representation rate":
                if other_rows == rows and other_rate == rate:
                    yield cell  # the rate is the ratio of the two groups' shares
            else:
                yield cell
                if metric == "calibration" and other_rows == rows:
                    yield replace(cell, varied=True)


def simulate(cell: Cell, runs: int, seed: int = 0) -> Covered:
    """Draw samples, and see how often the interval holds the truth."""
    rng = np.random.default_rng([seed, *f"{cell}".encode()])
    ends, exact, truth = SIMULATIONS[cell.metric](cell, runs, rng)
    slack = 1e-9  # ends are computed to this precision
    covered = (ends[0] <= truth + slack) & (truth - slack <= ends[1])
    widths = [float(np.mean(high - low)) for low, high in (ends, exact)]
    return Covered(cell, float(covered.mean()), *widths)


# ---------------------------------------------------------------- one simulation for each metric


Ends = tuple[Array, Array]
Simulated = tuple[Ends, Ends, float]  # of the interval and of an exact one, in each sample, and the truth


def _rate(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Statistical rate of outcomes, or equal opportunity of predictions among the rows with the outcome."""
    counts = _draw(cell, runs, rng)
    return ratio_ends([Compared(counts)], CONFIDENCE), _exact_ratio([counts]), _smallest(cell.truth)


def _odds(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Equalised odds: as many rows with the outcome as without, the latter predicted positive at equal rates."""
    equal = replace(cell, rates=(cell.rates[1], cell.rates[1]))
    both = [_draw(cell, runs, rng), _draw(equal, runs, rng)]
    return ratio_ends([Compared(counts) for counts in both], CONFIDENCE), _exact_ratio(both), _smallest(cell.truth)


def _representation(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Of `rows` expected rows of the smaller group, the ratio to the other being the cell's rate."""
    share = cell.rates[0] / (1 + cell.rates[0])
    total = round(cell.rows[0] / share)
    rows = rng.binomial(total, share, runs)
    rows = np.clip(rows, 1, total - 1)  # a group without rows is unknown, and not compared
    sums = np.stack([rows, total - rows], axis=-1)[:, np.newaxis].astype(float)
    weights = np.array(cell.weights)
    counts = WeightSums(weights * sums, weights**2 * sums, sums).against_others(axis=-1)[..., 0, :]
    truth = share * weights[0] / ((1 - share) * weights[1])
    among = counts[..., [0]]
    low, high = (end[:, 0] / (1 - end[:, 0]) for end in exact_interval(among, CONFIDENCE))
    exact = np.minimum(low, 1 / high), np.minimum(1.0, np.minimum(high, 1 / low))
    return ratio_ends([Compared(counts, are_shares=True)], CONFIDENCE), exact, min(truth, 1 / truth)


def _calibration(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Probabilities are right in the population; where rates differ, the second group is promised half as much."""
    chances = [_chances(share, (runs, rows), rng, varied=cell.varied) for share, rows in _groups(cell)]
    positives = [rng.random(chance.shape) < chance for chance in chances]
    kept = samples = np.arange(runs)
    if not cell.varied:  # then samples with the same numbers of positives have the same interval
        drawn = np.stack([positive.sum(axis=-1) for positive in positives], axis=-1)
        _, kept, samples = np.unique(drawn, axis=0, return_index=True, return_inverse=True)
    scored = [
        _scored(positive[kept], scale * _odds_times(chance[kept], cell.weights[0] / cell.weights[1]), cell.weights)
        for positive, chance, scale in zip(positives, chances, _promised(cell), strict=True)
    ]
    counts = _counts_of(np.stack([rows[0].sum(axis=-1) for rows in scored], axis=-1), np.array(cell.rows), cell.weights)
    compared = compared_surpluses(counts, scored)
    low, high = (end - compared.expected for end in exact_interval(counts, CONFIDENCE**0.5))
    apart = np.maximum(low[:, 0] - high[:, 1], low[:, 1] - high[:, 0])
    exact = np.maximum(apart, 0.0), np.maximum(high[:, 0] - low[:, 1], high[:, 1] - low[:, 0])
    surplus = cell.truth * (1 - np.array(_promised(cell)))
    return _taken(difference_ends([compared], CONFIDENCE), samples), _taken(exact, samples), float(np.ptp(surplus))


def _groups(cell: Cell) -> Iterator[tuple[float, int]]:
    return zip(cell.shares, cell.rows, strict=True)


def _scored(positive: Array, promised: Array, weights: tuple[float, float]) -> ScoredRows:
    return positive, promised, np.where(positive, *weights)


def _taken(ends: Ends, samples: Array) -> Ends:
    return ends[0][samples.ravel()], ends[1][samples.ravel()]


def _promised(cell: Cell) -> tuple[float, float]:
    """What each group is promised, as a multiple of its true probabilities."""
    return (1.0, 1.0) if cell.rates[0] == cell.rates[1] else (1.0, 0.5)


SIMULATIONS: Mapping[str, Callable[[Cell, int, np.random.Generator], Simulated]] = {
    "statistical rate": _rate,
    "representation rate": _representation,
    "equal opportunity": _rate,
    "equalised odds": _odds,
    "calibration": _calibration,
}


def _chances(share: float, shape: tuple[int, int], rng: np.random.Generator, *, varied: bool) -> Array:
    """Chances of rows with a given mean: all equal, or spread widely."""
    return rng.beta(4 * share, 4 * (1 - share), shape) if varied else np.full(shape, share)


def _draw(cell: Cell, runs: int, rng: np.random.Generator) -> EffectiveCounts:
    """Effective counts of both groups in every sample."""
    rows = np.array(cell.rows)
    return _counts_of(rng.binomial(rows, cell.shares, (runs, 2)), rows, cell.weights)


def _counts_of(positives: Array, rows: Array, weights: tuple[float, float]) -> EffectiveCounts:
    sums = np.stack([positives, rows - positives], axis=-2).astype(float)
    weight = np.array(weights)[:, np.newaxis]
    return WeightSums(weight * sums, weight**2 * sums, sums).against_others()[..., 0, :]


def _exact_ratio(comparisons: list[EffectiveCounts]) -> Ends:
    """Smallest ratio that exact intervals of all rates allow, all of which hold together."""
    confidence = CONFIDENCE ** (0.5 / len(comparisons))
    ends = []
    for counts in comparisons:
        (a, b), (c, d) = (tuple(end.T) for end in exact_interval(counts, confidence))
        ends.append((np.minimum(_ratio(a, d), _ratio(b, c)), np.minimum(_ratio(c, b), _ratio(d, a))))
    lows, highs = zip(*ends, strict=True)
    return np.min(lows, axis=0), np.minimum(1.0, np.min(highs, axis=0))


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.full_like(above, np.inf), where=below > 0)


def _smallest(rates: Array) -> float:
    return float(rates.min() / rates.max())


def _odds_times(rates: Array, factor: float) -> Array:
    return np.asarray(factor * rates / (factor * rates + 1 - rates))


# ---------------------------------------------------------------- the subject


def measure(sizes: Sizes) -> Outcome:
    """Simulate every cell."""
    return summary([simulate(cell, sizes.runs) for cell in cells(sizes)], sizes.runs)


def summary(covered: list[Covered], runs: int) -> Outcome:
    """A line of the table is a metric with groups of some size and some weights."""
    common = [one for one in covered if not one.is_sparse]
    sparse = [one for one in covered if one.is_sparse]
    bars = (
        Bar("Lowest coverage of all cells", min(one.coverage for one in covered), LEAST, at_least=True),
        Bar(f"Highest coverage with {FEW} rows or more of each kind", max(one.coverage for one in common), MOST),
        Bar("Width where rows are fewer, in widths of an exact interval", _widest(sparse), 1.0),
    )
    words = (
        f"Coverage of {CONFIDENCE:.0%} intervals in {runs:,} samples for each of {len(covered):,} cells; a line has "
        "the lowest and the highest coverage of its cells. A cell has two groups, with equal or different rates, of "
        f"the same size or beside a group of {LARGE_GROUP} rows. Weights: rows with the outcome : rows without "
        "it (for the representation rate, as one group : the other). Rates are those of the sample, and for the "
        "statistical rate also those of the population; for the representation rate, the size is what is expected of "
        "the smaller group. Groups that do not occur in a sample are unknown and not compared. "
        f"Cells in which fewer than {FEW} rows of some kind are expected stand apart, because counts are so few there "
        "that intervals cover more often. Width is the mean over samples, in widths of the interval that combines "
        "exact (Clopper–Pearson) intervals of the groups."
    )
    lines = {(one.cell.metric, one.cell.rows[0], one.cell.weights): None for one in covered}
    return Outcome(
        "Coverage of the intervals", words, (Table("", COLUMNS, tuple(_line(covered, *key) for key in lines)),), bars
    )


COLUMNS = ("metric", "rows", "weights", "lowest", "highest", "lowest, few rows", "highest, few rows", "width, few rows")


def _line(covered: list[Covered], metric: str, rows: int, weights: tuple[float, float]) -> tuple[Any, ...]:
    line = [one for one in covered if (one.cell.metric, one.cell.rows[0], one.cell.weights) == (metric, rows, weights)]
    common = [one.coverage for one in line if not one.is_sparse]
    sparse = [one for one in line if one.is_sparse]
    few = [one.coverage for one in sparse]
    name = next(name for name, value in WEIGHTS.items() if value == weights)
    ends = [limit(part, default=None) for part in (common, few) for limit in (min, max)]
    return metric, rows, name, *ends, _widest(sparse)


def _widest(covered: list[Covered]) -> float | None:
    """Largest width in widths of the exact interval, which does not exist where probabilities vary."""
    return max((one.width / one.exact_width for one in covered if not one.cell.varied), default=None)
