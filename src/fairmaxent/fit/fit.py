"""A fit: one fair distribution and its three outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count as counting
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.draws import Choice, RandomState, check_count, generator, quota
from fairmaxent.data.table import Counted, Table, match_rows
from fairmaxent.data.weights import read_weights
from fairmaxent.engines.lazy.frame import Lazy, check_column, names_of, open_lazy
from fairmaxent.engines.lazy.row_counts import join_weights
from fairmaxent.engines.where_rows_are import in_memory, row_prior
from fairmaxent.errors import ColumnError, InfeasibleError, InputError, WeightError
from fairmaxent.files.atomic import new_folder
from fairmaxent.fit import storage
from fairmaxent.fit.distribution import Distribution, Evidence
from fairmaxent.fit.learned import Learned
from fairmaxent.fit.request import read_rules
from fairmaxent.maxent.forbidden import break_any
from fairmaxent.maxent.optimum import Optimum, maximise_entropy
from fairmaxent.maxent.priors.mixture import rows_of
from fairmaxent.progress import Progress, silent
from fairmaxent.relabelling.profiles import Profiles

# Rows of one batch where none is asked for: large enough for array work, small beside the table.
BATCH = 1 << 18

# Rows of one file of many.
PART = 1 << 20

# More rows than this are not added to anybody's table.
LARGEST_TOP_UP = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Learned):
    """What :func:`fairmaxent.debias` learned.

    Three outputs of one fit: new rows (:meth:`sample`), weights for the rows one has (:meth:`weights`), and rows to
    add to them (:meth:`top_up`). The :attr:`certificate` says what was reached.
    """

    def __repr__(self) -> str:
        outcome, *protected = self.roles.names
        return f"<Fit of {outcome!r} by {protected}, {self.table.size} rows>\n{self.certificate}"

    @property
    def distinct_rows(self) -> Table:
        """The distinct rows of the table; refused if they are on the workers of a cluster."""
        return in_memory(self.table)

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
            yield self._complete(source.draw(cells, rng, spread=not iid))

    def weights(self) -> Reals:
        """One weight per input row, 1 on average: the fair distribution on the rows one has (C = 0).

        With ``absorb="relabel"`` one weight per input row and outcome, a column for each level of the outcome in the
        order of its labels; a row's weights are 1 together on average. :meth:`weigh` lays them out for training.
        """
        weights = self._distinct_weights[self.distinct_rows.inverse]
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
                "a relabelled fit weighs tables in memory only, as each row stands there once per outcome; pass the "
                "collected table, or use sample()"
            )
        for column in self.columns:
            check_column(lazy, column)
        if name in names_of(lazy):
            raise ColumnError(f"the table has a column {name!r} already; pass another name for the weights")
        weight = None if self.weight_column is None else self.weight_column.name
        if isinstance(self.table, Table):
            return join_weights(lazy, self.roles, self.table, self._distinct_weights, weight=weight, name=name)
        return self._weigh_on_workers(lazy, weight, name)

    def _weigh_on_workers(self, lazy: Lazy, weight: str | None, name: str) -> Any:
        """Weigh each row by its levels alone, as w(α)/n_α is a factor of its cell."""
        from fairmaxent.engines.cluster.weighing import weigh_rows

        blocks, optimum = self.roles.blocks, self._fitted_weights()
        rules = read_rules(self.roles, self.options["forbid"])
        (fair,), (old,) = (rows.tables([(0,)], blocks.levels) for rows in (self.weighted, self._kept()))
        factor = np.divide(self.table.size * fair, old, out=np.zeros(len(old)), where=old > 0)
        log_levels = optimum.potentials
        with np.errstate(divide="ignore"):
            log_levels[blocks.slices[0]] += np.log(factor) - Distribution.of(self.domain, optimum).tilted.log_partition
        return weigh_rows(lazy, self.roles, log_levels, rules=rules, weight=weight, name=name)

    def _weigh_rows(self, frame: nw.DataFrame[Any], name: str) -> Any:
        """Put a column of weights beside rows in memory, in any order, once for each outcome that has one."""
        if name in frame.columns:
            raise ColumnError(f"the table has a column {name!r} already; pass another name for the weights")
        outcome = self.roles.names[0]
        if self.soft is not None and not self.roles.attributes[0].is_value_coded:
            raise InputError(
                f"outcome {outcome!r} is made of bins, so a relabelled row has no value of its own; cut it into levels "
                "before the fit, or use sample()"
            )
        weights = self._weights_of(frame)
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

    def _weights_of(self, frame: nw.DataFrame[Any]) -> Reals:
        """The weight of each row of a table, by its levels; by outcome if relabelled."""
        table, blocks = self.table.collect(), self.roles.blocks
        place = match_rows(table.codes, blocks.pool(self.domain.encode(frame)), blocks.levels)
        if (place < 0).any():
            raise InputError(
                f"row {int(np.argmax(place < 0))} is not one of those that were fitted; weights are for the table of "
                "the fit, in any order"
            )
        weights = self._distinct_weights[place]
        design = read_weights(frame, None if self.weight_column is None else self.weight_column.name)
        return np.asarray(weights if design is None else (weights.T * design).T)

    @cached_property
    def _distinct_weights(self) -> Reals:
        """The weight of an input row of each distinct row, before its design weight; by outcome if relabelled."""
        fair, table = self.support_weights(), self.table.collect()
        if self.soft is None:
            counts = np.where(table.counts > 0, table.counts, 1.0)  # rows of design weight zero stay at zero
            return np.asarray(fair / counts)
        profiles = Profiles.of(table, self.roles.blocks, self._kept().collect().counts)
        mass = profiles.mass
        by_profile = fair.reshape(-1, len(mass)) / np.where(mass > 0, mass, 1.0)
        forbidden = self.soft[profiles.places, profiles.outcomes] <= 0
        return np.asarray(np.where(forbidden, 0.0, by_profile[:, profiles.places]).T)

    def support_weights(self) -> Reals:
        """What each row of the prior counts in the fair distribution on these rows (C = 0); the input rows in all."""
        known = Distribution.of(self.domain, self._fitted_weights())
        return np.asarray(self.table.size * np.exp(known.log_probability(self.weighted.collect().codes)))

    def _kept(self) -> Counted:
        """The rows, those that a rule forbids counting zero."""
        rules = read_rules(self.roles, self.options["forbid"])
        return self.table.without(partial(break_any, rules)) if rules else self.table

    def _fitted_weights(self) -> Optimum:
        """The fair distribution on the rows alone (C = 0)."""
        if self.certificate.filled_cells:
            raise InfeasibleError(
                f"weights cannot reach the fair table: {self.certificate.filled_cells[0]} has mass there and no rows "
                "to weigh. Use sample() or top_up(), or ask for lower rates."
            )
        blocks, features = self.distribution.blocks, self.optimum.dual.features
        rows = rows_of(self.optimum.dual.prior) or row_prior(blocks, self.weighted)
        if rows is self.optimum.dual.prior:  # C = 0 already
            return self.optimum
        try:
            return maximise_entropy(rows, features, self.target, describe=self.roles.describe_level)
        except InfeasibleError as problem:
            raise InfeasibleError(
                f"weights alone cannot meet the target: {problem} For this fit use sample() or top_up()."
            ) from problem

    def top_up(self, *, random_state: RandomState = None) -> Any:
        """Draw the fewest rows to add so that old and new together meet the fair table, up to one row per cell.

        The fair table is that of this fit, ``fit.distribution.marginal([...])`` of outcome and protected columns;
        another table with the same rates may be met with fewer.
        """
        seed = self.options["random_state"] if random_state is None else random_state
        rng = generator(seed)
        cells = np.repeat(np.arange(self.distribution.blocks.levels[0]), self._missing_rows())
        return self._complete(self.distribution.draw(rng.permutation(cells), rng, spread=True))

    def write_sample(
        self,
        n: int,
        folder: str | PathLike[str],
        *,
        size: int = PART,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
        progress: Progress = silent,
    ) -> None:
        """Draw ``n`` new rows into a new or empty folder, as Parquet files of at most ``size`` rows, each whole.

        Together the files are a sample of ``n`` rows, by quota overall. Where the rows of the fit are on a Dask
        cluster its workers draw and write, so the folder must be one that all of them see; each file then holds rows
        of one partition. The same seed gives the same rows for the same partitions, whoever does the work. The other
        options are those of :meth:`sample`; ``progress`` is called as ``progress("rows", share)``.
        """
        from fairmaxent.engines.cluster.drawing import Form, part_name, write_on_workers, write_part
        from fairmaxent.engines.cluster.partitions import Partitions

        count, most, place = check_count(n), check_count(size), new_folder(folder)
        if not isinstance(self.table, Partitions):
            batches = self.sample_batches(count, size=most, given=given, random_state=random_state, iid=iid)
            for number, batch in enumerate(batches):
                write_part(batch, place / part_name(number))
                progress("rows", min(1.0, (number + 1) * most / count))
            return
        rng = generator(self.options["random_state"] if random_state is None else random_state)
        source = self.distribution.condition(given) if given else self.distribution
        roots = source.root_table.ravel()
        cells = rng.multinomial(count, roots / roots.sum()) if iid else quota(roots, count)
        form = Form(source.domain, source.blocks, self.columns, self.weight_column)
        write_on_workers(
            self.table,
            source.prior,
            source.potentials,
            cells,
            place,
            form,
            size=most,
            evenly=not iid,
            rng=rng,
            progress=progress,
        )

    def collect(self) -> Fit:
        """Take the distinct rows of a fit on a Dask cluster into memory; a fit in memory is returned as it is."""
        if isinstance(self.table, Table):
            return self
        from fairmaxent.engines.cluster.partitioned_rows import collected

        weighted, dual = self.weighted.collect(), self.optimum.dual
        optimum = replace(self.optimum, dual=replace(dual, prior=collected(dual.prior, weighted)))
        return replace(
            self,
            table=self.table.collect(),
            weighted=weighted,
            optimum=optimum,
            distribution=Distribution.of(self.domain, optimum),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fit to one file; :func:`fairmaxent.load` reads it back.

        The distinct rows are in it: those of a fit on a Dask cluster are taken into memory for it.
        """
        storage.save(self.collect(), path)

    def _missing_rows(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """How many rows each cell lacks at the smallest total where none has too many."""
        fair = self.distribution.root_table.ravel()
        (old,) = self.table.tables([(0,)], self.roles.blocks.levels)
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
        counts = (fair_counts(fair, total, rows) for total in counting(least))
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
    return Fit(**vars(storage.load(path)))
