"""Confidence intervals of shares, of ratios between groups, and of differences between groups.

A rate is a minimum over pairs of groups, so the pair that looks worst is partly the unluckiest one. The interval allows
for that: log P(a) − log P(b) gets a delta-method interval for *every* pair of groups at once (Bonferroni), and the
rate's ends are the smallest lower and the smallest upper end. With two groups it is the usual interval of a risk ratio.
The largest difference between groups is treated the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.errors import InputError

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class ComparedRates:
    """Rates of groups that are compared with each other, and the effective number of rows behind each.

    `are_shares`: they are shares of the same rows (multinomial), otherwise rates of separate rows (binomial).
    """

    rates: Reals
    sizes: Reals
    are_shares: bool


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1)."""
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}; it must lie between 0 and 1, e.g. 0.95")


def interval_text(interval: Interval | None) -> str:
    """An interval in words, to be put after its value; nothing for an exact value."""
    return "" if interval is None else f" (between {interval[0]:.3f} and {interval[1]:.3f})"


def normal_quantile(probability: float) -> float:
    """Return the standard normal distribution's quantile."""
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(probability)


def wilson_interval(share: Reals, size: Reals, z: float) -> tuple[Reals, Reals]:
    """Wilson's interval of a share that was observed in `size` rows."""
    centre = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def ratio_interval(comparisons: Sequence[ComparedRates], value: float, confidence: float) -> Interval:
    """Interval of the smallest ratio over all comparisons, which is `value`: simultaneous for all pairs of groups."""
    pairs = sum(len(compared.rates) * (len(compared.rates) - 1) // 2 for compared in comparisons)
    z = _simultaneous_quantile(confidence, pairs)
    ends = [_smallest_ends(compared, z) for compared in comparisons if len(compared.rates) > 1]
    low, high = (min((end[side] for end in ends), default=1.0) for side in (0, 1))
    return min(low, value), max(min(high, 1.0), value)


def difference_interval(differences: Reals, variances: Reals, confidence: float) -> Interval:
    """Interval of the largest absolute difference over all pairs of groups; values lie between −1 and 1."""
    margins = _simultaneous_quantile(confidence, len(differences)) * np.sqrt(variances)
    low, high = (np.abs(differences) - margins).max(), (np.abs(differences) + margins).max()
    return max(0.0, float(low)), min(2.0, float(high))


def _simultaneous_quantile(confidence: float, pairs: int) -> float:
    """Normal quantile at which the intervals of that many pairs all hold together (Bonferroni)."""
    return -normal_quantile((1 - confidence) / 2 / max(pairs, 1))


def _smallest_ends(compared: ComparedRates, z: float) -> Interval:
    """Smallest lower and smallest upper end of a ratio over all pairs; half a row keeps empty cells finite."""
    rows = compared.rates * compared.sizes + 0.5
    logs = np.log(rows / (compared.sizes + 1))
    # Shares compete for the same rows (multinomial); rates of groups are independent (binomial).
    variance = 1 / rows - (0.0 if compared.are_shares else 1 / (compared.sizes + 1))
    difference = logs[:, np.newaxis] - logs
    margin = z * np.sqrt(np.maximum(variance[:, np.newaxis] + variance, 0.0))
    itself = np.eye(len(rows), dtype=bool)
    low, high = (float(np.exp(np.where(itself, np.inf, difference + sign * margin).min())) for sign in (-1, 1))
    return low, high
