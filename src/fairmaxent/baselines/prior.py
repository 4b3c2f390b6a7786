"""The paper's prior q_C^w, without the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairmaxent.baselines.data import CodedData
from fairmaxent.baselines.new_rows import NewRows
from fairmaxent.baselines.shares import equal_shares
from fairmaxent.data.domain import Domain
from fairmaxent.fairness.weights import reweigh
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.request import check_share
from fairmaxent.maxent.priors.bases import build_base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows


def prior(
    frame: Any,
    outcome: str,
    protected: str | Sequence[str],
    *,
    base_share: float = 0.5,
    domain: Domain | None = None,
    random_state: int | None = None,
) -> NewRows:
    """Return the prior q_C^w = C·u + (1 − C)·w: u uniform over the domain, w the weights of Algorithm 1 at τ = 1.

    ``base_share`` is C. With k joint groups that have rows, w has the table t(y, z) = P(y)/k; with two groups this is
    Algorithm 1.
    """
    share = check_share("base_share", base_share)
    data = CodedData.read(frame, outcome, protected, domain=domain, random_state=random_state)
    wanted = np.outer(data.outcome_shares, equal_shares(data))
    data.refuse_empty_cells(wanted)
    blocks, table = data.blocks, data.table
    weighted = reweigh(table, wanted.ravel())
    base = build_base("uniform", blocks, table, weighted, root=wanted.ravel())
    mixed = Mixture.of((share, 1 - share), (base, Rows.of(blocks, weighted.collect())))
    return NewRows(data, Distribution(data.roles.domain, blocks, mixed, np.zeros(blocks.width)))
