"""The fitted distribution p*: exact probabilities, marginals and draws, in terms of the user's columns.

Where a level stands for several raw values, such as the numbers in a bin, `Details` say which of them real rows have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import factorize
from fairmaxent.data.domain import Domain, count_text
from fairmaxent.data.draws import Choice, RandomState, cells_of, check_count, generator
from fairmaxent.data.roles import read_columns
from fairmaxent.data.table import Blocks, Codes, Counted, Positions, Reals, Table, grouped_rows, match_rows, tally
from fairmaxent.errors import ColumnError, EvidenceError, InputError, Option
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.mixture import row_probabilities, rows_of, with_rows
from fairmaxent.maxent.priors.protocol import Density, Prior, Tilted
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


Evidence = Mapping[str, object]

# A marginal with more cells than this is refused: it would not be read by anyone.
LARGEST_MARGINAL = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """p*(α) ∝ q(α)·e^{⟨λ, φ(α)⟩} over the whole domain, possibly given some evidence.

    Binned numbers and rare values are treated as levels: the probability of a number is that of its whole bin.
    """

    domain: Domain
    blocks: Blocks
    prior: Prior
    potentials: Reals  # ⟨λ, φ⟩ of each level, with the logarithm of what evidence leaves of it
    evidence: frozenset[int] = frozenset()  # attributes that evidence narrowed
    details: Details | None = None  # raw values of real rows; None: numbers are always drawn inside their bins

    def __repr__(self) -> str:
        return f"<Distribution over {count_text(self.domain.size)} points: {', '.join(self.domain.names)}>"

    @classmethod
    def of(cls, domain: Domain, optimum: Optimum) -> Distribution:
        """The distribution that an optimum describes."""
        return cls(domain, optimum.dual.features.blocks, optimum.dual.prior, optimum.potentials)

    def detailed(
        self,
        positions: Positions | None,
        table: Counted,
        design: Reals | None,
        *,
        relabelled: bool,
        by_cell: bool = False,
    ) -> Distribution:
        """Let drawn rows that copy a real row keep its raw values.

        ``by_cell``: rows of the base get a raw outcome that a real row of the same cell of outcome and groups has.
        """
        rows = rows_of(self.prior)
        if rows is None or not positions:
            return self
        details = Details.of(positions, rows, table.collect(), design, relabelled=relabelled)
        return replace(self, details=replace(details, by_cell=by_cell))

    @cached_property
    def tilted(self) -> Tilted:
        """The tilted prior: the model in terms of block levels."""
        return self.prior.tilt(self.potentials)

    @property
    def root_table(self) -> Reals:
        """p(y, z): the exact table of outcome and protected attributes, one axis each."""
        return self.tilted.levels[self.blocks.slices[0]].reshape(self.blocks.shape(0))

    def probability(self, frame: Any) -> Reals:
        """Return the probability of each row of a frame; zero if it contradicts the evidence."""
        result = np.exp(self.log_probability(self.blocks.pool(self.domain.encode(frame))))
        for index in sorted(self.evidence):
            attribute = self.domain.attributes[index]
            codes, values = factorize(frames.column(frames.open_frame(frame), attribute.name))
            result[~attribute.can_draw(values)[codes]] = 0.0
        return result

    def log_probability(self, pooled: Codes) -> Reals:
        """log p* of rows given as block codes."""
        return self.density.log_probability(pooled)

    @property
    def density(self) -> Density:
        """The probability of rows given as block codes."""
        return Density(self.prior, self.potentials, self.tilted.log_partition)

    def marginal(self, columns: str | Sequence[str], *, given: Evidence | None = None) -> Any:
        """Return the exact joint distribution of a few columns, as a frame with a column ``probability``."""
        if given:
            return self.condition(given).marginal(columns)
        names = read_columns("columns", columns)
        table = self.joint([self.domain.index(name) for name in names])
        if "probability" in names:
            raise ColumnError("a column named 'probability' cannot be shown beside the probabilities; rename it")
        cells = np.unravel_index(np.arange(table.size), table.shape)
        shown = {name: self.domain.attribute(name).column_of(cell) for name, cell in zip(names, cells, strict=True)}
        like = next(iter(shown.values()))
        return frames.build(shown | {"probability": frames.number_column("probability", table.ravel(), like)})

    def joint(self, attributes: Sequence[int]) -> Reals:
        """Return the exact joint table of a few attributes, one axis each."""
        if len(set(attributes)) != len(attributes) or not attributes:
            names = [self.domain.names[attribute] for attribute in attributes]
            raise ColumnError(f"a marginal of {names} was asked for; name each column once, and at least one")
        wanted = sorted({self.blocks.block_of(attribute) for attribute in attributes})
        cells = int(np.prod([float(self.blocks.levels[block]) for block in wanted]))
        if cells > LARGEST_MARGINAL:
            raise InputError(
                f"this marginal would have {cells:,} cells (at most {LARGEST_MARGINAL:,}); ask for fewer columns"
            )
        members = [attribute for block in wanted for attribute in self.blocks.members[block]]
        table = self.tilted.joint(wanted).reshape([self.blocks.sizes[a] for a in members])
        table = table.sum(axis=tuple(axis for axis, a in enumerate(members) if a not in attributes))
        kept = [a for a in members if a in attributes]
        return np.asarray(table).transpose([kept.index(attribute) for attribute in attributes])

    def expectation(self, column: str, *, given: Evidence | None = None) -> float:
        """Return the mean of a numeric, boolean or date column, over the rows where it is not missing."""
        if given:
            return self.condition(given).expectation(column)
        scores = self.domain.attribute(column).scores()
        levels = self.joint([self.domain.index(column)])
        present = ~np.isnan(scores)
        if not levels[present].any():
            raise EvidenceError(
                f"given this, column {column!r} is always missing, so it has no mean; relax the evidence"
            )
        total = levels[present] @ scores[present] + self._kept_beyond(column, scores)
        return float(total / levels[present].sum())

    def _kept_beyond(self, column: str, scores: Reals) -> float:
        """What rows that keep the exact values of a real row add to the mean, beyond the means of their levels."""
        index, rows = self.domain.index(column), rows_of(self.prior)
        probabilities = row_probabilities(self.tilted)
        if self.details is None or index not in self.details.positions or rows is None or probabilities is None:
            return 0.0
        means = self.details.means(index, frames.to_numbers(self.domain.attributes[index].values))
        level_scores = self.blocks.spread({index: np.where(np.isnan(scores), 0.0, scores)})
        beyond = means - rows.scores(level_scores)
        drawn = (probabilities > 0) & ~np.isnan(means)
        return float(probabilities[drawn] @ beyond[drawn]) + self._filled_beyond(index, level_scores, probabilities)

    def _filled_beyond(self, index: int, level_scores: Reals, probabilities: Reals) -> float:
        """What rows of the base add that get the raw outcome of a real row of their cell."""
        rows, roots = rows_of(self.prior), self.blocks.slices[0]
        if self.details is None or rows is None or not self.details.fills(index):
            return 0.0
        copied = tally(rows.codes[:, 0].astype(np.intp), probabilities, self.blocks.levels[0])
        means = self.details.cell_means(index, frames.to_numbers(self.domain.attributes[index].values))
        mass = np.maximum(self.tilted.levels[roots] - copied, 0.0)
        known = (mass > 0) & ~np.isnan(means)
        return float(mass[known] @ (means - level_scores[roots])[known])

    def condition(self, given: Evidence) -> Distribution:
        """Return the distribution given some columns, e.g. ``{"sex": "Female", "race": ["Black", "Other"]}``.

        A column of numbers or dates can be given as a range: ``{"age": slice(18, 65)}`` means from 18 up to, but not
        including, 65, and None leaves an end open.
        """
        if not isinstance(given, Mapping):
            raise InputError(f"given is {given!r}; fix columns by name, e.g. {{'sex': 'Female'}}")
        changed = {self.domain.index(name): self._narrowed(name, value) for name, value in given.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            # P(evidence | level): less than one where only some of a level's raw values are meant.
            share = {
                index: np.log(np.nan_to_num(new.level_counts() / self.domain.attributes[index].level_counts()))
                for index, new in changed.items()
            }
        narrowed = replace(
            self._with_details_given(changed, share),
            domain=self.domain.with_attributes(changed),
            potentials=self.potentials + self.blocks.spread(share),
            evidence=self.evidence | changed.keys(),
        )
        if np.isneginf(narrowed.tilted.log_partition):
            shown = ", ".join(f"{name} = {value!r}" for name, value in given.items())
            raise EvidenceError(
                f"given {shown}: this has probability zero under the model, so nothing can be drawn. Relax the "
                "evidence; with ",
                Option("base_share"),
                " > 0 every combination that is not forbidden is possible.",
            )
        return narrowed

    def sample(
        self, n: int, *, given: Evidence | None = None, random_state: RandomState = None, iid: bool = False
    ) -> Any:
        """Draw ``n`` rows as a frame of the kind, columns and dtypes that the model was fitted on.

        By default the table of outcome and protected columns is filled by quota, so that the drawn rows themselves have
        the model's rates up to one row per cell, and no cell is favoured; ``iid=True`` draws independently.
        """
        count = check_count(n)
        rng = generator(random_state)
        source = self.condition(given) if given else self
        return source.draw(cells_of(source.root_table, count, rng, independent=iid), rng, spread=not iid)

    def draw(self, cells: NDArray[np.intp], rng: np.random.Generator, *, spread: bool) -> Any:
        """Draw one row for each wanted cell of the table of outcome and protected columns.

        ``spread``: each row of the data is drawn in proportion to its weight, up to one row, and not independently.
        """
        drawn = self.tilted.draw(cells, rng, spread=spread)
        known = None if self.details is None else self.details.draw(drawn.places, drawn.codes[:, 0], rng)
        return self.domain.decode(self.blocks.unpool(drawn.codes), rng=rng, known=known)

    def _with_details_given(self, changed: Mapping[int, Attribute], share: Mapping[int, Reals]) -> Distribution:
        """Weigh each row of the rows component by how many of the real rows behind it agree with the evidence.

        ``share`` speaks of the levels of those columns in the base only, so it is taken off again here.
        """
        rows = rows_of(self.prior)
        if self.details is None or rows is None:
            return self
        details = self.details.given(changed)
        agree = details.totals() / np.maximum(self.details.totals(), np.finfo(float).tiny)
        levels = rows.scores(self.blocks.spread({index: share[index] for index in share if index in details.positions}))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_weights = np.where(agree > 0, rows.log_weights + np.log(agree) - levels, -np.inf)
        return replace(self, details=details, prior=with_rows(self.prior, replace(rows, log_weights=log_weights)))

    def _narrowed(self, name: str, value: object) -> Attribute:
        values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
        if not values:
            raise EvidenceError(f"given names no value for {name!r}; name one or more, or leave the column out")
        return self.domain.attribute(name).narrowed(values)
