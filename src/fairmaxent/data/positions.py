"""Positions: which raw value each row has where a level stands for several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

DetailOption = Literal["rows", "bins"]
Positions = Mapping[int, NDArray[np.unsignedinteger]]  # of each input row's raw value in Attribute.values, by attribute
