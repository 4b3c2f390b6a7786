"""Optimized preprocessing: a random mapping of rows that makes outcomes fair and
changes the data little.

δ is how far a changed row is from the original one, as a sum over the columns that may
change. The mapping solves a linear program, whose unknowns are numbers of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fairmaxent.baselines.data import CodedData, MethodOptions
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Codes, Reals, Table, match_rows, tally
from fairmaxent.distribution import Distribution
from fairmaxent.errors import InfeasibleError, InputError, SolverError, checked_number
from fairmaxent.fairness.rates import outcome_rates, worst_ratio
from fairmaxent.maxent.priors.rows import Rows
from reproduction.new_rows import NewRows

Steps = NDArray[np.intp]

_ORDERED = ("ordered", "numeric", "date")
# programs with more unknowns are refused, because solving them takes too long
LARGEST_PROGRAM = 200_000
# Many mappings may have the least total variation; of these, take one that changes
# little. A step of change costs this fraction of a missing row, so the total variation
# exceeds its minimum by at most this fraction of the distortion.
STEP_COST = 1e-6
_DUST = 1e-9  # fewer rows than this are rounding errors of the solver
_ROW_COST = 100.0  # keeps the cost of a step well above the solver's tolerance


@dataclass(frozen=True, eq=False)
class Distortion:
    """δ((x, y), (x̂, ŷ)) in whole steps; outcome first, then the columns that are not
    protected.
    """

    columns: tuple[int, ...]  # positions in the domain
    steps: tuple[Steps, ...]  # of each column: level × level

    @classmethod
    def of(cls, roles: Roles) -> "Distortion":
        """Derive the steps of each column from its kind."""
        attributes = roles.domain.attributes
        others = tuple(
            index for index in range(len(attributes)) if index not in roles.root
        )
        outcome = _changes(attributes[roles.outcome].size)
        return cls(
            (roles.outcome, *others),
            (outcome, *(level_steps(attributes[index]) for index in others)),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each column."""
        return tuple(len(steps) for steps in self.steps)

    def pairs_within(
        self, codes: Codes, largest: int
    ) -> tuple[NDArray[np.intp], Codes, NDArray[np.intp]]:
        """List each row with each of its targets of δ ≤ ``largest``: position of the
        row, codes of the target, δ.

        The list grows column by column and never shrinks, because leaving a column
        unchanged costs nothing.
        """
        source = np.arange(len(codes))
        spent = np.zeros(len(codes), dtype=np.intp)
        targets: list[NDArray[np.intp]] = []
        for column, steps in zip(codes.T, self.steps, strict=True):
            near = np.stack(
                [(steps <= distance).sum(axis=1) for distance in range(largest + 1)],
                axis=1,
            )
            # before it is listed
            if near[column[source], largest - spent].sum() > LARGEST_PROGRAM:
                raise InputError(
                    f"the program would have more than {LARGEST_PROGRAM:,} unknowns:"
                    f" each of {len(codes):,} distinct rows may become any row that"
                    f" largest_change={largest} allows. Drop columns, pass a Domain"
                    " with fewer bins or levels, or lower largest_change."
                )
            total = spent[:, None] + steps[column[source]]
            kept, level = np.nonzero(total <= largest)
            source = source[kept]
            spent = total[kept, level]
            targets = [*(done[kept] for done in targets), level]
        return source, np.stack(targets, axis=1), spent


def level_steps(attribute: Attribute) -> Steps:
    """δ of one column: distance in levels if they have an order, else 1 for any change;
    1 from or to missing.
    """
    if attribute.kind not in _ORDERED:
        return _changes(attribute.size)
    levels = np.arange(attribute.size)
    steps = np.abs(levels[:, None] - levels)
    if attribute.missing is not None:
        away = _changes(attribute.size)
        steps[attribute.missing], steps[:, attribute.missing] = (
            away[attribute.missing],
            away[:, attribute.missing],
        )
    return np.asarray(steps)


def _changes(size: int) -> Steps:
    return np.asarray(1 - np.eye(size, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Program:
    """Move the n_s rows of each (x, y, z) in the data to targets (x̂, ŷ); the unknowns
    are m(s, t), the rows of a pair.

    There are also a shortfall u_t for each target that has rows in the data, with TV =
    Σu/N, and a rate r_y for each outcome: r_y ≤ p(ŷ | z) ≤ (1 + ε)·r_y for every group
    is the same as |p(ŷ | z)/p(ŷ | z') − 1| ≤ ε for every pair of groups, with fewer
    conditions.
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
            _ROW_COST
            * np.concatenate(
                [
                    STEP_COST * self.steps,
                    np.ones(len(tv_bound)),
                    np.zeros(self.outcomes),
                ]
            ),
            A_ub=vstack([tv, change, *rates], format="csr"),
            b_ub=np.concatenate(
                [tv_bound, change_bound, *(np.zeros(part.shape[0]) for part in rates)]
            ),
            A_eq=self._matrix(
                self.source,
                np.arange(len(self.source)),
                np.ones(len(self.source)),
                len(self.rows),
            ),
            b_eq=self.rows,
            method="highs-ds",  # measured: faster here than the interior point method
        )
        # costs are not negative, so "unbounded or infeasible" is this too
        if "infeasible" in solved.message.lower():
            raise InfeasibleError(
                f"no mapping of expected distortion {distortion:g} brings the groups'"
                f" outcome rates within a factor of 1 + {epsilon:g}. Raise distortion"
                f" ({1 - 1 / self.outcomes:.3g} is always enough) or epsilon."
            )
        if solved.status != 0:
            raise SolverError(
                f"the linear program was not solved: {solved.message} Try another"
                " distortion or epsilon."
            )
        moved = np.where(solved.x > _DUST, solved.x, 0.0)[: len(self.source)]
        return np.asarray(
            moved / tally(self.source, moved, len(self.rows))[self.source]
        )

    @property
    def _targets_with_rows(self) -> NDArray[np.intp]:
        """Targets that have rows in the data."""
        return np.flatnonzero(self.wanted > 0)

    def _shortfalls(self) -> tuple[Any, Reals]:
        """−Σ_s m(s, t) − u_t ≤ −n_t."""
        targets = self._targets_with_rows
        pairs = len(self.source)
        number = np.full(len(self.wanted), -1)
        number[targets] = np.arange(len(targets))
        into = np.flatnonzero(number[self.target] >= 0)
        row = np.concatenate([number[self.target[into]], np.arange(len(targets))])
        column = np.concatenate([into, pairs + np.arange(len(targets))])
        return (
            self._matrix(row, column, -np.ones(len(row)), len(targets)),
            -self.wanted[targets],
        )

    def _changes(self, distortion: float) -> tuple[Any, Reals]:
        """Σ_t δ·m(s, t) ≤ distortion·n_s."""
        changed = np.flatnonzero(self.steps)
        steps = self.steps[changed].astype(np.float64)
        return (
            self._matrix(self.source[changed], changed, steps, len(self.rows)),
            distortion * self.rows,
        )

    def _rates(self, epsilon: float) -> tuple[Any, Any]:
        """n_z·r_y ≤ Σ m of outcome ŷ in group z ≤ (1 + ε)·n_z·r_y."""
        sizes = tally(self.group, self.rows, 0)
        cells = self.outcomes * len(sizes)
        pairs = np.arange(len(self.source))
        count = self._matrix(
            self.outcome * len(sizes) + self.group[self.source],
            pairs,
            np.ones(len(pairs)),
            cells,
        )
        first = len(pairs) + len(self._targets_with_rows)
        outcome = first + np.repeat(np.arange(self.outcomes), len(sizes))
        level = self._matrix(
            np.arange(cells), outcome, np.tile(sizes, self.outcomes), cells
        )
        return level - count, count - (1 + epsilon) * level

    def _matrix(
        self, row: NDArray[np.intp], column: NDArray[np.intp], values: Reals, rows: int
    ) -> Any:
        from scipy.sparse import csr_array

        return csr_array(
            (values, (row, column)),
            shape=(
                rows,
                len(self.source) + len(self._targets_with_rows) + self.outcomes,
            ),
        )


@dataclass(frozen=True, eq=False)
class RowMapping:
    """p(x̂, ŷ | x, y, z): for each pair of a seen row and a target, how likely the row
    becomes it.
    """

    rows: Codes  # the distinct rows, one column per attribute of the domain
    source: NDArray[np.intp]  # row of each pair
    # what it becomes, one column per attribute; protected columns are unchanged
    targets: Codes
    steps: NDArray[np.intp]  # δ of each pair
    probability: Reals


@dataclass(frozen=True)
class MappingResult:
    """What a mapping achieves."""

    total_variation: float
    """Between p(x̂, ŷ) and the data's p(x, y)."""
    largest_distortion: float
    """The largest E[δ | x, y, z] of a seen row."""
    worst_ratio: float
    """Smallest ratio of p(ŷ | z) between two groups, over all outcomes."""
    unknowns: int
    """Size of the program: the number of probabilities in the mapping."""


@dataclass(frozen=True, eq=False, repr=False)
class MappedRows(NewRows):
    """The distribution of the mapped rows, the mapping, and what it achieves."""

    mapping: RowMapping
    reached: MappingResult


def calmon(
    frame: Any,
    outcome: str,
    protected: str | Sequence[str],
    *,
    epsilon: float = 0.0,
    distortion: float = 0.5,
    largest_change: int = 2,
    **options: Unpack[MethodOptions],
) -> MappedRows:
    """Find the mapping p(x̂, ŷ | x, y, z) of least total variation between p(x̂, ŷ) and
    the data's p(x, y).

    Calmon, Wei, Vinzamuri, Natesan Ramamurthy, Varshney, "Optimized pre-processing for
    discrimination prevention",
    2017. Protected columns are not changed.

    Parameters
    ----------
    epsilon
        Discrimination control: |p(ŷ | z)/p(ŷ | z') − 1| ≤ ε for every outcome and every
        pair of joint groups.
    distortion
        How much a row (x, y, z) of the data may change on average, E[δ | x, y, z]. δ
        counts steps: the distance in levels in a column of numbers, dates or ordered
        categories, and 1 for any change of another column or of the outcome. With k
        outcomes, 1 − 1/k is always enough.
    largest_change
        How many steps a single row may change at most. A small value also keeps the
        program small.
    """
    for name, value in (("epsilon", epsilon), ("distortion", distortion)):
        checked_number(
            name,
            value,
            "be a finite number that is not negative",
            lambda number: 0 <= number < np.inf,
        )
    if (
        isinstance(largest_change, bool)
        or not isinstance(largest_change, int | np.integer)
        or largest_change < 1
    ):
        raise InputError(
            f"largest_change is {largest_change!r}; pass a whole number of steps, at"
            " least 1"
        )
    data = CodedData.read(frame, outcome, protected, **options)
    costs = Distortion.of(data.roles)
    rows = data.blocks.unpool(data.table.codes).astype(np.intp)
    largest = min(int(largest_change), sum(int(steps.max()) for steps in costs.steps))
    source, changed, steps = costs.pairs_within(rows[:, costs.columns], largest)
    points = Table.compress(changed, costs.sizes)
    unchanged = match_rows(points.codes, rows[:, costs.columns], costs.sizes)
    program = Program(
        rows=data.table.counts,
        group=np.unique(
            data.table.codes[:, 0].astype(np.intp) % data.empirical.shape[1],
            return_inverse=True,
        )[1],
        source=source,
        target=points.inverse,
        steps=steps,
        outcome=changed[:, 0].astype(np.intp),
        outcomes=costs.sizes[0],
        wanted=tally(unchanged, data.table.counts, len(points.codes)),
    )
    probability = program.solve(epsilon=float(epsilon), distortion=float(distortion))
    targets = rows[source]
    targets[:, costs.columns] = changed
    mapping = RowMapping(rows, source, targets, steps, probability)
    blocks = data.blocks
    moved = Table.compress(
        blocks.pool(targets), blocks.levels, data.table.counts[source] * probability
    )
    prior = Rows.weighted(blocks, moved.codes, moved.counts)
    distribution = Distribution(
        data.roles.domain, blocks, prior, np.zeros(blocks.width)
    )
    return MappedRows(
        data, distribution, mapping, _reached(program, probability, distribution)
    )


def _reached(
    program: Program, probability: Reals, distribution: Distribution
) -> MappingResult:
    """Measure the mapping itself instead of relying on the solver."""
    total = program.rows.sum()
    now = tally(
        program.target, program.rows[program.source] * probability, len(program.wanted)
    )
    expected = tally(program.source, program.steps * probability, len(program.rows))
    root = distribution.root_table
    rates = outcome_rates(root, tuple(range(1, root.ndim)))
    return MappingResult(
        total_variation=float(np.abs(now - program.wanted).sum() / (2 * total)),
        largest_distortion=float(expected.max()),
        worst_ratio=min(worst_ratio(one, 0) for one in rates),
        unknowns=len(probability),
    )
