"""Details: the raw values that real rows have where a level stands for several, such as the numbers in a bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.draws import Choice
from fairmaxent.data.positions import Positions
from fairmaxent.data.table import Table, grouped_rows, match_rows, tally
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.relabelling.profiles import Profiles


@dataclass(frozen=True, eq=False)
class Sources:
    """Where each row of the rows component comes from: a distinct row of the data, or a profile if relabelled."""

    of_rows: NDArray[np.intp]  # the source of each row of the component
    order: NDArray[np.intp]  # input rows, one source after the other
    starts: NDArray[np.intp]  # where in ``order`` those of each source begin

    @classmethod
    def distinct(cls, rows: Rows, table: Table) -> Sources:
        """Every row of the component is a distinct row; those of weight zero are not in it."""
        component_row = match_rows(rows.codes, table.codes, rows.blocks.levels)
        return cls(np.arange(rows.rows), *grouped_rows(component_row[table.inverse], rows.rows))

    @classmethod
    def profiles(cls, rows: Rows, table: Table) -> Sources:
        """Every row of the component has a profile, whatever its outcome."""
        profiles = Profiles.of(table, rows.blocks, table.counts)
        return cls(
            profiles.find(rows.codes), *grouped_rows(profiles.profile_of_row[table.inverse], len(profiles.codes))
        )


@dataclass(frozen=True, eq=False)
class Details:
    """The input rows behind each row of the rows component."""

    positions: Positions
    weights: Reals  # of each input row; zero where evidence speaks against it
    rows: Rows  # the component
    table: Table
    relabelled: bool

    @classmethod
    def of(cls, positions: Positions, rows: Rows, table: Table, design: Reals | None, *, relabelled: bool) -> Details:
        """Keep what it takes to find the input rows of each row of the component: if relabelled, those of its profile.

        A relabelled row does not have the outcome of the row that it comes from.
        """
        if relabelled:
            outcome = rows.blocks.members[0][0]
            positions = {index: column for index, column in positions.items() if index != outcome}
        weights = np.ones(len(table.inverse)) if design is None else design
        return cls(positions, weights, rows, table, relabelled)

    @cached_property
    def sources(self) -> Sources:
        """Where each row of the component comes from; found when rows are drawn, as weights need none of it."""
        return (Sources.profiles if self.relabelled else Sources.distinct)(self.rows, self.table)

    def totals(self) -> Reals:
        """Weight of the input rows behind each row of the component."""
        order, starts = self.sources.order, self.sources.starts
        behind = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
        return tally(behind, self.weights[order], len(starts))[self.sources.of_rows]

    def means(self, index: int, numbers: Reals) -> Reals:
        """Mean raw value of the input rows behind each row of the component; NaN if missing, or if there are none.

        ``numbers`` are the raw values of the attribute with this index.
        """
        weighed = replace(self, weights=self.weights * numbers[self.positions[index]])
        totals = self.totals()
        return np.asarray(np.divide(weighed.totals(), totals, out=np.full(len(totals), np.nan), where=totals > 0))

    def given(self, narrowed: Mapping[int, Attribute]) -> Details:
        """Keep the input rows whose raw values can still be drawn."""
        weights = self.weights.copy()
        for index, attribute in narrowed.items():
            if index in self.positions:
                weights *= attribute.counts[self.positions[index]] > 0
        return replace(self, weights=weights)

    def draw(self, places: NDArray[np.intp], rng: np.random.Generator) -> dict[int, NDArray[np.intp]]:
        """Draw an input row behind each row of the component and return its positions, by attribute; -1 stays -1."""
        copied = np.flatnonzero(places >= 0)
        chosen = self.sources.of_rows[places[copied]]
        rows = self.sources.order[self.sources.starts[chosen] + self._choice.draw(chosen, rng)]
        result = {}
        for index, positions in self.positions.items():
            result[index] = np.full(len(places), -1, dtype=np.intp)
            result[index][copied] = positions[rows]
        return result

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.weights[self.sources.order], self.sources.starts)
