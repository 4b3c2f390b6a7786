"""New rows, drawn from a distribution over the levels of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.baselines.data import Data
from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.draws import RandomState
from fairmaxent.errors import InputError
from fairmaxent.fit.distribution import Distribution


@dataclass(frozen=True, eq=False, repr=False)
class NewRows:
    """A distribution that is not one of weights for the rows one has."""

    data: Data
    distribution: Distribution

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.distribution!r}>"

    def weights(self) -> Reals:
        """Refuse: the distribution reaches rows that are not in the data."""
        raise InputError("this method makes new rows and gives no weights for the rows one has; use sample()")

    def sample(self, n: int, *, random_state: RandomState = None, iid: bool = False) -> Any:
        """Draw ``n`` rows, outcome and groups by quota, or with ``iid=True`` independently."""
        seed = self.data.random_state if random_state is None else random_state
        drawn = self.distribution.sample(n, random_state=seed, iid=iid)
        columns = self.data.frame.columns
        return drawn if tuple(columns) == self.distribution.domain.names else frames.arrange(drawn, columns, None)

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the exact joint distribution of a few columns, with a column ``probability``."""
        return self.distribution.marginal(columns)
