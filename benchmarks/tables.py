"""Tables that are made up: columns that depend on each other through hidden numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

OUTCOME, PROTECTED = "outcome", "group"

_HIDDEN = 3  # hidden numbers per row


def correlated_codes(
    rows: int, attributes: int, levels: int, *, seed: int = 0
) -> NDArray[np.unsignedinteger]:
    """Codes of attributes with equally likely levels, column by column in memory."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, _HIDDEN)).astype(np.float32)
    codes = np.empty((rows, attributes), dtype=np.min_scalar_type(levels), order="F")
    for column in codes.T:
        column[:] = _equal_parts(
            hidden @ rng.normal(size=_HIDDEN).astype(np.float32), levels, rng
        )
    return codes


def fair_frame(rows: int, columns: int, levels: int, *, seed: int = 0) -> Any:
    """A polars frame with an unfair outcome, a group, and further columns with that
    many levels.
    """
    import polars

    codes = correlated_codes(rows, columns - 1, levels, seed=seed)
    rng = np.random.default_rng(seed + 1)
    group = rng.random(rows) < 0.4
    outcome = rng.random(rows) < 0.2 + 0.3 * group + 0.3 * codes[:, 0] / levels
    named = {OUTCOME: outcome.astype(np.uint8), PROTECTED: group.astype(np.uint8)}
    return polars.DataFrame(
        named | {f"x{number}": codes[:, number] for number in range(1, columns - 1)}
    )


def _equal_parts(
    signal: NDArray[np.float32], levels: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Cut a signal with noise into levels at the quantiles of some of its values."""
    noisy = signal + rng.normal(size=len(signal)).astype(np.float32)
    some = noisy[: max(10_000, 20 * levels)]
    return np.searchsorted(
        np.quantile(some, np.arange(1, levels) / levels).astype(np.float32), noisy
    )
