"""Arrays from a file, trusted only after their type, shape and range were checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import row_keys

_LARGEST = float(np.finfo(np.float64).max)


def sound(
    array: NDArray[Any], kind: str, shape: Sequence[int], *, low: float = -_LARGEST, high: float = _LARGEST
) -> NDArray[Any]:
    """Return an array that has this kind (numpy's letter), shape and range; NaN is in no range.

    Shorter floats become float64: shares that add up to one in float32 need not do so for NumPy's generators.
    """
    if array.dtype.kind != kind or array.shape != tuple(shape):
        raise ValueError(f"expected {kind} of shape {tuple(shape)}, found {array.dtype} of shape {array.shape}")
    if array.size and not (array.min() >= low and array.max() <= high):
        raise ValueError(f"expected numbers from {low} to {high}, found {array.min()} to {array.max()}")
    return array.astype(np.float64, copy=False) if kind == "f" else array


def masses(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return numbers that are not negative."""
    return sound(array, "f", shape, low=0)


def logarithms(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return logarithms of numbers that may be zero."""
    return sound(array, "f", shape, low=-np.inf)


def distinct_codes(array: NDArray[Any], blocks: Blocks) -> NDArray[Any]:
    """Return distinct rows of block codes in lexicographic order, stored column by column as the model reads them."""
    rows = len(array)
    for column, size in zip(sound(array, "u", (rows, len(blocks.levels))).T, blocks.levels, strict=True):
        sound(column, "u", (rows,), high=size - 1)
    keys, _ = row_keys(array, blocks.levels)
    sound(np.diff(keys), "i", (rows - 1,), low=1)
    return np.asfortranarray(array)
