"""Membership: from the new rows, somebody tells who was in the real table.

The attack compares distances: people of the real table may be nearer to a new row than other people are. It needs
control rows, which are people who were not in the real table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.evaluation.success import Judgement, SuccessRate
from fairmaxent.metrics.trial import area_under_curve

RARE = 0.01  # of the people outside may be accused wrongly


@dataclass(frozen=True)
class Membership:
    """How well distances tell people of the real table from other people."""

    auc: float
    """How often somebody of the real table is nearer to a new row than somebody else is; ½ is chance."""
    low: float
    high: float
    rarely_wrong: float
    """Share of the real table that is recognised, if one in a hundred other people may be taken for members."""
    attempts: int

    @property
    def advantage(self) -> tuple[float, float, float]:
        """2·AUC − 1 with its interval: 0 is chance, 1 is certainty, like the other risks."""
        value, low, high = (max(0.0, 2 * end - 1) for end in (self.auc, self.low, self.high))
        return value, low, high

    def judged(self, limit: float) -> Judgement:
        """Whether the advantage is above the limit, as far as that is known."""
        _, low, high = self.advantage
        return "low" if high <= limit else "high" if low > limit else "uncertain"


def membership(real: Reals, control: Reals, *, confidence: float) -> Membership:
    """Judge an attack by the distances of people of both kinds to their nearest new row."""
    distances = np.concatenate([real, control])
    inside = np.arange(len(distances)) < len(real)
    auc = area_under_curve(inside, -distances, np.ones(len(distances)))
    error = NormalDist().inv_cdf((1 + confidence) / 2) * _standard_error(real, control)
    return Membership(auc, max(0.0, auc - error), min(1.0, auc + error), _rarely_wrong(real, control), len(distances))


def _rarely_wrong(real: Reals, control: Reals) -> float:
    """The share of the real table within the distance that one in a hundred others has; ties count in part."""
    distances = np.unique(np.concatenate([real, control]))
    inside, outside = (np.sort(ones).searchsorted(distances, side="right") / len(ones) for ones in (real, control))
    return float(np.interp(RARE, np.append(0.0, outside), np.append(0.0, inside)))


def _standard_error(real: Reals, control: Reals) -> float:
    """DeLong's standard error of the area under the curve, from how many of the others each person is before."""
    order = np.sort(control), np.sort(real)
    beats = [
        (other.searchsorted(ones, side="left") + other.searchsorted(ones, side="right")) / (2 * len(other))
        for ones, other in zip((real, control), order, strict=True)
    ]
    variances = [part.var(ddof=1) / len(part) if len(part) > 1 else 0.25 for part in beats]
    # With few people, all of them may be on one side, which does not make the answer certain.
    least = SuccessRate.of(0, min(len(real), len(control)), 0.95).error / 2
    return max(math.sqrt(sum(variances)), least)
