"""A cap on weights: the closest table in which no row counts more than so many times.

Rates are then reached as far as that allows. The table is t' = min(L·e, t·Π factors),
with one factor for each level of the marginals that are kept (Csiszár): each marginal
in turn gets its factors until all of them hold.
"""

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.table import Reals, marginal
from fairmaxent.errors import SolverError
from fairmaxent.fairness.rates import Grouping

_TOLERANCE = 1e-13
_MOST_ROUNDS = 10_000


def capped(
    table: Reals,
    data: Reals,
    limit: Reals,
    kept: Sequence[Grouping],
) -> Reals:
    """Return t' of smallest KL(t'‖t) with t'(c) <= limit(c) in all cells.

    It has the data's marginals of ``kept``.

    The data must be within the limit. Marginals are named by their axes; () is the
    total.

    >>> capped(np.array([0.5, 0.5]), np.array([0.9, 0.1]), np.array([1.8, 0.2]), [()])
    array([0.8, 0.2])
    """
    if (table <= limit).all():
        return table
    factors = np.ones_like(table)
    for _ in range(_MOST_ROUNDS):
        for axes in kept:
            _fit_marginal(table, limit, factors, data, axes)
        result = np.minimum(table * factors, limit)
        errors = [marginal(result, axes) - marginal(data, axes) for axes in kept]
        if all(np.abs(error).max() <= _TOLERANCE for error in errors):
            return result / result.sum()
    raise SolverError(
        "no table with this largest weight was reached; allow a larger one"
    )


def _fit_marginal(
    table: Reals,
    limit: Reals,
    factors: Reals,
    data: Reals,
    axes: Grouping,
) -> None:
    """Multiply the factors of a marginal's levels, so that it has the data's mass."""
    moved = [
        np.moveaxis(values, axes, range(len(axes)))
        for values in (table, limit, factors, data)
    ]
    for level in np.ndindex(*moved[0].shape[: len(axes)]):
        cells, ceiling, multiplied, mass = (values[level] for values in moved)
        wanted = float(mass.sum())
        if wanted > 0:
            multiplied *= _factor((cells * multiplied).ravel(), ceiling.ravel(), wanted)


def _factor(cells: Reals, ceiling: Reals, wanted: float) -> float:
    """Solve Σ min(f·cells, ceiling) = wanted for f.

    The sum is piecewise linear, and bends where a cell is full.
    """
    positive = cells > 0
    bends = np.full(len(cells), np.inf)
    bends[positive] = ceiling[positive] / cells[positive]
    order = np.argsort(bends, kind="stable")
    ceilings = np.where(np.isfinite(bends), ceiling, 0.0)[order]
    full = np.concatenate([[0.0], np.cumsum(ceilings)])
    open_mass = np.concatenate([np.cumsum(cells[order][::-1])[::-1], [0.0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        candidates = (wanted - full) / open_mass
    ends = np.concatenate([bends[order], [np.inf]])
    fits = np.flatnonzero((open_mass > 0) & (candidates <= ends * (1 + 1e-15)))
    if len(fits):
        return float(candidates[fits[0]])
    return float(bends[positive].max(initial=1.0))
