"""Group shares: those closest to the data's whose representation rate is high enough."""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals


def closest_shares(shares: Reals, rate: float | None) -> Reals:
    """Return the shares s of smallest KL(s‖e) with min s / max s >= ρ; groups without mass keep none.

    The answer raises the i smallest groups to a floor l, lowers the j largest to l/ρ and keeps the others'
    proportions. For given (i, j) the clipped groups have the fixed proportions u, and their total mass A obeys
    A / (1−A) = c / e(rest) with c = e(clipped)·exp(−KL(u‖e_clipped)); the KL is then −log(c + e(rest)). All
    (i, j) are tried at once, and the feasible one of least KL is taken.

    >>> closest_shares(np.array([0.1, 0.3, 0.6]), 0.5).round(4)
    array([0.2251, 0.3247, 0.4502])
    """
    present = shares > 0
    positive = shares[present] / shares.sum() if present.any() else shares[present]
    if rate is not None and positive.min(initial=1.0) < rate * positive.max(initial=0.0) * (1 - 1e-13):
        order = np.argsort(positive, kind="stable")
        positive[order] = _clipped_shares(positive[order], rate)
    result = np.zeros_like(shares)
    result[present] = positive
    return result


def _clipped_shares(shares: Reals, rate: float) -> Reals:
    """`closest_shares` for ascending positive shares whose rate is below ρ."""
    size = len(shares)
    low, high = np.meshgrid(np.arange(1, size), np.arange(1, size), indexing="ij")
    low, high = low[low + high <= size], high[low + high <= size]
    mass, logs = (np.concatenate([[0.0], np.cumsum(values)]) for values in (shares, np.log(shares)))
    weight = low + high / rate
    rest = np.where(low + high < size, mass[size - high] - mass[low], 0.0)
    # log c = −Σ u·log(u/e) over the clipped groups, u = 1 or 1/ρ over `weight`.
    log_clipped = (logs[low] + (logs[size] - logs[size - high] + high * np.log(rate)) / rate) / weight
    clipped = np.exp(log_clipped + np.log(weight))
    floor = clipped / (clipped + rest) / weight
    scale = 1.0 / (clipped + rest)
    slack = 1e-12 * floor
    fits = (scale * shares[np.minimum(low, size - 1)] >= floor - slack) | (rest == 0)
    fits &= (scale * shares[size - high - 1] <= floor / rate + slack) | (rest == 0)
    best = int(np.argmax(np.where(fits, clipped + rest, -np.inf)))
    result = shares * scale[best]
    result[: low[best]] = floor[best]
    result[size - high[best] :] = floor[best] / rate
    return np.asarray(result / result.sum())
