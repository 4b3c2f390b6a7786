"""Sums of exponentials and entropies, in log space."""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals


def log_sum_exp(values: Reals, axis: int = -1) -> Reals:
    """log Σ e^{value} along an axis, −∞ for an empty sum.

    Written out because it stands in every inner loop, where SciPy's checks cost more than the sum.
    """
    top = values.max(axis=axis, keepdims=True)
    if np.isfinite(top).all():
        return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis=axis))
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis=axis))


def softmax(scores: Reals) -> tuple[float, Reals]:
    """log Σ e^{score} and the normalised e^{score}; all zero where every score is −∞."""
    log_partition = float(log_sum_exp(scores))
    if np.isneginf(log_partition):
        return log_partition, np.zeros_like(scores)
    return log_partition, np.exp(scores - log_partition)


def entropy(shares: Reals) -> float:
    """H = −Σ p log p in nats; shares of zero add nothing.

    >>> round(entropy(np.array([0.5, 0.5, 0.0])), 6)
    0.693147
    """
    present = shares[shares > 0]
    return float(-(present * np.log(present)).sum())
