"""Weights on rows that give them a table: the paper's Algorithm 1, and reweighing to any table."""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import Counted
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.fairness.rates import check_rate


def algorithm_1(table: Reals, tau: float) -> Reals:
    """Algorithm 1 of the paper, exactly as written: t(y, z) ∝ c(y)·τ^[z=0] for a table of outcome × two groups.

    τ is the *representation* rate of the result; its statistical rate is 1 for every τ (Lemma 7.2 (3)).

    >>> algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5).round(4)
    array([[0.2333, 0.4667],
           [0.1   , 0.2   ]])
    """
    check_rate("tau", tau)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InfeasibleError(
            f"Algorithm 1 needs a table of outcome × 2 groups, but this one has shape {table.shape}; "
            "use fairmaxent.debias for more groups or more protected columns"
        )
    if not (table > 0).all():
        outcome, group = (int(index) for index in np.argwhere(table <= 0)[0])
        raise InfeasibleError(
            f"Algorithm 1 needs rows in every cell, but outcome {outcome} of group {group} has none; "
            "merge levels, or use fairmaxent.debias with ",
            Option("base_share"),
            " > 0",
        )
    weighted = np.outer(table.sum(axis=1), [tau, 1.0])
    return np.asarray(weighted / weighted.sum())


def reweigh(rows: Counted, table: Reals) -> Counted:
    """Weights w on the distinct rows that give them the table t: w(α) ∝ n_α · t(cell(α)) / e(cell(α)).

    This changes the mass of each cell and keeps p(x | y, z). `rows` are in block codes, root first; `table` is t over
    the levels of the root. Cells without rows cannot get any weight, so the result is normalised.
    """
    (empirical,) = rows.tables([(0,)], [len(table)])
    factor = np.divide(table, empirical, out=np.zeros(len(table)), where=empirical > 0)
    return rows.reweighed(factor / (factor @ empirical))
