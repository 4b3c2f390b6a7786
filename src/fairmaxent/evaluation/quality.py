"""Fidelity and utility of new rows.

Fidelity is how much the shares of levels and of their combinations differ between new
and real rows. The total variation of two tables p and q is ½ Σ |p − q|, averaged over
all columns, pairs and triples of columns, as levels: numbers in the bins that `debias`
would use. Beside it stands that of rows drawn at random from the real table.

Utility: a model learns from the new rows and decides about real people. Beside it
stands the same model trained on the real table. Both are judged on the control rows,
which neither has seen. Without control rows they are judged on three in ten of the real
rows, which the second model does not learn from; the new rows were made from all of
them, so that the first has an unfair advantage if rows were copied.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from fairmaxent.data.roles import ColumnNames, Roles, read_columns
from fairmaxent.data.table import Axes, Codes, Mask, NameList, Reals
from fairmaxent.errors import InputError, Option
from fairmaxent.evaluation.pooled import (
    Pooled,
    Rows,
    cell_numbers,
    column_sets,
)
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.intervals import Ends, share_interval
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


def fidelity(pooled: Pooled, *, rng: Generator) -> Fidelity:
    """Compare the new rows with the real table."""
    domain, encoded = pooled.learned
    codes = encoded.codes.astype(int)
    real = codes[pooled.parts["real"]]
    new = codes[pooled.parts["new"]]
    people = len(real)
    # How often each is among as many rows drawn at random from the real table.
    times = rng.multinomial(len(new), np.full(people, 1 / people)).astype(float)
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
    return Fidelity(tuple(means), by_column)


def _shares(cells: Codes, span: int, times: Reals | None = None) -> Reals:
    counts = np.bincount(cells, times, minlength=span)
    return counts / counts.sum()


def _variation(first: Reals, second: Reals) -> float:
    return float(np.abs(first - second).sum() / 2)


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
    favourable: Axes
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
        names: NameList = ()
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

    def learning(self, rows: Rows, judged: Rows) -> tuple[Learning, Ends]:
        """Let the model learn from some rows and decide about others.

        Also returns its AUC, on these and on other people.
        """
        members = np.zeros(len(self.people.row), dtype=int)
        members[rows] = 1
        decide = self.model.learn(self.people.lesson(members))
        chances = decide(self.people.inputs.take(judged))
        # Of everybody together and of each protected column: the group that each
        # combination of levels is in.
        shape = self.roles.blocks.shape(0)[1:]
        cells = np.arange(int(np.prod(shape, dtype=int)))
        levels = np.unravel_index(cells, shape) if shape else ()
        columns = dict(zip(self.roles.names[1:], levels, strict=True))
        trial = Trial(
            self.people.outcome[judged],
            self.people.group[judged],
            np.ones(len(judged)),
            [Run(np.zeros(len(judged), dtype=int), chances)],
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
