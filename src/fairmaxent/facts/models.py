"""What models do: the one that a table was made for, and one trained on the result."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairmaxent.data.table import Names
from fairmaxent.fairness.rates import ByGrouping
from fairmaxent.relabelling.rule import Way

Range = tuple[float, float]
# by quantity, and by grouping or OVERALL
Ranges = Mapping[str, Mapping[str, Range | None]]


@dataclass(frozen=True)
class DecidedShare:
    """The share of a group that was decided for, with a 95 % interval."""

    grouping: str
    group: str
    outcome: str
    share: float
    low: float
    high: float
    # the share that has the good outcome in the table that it learned from
    taught: float


@dataclass(frozen=True)
class DecidedRate:
    """The rate of decisions about other people that is expected, with a 95 % interval.

    None: there is nothing to compare.
    """

    grouping: str
    wanted: float | None
    rate: float | None
    low: float | None
    high: float | None
    vacuous: bool  # the same was decided for everybody, so the rate says nothing


@dataclass(frozen=True)
class Decisions:
    """What a student decides about people it has not learned from: `closed_loop`."""

    student: str
    hide_protected: bool
    # "decisions": about everybody; "opportunity": about those whose outcome is good
    parity: str
    threshold: float
    decided: float  # share of those people whom it decides for
    before: float  # the same of students of the data as they are
    trainings: int  # of the student on everybody, in all
    way: Way
    rates: tuple[DecidedRate, ...]
    shares: tuple[DecidedShare, ...]
    unsure: Names  # groups of too few people to promise anything
    offsets: tuple[float, ...]  # λ of each group


@dataclass(frozen=True)
class ModelScores:
    """How a model does on people it has not seen.

    Comparisons are by grouping, and None if there is nothing to compare.
    """

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    # worst ratio of true positive rates or of false positive rates
    equalised_odds: ByGrouping
    # largest difference between groups in observed minus predicted rate
    calibration_gap: ByGrouping
    # share of people whom it decides for; of several favourable outcomes, for the
    # rarest
    decided: float | None
    # in which 95 % of measurements on other people will be, see `metrics.trial`; None:
    # not known
    ranges: Ranges


@dataclass(frozen=True)
class ModelEstimate:
    """What a model trained on the result, a student, will do to people not seen."""

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    # the probability of the favourable outcome above which it decides for it
    threshold: float
    before: ModelScores  # of a model trained on the data as they are
    after: ModelScores
    hide_protected: bool  # it does not see the protected columns
    rounds: int  # how many times people were split into folds
    people: int  # whom it decided about in each round
    measured_on: int  # the ranges are those of measurements on so many other people
