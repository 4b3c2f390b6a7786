"""The task of the closed loop: people, a student, and what it is to decide."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Mask, Reals, effective_rows, ratio, tally

FOLDS = 3
MOST_TRAININGS = 25  # of students of folds and of everybody, and of our own models
FEW = 30.0  # people of a group below which it does not steer the others
# draws of our own: data that were simulated with a plain seed do not share them
_STREAM = 20_180_223
_SMALLEST = 1e-6  # of probabilities whose log-odds are taken

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
    of_good: bool  # the latter
    factor: Reals  # t(z) / e(z), by which the people of each group count
    threshold: float  # τ
    sees_group: bool
    train: Train
    advise: Train  # our own model, which may know better what is likely
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

    def overall(self, shares: Reals) -> float:
        """The share of all who are compared, if these are those of the groups."""
        return float(shares @ self.mass / self.mass.sum())

    def _by_group(self, values: Reals, rows: Rows) -> Reals:
        chosen = self.compared[rows]
        return tally(self.group[rows][chosen], values[chosen], self.groups)

    def mean_of_profile(self, values: Reals | Mask) -> Reals:
        """For each person, the mean of all who have the same profile."""
        profiles = int(self.profile.max()) + 1
        total = tally(self.profile, self.weight * values, profiles)
        weight = tally(self.profile, self.weight, profiles)
        return total[self.profile] / weight[self.profile]

    def folds(self, number: int) -> list[tuple[Rows, Rows]]:
        """Whom to learn from and whom to ask, for each fold of a round.

        People are dealt like cards, at random within each group and outcome.
        """
        fold = np.empty(len(self.good), dtype=int)
        fold[self._shuffled(number)] = np.arange(len(fold)) % FOLDS
        return [
            (np.flatnonzero(fold != held), np.flatnonzero(fold == held))
            for held in range(FOLDS)
        ]

    def sample(self, most: int) -> Rows:
        """About so many people: of each group and outcome its part, or more if few.

        A group and outcome of few people has up to its part of half of the sample.
        """
        cell = 2 * self.group + self.good
        sizes = np.bincount(cell, minlength=2 * self.groups)
        fair_part = most / 2 / np.count_nonzero(sizes)
        wanted = np.maximum(sizes * most / len(cell), np.minimum(sizes, fair_part))
        shuffled = self._shuffled(0)  # cell by cell
        first = np.cumsum(sizes) - sizes
        place = np.arange(len(cell)) - first[cell[shuffled]]
        return np.sort(shuffled[place < wanted[cell[shuffled]]])

    def _shuffled(self, number: int) -> Rows:
        """Everybody by group and outcome, and within these at random."""
        rng = np.random.default_rng([_STREAM, number])
        return np.lexsort((rng.permutation(len(self.good)), self.good, self.group))

    def part(self, rows: Rows) -> "Task":
        """The same task of some people, who stand for all of their group and outcome.

        They count 1 on average as all did, so that a penalty is as strong.
        """
        cell = 2 * self.group + self.good
        before = tally(cell, self.weight, 2 * self.groups)
        after = tally(cell[rows], self.weight[rows], 2 * self.groups)
        stands_for = ratio(before, after)[cell[rows]] * len(rows) / len(cell)

        def among(train: Train) -> Train:
            return lambda chosen, good, weight: train(rows[chosen], good, weight)

        return replace(
            self,
            good=self.good[rows],
            group=self.group[rows],
            profile=self.profile[rows],
            weight=self.weight[rows] * stands_for,
            compared=self.compared[rows],
            train=among(self.train),
            advise=among(self.advise),
        )


def log_odds(chances: Reals) -> Reals:
    """Log-odds, finite."""
    kept = np.clip(chances, _SMALLEST, 1 - _SMALLEST)
    return np.log(kept / (1 - kept))


def probability(scores: Reals) -> Reals:
    """The probability of these log-odds."""
    return 1 / (1 + np.exp(-scores))
