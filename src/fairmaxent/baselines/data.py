"""The data in codes, and the methods that weigh their rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import (
    RandomState,
    cells_of,
    check_count,
    check_seed,
    generator,
)
from fairmaxent.data.reading import encode_table
from fairmaxent.data.roles import ColumnNames, Roles, check_roles, read_columns
from fairmaxent.data.table import Blocks, Codes, Reals, Table, ratio, tally
from fairmaxent.distribution import Distribution
from fairmaxent.errors import InfeasibleError
from fairmaxent.maxent.priors.rows import Rows


class MethodOptions(TypedDict, total=False):
    """How a method reads the frame, and the seed of what it draws."""

    domain: Domain | None
    random_state: int | None


@dataclass(frozen=True, eq=False)
class CodedData:
    """A frame, the roles of its columns, and its distinct rows as block codes."""

    frame: frames.Frame
    roles: Roles
    table: Table
    random_state: int | None

    @classmethod
    def read(
        cls,
        frame: Any,
        outcome: str,
        groups: ColumnNames,
        *,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> "CodedData":
        """Encode the frame by the given domain, or by one learned from it."""
        check_seed(random_state)
        names = read_columns("protected", groups)
        check_roles(outcome, names, None)
        opened = frames.open_frame(frame)
        encoded = encode_table(opened, domain)
        roles = Roles.of(encoded.domain, outcome, names)
        return cls(opened, roles, roles.compress(encoded.codes), random_state)

    @property
    def blocks(self) -> Blocks:
        """Outcome and protected columns pooled as the root, each other by itself."""
        return self.roles.blocks

    @cached_property
    def cells(self) -> Codes:
        """The cell (y, z) of each row."""
        return self.table.codes[:, 0][self.table.inverse]

    @cached_property
    def empirical(self) -> Reals:
        """P(y, z), outcome × joint groups of all protected columns."""
        cells = tally(self.table.codes[:, 0], self.table.counts, self.blocks.levels[0])
        return (cells / cells.sum()).reshape(self.blocks.shape(0)[0], -1)

    @property
    def outcome_shares(self) -> Reals:
        """P(y)."""
        return self.empirical.sum(axis=1)

    @property
    def group_shares(self) -> Reals:
        """P(z) of each joint group."""
        return self.empirical.sum(axis=0)

    @property
    def equal_shares(self) -> Reals:
        """The same share for each joint group that has rows."""
        return (self.group_shares > 0) / np.count_nonzero(self.group_shares)

    def refuse_empty_cells(self, wanted: Reals) -> None:
        """Refuse a wanted table with mass in a cell without rows; name the cell."""
        empty = np.flatnonzero((wanted > 0) & (self.empirical <= 0))
        if len(empty):
            levels = np.unravel_index(int(empty[0]), self.blocks.shape(0))
            raise InfeasibleError(
                "weights cannot reach the wanted table:"
                f" {self.roles.describe_cell([*map(int, levels)])} must"
                " have mass but has no rows. Merge levels, protect fewer columns, or"
                " use fairmaxent.debias."
            )


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRows:
    """The rows of the data, with one weight per cell (y, z)."""

    data: CodedData
    cell_weights: Reals  # weight of the rows of each cell; 1 on average over the rows

    def __repr__(self) -> str:
        cells = np.count_nonzero(self.data.empirical)
        return f"<WeightedRows: {len(self.data.frame)} rows in {cells} cells>"

    @classmethod
    def of(cls, data: CodedData, wanted: Reals) -> "WeightedRows":
        """Weigh rows to the table t(y, z) of outcome × joint groups: w = t / P."""
        data.refuse_empty_cells(wanted)
        return cls(data, ratio(wanted, data.empirical).ravel())

    def weights(self) -> Reals:
        """One weight per input row, 1 on average."""
        return self.cell_weights[self.data.cells]

    def sample(
        self,
        n: int,
        *,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Any:
        """Draw ``n`` rows of the data with replacement.

        By default each cell (y, z) gets its quota, and its rows are drawn uniformly, as
        in the resampling of Kamiran and Calders; ``iid=True`` draws every row
        independently by weight.
        """
        data = self.data
        count = check_count(n)
        rng = generator(data.random_state if random_state is None else random_state)
        shares = self.cell_weights * data.empirical.ravel()
        cells = cells_of(
            shares.reshape(data.blocks.shape(0)),
            count,
            rng,
            independent=iid,
        )
        sizes = tally(data.cells, None, len(self.cell_weights)).astype(int)
        order = np.argsort(data.cells, kind="stable")
        starts = np.cumsum(sizes) - sizes
        rows = order[starts[cells] + rng.integers(0, sizes[cells])]
        return frames.gather(
            {name: (data.frame.get_column(name), rows) for name in data.frame.columns}
        )

    def marginal(self, columns: ColumnNames) -> Any:
        """Return the exact weighted joint distribution of a few columns.

        It has a column ``probability``.
        """
        return self.distribution.marginal(columns)

    @cached_property
    def distribution(self) -> Distribution:
        """The weighted rows as a distribution over the levels of the domain."""
        table = self.data.table
        blocks = self.data.blocks
        weights = table.counts * self.cell_weights[table.codes[:, 0]]
        return Distribution(
            self.data.roles.domain,
            blocks,
            Rows.weighted(blocks, table.codes, weights),
            np.zeros(blocks.width),
        )


def raw(
    frame: Any, outcome: str, protected: ColumnNames, **options: Unpack[MethodOptions]
) -> WeightedRows:
    """Return the data unchanged: every weight is 1."""
    data = CodedData.read(frame, outcome, protected, **options)
    return WeightedRows.of(data, data.empirical)


def kamiran_calders(
    frame: Any, outcome: str, protected: ColumnNames, **options: Unpack[MethodOptions]
) -> WeightedRows:
    """Reweighing: t(y, z) = P(y)·P(z), which makes outcome and group independent.

    Kamiran and Calders, "Data preprocessing techniques for classification without
    discrimination", 2012. The groups are the joint groups of the protected columns;
    their shares do not change.
    """
    data = CodedData.read(frame, outcome, protected, **options)
    return WeightedRows.of(data, np.outer(data.outcome_shares, data.group_shares))


def king_zeng(
    frame: Any, outcome: str, protected: ColumnNames, **options: Unpack[MethodOptions]
) -> WeightedRows:
    """Weighting for representation: t(y, z) = P(y | z) / number of groups.

    It keeps the outcomes within each group. King and Zeng, "Logistic regression in rare
    events data", 2001, with groups instead of events: all joint groups of the protected
    columns that have rows get equal shares.
    """
    data = CodedData.read(frame, outcome, protected, **options)
    wanted = ratio(data.equal_shares, data.group_shares)
    return WeightedRows.of(data, data.empirical * wanted)
