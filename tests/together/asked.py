"""What a call asks for, and what pandas measures in the tables that it delivers.

Nothing here comes from the library: a rate is a group-by.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from people import GOOD

MASS = "mass"  # how much a row counts
UNKNOWN = "unknown"  # what a missing value is called here


def has_categories(column: pd.Series) -> bool:
    """Whether a column has few values, which rows share."""
    return column.dtype != float and column.name not in (MASS, "name")


@dataclass(frozen=True)
class Asked:
    """The options of a call, read as their documentation says."""

    options: dict[str, Any]
    data: pd.DataFrame

    def __contains__(self, name: str) -> bool:
        return self.options.get(name) is not None

    def __getitem__(self, name: str) -> Any:
        return self.options.get(name)

    @property
    def outcomes(self) -> list[str]:
        """The outcome, and further ones."""
        more = [self["also"]] if "also" in self else []
        return [self["outcome"], *more]

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
        if self["means"] and wanted == 1.0:
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
        return grows and asked is None and "means" not in self

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
            return GOOD[self["truth"]]
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
        return Delivered("data", table, root=tuple(self.root))


@dataclass(frozen=True)
class Delivered:
    """An output as a table: each row counts as much as its column `MASS` says."""

    kind: str  # "weights", "rows" or "top-up"
    table: pd.DataFrame
    added: pd.DataFrame | None = None  # its new rows; None: it has none
    off: float = 1e-6  # by how many rows each cell of the fair table may be off
    root: tuple[str, ...] = ()  # the columns of that table
    counted: dict[tuple[str, ...], pd.Series] = field(default_factory=dict)

    @cached_property
    def total(self) -> float:
        return float(self.table[MASS].sum())

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Each cell of the fair table once, with how much it counts."""
        return self._summed(self.table, list(self.root)).reset_index()

    def counts(self, columns: list[str]) -> pd.Series:
        """How much each combination of these columns counts."""
        key = tuple(columns)
        if key not in self.counted:
            source = self.cells if set(columns) <= set(self.root) else self.table
            self.counted[key] = self._summed(source, columns)
        return self.counted[key]

    def _summed(self, table: pd.DataFrame, columns: list[str]) -> pd.Series:
        known = table[columns]
        if known.isna().to_numpy().any():
            known = known.astype(object).fillna(UNKNOWN)
        return table[MASS].groupby([known[name] for name in columns]).sum()

    def shares(self, columns: list[str]) -> pd.Series:
        return self.counts(columns) / self.total

    def off_in(self, columns: list[str]) -> float:
        """By how many rows a combination of these columns may be off: a sum of cells.

        Columns outside the fair table are drawn, and not counted.
        """
        known = [name for name in columns if name in self.root]
        if not known:
            return self.off
        return self.off * self.cells.groupby(known).size().max()


def small_groups(asked: Asked, grouping: list[str]) -> pd.Index:
    """The groups of each stratum that have fewer rows in the data than asked for.

    Or a smaller share of the people who are compared.
    """
    columns = [*asked.strata, *grouping]
    smallest = asked["smallest_group"] or 0
    if isinstance(smallest, int):
        rows = asked.data[columns].astype(object).fillna(UNKNOWN)
        sizes = known(asked, rows.groupby(columns).size())
        return sizes.index[sizes < smallest]
    sizes = known(asked, asked.before.counts(columns))
    everybody = sizes.sum()
    if asked.strata:
        everybody = sizes.groupby(level=0).transform("sum")
    return sizes.index[sizes < float(smallest.strip("%")) / 100 * everybody]


def known(asked: Asked, counts: Any) -> Any:
    """Groups without those of a missing value, unless these are compared."""
    if asked["missing"] == "compare":
        return counts
    is_unknown = [UNKNOWN in np.atleast_1d(group) for group in counts.index]
    return counts[~np.array(is_unknown)]


def tables_by_stratum(
    asked: Asked, delivered: Delivered, grouping: list[str], outcome: str
) -> Iterator[pd.DataFrame]:
    """For each stratum, the counts of groups (rows) and outcomes (columns).

    Groups that are too small in the data are not compared.
    """
    counts = delivered.counts([*asked.strata, *grouping, outcome]).unstack(fill_value=0)
    compared = known(asked, counts)
    compared = compared[~compared.index.isin(small_groups(asked, grouping))]
    if not asked.strata:
        yield compared
        return
    for stratum in compared.index.get_level_values(0).unique():
        yield compared.xs(stratum, level=0)


def statistical_rate(
    asked: Asked, delivered: Delivered, grouping: list[str], outcome: str
) -> float:
    """The lowest rate of an outcome over the highest, if each count is off a little.

    Counts of whole rows cannot be exact; so the lowest rate has that much more here,
    and the highest that much less.
    """
    off = delivered.off_in([*asked.strata, *grouping, outcome])
    worst = 1.0
    for counts in tables_by_stratum(asked, delivered, grouping, outcome):
        sizes = counts.to_numpy().sum(axis=1)
        for level in asked.levels_of(outcome):
            having = counts[level].to_numpy()
            at_most = (having + off) / np.maximum(sizes - off, off)
            at_least = np.maximum(having - off, 0) / (sizes + off)
            if at_least.max() > 0:
                worst = min(worst, at_most.min() / at_least.max())
    return float(worst)


def representation_rate(
    asked: Asked, delivered: Delivered, grouping: list[str]
) -> float:
    """The size of the smallest group over that of the largest, likewise."""
    off = delivered.off_in([*asked.strata, *grouping])
    worst = 1.0
    for counts in tables_by_stratum(asked, delivered, grouping, asked["outcome"]):
        sizes = counts.to_numpy().sum(axis=1)
        worst = min(worst, (sizes.min() + off) / (sizes.max() - off))
    return float(worst)


def is_near(delivered: Delivered, found: pd.Series, wanted: pd.Series, slack=0.0):
    """Whether shares are what they should be, up to what rows can be off."""
    missing_levels = wanted.index.difference(found.index)
    assert (wanted[missing_levels] * delivered.total <= 1).all()
    differences = (found - wanted.reindex(found.index, fill_value=0.0)).abs()
    off = delivered.off_in(list(found.index.names))
    return bool(differences.max() <= off / delivered.total + slack + 1e-7)
