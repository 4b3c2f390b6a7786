"""Utility: a model learns from the new rows and decides about real people.

Beside it stands the same model trained on the real table. Both are judged on the control rows, which neither has seen.
Without control rows they are judged on three in ten of the real rows, which the second model does not learn from; the
new rows were made from all of them, so that the first has an unfair advantage if rows were copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.roles import Roles, read_columns
from fairmaxent.data.table import Codes, Reals, Table
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.evaluation.nearest import Done, Rows, shuffled
from fairmaxent.evaluation.pooled import Pooled
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.intervals import share_interval
from fairmaxent.metrics.trial import OVERALL, REPLICATES, Run, Score, Scores, Trial, predict_outcomes, with_range
from fairmaxent.relabelling.labellers import Labeller, choose_labeller, name_of
from fairmaxent.relabelling.people import People

JUDGED = 0.3  # of the real rows, if there is no control
FEWEST = 10  # rows to learn from, and to be judged on
MOST_JUDGED = 20_000  # people; more would only make the intervals narrower


@dataclass(frozen=True)
class GroupScores:
    """What a model decides about one group."""

    column: str
    group: str
    people: int
    accuracy: Score
    favourable: Score | None
    """Share of the people who are given the favourable outcome; None: nobody said which outcome that is."""


@dataclass(frozen=True)
class Learning:
    """How a model decides."""

    auc: Score | None
    accuracy: Score | None
    rates: dict[str, Score | None]
    """Statistical rate of its decisions, by protected column: the lowest over the highest group's."""
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
    auc_lost: Score | None
    """How much larger the AUC of the model trained on the real table is."""

    @property
    def models(self) -> dict[str, Learning]:
        """Both models, by what they were trained on."""
        return {"new rows": self.new, "real rows": self.real}


def utility(
    pooled: Pooled,
    outcome: str,
    protected: str | Sequence[str] | None,
    *,
    favourable: object,
    confidence: float,
    rng: np.random.Generator,
    done: Done = lambda share: None,
) -> Utility:
    """Train both models and judge them."""
    school = _School.of(pooled, outcome, protected, favourable)
    judged_on: Literal["control", "real"] = "control" if "control" in pooled.parts else "real"
    real = np.arange(pooled.rows("real"))
    if judged_on == "control":
        judged = shuffled(pooled, "control", rng, MOST_JUDGED)
    else:
        judged = np.sort(rng.permutation(real)[: min(round(JUDGED * len(real)), MOST_JUDGED)])
        real = np.setdiff1d(real, judged)
    new = np.arange(pooled.parts["new"].start, pooled.parts["new"].stop)
    for rows, what in ((real, "real rows"), (new, "new rows"), (judged, f"{judged_on} rows to judge models on")):
        if len(rows) < FEWEST:
            raise InputError(
                f"there are {len(rows)} {what}, too few to train and judge models (at least {FEWEST}); pass more, or "
                "leave out ",
                Option("outcome"),
            )
    trials = []
    for step, rows in enumerate((new, real)):
        trials.append(_Judged.of(school.trial(rows, judged)))
        done((step + 1) / 2)
    first, second = trials
    lost = _estimated(
        second.values["auc"][OVERALL] - first.values["auc"][OVERALL],
        second.drawn["auc"][OVERALL] - first.drawn["auc"][OVERALL],
        confidence,
    )
    return Utility(
        outcome=outcome,
        model=name_of(school.model),
        judged_on=judged_on,
        people=len(judged),
        new=school.learning(first, confidence),
        real=school.learning(second, confidence),
        auc_lost=lost,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """A trial with its scores, also if other people had been judged: the same ones in every trial."""

    trial: Trial
    values: Scores
    drawn: Scores

    @classmethod
    def of(cls, trial: Trial) -> _Judged:
        return cls(trial, trial.scores(trial.sums()), trial.scores(trial.replicates(REPLICATES, elsewhere=False)))


@dataclass(frozen=True, eq=False)
class _School:
    """Everybody in all tables, as models see them."""

    roles: Roles
    people: People
    favourable: tuple[int, ...]
    named: bool  # somebody said which outcome is favourable
    model: Labeller

    @classmethod
    def of(cls, pooled: Pooled, outcome: str, protected: str | Sequence[str] | None, favourable: object) -> _School:
        domain, encoded = pooled.learned
        names = [] if protected is None else read_columns("protected", protected)
        for name in (outcome, *names):
            if not isinstance(name, str):
                raise ColumnError(Option("outcome"), f" is a {type(name).__name__}; pass the name of a column")
            pooled.column(name)
        roles = Roles.of(domain, outcome, names) if names else Roles(domain, domain.index(outcome), ())
        if roles.attributes[0].size < 2:
            raise InputError(
                f"outcome column {outcome!r} has the same value in all rows, so there is nothing to learn; name "
                "another one, or leave out ",
                Option("outcome"),
            )
        table = Table.compress(roles.blocks.pool(encoded.codes), roles.blocks.levels)
        people = People.of(roles, table, table.counts, positions=encoded.positions, design=None)
        return cls(roles, people, roles.favourable_levels(favourable), favourable is not None, choose_labeller(roles))

    def trial(self, rows: Rows, judged: Rows) -> Trial:
        """Let the model learn from some rows and decide about others."""
        members = np.zeros(len(self.people.row), dtype=np.int64)
        members[rows] = 1
        chances = self.model.learn(self.people.lesson(members))(self.people.inputs.take(judged))
        return Trial(
            truth=self.people.outcome[judged],
            group=self.people.group[judged],
            weights=np.ones(len(judged)),
            runs=[Run(np.zeros(len(judged), dtype=np.intp), chances)],
            favourable=self.favourable,
            groupings={"": self._of_column[0]} | dict(self._columns()),
        )

    @cached_property
    def _of_column(self) -> list[Codes]:
        """Of everybody together and of each protected column: the group that each combination of levels is in."""
        shape = self.roles.blocks.shape(0)[1:]
        combinations = np.arange(int(np.prod(shape, dtype=np.int64)))
        return [np.zeros_like(combinations), *(np.unravel_index(combinations, shape) if shape else ())]

    def _columns(self) -> Iterator[tuple[str, Codes]]:
        return zip(self.roles.names[1:], self._of_column[1:], strict=True)

    def learning(self, judged: _Judged, confidence: float) -> Learning:
        """The scores of a trial."""

        def estimated(quantity: str, name: str) -> Score | None:
            return _estimated(judged.values[quantity][name], judged.drawn[quantity][name], confidence)

        return Learning(
            auc=estimated("auc", OVERALL),
            accuracy=estimated("accuracy", OVERALL),
            rates={name: estimated("by_predictions", name) for name in self.roles.names[1:]},
            groups=tuple(self._groups(judged.trial, confidence)),
        )

    def _groups(self, trial: Trial, confidence: float) -> Iterator[GroupScores]:
        decided = predict_outcomes(trial.runs[0].chances, self.favourable, trial.threshold)
        right, given = decided == trial.truth, np.isin(decided, self.favourable)
        for attribute, (name, codes) in zip(self.roles.attributes[1:], self._columns(), strict=True):
            for level, label in enumerate(attribute.labels):
                members = codes[trial.group] == level
                if members.any():
                    yield GroupScores(
                        column=name,
                        group=label,
                        people=int(members.sum()),
                        accuracy=_share(right[members], confidence),
                        favourable=_share(given[members], confidence) if self.named else None,
                    )


def _share(happened: NDArray[np.bool_], confidence: float) -> Score:
    rates, sizes = np.array([happened.mean()]), np.array([float(len(happened))])
    low, high = share_interval(EffectiveCounts.of_rates(rates, sizes), confidence)
    return Score(float(rates[0]), float(low[0]), float(high[0]))


def _estimated(value: Reals, drawn: Reals, confidence: float) -> Score | None:
    """A score with the middle of what other people would give; None if there is none."""
    score = with_range(float(value[0]), drawn, confidence)
    return None if np.isnan(score.low) else score
