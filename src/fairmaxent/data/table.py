"""The data, compressed: distinct rows (S) and how often each occurs (n_α).

A block is one attribute, or several pooled into one alphabet (their cross product).
Block 0, the *root*, pools the outcome with the protected attributes, so that every
fairness statement is about one block. Vectors over the *levels* of all blocks are the
common currency of priors and features: potentials go in, probabilities come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmaxent.errors import InputError

Codes = NDArray[np.integer]
Indices = NDArray[np.intp]
Reals = NDArray[np.float64]
Mask = NDArray[np.bool_]
Names = tuple[str, ...]  # of columns, in order
NameList = Sequence[str]  # of columns, as somebody lists them
Axes = tuple[int, ...]  # of a table of counts, or columns by position
Sizes = Sequence[int]  # how many levels each column has
# of each input row's raw value in Attribute.values, by attribute
Positions = Mapping[int, NDArray[np.unsignedinteger]]
Summed = Literal["counts", "rows", "squares"]
Broken = Callable[[Codes], Mask]  # which of some rows are not to count
FEWEST_ROWS = 30  # effective rows that a group should rest on
MOST_TIMES = 20  # how many times a person may count
LARGEST_KEY = 2**62
_NARROW = 2**31 - 1
# Up to this many possible rows, counting every one of them is cheaper than sorting the
# rows there are.
_COUNTABLE = 1 << 20


@dataclass(frozen=True)
class Blocks:
    """A partition of the attributes into blocks, root first."""

    sizes: Axes  # levels of each attribute
    members: tuple[Axes, ...]  # attributes of each block

    @classmethod
    def rooted(
        cls,
        sizes: Sizes,
        root: Sizes,
        *,
        order: Sizes = (),
    ) -> Blocks:
        """Pool the ``root``, and leave others on their own, in an ``order``."""
        others = [(index,) for index in order or range(len(sizes)) if index not in root]
        return cls(tuple(sizes), (tuple(root), *others))

    @cached_property
    def levels(self) -> Axes:
        """Number of levels of each block."""
        return tuple(
            int(np.prod([self.sizes[index] for index in block]))
            for block in self.members
        )

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each block's levels stand in a vector over all levels."""
        return tuple(
            slice(int(a), int(b)) for a, b in pairwise(np.cumsum((0, *self.levels)))
        )

    @cached_property
    def width(self) -> int:
        """Length of a vector over the levels of all blocks."""
        return sum(self.levels)

    def shape(self, block: int) -> Axes:
        """Levels of each attribute pooled in ``block``."""
        return tuple(self.sizes[index] for index in self.members[block])

    def split(self, vector: Reals) -> list[Reals]:
        """Cut a vector over all levels into one view per block."""
        return [vector[part] for part in self.slices]

    def block_of(self, attribute: int) -> int:
        """Return the block that holds ``attribute``."""
        return next(
            number for number, block in enumerate(self.members) if attribute in block
        )

    def pool(self, codes: Codes) -> Codes:
        """Turn attribute codes, one column each, into block codes, one column each."""
        pooled = empty_codes(len(codes), self.levels)
        for number, block in enumerate(self.members):
            pooled[:, number] = codes[:, block[0]]
            if len(block) > 1:
                pooled[:, number] = ravel(codes[:, list(block)], self.shape(number))
        return pooled

    def unpool(self, pooled: Codes) -> Codes:
        """Undo :meth:`pool`."""
        codes = empty_codes(len(pooled), self.sizes)
        for number, block in enumerate(self.members):
            column = pooled[:, number]
            if len(block) == 1:
                codes[:, block[0]] = column
                continue
            digits = np.unravel_index(column.astype(int), self.shape(number))
            for attribute, digit in zip(block, digits, strict=True):
                codes[:, attribute] = digit
        return codes

    def spread(self, values: Mapping[int, Reals]) -> Reals:
        """Sum values of attributes' levels over the levels of their blocks."""
        result = np.zeros(self.width)
        for attribute, levels in values.items():
            number = self.block_of(attribute)
            axes = [-1 if member == attribute else 1 for member in self.members[number]]
            cells = np.broadcast_to(levels.reshape(axes), self.shape(number))
            result[self.slices[number]] += cells.ravel()
        return result


def empty_codes(rows: int, sizes: Sizes) -> Codes:
    """Room for the code of each row in each column, in the smallest type."""
    smallest = np.min_scalar_type(max(sizes))
    return np.empty((rows, len(sizes)), smallest, order="F")


def ravel(codes: Codes, shape: Sizes) -> Indices:
    """Number the cells of a table of ``shape`` in C order, for rows of coordinates."""
    if not len(shape):
        return np.zeros(len(codes), dtype=int)
    flat = codes[:, 0].astype(int)
    for column, size in zip(codes.T[1:], shape[1:], strict=True):
        flat *= size
        flat += column
    return flat


class Counted(Protocol):
    """Distinct rows with their counts, wherever they are.

    All that a fit asks of its data are sums over them.
    """

    @property
    def keeps_rows(self) -> bool:
        """Whether the distinct row of each input row is known."""

    @property
    def sums(self) -> Reals:
        """Distinct rows, input rows, and the sums of weights and of squared weights."""

    @property
    def distinct(self) -> int:
        """Number of distinct rows."""
        return int(self.sums[0])

    @property
    def size(self) -> int:
        """Number of input rows."""
        return round(float(self.sums[1]))

    @property
    def total(self) -> float:
        """N: the total weight of the rows."""
        return float(self.sums[2])

    @property
    def worth(self) -> float:
        """(Σw)²/Σw²: equally weighted rows that carry as much information (Kish)."""
        return float(effective_rows(*self.sums[2:]))

    def tables(
        self,
        wanted: Sequence[Axes],
        sizes: Sizes,
        of: Summed = "counts",
        then: Callable[[Reals], Any] = np.asarray,
    ) -> list[Any]:
        """Sum the rows by the levels of a few columns at a time, one axis each.

        ``sizes`` are those of all columns. What is needed of a large table is made of
        it ``then``, where it is.
        """

    def without(self, broken: Broken) -> Counted:
        """Let the broken rows count zero."""

    def reweighed(self, factor: Reals) -> Counted:
        """Multiply each row's count by the factor of its level in the first column."""

    def thinned(self, rows: int) -> Counted:
        """Take all rows, or ``rows`` of equal weight that represent them."""

    def collect(self) -> Table:
        """Take all rows into memory."""

    def each_piece(
        self, do: Callable[[Table, str], None], name: Callable[[int], str]
    ) -> int:
        """Do something with each table that it consists of, where that is.

        Each gets a name by its number. Returns how many they are.
        """


@dataclass(frozen=True, eq=False)
class Table(Counted):
    """Distinct rows in lexicographic order, and their weights n_α.

    And where each input row went, if rows were kept.
    """

    codes: Codes  # (distinct, columns)
    counts: Reals  # (distinct,): design weights summed, or input rows
    rows: Reals  # (distinct,): input rows, whatever they weigh
    squares: Reals  # (distinct,): squared design weights summed
    # (input rows,): see `inverse`; None: an engine counted the rows
    places: Indices | None = None
    # (distinct,): see `largest`; None: design weights are equal, or this was not kept
    peaks: Reals | None = None

    @classmethod
    def compress(
        cls,
        codes: Codes,
        sizes: Sizes,
        weight: Reals | None = None,
    ) -> Table:
        """Merge equal rows; ``weight`` are design weights, one per row."""
        first, inverse = _distinct(*row_keys(codes, sizes))
        return cls.tallied(np.asfortranarray(codes[first]), inverse, weight)

    @classmethod
    def joined(cls, tables: Sequence[Table], sizes: Sizes) -> Table:
        """The rows of several tables, in lexicographic order."""
        codes = np.concatenate([table.codes for table in tables])
        keys, _ = row_keys(codes, sizes)
        order = np.argsort(keys, kind="stable")
        peaks = [table.peaks for table in tables if table.peaks is not None]
        return cls(
            codes=np.asfortranarray(codes[order]),
            counts=np.concatenate([table.counts for table in tables])[order],
            rows=np.concatenate([table.rows for table in tables])[order],
            squares=np.concatenate([table.squares for table in tables])[order],
            peaks=np.concatenate(peaks)[order] if peaks else None,
        )

    @classmethod
    def tallied(
        cls,
        distinct: Codes,
        inverse: Indices,
        weight: Reals | None,
    ) -> Table:
        """Count the input rows of each distinct row, given where each went."""
        size = len(distinct)
        rows = tally(inverse, None, size)
        if weight is None:
            return cls(distinct, rows, rows, rows, inverse)
        return cls(
            codes=distinct,
            counts=tally(inverse, weight, size),
            rows=rows,
            squares=tally(inverse, weight**2, size),
            places=inverse,
            peaks=highest(inverse, weight, size),
        )

    @property
    def inverse(self) -> Indices:
        """The distinct row of each input row."""
        if self.places is None:
            raise InputError(
                "an engine counted the rows of this fit, so individual rows are not"
                " available; use fit.weigh(lazy_frame), or fit a table in memory"
            )
        return self.places

    @property
    def largest(self) -> Reals:
        """The largest design weight of an input row of each distinct row.

        If it was not kept, the largest possible.
        Samuelson's inequality: of r numbers, none is more than √(r − 1) standard
        deviations above their mean.
        """
        if self.peaks is not None:
            return self.peaks
        # r²·variance
        excess = np.maximum(self.rows * self.squares - self.counts**2, 0.0)
        rows = np.maximum(self.rows, 1.0)
        return (self.counts + np.sqrt((rows - 1) * excess)) / rows

    @property
    def keeps_rows(self) -> bool:
        """Whether the distinct row of each input row is known."""
        return self.places is not None

    @cached_property
    def sums(self) -> Reals:
        """Distinct rows, input rows, and the sums of weights and of squared weights."""
        return np.array(
            [len(self.codes), self.rows.sum(), self.counts.sum(), self.squares.sum()]
        )

    def tables(
        self,
        wanted: Sequence[Axes],
        sizes: Sizes,
        of: Summed = "counts",
        then: Callable[[Reals], Any] = np.asarray,
    ) -> list[Any]:
        """Sum the rows by the levels of a few columns at a time, one axis each.

        ``sizes`` are those of all columns. What is needed of a large table is made of
        it ``then``.
        """
        summed = getattr(self, of)
        tables = []
        before: Axes = ()
        above = np.zeros(0, dtype=int)
        cells = np.empty(len(self.codes), dtype=np.int32)  # one buffer for all
        for columns in wanted:
            *most, last = columns
            shape = [sizes[column] for column in columns]
            size = math.prod(shape)
            if not most:
                found = self.codes[:, last]
            elif size > _NARROW:
                found = ravel(self.codes[:, list(columns)], shape)
            else:
                # Tables that differ in the last column alone share what is before it;
                # 32 bits are twice as fast as 64.
                if tuple(most) != before:
                    before = tuple(most)
                    above = ravel(self.codes[:, most], shape[:-1]).astype(np.int32)
                found = np.multiply(above, shape[-1], out=cells)
                found += self.codes[:, last]
            tables.append(then(tally(found, summed, size).reshape(shape)))
        return tables

    def without(self, broken: Broken) -> Table:
        """Let the broken rows count zero."""
        return self.counting(np.where(broken(self.codes), 0.0, self.counts))

    def reweighed(self, factor: Reals) -> Table:
        """Multiply each row's count by the factor of its level in the first column."""
        factors = factor[self.codes[:, 0]]
        return replace(
            self,
            counts=self.counts * factors,
            squares=self.squares * factors**2,
            peaks=None if self.peaks is None else self.peaks * factors,
        )

    def counting(self, counts: Reals) -> Table:
        """Give the rows other counts, which the input rows of one share as before."""
        share = counts / np.where(self.counts > 0, self.counts, 1.0)
        return replace(
            self,
            counts=counts,
            squares=share**2 * self.squares,
            peaks=None if self.peaks is None else self.peaks * share,
        )

    def thinned(self, rows: int) -> Table:
        """Return all rows, or ``rows`` of equal weight that represent them."""
        if len(self.codes) <= rows:
            return self
        equal = np.full(rows, self.total / rows)
        codes = self.codes[equal_steps(self.counts, rows)]
        return Table(np.asfortranarray(codes), equal, np.ones(rows), equal**2)

    def collect(self) -> Table:
        """Return itself: it is in memory."""
        return self

    def each_piece(
        self, do: Callable[[Table, str], None], name: Callable[[int], str]
    ) -> int:
        """Do something with it."""
        do(self, name(0))
        return 1


def effective_rows(total: ArrayLike, squares: ArrayLike) -> Reals:
    """(Σw)²/Σw²: equally weighted rows that tell as much (Kish); NaN without weight."""
    total = np.asarray(total, dtype=float)
    return ratio(total**2, np.asarray(squares, dtype=float), np.nan)


def tally(cells: Codes, weights: Reals | None, size: int) -> Reals:
    """Total weight of each of ``size`` cells."""
    return np.bincount(cells, weights=weights, minlength=size).astype(float, copy=False)


def marginal(table: Reals, axes: Sequence[int]) -> Reals:
    """Sum a table over all axes but these."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    return table.sum(axis=others)


def ratio(part: Reals, whole: Reals, nothing: float = 0.0) -> Reals:
    """part / whole; ``nothing`` where there is nothing to divide by."""
    return np.divide(
        part,
        whole,
        out=np.full_like(part, nothing),
        where=whole > 0,
    )


def cramers_v(table: Reals) -> float:
    """√(χ² / (N·(min(rows, columns) − 1))) of a table (Cramér, 1946).

    Rows and columns without mass do not count.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 3), 1 / 6))
    (1.0, 0.0)
    """
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(kept.shape) < 2:
        return 0.0
    share = kept / kept.sum()
    expected = np.outer(share.sum(axis=1), share.sum(axis=0))
    chi_square = float(((share - expected) ** 2 / expected).sum())
    # Below what float64 can tell from zero, a root would make noise look like an
    # association.
    chi_square = 0.0 if chi_square < 1e-15 else chi_square
    return float(min(1.0, np.sqrt(chi_square / (min(kept.shape) - 1))))


def highest(cells: Codes, weights: Reals, size: int) -> Reals:
    """The largest weight (none is negative) in each of ``size`` cells; 0 if empty."""
    result = np.zeros(size)
    np.maximum.at(result, cells, weights)
    return result


def equal_steps(weights: Reals, count: int) -> Indices:
    """Positions at equal steps of the running weight.

    In sorted rows, neighbours represent each other.
    """
    running = np.cumsum(weights)
    steps = (np.arange(count) + 0.5) * (running[-1] / count)
    return np.searchsorted(running, steps)


def grouped_rows(groups: Indices, count: int) -> tuple[Indices, Indices]:
    """Rows by group (without group -1), and where each of ``count`` groups begins."""
    # numpy sorts small integers much faster
    shifted = (groups + 1).astype(np.min_scalar_type(count))
    starts = np.cumsum(np.bincount(shifted, minlength=count + 1))[:-1]
    return np.argsort(shifted, kind="stable")[starts[0] :], starts - starts[0]


def row_keys(codes: Codes, sizes: Sizes) -> tuple[Indices, int]:
    """One integer per row, in the lexicographic order of rows, and its exclusive bound.

    Equal rows have equal ones.
    """
    keys = np.zeros(len(codes), dtype=int)
    span = 1
    for column, size in zip(codes.T, sizes, strict=True):
        # the part packed so far becomes its rank, which keeps equality and order
        if span * size > LARGEST_KEY:
            distinct, keys = np.unique(keys, return_inverse=True)
            span = len(distinct)
        keys *= size
        keys += column
        span *= size
    return keys, span


def match_rows(rows: Codes, codes: Codes, sizes: Sizes) -> Indices:
    """Return where each of ``codes`` is among distinct sorted ``rows``; -1: nowhere."""
    if np.array_equal(rows, codes):
        return np.arange(len(rows))
    if not len(rows):
        return np.full(len(codes), -1)
    keys, _ = row_keys(np.concatenate([rows, codes]), sizes)
    there = keys[: len(rows)]
    wanted = keys[len(rows) :]
    position = np.minimum(np.searchsorted(there, wanted), len(rows) - 1)
    return np.where(there[position] == wanted, position, -1)


def _distinct(keys: Indices, span: int) -> tuple[Indices, Indices]:
    """Return a row of each distinct key, in order, and the rank of every row's key."""
    if span > _COUNTABLE:
        order = np.argsort(keys)  # not stable, as any row of a key will do
        is_first = np.diff(keys[order], prepend=-1) > 0
        inverse = np.empty(len(keys), dtype=int)
        inverse[order] = np.cumsum(is_first) - 1
        return order[is_first], inverse
    row_of = np.full(span, -1)
    row_of[keys] = np.arange(len(keys))
    seen = row_of >= 0
    return row_of[seen], (np.cumsum(seen) - 1)[keys]


@dataclass(frozen=True, eq=False)
class Spread:
    """The weights w of the input rows in each cell: Σw, Σw², and the largest w."""

    total: Reals
    squares: Reals
    largest: Reals

    @classmethod
    def of(
        cls,
        table: Table,
        mass: Reals,
        size: int,
    ) -> Spread:
        """Give each distinct row its ``mass``, shared like its count.

        The cells are the levels of the first column.
        """
        cells = table.codes[:, 0]
        ratio = mass / np.where(table.counts > 0, table.counts, 1.0)
        return cls(
            total=tally(cells, mass, size),
            squares=tally(cells, ratio**2 * table.squares, size),
            largest=highest(cells, ratio * table.largest, size),
        )

    @classmethod
    def stacked(cls, spreads: Sequence[Spread]) -> Spread:
        """Put the cells of several along a new first axis."""
        parts = zip(*(vars(spread).values() for spread in spreads), strict=True)
        return cls(*map(np.stack, parts))

    @property
    def effective_rows(self) -> Reals:
        """(Σw)²/Σw² of each cell (Kish); 0 if it has no weight."""
        return np.nan_to_num(effective_rows(self.total, self.squares), nan=0.0)

    def scaled(self, factor: float) -> Spread:
        """Multiply every weight."""
        return Spread(
            self.total * factor, self.squares * factor**2, self.largest * factor
        )

    def shaped(self, shape: Sizes) -> Spread:
        """Give the cells axes."""
        return Spread(
            total=self.total.reshape(shape),
            squares=self.squares.reshape(shape),
            largest=self.largest.reshape(shape),
        )

    def over(self, axes: Axes) -> Spread:
        """Merge the cells along some axes; no input row may be in two of them."""
        return Spread(
            total=self.total.sum(axis=axes),
            squares=self.squares.sum(axis=axes),
            largest=self.largest.max(axis=axes),
        )
