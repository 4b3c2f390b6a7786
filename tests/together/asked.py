"""What a call asks for, and what is measured in the tables that it delivers.

Nothing here comes from the library: a rate is a sum over rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from people import GOOD

MASS = "mass"  # how much a row counts
UNKNOWN = "missing"  # what a missing value is called, by certificates too


def has_categories(column: pd.Series) -> bool:
    """Whether a column has few values, which rows share."""
    return column.dtype != float and column.name not in (MASS, "name", "origin_known")


@dataclass(frozen=True)
class Asked:
    """The options of a call, read as their documentation says."""

    options: dict[str, Any]
    data: pd.DataFrame
    known_levels: dict[str, list[Any]] = field(default_factory=dict)
    known_small: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return self.options.get(name) is not None

    def __getitem__(self, name: str) -> Any:
        if name == "outcome":
            return self.outcomes[0]
        return self.options.get(name)

    @property
    def outcomes(self) -> list[str]:
        """The outcome, and further ones."""
        names = self.options["outcome"]
        return [names] if isinstance(names, str) else list(names)

    @property
    def protected(self) -> list[str]:
        names = self["protected"]
        return [names] if isinstance(names, str) else list(names)

    @property
    def groupings(self) -> list[list[str]]:
        """The columns of each comparison: one column, or all of them together."""
        if self["groups"] == "joint":
            return [self.protected]
        return [[name] for name in self.protected]

    @property
    def strata(self) -> list[str]:
        return [self["within"]] if "within" in self else []

    @property
    def root(self) -> list[str]:
        """The columns that the fair table is about."""
        return [*self.outcomes, *self.protected, *self.strata]

    @property
    def categories(self) -> list[str]:
        """The columns of few values."""
        return [name for name in self.data.columns if has_categories(self.data[name])]

    @property
    def statistical(self) -> float | None:
        """The rate of outcomes that is wanted; equal means take the place of 1."""
        wanted = self.options.get("statistical_rate", 1.0)
        if self["equal_means"] and wanted == 1.0:
            return None
        return wanted

    @property
    def representation(self) -> float | None:
        return self["representation_rate"]

    @property
    def only_sizes(self) -> bool:
        """Whether groups change their size, and nothing is asked of outcomes."""
        grows = self.representation is not None or "sex" in (self["target"] or {})
        asked = self.options.get("statistical_rate", 1.0)
        return grows and asked is None and "equal_means" not in self

    @property
    def target(self) -> dict[str, Any]:
        return self["target"] or {}

    @property
    def model(self) -> dict[str, Any] | None:
        """The fields of the model that the table is made for."""
        return self["model"]

    @property
    def decides(self) -> bool:
        """Whether a model's decisions are made equal, to which the table gives way."""
        if self.model is None:
            return False
        return self.model.get("parity") != "probabilities"

    @property
    def relabels(self) -> bool:
        """Whether rows may change their outcome."""
        return self.model is not None

    @property
    def is_private(self) -> bool:
        return "privacy" in self

    def levels_of(self, outcome: str) -> list[Any]:
        """The levels whose rates are compared."""
        if outcome == self["outcome"] and "favourable" in self:
            return [self.good]
        return sorted(self.data[outcome].unique())

    @property
    def good(self) -> Any:
        if self["outcome"] == "decided":
            return str(GOOD[self["truth"]])
        return GOOD[self["outcome"]]

    @property
    def masses(self) -> np.ndarray:
        """What each row of the data counts before anything is made fair."""
        if "weight" in self:
            return self.data[self["weight"]].to_numpy()
        return np.ones(len(self.data))

    def forbidden(self, table: pd.DataFrame) -> np.ndarray:
        """Which rows have an impossible combination."""
        found = np.zeros(len(table), dtype=bool)
        for rule in self["forbid"] or ():
            has_all = [table[name] == value for name, value in rule.items()]
            found |= np.logical_and.reduce(has_all)
        return found

    @cached_property
    def before(self) -> "Delivered":
        """The data themselves, in the form of an output."""
        table = self.data.assign(**{MASS: self.masses})
        return Delivered("data", table, self)

    def levels(self, column: str) -> list[Any]:
        """The values of a column of few values; a missing one is the last."""
        if column not in self.known_levels:
            values = self.data[column]
            found = sorted(values.dropna().unique())
            if values.isna().any():
                found.append(UNKNOWN)
            self.known_levels[column] = found
        return self.known_levels[column]

    def groups(self, grouping: list[str]) -> list[tuple[Any, ...]]:
        """Each combination of levels of these columns."""
        return list(product(*(self.levels(name) for name in grouping)))

    def by_stratum(self, counts: np.ndarray, grouping: list[str]) -> np.ndarray:
        """Counts of `strata`, grouping and perhaps outcomes, with an axis of each."""
        strata = int(np.prod([len(self.levels(name)) for name in self.strata]))
        outcomes = counts.shape[len(self.strata) + len(grouping) :]
        return counts.reshape(strata, len(self.groups(grouping)), *outcomes)

    def is_known(self, grouping: list[str]) -> np.ndarray:
        """Which groups are compared: not those of a missing value, unless asked for."""
        groups = self.groups(grouping)
        if self["compare_missing"]:
            return np.ones(len(groups), dtype=bool)
        return np.array([UNKNOWN not in group for group in groups])

    def is_small(self, grouping: list[str]) -> np.ndarray:
        """By stratum and group, who has fewer rows in the data than asked for.

        Or a smaller share of the people who are compared.
        """
        key = tuple(grouping)
        if key not in self.known_small:
            self.known_small[key] = self._is_small(grouping)
        return self.known_small[key]

    def _is_small(self, grouping: list[str]) -> np.ndarray:
        smallest = self["smallest_group"] or 0
        data = self.before
        if isinstance(smallest, int):
            data = Delivered("rows", self.data.assign(**{MASS: 1.0}), self)
        sizes = self.by_stratum(data.counts([*self.strata, *grouping]), grouping)
        sizes = sizes * self.is_known(grouping)
        if isinstance(smallest, str):
            share = float(smallest.strip("%")) / 100
            smallest = share * sizes.sum(axis=1, keepdims=True)
        return (sizes > 0) & (sizes < smallest)


@dataclass(frozen=True)
class Delivered:
    """An output as a table: each row counts as much as its column `MASS` says."""

    kind: str  # "weights", "rows" or "top-up"
    table: pd.DataFrame
    asked: Asked
    added: pd.DataFrame | None = None  # its new rows; None: it has none
    off: float = 1e-6  # by how many rows each cell of the fair table may be off
    counted: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)

    @cached_property
    def masses(self) -> np.ndarray:
        return self.table[MASS].to_numpy(dtype=float)

    @cached_property
    def total(self) -> float:
        return float(self.masses.sum())

    def counts(self, columns: list[str]) -> np.ndarray:
        """How much each combination of levels counts, with an axis for each column."""
        key = tuple(columns)
        if key not in self.counted:
            self.counted[key] = self._counts(columns)
        return self.counted[key]

    def _counts(self, columns: list[str]) -> np.ndarray:
        root = self.asked.root
        if columns != root and set(columns) <= set(root):
            others = [axis for axis, name in enumerate(root) if name not in columns]
            left = [name for name in root if name in columns]
            sums = self.counts(root).sum(axis=tuple(others))
            return sums.transpose([left.index(name) for name in columns])
        shape = [len(self.asked.levels(name)) for name in columns]
        cells = np.ravel_multi_index([self._codes(name) for name in columns], shape)
        sums = np.bincount(cells, weights=self.masses, minlength=int(np.prod(shape)))
        return sums.reshape(shape)

    def _codes(self, column: str) -> list[int]:
        """The number of each row's level; no row has one that nobody had."""
        numbers = {level: at for at, level in enumerate(self.asked.levels(column))}
        values = self.table[column].fillna(UNKNOWN).tolist()
        strange = set(values) - set(numbers)
        assert not strange, f"{column} has {strange}, which nobody had"
        return [numbers[value] for value in values]

    def shares(self, columns: list[str]) -> np.ndarray:
        return self.counts(columns) / self.total

    def off_in(self, columns: list[str]) -> float:
        """By how many rows a combination of these columns may be off: a sum of cells.

        Columns outside the fair table are drawn, and not counted.
        """
        root = self.asked.root
        known = [name for name in columns if name in root]
        if not known:
            return self.off
        has_rows = self.counts(root) > 0
        others = [axis for axis, name in enumerate(root) if name not in known]
        return self.off * has_rows.sum(axis=tuple(others)).max()


@dataclass(frozen=True)
class Compared:
    """The groups that are compared in a stratum, and how much each outcome counts."""

    groups: list[tuple[Any, ...]]
    levels: list[Any]  # of the outcome
    counts: np.ndarray  # of each group (rows) and outcome (columns)

    @property
    def sizes(self) -> np.ndarray:
        return self.counts.sum(axis=1)

    @property
    def rates(self) -> np.ndarray:
        return self.counts / self.sizes[:, None]

    def having(self, level: Any) -> np.ndarray:
        return self.counts[:, self.levels.index(level)]

    def large(self, level: Any, expected: float) -> set[tuple[Any, ...]]:
        """The groups of whom so many would have an outcome at the rate of all.

        And so many would not; if all have it, or nobody has, every group is large.
        """
        rate = self.having(level).sum() / self.sizes.sum()
        rarer = min(rate, 1 - rate)
        named = zip(self.groups, self.sizes, strict=True)
        return {name for name, size in named if rarer == 0 or size * rarer >= expected}


def tables_by_stratum(
    asked: Asked, delivered: Delivered, grouping: list[str], outcome: str
) -> Iterator[Compared]:
    """The counts of each stratum; groups that are too small in the data are left out."""
    counts = delivered.counts([*asked.strata, *grouping, outcome])
    counts = asked.by_stratum(counts, grouping)
    is_compared = asked.is_known(grouping) & ~asked.is_small(grouping)
    is_compared = is_compared & (counts.sum(axis=-1) > 0)
    groups = asked.groups(grouping)
    for of_stratum, chosen in zip(counts, is_compared, strict=True):
        names = [groups[at] for at in np.flatnonzero(chosen)]
        yield Compared(names, asked.levels(outcome), of_stratum[chosen])


def statistical_rate(
    asked: Asked,
    delivered: Delivered,
    grouping: list[str],
    outcome: str,
    expected: float = 0.0,
) -> float:
    """The lowest rate of an outcome over the highest, if each count is off a little.

    Counts of whole rows cannot be exact; so the lowest rate has that much more here,
    and the highest that much less. Groups that are not `large` in the data are left
    out.
    """
    off = delivered.off_in([*asked.strata, *grouping, outcome])
    worst = 1.0
    before = tables_by_stratum(asked, asked.before, grouping, outcome)
    after = tables_by_stratum(asked, delivered, grouping, outcome)
    for old, table in zip(before, after, strict=True):
        for level in asked.levels_of(outcome):
            large = old.large(level, expected)
            is_large = [group in large for group in table.groups]
            having = table.having(level)[is_large]
            sizes = table.sizes[is_large]
            at_most = (having + off) / np.maximum(sizes - off, off)
            at_least = np.maximum(having - off, 0) / (sizes + off)
            if at_least.max(initial=0) > 0:
                worst = min(worst, at_most.min() / at_least.max())
    return float(worst)


def representation_rate(
    asked: Asked, delivered: Delivered, grouping: list[str]
) -> float:
    """The size of the smallest group over that of the largest, likewise."""
    off = delivered.off_in([*asked.strata, *grouping])
    worst = 1.0
    for table in tables_by_stratum(asked, delivered, grouping, asked["outcome"]):
        sizes = table.sizes
        worst = min(worst, (sizes.min() + off) / (sizes.max() - off))
    return float(worst)


def is_near(
    delivered: Delivered, columns: list[str], wanted: np.ndarray, slack: float = 0.0
) -> bool:
    """Whether shares are what they should be, up to what rows can be off."""
    differences = np.abs(delivered.shares(columns) - wanted)
    off = delivered.off_in(columns)
    return bool(differences.max() <= off / delivered.total + slack + 1e-7)
