"""The task of the closed loop: people, a student, and what it is to decide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Mask, Reals, effective_rows, ratio, tally
from fairmaxent.relabelling.soft_labels import quantile

FOLDS = 3
ROUNDS = 3
MOST_TRAININGS = 25  # of students of folds and of everybody, in all rounds
FEW = 30.0  # people of a group below which it does not steer the others
# draws of our own: data that were simulated with a plain seed do not share them
_STREAM = 20_180_223
_SMALLEST = 1e-6  # of a student's probabilities whose log-odds are taken

Rows = NDArray[np.intp]


class Student(Protocol):
    """What was trained."""

    def chances(self, rows: Rows) -> Reals:
        """P(good) of the people in these rows."""


# rows to learn from, whether each counts as good, and its weight
Train = Callable[[Rows, Mask, Reals], Student]


@dataclass(frozen=True, eq=False)
class Task:
    """People with a known outcome, the student, and what is wanted of its decisions."""

    good: Mask
    group: Rows
    # people of one profile have the same levels in all columns but the outcome, so
    # they are labelled alike
    profile: Rows
    weight: Reals
    # the people whose decisions are compared: all of known groups, or those whose
    # outcome is good
    compared: Mask
    factor: Reals  # t(z) / e(z), by which the people of each group count
    threshold: float  # τ
    sees_group: bool
    train: Train
    # labels, rows to learn from, rows to ask -> chance of each label
    foretell: Callable[[Rows, Rows, Rows], Reals]
    # shares of the groups decided for -> the closest fair ones
    fair_shares: Callable[[Reals], Reals]
    # as many as now, or "best": as many as makes it most accurate
    decided: str = "keep"

    @property
    def everybody(self) -> Rows:
        """All rows."""
        return np.arange(len(self.good))

    @property
    def groups(self) -> int:
        """Number of groups, some of which may have nobody."""
        return len(self.factor)

    @property
    def border(self) -> float:
        """The log-odds from which a student decides for somebody."""
        return float(np.log(self.threshold / (1 - self.threshold)))

    @cached_property
    def mass(self) -> Reals:
        """Weight of the people of each group whose decisions are compared."""
        return self._by_group(self.weight, self.everybody)

    @cached_property
    def size(self) -> Reals:
        """Effective number of these people."""
        squares = self._by_group(self.weight**2, self.everybody)
        return np.nan_to_num(effective_rows(self.mass, squares))

    @cached_property
    def steers(self) -> Mask:
        """Groups that a student is judged by, if there are two of them at least.

        Not one of few people, nor one from whom only one outcome can be learned.
        """
        good = tally(self.group, self.weight * self.good, self.groups)
        bad = tally(self.group, self.weight * ~self.good, self.groups)
        steers = (self.size >= FEW) & (good > 0) & (bad > 0)
        if steers.sum() < 2:
            steers = self.size > 0
        return steers

    def shares(self, decided: Reals | Mask, rows: Rows | None = None) -> Reals:
        """Share of each group that is decided for; 0 for a group without people."""
        if rows is None:
            rows = self.everybody
        weight = self.weight[rows]
        total = self._by_group(weight, rows)
        part = self._by_group(weight * decided, rows)
        return ratio(part, total)

    def _by_group(self, values: Reals, rows: Rows) -> Reals:
        chosen = self.compared[rows]
        return tally(self.group[rows][chosen], values[chosen], self.groups)

    def cut(
        self,
        scores: Reals,
        group: int,
        above: float,
    ) -> float:
        """The log-odds that this share of a group's people is above."""
        members = (self.group == group) & self.compared & (self.weight > 0)
        weight = self.weight[members]
        return quantile(scores[members], weight / weight.sum(), above)

    def mean_of_profile(self, values: Reals | Mask) -> Reals:
        """For each person, the mean of all who have the same profile."""
        profiles = int(self.profile.max()) + 1
        total = tally(self.profile, self.weight * values, profiles)
        weight = tally(self.profile, self.weight, profiles)
        return total[self.profile] / weight[self.profile]

    def folds(self, number: int, folds: int = FOLDS) -> list[tuple[Rows, Rows]]:
        """Whom to learn from and whom to ask, for each fold of a round.

        People are dealt like cards, at random within each group and outcome.
        """
        rng = np.random.default_rng([_STREAM, number])
        shuffled = rng.permutation(len(self.good))
        order = np.lexsort((shuffled, self.good, self.group))
        fold = np.empty(len(order), dtype=int)
        fold[order] = np.arange(len(order)) % folds
        return [
            (np.flatnonzero(fold != held), np.flatnonzero(fold == held))
            for held in range(folds)
        ]

    def foretold(
        self,
        labels: Rows,
        size: int,
        folds: int = FOLDS,
    ) -> Reals:
        """The chance of each label, by models that have not seen the person."""
        chances = np.zeros((len(labels), size))
        for rows, asked in self.folds(ROUNDS + 1, folds):
            known = self.foretell(labels, rows, asked)
            chances[asked, : known.shape[1]] = known  # the last groups may have nobody
        return np.column_stack([self.mean_of_profile(one) for one in chances.T])


def log_odds(chances: Reals, least: float = _SMALLEST) -> Reals:
    """Log-odds, finite."""
    kept = np.clip(chances, least, 1 - least)
    return np.log(kept / (1 - kept))


def probability(scores: Reals) -> Reals:
    """The probability of these log-odds."""
    return 1 / (1 + np.exp(-scores))
