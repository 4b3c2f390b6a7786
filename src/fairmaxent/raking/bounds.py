"""Bounds on the factor by which a weight may change, and the conjugate function that makes the dual keep to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.errors import InputError, Option

# e^700 is close to the largest float64; a score beyond it is the step of a search that went too far.
_LARGEST_SCORE = 700.0


@dataclass(frozen=True)
class Bounds:
    """low ≤ g ≤ high for the factor g of every row: its share of the new total over its share of the old one.

    The divergence d(g) = g log g − g + 1 on [low, high], infinite outside, has the conjugate Φ(u) with Φ′(u) = e^u cut
    off at low and high. So the factors of the optimum are g = Φ′(u), where u is the sum of the row's multipliers.
    """

    low: float = 0.0
    high: float = math.inf

    def factors(self, scores: Reals) -> Reals:
        """g = Φ′(u)."""
        return np.clip(np.exp(np.minimum(scores, _LARGEST_SCORE)), self.low, self.high)

    def conjugate(self, scores: Reals, factors: Reals) -> Reals:
        """Φ(u) up to a constant: e^u between the bounds, and its tangents beyond."""
        result = factors.copy()
        for bound, beyond in ((self.low, factors <= self.low), (self.high, factors >= self.high)):
            if 0 < bound < math.inf:
                result[beyond] = bound * (1 + scores[beyond] - math.log(bound))
        return result

    def curved(self, factors: Reals) -> Mask:
        """Where Φ″(u) = g, because g is strictly between the bounds; elsewhere Φ″(u) = 0."""
        return np.asarray((factors > self.low) & (factors < self.high))

    @property
    def given(self) -> bool:
        """Whether any factor is ruled out."""
        return self != Bounds()

    @property
    def text(self) -> str:
        """The bounds in words."""
        if math.isinf(self.high):
            return f"at least {self.low:g}"
        return f"at most {self.high:g}" if self.low == 0 else f"between {self.low:g} and {self.high:g}"


def read_bounds(bounds: Sequence[float | None] | None) -> Bounds:
    """Read what a user passed.

    >>> read_bounds((0.3, 3)), read_bounds((None, 5)), read_bounds(None).given
    (Bounds(low=0.3, high=3.0), Bounds(low=0.0, high=5.0), False)
    """
    if bounds is None:
        return Bounds()
    try:
        low, high = bounds
        low, high = 0.0 if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError) as problem:
        raise InputError(Option("bounds"), f" is {bounds!r}; give two numbers, such as (0.3, 3)") from problem
    if not (0 <= low <= 1 <= high and low < high):
        raise InputError(
            Option("bounds"),
            f" is ({low:g}, {high:g}); the factor of a weight is 1 on average, so give a number from 0 to 1, and then "
            "one from 1 on, such as (0.3, 3)",
        )
    return Bounds(low, high)
