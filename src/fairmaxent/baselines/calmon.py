"""Optimized preprocessing: a random mapping of rows that makes outcomes fair and changes the data little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.baselines.data import CodedData
from fairmaxent.baselines.distortion import Distortion
from fairmaxent.baselines.new_rows import NewRows
from fairmaxent.baselines.program import Program
from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.domain import Domain, count_text
from fairmaxent.data.table import Table, match_rows, tally
from fairmaxent.errors import InputError
from fairmaxent.fairness.rates import statistical_pair
from fairmaxent.fit.distribution import Distribution
from fairmaxent.maxent.priors.rows import Rows

# Programs with more unknowns than this are refused, because solving them takes too long.
LARGEST_PROGRAM = 200_000


@dataclass(frozen=True, eq=False)
class RowMapping:
    """p(x̂, ŷ | x, y, z): for each pair of a seen row and a target, how likely the row becomes it."""

    rows: Codes  # the distinct rows, one column per attribute of the domain
    source: NDArray[np.intp]  # row of each pair
    targets: Codes  # what it becomes, one column per attribute; protected columns are unchanged
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
    domain: Domain | None = None,
    random_state: int | None = None,
) -> MappedRows:
    """Find the mapping p(x̂, ŷ | x, y, z) of least total variation between p(x̂, ŷ) and the data's p(x, y).

    Calmon, Wei, Vinzamuri, Natesan Ramamurthy, Varshney, "Optimized pre-processing for discrimination prevention",
    2017. Protected columns are not changed.

    Parameters
    ----------
    epsilon
        Discrimination control: |p(ŷ | z)/p(ŷ | z') − 1| ≤ ε for every outcome and every pair of joint groups.
    distortion
        How much a row (x, y, z) of the data may change on average, E[δ | x, y, z]. δ counts steps: the distance in
        levels in a column of numbers, dates or ordered categories, and 1 for any change of another column or of the
        outcome. With k outcomes, 1 − 1/k is always enough.
    largest_change
        How many steps a single row may change at most. A small value also keeps the program small.
    """
    _check_limit("epsilon", epsilon)
    _check_limit("distortion", distortion)
    if isinstance(largest_change, bool) or not isinstance(largest_change, int | np.integer) or largest_change < 1:
        raise InputError(f"largest_change is {largest_change!r}; pass a whole number of steps, at least 1")
    data = CodedData.read(frame, outcome, protected, domain=domain, random_state=random_state)
    costs = Distortion.of(data.roles)
    rows = data.blocks.unpool(data.table.codes).astype(np.intp)
    largest = min(int(largest_change), costs.largest)
    _check_size(data, costs, rows, largest)
    source, changed, steps = costs.pairs_within(rows[:, costs.columns], largest)
    points = Table.compress(changed, costs.sizes)
    unchanged = match_rows(points.codes, rows[:, costs.columns], costs.sizes)
    program = Program(
        rows=data.table.counts,
        group=_groups(data),
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
    distribution = _distribution(data, mapping)
    return MappedRows(data, distribution, mapping, _reached(program, probability, distribution))


def _check_limit(name: str, value: float) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value < np.inf:
        raise InputError(f"{name} is {value!r}; pass a finite number that is not negative")


def _check_size(data: CodedData, costs: Distortion, rows: Codes, largest: int) -> None:
    """Refuse a program that is too large before listing it."""
    unknowns = costs.count_within(rows[:, costs.columns], largest)
    if unknowns > LARGEST_PROGRAM:
        raise InputError(
            f"the program would have {unknowns:,} unknowns (at most {LARGEST_PROGRAM:,}): each of {len(rows):,} "
            f"distinct rows may become any row that largest_change={largest} allows, in a domain of "
            f"{count_text(data.roles.domain.size)} points. Drop columns, pass a Domain with fewer bins or levels"
            + (", or lower largest_change." if largest > 1 else ".")
        )


def _groups(data: CodedData) -> NDArray[np.intp]:
    """The joint group of each distinct row, numbered without gaps."""
    joint = data.table.codes[:, 0].astype(np.intp) % data.empirical.shape[1]
    return np.unique(joint, return_inverse=True)[1]


def _distribution(data: CodedData, mapping: RowMapping) -> Distribution:
    """p(x̂, ŷ, z)."""
    blocks = data.blocks
    mass = data.table.counts[mapping.source] * mapping.probability
    points = Table.compress(blocks.pool(mapping.targets), blocks.levels, mass)
    rows = Rows.weighted(blocks, points.codes, points.counts)
    return Distribution(data.roles.domain, blocks, rows, np.zeros(blocks.width))


def _reached(program: Program, probability: Reals, distribution: Distribution) -> MappingResult:
    """Measure the mapping itself instead of relying on the solver."""
    total = program.rows.sum()
    now = tally(program.target, program.rows[program.source] * probability, len(program.wanted))
    expected = tally(program.source, program.steps * probability, len(program.rows))
    root = distribution.root_table
    return MappingResult(
        total_variation=float(np.abs(now - program.wanted).sum() / (2 * total)),
        largest_distortion=float(expected.max()),
        worst_ratio=statistical_pair(root, tuple(range(1, root.ndim)), range(len(root))).rate,
        unknowns=len(probability),
    )
