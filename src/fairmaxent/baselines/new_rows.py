"""New rows, drawn from a distribution over the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.baselines.data import CodedData
from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.draws import RandomState
from fairmaxent.errors import InputError, Option
from fairmaxent.fit.distribution import Distribution


@dataclass(frozen=True, eq=False, repr=False)
class NewRows:
    """A distribution over the domain, which cannot be written as weights for the rows of the data."""

    data: CodedData
    distribution: Distribution

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.distribution!r}>"

    def weights(self) -> Reals:
        """Refuse, because the distribution has mass outside the rows of the data."""
        raise InputError("this method draws new rows and has no weights for your rows; use ", Option("mode", "rows"))

    def sample(self, n: int, *, random_state: RandomState = None, iid: bool = False) -> Any:
        """Draw ``n`` rows, outcome and groups by quota, or with ``iid=True`` independently."""
        seed = self.data.random_state if random_state is None else random_state
        drawn = self.distribution.sample(n, random_state=seed, iid=iid)
        columns = self.data.frame.columns
        return drawn if tuple(columns) == self.distribution.domain.names else frames.arrange(drawn, columns, None)

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the exact joint distribution of a few columns, with a column ``probability``."""
        return self.distribution.marginal(columns)
