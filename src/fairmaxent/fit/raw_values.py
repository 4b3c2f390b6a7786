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
from fairmaxent.data.table import Table, match_rows, tally
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.relabelling.profiles import Profiles


@dataclass(frozen=True, eq=False)
class Details:
    """The input rows behind each row of the rows component."""

    positions: Positions
    weights: Reals  # of each input row; zero where evidence speaks against it
    order: NDArray[np.intp]  # input rows, one source after the other
    starts: NDArray[np.intp]  # where in ``order`` those of each source begin
    sources: NDArray[np.intp]  # the source of each row of the component: a distinct row, or a profile if relabelled

    @classmethod
    def of(cls, positions: Positions, rows: Rows, table: Table, design: Reals | None, *, relabelled: bool) -> Details:
        """Find the input rows of each row of the component: if relabelled, those with its profile."""
        blocks, inverse = rows.blocks, table.inverse
        if relabelled:
            profiles = Profiles.of(table, blocks, table.counts)
            sources, place, count = profiles.find(rows.codes), profiles.places[inverse], len(profiles.codes)
            positions = {index: own for index, own in positions.items() if index != blocks.members[0][0]}
        else:
            sources, count = np.arange(rows.rows), rows.rows
            place = match_rows(rows.codes, table.codes, blocks.levels)[inverse]
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(count))
        dropped = int(starts[0])  # rows of weight zero, which the component does not have
        weights = np.ones(len(inverse)) if design is None else design
        return cls(positions, weights, order[dropped:], starts - dropped, sources)

    def totals(self) -> Reals:
        """Weight of the input rows behind each row of the component."""
        behind = np.repeat(np.arange(len(self.starts)), np.diff(np.append(self.starts, len(self.order))))
        return tally(behind, self.weights[self.order], len(self.starts))[self.sources]

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
        chosen = self.sources[places[copied]]
        rows = self.order[self.starts[chosen] + self._choice.draw(chosen, rng)]
        result = {}
        for index, positions in self.positions.items():
            result[index] = np.full(len(places), -1, dtype=np.intp)
            result[index][copied] = positions[rows]
        return result

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.weights[self.order], self.starts)
