"""Kinds of arrays that the whole library passes around."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer]
Reals = NDArray[np.float64]
Mask = NDArray[np.bool_]
Positions = Mapping[int, NDArray[np.unsignedinteger]]  # of each input row's raw value in Attribute.values, by attribute
