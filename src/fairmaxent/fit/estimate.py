"""Estimate: what a model trained on the result is expected to do, and how much work finding out takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from fairmaxent.data.frames import has_library
from fairmaxent.fairness.rates import ByGrouping
from fairmaxent.fit.option_values import Estimate, Relabel
from fairmaxent.metrics.trial import OVERALL
from fairmaxent.relabelling.labellers import TREE

# What helps if a model is not fair enough: relabelling, equal decisions too, weights instead of rows, or nothing.
Remedy = Literal["relabel", "predictions", "weights", "none"]

Range = tuple[float, float]
Ranges = Mapping[str, Mapping[str, Range | None]]  # by quantity, and by grouping or OVERALL


@dataclass(frozen=True)
class ModelScores:
    """How a model does on people it has not seen; comparisons are by grouping, None if there is nothing to compare."""

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    equalised_odds: ByGrouping  # worst ratio of true positive rates or of false positive rates
    calibration_gap: ByGrouping  # largest difference between groups in observed minus predicted rate
    decided: float | None = None  # share of people whom it decides for; of several favourable outcomes, for the rarest
    ranges: Ranges = field(default_factory=dict)  # 95 % ranges, see `metrics.trial`; fits of before have none

    def range_of(self, quantity: str, grouping: str = OVERALL) -> Range | None:
        """The range in which a quantity will be measured on other people; None if it is not known."""
        return self.ranges.get(quantity, {}).get(grouping)


@dataclass(frozen=True)
class ModelEstimate:
    """What a student, a model trained on the result, is expected to do, beside one trained on the data as they are.

    Estimated by cross-fitting: it decides about people whose rows neither it nor the fit has seen.
    """

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    threshold: float  # the probability of the favourable outcome above which it decides for it
    remedy: Remedy
    before: ModelScores
    after: ModelScores
    blind: bool = False  # it does not see the protected columns
    rounds: int = 1  # how many times people were split into folds
    people: int = 0  # whom it decided about in each round; 0: not known
    measured_on: int = 0  # the ranges are those of measurements on so many other people; 0: there are none
    remedied: ByGrouping | None = None  # rate of its decisions with the remedy, where it helps; None: it was not tried


@dataclass(frozen=True)
class NotEstimated:
    """Why there is no estimate: texts and options (`errors.Option`)."""

    why: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Deferred:
    """An estimate that is made when it is first asked for."""

    make: Callable[[], ModelEstimate | NotEstimated]

    @cached_property
    def result(self) -> ModelEstimate | NotEstimated:
        """The estimate."""
        return self.make()

    @property
    def is_done(self) -> bool:
        """Whether it was asked for already."""
        return "result" in vars(self)


Estimated = ModelEstimate | NotEstimated | Deferred | None  # None: nothing was asked for


# ---------------------------------------------------------------- how much work it is

# The work is training models: the student twice in each fold, and in a relabelled fit the labeller as well. What one
# training takes was measured for gradient boosting on tables of 500 to 30,000 rows.

FOLDS = 3

SECONDS = 10.0  # an estimate that nobody asked for takes at most this long, as far as can be expected
_CHEAP = 5.0  # seconds within which people are split into folds again
_ROUNDS = 3  # of splitting people into folds, at most
MOST_PEOPLE = 50_000  # of a larger table, that many represent all
_FEWEST_PEOPLE = 2_000  # of a larger table, fewer represent too little

_TRAINING = 0.25  # seconds of one training, whatever the table
_PER_CELL = 2e-6  # seconds for each row and column
_FIT = 0.1  # seconds of one fit, whatever the table
_TREE = 0.05  # of one training takes the rooted tree

_LABELLING = 5  # trainings of the labeller in a relabelled fit
_LOOP = 15 + 25  # trainings of the labeller and of the student in a closed loop


@dataclass(frozen=True)
class Effort:
    """How much work is put into an estimate."""

    people: int  # that it is made from
    judged: int = FOLDS  # folds that are decided about, of `FOLDS`
    rounds: int = 1


@dataclass(frozen=True)
class Work:
    """What an estimate is made of, as far as its duration goes."""

    rows: int
    columns: int  # that models see
    outcomes: int
    relabelling: Relabel | None
    plan: Estimate

    def seconds(self, effort: Effort) -> float:
        """What an estimate is expected to take, with the trial of remedies: relabelling by the tree, and weights."""
        trainings, student = 0.0, _relative(self.plan.student)
        if self.relabelling is None or self.relabelling.parity != "predictions":
            trainings += student + (_LABELLING + _LOOP) * _TREE
        if self.plan.output == "rows":
            trainings += student
        once = self._once(effort.people)
        return effort.judged * (effort.rounds * once + trainings * self._training(effort.people))

    def _once(self, people: int) -> float:
        """One fold: a fit, and a student before and after. A closed loop is not repeated."""
        training, trainings = self._training(people), 2 * _relative(self.plan.student)
        if self.relabelling is not None:
            trainings += _LABELLING * _relative(self.relabelling.labeller)
        return trainings * training + _FIT + training / 4

    def _training(self, people: int) -> float:
        learned = people * (FOLDS - 1) / FOLDS
        return (_TRAINING + _PER_CELL * learned * self.columns) * (self.outcomes if self.outcomes > 2 else 1)

    def effort_asked_for(self) -> Effort:
        """The effort for an estimate that somebody asked for: everybody, and more rounds if they are cheap."""
        people = min(self.rows, MOST_PEOPLE)
        rounds = int(_CHEAP / (FOLDS * self._once(people)))
        return Effort(people, rounds=max(1, min(_ROUNDS, rounds)))

    def effort_by_default(self) -> Effort | None:
        """The largest effort that is expected to take less than `SECONDS`; None: there is none that says enough.

        Rounds are saved first, then people; if that is not enough, only one of the folds is decided about.
        """
        asked, least = self.effort_asked_for(), min(self.rows, _FEWEST_PEOPLE)
        fewer = [replace(asked, rounds=1)]
        while fewer[-1].people > least:
            fewer.append(replace(fewer[-1], people=max(least, round(0.8 * fewer[-1].people))))
        alone = [replace(effort, judged=1) for effort in fewer]
        return next((effort for effort in (asked, *fewer, *alone) if self.seconds(effort) <= SECONDS), None)


def _relative(model: Any) -> float:
    """How long one training takes, relative to gradient boosting; a user's own classifier counts the same."""
    tree = isinstance(model, str) and model == TREE
    return _TREE if tree or (model is None and not has_library("sklearn")) else 1.0
