"""The data in codes, and the methods that weigh their rows or draw new ones: all but
that of Calmon et al.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, Unpack

import narwhals as nw
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
from fairmaxent.data.roles import Roles, check_roles, read_columns
from fairmaxent.data.table import Blocks, Codes, Reals, Table, tally
from fairmaxent.errors import (
    InfeasibleError,
    InputError,
    Option,
    TargetError,
    checked_number,
)
from fairmaxent.fairness.weights import reweigh
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.option_values import check_share
from fairmaxent.maxent.priors.bases import build_base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows

Names = str | Sequence[str]  # of one column, or of several


class Reading(TypedDict, total=False):
    """How a method reads the frame, and the seed of what it draws."""

    domain: Domain | None
    random_state: int | None


@dataclass(frozen=True, eq=False)
class CodedData:
    """A frame, the roles of its columns, and its distinct rows as block codes."""

    frame: nw.DataFrame[Any]
    roles: Roles
    table: Table
    random_state: int | None

    @classmethod
    def read(
        cls,
        frame: Any,
        outcome: str,
        groups: Names,
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
        """The blocks: outcome and protected attributes pooled as the root, each other
        attribute by itself.
        """
        return self.roles.blocks

    @cached_property
    def cells(self) -> Codes:
        """The cell (y, z) of each row."""
        return np.asarray(self.table.codes[:, 0][self.table.inverse])

    @cached_property
    def empirical(self) -> Reals:
        """P(y, z), outcome × joint groups of all protected columns."""
        cells = tally(self.table.codes[:, 0], self.table.counts, self.blocks.levels[0])
        return np.asarray(cells / cells.sum()).reshape(self.blocks.shape(0)[0], -1)

    @property
    def outcome_shares(self) -> Reals:
        """P(y)."""
        return np.asarray(self.empirical.sum(axis=1))

    @property
    def group_shares(self) -> Reals:
        """P(z) of each joint group."""
        return np.asarray(self.empirical.sum(axis=0))

    @property
    def equal_shares(self) -> Reals:
        """The same share for each joint group that has rows."""
        return np.asarray((self.group_shares > 0) / np.count_nonzero(self.group_shares))

    def refuse_empty_cells(self, wanted: Reals) -> None:
        """Refuse a wanted table with mass in a cell that has no rows, and name the
        cell.
        """
        empty = np.flatnonzero((wanted > 0) & (self.empirical <= 0))
        if len(empty):
            levels = np.unravel_index(int(empty[0]), self.blocks.shape(0))
            raise InfeasibleError(
                "weights cannot reach the wanted table:"
                f" {self.roles.describe_cell([int(level) for level in levels])} must"
                " have mass but has no rows. Merge levels, protect fewer columns, or"
                " use fairmaxent.debias."
            )


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRows:
    """The rows of the data, with one weight per cell (y, z): the result of a reweighing
    method.
    """

    data: CodedData
    cell_weights: Reals  # weight of the rows of each cell; 1 on average over the rows

    def __repr__(self) -> str:
        return (
            f"<WeightedRows: {len(self.data.frame)} rows in"
            f" {np.count_nonzero(self.data.empirical)} cells>"
        )

    @classmethod
    def of(cls, data: CodedData, wanted: Reals) -> "WeightedRows":
        """Weigh the rows so that they have the table t(y, z), outcome × joint groups: w
        = t / P.
        """
        data.refuse_empty_cells(wanted)
        seen = data.empirical > 0
        return cls(
            data,
            np.divide(
                wanted, data.empirical, out=np.zeros_like(wanted), where=seen
            ).ravel(),
        )

    def weights(self) -> Reals:
        """One weight per input row, 1 on average."""
        return np.asarray(self.cell_weights[self.data.cells])

    def sample(
        self, n: int, *, random_state: RandomState = None, iid: bool = False
    ) -> Any:
        """Draw ``n`` rows of the data with replacement.

        By default each cell (y, z) gets its quota, and its rows are drawn uniformly, as
        in the resampling of Kamiran and Calders; ``iid=True`` draws every row
        independently by weight.
        """
        count = check_count(n)
        rng = generator(
            self.data.random_state if random_state is None else random_state
        )
        shares = (self.cell_weights * self.data.empirical.ravel()).reshape(
            self.data.blocks.shape(0)
        )
        cells = cells_of(shares, count, rng, independent=iid)
        sizes = tally(self.data.cells, None, len(self.cell_weights)).astype(np.intp)
        order = np.argsort(self.data.cells, kind="stable")
        starts = np.cumsum(sizes) - sizes
        rows = order[starts[cells] + rng.integers(0, sizes[cells])]
        return frames.gather(
            {
                name: (self.data.frame.get_column(name), rows)
                for name in self.data.frame.columns
            }
        )

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the exact weighted joint distribution of a few columns, with a column
        ``probability``.
        """
        return self.distribution.marginal(columns)

    @cached_property
    def distribution(self) -> Distribution:
        """The weighted rows as a distribution over the levels of the domain."""
        table = self.data.table
        blocks = self.data.blocks
        rows = Rows.weighted(
            blocks, table.codes, table.counts * self.cell_weights[table.codes[:, 0]]
        )
        return Distribution(
            self.data.roles.domain, blocks, rows, np.zeros(blocks.width)
        )


@dataclass(frozen=True, eq=False, repr=False)
class NewRows:
    """A distribution over the domain, which cannot be written as weights for the rows
    of the data.
    """

    data: CodedData
    distribution: Distribution

    def __repr__(self) -> str:
        return f"<{type(self).__name__} from {self.distribution!r}>"

    def weights(self) -> Reals:
        """Refuse, because the distribution has mass outside the rows of the data."""
        raise InputError(
            "this method draws new rows and has no weights for your rows; use ",
            Option("mode", "rows"),
        )

    def sample(
        self, n: int, *, random_state: RandomState = None, iid: bool = False
    ) -> Any:
        """Draw ``n`` rows, outcome and groups by quota, or with ``iid=True``
        independently.
        """
        if random_state is None:
            seed = self.data.random_state
        else:
            seed = random_state
        drawn = self.distribution.sample(n, random_state=seed, iid=iid)
        columns = self.data.frame.columns
        if tuple(columns) == self.distribution.domain.names:
            return drawn
        return frames.arrange(drawn, columns, None)

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the exact joint distribution of a few columns, with a column
        ``probability``.
        """
        return self.distribution.marginal(columns)


def raw(
    frame: Any, outcome: str, protected: Names, **reading: Unpack[Reading]
) -> WeightedRows:
    """Return the data unchanged: every weight is 1."""
    data = CodedData.read(frame, outcome, protected, **reading)
    return WeightedRows.of(data, data.empirical)


def kamiran_calders(
    frame: Any, outcome: str, protected: Names, **reading: Unpack[Reading]
) -> WeightedRows:
    """Reweighing: t(y, z) = P(y)·P(z), which makes outcome and group independent.

    Kamiran and Calders, "Data preprocessing techniques for classification without
    discrimination", 2012. The groups are the joint groups of the protected columns;
    their shares do not change.
    """
    data = CodedData.read(frame, outcome, protected, **reading)
    return WeightedRows.of(data, np.outer(data.outcome_shares, data.group_shares))


def king_zeng(
    frame: Any,
    outcome: str,
    protected: Names,
    *,
    shares: Mapping[Any, float] | None = None,
    **reading: Unpack[Reading],
) -> WeightedRows:
    """Weighting for representation: t(y, z) = wanted share(z)·P(y | z), which keeps the
    outcomes within each group.

    King and Zeng, "Logistic regression in rare events data", 2001, with groups instead
    of events. ``shares`` gives the share of every joint group of the protected columns,
    ``{"Female": 0.6, "Male": 0.4}`` for one column and ``{("Female", "Black"): 0.3,
    …}`` for several; by default all groups that have rows get equal shares.
    """
    data = CodedData.read(frame, outcome, protected, **reading)
    if shares is None:
        wanted = data.equal_shares
    else:
        wanted = _read_shares(data, shares)
    present = data.group_shares
    factor = np.divide(wanted, present, out=np.zeros_like(present), where=present > 0)
    return WeightedRows.of(data, data.empirical * factor)


def _read_shares(data: CodedData, shares: Mapping[Any, float]) -> Reals:
    """The wanted share of each joint group."""
    columns = data.roles.attributes[1:]
    if not isinstance(shares, Mapping):
        raise TargetError(
            f"shares is {shares!r}; give the share of each group, e.g. {{'Female': 0.5,"
            " 'Male': 0.5}"
        )
    wanted = np.zeros(data.blocks.shape(0)[1:])
    for group, share in shares.items():
        if len(columns) > 1:
            values = group
        else:
            values = (group,)
        if not isinstance(values, tuple) or len(values) != len(columns):
            raise TargetError(
                f"shares has the group {group!r}; give a value of each protected"
                " column, as a tuple"
            )
        levels = tuple(
            column.exact_level(value)
            for column, value in zip(columns, values, strict=True)
        )
        wanted[levels] += checked_number(
            f"shares[{group!r}]",
            share,
            "be between 0 and 1",
            lambda part: 0 <= part <= 1,
        )
    wanted = wanted.ravel()
    if abs(wanted.sum() - 1) > 1e-6 or (wanted[data.group_shares <= 0] > 0).any():
        raise TargetError(
            "shares must sum to 1, and no group without rows can have one; correct the"
            " shares"
        )
    return np.asarray(wanted / wanted.sum())


def prior(
    frame: Any,
    outcome: str,
    protected: Names,
    *,
    C: float = 0.5,
    **reading: Unpack[Reading],
) -> NewRows:
    """Return the prior q_C^w = C·u + (1 − C)·w: u uniform over the domain, w the
    weights of Algorithm 1 at τ = 1.

    With k joint groups that have rows, w has the table t(y, z) = P(y)/k; with two
    groups this is Algorithm 1.
    """
    share = check_share("C", C)
    data = CodedData.read(frame, outcome, protected, **reading)
    wanted = np.outer(data.outcome_shares, data.equal_shares)
    data.refuse_empty_cells(wanted)
    blocks = data.blocks
    table = data.table
    weighted = reweigh(table, wanted.ravel())
    base = build_base("uniform", blocks, table, weighted, root=wanted.ravel())
    mixed = Mixture.of((share, 1 - share), (base, Rows.of(blocks, weighted.collect())))
    return NewRows(
        data, Distribution(data.roles.domain, blocks, mixed, np.zeros(blocks.width))
    )
