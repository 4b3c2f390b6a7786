"""Groups before and after, and what is known of groups that are only likely."""

from dataclasses import dataclass, field

from fairmaxent.data.likely import Reliability
from fairmaxent.data.table import Names

NEARLY = 0.95  # of a rate that is wanted, which more people would lead to


@dataclass(frozen=True)
class GroupChange:
    """One group and one outcome.

    A number that does not exist is NaN, e.g. the rate of a group without rows.
    """

    # the grouping: a protected column, or several if their intersections are compared
    column: str
    group: str
    outcome: str
    rows: int  # of the group, in the data
    share_before: float
    share_after: float
    # share after over share before: how much the average row of the group counts
    weight_factor: float
    rate_before: float
    # the interval of the rate in the data; NaN if the group is not compared
    rate_before_low: float
    rate_before_high: float
    rate_after: float
    # The rest is no part of a summary.
    name: str = field(repr=False)  # of the group, with its columns
    about: str = field(repr=False)  # the outcome, with its column
    # the share of all rows that are in the group and have the outcome
    having_before: float = field(repr=False)
    having_after: float = field(repr=False)
    # too small to decide anything: it is listed beside the others
    is_apart: bool = field(repr=False)
    # in which it is compared, if that is within strata
    stratum: str = field(repr=False)


@dataclass(frozen=True)
class Gap:
    """The clearest gap before between the largest group and another.

    Of several other groups, the interval holds for all of them together.
    """

    columns: Names
    lowest: Names  # the levels of the group that has the outcome least often
    highest: Names
    outcome: tuple[str, str]  # its column and level
    ratio: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class LikelyRate:
    """A statistical rate by groups that are probabilities, before or after."""

    grouping: str
    names: float | None  # if names tell the group
    columns: float | None  # if columns do
    bounds: tuple[float, float]  # whatever is true
    # of the true groups, by what is assumed: the mean, and 95 % of what it may be
    expected: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class LikelyFacts:
    """What is known of groups that are probabilities."""

    name: str
    told_by: str
    is_told: bool  # probabilities differ between people
    contradiction: float | None  # p-value of "names"; None: it cannot be tested
    before: tuple[LikelyRate, ...]
    after: tuple[LikelyRate, ...]  # none: nothing was made fair
    needed: int | None  # people, for rates that are nearly as wanted; None: enough
    reliability: Reliability | None = None  # None: no group is known

    @property
    def people(self) -> str:
        """Whose rates are expected: the certificate's are those of its own table."""
        return "these people" if self.after else "people like these"

    def is_about(self, grouping: str) -> bool:
        """Whether a grouping is by these groups."""
        return grouping in {rate.grouping for rate in self.before}
