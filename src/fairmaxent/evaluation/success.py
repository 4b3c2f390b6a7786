"""Success rates of attacks, and the risk that they stand for (Giomi et al. 2023, "A unified framework…").

An attack is tried on n people. With k successes, its rate is that of Wilson's score interval at z standard errors:

    rate = (k + z²/2) / (n + z²),   error = z / (n + z²) · √(k (n − k) / n + z²/4).

Somebody outside the real table can be attacked in the same way; what succeeds against them comes from what the rows
say of people in general. The risk is what is left: the rate beyond that of the control, as a part of what is possible,

    risk = (rate − control) / (1 − control),

with the errors of both rates carried on, and cut to [0, 1]. Without control rows, the rate itself is reported; the
risk cannot be larger, as (a − c) / (1 − c) ≤ a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

Judgement = Literal["high", "low", "uncertain", "needs control"]

LIMIT = 0.09
"""A risk above this is called high: it is what regulators accept when patients' data are published (the European
Medicines Agency's policy 0070, Health Canada)."""


@dataclass(frozen=True)
class SuccessRate:
    """How often something happened, with the error of the estimate."""

    value: float
    error: float

    @classmethod
    def of(cls, successes: float, attempts: int, confidence: float) -> SuccessRate:
        """Wilson's score interval; ``successes`` may be a mean over ways to break ties."""
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        total = attempts + z**2
        spread = successes * (attempts - successes) / attempts
        return cls((successes + z**2 / 2) / total, z / total * math.sqrt(max(spread, 0.0) + z**2 / 4))


@dataclass(frozen=True)
class Risk:
    """How much more often an attack succeeds against people in the real table than against other people."""

    value: float
    low: float
    high: float
    attempts: int
    """How many people, or guesses, were tried."""
    rate: float
    """How often it succeeded."""
    control_rate: float | None
    """How often it succeeded against control rows; None: there are none, and `value` is at least the risk."""

    @classmethod
    def of(
        cls, successes: float, attempts: int, control: tuple[float, int] | None = None, *, confidence: float
    ) -> Risk:
        """Estimate a risk from successes and attempts, with those against control rows if there are any."""
        attack = SuccessRate.of(successes, attempts, confidence)
        outside = None if control is None else SuccessRate.of(*control, confidence)
        beyond = cls.beyond(attack, outside, attempts)
        rate = None if control is None else control[0] / control[1]
        return replace(beyond, rate=successes / attempts, control_rate=rate)

    @classmethod
    def beyond(cls, attack: SuccessRate, control: SuccessRate | None, attempts: int) -> Risk:
        """Estimate a risk from two rates with their errors."""
        value, error = attack.value, attack.error
        if control is not None:
            room = max(1 - control.value, 1e-12)
            value = (attack.value - control.value) / room
            error = math.hypot(attack.error / room, control.error * (1 - attack.value) / room**2)
        low, value, high = (min(max(number, 0.0), 1.0) for number in (value - error, value, value + error))
        return cls(value, low, high, attempts, attack.value, None if control is None else control.value)

    def judged(self, limit: float = LIMIT) -> Judgement:
        """Whether the risk is above the limit, as far as that is known."""
        if self.high <= limit:
            return "low"
        if self.control_rate is None:
            return "needs control"
        return "high" if self.low > limit else "uncertain"
