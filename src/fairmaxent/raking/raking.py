"""A raking: the weights that known margins ask for, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.draws import RandomState, check_count, generator
from fairmaxent.data.table import match_rows
from fairmaxent.data.weights import read_weights
from fairmaxent.engines.lazy_counts import join_weights
from fairmaxent.engines.lazy_frame import Lazy, check_column, fresh_name, names_of, open_lazy
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.fit.distribution import Distribution, Evidence
from fairmaxent.raking.certificate import RakingCertificate
from fairmaxent.raking.population import arranged, population_in_engine, population_in_memory
from fairmaxent.raking.survey import Survey

WEIGHT_NAME = "raked_weight"


@dataclass(frozen=True, eq=False, repr=False)
class Raking:
    """What :func:`fairmaxent.rake` found: weights that give the table the known margins.

    The :attr:`certificate` shows what was reached and what it costs.
    """

    survey: Survey
    factors: Reals
    """By what the share of a row in the total changes, for each cell of the survey."""
    certificate: RakingCertificate
    random_state: RandomState = None
    replicated: Reals | None = None
    """The weights of each row in each replicate, 1 on average; None: none were asked for."""

    def __repr__(self) -> str:
        names = ", ".join(margin.name for margin in self.certificate.margins)
        return f"<Raking of {self.survey.size:,} rows to {names}>\n{self.certificate}"

    def weights(self) -> Reals:
        """One weight per row: 1 on average if the margins are shares, or else adding up to their total."""
        return self._scaled(self.factors[self._rows_kept()], self.survey.design)

    def replicate_weights(self) -> Reals:
        """One column of weights per replicate, as many as :func:`fairmaxent.rake` was asked for."""
        if self.replicated is None:
            raise InputError("no replicate weights were asked for; rake the table again with ", Option("replicates"))
        return np.asarray(self.replicated * self._per_row)

    def weigh(self, frame: Any, *, name: str = WEIGHT_NAME) -> Any:
        """Return the table with a column of weights added, and with one per replicate: ``name_1``, ``name_2``, …

        The rows may come in any order, unless there are replicates. A lazy frame is joined with its weights inside its
        engine; nothing is computed until it is collected.
        """
        lazy = open_lazy(frame)
        if lazy is not None:
            return self._weigh_lazily(lazy, name)
        opened = frames.open_frame(frame)
        cells = self._cells_of(opened)
        raw = read_weights(opened, self.survey.weight)
        design = None if raw is None else self.survey.weight_scale.scaled(raw)
        columns = {name: self._scaled(self.factors[cells], design)} | self._replicate_columns(cells, name)
        taken = next((column for column in columns if column in opened.columns), None)
        if taken is not None:
            raise ColumnError(
                f"the table already has a column {taken!r}; choose another name with ", Option("weight_name")
            )
        like = opened.get_column(opened.columns[0])
        added = [frames.number_column(column, numbers, like) for column, numbers in columns.items()]
        if opened.implementation.is_pandas():
            index = opened.to_native().index
            added = [nw.from_native(column.to_native().set_axis(index), series_only=True) for column in added]
        return opened.with_columns(*added).to_native()

    def sample(
        self, n: int, *, given: Evidence | None = None, random_state: RandomState = None, iid: bool = False
    ) -> Any:
        """Draw ``n`` rows of the table by their weights: a table of the same kind that needs no weights.

        Each combination of the margins' levels comes as often as its share, up to one row (quota); ``iid=True`` draws
        rows independently. ``given`` fixes columns, e.g. ``{"sex": "Female"}``. Columns that look like identifiers are
        left out, and a column of design weights comes back as ones.
        """
        count = check_count(n)
        rng = generator(self.random_state if random_state is None else random_state)
        drawn = self.distribution.sample(count, given=given, random_state=rng, iid=iid)
        lazy = open_lazy(self.survey.frame)
        like = frames.open_frame(self.survey.frame) if lazy is None else lazy
        return arranged(drawn, like, self.survey.weight)

    @cached_property
    def distribution(self) -> Distribution:
        """The population that the weights describe, over all columns: exact marginals, means and draws."""
        columns, weight = self.survey.domain.names, self.survey.weight
        lazy = open_lazy(self.survey.frame)
        if lazy is None:
            return population_in_memory(self.survey.frame, self.weights() / self._per_row, columns, weight)
        name = fresh_name(WEIGHT_NAME, names_of(lazy))
        weighed = open_lazy(self._weigh_lazily(lazy, name))
        assert weighed is not None  # what joins a lazy frame is one
        return population_in_engine(weighed, name, columns, weight)

    @property
    def _per_row(self) -> float:
        """The average weight."""
        return self.certificate.total / self.survey.size

    def _scaled(self, factors: Reals, design: Reals | None) -> Reals:
        return np.asarray((factors if design is None else factors * design) * self._per_row)

    def _rows_kept(self) -> Any:
        if not self.survey.table.keeps_rows:
            raise InputError(
                "an engine counted the rows, so there is no list of their weights; use weigh(lazy_frame), or rake a "
                "table in memory"
            )
        return self.survey.table.inverse

    def _cells_of(self, opened: nw.DataFrame[Any]) -> Any:
        """The cell of each row, found by its levels."""
        if opened.to_native() is nw.to_native(self.survey.frame, pass_through=True):
            return self._rows_kept()
        domain = self.survey.domain
        for column in domain.names:
            frames.column(opened, column)
        cells = match_rows(self.survey.table.codes, domain.encode(opened), domain.sizes)
        if (cells < 0).any():
            raise InputError(
                f"row {int(np.argmax(cells < 0))} has a combination of levels that was not in the raked table; pass "
                "that table, with its rows in any order"
            )
        return cells

    def _replicate_columns(self, cells: Any, name: str) -> dict[str, Reals]:
        if self.replicated is None:
            return {}
        if not np.array_equal(cells, self.survey.table.inverse):
            raise InputError(
                "replicate weights belong to single rows; pass the raked table, with its rows in the same order"
            )
        weights = self.replicate_weights()
        return {f"{name}_{number}": column for number, column in enumerate(weights.T, 1)}

    def _weigh_lazily(self, lazy: Lazy, name: str) -> Any:
        survey = self.survey
        for column in (*survey.domain.names, *([] if survey.weight is None else [survey.weight])):
            check_column(lazy, column)
        if self.replicated is not None:
            raise InputError("replicate weights belong to rows in memory; collect the table first")
        if name in names_of(lazy):
            raise ColumnError(
                f"the table already has a column {name!r}; choose another name with ", Option("weight_name")
            )
        domain = survey.domain
        return join_weights(
            lazy,
            domain,
            Blocks(domain.sizes, tuple((index,) for index in range(len(domain.sizes)))),
            survey.table,
            self.factors * self._per_row,
            weight=survey.weight,
            scale=survey.weight_scale,
            name=name,
        )
