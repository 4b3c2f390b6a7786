"""A prior as a worker sees it: with the rows of one partition instead of all rows."""

from __future__ import annotations

import numpy as np

from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows


def attached(prior: Prior, rows: Rows, log_share: float = 0.0) -> Mixture | None:
    """Put the rows of a partition into a prior, and scale the shares of its other parts by exp(``log_share``).

    None if nothing is left: the prior consists of rows only, and the partition has none of positive weight.
    """
    parts, log_shares = (prior.parts, prior.log_shares) if isinstance(prior, Mixture) else ((prior,), np.zeros(1))
    kept = [
        (rows, share) if isinstance(part, Rows) else (part, share + log_share)
        for part, share in zip(parts, log_shares, strict=True)
        if not isinstance(part, Rows) or rows.rows
    ]
    return Mixture(tuple(part for part, _ in kept), np.array([share for _, share in kept])) if kept else None
