"""Coverage: how often 95 % intervals hold the truth, with small groups, many groups,
and weights of several kinds.

Samples are drawn from groups whose rates are known, and the intervals of the metrics
are computed from their counts, many samples at once. The truth is the ratio (or the
gap) in the population that the weights stand for. A cell is one setting of metric, rows
of each group, rates and weights, which depend on the outcome or vary from row to row.
Where fewer than five effective rows are expected of some kind, coverage may be higher
than asked for, because counts are few; there the interval must not be wider than an
exact one. It may be higher too where groups are many.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.outcome import Bar, Outcome, Table
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.intervals import (
    Compared,
    difference_ends,
    exact_interval,
    ratio_ends,
)
from fairmaxent.metrics.surpluses import ScoredRows, surpluses_of

Array = NDArray[Any]

CONFIDENCE = 0.95
# effective rows expected of each kind, below which an interval may cover more often
FEW = 5
LEAST, MOST = 0.93, 0.98


@dataclass(frozen=True)
class Cell:
    """One setting: the rows and rates of groups, mostly two, and the weights of rows
    with the outcome and without it.

    `of_population`: the rates are those of the population, and rows with large weights
    are rare in the sample.
    """

    metric: str
    rows: tuple[int, ...]
    rates: tuple[float, ...]
    weights: tuple[float, float] = (1.0, 1.0)
    of_population: bool = False
    varied: bool = False  # calibration: probabilities differ within a group
    # σ of log-normal factors of the weights, whatever the outcome
    spread: float = field(default=0.0, repr=False)

    @property
    def weighting(self) -> str:
        """The weights in words."""
        return (
            f"σ = {self.spread:g}"
            if self.spread
            else f"{self.weights[0]:g}:{self.weights[1]:g}"
        )

    @property
    def shares(self) -> Array:
        """Share of the rows of each group that have the outcome."""
        rates = np.array(self.rates)
        return (
            _odds_times(rates, self.weights[1] / self.weights[0])
            if self.of_population
            else rates
        )

    @property
    def truth(self) -> Array:
        """Rate of each group in the population."""
        return _odds_times(self.shares, self.weights[0] / self.weights[1])

    @property
    def fewest(self) -> float:
        """Expected rows of the rarest kind, as effective as even weights would leave
        them.
        """
        shares, effective = self.shares, float(np.exp(-(self.spread**2)))
        if self.metric == "representation rate":
            return min(self.rows) * effective
        # of the rows without the outcome, both groups have the second rate
        if self.metric == "equalised odds":
            shares = np.append(shares[:, np.newaxis], [shares[[1]]] * 2, axis=1).T
        return (
            float((np.array(self.rows) * np.minimum(shares, 1 - shares)).min())
            * effective
        )


@dataclass(frozen=True)
class Covered:
    """How often the intervals of a cell hold the truth, and their mean width beside
    that of exact ones.
    """

    cell: Cell
    coverage: float
    width: float
    exact_width: float

    @property
    def is_sparse(self) -> bool:
        """Whether fewer than five effective rows of some kind are expected."""
        return self.cell.fewest < FEW


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    runs: int
    rows: tuple[int, ...]
    rates: tuple[float, ...]
    groups: tuple[int, ...]  # where they are many


FULL = Sizes(runs=2000, rows=(10, 30, 300), rates=(0.02, 0.1, 0.5), groups=(8, 50))
QUICK = Sizes(runs=300, rows=(10, 30), rates=(0.1, 0.5), groups=(8,))

WEIGHTS: Mapping[str, tuple[float, float]] = {
    "1:1": (1.0, 1.0),
    "3:1": (3.0, 1.0),
    "1:3": (1.0, 3.0),
    "10:1": (10.0, 1.0),
    "1:10": (1.0, 10.0),
}
SPREADS = (0.5, 1.0, 1.5)
MANY_ROWS = 40  # of each of many groups
MANY_GROUPS: Mapping[str, Callable[[int], Array]] = {
    "all equal": lambda groups: np.full(groups, 0.3),
    "one low": lambda groups: np.append(np.full(groups - 1, 0.3), 0.15),
    "evenly spread": lambda groups: np.linspace(0.2, 0.5, groups),
    "two clusters": lambda groups: np.repeat([0.2, 0.4], groups // 2),
}
OTHER_RATES = {0.02: 0.1, 0.1: 0.5, 0.5: 0.1}  # the other group's, where rates differ
LARGE_GROUP = 300


def cells(sizes: Sizes) -> Iterator[Cell]:
    """Every setting: equal and different rates, groups of equal size and beside a large
    one.
    """
    for metric, rows, rate, weights in product(
        SIMULATIONS, sizes.rows, sizes.rates, WEIGHTS.values()
    ):
        populations = {False, metric == "statistical rate" and weights[0] != weights[1]}
        for other_rows, other_rate, of_population in product(
            sorted({rows, LARGE_GROUP}), (rate, OTHER_RATES[rate]), sorted(populations)
        ):
            cell = Cell(
                metric, (rows, other_rows), (rate, other_rate), weights, of_population
            )
            if metric == "representation rate":
                if other_rows == rows and other_rate == rate:
                    yield cell  # the rate is the ratio of the two groups' shares
            else:
                yield cell
                if metric == "calibration" and other_rows == rows:
                    yield replace(cell, varied=True)


def uneven_cells(sizes: Sizes) -> Iterator[Cell]:
    """The settings with even weights and rates that are not tiny, but weights vary from
    row to row.
    """
    for cell, spread in product(cells(sizes), SPREADS):
        if cell.weights == WEIGHTS["1:1"] and min(cell.rates) > min(FULL.rates):
            yield replace(cell, spread=spread)


def many_cells(groups: int) -> Mapping[str, Cell]:
    """Settings with many groups."""
    rows = (MANY_ROWS,) * groups
    return {
        name: Cell("statistical rate", rows, tuple(rates(groups)))
        for name, rates in MANY_GROUPS.items()
    }


def simulate(cell: Cell, runs: int, seed: int = 0) -> Covered:
    """Draw samples, and see how often the interval holds the truth."""
    rng = np.random.default_rng([seed, *f"{cell}{cell.spread or ''}".encode()])
    ends, exact, truth = SIMULATIONS[cell.metric](cell, runs, rng)
    slack = 1e-9  # ends are computed to this precision
    covered = (ends[0] <= truth + slack) & (truth - slack <= ends[1])
    widths = [float(np.mean(high - low)) for low, high in (ends, exact)]
    return Covered(cell, float(covered.mean()), *widths)


# ---------------------------------------------------------------- one simulation for
# each metric


Ends = tuple[Array, Array]
# of the interval and of an exact one, in each sample, and the truth
Simulated = tuple[Ends, Ends, float]


def _rate(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Statistical rate of outcomes, or equal opportunity of predictions among the rows
    with the outcome.
    """
    counts, samples = _draw(cell, runs, rng), np.arange(runs)
    # of as many rows each: samples with the same extremes have the same interval
    if len(cell.rows) > 2:
        extremes = np.stack(
            [counts.positives.min(axis=-1), counts.positives.max(axis=-1)], axis=-1
        )
        _, kept, samples = np.unique(
            extremes, axis=0, return_index=True, return_inverse=True
        )
        counts = counts[kept]
    ends, exact = ratio_ends([Compared(counts)], CONFIDENCE), _exact_ratio([counts])
    return _taken(ends, samples), _taken(exact, samples), _smallest(cell.truth)


def _odds(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Equalised odds: as many rows with the outcome as without, the latter predicted
    positive at equal rates.
    """
    equal = replace(cell, rates=(cell.rates[1], cell.rates[1]))
    both = [_draw(cell, runs, rng), _draw(equal, runs, rng)]
    return (
        ratio_ends([Compared(counts) for counts in both], CONFIDENCE),
        _exact_ratio(both),
        _smallest(cell.truth),
    )


def _representation(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Of `rows` expected rows of the smaller group, the ratio to the other being the
    cell's rate.
    """
    share = cell.rates[0] / (1 + cell.rates[0])
    total = round(cell.rows[0] / share)
    rows = rng.binomial(total, share, runs)
    # a group without rows is unknown, and not compared
    rows = np.clip(rows, 1, total - 1)
    both, weights = (
        np.stack([rows, total - rows], axis=-1)[:, np.newaxis],
        np.array(cell.weights),
    )
    counts = _sums(both, weights, cell.spread, rng).against_others(axis=-1)[..., 0, :]
    truth = share * weights[0] / ((1 - share) * weights[1])
    among = counts[..., [0]]
    low, high = (
        end[:, 0] / (1 - end[:, 0]) for end in exact_interval(among, CONFIDENCE)
    )
    exact = np.minimum(low, 1 / high), np.minimum(1.0, np.minimum(high, 1 / low))
    return (
        ratio_ends([Compared(counts, are_shares=True)], CONFIDENCE),
        exact,
        min(truth, 1 / truth),
    )


def _calibration(cell: Cell, runs: int, rng: np.random.Generator) -> Simulated:
    """Probabilities are right in the population; where rates differ, the second group
    is promised half as much.
    """
    chances = [
        _chances(share, (runs, rows), rng, varied=cell.varied)
        for share, rows in _groups(cell)
    ]
    positives = [rng.random(chance.shape) < chance for chance in chances]
    kept = samples = np.arange(runs)
    # then samples with the same numbers of positives have the same interval
    if not cell.varied and not cell.spread:
        drawn = np.stack([positive.sum(axis=-1) for positive in positives], axis=-1)
        _, kept, samples = np.unique(
            drawn, axis=0, return_index=True, return_inverse=True
        )
    scored = [
        _scored(
            positive[kept],
            scale * _odds_times(chance[kept], cell.weights[0] / cell.weights[1]),
            cell,
            rng,
        )
        for positive, chance, scale in zip(
            positives, chances, _promised(cell), strict=True
        )
    ]
    counts = _counts_of_scored(scored)
    compared = surpluses_of(counts, scored).compared(counts)
    low, high = (
        end - compared.expected for end in exact_interval(counts, CONFIDENCE**0.5)
    )
    apart = np.maximum(low[:, 0] - high[:, 1], low[:, 1] - high[:, 0])
    exact = (
        np.maximum(apart, 0.0),
        np.maximum(high[:, 0] - low[:, 1], high[:, 1] - low[:, 0]),
    )
    surplus = cell.truth * (1 - np.array(_promised(cell)))
    return (
        _taken(difference_ends([compared], CONFIDENCE), samples),
        _taken(exact, samples),
        float(np.ptp(surplus)),
    )


def _groups(cell: Cell) -> Iterator[tuple[float, int]]:
    return zip(cell.shares, cell.rows, strict=True)


def _scored(
    positive: Array, promised: Array, cell: Cell, rng: np.random.Generator
) -> ScoredRows:
    return (
        positive,
        promised,
        np.where(positive, *cell.weights) * _factors(positive.shape, cell.spread, rng),
    )


def _counts_of_scored(scored: list[ScoredRows]) -> EffectiveCounts:
    """Effective counts of groups whose rows are given."""
    sums = [
        [
            [(having * weights**power).sum(axis=-1) for having in (positive, ~positive)]
            for positive, _, weights in scored
        ]
        for power in (1, 2, 0)
    ]
    return WeightSums(
        *np.moveaxis(np.array(sums), (1, 2, 3), (3, 2, 1))
    ).against_others()[..., 0, :]


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


def _chances(
    share: float, shape: tuple[int, int], rng: np.random.Generator, *, varied: bool
) -> Array:
    """Chances of rows with a given mean: all equal, or spread widely."""
    return (
        rng.beta(4 * share, 4 * (1 - share), shape) if varied else np.full(shape, share)
    )


def _draw(cell: Cell, runs: int, rng: np.random.Generator) -> EffectiveCounts:
    """Effective counts of both groups in every sample."""
    rows = np.array(cell.rows)
    positives = rng.binomial(rows, cell.shares, (runs, len(rows)))
    both, weights = (
        np.stack([positives, rows - positives], axis=-2),
        np.array(cell.weights)[:, np.newaxis],
    )
    return _sums(both, weights, cell.spread, rng).against_others()[..., 0, :]


def _sums(
    rows: Array, weights: Array, spread: float, rng: np.random.Generator
) -> WeightSums:
    """Add up the weights of so many rows of each kind."""
    if not spread:
        return WeightSums(weights * rows, weights**2 * rows, rows.astype(float))
    most = int(rows.max())
    factors = _factors((*rows.shape, most), spread, rng) * (
        np.arange(most) < rows[..., np.newaxis]
    )
    return WeightSums(
        weights * factors.sum(axis=-1),
        weights**2 * (factors**2).sum(axis=-1),
        rows.astype(float),
    )


def _factors(shape: tuple[int, ...], spread: float, rng: np.random.Generator) -> Array:
    return np.exp(spread * rng.standard_normal(shape)) if spread else np.ones(shape)


def _exact_ratio(comparisons: list[EffectiveCounts]) -> Ends:
    """Smallest ratio that exact intervals of all rates allow, all of which hold
    together.
    """
    groups = comparisons[0].positives.shape[-1]
    ends = [
        exact_interval(counts, CONFIDENCE ** (1 / groups / len(comparisons)))
        for counts in comparisons
    ]
    lows, highs = zip(
        *((_least_ratio(low, high), _least_ratio(high, low)) for low, high in ends),
        strict=True,
    )
    return np.min(lows, axis=0), np.minimum(1.0, np.min(highs, axis=0))


def _least_ratio(above: Array, below: Array) -> Array:
    """The smallest ratio of one group's number to another group's."""
    one, other = above[..., :, np.newaxis], below[..., np.newaxis, :]
    ratios = np.full(np.broadcast_shapes(one.shape, other.shape), np.inf)
    np.divide(
        one, other, out=ratios, where=(other > 0) & ~np.eye(above.shape[-1], dtype=bool)
    )
    return np.asarray(ratios.min(axis=(-2, -1)))


def _smallest(rates: Array) -> float:
    return float(rates.min() / rates.max())


def _odds_times(rates: Array, factor: float) -> Array:
    return np.asarray(factor * rates / (factor * rates + 1 - rates))


# ---------------------------------------------------------------- the subject


def measure(sizes: Sizes) -> Outcome:
    """Simulate every cell."""
    every = [*cells(sizes), *uneven_cells(sizes)]
    many = {
        (n, name): cell for n in sizes.groups for name, cell in many_cells(n).items()
    }
    return summary(
        [simulate(cell, sizes.runs) for cell in every],
        {key: simulate(cell, sizes.runs) for key, cell in many.items()},
        sizes.runs,
    )


def summary(
    covered: list[Covered], many: Mapping[tuple[int, str], Covered], runs: int
) -> Outcome:
    """A line of the table is a metric with groups of some size and some weights; a
    second one has many groups.
    """
    common = [one for one in covered if not one.is_sparse]
    sparse = [one for one in covered if one.is_sparse]
    bars = (
        Bar(
            "Lowest coverage of all cells",
            min(one.coverage for one in covered),
            LEAST,
            at_least=True,
        ),
        Bar(
            f"Highest coverage with {FEW} rows or more of each kind",
            max(one.coverage for one in common),
            MOST,
        ),
        Bar(
            "Width where rows are fewer, in widths of an exact interval",
            _widest(sparse),
            1.0,
        ),
        Bar(
            "Lowest coverage with many groups",
            min(one.coverage for one in many.values()),
            LEAST,
            at_least=True,
        ),
    )
    words = (
        f"Coverage of {CONFIDENCE:.0%} intervals in {runs:,} samples for each of"
        f" {len(covered) + len(many):,} cells; a line has the lowest and the highest"
        " coverage of its cells. A cell has two groups, with equal or different rates,"
        f" of the same size or beside a group of {LARGE_GROUP} rows. Weights: rows with"
        " the outcome : rows without it (for the representation rate, as one group :"
        " the other), or log-normal with σ, whatever the outcome. Rates are those of"
        " the sample, and for the statistical rate also those of the population; for"
        " the representation rate, the size is what is expected of the smaller group."
        " Groups that do not occur in a sample are unknown and not compared. Cells in"
        f" which fewer than {FEW} effective rows of some kind are expected stand apart,"
        " because counts are so few there that intervals cover more often. Width is"
        " the mean over samples, in widths of the interval that combines exact"
        " (Clopper–Pearson) intervals of the groups. Of many groups, the worst pair is"
        " partly the unluckiest one, and intervals cover more often than asked for;"
        " there, widths are on the scale of the rate."
    )
    lines = {
        (one.cell.metric, one.cell.rows[0], one.cell.weighting): None for one in covered
    }
    of_many = tuple(
        (f"{groups} × {MANY_ROWS}", name, one.coverage, one.width, one.exact_width)
        for (groups, name), one in many.items()
    )
    tables = (
        Table("", COLUMNS, tuple(_line(covered, *key) for key in lines)),
        Table(
            "Many groups",
            (
                "groups × rows",
                "rates",
                "coverage",
                "width",
                "width of an exact interval",
            ),
            of_many,
        ),
    )
    return Outcome("Coverage of the intervals", words, tables, bars)


COLUMNS = (
    "metric",
    "rows",
    "weights",
    "lowest",
    "highest",
    "lowest, few rows",
    "highest, few rows",
    "width, few rows",
)


def _line(
    covered: list[Covered], metric: str, rows: int, weighting: str
) -> tuple[Any, ...]:
    key = metric, rows, weighting
    line = [
        one
        for one in covered
        if (one.cell.metric, one.cell.rows[0], one.cell.weighting) == key
    ]
    common = [one.coverage for one in line if not one.is_sparse]
    sparse = [one for one in line if one.is_sparse]
    few = [one.coverage for one in sparse]
    ends = [limit(part, default=None) for part in (common, few) for limit in (min, max)]
    return *key, *ends, _widest(sparse)


def _widest(covered: list[Covered]) -> float | None:
    """Largest width in widths of the exact interval, which does not exist where
    probabilities vary.
    """
    return max(
        (one.width / one.exact_width for one in covered if not one.cell.varied),
        default=None,
    )
