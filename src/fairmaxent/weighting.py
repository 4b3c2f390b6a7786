"""Weights w on the distinct rows, from the table that the rows should have."""

from __future__ import annotations

import numpy as np

from fairmaxent.table import Codes, Reals


def reweigh(codes: Codes, counts: Reals, table: Reals) -> Reals:
    """w(α) ∝ n_α · t(cell(α)) / e(cell(α)): keeps p(x | y, z) and moves the mass of the cells.

    ``codes`` are block codes, root first; ``table`` is t over the levels of the root. Cells without rows can
    get no weight here, so the result is normalised.
    """
    cells = codes[:, 0]
    empirical = np.bincount(cells, weights=counts, minlength=len(table))
    weights = counts * np.divide(table, empirical, out=np.zeros(len(table)), where=empirical > 0)[cells]
    return np.asarray(weights / weights.sum())
