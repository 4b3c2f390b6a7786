"""Who belongs to which group, as far as anybody knows, and what chance leaves open.

Two estimands follow, and what is said of either names it. **These people** may have
other true groups than those that are likely: tables are drawn with π as it may be, and
with everybody's group (`true_tables`). **People like these** are others besides: a cell
whose weight is like that of k unweighted rows has a mass proportional to Gamma(k + ½),
as in the Bayesian bootstrap (Rubin, 1981) with Jeffreys' prior. Without its half row, a
cell that nobody is in would be certain to stay empty, and a rate of zero would have no
interval. If groups are certain, these people have the table that they have, and what is
known of people like these is in `metrics.intervals`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.data.table import Reals, ratio
from fairmaxent.fairness.likely import Learned, bounds, contradiction, true_tables
from fairmaxent.fairness.people import People

_DRAWS = 400
_HALF_A_ROW = 0.5
# streams of random numbers: of the groups of these people, and of other people
_THESE = 0
_OTHERS = 1


@dataclass(frozen=True, eq=False)
class Membership:
    """People, and what tells the group of each.

    The same data have the same random numbers, whatever their order. Other data have
    others, as else what is by chance too narrow would be so for everybody.
    """

    told_by: str
    people: People

    @cached_property
    def learned(self) -> Learned:
        """What outcomes tell about groups."""
        return Learned.of(self.people)

    @property
    def shares(self) -> Reals:
        """q of each of the people, by what is assumed."""
        return self.learned.memberships[self.told_by]

    def table(self, values: Reals) -> Reals:
        """Values of people, shared between groups."""
        return self.people.table(self.shares, values)

    def assumed(self, weight: Reals) -> Mapping[str, Reals]:
        """The same of weights, by each thing that may tell the group."""
        return {
            told_by: self.people.table(own, weight)
            for told_by, own in self.learned.memberships.items()
        }

    @cached_property
    def contradiction(self) -> float | None:
        """p-value of "names"; None: it cannot be tested."""
        return contradiction(self.people, self.learned.rates)

    def true_tables(self, factor: Reals) -> Reals:
        """Tables that the true groups of these people may have, counting d·factor."""
        rng = self._generator(_THESE)
        draws = self.learned.draws(_DRAWS, rng, self.told_by)
        return true_tables(self.people, self.shares, factor, draws, rng)

    def bounds(self, factor: Reals) -> tuple[Reals, Reals]:
        """Tables at least and at most, whatever tells the group."""
        return bounds(self.people, factor)

    def like_these(self, tables: Reals, weight: Reals, squares: Reals) -> Reals:
        """Such tables of people like these: who is in them is left to chance, too.

        ``weight`` and its ``squares`` are the sums that are seen in each cell.
        """
        rng = self._generator(_OTHERS)
        # what a row that counts alone weighs, and how many such rows there are
        usual = squares.sum() / weight.sum()
        each = ratio(squares, weight, usual)
        return each * rng.gamma(tables / each + _HALF_A_ROW)

    def _generator(self, stream: int) -> np.random.Generator:
        """One for data with so many people, and so many different p, in each cell."""
        alike = ratio(self.people.weight**2, self.people.squares)  # who stand together
        counts = [round(float(alike[part].sum())) for _, part in self.people.cells]
        return np.random.default_rng([stream, *counts, *self.people.starts.tolist()])
