"""Positions: which raw value each row has where a level stands for several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain

DetailOption = Literal["rows", "bins"]
Positions = Mapping[int, NDArray[np.unsignedinteger]]  # of each input row's raw value in Attribute.values, by attribute


def read_positions(domain: Domain, frame: nw.DataFrame[Any]) -> Positions:
    """Return where each row's raw value stands, for the columns whose levels stand for several.

    Raises :class:`fairmaxent.LevelError` for a value that was not there when the domain was learned.
    """
    found = {}
    for index, attribute in enumerate(domain.attributes):
        if not attribute.is_value_coded:
            codes, values = frames.factorize(frames.column(frame, attribute.name))
            found[index] = attribute.positions_of(values)[codes]
    return found
