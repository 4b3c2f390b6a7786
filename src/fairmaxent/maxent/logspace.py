"""Sums of exponentials and entropies, in log space."""

import numpy as np

from fairmaxent.data.table import Reals


def log_sum_exp(values: Reals, axis: int = -1) -> Reals:
    """log Σ e^{value} along an axis, −∞ for an empty sum.

    Written out because it stands in every inner loop, where SciPy's checks cost more
    than the sum.
    """
    top = values.max(
        axis=axis,
        keepdims=True,
        initial=-np.inf,
    )
    if not np.isfinite(top).all():
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return _log_sum(values, top, axis)
    return _log_sum(values, top, axis)


def _log_sum(values: Reals, top: Reals, axis: int) -> Reals:
    total = np.exp(values - top).sum(axis=axis)
    return np.log(total) + top.squeeze(axis=axis)


def softmax(scores: Reals) -> tuple[float, Reals]:
    """log Σ e^{score}, and e^{score} normalised; zeros if every score is −∞."""
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


def log_gamma(x: Reals) -> Reals:
    """log Γ(x) for x > 0, to six digits.

    Γ(x) = Γ(x + 3) / (x(x + 1)(x + 2)), and Γ(x + 3) by Stirling's series. Written out
    because importing SciPy's would be paid at everybody's first fit.
    """
    z = x + 3.0
    inverse = 1 / z
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260)))
    return (
        (z - 0.5) * np.log(z)
        - z
        + 0.5 * np.log(2 * np.pi)
        + series
        - np.log(x * (x + 1) * (x + 2))
    )
