"""Weights on rows that give them a table: the paper's Algorithm 1, reweighing to any table, and the largest weight.

`capped` is the closest table to a fair one in which no row counts more than a number of times; rates are then reached
as far as that allows. It is t' = min(L·e, t·Π factors), with one factor for each level of the marginals that are kept
(Csiszár): each marginal in turn gets its factors until all of them hold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.table import Counted, Reals
from fairmaxent.errors import InfeasibleError, Option, SolverError
from fairmaxent.fairness.rates import check_rate

_TOLERANCE = 1e-13
_MOST_ROUNDS = 10_000


def capped(table: Reals, data: Reals, largest: float, kept: Sequence[tuple[int, ...]]) -> Reals:
    """Return t' of smallest KL(t'‖t) with t'(c) <= L·e(c) in all cells with rows, and the data's marginals of ``kept``.

    Cells that nobody is in have no limit. Marginals are named by their axes; () is the total.

    >>> capped(np.array([0.5, 0.5]), np.array([0.9, 0.1]), 2.0, [()])
    array([0.8, 0.2])
    """
    limit = np.where(data > 0, largest * data, np.inf)
    if (table <= limit).all():
        return table
    factors = np.ones_like(table)
    for _ in range(_MOST_ROUNDS):
        for axes in kept:
            _fit_marginal(table, limit, factors, data, axes)
        result = np.minimum(table * factors, limit)
        if max(_miss(result, data, axes) for axes in kept) <= _TOLERANCE:
            return np.asarray(result / result.sum())
    raise SolverError("no table with this largest weight was reached; allow a larger one")


def _miss(table: Reals, data: Reals, axes: tuple[int, ...]) -> float:
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    return float(np.abs(table.sum(axis=others) - data.sum(axis=others)).max())


def _fit_marginal(table: Reals, limit: Reals, factors: Reals, data: Reals, axes: tuple[int, ...]) -> None:
    """Multiply the factors of each level of a marginal, so that it has the data's mass."""
    moved = [np.moveaxis(values, axes, range(len(axes))) for values in (table, limit, factors, data)]
    for level in np.ndindex(*moved[0].shape[: len(axes)]):
        cells, ceiling, multiplied, mass = (values[level] for values in moved)
        wanted = float(mass.sum())
        if wanted > 0:
            multiplied *= _factor((cells * multiplied).ravel(), ceiling.ravel(), wanted)


def _factor(cells: Reals, ceiling: Reals, wanted: float) -> float:
    """Solve Σ min(f·cells, ceiling) = wanted for f: the sum is piecewise linear, and bends where a cell is full."""
    positive = cells > 0
    bends = np.full(len(cells), np.inf)
    bends[positive] = ceiling[positive] / cells[positive]
    order = np.argsort(bends, kind="stable")
    full = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(bends), ceiling, 0.0)[order])])
    open_mass = np.concatenate([np.cumsum(cells[order][::-1])[::-1], [0.0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        candidates = (wanted - full) / open_mass
    ends = np.concatenate([bends[order], [np.inf]])
    fits = np.flatnonzero((open_mass > 0) & (candidates <= ends * (1 + 1e-15)))
    return float(candidates[fits[0]]) if len(fits) else float(bends[positive].max(initial=1.0))


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
