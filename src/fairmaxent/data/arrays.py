"""Kinds of arrays that the whole library passes around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer]
Reals = NDArray[np.float64]
Mask = NDArray[np.bool_]
