"""Rows whose groups are probabilities, shared between groups, and how sure that is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.likely import TOLD_BY, Likely
from fairmaxent.data.table import Codes, Reals, ratio
from fairmaxent.fairness.likely import (
    REFUTED,
    Learned,
    People,
    bounds,
    contradiction,
    true_tables,
)
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums

_DRAWS = 400
_LEAST_VARIANCE = 1e-12  # of a rate that is certain


@dataclass(frozen=True, eq=False)
class LikelyRows:
    """The probabilities of rows, and what is known of their groups besides."""

    likely: Likely
    shares: Reals  # (rows, groups): p(g)
    combination: Codes  # of the columns of groups that are known
    combinations: int

    @property
    def places(self) -> Codes:
        """Of each row, the likeliest of all combinations of groups."""
        return self.combination * self.shares.shape[1] + self.shares.argmax(axis=1)

    def only(self, rows: Any) -> "LikelyRows":
        """Those of some of the rows."""
        return replace(
            self, shares=self.shares[rows], combination=self.combination[rows]
        )

    def shared(self, outcome: Codes, outcomes: int, weights: Reals) -> "SharedRows":
        """Learn what outcomes tell about groups, from the rows that count."""
        counts = weights > 0
        present, codes = np.unique(outcome[counts], return_inverse=True)
        shape = (self.combinations, max(len(present), 1))
        own = weights[counts]
        people = People.of(
            self.shares[counts],
            self.combination[counts] * shape[1] + codes,
            shape,
            own,
            own**2,
        )
        learned = Learned.of(people) if shape[1] > 1 else None
        return SharedRows(self.likely.told_by, people, learned, present, outcomes)


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows shared between groups: what each outcome (axis −2) and group adds up to."""

    told_by: str
    people: People
    learned: Learned | None  # None: a single outcome tells nothing
    present: Codes  # the outcomes that somebody has
    outcomes: int

    def _laid_out(self, tables: Reals) -> Reals:
        """Combinations × outcomes × groups as all outcomes × groups."""
        *first, combinations, _, groups = tables.shape
        moved = np.moveaxis(tables, -3, -2).reshape(*first, -1, combinations * groups)
        result = np.zeros((*first, self.outcomes, combinations * groups))
        result[..., self.present, :] = moved
        return result

    def table_if(self, told_by: str) -> Reals:
        """The weight of each outcome and group, by what tells the group."""
        own = self._memberships(told_by)
        return self._laid_out(self.people.table(own, self.people.weight))

    def _memberships(self, told_by: str) -> Reals:
        rates = None
        if told_by == "names" and self.learned is not None:
            rates = self.learned.rates
        return self.people.memberships(rates)

    @property
    def sums(self) -> WeightSums:
        """Weights, their squares and rows, by what is assumed."""
        people = self.people
        own = self._memberships(self.told_by)
        parts = (people.weight, people.squares, np.ones_like(people.weight))
        return WeightSums(*(self._laid_out(people.table(own, one)) for one in parts))

    def drawn(self) -> Reals:
        """Tables that the true groups of people like these may have (first axis).

        Who belongs to which group is left to chance, and so is who is in the table.
        """
        rng = np.random.default_rng(len(self.people.order))
        draws = np.ones((_DRAWS, *self.people.shape, self.people.chances.shape[1]))
        if self.told_by == "names" and self.learned is not None:
            draws = self.learned.draws(_DRAWS, rng)
        everybody = np.ones_like(self.people.weight)
        tables = self._laid_out(true_tables(self.people, everybody, draws, rng))
        sums = self.sums
        squares = np.broadcast_to(sums.squares, tables.shape)
        rows = ratio(
            tables * sums.weight, squares
        )  # that tell as much as weighted ones
        return tables * ratio(rng.gamma(rows), rows)

    @property
    def limits(self) -> tuple[Reals, Reals]:
        """The weight of each outcome and group at least and at most."""
        least, most = bounds(self.people, np.ones_like(self.people.weight))
        return self._laid_out(least), self._laid_out(most)

    def known(self, rates_of: Callable[[Reals], Reals], total: Reals) -> "KnownRates":
        """Rates by a function of tables; limits are shares of a ``total``."""
        least, most = self.limits
        doubt = None
        if self.learned is not None:
            doubt = contradiction(self.people, self.learned.rates)
        return KnownRates(
            told_by=self.told_by,
            contradiction=doubt,
            drawn=rates_of(self.drawn()),
            assumed={one: rates_of(self.table_if(one)) for one in TOLD_BY},
            least=ratio(least, total, np.nan),
            most=np.minimum(ratio(most, total, np.nan), 1.0),
        )


@dataclass(frozen=True, eq=False)
class KnownRates:
    """What is known of the rates of groups that are only likely."""

    told_by: str
    contradiction: float | None  # p-value of "names"; None: it cannot be tested
    drawn: Reals  # rates that the true groups may have: draws × outcomes × groups
    assumed: Mapping[str, Reals]  # rates by what tells the group
    least: Reals  # whatever is true
    most: Reals

    def of(self, outcomes: Sequence[int]) -> "KnownRates":
        """The same of some outcomes."""
        chosen = list(outcomes)
        return replace(
            self,
            drawn=self.drawn[:, chosen],
            assumed={one: rates[chosen] for one, rates in self.assumed.items()},
            least=self.least[chosen],
            most=self.most[chosen],
        )

    def counts(self, rates: Reals) -> EffectiveCounts:
        """Rows that would tell as much of each rate."""
        variance = np.maximum(self.drawn.var(axis=0), _LEAST_VARIANCE)
        return EffectiveCounts.of_rates(rates, rates * (1 - rates) / variance)


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
