"""Small groups: too little is known about them to decide a headline or a verdict.

They are *set apart*: not compared, and listed beside what is said about the others,
with their number and their own rate. Who they are depends on people and outcomes of the
data alone, and within strata on those of the stratum.
"""

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import unfit

SmallestGroupOption = int | str | None

_EXPECTED = 5.0
_NOTHING = 1e-9  # a share that may be a rounding error
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True)
class SmallGroups:
    """Who is set apart: nobody, unless one of the numbers is above 0.

    A group is too small for an outcome if fewer than `expected` of its rows would have
    it, or would not have it, if it had it as often as all rows. A person more or less
    then changes its rate so much that it says nothing. Rows with weights count as the
    unweighted rows that tell as much. If nobody has the outcome, or everybody, all
    groups are equal, however small they are.
    """

    expected: float = 0.0
    rows: float = 0.0
    share: float = 0.0  # of all weight

    @classmethod
    def of(cls, asked: Any) -> Self:
        """Read the option: None, a number of rows, or a share such as "2%"."""
        if asked is None:
            return cls(expected=_EXPECTED)
        if isinstance(asked, cls):
            return asked
        if isinstance(asked, int) and not isinstance(asked, bool) and asked >= 0:
            return cls(rows=asked)
        percent = _PERCENT.fullmatch(asked) if isinstance(asked, str) else None
        if percent is None or not float(percent[1]) < 100:
            raise unfit(
                "smallest_group",
                asked,
                "it takes a number of rows, e.g. 30, or a share of"
                ' the people compared, e.g. "2%"',
            )
        return cls(share=float(percent[1]) / 100)

    @property
    def are_chosen(self) -> bool:
        """Whether somebody named a size, below which not even sizes are compared."""
        return max(self.rows, self.share) > 0

    def times(self, factor: float) -> "SmallGroups":
        """The same groups, if every row stands for so many."""
        return SmallGroups(self.expected * factor, self.rows * factor, self.share)

    def among(self, sizes: Reals, rates: Reals, people: Reals, weight: Reals) -> Mask:
        """Which groups (last axis) are too small, for each outcome (the axis before).

        ``sizes`` are the rows behind each rate, ``people`` and ``weight`` those of each
        group, whatever its outcomes.
        """
        all_weight = weight.sum(axis=-1, keepdims=True)
        few = (people < self.rows) | (weight < self.share * all_weight)
        known = np.nan_to_num(sizes)
        having = (known * np.nan_to_num(rates)).sum(axis=-1, keepdims=True)
        pooled = having / np.maximum(known.sum(axis=-1, keepdims=True), 1.0)
        rarer = np.minimum(pooled, 1 - pooled)
        too_few = (known * rarer < self.expected) & (rarer > _NOTHING)
        return few[..., None, :] | too_few
