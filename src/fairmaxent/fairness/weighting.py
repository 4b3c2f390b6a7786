"""Weights w on the distinct rows, from the table that the rows should have."""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import Counted


def reweigh(rows: Counted, table: Reals) -> Counted:
    """w(α) ∝ n_α · t(cell(α)) / e(cell(α)): keeps p(x | y, z) and moves the mass of the cells.

    ``rows`` are in block codes, root first; ``table`` is t over the levels of the root. Cells without rows can get no
    weight here, so the result is normalised.
    """
    (empirical,) = rows.tables([(0,)], [len(table)])
    factor = np.divide(table, empirical, out=np.zeros(len(table)), where=empirical > 0)
    return rows.reweighed(factor / (factor @ empirical))
