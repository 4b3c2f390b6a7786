"""How well columns predict a protected column, or the outcome: by mutual information, less what chance predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import tally
from fairmaxent.data.weights import effective_rows
from fairmaxent.maxent.logspace import entropy

# A column that predicts at least this share of a protected one is worth naming.
NOTABLE = 0.01


@dataclass(frozen=True)
class Proxy:
    """How well a column predicts a protected one: 0 is no better than chance, 1 is perfect."""

    column: str
    protected: str
    strength: float


def proxies(roles: Roles, codes: Codes, design: Reals | None) -> list[Proxy]:
    """Every column but the outcome against every protected one, the strongest first."""
    names = roles.domain.names
    each = (
        Proxy(names[other], names[group], strength)
        for group in roles.protected
        for other, strength in predictors(roles, group, codes, design)
        if other != roles.outcome
    )
    return sorted(each, key=lambda proxy: -proxy.strength)


def predictors(roles: Roles, wanted: int, codes: Codes, design: Reals | None) -> Iterator[tuple[int, float]]:
    """How well each other column predicts one, by their numbers."""
    sizes = roles.domain.sizes
    rows = len(codes) if design is None else float(effective_rows(design.sum(), (design**2).sum()))
    for other in range(len(sizes)):
        if other != wanted:
            table = tally(codes[:, wanted].astype(np.intp) * sizes[other] + codes[:, other], design, 0)
            table = np.append(table, np.zeros(sizes[wanted] * sizes[other] - len(table)))
            yield other, predicted_share(table.reshape(sizes[wanted], sizes[other]), rows)


def predicted_share(table: Reals, rows: float) -> float:
    """Share of the entropy of a table's rows that its columns predict, less what chance alone would predict.

    >>> predicted_share(np.array([[50.0, 0.0], [0.0, 50.0]]), 100)
    1.0
    >>> predicted_share(np.array([[25.0, 25.0], [25.0, 25.0]]), 100)
    0.0
    """
    joint = table / table.sum()
    first, second = joint.sum(axis=1), joint.sum(axis=0)
    total = entropy(first)
    chance = (np.count_nonzero(first) - 1) * (np.count_nonzero(second) - 1) / (2 * rows)
    if total <= chance:
        return 0.0
    predicted = total + entropy(second) - entropy(joint.ravel())
    return float(np.clip((predicted - chance) / (total - chance), 0.0, 1.0))
