"""Fidelity and utility of new rows.

Fidelity is how much the shares of levels and of their combinations differ between new
and real rows. The total variation of two tables p and q is ½ Σ |p − q|, averaged over
all columns, pairs and triples of columns, as levels: numbers in the bins that `debias`
would use. Beside it stands that of rows drawn at random from the real table.

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
from numpy.random import Generator

from fairmaxent.data.roles import ColumnNames, Roles, read_columns
from fairmaxent.data.table import Codes, Indices, Mask, Reals, cramers_v
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


def fidelity(pooled: Pooled, *, rng: Generator) -> Fidelity:
    """Compare the new rows with the real table."""
    domain, encoded = pooled.learned
    codes = encoded.codes.astype(np.int64)
    real = codes[pooled.parts["real"]]
    new = codes[pooled.parts["new"]]
    people = len(real)
    # How often each is among as many rows drawn at random from the real table.
    times = rng.multinomial(len(new), np.full(people, 1 / people)).astype(np.float64)
    width = len(domain.sizes)
    means: list[TotalVariation] = []
    by_column: dict[str, float] = {}
    for size in range(1, min(3, width) + 1):
        apart = []
        apart_by_chance = []
        most = MOST_SETS if size == 3 else math.inf
        for columns in column_sets(width, size, most, rng):
            rows = np.concatenate([real[:, columns], new[:, columns]])
            cells, span = cell_numbers(rows, [domain.sizes[index] for index in columns])
            shares = _shares(cells[:people], span)
            drawn = _shares(cells[:people], span, times)
            apart.append(_variation(shares, _shares(cells[people:], span)))
            apart_by_chance.append(_variation(shares, drawn))
        means.append(
            TotalVariation(
                columns=size,
                value=float(np.mean(apart)),
                by_chance=float(np.mean(apart_by_chance)),
                sets=len(apart),
            )
        )
        if size == 1:
            by_column = dict(zip(pooled.names, apart, strict=True))
    return Fidelity(tuple(means), by_column, quality(pooled))


def _shares(cells: Codes, span: int, times: Reals | None = None) -> Reals:
    counts = np.bincount(cells, times, minlength=span)
    return counts / counts.sum()


def _variation(first: Reals, second: Reals) -> float:
    return float(np.abs(first - second).sum() / 2)


@dataclass(frozen=True)
class PairTrend:
    """Two columns that belong together, and how much they do so in the new rows."""

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
        binned = codes
        if len(present):
            binned = np.digitize(numbers, np.histogram_bin_edges(present, _BINS))
        return cls(codes, numbers, binned)


def quality(pooled: Pooled) -> Quality:
    """Score the new rows."""
    parts = pooled.parts["real"], pooled.parts["new"]
    sides = {
        column.name: tuple(_Side.of(column, part) for part in parts)
        for column in pooled.columns
    }
    by_column = {name: _shape(*pair) for name, pair in sides.items()}
    by_pair = []
    for first, second in combinations(sides, 2):
        score = _trend(sides[first], sides[second])
        if score is not None:
            by_pair.append(PairTrend(first, second, score))
    shapes = _mean(by_column.values())
    trends = _mean(pair.score for pair in by_pair)
    return Quality(
        score=_mean([shapes, trends]),
        shapes=shapes,
        trends=trends,
        by_column=by_column,
        by_pair=tuple(by_pair),
    )


def _mean(scores: Iterable[float | None]) -> float | None:
    present = [score for score in scores if score is not None]
    return float(np.mean(present)) if present else None


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
    """The score of a pair; None if its columns have little to do with each other."""
    real, new = first
    other_real, other_new = second
    if real.numbers is not None and other_real.numbers is not None:
        correlation = _correlation(real.numbers, other_real.numbers)
        if correlation is None or abs(correlation) <= CORRELATED:
            return None
        again = _correlation(new.numbers, other_new.numbers)
        if again is None:
            return None
        return 1 - abs(correlation - again) / 2
    height = int(max(side.binned.max() for side in first)) + 1
    width = int(max(side.binned.max() for side in second)) + 1
    table, another = (
        _shares(side.binned * width + other.binned, height * width).reshape(height, -1)
        for side, other in zip(first, second, strict=True)
    )
    if cramers_v(table) <= ASSOCIATED:
        return None
    return 1 - _variation(table, another)


def _correlation(first: Any, second: Any) -> float | None:
    """Pearson's correlation over rows with both values; None if one is constant."""
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return None
    first, second = (values[both] - values[both].mean() for values in (first, second))
    spread = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread > 0 else None


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
    protected: ColumnNames | None,
    *,
    favourable: object,
    confidence: float,
    rng: Generator,
) -> Utility:
    """Train both models and judge them."""
    school = _School.of(pooled, outcome, protected, favourable, confidence)
    real, new = (
        np.arange(pooled.parts[name].start, pooled.parts[name].stop)
        for name in ("real", "new")
    )
    judged_on: Literal["control", "real"] = "real"
    if "control" in pooled.parts:
        judged_on = "control"
        judged = pooled.shuffled("control", rng, MOST_JUDGED)
    else:
        most = min(round(JUDGED * len(real)), MOST_JUDGED)
        judged = np.sort(rng.permutation(real)[:most])
        real = np.setdiff1d(real, judged)
    for rows, what in (
        (real, "real rows"),
        (new, "new rows"),
        (judged, f"{judged_on} rows to judge models on"),
    ):
        if len(rows) < FEWEST:
            raise InputError(
                f"there are {len(rows)} {what}, too few to train and judge models (at"
                f" least {FEWEST}); pass more, or leave out ",
                Option("outcome"),
            )
    by_new, auc = school.learning(new, judged)
    by_real, real_auc = school.learning(real, judged)
    return Utility(
        outcome=outcome,
        model=name_of(school.model),
        judged_on=judged_on,
        people=len(judged),
        new=by_new,
        real=by_real,
        auc_lost=_estimated(real_auc[0] - auc[0], real_auc[1] - auc[1], confidence),
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
        protected: ColumnNames | None,
        favourable: object,
        confidence: float,
    ) -> "_School":
        domain, encoded = pooled.learned
        names: Sequence[str] = ()
        if protected is not None:
            names = read_columns("protected", protected)
        pooled.positions([outcome, *names])
        if names:
            roles = Roles.of(domain, outcome, names)
        else:
            roles = Roles(domain, domain.index(outcome), ())
        if roles.attributes[0].size < 2:
            raise InputError(
                f"outcome column {outcome!r} has the same value in all rows, so there"
                " is nothing to learn; name another one, or leave out ",
                Option("outcome"),
            )
        table = roles.compress(encoded.codes)
        people = People.of(
            roles,
            table,
            table.counts,
            positions=encoded.positions,
            design=None,
        )
        return cls(
            roles=roles,
            people=people,
            favourable=roles.favourable_levels(favourable),
            named=favourable is not None,
            model=choose_labeller(roles),
            confidence=confidence,
        )

    def learning(
        self, rows: Rows, judged: Rows
    ) -> tuple[Learning, tuple[Reals, Reals]]:
        """Let the model learn from some rows and decide about others.

        Also returns its AUC, on these and on other people.
        """
        members = np.zeros(len(self.people.row), dtype=np.int64)
        members[rows] = 1
        decide = self.model.learn(self.people.lesson(members))
        chances = decide(self.people.inputs.take(judged))
        # Of everybody together and of each protected column: the group that each
        # combination of levels is in.
        shape = self.roles.blocks.shape(0)[1:]
        cells = np.arange(int(np.prod(shape, dtype=np.int64)))
        levels = np.unravel_index(cells, shape) if shape else ()
        columns = dict(zip(self.roles.names[1:], levels, strict=True))
        trial = Trial(
            self.people.outcome[judged],
            self.people.group[judged],
            np.ones(len(judged)),
            [Run(np.zeros(len(judged), dtype=np.intp), chances)],
            self.favourable,
            {"": 0 * cells} | columns,
        )
        values = trial.scores(trial.sums())
        # Also if other people had been judged: the same ones for both models.
        drawn = trial.scores(trial.replicates(REPLICATES, elsewhere=False))

        def estimated(quantity: str, name: str) -> Score | None:
            return _estimated(
                values[quantity][name], drawn[quantity][name], self.confidence
            )

        learning = Learning(
            auc=estimated("auc", OVERALL),
            accuracy=estimated("accuracy", OVERALL),
            rates={name: estimated("by_predictions", name) for name in columns},
            groups=tuple(self._groups(trial, chances)),
        )
        return learning, (values["auc"][OVERALL], drawn["auc"][OVERALL])

    def _groups(self, trial: Trial, chances: Reals) -> Iterator[GroupScores]:
        decided = predict_outcomes(chances, self.favourable, trial.threshold)
        right = decided == trial.truth
        given = np.isin(decided, self.favourable)
        for attribute in self.roles.attributes[1:]:
            for level, label in enumerate(attribute.labels):
                members = trial.groupings[attribute.name][trial.group] == level
                if members.any():
                    yield GroupScores(
                        column=attribute.name,
                        group=label,
                        people=int(members.sum()),
                        accuracy=self._share(right[members]),
                        favourable=self._share(given[members]) if self.named else None,
                    )

    def _share(self, happened: Mask) -> Score:
        rates = np.array([happened.mean()])
        sizes = np.array([float(len(happened))])
        counts = EffectiveCounts.of_rates(rates, sizes)
        low, high = share_interval(counts, self.confidence)
        return Score(float(rates[0]), float(low[0]), float(high[0]))


def _estimated(value: Reals, drawn: Reals, confidence: float) -> Score | None:
    """A score with the middle of what other people would give, if there is one."""
    score = with_range(float(value[0]), drawn, confidence)
    return None if np.isnan(score.low) else score
