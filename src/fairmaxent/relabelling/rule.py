"""The rule that a table teaches, and how: what is known, and what offsets do to it.

The most accurate of all rules with equal decisions decides for x where

    η(x, z) − τ + λ_z                     if it may see the group z,
    η(x) − τ + Σ_g λ_g·P(g | x)           if it may not,
    η(x) − τ + Σ_g λ_g·P(g, y = 1 | x)    if it may not, for equal opportunity

is positive (Menon and Williamson 2018). η is the chance of the good outcome. It and P(g
| x) are predicted by models that have not seen the person: by students, or by our own
model if it predicts outcomes better than they do.

A table teaches the offsets λ in one of two ways:

- *tilt*, if the student sees z and knows best what is likely: rows keep their outcome,
  and the weight e^{λ_z} on the good one moves the student's log-odds in the group,
  which keeps its weight, by λ_z;
- *soft labels* otherwise: rows keep their weight, and count as good by τ + k·(the gain
  of the rule), as far as that is a share. Beyond parity, what matters is on which side
  of the border somebody is, so labels turn there k times as fast as likelihood does.

If all offsets are 0, rows keep outcome and weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairmaxent.data.table import Mask, Reals, ratio, tally
from fairmaxent.maxent.search import SearchPoint, backtrack
from fairmaxent.relabelling.task import (
    FOLDS,
    Rows,
    Student,
    Task,
    Train,
    log_odds,
    probability,
)

Way = Literal["none", "tilt", "soft"]

FIRST = 2  # round in which folds are asked
SHARP = 2.0  # how much steeper than likelihood the soft labels turn at the border
# of the surprise in the outcomes that our own model must take away to be asked
_BETTER = 0.03
_SURE = 0.01  # of probabilities whose logarithm is taken
_WIDTH = 0.05  # of the spread of scores, over which a decision turns
_STEPS = 25  # of Newton's method
_CLOSE = 1e-3  # to the wanted shares, at which it ends
_APART = 8  # groups at most that models tell apart from all others
_LEVELS = 25  # shares that are tried for the most accurate one
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Known:
    """What models that have not seen people predict about them."""

    chances: Reals  # η
    # (people, groups): what each offset adds to the gain
    moves: Reals
    is_own: bool  # predicted by students, not by our own model
    shares: Reals  # of each group that students of the data decide for
    trainings: float  # of students, or of our own models, on everybody
    # of the first round, if that is about the same people: `tellers_of`
    tellers: Sequence[Reals] = ()

    def of(self, rows: Rows) -> "Known":
        """What is known of these people."""
        if len(rows) == len(self.chances):
            return self
        return replace(
            self, chances=self.chances[rows], moves=self.moves[rows], tellers=()
        )


def known_of(task: Task, learners: Rows) -> Known:
    """Ask students and our own model about one fold, and the better about all.

    They learn from the learners among the people who are not asked about.
    """
    first, *others = folds_of(task, learners, 0)
    rows, asked = first
    by_student = told(task, task.train, task.good, first)
    by_adviser = told(task, task.advise, task.good, first)
    surprised = surprise(task, by_student, asked)
    is_own = surprise(task, by_adviser, asked) >= (1 - _BETTER) * surprised
    train = task.train if is_own else task.advise
    chances = np.empty(len(task.good))
    chances[asked] = by_student if is_own else by_adviser
    for fold in others:
        chances[fold[1]] = told(task, train, task.good, fold)
    shares = shares_now(task, chances, by_student, asked)

    chances = task.mean_of_profile(chances)
    tellers, learned = tellers_of(task, learners, train, FIRST)
    learned += 2 * len(rows) + sum(len(fold[0]) for fold in others)
    return Known(
        chances=chances,
        moves=moves_of(task, tellers, chances),
        is_own=is_own,
        shares=shares,
        trainings=learned / len(task.good),
        tellers=tellers,
    )


def folds_of(task: Task, learners: Rows, number: int) -> list[tuple[Rows, Rows]]:
    """Folds of everybody, of whom only the learners are learned from."""
    return [
        (np.intersect1d(rows, learners), asked) for rows, asked in task.folds(number)
    ]


def shares_now(task: Task, chances: Reals, by_student: Reals, asked: Rows) -> Reals:
    """What students of the data decide for: known of some, predicted of others."""
    decided = chances > task.threshold
    by_student_more = task.shares(by_student > task.threshold, asked)
    by_student_more = by_student_more - task.shares(decided[asked], asked)
    return np.clip(task.shares(decided) + by_student_more, 0.0, 1.0)


def moves_of(task: Task, tellers: Sequence[Reals], chances: Reals) -> Reals:
    """What each offset adds to the gain.

    The own group, P(g | x), or P(g, y = 1 | x) = η(x)·P(g | x, y = 1), by the mean of
    tellers who have not seen the person.
    """
    if task.sees_group:
        return np.eye(task.groups)[task.group]
    groups = np.zeros((len(task.good), task.groups))
    for held, (_, asked) in enumerate(task.folds(FIRST)):
        others = [by for fold, by in enumerate(tellers) if fold != held]
        groups[asked] = np.mean(others, axis=0)[asked]
    return moves_by(task, groups, chances)


def moves_by(task: Task, groups: Reals, chances: Reals) -> Reals:
    """The moves by P(g | x), which is one for all of a profile."""
    groups = np.column_stack([task.mean_of_profile(one) for one in groups.T])
    if task.of_good:
        return chances[:, None] * groups
    return groups


def tellers_of(
    task: Task, learners: Rows, train: Train, number: int
) -> tuple[list[Reals], int]:
    """P(g | x), or P(g | x, y = 1), by models of each fold of a round.

    They are asked about everybody else. Also returns how many people they learned from.
    """
    if task.sees_group:
        return [], 0
    if task.of_good:
        learners = learners[task.compared[learners]]
    largest, *smaller = groups_apart(task, learners)
    tellers = []
    learned = 0
    for others, fold in task.folds(number):
        rows = np.intersect1d(fold, learners)
        learned += len(smaller) * len(rows)
        groups = np.zeros((len(task.good), task.groups))
        for group in smaller:
            labels = task.group == group
            groups[others, group] = told(task, train, labels, (rows, others))
        groups[:, largest] = np.clip(1 - groups.sum(axis=1), 0.0, 1.0)
        tellers.append(groups)
    return tellers, learned


def groups_apart(task: Task, learners: Rows) -> Rows:
    """The groups that models tell apart, the largest first.

    It, and the smallest of many, are whoever is in no other.
    """
    sizes = np.bincount(task.group[learners], minlength=task.groups)
    present = np.argsort(-sizes)[: np.count_nonzero(sizes)]
    return present[: _APART + 1]


def known_without(task: Task, known: Known, number: int) -> Iterator[Known]:
    """What is known if nobody of a fold had told of groups, for each fold of a round.

    A student who was taught by a P(g | x) that has seen people decides about them as if
    it had seen their group. So those of each fold ask the teller of the third one.
    """
    tellers = known.tellers
    if number != FIRST or not tellers:
        train = task.train if known.is_own else task.advise
        tellers, _ = tellers_of(task, task.everybody, train, number)
    folds = [asked for _, asked in task.folds(number)]
    for held in range(FOLDS):
        one, other = (fold for fold in range(FOLDS) if fold != held)
        groups = tellers[one].copy()
        groups[folds[one]] = tellers[other][folds[one]]
        yield replace(known, moves=moves_by(task, groups, known.chances))


def told(task: Task, train: Train, labels: Mask, fold: tuple[Rows, Rows]) -> Reals:
    """The chance of a label for the people asked about, learned from the others."""
    rows, asked = fold
    learned = labels[rows]
    if learned.all() or not learned.any():
        return np.full(len(asked), float(learned.any()))
    return train(rows, learned, task.weight[rows]).chances(asked)


def surprise(task: Task, chances: Reals, rows: Rows) -> float:
    """−Σ w·log P of the outcomes that happened to these people."""
    happened = np.where(task.good[rows], chances, 1 - chances)
    return float(-np.log(happened.clip(_SURE)) @ task.weight[rows])


def gain(known: Known, offsets: Reals, threshold: float) -> Reals:
    """η(x) − τ + Σ_g λ_g·P(g | x): it is decided for x where this is positive."""
    advantage = known.chances - threshold  # η(x) − τ
    shift = known.moves @ offsets  # Σ_g λ_g·P(g | x)
    return advantage + shift


# ---------------------------------------------------------------- what offsets do


@dataclass(frozen=True, eq=False)
class Response:
    """What is decided if offsets move: for whom a score is then positive."""

    task: Task
    scores: Reals
    moves: Reals  # (people, groups): what each offset adds to the score

    @property
    def width(self) -> float:
        """The part of the spread of scores over which a decision turns."""
        return _WIDTH * max(float(self.scores.std()), _TINY)

    @property
    def weight(self) -> Reals:
        """How much people count: P(g, y = 1 | x) of all tells of those who are good."""
        if self.task.sees_group:
            return self.task.weight * self.task.compared
        return self.task.weight

    def decided(self, step: Reals) -> Reals:
        """Whether it is decided for each person, smoothed at the border."""
        scores = (self.scores + self.moves @ step) / self.width
        return probability(np.clip(scores, -50, 50))

    def solve(self, missing: Reals) -> Reals:
        """The step after which this much more of each group is decided for.

        By Newton's method on the convex function whose gradient is what is decided for
        beyond that, by what x tells of groups.
        """
        mass = self.weight @ self.moves
        nowhere = np.zeros(self.task.groups)
        now = (self.weight * self.decided(nowhere)) @ self.moves
        wanted = now + missing * mass
        point = self.at(nowhere, wanted)
        for _ in range(_STEPS):
            if (np.abs(point.gradient) <= _CLOSE * mass).all():
                break
            better = backtrack(
                lambda step: self.at(step, wanted), point, self._newton(point)
            )
            if better is None:
                break
            point = better
        return point.multipliers

    def at(self, step: Reals, wanted: Reals) -> SearchPoint:
        """Σ_i w_i·width·log(1 + e^{score_i / width}) − ⟨wanted, λ⟩ and its gradient."""
        scores = self.scores + self.moves @ step
        above = self.width * np.logaddexp(0.0, scores / self.width)
        return SearchPoint(
            multipliers=step,
            value=float(self.weight @ above - wanted @ step),
            gradient=(self.weight * self.decided(step)) @ self.moves - wanted,
        )

    def _newton(self, point: SearchPoint) -> Reals:
        """Newton's direction."""
        decided = self.decided(point.multipliers)
        turning = self.weight * decided * (1 - decided) / self.width
        curvature = (self.moves * turning[:, None]).T @ self.moves
        # An offset that moves all groups alike is hardly known.
        ridge = 0.002 * np.trace(curvature) + _TINY
        matrix = curvature + ridge * np.eye(len(curvature))
        return -np.linalg.solve(matrix, point.gradient)


def tilts(task: Task, known: Known) -> bool:
    """Whether weights of outcomes, not soft labels, teach the offsets (log-odds)."""
    return task.sees_group and known.is_own


def response(task: Task, known: Known, chances: Reals) -> Response:
    """What moves of the offsets do to the decisions of a student with these chances."""
    if tilts(task, known):
        scores = log_odds(chances) - log_odds(np.array(task.threshold))
        return Response(task, scores, known.moves)
    return Response(task, chances - task.threshold, SHARP * known.moves)


def first_response(task: Task, known: Known) -> Response:
    """The same of the rule itself, before a student was taught."""
    if tilts(task, known):
        return response(task, known, known.chances)
    scores = SHARP * (known.chances - task.threshold)
    return Response(task, scores, SHARP * known.moves)


def most_accurate(task: Task, known: Known) -> Reals:
    """The fair shares with which the rule judges most people rightly.

    It is the rule that the student may learn, without the group if that is hidden.
    """
    rule = first_response(task, known)
    cuts = np.quantile(known.chances, np.linspace(0.02, 0.98, _LEVELS))
    wishes = [task.fair_shares(task.shares(known.chances > cut)) for cut in cuts]
    now = task.shares(rule.decided(np.zeros(task.groups)))

    def accuracy(wish: Reals) -> float:
        decided = rule.decided(rule.solve(wish - now))
        right = np.where(task.good, decided, 1 - decided)
        return float(right @ task.weight)

    return max(wishes, key=accuracy)


# ---------------------------------------------------------------- what a table says


@dataclass(frozen=True, eq=False)
class Teaching:
    """What a table says of each person, and in which way that teaches."""

    way: Way
    weight: Reals
    good: Reals  # the part of the person that counts as good


def lesson(task: Task, known: Known, offsets: Reals) -> Teaching:
    """Teach these offsets."""
    weight = task.weight * task.factor[task.group]
    good = task.good.astype(float)
    if not offsets.any():
        return Teaching("none", weight, good)
    if tilts(task, known):
        return Teaching("tilt", tilt(weight, good, task.group, offsets), good)
    labels = soft_labels(gain(known, offsets, task.threshold), task.threshold)
    return Teaching("soft", weight, dealt(task, labels))


def tilt(weight: Reals, good: Reals, group: Rows, offsets: Reals) -> Reals:
    """Weights with e^{λ_z} on the good outcome; each group keeps its total."""
    tilted = weight * np.exp(good * offsets[group])
    before = tally(group, weight, len(offsets))
    after = tally(group, tilted, len(offsets))
    return tilted * ratio(before, after, 1.0)[group]


def soft_labels(gains: Reals, threshold: float) -> Reals:
    """τ + k·gain, as far as that is a share."""
    return np.clip(threshold + SHARP * gains, 0.0, 1.0)


def dealt(task: Task, shares: Reals) -> Reals:
    """The part of each person that counts as good, if these do on average in a profile.

    As in `Profiles.by_row`, people keep their own outcome as far as that allows.
    """
    before = task.mean_of_profile(task.good)
    after = task.mean_of_profile(shares)
    kept = np.where(task.good, after, after - before)
    part = kept / np.where(task.good, before, 1 - before)
    return part.clip(0.0, 1.0)


def train(task: Task, rows: Rows, taught: Teaching) -> Student:
    """Train a student on some rows, each once for every outcome it counts with."""
    bad = taught.weight * (1 - taught.good)
    good = taught.weight * taught.good
    parts = np.column_stack([bad, good])[rows]
    person, outcome = np.nonzero(parts)
    return task.train(rows[person], outcome == 1, parts[person, outcome])
