"""Inputs: what a model sees of people, which is everything except the outcome.

Numbers and dates are seen as they are if the raw values are known, and as the means of their bins if not; all other
columns are seen as levels. A blind model does not see the protected columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Positions, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles

ORDERED = ("numeric", "date")  # kinds of columns whose raw values are numbers


@dataclass(frozen=True, eq=False)
class Inputs:
    """Some people, one record each."""

    roles: Roles
    codes: Codes  # (records, blocks): block codes, with the group z instead of the root
    numbers: Mapping[int, Reals]  # raw numbers of ordered columns, by attribute; NaN if missing

    @classmethod
    def of(cls, roles: Roles, codes: Codes, positions: Positions | None) -> Inputs:
        """Look the numbers up: by their positions among the raw values, or else by level."""
        levels = roles.blocks.unpool(codes)
        numbers = {}
        for index, attribute in enumerate(roles.domain.attributes):
            if index == roles.outcome or attribute.kind not in ORDERED:
                continue
            if positions is not None and index in positions:
                numbers[index] = _raw_numbers(attribute)[positions[index]]
            else:
                numbers[index] = attribute.scores()[levels[:, index]]
        return cls(roles, codes, numbers)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, records: NDArray[np.intp] | slice) -> Inputs:
        """Some of the records, in this order; they may repeat."""
        numbers = {index: column[records] for index, column in self.numbers.items()}
        return Inputs(self.roles, self.codes[records], numbers)

    @cached_property
    def levels(self) -> Codes:
        """The level of each record in each column of the domain; that of the outcome means nothing."""
        return self.roles.blocks.unpool(self.codes)


def _raw_numbers(attribute: Attribute) -> Reals:
    """The raw values of a column as numbers, NaN for missing."""
    return frames.to_numbers(attribute.values)


def seen_columns(roles: Roles, *, blind: bool) -> Iterator[tuple[int, Attribute]]:
    """The columns that a model sees, with their positions in the domain."""
    hidden = (roles.outcome, *roles.protected) if blind else (roles.outcome,)
    return ((index, column) for index, column in enumerate(roles.domain.attributes) if index not in hidden)


def ordinals(inputs: Inputs, *, blind: bool = False) -> Reals:
    """Numbers as they are, and levels as numbers: for tree models that can handle categories."""
    columns = [
        inputs.numbers.get(index, inputs.levels[:, index]) for index, _ in seen_columns(inputs.roles, blind=blind)
    ]
    return np.column_stack([np.empty((len(inputs), 0)), *columns])


def dummies(inputs: Inputs, *, blind: bool = False) -> Reals:
    """Standardised numbers, and one indicator per level of the other columns: for any classifier."""
    columns: list[Reals] = [np.empty((len(inputs), 0))]
    for index, attribute in seen_columns(inputs.roles, blind=blind):
        if index not in inputs.numbers:
            columns.append(np.eye(attribute.size)[inputs.levels[:, index]])
            continue
        centre, spread = _centre_and_spread(attribute)
        columns.append(np.nan_to_num((inputs.numbers[index] - centre) / spread)[:, None])
        if attribute.missing is not None:
            columns.append((inputs.levels[:, index] == attribute.missing)[:, None].astype(np.float64))
    return np.concatenate(columns, axis=1)


def _centre_and_spread(attribute: Attribute) -> tuple[float, float]:
    """Mean and standard deviation over all rows that the domain was learned from, missing values aside."""
    values = _raw_numbers(attribute)
    counts = np.where(np.isnan(values), 0.0, attribute.counts)
    if not counts.any():
        return 0.0, 1.0
    centre = float(np.average(np.nan_to_num(values), weights=counts))
    spread = float(np.sqrt(np.average((np.nan_to_num(values) - centre) ** 2, weights=counts)))
    return centre, spread if spread > 0 else 1.0
