"""The closed loop: what a table must say of outcome × group so that a student learns to
decide equally for all groups.

The most accurate of all rules with equal decisions puts a threshold of its own on η(x,
z) = P(good | x, z) in each group; of those that may not see z, it decides for x where
η(x) − τ + Σ_g λ_g·P(g | x) is positive (Menon and Williamson 2018, "The cost of
fairness in binary classification"). So a handful of numbers λ is all there is to find,
and a table teaches them to a student in one of three ways:

- *tilt*, if it sees z: rows keep their outcome, and the weight e^{λ_z} on the good one
  moves the student's log-odds in the group, which keeps its weight, by λ_z;
- *soft tilt*, if it sees z, but boosting foretells outcomes better than it does, or it
  learns them by heart: rows keep their weight, and count as good by η, whose log-odds
  are moved by λ_z. Few rules are learned better from what is likely than from what
  happened, and what is known by heart is then no longer what is asked;
- *along P(g | x)*, if it does not see z: rows keep their weight, and one with outcome y
  (1 is good, or η in its place, as above) counts as good by τ + (y − τ + λ_z) / M, with
  the least M ≥ 1 at which all of these are shares. What the student then compares with
  τ is τ + (η(x) − τ + Σ_g λ_g·P(g | x)) / M.

They are found by trying the student out. Its decisions about the people it learned from
(of which all students have some share too many or too few) are corrected by how much
students of folds decide differently about people whom they have not seen; the folds are
others in each round, or they would be fitted instead of the student.

Part of a difference between groups is luck. So the wanted share of a group keeps as
much of its first difference as chance explains (empirical Bayes): little, unless the
group is small.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Mask, Reals, effective_rows, tally
from fairmaxent.relabelling.soft_labels import quantile

FOLDS = 3
ROUNDS = 3
_TEACHERS = 10  # folds of boosting for a student that learns by heart, its errors too
# what is learned by heart decreases with the root of the people learned from
_FEWER = np.sqrt(1 - 1 / FOLDS)
# students of everybody that a round tries at most, if they see the group or not
_FULL = {True: 4, False: 3}
# draws of our own: data that were simulated with a plain seed do not share them
_STREAM = 20_180_223
_MOST_TRAININGS = 25
_DAMPING = 1.0, 0.8, 0.7, 0.5
# offsets, and steps of a group that is seen
_FARTHEST = 8.0
_STEP = 3.0
_BLIND_FARTHEST = 3.0
_BLIND_STEP = 0.3
_SMOOTH = 0.025  # width over which the decision of a model of the student turns
# of the surprise in the outcomes that boosting must take away to be the teacher
_BETTER = 0.03
_BY_HEART = 0.08  # more people whom a student judges rightly if it knows them
_RELIABLE = 10.0  # people of a group at which half of a correction is made
FEW = 30.0  # people of a group below which it does not steer the others
# probabilities whose log-odds are taken, of a student and of a teacher
_SMALLEST = 1e-6
_SURE = 0.01

Way = Literal["none", "tilt", "soft tilt", "along", "soft along"]
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
    # people of one have the same levels in all columns but the outcome, so they are
    # labelled alike
    profile: Rows
    weight: Reals
    # the people whose decisions are compared: all of known groups, or those whose
    # outcome is good
    compared: Mask
    factor: Reals  # t(z) / e(z), by which the people of each group count
    threshold: float
    sees_group: bool
    # rows to learn from, whether each counts as good, and its weight
    train: Callable[[Rows, Mask, Reals], Student]
    # labels, rows to learn from, rows to ask -> chance of each label
    foretell: Callable[[Rows, Rows, Rows], Reals]
    # shares of the groups decided for -> the closest fair ones
    fair_shares: Callable[[Reals], Reals]
    # as many as now, or "best": as many as makes it most accurate
    decided: str = "keep"

    @cached_property
    def mass(self) -> Reals:
        """Weight of the people of each group whose decisions are compared."""
        return self._by_group(self.weight)

    @cached_property
    def size(self) -> Reals:
        """Effective number of these people."""
        return np.asarray(
            np.nan_to_num(effective_rows(self.mass, self._by_group(self.weight**2)))
        )

    @property
    def groups(self) -> int:
        """Number of groups, some of which may have nobody."""
        return len(self.factor)

    @property
    def border(self) -> float:
        """The log-odds from which a student decides for somebody."""
        return float(np.log(self.threshold / (1 - self.threshold)))

    def shares(self, decided: Reals | Mask, rows: Rows | None = None) -> Reals:
        """Share of each group that is decided for; 0 for a group without people."""
        if rows is None:
            rows = np.arange(len(self.good))
        total = self._by_group(self.weight[rows], rows)
        part = self._by_group(self.weight[rows] * decided, rows)
        return np.asarray(
            np.divide(part, total, out=np.zeros_like(total), where=total > 0)
        )

    def _by_group(self, values: Reals, rows: Rows | None = None) -> Reals:
        if rows is None:
            chosen = self.compared
        else:
            chosen = self.compared[rows]
        if rows is None:
            group = self.group
        else:
            group = self.group[rows]
        return tally(group[chosen], values[chosen], self.groups)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A student of everybody: its offsets, and its decisions about the people it
    learned from.
    """

    offsets: Reals
    scores: Reals  # log-odds
    shares: Reals
    student: Student


@dataclass(frozen=True, eq=False)
class Closed:
    """What the loop found."""

    offsets: Reals  # λ of each group
    way: Way  # in which the table teaches
    weight: Reals  # of each person
    good: Reals  # the part of it that counts as good
    # of each group decided for, as estimated for people whom the student has not seen
    shares: Reals
    size: Reals  # effective people of each group
    # variance of these shares from one round to the next, beside that of who is asked
    noise: Reals
    student: Student
    trainings: int


@dataclass(eq=False)
class Loop:
    """One search; it counts how often the student is trained."""

    task: Task
    watch: Callable[[float], object] = float  # is told how much is done
    trainings: int = 0
    # share decided for without having been seen, minus otherwise
    biases: list[Reals] = field(default_factory=list)
    tried: list[Attempt] = field(default_factory=list)
    wanted: Any = None
    likely: Any = None  # η of everybody, if their outcomes are softened
    surrogate: "Surrogate | None" = None  # of a student that does not see the group

    def run(self) -> Closed:
        """Find the offsets from which the student's decisions come closest to the
        wish.
        """
        nothing = np.zeros(self.task.groups)
        task = self.task
        scores = self.out_of_fold(nothing, 0)
        raw = np.clip(self.attempt(nothing).shares + self.bias(nothing), 0.0, 1.0)
        self.wanted = self._wished(scores, raw)
        self.likely = self._softened(scores)
        offsets = self.first_offsets(scores, raw)
        for number in range(1, ROUNDS + 1):
            scores = self.out_of_fold(offsets, number)
            if number == 1:
                offsets = self.moved(
                    offsets, scores, task.shares(scores > task.border), self.wanted, 1.0
                )
                attempt = self.attempt(offsets)
            elif self.shortfall(self.best()) <= self.enough:
                break
            for damping in _DAMPING[number == 1 : _FULL[task.sees_group]]:
                if self.shortfall(attempt) <= self.enough:
                    break
                wanted = self.wanted - self.bias(attempt.offsets)
                offsets = self.moved(
                    attempt.offsets, attempt.scores, attempt.shares, wanted, damping
                )
                attempt = self.attempt(offsets)
            attempt = self.best(1)
            offsets = attempt.offsets
        best = self.best()
        shares = np.clip(best.shares + self.bias(best.offsets), 0.0, 1.0)
        noise = np.var(self.biases[1:], axis=0)
        return Closed(
            best.offsets,
            *self.lesson(best.offsets),
            shares,
            task.size,
            noise,
            best.student,
            self.trainings,
        )

    def lesson(self, offsets: Reals) -> tuple[Way, Reals, Reals]:
        """The way to teach these offsets, how much each person counts, and the part of
        it that counts as good.
        """
        task = self.task
        weight = task.weight * task.factor[task.group]
        good = task.good.astype(np.float64)
        if not offsets.any():
            return "none", weight, good
        if not task.sees_group:
            beyond = (
                (good if self.likely is None else self.likely)
                - task.threshold
                + offsets[task.group]
            )
            most = np.where(
                beyond > 0, beyond / (1 - task.threshold), -beyond / task.threshold
            ).max()
            part = self._dealt(task.threshold + beyond / max(1.0, float(most)))
            return "along" if self.likely is None else "soft along", weight, part
        if self.likely is not None:
            moved = log_odds(self.likely, _SURE) + offsets[task.group]
            return "soft tilt", weight, self._dealt(1 / (1 + np.exp(-moved)))
        tilted = weight * np.exp(good * offsets[task.group])
        before, after = (
            tally(task.group, own, task.groups) for own in (weight, tilted)
        )
        kept = np.divide(before, after, out=np.ones_like(before), where=after > 0)
        return "tilt", np.asarray(tilted * kept[task.group]), good

    def out_of_fold(self, offsets: Reals, number: int) -> Reals:
        """Log-odds of everybody by students who have not seen them, with folds of their
        own.
        """
        learned = []
        scores = np.empty(len(self.task.good))
        task = self.task
        for rows, asked in self._folds(number):
            student = self._train(rows, offsets)
            scores[asked] = log_odds(student.chances(asked))
            learned.append(
                task.shares(log_odds(student.chances(rows)) > task.border, rows)
            )
        self.biases.append(task.shares(scores > task.border) - np.mean(learned, axis=0))
        return scores

    def attempt(self, offsets: Reals) -> Attempt:
        """Train the student on everybody."""
        student = self._train(everybody := np.arange(len(self.task.good)), offsets)
        scores = log_odds(student.chances(everybody))
        self.tried.append(
            Attempt(
                offsets, scores, self.task.shares(scores > self.task.border), student
            )
        )
        return self.tried[-1]

    def best(self, start: int = 0) -> Attempt:
        """Of the students of everybody, from the first or another; of those that decide
        alike, the last one.
        """
        return min(reversed(self.tried[start:]), key=self.shortfall)

    def bias(self, offsets: Reals) -> Reals:
        """How much more is decided for unseen people: from other weights, students
        learn more by heart, or less.
        """
        return np.asarray(
            _FEWER
            * np.mean(self.biases[1:] if offsets.any() else self.biases[:1], axis=0)
        )

    @property
    def _steers(self) -> Mask:
        """Groups that the student is judged by: not one of few people, or from whom
        only one outcome can be learned.
        """
        mass = (self.task.weight * self.task.good, self.task.weight * ~self.task.good)
        task = self.task
        judged = (task.size >= FEW) & np.all(
            [tally(task.group, own, task.groups) > 0 for own in mass], axis=0
        )
        return np.asarray(judged if judged.sum() > 1 else task.size > 0)

    @property
    def enough(self) -> float:
        """A shortfall that may be chance, and would be chased rather than corrected."""
        share = np.clip(np.average(self.wanted, weights=self.task.size), 0.01, 0.99)
        return max(
            0.005,
            0.25
            * float(
                np.sqrt(2 * (1 - share) / share / self.task.size[self._steers].min())
            ),
        )

    def shortfall(self, attempt: Attempt) -> float:
        """How far decisions about unseen people are from the wanted ones: between
        groups, and half of that in all.
        """
        ratio = np.maximum(
            attempt.shares + self.bias(attempt.offsets), 1e-3
        ) / np.maximum(self.wanted, 1e-3)
        ratio = ratio[self._steers]
        mass = (self.task.size * self.wanted)[self._steers]
        if mass.sum() > 0:
            level = float(mass @ ratio / mass.sum())
        else:
            level = 1.0
        return 1 - float(ratio.min() / ratio.max()) + 0.5 * abs(level - 1)

    def first_offsets(self, scores: Reals, raw: Reals) -> Reals:
        """What moves the share of each group that the first students decide for to the
        wanted one.
        """
        task = self.task
        if task.sees_group:
            if self.likely is not None:
                scores = log_odds(self.likely, _SURE)
            return self.moved(np.zeros(task.groups), scores, raw, self.wanted, 1.0)
        if self.likely is None:
            likely = 1 / (1 + np.exp(-scores))
        else:
            likely = self.likely
        self.surrogate = Surrogate(
            task, likely, self._foretold(task.group, task.groups)
        )
        return self.surrogate.solve(self.wanted)

    def _dealt(self, shares: Reals) -> Reals:
        """The part of each person that counts as good, if these do on average in a
        profile: as `Profiles.by_row`.
        """
        good = self.task.good
        before, shares = self._alike(np.column_stack([good, shares])).T
        part = np.where(good, shares, shares - before) / np.where(
            good, before, 1 - before
        )
        return np.asarray(part.clip(0.0, 1.0))

    def _softened(self, scores: Reals) -> Reals | None:
        """η of everybody, by boosting, or by the student if it knows better, if that
        serves the student; see above.
        """
        task = self.task
        own = self._alike(1 / (1 + np.exp(-scores[:, None])))[:, 0]
        likely = self._foretold(outcomes := task.good.astype(np.intp), 2)[:, 1]
        surprise = [
            -np.log(np.where(task.good, one, 1 - one).clip(_SURE)) @ task.weight
            for one in (likely, own)
        ]
        right = [
            ((one > task.border) == task.good) @ task.weight
            for one in (self.tried[0].scores, scores)
        ]
        if right[0] - right[1] > _BY_HEART * task.weight.sum():
            if surprise[0] < surprise[1]:
                return self._foretold(outcomes, 2, _TEACHERS)[:, 1]
            return own
        return likely if surprise[0] < (1 - _BETTER) * surprise[1] else None

    def _foretold(self, labels: Rows, size: int, folds: int = FOLDS) -> Reals:
        """The chance of each label, by models that have not seen the person."""
        chances = np.zeros((len(labels), size))
        for rows, asked in self._folds(ROUNDS + 1, folds):
            known = self.task.foretell(labels, rows, asked)
            chances[asked, : known.shape[1]] = known  # the last groups may have nobody
        return self._alike(chances)

    def _alike(self, chances: NDArray[Any]) -> Reals:
        """The mean in each profile."""
        profiles = int(self.task.profile.max()) + 1
        task = self.task
        sums = [tally(task.profile, task.weight * one, profiles) for one in chances.T]
        return (
            np.column_stack(sums)[task.profile]
            / tally(task.profile, task.weight, profiles)[task.profile, None]
        )

    def moved(
        self,
        offsets: Reals,
        scores: Reals,
        shares: Reals,
        wanted: Reals,
        damping: float,
    ) -> Reals:
        """Offsets after which the wanted share of each group would be decided for; less
        for groups of few people.
        """
        task, (shares, wanted) = self.task, np.clip([shares, wanted], 0.001, 0.999)
        reliable = damping * task.size / (task.size + _RELIABLE)
        if self.surrogate is not None:
            return self.surrogate.moved(offsets, shares, reliable * (wanted - shares))
        steps = np.zeros(task.groups)
        for group in np.flatnonzero((task.size > 0) & (shares != wanted)):
            members = (task.group == group) & task.compared & (task.weight > 0)
            own = scores[members]
            share = task.weight[members] / task.weight[members].sum()
            steps[group] = task.border - quantile(own, share, wanted[group])
        return np.clip(
            offsets + np.clip(reliable * steps, -_STEP, _STEP), -_FARTHEST, _FARTHEST
        )

    def _wished(self, scores: Reals, raw: Reals) -> Reals:
        """The wanted share of each group: fair, and overall what it is, or where the
        decisions are most accurate.
        """
        fair = self.task.fair_shares(raw)
        task = self.task
        if task.decided == "best":
            cuts = np.quantile(scores, np.linspace(0.02, 0.98, 49))
            wishes = [task.fair_shares(task.shares(scores > cut)) for cut in cuts]
            fair = max(wishes, key=lambda wish: self._accuracy(scores, wish))
            raw = raw + fair - task.fair_shares(raw)
        # τ², the variance of groups, by moments: both a deviation and its noise are
        # those from the mean of all groups.
        mass = task.size / task.size.sum()
        noise = (
            np.maximum(fair * (1 - fair), 0.01)
            / np.maximum(task.size, 1.0)
            * (1 - mass)
        )
        missing = 1 - mass @ mass
        between = max(0.0, float(mass @ ((raw - fair) ** 2 - noise))) / max(
            missing, 1e-9
        )
        signal = between * (2 - 2 * mass - missing)
        return np.asarray(
            fair + noise / np.maximum(signal + noise, 1e-12) * (raw - fair)
        )

    def _accuracy(self, scores: Reals, wish: Reals) -> float:
        """Of decisions for the wanted share of each group."""
        task = self.task
        right = 0.0
        for group in np.flatnonzero(task.size > 0):
            members = np.flatnonzero((task.group == group) & (task.weight > 0))
            asked = members[task.compared[members]]
            cut = quantile(
                scores[asked],
                task.weight[asked] / task.weight[asked].sum(),
                wish[group],
            )
            right += float(
                task.weight[members] @ ((scores[members] > cut) == task.good[members])
            )
        return right

    def _train(self, rows: Rows, offsets: Reals) -> Student:
        self.trainings += 1
        self.watch(min(self.trainings / _MOST_TRAININGS, 1.0))
        _, weight, good = self.lesson(offsets)
        parts = np.column_stack([weight * (1 - good), weight * good])[rows]
        person, outcome = np.nonzero(parts)
        return self.task.train(rows[person], outcome == 1, parts[person, outcome])

    def _folds(self, number: int, folds: int = FOLDS) -> list[tuple[Rows, Rows]]:
        """People dealt to folds like cards, at random within each group and outcome."""
        shuffled = np.random.default_rng([_STREAM, number]).permutation(
            len(self.task.good)
        )
        fold = np.empty(len(shuffled), dtype=np.intp)
        fold[np.lexsort((shuffled, self.task.good, self.task.group))] = (
            np.arange(len(shuffled)) % folds
        )
        return [
            (np.flatnonzero(fold != held), np.flatnonzero(fold == held))
            for held in range(folds)
        ]


@dataclass(eq=False)
class Surrogate:
    """A model of the student that does not see the group: η(x) and P(g | x) tell what
    it would decide.
    """

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
        """Offsets with the wanted shares, by Newton's method; groups of few people
        count less.
        """
        # Where η and P(g | x) rise together, small offsets only move one border for
        # all: begin at the best of several.
        lean = wanted - self.shares(np.zeros(self.task.groups))
        starts = [
            np.asarray(part * lean / max(float(np.abs(lean).max()), 1e-9))
            for part in np.linspace(0, 1, 6)
        ]
        offsets = min(
            starts, key=lambda start: float(np.abs(wanted - self.shares(start)).max())
        )
        for _ in range(15):
            missing = wanted - self.shares(offsets)
            self.slopes = self._slopes(offsets)
            if np.abs(missing).max() < 1e-3:
                break
            offsets = self._step(offsets, missing)
        self.slopes = self.start = self._slopes(offsets)
        return offsets

    def moved(self, offsets: Reals, shares: Reals, missing: Reals) -> Reals:
        """One step, with slopes corrected by what the last one did (Broyden's method,
        unless a slope would vanish).
        """
        if self.last is not None:
            step = offsets - self.last[0]
            change = shares - self.last[1]
            if np.linalg.norm(step) > 0.02:
                slopes = self.slopes + 0.7 * np.outer(
                    change - self.slopes @ step, step
                ) / (step @ step + 0.01)
                if (np.diag(slopes) >= 0.2 * np.diag(self.start)).all():
                    self.slopes = slopes
        self.last = offsets, shares
        return self._step(offsets, missing)

    def _slopes(self, offsets: Reals) -> Reals:
        units = 0.02 * np.eye(len(offsets))
        rows = [
            (self.shares(offsets + unit) - self.shares(offsets - unit)) / 0.04
            for unit in units
        ]
        return np.array(rows).T

    def _step(self, offsets: Reals, missing: Reals) -> Reals:
        scale = np.sqrt(self.task.size / self.task.size.sum())
        slopes = self.slopes * scale[:, None]
        square = slopes.T @ slopes
        ridge = (0.01 * np.trace(square) / len(square) + 1e-9) * np.eye(len(square))
        step = np.linalg.solve(square + ridge, slopes.T @ (missing * scale))
        step *= min(1.0, _BLIND_STEP / max(float(np.abs(step).max()), 1e-9))
        return np.clip(offsets + step, -_BLIND_FARTHEST, _BLIND_FARTHEST)


def log_odds(chances: Reals, least: float = _SMALLEST) -> Reals:
    """Log-odds, finite."""
    kept = np.clip(chances, least, 1 - least)
    return np.asarray(np.log(kept / (1 - kept)))
