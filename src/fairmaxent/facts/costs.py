"""Costs: what the fair table costs each group.

The numbers are those that a group-by on the delivered rows or weights gives.

The weight of an input row is 1 on average. In a relabelled fit a row is split between
outcomes, and its weight is the sum of its parts: one person stays one person.
"""

from dataclasses import KW_ONLY, dataclass

from fairmaxent.data.table import FEWEST_ROWS, MOST_TIMES


@dataclass(frozen=True)
class GroupCost:
    """What one group, or one cell of outcome and groups, rests on."""

    grouping: str  # its columns
    name: str
    rows: int  # of the data
    before: float  # its share of the data
    after: float  # its share of the fair distribution
    # how many equally weighted rows carry as much information as its fair weights
    effective_rows: float
    # the largest fair weight of one input row; 1 is the average of all rows
    most_weight: float
    # of one input row, expected among as many drawn rows as the data have; see
    # `measure_costs`. NaN: not known, where only cells were fitted
    most_copies: float
    _: KW_ONLY
    targeted: bool = False  # whether its share follows from shares that the user named
    compared: bool = True  # whether its rates are; missing values mostly are not

    @property
    def times(self) -> float:
        """How many times one person counts, in weights or in drawn rows."""
        return max(self.most_weight, self.most_copies)

    @property
    def grows(self) -> bool:
        """Whether its share does."""
        return self.after > self.before * (1 + 1e-6)

    @property
    def beyond_line(self) -> bool:
        """Whether it rests on too few people, or one of them counts too often."""
        few = self.compared and self.effective_rows < FEWEST_ROWS
        return self.after > 0 and (few or self.times > MOST_TIMES)


@dataclass(frozen=True)
class ChangedOutcome:
    """How many people of a group get one outcome in the place of another.

    A relabelled person has each outcome with a probability: their fair weight for it
    divided by their whole weight. ``changed`` is the sum of these over the people
    recorded with the outcome ``old``: the expected number.
    """

    grouping: str
    group: str
    people: int  # in the group, whatever their outcome
    old: str
    new: str
    changed: float


@dataclass(frozen=True)
class Costs:
    """What each group rests on, and the cell in which one person counts most."""

    groups: tuple[GroupCost, ...]
    worst_cell: GroupCost
    effective_rows: float  # of all rows together
    changed: tuple[ChangedOutcome, ...] = ()  # none: every row keeps its outcome
