"""The linear program of optimized preprocessing; its unknowns are numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import tally
from fairmaxent.errors import InfeasibleError, SolverError

# Many mappings may have the least total variation; of these, take one that changes little. A step of change costs this
# fraction of a missing row, so the total variation exceeds its minimum by at most this fraction of the distortion.
STEP_COST = 1e-6
_DUST = 1e-9  # fewer rows than this are rounding errors of the solver
_ROW_COST = 100.0  # keeps the cost of a step well above the solver's tolerance


@dataclass(frozen=True, eq=False)
class Program:
    """Move the n_s rows of each (x, y, z) in the data to targets (x̂, ŷ); the unknowns are m(s, t), the rows of a pair.

    There are also a shortfall u_t for each target that has rows in the data, with TV = Σu/N, and a rate r_y for each
    outcome: r_y ≤ p(ŷ | z) ≤ (1 + ε)·r_y for every group is the same as |p(ŷ | z)/p(ŷ | z') − 1| ≤ ε for every pair of
    groups, with fewer conditions.
    """

    rows: Reals  # n_s of each source
    group: NDArray[np.intp]  # z of each source, numbered without gaps
    source: NDArray[np.intp]  # of each pair
    target: NDArray[np.intp]  # of each pair
    steps: NDArray[np.intp]  # δ of each pair
    outcome: NDArray[np.intp]  # ŷ of each pair
    outcomes: int
    wanted: Reals  # n_t: rows of the data at each target

    def solve(self, *, epsilon: float, distortion: float) -> Reals:
        """Return p(x̂, ŷ | x, y, z) of each pair."""
        from scipy.optimize import linprog
        from scipy.sparse import vstack

        tv, tv_bound = self._shortfalls()
        change, change_bound = self._changes(distortion)
        rates = self._rates(epsilon)
        solved = linprog(
            self._costs(),
            A_ub=vstack([tv, change, *rates], format="csr"),
            b_ub=np.concatenate([tv_bound, change_bound, *(np.zeros(part.shape[0]) for part in rates)]),
            A_eq=self._matrix(self.source, np.arange(len(self.source)), np.ones(len(self.source)), len(self.rows)),
            b_eq=self.rows,
            method="highs-ds",  # measured: faster here than the interior point method
        )
        if solved.status != 0:
            raise self._failure(solved, epsilon, distortion)
        moved = np.where(solved.x > _DUST, solved.x, 0.0)[: len(self.source)]
        return np.asarray(moved / tally(self.source, moved, len(self.rows))[self.source])

    @property
    def _targets_with_rows(self) -> NDArray[np.intp]:
        """Targets that have rows in the data."""
        return np.flatnonzero(self.wanted > 0)

    def _costs(self) -> Reals:
        shortfall = np.ones(len(self._targets_with_rows))
        return _ROW_COST * np.concatenate([STEP_COST * self.steps, shortfall, np.zeros(self.outcomes)])

    def _shortfalls(self) -> tuple[Any, Reals]:
        """−Σ_s m(s, t) − u_t ≤ −n_t."""
        targets, pairs = self._targets_with_rows, len(self.source)
        number = np.full(len(self.wanted), -1)
        number[targets] = np.arange(len(targets))
        into = np.flatnonzero(number[self.target] >= 0)
        row = np.concatenate([number[self.target[into]], np.arange(len(targets))])
        column = np.concatenate([into, pairs + np.arange(len(targets))])
        return self._matrix(row, column, -np.ones(len(row)), len(targets)), -self.wanted[targets]

    def _changes(self, distortion: float) -> tuple[Any, Reals]:
        """Σ_t δ·m(s, t) ≤ distortion·n_s."""
        changed = np.flatnonzero(self.steps)
        steps = self.steps[changed].astype(np.float64)
        return self._matrix(self.source[changed], changed, steps, len(self.rows)), distortion * self.rows

    def _rates(self, epsilon: float) -> tuple[Any, Any]:
        """n_z·r_y ≤ Σ m of outcome ŷ in group z ≤ (1 + ε)·n_z·r_y."""
        sizes = tally(self.group, self.rows, 0)
        cells = self.outcomes * len(sizes)
        pairs = np.arange(len(self.source))
        count = self._matrix(self.outcome * len(sizes) + self.group[self.source], pairs, np.ones(len(pairs)), cells)
        first = len(pairs) + len(self._targets_with_rows)
        outcome = first + np.repeat(np.arange(self.outcomes), len(sizes))
        level = self._matrix(np.arange(cells), outcome, np.tile(sizes, self.outcomes), cells)
        return level - count, count - (1 + epsilon) * level

    def _matrix(self, row: NDArray[np.intp], column: NDArray[np.intp], values: Reals, rows: int) -> Any:
        from scipy.sparse import csr_array

        return csr_array(
            (values, (row, column)), shape=(rows, len(self.source) + len(self._targets_with_rows) + self.outcomes)
        )

    def _failure(self, solved: Any, epsilon: float, distortion: float) -> InfeasibleError | SolverError:
        enough = 1 - 1 / self.outcomes
        if "infeasible" in solved.message.lower():  # costs are not negative, so "unbounded or infeasible" is this too
            return InfeasibleError(
                f"no mapping of expected distortion {distortion:g} brings the groups' outcome rates within a factor of "
                f"1 + {epsilon:g}. Raise distortion ({enough:.3g} is always enough) or epsilon."
            )
        return SolverError(f"the linear program was not solved: {solved.message} Try another distortion or epsilon.")
