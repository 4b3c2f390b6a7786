"""Methods that weigh the rows of the data: none, Kamiran and Calders, King and Zeng."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairmaxent.baselines.data import CodedData, Names, WeightedRows, read_shares
from fairmaxent.data.domain import Domain


def raw(
    frame: Any, outcome: str, protected: Names, *, domain: Domain | None = None, random_state: int | None = None
) -> WeightedRows:
    """Return the data unchanged: every weight is 1."""
    data = CodedData.read(frame, outcome, protected, domain=domain, random_state=random_state)
    return WeightedRows.of(data, data.empirical)


def kamiran_calders(
    frame: Any, outcome: str, protected: Names, *, domain: Domain | None = None, random_state: int | None = None
) -> WeightedRows:
    """Reweighing: t(y, z) = P(y)·P(z), which makes outcome and group independent.

    Kamiran and Calders, "Data preprocessing techniques for classification without discrimination", 2012. The groups
    are the joint groups of the protected columns; their shares do not change.
    """
    data = CodedData.read(frame, outcome, protected, domain=domain, random_state=random_state)
    return WeightedRows.of(data, np.outer(data.outcome_shares, data.group_shares))


def king_zeng(
    frame: Any,
    outcome: str,
    protected: Names,
    *,
    shares: Mapping[Any, float] | None = None,
    domain: Domain | None = None,
    random_state: int | None = None,
) -> WeightedRows:
    """Weighting for representation: t(y, z) = wanted share(z)·P(y | z), which keeps the outcomes within each group.

    King and Zeng, "Logistic regression in rare events data", 2001, with groups instead of events.
    ``shares`` gives the share of every joint group of the protected columns, ``{"Female": 0.6, "Male": 0.4}`` for one
    column and ``{("Female", "Black"): 0.3, …}`` for several; by default all groups that have rows get equal shares.
    """
    data = CodedData.read(frame, outcome, protected, domain=domain, random_state=random_state)
    wanted = read_shares(data, shares)
    present = data.group_shares
    factor = np.divide(wanted, present, out=np.zeros_like(present), where=present > 0)
    return WeightedRows.of(data, data.empirical * factor)
