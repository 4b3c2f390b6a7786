"""Details: the raw values that real rows have where a level stands for several, such as the numbers in a bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Positions, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.draws import Choice
from fairmaxent.data.table import Table, grouped_rows, match_rows, tally
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.relabelling.people import Profiles


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
    by_cell: bool = False  # rows of the base get the raw outcome of a real row of their cell

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

    def draw(
        self, places: NDArray[np.intp], roots: NDArray[np.integer], rng: np.random.Generator
    ) -> dict[int, NDArray[np.intp]]:
        """Draw an input row behind each row of the component and return its positions, by attribute; -1 stays -1.

        ``roots`` are the cells of outcome and groups of the drawn rows.
        """
        copied = np.flatnonzero(places >= 0)
        chosen = self.sources.of_rows[places[copied]]
        rows = self.sources.order[self.sources.starts[chosen] + self._choice.draw(chosen, rng)]
        result = {}
        for index, positions in self.positions.items():
            result[index] = np.full(len(places), -1, dtype=np.intp)
            result[index][copied] = positions[rows]
            if self.fills(index):
                order, starts, known = self._cells
                others = np.flatnonzero((result[index] < 0) & known[roots])
                cells = roots[others].astype(np.intp)
                result[index][others] = positions[order[starts[cells] + self._cell_choice.draw(cells, rng)]]
        return result

    def fills(self, index: int) -> bool:
        """Whether rows of the base get raw values of this attribute from the real rows of their cell."""
        return self.by_cell and index == self.rows.blocks.members[0][0] and index in self.positions

    def cell_means(self, index: int, numbers: Reals) -> Reals:
        """Mean raw value of the input rows of each cell of outcome and groups; NaN if there are none."""
        cells, size = self.table.codes[self.table.inverse, 0].astype(np.intp), self.rows.blocks.levels[0]
        weights, raw = self._counting, numbers[self.positions[index]]
        totals, sums = (tally(cells, weights * value, size) for value in (1.0, raw))
        return np.asarray(np.divide(sums, totals, out=np.full(size, np.nan), where=totals > 0))

    @cached_property
    def _counting(self) -> Reals:
        """The weights of input rows, zero if no row of the component comes from it: a rule forbids it, say."""
        weights = np.zeros_like(self.weights)
        weights[self.sources.order] = self.weights[self.sources.order]
        return weights

    @cached_property
    def _cells(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """Input rows one cell after the other, where each cell begins, and which cells have any that count."""
        cells, size = self.table.codes[self.table.inverse, 0].astype(np.intp), self.rows.blocks.levels[0]
        return *grouped_rows(cells, size), tally(cells, self._counting, size) > 0

    @cached_property
    def _cell_choice(self) -> Choice:
        order, starts, _ = self._cells
        return Choice.grouped(self._counting[order], starts)

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.weights[self.sources.order], self.sources.starts)
