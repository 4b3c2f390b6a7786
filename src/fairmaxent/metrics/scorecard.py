"""Parts of a model's scorecard: predicted outcomes, the area under the curve, and calibration errors.

Everything is given as arrays: the true outcome Y of each row as a code, the model's probability of each outcome, and
the group of each row as a code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.table import tally
from fairmaxent.errors import InputError, Option


def predict_outcomes(chances: Reals, favourable: Sequence[int], threshold: float) -> Codes:
    """Predict the likeliest outcome.

    With two outcomes, one of them favourable, this one is predicted if its probability is above `threshold`.
    """
    if chances.shape[1] == 2 and len(favourable) == 1:
        (wanted,) = favourable
        return np.where(chances[:, wanted] > threshold, wanted, 1 - wanted)
    if threshold != 0.5:
        raise InputError(
            Option("threshold"),
            f" decides between two outcomes, one of them favourable, but there are {chances.shape[1]} outcomes here, "
            f"{len(favourable)} of them favourable; leave it at 0.5",
        )
    return np.asarray(chances.argmax(axis=1))


def area_under_curve(positive: Mask, score: Reals, weights: Reals) -> float:
    """Chance that a positive row scores above a negative one, a tie counting half; NaN if either kind is missing.

    >>> area_under_curve(np.array([True, False, True, False]), np.array([0.9, 0.5, 0.5, 0.1]), np.ones(4))
    0.875
    """
    _, rank = np.unique(score, return_inverse=True)
    positives, negatives = (tally(rank, weights * rows, 0) for rows in (positive, ~positive))
    pairs = positives.sum() * negatives.sum()
    return float(positives @ (np.cumsum(negatives) - negatives / 2) / pairs) if pairs > 0 else np.nan


def quantile_bins(score: Reals, weights: Reals, bins: int) -> NDArray[np.intp]:
    """Bin of each row, so that all bins have about the same weight; equal scores share a bin, and bins may be empty.

    >>> quantile_bins(np.array([0.1, 0.2, 0.2, 0.3]), np.ones(4), 2)
    array([0, 0, 0, 1])
    """
    order = np.argsort(score)
    cumulative = np.cumsum(weights[order])
    wanted = cumulative[-1] * np.arange(1, bins) / bins * (1 - 1e-12)  # bins must not hang on how weights add up
    return np.searchsorted(score[order][np.searchsorted(cumulative, wanted)], score)


def calibration_errors(
    positive: Mask, probability: Reals, group: Codes, weights: Reals, bin_of: Codes, count: int
) -> Reals:
    """Expected calibration error of each group: |share of positives − mean probability|, averaged over its bins."""
    bins = int(bin_of.max()) + 1
    cells = group.astype(np.intp) * bins + bin_of  # the product may be too large for the type of the codes
    surplus = tally(cells, weights * (positive - probability), count * bins).reshape(count, bins)
    return _per_mass(np.abs(surplus).sum(axis=1), tally(group, weights, count))


def _per_mass(sums: Reals, mass: Reals) -> Reals:
    return np.asarray(np.divide(sums, mass, out=np.full(len(mass), np.nan), where=mass > 0))
