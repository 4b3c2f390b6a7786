"""Fidelity, how much the shares of levels and of their combinations differ between new
and real rows; and utility.

The total variation of two tables p and q is ½ Σ |p − q|, averaged over all columns,
pairs and triples of columns, as levels: numbers in the bins that `debias` would use.
Beside it stands that of rows drawn at random from the real table.

Quality is as SDMetrics defines it (version 0.32). Column shapes: 1 minus the
Kolmogorov–Smirnov statistic for numbers and dates, 1 minus the total variation for
other columns, missing values aside; the mean over the columns. Pair trends: 1 − |r −
r'| / 2 for the correlations r, r' of two columns of numbers, otherwise 1 minus the
total variation of the table of both columns, in which numbers are in ten bins between
the least and the greatest of their own table; the mean over pairs with |r| > 0.5 or
Cramér's V > 0.3 in the real table. The score is the mean of both.

Utility: a model learns from the new rows and decides about real people. Beside it
stands the same model trained on the real table. Both are judged on the control rows,
which neither has seen. Without control rows they are judged on three in ten of the real
rows, which the second model does not learn from; the new rows were made from all of
them, so that the first has an unfair advantage if rows were copied.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from fairmaxent.data.roles import Roles, read_columns
from fairmaxent.data.table import Codes, Indices, Mask, Reals
from fairmaxent.errors import InputError, Option
from fairmaxent.evaluation.pooled import (
    Pooled,
    PooledColumn,
    Rows,
    cell_numbers,
    column_sets,
)
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.intervals import share_interval
from fairmaxent.metrics.trial import (
    OVERALL,
    REPLICATES,
    Run,
    Score,
    Trial,
    predict_outcomes,
    with_range,
)
from fairmaxent.relabelling.labellers import Labeller, choose_labeller, name_of
from fairmaxent.relabelling.people import People

MOST_SETS = 1000  # triples of columns; of more, so many are drawn at random
CORRELATED = 0.5
ASSOCIATED = 0.3
_BINS = 10
JUDGED = 0.3  # of the real rows, if there is no control
FEWEST = 10  # rows to learn from, and to be judged on
MOST_JUDGED = 20_000  # people; more would only make the intervals narrower


@dataclass(frozen=True)
class TotalVariation:
    """Mean total variation over sets of so many columns."""

    columns: int
    value: float
    by_chance: float  # the same for as many rows drawn at random from the real table
    sets: int  # how many sets of columns were compared


@dataclass(frozen=True)
class Fidelity:
    """How close the new rows are to the real table."""

    total_variation: tuple[TotalVariation, ...]
    by_column: dict[str, float]  # total variation of each column
    quality: "Quality"


def fidelity(pooled: Pooled, *, rng: np.random.Generator) -> Fidelity:
    """Compare the new rows with the real table."""
    domain, encoded = pooled.learned
    codes = encoded.codes.astype(np.int64)
    real, new = (codes[pooled.parts[name]] for name in ("real", "new"))
    times = rng.multinomial(len(new), np.full(len(real), 1 / len(real))).astype(
        np.float64
    )
    means: list[TotalVariation] = []
    by_column: dict[str, float] = {}
    for size in range(1, min(3, len(domain.sizes)) + 1):
        apart = []
        for columns in column_sets(
            len(domain.sizes), size, MOST_SETS if size == 3 else math.inf, rng
        ):
            rows = np.concatenate([real[:, columns], new[:, columns]])
            cells, span = cell_numbers(rows, [domain.sizes[index] for index in columns])
            shares, drawn = (
                _shares(cells[: len(real)], span, weights) for weights in (None, times)
            )
            apart.append(
                (
                    _variation(shares, _shares(cells[len(real) :], span)),
                    _variation(shares, drawn),
                )
            )
        distances, by_chance = np.array(apart).T
        means.append(
            TotalVariation(
                size, float(distances.mean()), float(by_chance.mean()), len(apart)
            )
        )
        by_column = by_column or dict(
            zip(pooled.names, distances.tolist(), strict=True)
        )
    return Fidelity(tuple(means), by_column, quality(pooled))


def _shares(cells: Codes, span: int, times: Reals | None = None) -> Reals:
    counts = np.bincount(cells, times, minlength=span)
    return np.asarray(counts / counts.sum())


def _variation(first: Reals, second: Reals) -> float:
    return float(np.abs(first - second).sum() / 2)


@dataclass(frozen=True)
class PairTrend:
    """Two columns that belong together in the real table, and how much they do so in
    the new rows.
    """

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Quality:
    """SDMetrics' quality; None if there is nothing to take a mean of."""

    score: float | None
    shapes: float | None
    trends: float | None
    by_column: dict[str, float | None]
    # of the pairs that belong together in the real table
    by_pair: tuple[PairTrend, ...]


@dataclass(frozen=True, eq=False)
class _Side:
    """A column in one of the tables."""

    codes: Indices
    numbers: Reals | None
    binned: Indices

    @classmethod
    def of(cls, column: PooledColumn, part: slice) -> "_Side":
        codes = column.codes[part]
        if column.numbers is None:
            return cls(codes, None, codes)
        numbers = column.numbers[part]
        present = numbers[~np.isnan(numbers)]
        if len(present):
            binned = np.digitize(numbers, np.histogram_bin_edges(present, _BINS))
        else:
            binned = codes
        return cls(codes, numbers, binned)


def quality(pooled: Pooled) -> Quality:
    """Score the new rows."""
    parts = pooled.parts["real"], pooled.parts["new"]
    sides = {
        column.name: tuple(_Side.of(column, part) for part in parts)
        for column in pooled.columns
    }
    by_column = {name: _shape(*pair) for name, pair in sides.items()}
    scored = (
        (first, second, _trend(sides[first], sides[second]))
        for first, second in combinations(sides, 2)
    )
    by_pair = tuple(
        PairTrend(first, second, score)
        for first, second, score in scored
        if score is not None
    )
    shapes = _mean(by_column.values())
    trends = _mean(pair.score for pair in by_pair)
    return Quality(_mean([shapes, trends]), shapes, trends, by_column, by_pair)


def _mean(scores: Iterable[float | None]) -> float | None:
    present = [score for score in scores if score is not None]
    if present:
        return float(np.mean(present))
    return None


def _shape(real: _Side, new: _Side) -> float | None:
    if not real.codes.any() or not new.codes.any():
        return None
    size = int(max(real.codes.max(), new.codes.max()))
    first, second = (
        _shares(side.codes[side.codes > 0] - 1, size) for side in (real, new)
    )
    if real.numbers is None:
        return 1 - _variation(first, second)
    return float(1 - np.abs(np.cumsum(first) - np.cumsum(second)).max())


def _trend(first: tuple[_Side, ...], second: tuple[_Side, ...]) -> float | None:
    """The score of a pair; None if the columns have little to do with each other in the
    real table.
    """
    (real, new), (other_real, other_new) = first, second
    if real.numbers is not None and other_real.numbers is not None:
        correlation = _correlation(real.numbers, other_real.numbers)
        if correlation is None or abs(correlation) <= CORRELATED:
            return None
        again = _correlation(new.numbers, other_new.numbers)
        if again is None:
            return None
        return 1 - abs(correlation - again) / 2
    height, width = (
        int(max(side.binned.max() for side in sides)) + 1 for sides in (first, second)
    )
    cells = (
        side.binned * width + other.binned
        for side, other in zip(first, second, strict=True)
    )
    table, another = (
        _shares(part, height * width).reshape(height, width) for part in cells
    )
    apart = 1 - _variation(table, another)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    least = min(table.shape) - 1
    # Cramér's V: the root of Σ (p − q)² / q over the smaller side less one, q being the
    # product of the margins.
    if (
        least < 1
        or math.sqrt(float(((table - expected) ** 2 / expected).sum()) / least)
        <= ASSOCIATED
    ):
        return None
    return apart


def _correlation(first: Any, second: Any) -> float | None:
    """Pearson's correlation over rows with both values; None if a column is
    constant.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return None
    first, second = (values[both] - values[both].mean() for values in (first, second))
    spread = math.sqrt(float(first @ first) * float(second @ second))
    if spread > 0:
        return float(first @ second) / spread
    return None


@dataclass(frozen=True)
class GroupScores:
    """What a model decides about one group."""

    column: str
    group: str
    people: int
    accuracy: Score
    # share that is given the favourable outcome; None: nobody said which that is
    favourable: Score | None


@dataclass(frozen=True)
class Learning:
    """How a model decides."""

    auc: Score | None
    accuracy: Score | None
    # statistical rate of its decisions: lowest over highest group, by column
    rates: dict[str, Score | None]
    groups: tuple[GroupScores, ...]


@dataclass(frozen=True)
class Utility:
    """A model trained on the new rows, and the same model trained on the real table."""

    outcome: str
    model: str
    judged_on: Literal["control", "real"]
    people: int
    new: Learning
    real: Learning
    # how much larger the AUC of the model trained on the real table is
    auc_lost: Score | None


def utility(
    pooled: Pooled,
    outcome: str,
    protected: str | Sequence[str] | None,
    *,
    favourable: object,
    confidence: float,
    rng: np.random.Generator,
) -> Utility:
    """Train both models and judge them."""
    school = _School.of(pooled, outcome, protected, favourable, confidence)
    judged_on: Literal["control", "real"] = (
        "control" if "control" in pooled.parts else "real"
    )
    real, new = (
        np.arange(pooled.parts[name].start, pooled.parts[name].stop)
        for name in ("real", "new")
    )
    if judged_on == "control":
        judged = pooled.shuffled("control", rng, MOST_JUDGED)
    else:
        judged = np.sort(
            rng.permutation(real)[: min(round(JUDGED * len(real)), MOST_JUDGED)]
        )
        real = np.setdiff1d(real, judged)
    for rows, what in (
        (real, "real rows"),
        (new, "new rows"),
        (judged, f"{judged_on} rows to judge models on"),
    ):
        if len(rows) < FEWEST:
            few = (
                f"there are {len(rows)} {what}, too few to train and judge models (at"
                f" least {FEWEST})"
            )
            raise InputError(f"{few}; pass more, or leave out ", Option("outcome"))
    (first, auc), (second, real_auc) = (
        school.learning(rows, judged) for rows in (new, real)
    )
    lost = _estimated(real_auc[0] - auc[0], real_auc[1] - auc[1], confidence)
    return Utility(
        outcome, name_of(school.model), judged_on, len(judged), first, second, lost
    )


@dataclass(frozen=True, eq=False)
class _School:
    """Everybody in all tables, as models see them."""

    roles: Roles
    people: People
    favourable: tuple[int, ...]
    named: bool  # somebody said which outcome is favourable
    model: Labeller
    confidence: float

    @classmethod
    def of(
        cls,
        pooled: Pooled,
        outcome: str,
        protected: str | Sequence[str] | None,
        favourable: object,
        confidence: float,
    ) -> "_School":
        domain, encoded = pooled.learned
        if protected is None:
            names = []
        else:
            names = read_columns("protected", protected)
        pooled.positions([outcome, *names])
        if names:
            roles = Roles.of(domain, outcome, names)
        else:
            roles = Roles(domain, domain.index(outcome), ())
        if roles.attributes[0].size < 2:
            same = (
                f"outcome column {outcome!r} has the same value in all rows, so there"
                " is nothing to learn"
            )
            raise InputError(
                f"{same}; name another one, or leave out ", Option("outcome")
            )
        table = roles.compress(encoded.codes)
        people = People.of(
            roles, table, table.counts, positions=encoded.positions, design=None
        )
        levels = roles.favourable_levels(favourable)
        return cls(
            roles,
            people,
            levels,
            favourable is not None,
            choose_labeller(roles),
            confidence,
        )

    def learning(
        self, rows: Rows, judged: Rows
    ) -> tuple[Learning, tuple[Reals, Reals]]:
        """Let the model learn from some rows and decide about others; also its AUC, on
        these and on other people.
        """
        members = np.zeros(len(self.people.row), dtype=np.int64)
        members[rows] = 1
        chances = self.model.learn(self.people.lesson(members))(
            self.people.inputs.take(judged)
        )
        # Of everybody together and of each protected column: the group that each
        # combination of levels is in.
        shape = self.roles.blocks.shape(0)[1:]
        cells = np.arange(int(np.prod(shape, dtype=np.int64)))
        columns = dict(
            zip(
                self.roles.names[1:],
                np.unravel_index(cells, shape) if shape else (),
                strict=True,
            )
        )
        runs = [Run(np.zeros(len(judged), dtype=np.intp), chances)]
        truth = self.people.outcome[judged]
        group = self.people.group[judged]
        groupings = {"": 0 * cells} | columns
        trial = Trial(
            truth, group, np.ones(len(judged)), runs, self.favourable, groupings
        )
        # Also if other people had been judged: the same ones for both models.
        values, drawn = (
            trial.scores(sums)
            for sums in (trial.sums(), trial.replicates(REPLICATES, elsewhere=False))
        )

        def estimated(quantity: str, name: str) -> Score | None:
            return _estimated(
                values[quantity][name], drawn[quantity][name], self.confidence
            )

        auc, accuracy = (estimated(name, OVERALL) for name in ("auc", "accuracy"))
        rates = {name: estimated("by_predictions", name) for name in columns}
        learning = Learning(auc, accuracy, rates, tuple(self._groups(trial, chances)))
        return learning, (values["auc"][OVERALL], drawn["auc"][OVERALL])

    def _groups(self, trial: Trial, chances: Reals) -> Iterator[GroupScores]:
        decided = predict_outcomes(chances, self.favourable, trial.threshold)
        right = decided == trial.truth
        given = np.isin(decided, self.favourable)
        for attribute in self.roles.attributes[1:]:
            for level, label in enumerate(attribute.labels):
                members = trial.groupings[attribute.name][trial.group] == level
                if members.any():
                    accuracy, share = (
                        self._share(happened[members]) for happened in (right, given)
                    )
                    people = int(members.sum())
                    yield GroupScores(
                        attribute.name,
                        label,
                        people,
                        accuracy,
                        share if self.named else None,
                    )

    def _share(self, happened: Mask) -> Score:
        rates = np.array([happened.mean()])
        sizes = np.array([float(len(happened))])
        low, high = share_interval(
            EffectiveCounts.of_rates(rates, sizes), self.confidence
        )
        return Score(float(rates[0]), float(low[0]), float(high[0]))


def _estimated(value: Reals, drawn: Reals, confidence: float) -> Score | None:
    """A score with the middle of what other people would give; None if there is
    none.
    """
    score = with_range(float(value[0]), drawn, confidence)
    return None if np.isnan(score.low) else score
