"""A distribution as the result of a method, and the paper's prior alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from fairmaxent.baselines.data import CodedData, MethodOptions
from fairmaxent.data import frames
from fairmaxent.data.draws import RandomState
from fairmaxent.data.roles import ColumnNames
from fairmaxent.data.table import Reals
from fairmaxent.distribution import Distribution
from fairmaxent.errors import InputError, Option
from fairmaxent.fairness.fair_table import reweigh
from fairmaxent.fit.base import check_share
from fairmaxent.maxent.priors.bases import build_base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows


@dataclass(frozen=True, eq=False, repr=False)
class NewRows:
    """A distribution over the domain, which cannot be written as weights for the rows
    of the data.
    """

    data: CodedData
    distribution: Distribution

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.distribution!r}>"

    def weights(self) -> Reals:
        """Refuse, because the distribution has mass outside the rows of the data."""
        raise InputError(
            "this method draws new rows and has no weights for your rows; use ",
            Option("mode", "rows"),
        )

    def sample(
        self, n: int, *, random_state: RandomState = None, iid: bool = False
    ) -> Any:
        """Draw ``n`` rows, outcome and groups by quota, or with ``iid=True``
        independently.
        """
        seed = self.data.random_state if random_state is None else random_state
        drawn = self.distribution.sample(n, random_state=seed, iid=iid)
        columns = self.data.frame.columns
        if tuple(columns) == self.distribution.domain.names:
            return drawn
        return frames.arrange(drawn, columns, None)

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the exact joint distribution of a few columns, with a column
        ``probability``.
        """
        return self.distribution.marginal(columns)


def prior(
    frame: Any,
    outcome: str,
    protected: ColumnNames,
    *,
    C: float = 0.5,
    **options: Unpack[MethodOptions],
) -> NewRows:
    """Return the prior q_C^w = C·u + (1 − C)·w: u uniform over the domain, w the
    weights of Algorithm 1 at τ = 1.

    With k joint groups that have rows, w has the table t(y, z) = P(y)/k; with two
    groups this is Algorithm 1.
    """
    share = check_share("C", C)
    data = CodedData.read(frame, outcome, protected, **options)
    wanted = np.outer(data.outcome_shares, data.equal_shares)
    data.refuse_empty_cells(wanted)
    blocks = data.blocks
    table = data.table
    weighted = reweigh(table, wanted.ravel())
    base = build_base("uniform", blocks, table, weighted, root=wanted.ravel())
    mixed = Mixture.of((share, 1 - share), (base, Rows.of(blocks, weighted.collect())))
    return NewRows(
        data, Distribution(data.roles.domain, blocks, mixed, np.zeros(blocks.width))
    )
