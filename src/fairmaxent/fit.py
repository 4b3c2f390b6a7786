"""A fit: one fair distribution and its three outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent import frames, storage
from fairmaxent.certificate import Certificate
from fairmaxent.choice import Choice, RandomState, check_count, generator, quota
from fairmaxent.distribution import Distribution, Evidence
from fairmaxent.domain import Domain
from fairmaxent.engines.lazy import check_column, names_of, open_lazy
from fairmaxent.engines.rows import join_weights
from fairmaxent.errors import ColumnError, InfeasibleError, InputError, WeightError
from fairmaxent.maxent import Optimum, maximise_entropy
from fairmaxent.priors.rows import Rows
from fairmaxent.profiles import Profiles
from fairmaxent.roles import Roles
from fairmaxent.table import Reals, Table, tally

# Rows of one batch where none is asked for: large enough for array work, small beside the table.
BATCH = 1 << 18

# More rows than this are not added to anybody's table.
LARGEST_TOP_UP = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What :func:`fairmaxent.debias` learned.

    Three outputs of one fit: new rows (:meth:`sample`), weights for the rows one has (:meth:`weights`), and rows to
    add to them (:meth:`top_up`). The :attr:`certificate` says what was reached.
    """

    options: Mapping[str, Any]  # what was asked for, as given
    columns: tuple[str, ...]  # columns of the input, in order
    roles: Roles
    table: Table  # distinct rows as block codes
    support: Table  # the rows that the prior stands on: relabelled, every profile once per outcome, or the same
    soft: Reals | None  # π(y | x, z) of the profiles, where outcomes were relabelled
    row_weights: Reals  # w: fair weights of the rows of the support
    target: Reals  # wanted probability of each level
    optimum: Optimum
    distribution: Distribution  # p* over the whole domain
    certificate: Certificate
    design_weights: Reals | None  # one per input row
    weight_column: frames.Column | None  # a one of the weight column's kind

    def __repr__(self) -> str:
        outcome, *protected = self.roles.names
        return f"<Fit of {outcome!r} by {protected}, {self.table.size} rows>\n{self.certificate}"

    @property
    def domain(self) -> Domain:
        """The columns as they were learned."""
        return self.roles.domain

    def sample(
        self, n: int, *, given: Evidence | None = None, random_state: RandomState = None, iid: bool = False
    ) -> Any:
        """Draw ``n`` new rows: a frame of the same kind, with the same columns, order and dtypes.

        The drawn rows themselves meet the wanted rates up to one row per cell (quota); ``iid=True`` draws
        independently. ``given`` fixes columns, e.g. ``{"sex": "Female"}``, exactly and at no extra cost. A column of
        design weights comes back as ones: drawn rows need none.
        """
        seed = self.options["random_state"] if random_state is None else random_state
        return self._complete(self.distribution.sample(n, given=given, random_state=seed, iid=iid))

    def sample_batches(
        self,
        n: int,
        *,
        size: int = BATCH,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Iterator[Any]:
        """Draw ``n`` new rows as frames of ``size`` rows, the last one of what is left, one at a time in memory.

        Together they are a sample of ``n`` rows: by quota overall, and so is each of them. The options are those of
        :meth:`sample`.
        """
        left, most = check_count(n), check_count(size)
        rng = generator(self.options["random_state"] if random_state is None else random_state)
        source = self.distribution.condition(given) if given else self.distribution
        return self._batches(source, left, most, rng, iid=iid)

    def _batches(
        self, source: Distribution, left: int, most: int, rng: np.random.Generator, *, iid: bool
    ) -> Iterator[Any]:
        roots = source.root_table.ravel()
        wanted = quota(roots, left)
        while left:
            rows = min(left, most)
            if iid:
                cells = Choice.rows_of(roots[None, :]).draw(np.zeros(rows, dtype=np.intp), rng)
            else:
                now = quota(wanted.astype(np.float64), rows)
                wanted, cells = wanted - now, rng.permutation(np.repeat(np.arange(len(roots)), now))
            left -= rows
            yield self._complete(source.draw(cells, rng))

    def weights(self) -> Reals:
        """One weight per input row, 1 on average: the fair distribution on the rows one has (C = 0).

        With ``absorb="relabel"`` one weight per input row and outcome, a column for each level of the outcome in the
        order of its labels; a row's weights are 1 together on average. :meth:`weigh` lays them out for training.
        """
        inverse = self.table.inverse
        weights = self._distinct_weights[inverse]
        return np.asarray(weights if self.design_weights is None else (weights.T * self.design_weights).T)

    def weigh(self, frame: Any, *, name: str = "fair_weight") -> Any:
        """Return the table that was fitted with a column of weights, ready to train on.

        The same weights as :meth:`weights`. With ``absorb="relabel"`` every row stands there once per outcome that it
        has a weight for. Columns that took no part in the fit stay beside the others. A lazy frame is joined with its
        weights inside its engine; nothing is computed until it is collected.
        """
        lazy = open_lazy(frame)
        if lazy is None:
            return self._weigh_rows(frames.open_frame(frame), name)
        if self.soft is not None:
            raise InputError(
                "a relabelled fit weighs tables in memory only; collect the lazy frame, or use sample() or "
                "absorb='reweigh'"
            )
        for column in self.columns:
            check_column(lazy, column)
        if name in names_of(lazy):
            raise ColumnError(f"the table has a column {name!r} already; pass another name for the weights")
        weight = None if self.weight_column is None else self.weight_column.name
        return join_weights(lazy, self.roles, self.table, self._distinct_weights, weight=weight, name=name)

    def _weigh_rows(self, frame: nw.DataFrame[Any], name: str) -> Any:
        """Put a column of weights beside the rows of a table in memory, once for each outcome that has one."""
        weights = self.weights()
        if name in frame.columns:
            raise ColumnError(f"the table has a column {name!r} already; pass another name for the weights")
        if not set(self.columns) <= set(frame.columns) or len(frame) != len(weights):
            raise InputError("weights belong to the rows that were fitted; pass that very table")
        outcome = self.roles.names[0]
        like = frame.get_column(outcome)
        if self.soft is None:
            return frame.with_columns(frames.number_column(name, weights, like)).to_native()
        parts = []
        for level in range(weights.shape[1]):
            kept = np.flatnonzero(weights[:, level] > 0)
            parts.append(
                frame[kept].with_columns(
                    self.domain.column_of(outcome, np.full(len(kept), level)),
                    frames.number_column(name, weights[kept, level], like),
                )
            )
        return nw.concat(parts).to_native()

    @cached_property
    def _distinct_weights(self) -> Reals:
        """The weight of an input row of each distinct row, before its design weight; by outcome if relabelled."""
        if self.certificate.filled_cells:
            raise InfeasibleError(
                f"weights cannot reach the fair table: {self.certificate.filled_cells[0]} has mass there and no rows "
                "to weigh. Use sample() or top_up(), or ask for lower rates."
            )
        blocks, features = self.distribution.blocks, self.optimum.dual.features
        rows = Rows.weighted(blocks, self.support.codes, self.row_weights)
        try:
            optimum = maximise_entropy(rows, features, self.target, describe=self.roles.describe_level)
        except InfeasibleError as problem:
            raise InfeasibleError(
                f"weights alone cannot meet the target: {problem} For this fit use sample() or top_up()."
            ) from problem
        known = Distribution.of(self.domain, optimum)
        fair = self.table.size * np.exp(known.log_probability(self.support.codes))
        counts = self.support.counts
        if self.soft is None:
            return np.asarray(fair / np.where(counts > 0, counts, 1.0))  # rows of design weight zero stay at zero
        profiles = Profiles.of(self.table, blocks, self.table.counts)
        mass = counts.reshape(-1, len(profiles.codes)).sum(axis=0)
        by_profile = fair.reshape(-1, len(mass)) / np.where(mass > 0, mass, 1.0)
        return np.asarray(by_profile.T[profiles.places])

    def top_up(self, *, random_state: RandomState = None) -> Any:
        """Draw the fewest rows to add so that old and new together meet the fair table, up to one row per cell.

        The fair table is that of this fit, ``fit.distribution.marginal([...])`` of outcome and protected columns;
        another table with the same rates may be met with fewer.
        """
        seed = self.options["random_state"] if random_state is None else random_state
        rng = generator(seed)
        cells = np.repeat(np.arange(self.distribution.blocks.levels[0]), self._missing_rows())
        return self._complete(self.distribution.draw(rng.permutation(cells), rng))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fit to one file; :func:`fairmaxent.load` reads it back."""
        storage.save(self, path)

    def _missing_rows(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """How many rows each cell lacks at the smallest total where none has too many."""
        fair = self.distribution.root_table.ravel()
        old = tally(self.table.codes[:, 0], self.table.counts, len(fair))
        stuck = np.flatnonzero((old > 0) & (fair <= 0))
        if len(stuck):
            cell = np.unravel_index(int(stuck[0]), self.distribution.root_table.shape)
            raise InfeasibleError(
                f"adding rows cannot meet the fair table: {self.roles.describe_cell([int(c) for c in cell])} must have "
                "no mass but has rows. Remove them first, or use sample() or weights()."
            )
        average = old.sum() / self.table.size
        if not 0.2 <= average <= 5:
            raise WeightError(
                f"rows to add weigh 1, but the design weights are {average:.3g} on average; scale them to about 1 on "
                "average before fitting"
            )
        rows = np.round(old)
        least = int(max(rows.sum(), np.ceil(np.max((rows - 1) / np.where(fair > 0, fair, np.inf)))))
        if least - rows.sum() > LARGEST_TOP_UP:
            raise InfeasibleError(
                f"meeting the fair table takes {least - int(rows.sum()):,} more rows, over {LARGEST_TOP_UP:,}: a group "
                "is wanted far rarer than it is. Use sample() or weights(), or change the target."
            )
        counts = (fair_counts(fair, total, rows) for total in count(least))
        return next((found - rows).astype(np.intp) for found in counts if found is not None)

    def _complete(self, frame: Any) -> Any:
        """Put the columns in the order of the input, the weight column as ones."""
        if self.weight_column is None and self.columns == self.domain.names:
            return frame
        return frames.arrange(frame, self.columns, self.weight_column)


def fair_counts(fair: Reals, total: int, least: Reals) -> Reals | None:
    """Whole numbers within one of total·fair, none below ``least``, that sum to ``total``; None if there are none.

    >>> fair_counts(np.array([0.5, 0.5]), 5, np.array([3.0, 0.0]))
    array([3., 2.])
    """
    wanted = np.round(fair * total, 9)
    counts, most = np.maximum(np.floor(wanted), least), np.ceil(wanted)
    short = total - int(counts.sum())
    open_cells = np.flatnonzero(counts < most)
    if (counts > most).any() or not 0 <= short <= len(open_cells):
        return None
    largest = open_cells[np.argsort((counts - wanted)[open_cells], kind="stable")[:short]]
    counts[largest] += 1
    return np.asarray(counts)


def load(path: str | PathLike[str]) -> Fit:
    """Read a fit back that :meth:`Fit.save` wrote.

    Raises :class:`fairmaxent.StorageError` for a file that is missing, damaged, foreign, or of a newer format.
    """
    return Fit(**storage.load_parts(path))
