"""The distribution p* of the columns of a table: exact probabilities and draws.

Where a level stands for several raw values, such as the numbers in a bin, `Details` say
which of them real rows have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import factorize
from fairmaxent.data.domain import Domain, count_text
from fairmaxent.data.draws import Choice, RandomState, cells_of, check_count, generator
from fairmaxent.data.limits import need_memory
from fairmaxent.data.roles import ColumnNames, read_columns
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Counted,
    Indices,
    Positions,
    Reals,
    Table,
    grouped_rows,
    match_rows,
    ratio,
    tally,
)
from fairmaxent.errors import (
    BASE_SHARE,
    ColumnError,
    EvidenceError,
    InputError,
    check_flag,
)
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.mixture import row_probabilities, rows_of, with_rows
from fairmaxent.maxent.priors.protocol import Density, Prior, Tilted
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.plain_text import visible
from fairmaxent.relabelling.people import Profiles

_CELL_MEMORY = 32  # bytes of a cell that is drawn
Evidence = Mapping[str, object]
# cells; a larger one is refused, because nobody would read it
LARGEST_MARGINAL = 10_000_000


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Input rows that count, one group after the other.

    All of them may be there several times, with other weights.
    """

    order: Indices
    starts: Indices  # where in ``order`` those of each group begin
    weights: Reals  # of all input rows, once or several times
    people: int  # how many input rows there are

    def totals(self, values: Reals | None = None) -> Reals:
        """Weight of each group, or the weighted sum of the values of its input rows."""
        group = np.repeat(
            np.arange(len(self.starts)),
            np.diff(np.append(self.starts, len(self.order))),
        )
        weights = self.weights
        if values is not None:
            weights = weights * np.resize(values, len(weights))
        return tally(group, weights[self.order], len(self.starts))

    def means(self, values: Reals) -> Reals:
        """Mean value of each group; NaN if nobody in it counts."""
        return ratio(self.totals(values), self.totals(), np.nan)

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.weights[self.order], self.starts)

    def draw(self, groups: Indices, rng: Generator) -> Indices:
        """Draw an input row of each of these groups."""
        places = self.starts[groups] + self._choice.draw(groups, rng)
        return self.order[places] % self.people


@dataclass(frozen=True, eq=False)
class Details:
    """The input rows behind each row of the rows component.

    If relabelled, these are also those who were given its outcome.
    """

    positions: Positions
    weights: Reals  # of each input row; zero where evidence speaks against it
    rows: Rows  # the component
    table: Table
    profiles: Profiles | None = None  # if relabelled
    # for equal means, rows of the base get the raw outcome of a real row of their cell
    # (y, z)
    by_cell: bool = False

    @cached_property
    def sources(self) -> _Grouped:
        """Input rows by the row of the component that they are behind."""
        if self.profiles is not None:
            return self._relabelled_sources(self.profiles)
        inverse = self.table.inverse
        component_row = self._component_row(self.table.codes)
        order, starts = grouped_rows(component_row[inverse], self.rows.rows)
        return _Grouped(order, starts, self.weights, len(inverse))

    def _relabelled_sources(self, profiles: Profiles) -> _Grouped:
        """The same, with each input row once per outcome."""
        inverse = self.table.inverse
        codes = profiles.labelled()
        mass = self.rows.tilt(np.zeros(self.rows.blocks.width)).on(codes)
        parts = profiles.by_row(mass)[inverse].T
        component_row = self._component_row(codes).reshape(len(parts), -1)
        behind = component_row[:, profiles.profile_of_row[inverse]]
        of_input = np.where(parts > 0, behind, -1).ravel()
        order, starts = grouped_rows(of_input, self.rows.rows)
        return _Grouped(order, starts, (parts * self.weights).ravel(), len(inverse))

    def _component_row(self, codes: Codes) -> Indices:
        """Where in the component these rows are; -1: of weight zero."""
        return match_rows(self.rows.codes, codes, self.rows.blocks.levels)

    @cached_property
    def cells(self) -> _Grouped:
        """Input rows by cell of outcome and groups."""
        cells = self.table.codes[self.table.inverse, 0].astype(np.intp)
        return _Grouped(
            *grouped_rows(cells, self.rows.blocks.levels[0]), self.weights, len(cells)
        )

    def fills(self, index: int) -> bool:
        """Whether rows of the base get this attribute from real rows of their cell."""
        return (
            self.by_cell
            and index == self.rows.blocks.members[0][0]
            and index in self.positions
        )

    def draw(
        self,
        places: Indices,
        roots: Codes,
        rng: Generator,
    ) -> Mapping[int, Codes]:
        """Draw an input row behind each row of the component: its positions.

        They are by attribute; -1 stays -1.
        """
        copied = np.flatnonzero(places >= 0)
        rows = self.sources.draw(places[copied], rng)
        result = {
            index: np.full(len(places), -1, dtype=np.intp) for index in self.positions
        }
        for index, positions in self.positions.items():
            result[index][copied] = positions[rows]
            if self.fills(index):
                others = np.flatnonzero(
                    (result[index] < 0) & (self.cells.totals() > 0)[roots]
                )
                result[index][others] = positions[
                    self.cells.draw(roots[others].astype(np.intp), rng)
                ]
        return result


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """p*(α) ∝ q(α)·e^{⟨λ, φ(α)⟩} over the whole domain, possibly given some evidence.

    Binned numbers and rare values are treated as levels: the probability of a number is
    that of its whole bin.
    """

    domain: Domain
    blocks: Blocks
    prior: Prior
    # ⟨λ, φ⟩ of each level, with the logarithm of what evidence leaves of it
    potentials: Reals
    evidence: frozenset[int] = frozenset()  # attributes that evidence narrowed
    # raw values of real rows; None: numbers are always drawn inside their bins
    details: Details | None = None

    def __repr__(self) -> str:
        return visible(
            f"<Distribution over {count_text(self.domain.size)} points:"
            f" {', '.join(self.domain.names)}>"
        )

    @classmethod
    def of(cls, domain: Domain, optimum: Optimum) -> "Distribution":
        """The distribution that an optimum describes."""
        return cls(
            domain, optimum.dual.features.blocks, optimum.dual.prior, optimum.potentials
        )

    def detailed(
        self,
        positions: Positions | None,
        rows: Counted,
        design: Reals | None,
        profiles: Profiles | None = None,
        *,
        by_cell: bool = False,
    ) -> "Distribution":
        """Let drawn rows that copy a real row keep its raw values; see `Details`."""
        component = rows_of(self.prior)
        if component is None or not positions:
            return self

        kept = dict(positions)
        if profiles is not None:
            kept.pop(self.blocks.members[0][0], None)  # outcomes were changed
        table = rows.collect()
        weights = design
        if weights is None:
            weights = np.ones(len(table.inverse))
        details = Details(kept, weights, component, table, profiles, by_cell)
        return replace(self, details=details)

    @property
    def positions(self) -> Positions | None:
        """The raw values of real rows; None: they are not kept."""
        if self.details is None:
            return None
        return self.details.positions

    @cached_property
    def tilted(self) -> Tilted:
        """The tilted prior: the model in terms of block levels."""
        return self.prior.tilt(self.potentials)

    @property
    def root_table(self) -> Reals:
        """p(y, z): the exact table of outcome and protected attributes."""
        return self.tilted.levels[self.blocks.slices[0]].reshape(self.blocks.shape(0))

    def probability(self, frame: Any) -> Reals:
        """Return the probability of each row of a frame; 0 if evidence rules it out."""
        codes = self.blocks.pool(self.domain.encode(frame))
        result = np.exp(self.density.log_probability(codes))
        for index in sorted(self.evidence):
            attribute = self.domain.attributes[index]
            codes, values = factorize(
                frames.column(frames.open_frame(frame), attribute.name)
            )
            result[~attribute.can_draw(values)[codes]] = 0.0
        return result

    @property
    def density(self) -> Density:
        """The probability of rows given as block codes."""
        return Density(self.prior, self.potentials, self.tilted.log_partition)

    def marginal(self, columns: ColumnNames, *, given: Evidence | None = None) -> Any:
        """Return the exact joint distribution of a few columns, as a frame.

        It has a column ``probability``.
        """
        if given is not None:
            return self.condition(given).marginal(columns)

        names = read_columns("columns", columns)
        table = self.joint([self.domain.index(name) for name in names])
        if "probability" in names:
            raise ColumnError(
                "a column named 'probability' cannot be shown beside the probabilities;"
                " rename it"
            )

        cells = np.unravel_index(np.arange(table.size), table.shape)
        shown = {
            name: self.domain.attribute(name).column_of(cell)
            for name, cell in zip(names, cells, strict=True)
        }
        like = next(iter(shown.values()))
        return frames.build(
            shown
            | {"probability": frames.number_column("probability", table.ravel(), like)}
        )

    def joint(self, attributes: Sequence[int]) -> Reals:
        """Return the exact joint table of a few attributes, one axis each."""
        if len(set(attributes)) != len(attributes) or not attributes:
            names = [self.domain.names[attribute] for attribute in attributes]
            raise ColumnError(
                f"a marginal of {names} was asked for; name each column once, and at"
                " least one"
            )

        wanted = sorted({self.blocks.block_of(attribute) for attribute in attributes})
        cells = int(np.prod([float(self.blocks.levels[block]) for block in wanted]))
        if cells > LARGEST_MARGINAL:
            raise InputError(
                f"this marginal would have {cells:,} cells (at most"
                f" {LARGEST_MARGINAL:,}); ask for fewer columns"
            )

        members = [
            attribute for block in wanted for attribute in self.blocks.members[block]
        ]
        table = self.tilted.joint(wanted).reshape(
            [self.blocks.sizes[a] for a in members]
        )
        table = table.sum(
            axis=tuple(axis for axis, a in enumerate(members) if a not in attributes)
        )
        kept = [a for a in members if a in attributes]
        return table.transpose([kept.index(attribute) for attribute in attributes])

    def expectation(self, column: str, *, given: Evidence | None = None) -> float:
        """Return the mean of a numeric, boolean or date column where it is known."""
        if given:
            return self.condition(given).expectation(column)

        scores = self.domain.attribute(column).scores()
        levels = self.joint([self.domain.index(column)])
        present = ~np.isnan(scores)
        if not levels[present].any():
            raise EvidenceError(
                f"given this, column {column!r} is always missing, so it has no mean;"
                " relax the evidence"
            )

        total = levels[present] @ scores[present] + self._kept_beyond(column, scores)
        return float(total / levels[present].sum())

    def _kept_beyond(self, column: str, scores: Reals) -> float:
        """What rows with exact values add to the mean, beyond those of their levels."""
        index = self.domain.index(column)
        details = self.details
        rows = rows_of(self.prior)
        probabilities = row_probabilities(self.tilted)
        if (
            details is None
            or index not in details.positions
            or rows is None
            or probabilities is None
        ):
            return 0.0

        raw = frames.to_numbers(self.domain.attributes[index].values)[
            details.positions[index]
        ]
        level_scores = self.blocks.spread(
            {index: np.where(np.isnan(scores), 0.0, scores)}
        )
        beyond = details.sources.means(raw) - rows.scores(level_scores)
        drawn = (probabilities > 0) & ~np.isnan(beyond)
        added = float(probabilities[drawn] @ beyond[drawn])
        if not details.fills(index):
            return added

        roots = self.blocks.slices[0]
        copied = tally(
            rows.codes[:, 0].astype(np.intp), probabilities, self.blocks.levels[0]
        )
        mass = np.maximum(self.tilted.levels[roots] - copied, 0.0)
        beyond = details.cells.means(raw) - level_scores[roots]
        filled = (mass > 0) & ~np.isnan(beyond)
        return added + float(mass[filled] @ beyond[filled])

    def condition(self, given: Evidence) -> "Distribution":
        """Return the distribution given some columns.

        For example, ``{"sex": "Female", "race": ["Black", "Other"]}``. A column of
        numbers or dates can be given as a range: ``{"age": slice(18, 65)}`` means from
        18 up to, but not including, 65, and None leaves an end open.
        """
        if not isinstance(given, Mapping):
            raise InputError(
                f"given is {given!r}; fix columns by name, e.g. {{'sex': 'Female'}}"
            )

        changed = {}
        for name, value in given.items():
            values = [value]
            if isinstance(value, list | tuple | set | frozenset):
                values = list(value)
            if not values:
                raise EvidenceError(
                    f"given names no value for {name!r}; name one or more, or leave the"
                    " column out"
                )
            attribute = self.domain.attribute(name)
            changed[self.domain.index(name)] = attribute.narrowed(values)

        share = {}
        with np.errstate(divide="ignore", invalid="ignore"):
            # P(evidence | level): less than one where only some of a level's raw values
            # are meant.
            for index, new in changed.items():
                before = self.domain.attributes[index].level_counts()
                share[index] = np.log(np.nan_to_num(new.level_counts() / before))
        narrowed = replace(
            self._with_details_given(changed, share),
            domain=self.domain.with_attributes(changed),
            potentials=self.potentials + self.blocks.spread(share),
            evidence=self.evidence | changed.keys(),
        )
        if np.isneginf(narrowed.tilted.log_partition):
            shown = ", ".join(f"{name} = {value!r}" for name, value in given.items())
            raise EvidenceError(
                f"given {shown}: this has probability zero under the model, so nothing"
                " can be drawn. Relax the evidence; with ",
                BASE_SHARE,
                " > 0 every combination that is not forbidden is possible.",
            )

        return narrowed

    def sample(
        self,
        n: int,
        *,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Any:
        """Draw ``n`` rows by quota, or independently.

        By quota, groups have the model's rates up to one row.
        """
        check_flag("iid", iid)
        count = self.room_for(n)
        rng = generator(random_state)
        source = self
        if given is not None:
            source = self.condition(given)
        cells = cells_of(source.root_table, count, rng, independent=iid)
        return source.draw(cells, rng, spread=not iid)

    def room_for(self, n: int) -> int:
        """Refuse what is no number of rows, or more than memory holds."""
        needed = _CELL_MEMORY * check_count(n) * (1 + len(self.domain.attributes))
        need_memory(
            needed, f"drawing {n:,} rows", "draw fewer at a time, with sample_batches()"
        )
        return int(n)

    def draw(
        self,
        cells: Indices,
        rng: Generator,
        *,
        spread: bool,
    ) -> Any:
        """Draw one row for each wanted cell of outcome and protected columns.

        ``spread``: each row of the data is drawn in proportion to its weight, up to one
        row, and not independently.
        """
        drawn = self.tilted.draw(cells, rng, spread=spread)
        known = None
        if self.details is not None:
            known = self.details.draw(drawn.places, drawn.codes[:, 0], rng)
        return self.domain.decode(self.blocks.unpool(drawn.codes), rng=rng, known=known)

    def _with_details_given(
        self, changed: Mapping[int, Attribute], share: Mapping[int, Reals]
    ) -> "Distribution":
        """Weigh each row of the rows component by the evidence.

        What counts is how many of the real rows behind it agree.
        """
        rows = rows_of(self.prior)
        if self.details is None or rows is None:
            return self

        weights = self.details.weights.copy()
        # keeps rows whose raw values can still be drawn
        for index in changed.keys() & self.details.positions.keys():
            weights *= changed[index].counts[self.details.positions[index]] > 0
        details = replace(self.details, weights=weights)
        before = np.maximum(self.details.sources.totals(), np.finfo(float).tiny)
        agree = details.sources.totals() / before
        # ``share`` speaks of the levels of those columns in the base only, so it is
        # taken off again here.
        levels = rows.scores(
            self.blocks.spread(
                {index: share[index] for index in share if index in details.positions}
            )
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            log_weights = np.where(
                agree > 0, rows.log_weights + np.log(agree) - levels, -np.inf
            )
        return replace(
            self,
            details=details,
            prior=with_rows(self.prior, replace(rows, log_weights=log_weights)),
        )
