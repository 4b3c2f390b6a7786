"""The closed loop: what a table must say of outcome × group so that a student learns to decide equally for all groups.

The most accurate of all rules with equal decisions puts a threshold of its own on η(x, z) = P(good | x, z) in each
group; of those that may not see z, it decides for x where η(x) − τ + Σ_g λ_g·P(g | x) is positive (Menon and Williamson
2018, "The cost of fairness in binary classification"). A table teaches a student both. If it sees z, the weight e^{λ_z}
on the good outcome moves its log-odds in the group by λ_z, and the group keeps its weight. If it does not, rows keep
their weight and are split: a row with outcome y (1 is good) counts as good by τ + (y − τ + λ_z) / M, with the least
M ≥ 1 at which that is a share. What the student then compares with τ is τ + (η(x) − τ + Σ_g λ_g·P(g | x)) / M. So a
handful of numbers is all there is to find.

They are found by trying the student out. Its decisions about the people it learned from (of which all students have
some share too many or too few) are corrected by how much students of folds decide differently about people whom they
have not seen; the folds are others in each round, or they would be fitted instead of the student. A student that learns
by heart is judged by those of the folds alone.

Part of a difference between groups is luck, and the same people are asked again and again. So the wanted share of a
group keeps as much of its first difference as chance explains (empirical Bayes): little, unless the group is small.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Mask, Reals, effective_rows, tally
from fairmaxent.relabelling.soft_labels import quantile

FOLDS, ROUNDS = 3, 3
_FULL = {True: 4, False: 3}  # students of everybody that a round tries at most, if they see the group or not
_STREAM = 20_180_223  # draws of our own: data that were simulated with a plain seed do not share them
_MOST_TRAININGS = 25
_DAMPING = 1.0, 0.8, 0.7, 0.5
_FARTHEST, _STEP = 8.0, 3.0  # offsets, and steps of a group that is seen
_BLIND_FARTHEST, _BLIND_STEP = 3.0, 0.3
_SMOOTH = 0.025  # width over which the decision of a model of the student turns
_BY_HEART = 0.08  # more people whom a student judges rightly if it knows them
_RELIABLE = 10.0  # people of a group at which half of a correction is made
FEW = 30.0  # people of a group below which it does not steer the others
_SMALLEST = 1e-6  # probability whose log-odds are taken

Rows = NDArray[np.intp]


class Student(Protocol):
    """What was trained."""

    def chances(self, rows: Rows) -> Reals:
        """P(good) of the people in these rows."""


@dataclass(frozen=True, eq=False)
class Task:
    """People with a known outcome, the student, and what is wanted of its decisions."""

    good: Mask
    group: Rows
    weight: Reals
    compared: Mask  # the people whose decisions are compared: all, or those whose outcome is good
    factor: Reals  # t(z) / e(z), by which the people of each group count
    threshold: float
    sees_group: bool
    train: Callable[[Rows, Mask, Reals], Student]  # rows to learn from, whether each counts as good, and its weight
    group_chances: Callable[[Rows, Rows], Reals]  # rows to learn from, rows to predict the group of
    fair_shares: Callable[[Reals], Reals]  # shares of the groups decided for -> the closest fair ones
    decided: str = "keep"  # as many as now, or "best": as many as makes it most accurate

    @cached_property
    def mass(self) -> Reals:
        """Weight of the people of each group whose decisions are compared."""
        return self._by_group(self.weight)

    @cached_property
    def size(self) -> Reals:
        """Effective number of these people."""
        return np.asarray(np.nan_to_num(effective_rows(self.mass, self._by_group(self.weight**2))))

    @property
    def groups(self) -> int:
        """Number of groups, some of which may have nobody."""
        return len(self.factor)

    @property
    def border(self) -> float:
        """The log-odds from which a student decides for somebody."""
        return float(np.log(self.threshold / (1 - self.threshold)))

    def cells(self, offsets: Reals) -> tuple[Reals, Reals]:
        """Of (group, outcome), the good one last: the weight, and the part of it that counts as good."""
        good = np.tile([0.0, 1.0], (self.groups, 1))
        if not self.sees_group:
            beyond = good - self.threshold + offsets[:, None]
            most = np.where(beyond > 0, beyond / (1 - self.threshold), -beyond / self.threshold)[self.size > 0]
            return np.tile(self.factor[:, None], 2), self.threshold + beyond / max(1.0, float(most.max()))
        weights = np.exp(good * offsets[:, None])
        parts = (~self.good, self.good)
        people = np.column_stack([tally(self.group, self.weight * part, self.groups) for part in parts])
        before, after = people.sum(axis=1), (people * weights).sum(axis=1)
        kept = np.divide(before, after, out=np.ones_like(before), where=after > 0)
        return np.asarray(weights * (kept * self.factor)[:, None]), good

    def shares(self, decided: Reals | Mask, rows: Rows | None = None) -> Reals:
        """Share of each group that is decided for; 0 for a group without people."""
        rows = np.arange(len(self.good)) if rows is None else rows
        total, part = self._by_group(self.weight[rows], rows), self._by_group(self.weight[rows] * decided, rows)
        return np.asarray(np.divide(part, total, out=np.zeros_like(total), where=total > 0))

    def _by_group(self, values: Reals, rows: Rows | None = None) -> Reals:
        chosen = self.compared if rows is None else self.compared[rows]
        group = self.group if rows is None else self.group[rows]
        return tally(group[chosen], values[chosen], self.groups)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A student of everybody: its offsets, and its decisions about the people it learned from."""

    offsets: Reals
    scores: Reals  # log-odds
    shares: Reals
    student: Student


@dataclass(frozen=True, eq=False)
class Closed:
    """What the loop found."""

    offsets: Reals  # λ of each group
    weights: Reals  # of (group, outcome)
    good: Reals  # the part of them that counts as good
    shares: Reals  # of each group decided for, as estimated for people whom the student has not seen
    size: Reals  # effective people of each group
    noise: Reals  # variance of these shares from one round to the next, beside that of who is asked
    student: Student
    trainings: int


@dataclass(eq=False)
class Loop:
    """One search; it counts how often the student is trained."""

    task: Task
    watch: Callable[[float], object] = float  # is told how much is done
    trainings: int = 0
    biases: list[Reals] = field(default_factory=list)  # share decided for without having been seen, minus otherwise
    tried: list[Attempt] = field(default_factory=list)
    surrogate: "Surrogate | None" = None  # of a student that does not see the group
    wanted: Any = None

    def run(self) -> Closed:
        """Find the offsets from which the student's decisions come closest to the wish."""
        task, nothing = self.task, np.zeros(self.task.groups)
        scores = self.out_of_fold(nothing, 0)
        raw = task.shares(scores > task.border)
        self.wanted = self._wished(scores, raw)
        self.attempt(nothing)
        offsets = self.first_offsets(scores, raw)
        right = [((own > task.border) == task.good) @ task.weight for own in (self.tried[0].scores, scores)]
        if right[0] - right[1] > _BY_HEART * task.weight.sum():
            return self.by_folds(offsets)
        for number in range(1, ROUNDS + 1):
            scores = self.out_of_fold(offsets, number)
            attempt = self.best
            if number == 1:
                offsets = self.moved(offsets, scores, task.shares(scores > task.border), self.wanted, 1.0)
                attempt = self.attempt(offsets)
            elif self.shortfall(attempt) <= self.enough:
                break
            for damping in _DAMPING[number == 1 : _FULL[task.sees_group]]:
                if self.shortfall(attempt) <= self.enough:
                    break
                wanted = self.wanted - self.bias(attempt.offsets)
                offsets = self.moved(attempt.offsets, attempt.scores, attempt.shares, wanted, damping)
                attempt = self.attempt(offsets)
            offsets = self.best.offsets
        best = self.best
        shares = np.clip(best.shares + self.bias(best.offsets), 0.0, 1.0)
        found = best.offsets, *task.cells(best.offsets), shares, task.size, np.var(self.biases[1:], axis=0)
        return Closed(*found, best.student, self.trainings)

    def by_folds(self, offsets: Reals) -> Closed:
        """The same for a student who learns by heart: what it decides about people it knows says nothing of others.

        Offsets, and the decisions out of fold, are the averages of the last rounds.
        """
        task, rounds = self.task, []
        for number in range(1, 2 * ROUNDS + task.sees_group):
            scores = self.out_of_fold(offsets, number)
            rounds.append((offsets, task.shares(scores > task.border)))
            damping = _DAMPING[min(number, len(_DAMPING)) - 1]
            offsets = self.moved(offsets, scores, rounds[-1][1], self.wanted, damping)
        offsets, shares = np.mean(rounds[-ROUNDS:], axis=0)
        found = offsets, *task.cells(offsets), shares, task.size, np.var(rounds[-ROUNDS:], axis=0)[1]
        return Closed(*found, self.attempt(offsets).student, self.trainings)

    def out_of_fold(self, offsets: Reals, number: int) -> Reals:
        """Log-odds of everybody by students who have not seen them, with folds of their own."""
        task, scores = self.task, np.empty(len(self.task.good))
        learned = []
        for rows, asked in self._folds(number):
            student = self._train(rows, offsets)
            scores[asked] = log_odds(student.chances(asked))
            learned.append(task.shares(log_odds(student.chances(rows)) > task.border, rows))
        self.biases.append(task.shares(scores > task.border) - np.mean(learned, axis=0))
        return scores

    def attempt(self, offsets: Reals) -> Attempt:
        """Train the student on everybody."""
        everybody = np.arange(len(self.task.good))
        student = self._train(everybody, offsets)
        scores = log_odds(student.chances(everybody))
        self.tried.append(Attempt(offsets, scores, self.task.shares(scores > self.task.border), student))
        return self.tried[-1]

    @property
    def best(self) -> Attempt:
        """Of all students of everybody; of those that decide alike the last one, from where the search goes on."""
        return min(reversed(self.tried), key=self.shortfall)

    def bias(self, offsets: Reals) -> Reals:
        """How much more is decided for unseen people: from other weights, students learn more by heart, or less."""
        return np.asarray(np.mean(self.biases[1:] if offsets.any() else self.biases[:1], axis=0))

    @property
    def _steers(self) -> Mask:
        """Groups that the student is judged by."""
        large = self.task.size >= FEW
        return np.asarray(large if large.sum() > 1 else self.task.size > 0)

    @property
    def enough(self) -> float:
        """A shortfall that may be chance, and would be chased rather than corrected."""
        share = np.clip(np.average(self.wanted, weights=self.task.size), 0.01, 0.99)
        return max(0.005, 0.25 * float(np.sqrt(2 * (1 - share) / share / self.task.size[self._steers].min())))

    def shortfall(self, attempt: Attempt) -> float:
        """How far decisions about unseen people are from the wanted ones: between groups, and half of that in all."""
        ratio = np.maximum(attempt.shares + self.bias(attempt.offsets), 1e-3) / np.maximum(self.wanted, 1e-3)
        ratio, mass = ratio[self._steers], (self.task.size * self.wanted)[self._steers]
        level = float(mass @ ratio / mass.sum()) if mass.sum() > 0 else 1.0
        return 1 - float(ratio.min() / ratio.max()) + 0.5 * abs(level - 1)

    def first_offsets(self, scores: Reals, raw: Reals) -> Reals:
        """What moves the share of each group that the first students decide for to the wanted one."""
        task = self.task
        if task.sees_group:
            return self.moved(np.zeros(task.groups), scores, raw, self.wanted, 1.0)
        chances = np.zeros((len(task.good), task.groups))
        for rows, asked in self._folds(2 * ROUNDS + 1):
            chances[asked] = task.group_chances(rows, asked)
            self.trainings += 1
        self.surrogate = Surrogate(task, 1 / (1 + np.exp(-scores)), chances)
        return self.surrogate.solve(self.wanted)

    def moved(self, offsets: Reals, scores: Reals, shares: Reals, wanted: Reals, damping: float) -> Reals:
        """Offsets after which the wanted share of each group would be decided for; less for groups of few people."""
        task, wanted = self.task, np.clip(wanted, 0.001, 0.999)
        reliable = damping * task.size / (task.size + _RELIABLE)
        if self.surrogate is not None:
            return self.surrogate.moved(offsets, shares, reliable * (wanted - shares))
        steps = np.zeros(task.groups)
        for group in np.flatnonzero(task.size > 0):
            members = (task.group == group) & task.compared & (task.weight > 0)
            own, share = scores[members], task.weight[members] / task.weight[members].sum()
            steps[group] = quantile(own, share, shares[group]) - quantile(own, share, wanted[group])
        return np.clip(offsets + np.clip(reliable * steps, -_STEP, _STEP), -_FARTHEST, _FARTHEST)

    def _wished(self, scores: Reals, raw: Reals) -> Reals:
        """The wanted share of each group: fair, and overall what it is, or where the decisions are most accurate."""
        task, fair = self.task, self.task.fair_shares(raw)
        if task.decided == "best":
            cuts = np.quantile(scores, np.linspace(0.02, 0.98, 49))
            wishes = [task.fair_shares(task.shares(scores > cut)) for cut in cuts]
            fair = max(wishes, key=lambda wish: self._accuracy(scores, wish))
            raw = raw + fair - task.fair_shares(raw)
        # τ², the variance of groups, by moments: both a deviation and its noise are those from the mean of all groups.
        mass = task.size / task.size.sum()
        noise = np.maximum(fair * (1 - fair), 0.01) / np.maximum(task.size, 1.0) * (1 - mass)
        missing = 1 - mass @ mass
        between = max(0.0, float(mass @ ((raw - fair) ** 2 - noise))) / max(missing, 1e-9)
        signal = between * (2 - 2 * mass - missing)
        return np.asarray(fair + noise / np.maximum(signal + noise, 1e-12) * (raw - fair))

    def _accuracy(self, scores: Reals, wish: Reals) -> float:
        """Of decisions for the wanted share of each group."""
        task, right = self.task, 0.0
        for group in np.flatnonzero(task.size > 0):
            members = np.flatnonzero((task.group == group) & (task.weight > 0))
            weight = task.weight[members]
            cut = quantile(scores[members], weight / weight.sum(), wish[group])
            right += float(weight @ ((scores[members] > cut) == task.good[members]))
        return right

    def _train(self, rows: Rows, offsets: Reals) -> Student:
        self.trainings += 1
        self.watch(min(self.trainings / _MOST_TRAININGS, 1.0))
        task = self.task
        cell = task.group[rows], task.good[rows].astype(np.intp)
        weight, good = (own[cell] for own in task.cells(offsets))
        parts = np.column_stack([task.weight[rows] * weight * (1 - good), task.weight[rows] * weight * good])
        person, outcome = np.nonzero(parts)
        return task.train(rows[person], outcome == 1, parts[person, outcome])

    def _folds(self, number: int) -> list[tuple[Rows, Rows]]:
        """People dealt to folds like cards, at random within each group and outcome."""
        shuffled = np.random.default_rng([_STREAM, number]).permutation(len(self.task.good))
        fold = np.empty(len(shuffled), dtype=np.intp)
        fold[np.lexsort((shuffled, self.task.good, self.task.group))] = np.arange(len(shuffled)) % FOLDS
        return [(np.flatnonzero(fold != held), np.flatnonzero(fold == held)) for held in range(FOLDS)]


@dataclass(eq=False)
class Surrogate:
    """A model of the student that does not see the group: η(x) and P(g | x) tell what it would decide."""

    task: Task
    chances: Reals  # η(x)
    groups: Reals  # P(g | x)
    slopes: Any = None  # d shares / d offsets, corrected by what the student does
    start: Any = None  # the same at first
    last: tuple[Reals, Reals] | None = None

    def shares(self, offsets: Reals) -> Reals:
        """Share of each group decided for."""
        gain = self.chances - self.task.threshold + self.groups @ offsets
        return self.task.shares(1 / (1 + np.exp(-np.clip(gain / _SMOOTH, -50, 50))))

    def solve(self, wanted: Reals) -> Reals:
        """Offsets with the wanted shares, by Newton's method; groups of few people count less."""
        offsets = np.zeros(self.task.groups)
        for _ in range(15):
            self.slopes, missing = self._slopes(offsets), wanted - self.shares(offsets)
            if np.abs(missing).max() < 1e-3:
                break
            offsets = self._step(offsets, missing)
        self.slopes = self.start = self._slopes(offsets)
        return offsets

    def moved(self, offsets: Reals, shares: Reals, missing: Reals) -> Reals:
        """One step, with slopes corrected by what the last one did (Broyden's method, unless a slope would vanish)."""
        if self.last is not None:
            step, change = offsets - self.last[0], shares - self.last[1]
            if np.linalg.norm(step) > 0.02:
                slopes = self.slopes + 0.7 * np.outer(change - self.slopes @ step, step) / (step @ step + 0.01)
                if (np.diag(slopes) >= 0.2 * np.diag(self.start)).all():
                    self.slopes = slopes
        self.last = offsets, shares
        return self._step(offsets, missing)

    def _slopes(self, offsets: Reals) -> Reals:
        units = 0.02 * np.eye(len(offsets))
        rows = [(self.shares(offsets + unit) - self.shares(offsets - unit)) / 0.04 for unit in units]
        return np.array(rows).T

    def _step(self, offsets: Reals, missing: Reals) -> Reals:
        scale = np.sqrt(self.task.size / self.task.size.sum())
        slopes = self.slopes * scale[:, None]
        square = slopes.T @ slopes
        ridge = (0.01 * np.trace(square) / len(square) + 1e-9) * np.eye(len(square))
        step = np.linalg.solve(square + ridge, slopes.T @ (missing * scale))
        step *= min(1.0, _BLIND_STEP / max(float(np.abs(step).max()), 1e-9))
        return np.clip(offsets + step, -_BLIND_FARTHEST, _BLIND_FARTHEST)


def log_odds(chances: Reals) -> Reals:
    """Log-odds, finite."""
    kept = np.clip(chances, _SMALLEST, 1 - _SMALLEST)
    return np.asarray(np.log(kept / (1 - kept)))
