"""What was fitted: one fair distribution and its three outputs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.draws import (
    RandomState,
    check_count,
    generator,
    shuffled_cells,
)
from fairmaxent.data.quotas import divided, quota
from fairmaxent.data.table import Indices, Reals, Table
from fairmaxent.distribution import Distribution, Evidence
from fairmaxent.document import Blocks, Heading, Listing, Paragraph
from fairmaxent.document.html import to_html
from fairmaxent.document.text import to_text
from fairmaxent.engines.lazy_frame import open_lazy
from fairmaxent.engines.rows import in_memory, row_prior
from fairmaxent.errors import InputError, Option, Spell, check_flag
from fairmaxent.facts.output import Mode, Output
from fairmaxent.fairness.rates import Grouping
from fairmaxent.fit import storage
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.groups import (
    Plotted,
    draw_groups,
    group_changes,
    summary_frame,
)
from fairmaxent.fit.lazy_weights import weigh_lazily
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.top_up import missing_rows
from fairmaxent.fit.uncertainty import Uncertainty, measure_uncertainty
from fairmaxent.fit.weights import spread_over_rows, weigh_rows, with_design
from fairmaxent.options.refusals import refuse
from fairmaxent.privacy.provenance import Provenance
from fairmaxent.progress import Progress, silent
from fairmaxent.telling.case import Case, Weight
from fairmaxent.telling.entries import told
from fairmaxent.telling.wishes import wishes

# rows of one batch by default: large enough for array work, small beside the table
BATCH = 1 << 18
PART = 1 << 20  # rows of one file of many
# what can be done with a fit: the call, and what it gives
_TOP_UP = "fit.top_up(): rows to add"
_NEXT = (
    "fit.sample(n): new rows",
    "fit.weigh(table): your rows with their weights",
    _TOP_UP,
    "fit.summary(): group by group",
    "fit.plot(): a picture",
    'fit.report("report.html"): a report to file',
    "print(fit.certificate): everything",
)
_NEXT_WITH_ROWS = slice(1, 3)  # a private fit hides the rows that they need


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Certified(Solved):
    """A solution, its certificate and its three outputs; `Fit` adds its papers."""

    certificate: Certificate

    @property
    def provenance(self) -> Provenance:
        """What may be shown of its rows, and whose noise its numbers have."""
        return self.certificate.provenance

    def __repr__(self) -> str:
        return to_text(self._at_a_glance())

    def _repr_html_(self) -> str:
        return to_html(self._at_a_glance())

    def _at_a_glance(self) -> Blocks:
        """What it is about, the headline, and what can be done next."""
        outcomes = ", ".join(self.roles.outcome_names)
        groups = list(self.roles.protected_names)
        rows = self.certificate.rows
        yield Heading(f"<Fit of {outcomes!r} by {groups}, {rows:,} rows>")
        case = self.case(rest="; print(fit.certificate) shows them")
        yield from told(case, least=Weight.WARNING)
        yield Paragraph("next:")
        calls = list(_NEXT)
        if not self.provenance.shows_rows:
            del calls[_NEXT_WITH_ROWS]
        elif self.has_chances:
            calls.remove(_TOP_UP)
        yield Listing(tuple(calls))

    def case(
        self,
        output: Output | None = None,
        *,
        estimable: Mode | None = None,
        table: Reals | None = None,
        spell: Spell = str,
        rest: str = "",
    ) -> Case:
        """What is told of it and of its output; ``table`` is that of the output."""
        own = self.request.words()
        return Case(
            facts=self.certificate,
            output=output,
            estimable=None if self.has_chances else estimable,
            groups=group_changes(self, table),
            wishes=tuple(wishes(self.certificate, self.roles, own)),
            spell=spell,
            rest=rest,
        )

    @property
    def is_on_cluster(self) -> bool:
        """Whether the distinct rows are on the workers of a cluster."""
        return not isinstance(self.table, Table)

    @property
    def distribution_of_data(self) -> Distribution:
        """The table of the data as a distribution, wherever its rows are."""
        blocks = self.blocks
        nothing = np.zeros(blocks.width)
        return Distribution(self.domain, blocks, row_prior(blocks, self.table), nothing)

    @property
    def distinct_rows(self) -> Table:
        """The distinct rows of the table; refused if they are on a cluster."""
        return in_memory(self.table)

    def sample(
        self,
        n: int,
        *,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Any:
        """Draw ``n`` new rows: a frame of the same kind, with the same columns.

        The drawn rows themselves have the wanted rates, up to one row in each group and
        outcome (quota), and up to two in an intersection of columns that are compared
        one by one. ``iid=True`` draws them independently. ``given`` fixes columns:
        ``{"sex": "Female"}``, or a range, ``{"age": slice(18, 65)}`` (from 18 up to,
        but not including, 65). A column of design weights comes back as ones: drawn
        rows need none.
        """
        return next(
            self.sample_batches(
                n,
                size=n,
                given=given,
                random_state=random_state,
                iid=iid,
            )
        )

    def sample_batches(
        self,
        n: int,
        *,
        size: int = BATCH,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Iterator[Any]:
        """Draw ``n`` new rows as frames of ``size`` rows, one at a time in memory.

        Together they are a sample of ``n`` rows by quota, and each frame has its part
        of every combination, up to one row. The options are those of :meth:`sample`.
        """
        check_flag("iid", iid)
        count = check_count(n)
        most = check_count(size)
        self.distribution.room_for(min(count, most))
        rng = self._generator(random_state)
        source, wanted = self._wanted(count, given, rng, iid=iid)
        return (
            self._complete(source.draw(shuffled_cells(share, rng), rng, spread=not iid))
            for share in divided(wanted, most, rng)
        )

    def weights(self) -> Reals:
        """One weight per input row, 1 on average: the fair distribution with C = 0.

        A relabelled fit has one weight per input row and outcome: a column for each
        level of the outcome, in the order of its labels; the weights of a row add up to
        1 on average. :meth:`weigh` lays them out for training.
        """
        refuse(self.request, mode="weights")
        rows = self.distinct_rows.inverse
        if self.weighed is not None:
            return self.weighed.weights
        return with_design(self._distinct_weights[rows], self.design_weights)

    def weigh(self, frame: Any, *, weight_name: str = "fair_weight") -> Any:
        """Return the fitted table with a column of :meth:`weights`, to train on.

        If the fit is relabelled, every row appears once for each outcome that it has a
        weight for. Columns that took no part in the fit are kept. A lazy frame is
        joined inside its engine, and computed when it is collected.
        """
        refuse(self.request, mode="weights")
        lazy = open_lazy(frame)
        if lazy is not None and self.has_chances:
            raise InputError(
                "weights depend on the probabilities of each row, so rows are weighed"
                " in memory only; pass the collected table"
            )
        if lazy is None:
            return weigh_rows(
                self, self._distinct_weights, frames.open_frame(frame), weight_name
            )
        return weigh_lazily(
            self,
            self._distinct_weights if isinstance(self.table, Table) else None,
            lazy,
            weight_name,
        )

    @property
    def _sums(self) -> frozenset[Grouping]:
        """The totals that drawn rows have up to one row."""
        # nobody knows who is in which group if these are probabilities
        return (
            frozenset() if self.weighed is not None else self.certificate.measure.sums
        )

    @cached_property
    def _distinct_weights(self) -> Reals:
        return spread_over_rows(self)

    def top_up(self, *, random_state: RandomState = None) -> Any:
        """Draw the fewest rows to add so that old and new together meet the fair table,
        up to one row per cell.

        Groups meet it up to one row as well, if that is possible. Another fair table
        than that of this fit, with the same rates, might be met with fewer rows.
        """
        rng = self._generator(random_state)
        cells = shuffled_cells(self.cells_to_add(), rng)
        return self._complete(self.distribution.draw(cells, rng, spread=True))

    def cells_to_add(self) -> Indices:
        """How many rows of each combination :meth:`top_up` adds."""
        refuse(self.request, mode="top-up")
        return missing_rows(self, self.certificate.measure.sums)

    def model(self) -> Any:
        """The model that the table was made for (``model=``), trained on the rows with
        their weights.

        It takes the columns of the table that it was shown, and predicts the table's
        own outcomes.
        """
        if self.student is None:
            raise InputError(
                "no model was trained for this fit; ask for one with ",
                Option("model", "logistic"),
                ". A file does not hold it: train yours on fit.weigh(table)",
            )
        return self.student

    def uncertainty(
        self,
        *,
        replicates: int = 200,
        confidence: float = 0.95,
        random_state: RandomState = None,
    ) -> Uncertainty:
        """Bootstrap the fit: how different the fair table might have been with another
        sample of people.

        The answer has intervals of the table of outcome and groups, the shares of
        outcomes and groups, and the rates, before and after; printed, it is a table.
        Each replicate draws the people anew, by their design weights, and makes their
        table fair in the same way. What a model will do is not part of it: see
        ``estimate``.
        """
        refuse(self.request, mode="uncertainty")
        rng = self._generator(random_state)
        return measure_uncertainty(
            self,
            replicates=replicates,
            confidence=confidence,
            rng=rng,
        )

    def summary(self, *, confidence: float = 0.95) -> Any:
        """Each group before and after, as a frame of the library that the data came in.

        One row for each group and each outcome that is compared: the ``rows`` that the
        group has in the data, its share before and after, the factor by which its
        average row counts more or less (``weight_factor``), and its rate of the outcome
        before, with an interval, and after. That one is exact; see :meth:`uncertainty`.
        """
        return summary_frame(self, group_changes(self, confidence=confidence))

    def plot(self, what: Plotted = "rates", *, ax: Any = None) -> Any:
        """Draw each group before and after; needs matplotlib.

        ``what`` is ``"rates"``, how often each group gets the outcome, or ``"shares"``,
        how large each group is. Rates of a table that is made for a model are what the
        model is expected to decide, with 95 % intervals; what the table teaches it is
        in :meth:`summary`. Draws on ``ax``, or on a new figure, and returns the
        Axes; ``fit.plot().figure.savefig("rates.png")`` saves it.
        """
        changes = group_changes(self)
        return draw_groups(self, changes, self.certificate.decisions, what, ax)

    def write_sample(
        self,
        n: int,
        folder: str | PathLike[str],
        *,
        size: int = PART,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
        readable_by_others: bool = False,
        progress: Progress = silent,
    ) -> None:
        """Draw ``n`` new rows into a new or empty folder, as Parquet files of at most
        ``size`` rows.

        The files appear together once all are complete; if anything fails, none does.
        Only you can read them, unless they are to be ``readable_by_others``, which is
        also needed if the workers of a cluster are other users. If the rows of the fit
        are on a Dask cluster, its workers draw and write, so all of them must see the
        folder; each file then holds rows of one partition, the same for the same seed
        and partitions. The other options are those of :meth:`sample`; ``progress`` is
        called as ``progress("rows", share)``.
        """
        # Here, because writers of files take a while to import.
        from fairmaxent.engines.cluster_output import part_name, write_part
        from fairmaxent.files.write import Staging

        count = check_count(n)
        most = check_count(size)
        readable = [folder] if readable_by_others else []
        with Staging([], folders=[folder], readable=readable) as staging:
            target = staging.path_for(folder)
            if self.is_on_cluster:
                rng = self._generator(random_state)
                source, cells = self._wanted(count, given, rng, iid=iid)
                self.write_cells(
                    cells.ravel(),
                    target,
                    rng,
                    source=source,
                    size=most,
                    evenly=not iid,
                    readable=readable_by_others,
                    progress=progress,
                )
                return
            batches = self.sample_batches(
                count,
                size=most,
                given=given,
                random_state=random_state,
                iid=iid,
            )
            for number, batch in enumerate(batches):
                write_part(
                    batch, target / part_name(number), readable=readable_by_others
                )
                progress("rows", min(1.0, (number + 1) * most / count))

    def write_cells(
        self,
        cells: Indices,
        folder: Path,
        rng: Generator,
        *,
        source: Distribution | None = None,
        size: int = PART,
        evenly: bool = True,
        readable: bool = False,
        progress: Progress = silent,
    ) -> None:
        """Let the workers of a cluster draw rows of each cell into files of a folder.

        They are drawn from the fair distribution, or another ``source``.
        """
        from fairmaxent.engines.cluster_output import write_on_workers

        source = source or self.distribution
        write_on_workers(
            cast(Any, self.table),  # which is in partitions
            source.density,
            cells,
            self._delivery(source, evenly=evenly),
            rng,
            folder=folder,
            size=size,
            readable=readable,
            progress=progress,
        )

    def _delivery(self, source: Distribution, *, evenly: bool) -> Any:
        """How codes that workers draw become rows like those of the input."""
        from fairmaxent.engines.cluster_output import Delivery

        return Delivery(
            source.domain, source.blocks, self.columns, self.weight_column, evenly
        )

    def sample_lazily(
        self,
        frame: Any,
        n: int,
        *,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Any:
        """Draw ``n`` new rows in the tasks of Spark: a Spark frame like ``frame``.

        That is the frame that was fitted. Nothing is drawn before the rows are used,
        e.g. by ``.write.parquet(folder)``. Together they are a sample of ``n`` rows,
        as in :meth:`sample_batches`, which explains the options; the same seed gives
        the same rows. Each task holds the distinct rows.
        """
        from fairmaxent.engines.cluster_output import draw_by_tasks

        lazy = open_lazy(frame)
        if lazy is None or not lazy.implementation.is_spark_like():
            raise InputError(
                "rows are drawn lazily for Spark alone; pass the Spark frame that was"
                " fitted, or use fit.write_sample(n, folder)"
            )
        check_flag("iid", iid)
        rng = self._generator(random_state)
        source, wanted = self._wanted(check_count(n), given, rng, iid=iid)
        shares = list(divided(wanted, BATCH, rng))
        return draw_by_tasks(
            lazy.select(*self.columns).to_native(),
            source.tilted,
            np.array(shares),
            self._delivery(source, evenly=not iid),
            seed=int(rng.integers(2**63)),
        )

    def collect(self) -> Self:
        """Bring the distinct rows of a fit on a Dask cluster into memory.

        A fit in memory is returned unchanged.
        """
        if isinstance(self.table, Table):
            return self
        from fairmaxent.engines.cluster_partitions import collected

        weighted = self.weighted.collect()
        dual = self.optimum.dual
        optimum = replace(
            self.optimum, dual=replace(dual, prior=collected(dual.prior, weighted))
        )
        problem = replace(self.problem, table=self.table.collect())
        distribution = Distribution.of(self.domain, optimum)
        return replace(
            self,
            problem=problem,
            weighted=weighted,
            optimum=optimum,
            distribution=distribution,
        )

    def save(
        self, path: str | PathLike[str], *, readable_by_others: bool = False
    ) -> None:
        """Write the fit to one file.

        :func:`fairmaxent.load` reads it back. An existing file is replaced.

        The file holds the distinct rows, so only you can read it, unless it is to be
        ``readable_by_others``; a file that is replaced keeps its permissions. The rows
        of a fit on a Dask cluster are brought into memory first.
        """
        storage.save(
            self.collect(), self.certificate, path, readable=readable_by_others
        )

    def _wanted(
        self,
        count: int,
        given: Evidence | None,
        rng: Generator,
        *,
        iid: bool,
    ) -> tuple[Distribution, Indices]:
        """What new rows are drawn from, and how many of them each cell has."""
        source = self.distribution
        if given is not None:
            source = source.condition(given)
        fair = source.root_table
        if iid:
            chances = fair.ravel() / fair.sum()
            return source, rng.multinomial(count, chances).reshape(fair.shape)
        return source, quota(fair, count, rng, sums=self._sums)

    def _generator(self, random_state: RandomState) -> Generator:
        """The generator asked for, or else one with the seed of the request."""
        return generator(
            self.request.random_state if random_state is None else random_state
        )

    def _complete(self, frame: Any) -> Any:
        """Put the columns in the order of the input, the weight column as ones."""
        if self.weight_column is None and self.columns == self.domain.names:
            return frame
        return frames.arrange(frame, self.columns, self.weight_column)
