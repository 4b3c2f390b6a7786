"""The floor: one pass over the rows in plain NumPy, what no method that looks at every
row can beat by much.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def tilted_means(
    codes: NDArray[np.integer],
    levels: Sequence[int],
    log_weights: Reals,
    potentials: Sequence[Reals],
) -> list[Reals]:
    """⟨λ, φ⟩ of every row, softmax with the weights, and the probability of each level
    of each column.
    """
    scores = log_weights.copy()
    for column, part in zip(codes.T, potentials, strict=True):
        scores += part[column]
    scores -= scores.max()
    shares = np.exp(scores)
    shares /= shares.sum()
    return [
        np.bincount(column, shares, minlength=size)
        for column, size in zip(codes.T, levels, strict=True)
    ]
