"""Utility: a model learns from the new rows and decides about real people.

Beside it stands the same model trained on the real table. Both are judged on the control rows, which neither has seen.
Without control rows they are judged on three in ten of the real rows, which the second model does not learn from; the
new rows were made from all of them, so that the first has an unfair advantage if rows were copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairmaxent.data.roles import Roles, read_columns
from fairmaxent.data.table import Mask, Reals, Table
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.evaluation.pooled import Pooled, Rows
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.intervals import share_interval
from fairmaxent.metrics.trial import OVERALL, REPLICATES, Run, Score, Trial, predict_outcomes, with_range
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
) -> Utility:
    """Train both models and judge them."""
    school = _School.of(pooled, outcome, protected, favourable, confidence)
    judged_on: Literal["control", "real"] = "control" if "control" in pooled.parts else "real"
    real, new = (np.arange(pooled.parts[name].start, pooled.parts[name].stop) for name in ("real", "new"))
    if judged_on == "control":
        judged = pooled.shuffled("control", rng, MOST_JUDGED)
    else:
        judged = np.sort(rng.permutation(real)[: min(round(JUDGED * len(real)), MOST_JUDGED)])
        real = np.setdiff1d(real, judged)
    for rows, what in ((real, "real rows"), (new, "new rows"), (judged, f"{judged_on} rows to judge models on")):
        if len(rows) < FEWEST:
            raise InputError(
                f"there are {len(rows)} {what}, too few to train and judge models (at least {FEWEST}); pass more, or "
                "leave out ",
                Option("outcome"),
            )
    (first, auc), (second, real_auc) = (school.learning(rows, judged) for rows in (new, real))
    lost = _estimated(real_auc[0] - auc[0], real_auc[1] - auc[1], confidence)
    return Utility(outcome, name_of(school.model), judged_on, len(judged), first, second, lost)


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
        cls, pooled: Pooled, outcome: str, protected: str | Sequence[str] | None, favourable: object, confidence: float
    ) -> _School:
        domain, encoded = pooled.learned
        names = [] if protected is None else read_columns("protected", protected)
        if not isinstance(outcome, str):
            raise ColumnError(Option("outcome"), f" is a {type(outcome).__name__}; pass the name of a column")
        pooled.positions([outcome, *names])
        roles = Roles.of(domain, outcome, names) if names else Roles(domain, domain.index(outcome), ())
        if roles.attributes[0].size < 2:
            raise InputError(
                f"outcome column {outcome!r} has the same value in all rows, so there is nothing to learn; name "
                "another one, or leave out ",
                Option("outcome"),
            )
        table = Table.compress(roles.blocks.pool(encoded.codes), roles.blocks.levels)
        people = People.of(roles, table, table.counts, positions=encoded.positions, design=None)
        levels = roles.favourable_levels(favourable)
        return cls(roles, people, levels, favourable is not None, choose_labeller(roles), confidence)

    def learning(self, rows: Rows, judged: Rows) -> tuple[Learning, tuple[Reals, Reals]]:
        """Let the model learn from some rows and decide about others; also its AUC, on these and on other people."""
        members = np.zeros(len(self.people.row), dtype=np.int64)
        members[rows] = 1
        chances = self.model.learn(self.people.lesson(members))(self.people.inputs.take(judged))
        # Of everybody together and of each protected column: the group that each combination of levels is in.
        shape = self.roles.blocks.shape(0)[1:]
        cells = np.arange(int(np.prod(shape, dtype=np.int64)))
        columns = dict(zip(self.roles.names[1:], np.unravel_index(cells, shape) if shape else (), strict=True))
        runs = [Run(np.zeros(len(judged), dtype=np.intp), chances)]
        truth, group, groupings = self.people.outcome[judged], self.people.group[judged], {"": 0 * cells} | columns
        trial = Trial(truth, group, np.ones(len(judged)), runs, self.favourable, groupings)
        # Also if other people had been judged: the same ones for both models.
        values, drawn = (trial.scores(sums) for sums in (trial.sums(), trial.replicates(REPLICATES, elsewhere=False)))

        def estimated(quantity: str, name: str) -> Score | None:
            return _estimated(values[quantity][name], drawn[quantity][name], self.confidence)

        auc, accuracy = (estimated(name, OVERALL) for name in ("auc", "accuracy"))
        rates = {name: estimated("by_predictions", name) for name in columns}
        learning = Learning(auc, accuracy, rates, tuple(self._groups(trial, chances)))
        return learning, (values["auc"][OVERALL], drawn["auc"][OVERALL])

    def _groups(self, trial: Trial, chances: Reals) -> Iterator[GroupScores]:
        decided = predict_outcomes(chances, self.favourable, trial.threshold)
        right, given = decided == trial.truth, np.isin(decided, self.favourable)
        for attribute in self.roles.attributes[1:]:
            for level, label in enumerate(attribute.labels):
                members = trial.groupings[attribute.name][trial.group] == level
                if members.any():
                    accuracy, share = (self._share(happened[members]) for happened in (right, given))
                    people = int(members.sum())
                    yield GroupScores(attribute.name, label, people, accuracy, share if self.named else None)

    def _share(self, happened: Mask) -> Score:
        rates, sizes = np.array([happened.mean()]), np.array([float(len(happened))])
        low, high = share_interval(EffectiveCounts.of_rates(rates, sizes), self.confidence)
        return Score(float(rates[0]), float(low[0]), float(high[0]))


def _estimated(value: Reals, drawn: Reals, confidence: float) -> Score | None:
    """A score with the middle of what other people would give; None if there is none."""
    score = with_range(float(value[0]), drawn, confidence)
    return None if np.isnan(score.low) else score
