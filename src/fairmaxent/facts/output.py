"""What was delivered of a fit: rows, weights or rows to add; costs, copies, rates."""

from dataclasses import dataclass
from typing import Literal

from fairmaxent.data.levels import Notes
from fairmaxent.facts.costs import GroupCost
from fairmaxent.facts.fitted import OutcomeShare
from fairmaxent.fairness.rates import Rates
from fairmaxent.metrics.intervals import Interval

Mode = Literal["rows", "weights", "top-up"]

_NAMES = {
    "rows": "drawn rows",
    "weights": "weighted rows",
    "top-up": "old and added rows",
}
_SMALL_GAP = 0.005  # at which two digits of a rate are still as wanted


@dataclass(frozen=True)
class Copies:
    """Shares of the drawn rows that repeat a real row; None: not known without data."""

    rows: int  # that were looked at
    same_levels: float  # the same levels (bins, say) as a real row in every column
    # the same, exactly: p* of all combinations of levels in the data
    expected_same_levels: float
    same_values: float | None  # the same raw values as a real row in every column
    # the same raw values as a real row that occurs once
    same_values_as_one: float | None
    # real rows with the same raw values as another; None also where an engine has them
    twins_in_data: float | None


@dataclass(frozen=True)
class DeliveredCosts:
    """What was delivered costs; old rows that stay count as one copy more."""

    outcomes: tuple[OutcomeShare, ...]  # those that are compared
    groups: tuple[GroupCost, ...]  # none: not known for this fit
    worst_cell: GroupCost | None
    # share of combinations of outcome and groups that nobody in the data has
    filled: float
    # how often a real row's values come, shared by the rows that have them; otherwise
    # expected
    counted: bool

    def about_one(self, mode: Mode) -> str:
        """What is known of one person in a group: the head of a column."""
        if mode == "weights":
            return "largest weight"
        return "most copies" if self.counted else "expected copies"


@dataclass(frozen=True)
class Reached:
    """One rate of one grouping.

    The same number of independent draws falls into `interval` 95 % of the time.
    """

    kind: str
    grouping: str
    outcome: str | None  # the outcomes that a statistical rate compares, in words
    wanted: float | None
    from_target: bool  # what is wanted follows from shares that the user named
    before: float
    achieved: float  # exactly, by the fitted distribution
    # measured on what was delivered; None: there is nothing to compare
    delivered: float | None
    interval: Interval | None  # None: no rows were drawn
    worst_before: str
    met_exactly: bool | None  # by the fitted distribution; None: nothing was asked for
    met: bool | None  # by it, and by what was delivered
    # how far what was delivered falls short, of named shares the largest error; None:
    # not known
    gap: float | None
    # each group is within one row of the fitted distribution, so a gap is one of
    # rounding
    rounded: bool
    # a group of this grouping rests on too few people, or one of them counts too often
    costly: bool

    @property
    def nearly_met(self) -> bool:
        """Whether only rounding to whole rows keeps what was delivered from it."""
        is_small = self.gap is not None and self.gap < _SMALL_GAP
        is_rounding = self.rounded and is_small
        return bool(self.met_exactly) and self.met is False and is_rounding


@dataclass(frozen=True, kw_only=True)
class Output:
    """What was delivered, counted."""

    mode: Mode
    rows: int  # drawn or added; 0: weights come without any
    costs: DeliveredCosts
    rates: Rates
    absent: Notes  # groups and outcomes of the fit that no delivered row has
    reached: tuple[Reached, ...] = ()  # rate by rate; none: nobody asks for a verdict
    copies: Copies | None = None  # None: no row is new, or they were not counted
    is_relabelled: bool = False  # rows got other outcomes in part

    @property
    def name(self) -> str:
        """What its rates are measured on."""
        return _NAMES[self.mode]
