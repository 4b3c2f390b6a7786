"""What a metric answers: the worst rate, who it is between, and everybody's rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.levels import value_text
from fairmaxent.fairness.likely import REFUTED
from fairmaxent.metrics import intervals
from fairmaxent.metrics.rows import Columns, Label, StratumLevels, stratum_text
from fairmaxent.plain_text import visible


@dataclass(frozen=True)
class LikelyEvidence:
    """What a rate of groups that are only likely rests on."""

    told_by: str
    contradiction: float | None  # p-value of "names"; None: it cannot be tested
    names: float  # the rate if names tell the group
    columns: float  # if columns do
    bounds: tuple[float, float]  # whatever is true

    @property
    def is_refuted(self) -> bool:
        """Whether the data contradict what is assumed."""
        p = self.contradiction
        return self.told_by == "names" and p is not None and p < REFUTED

    @property
    def sentence(self) -> str:
        """The same as a sentence."""
        return f"{self.words.removeprefix('; ').capitalize()}."

    @property
    def words(self) -> str:
        """The same, to be put after a rate."""
        others = {"names": self.names, "columns": self.columns}
        (other,) = others.keys() - {self.told_by}
        doubt = ""
        if self.is_refuted:
            doubt = f", which the data contradict (p = {self.contradiction:.2g})"
        least, most = self.bounds
        return (
            f"; assumed: {self.told_by} tell the group{doubt}; if {other} do:"
            f" {others[other]:.3f}; whatever is assumed: {least:.3f} to {most:.3f}"
        )


@dataclass(frozen=True)
class GroupRate:
    """One group's share P(g) or rate, such as P(y | g), and how many rows it has."""

    columns: Columns
    group: Label
    outcome: object  # None: of a share
    rate: float
    count: int | None
    interval: intervals.Interval | None
    # its columns and values, if groups are compared within strata
    stratum: StratumLevels = ()


class Spoken:
    """A result in words, in which names of the data cannot steer a terminal."""

    _words: Any  # a method

    def __str__(self) -> str:
        return visible(self._words())


@dataclass(frozen=True)
class Pair(Spoken):
    """The lowest and the highest group of an outcome, which determine a rate."""

    columns: Columns
    outcome: object
    lowest: Label
    highest: Label
    stratum: StratumLevels = ()

    def _words(self) -> str:
        about = ""
        if self.outcome is not None:
            about = f" for outcome {value_text(self.outcome)}"
        lowest = group_text(self.lowest)
        highest = group_text(self.highest)
        groups = f"{lowest} against {highest}"
        if lowest == highest:
            groups = "all groups equal"
        return (
            f"{' × '.join(self.columns)}, {groups}{about}{stratum_text(self.stratum)}"
        )


class Number(Spoken):
    """A result that can be used like a number: its `value`."""

    value: float

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, how: str) -> str:
        if how:
            return format(self.value, how)
        return str(self)

    def __lt__(self, other: float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: float) -> bool:
        return self.value > float(other)

    def __le__(self, other: float) -> bool:
        return self.value <= float(other)

    def __ge__(self, other: float) -> bool:
        return self.value >= float(other)


@dataclass(frozen=True)
class Rate(Number):
    """The worst ratio between two groups, with its interval, and all groups' rates.

    Or the largest difference, if groups are compared by differences.

    The interval is None if the rate is exact.

    The interval covers about as often as stated, or more often. It is wide if groups
    are many and small: see those of the `groups`. Groups that have no weight in the
    relevant rows have no rate: they are not compared, and listed in `left_out`. Within
    strata, so are groups that are alone in theirs. Groups that are too small to decide
    the value are in `set_apart`. The value is NaN if they leave nothing to compare.
    """

    value: float
    interval: intervals.Interval | None
    worst: Pair
    groups: tuple[GroupRate, ...]
    left_out: tuple[GroupRate, ...] = ()
    set_apart: tuple[GroupRate, ...] = ()
    likely: LikelyEvidence | None = None  # None: groups are known

    @property
    def is_refuted(self) -> bool:
        """Whether the data contradict what is assumed of likely groups."""
        return self.likely is not None and self.likely.is_refuted

    @property
    def not_compared(self) -> str:
        """Who was not compared, in words to be put after a comparison."""
        return left_out_text(self.left_out) + set_apart_text(self.set_apart)

    @property
    def is_alone(self) -> bool:
        """Whether fewer than two groups are compared."""
        return len({group.group for group in self.groups}) < 2

    @property
    def difference(self) -> float:
        """The largest difference between two groups' rates of the same outcome."""
        compared: dict[Label, list[float]] = {}
        for group in self.groups:
            among = (group.columns, group.outcome, group.stratum)
            compared.setdefault(among, []).append(group.rate)
        differences = [max(rates) - min(rates) for rates in compared.values()]
        return max(differences, default=np.nan)

    def _words(self) -> str:
        if np.isnan(self.value):
            columns = " × ".join(self.worst.columns)
            return f"nothing to compare: {columns}{self.not_compared}"
        assumed = "" if self.likely is None else self.likely.words
        return (
            f"{self.value:.3f}{intervals.interval_text(self.interval)}:"
            f" {self.worst}{self.not_compared}{assumed}"
        )


def group_text(group: Label) -> str:
    """Name a group by its levels."""
    return " × ".join(map(value_text, group))


def _by_name(groups: Sequence[GroupRate]) -> list[tuple[str, list[GroupRate]]]:
    """Groups by their names, in order; one may be there several times."""
    by_name: dict[str, list[GroupRate]] = {}
    for group in groups:
        by_name.setdefault(group_text(group.group), []).append(group)
    return sorted(by_name.items())


def left_out_text(groups: Sequence[GroupRate]) -> str:
    """The groups that were not compared, in words to be put after a comparison."""
    if not groups:
        return ""
    names = []
    for name, own in _by_name(groups):
        strata = {stratum_text(group.stratum) for group in own}
        where = f" in {len(strata)} strata" if len(strata) > 1 else min(strata)
        names.append(name + where)
    return f"; not compared: {', '.join(names)}"


def set_apart_text(groups: Sequence[GroupRate]) -> str:
    """The groups that are too small, likewise, each with its number and its rate."""
    if not groups:
        return ""
    names = []
    for name, (one, *others) in _by_name(groups):
        if others:
            names.append(f"{name} ({len(others) + 1} rates)")
            continue
        people = "" if one.count is None else f"{one.count:,} people, "
        where = stratum_text(one.stratum)
        names.append(f"{name}{where} ({people}{one.rate:.3f})")
    return f"; too small to compare: {', '.join(names)}"
