"""The closed loop: what a table must say so that a student decides equally for all.

The most accurate of all rules with equal decisions puts a threshold of its own on η(x,
z) = P(good | x, z) in each group; of those that may not see z, it decides for x where
η(x) − τ + Σ_g λ_g·P(g | x) is positive (Menon and Williamson 2018, "The cost of
fairness in binary classification"). So a handful of numbers λ, the offsets of the
groups, is all there is to find; `lessons` says how a table teaches them to a student.

They are found by trying the student out. Its decisions about the people it learned from
(of which all students have some share too many or too few) are corrected by how much
students of folds decide differently about people whom they have not seen; the folds are
others in each round, or they would be fitted instead of the student.

Part of a difference between groups is luck. So the wanted share of a group keeps as
much of its first difference as chance explains (empirical Bayes): little, unless the
group is small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.relabelling.lessons import SURE, Way, lesson, likely_outcomes, train
from fairmaxent.relabelling.surrogate import Slopes, Surrogate
from fairmaxent.relabelling.task import (
    FOLDS,
    MOST_TRAININGS,
    ROUNDS,
    Rows,
    Student,
    Task,
    Train,
    log_odds,
    probability,
)

# Each step of a round is followed by a student, which sees the group or not.
_DAMPINGS = {True: (1.0, 0.8, 0.7, 0.5), False: (1.0, 0.8, 0.7)}
# Students of folds learn from two thirds of the people, and what is learned by heart
# falls with the root of their number.
_FEWER = np.sqrt(1 - 1 / FOLDS)
# The largest offset of a group that is seen, and the largest step.
_FARTHEST = 8.0
_STEP = 3.0
_RELIABLE = 10.0  # people of a group at which half of a correction is made
# where most people may be decided for, if that is most accurate: shares of all scores
_CUTS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A student of everybody, and what it decides about the people it learned from."""

    offsets: Reals  # that it was taught
    scores: Reals  # log-odds
    shares: Reals
    student: Student


@dataclass(frozen=True, eq=False)
class State:
    """Where the search stands after a round."""

    wanted: Reals  # share of each group: fair, but for what chance explains
    likely: Reals | None  # η of everybody, if their outcomes are softened
    slopes: Slopes | None  # of a student that does not see the group
    attempts: tuple[Attempt, ...]  # in order; the first one learned from the data
    current: Attempt  # the one to go on from
    # one for each time that folds were asked, the first time about the data: shares
    # decided for by students of folds if people are unseen, minus if they are seen
    unseen_gaps: tuple[Reals, ...]
    rounds: int = 0

    def gaps_of(self, attempt: Attempt) -> Sequence[Reals]:
        """The gaps of students who learned from a table of the same kind.

        How much is learned by heart depends on the weights: students of the data are
        not compared with those of tables that teach offsets.
        """
        if attempt.offsets.any():
            return self.unseen_gaps[1:]
        return self.unseen_gaps[:1]


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


def search(task: Task, watch: Callable[[float], object] = float) -> Closed:
    """Find the offsets from which the student's decisions come closest to the wish.

    ``watch`` is told before each training how much is done.
    """
    task = replace(task, train=watched(task.train, watch))
    state = begin(task)
    while not is_done(task, state):
        state = next_round(task, state)
    return conclude(task, state)


def watched(train: Train, watch: Callable[[float], object]) -> Train:
    """Train as before, and tell how much is done."""
    number = count(1)

    def told(rows: Rows, good: Mask, weight: Reals) -> Student:
        watch(min(next(number) / MOST_TRAININGS, 1.0))
        return train(rows, good, weight)

    return told


# ---------------------------------------------------------------- begin, step, end


def begin(task: Task) -> State:
    """Try students of the data, wish, and train a first student towards the wish."""
    untaught = np.zeros(task.groups)
    scores, first_gap = ask_folds(task, None, untaught, 0)
    first = attempt_at(task, None, untaught)
    shares = np.clip(unseen_shares(first, [first_gap]), 0.0, 1.0)
    fair, shares_then = fair_wish(task, scores, shares)
    wanted = wanted_shares(fair, shares_then, task.size)
    likely = likely_outcomes(task, scores, first.scores)

    offsets, slopes = first_offsets(task, scores, shares, wanted, likely)
    scores, gap = ask_folds(task, likely, offsets, 1)
    shares = task.shares(scores > task.border)
    offsets, slopes = moved(task, slopes, offsets, scores, shares, wanted, 1.0)
    second = attempt_at(task, likely, offsets)
    return State(
        wanted=wanted,
        likely=likely,
        slopes=slopes,
        attempts=(first, second),
        current=second,
        unseen_gaps=(first_gap, gap),
    )


def is_done(task: Task, state: State) -> bool:
    """Whether there was a last round, or new folds confirm that a student is close."""
    if state.rounds == 0:
        return False
    if state.rounds == ROUNDS:
        return True
    return is_close(task, state, best(task, state, state.attempts))


def next_round(task: Task, state: State) -> State:
    """Try students until one is close; then ask new folds about the best of them."""
    dampings = _DAMPINGS[task.sees_group]
    if state.rounds == 0:
        dampings = dampings[1:]  # the first step was made when the search began
    for damping in dampings:
        if is_close(task, state, state.current):
            break
        state = next_student(task, state, damping)

    current = best(task, state, state.attempts[1:])
    state = replace(state, current=current, rounds=state.rounds + 1)
    if state.rounds == ROUNDS:
        return state
    number = len(state.unseen_gaps)
    _, gap = ask_folds(task, state.likely, current.offsets, number)
    return replace(state, unseen_gaps=(*state.unseen_gaps, gap))


def next_student(task: Task, state: State, damping: float) -> State:
    """Move the offsets on from the current student's, and train another one."""
    current = state.current
    offsets, slopes = moved(
        task,
        state.slopes,
        current.offsets,
        current.scores,
        current.shares,
        # Shares of people who are seen, so that those who are not get the wanted.
        state.wanted - unseen_gap(state.gaps_of(current)),
        damping,
    )
    attempt = attempt_at(task, state.likely, offsets)
    return replace(
        state,
        slopes=slopes,
        attempts=(*state.attempts, attempt),
        current=attempt,
    )


def conclude(task: Task, state: State) -> Closed:
    """Take the best student of all."""
    chosen = best(task, state, state.attempts)
    taught = lesson(task, state.likely, chosen.offsets)
    shares = unseen_shares(chosen, state.gaps_of(chosen))
    return Closed(
        offsets=chosen.offsets,
        way=taught.way,
        weight=taught.weight,
        good=taught.good,
        shares=np.clip(shares, 0.0, 1.0),
        size=task.size,
        noise=np.var(state.unseen_gaps[1:], axis=0),
        student=chosen.student,
        trainings=len(state.attempts) + FOLDS * len(state.unseen_gaps),
    )


# ---------------------------------------------------------------- students


def ask_folds(
    task: Task,
    likely: Reals | None,
    offsets: Reals,
    number: int,
) -> tuple[Reals, Reals]:
    """Log-odds of everybody by students who have not seen them, and the unseen gap."""
    taught = lesson(task, likely, offsets)
    scores = np.empty(len(task.good))
    seen = []
    for rows, asked in task.folds(number):
        student = train(task, rows, taught)
        scores[asked] = log_odds(student.chances(asked))
        known = log_odds(student.chances(rows))
        seen.append(task.shares(known > task.border, rows))
    unseen = task.shares(scores > task.border)
    return scores, unseen - np.mean(seen, axis=0)


def attempt_at(task: Task, likely: Reals | None, offsets: Reals) -> Attempt:
    """Train the student on everybody."""
    student = train(task, task.everybody, lesson(task, likely, offsets))
    scores = log_odds(student.chances(task.everybody))
    return Attempt(
        offsets=offsets,
        scores=scores,
        shares=task.shares(scores > task.border),
        student=student,
    )


def unseen_gap(gaps: Sequence[Reals]) -> Reals:
    """How much more a student of everybody decides for if people are unseen."""
    return _FEWER * np.mean(gaps, axis=0)


def unseen_shares(attempt: Attempt, gaps: Sequence[Reals]) -> Reals:
    """Shares that a student will decide for, of people whom it has not seen."""
    return attempt.shares + unseen_gap(gaps)


def best(task: Task, state: State, attempts: Sequence[Attempt]) -> Attempt:
    """The attempt closest to the wish; of those that decide alike, the last one."""
    last_first = reversed(attempts)
    return min(last_first, key=lambda attempt: shortfall(task, state, attempt))


def is_close(task: Task, state: State, attempt: Attempt) -> bool:
    """Whether what the attempt falls short of the wish may be chance."""
    return shortfall(task, state, attempt) <= enough(task, state.wanted)


def shortfall(task: Task, state: State, attempt: Attempt) -> float:
    """How far an attempt is from the wish: between groups, and half of that in all.

    What counts is what it decides about unseen people, of the groups that steer.
    """
    wanted = state.wanted
    shares = unseen_shares(attempt, state.gaps_of(attempt))
    ratios = np.maximum(shares, 1e-3) / np.maximum(wanted, 1e-3)
    ratios = ratios[task.steers]
    between = 1 - float(ratios.min() / ratios.max())
    mass = (task.size * wanted)[task.steers]
    level = 1.0
    if mass.sum() > 0:
        level = float(mass @ ratios / mass.sum())
    return between + 0.5 * abs(level - 1)


def enough(task: Task, wanted: Reals) -> float:
    """A shortfall that may be chance, and would be chased rather than corrected."""
    share = np.clip(np.average(wanted, weights=task.size), 0.01, 0.99)
    smallest = task.size[task.steers].min()
    # The ratio between the shares of two groups of that size deviates by this.
    deviation = float(np.sqrt(2 * (1 - share) / share / smallest))
    return max(0.005, 0.25 * deviation)


# ---------------------------------------------------------------- the wish


def fair_wish(task: Task, scores: Reals, shares: Reals) -> tuple[Reals, Reals]:
    """Fair shares of the groups, and the shares that they would be without fairness.

    Overall as many as now are decided for, or as many as is most accurate.
    """
    fair = task.fair_shares(shares)
    if task.decided != "best":
        return fair, shares
    cuts = np.quantile(scores, _CUTS)
    wishes = [task.fair_shares(task.shares(scores > cut)) for cut in cuts]
    most_accurate = max(wishes, key=lambda wish: accuracy(task, scores, wish))
    return most_accurate, shares + most_accurate - fair


def wanted_shares(fair: Reals, shares: Reals, size: Reals) -> Reals:
    """Fair shares, and as much of each group's difference as chance explains.

    Empirical Bayes: a difference is the group's own, of variance τ², and noise. τ² is
    found by moments; a difference and its noise are those from the mean of all groups.
    """
    mass = size / size.sum()
    variance = np.maximum(fair * (1 - fair), 0.01)
    noise = variance / np.maximum(size, 1.0) * (1 - mass)
    missing = 1 - mass @ mass
    excess = float(mass @ ((shares - fair) ** 2 - noise))
    between = max(0.0, excess) / max(missing, 1e-9)  # τ²
    signal = between * (2 - 2 * mass - missing)
    by_chance = noise / np.maximum(signal + noise, 1e-12)
    return fair + by_chance * (shares - fair)


def accuracy(task: Task, scores: Reals, wish: Reals) -> float:
    """Weight of the people judged rightly, if each group has its wished share."""
    right = 0.0
    for group in np.flatnonzero(task.size > 0):
        cut = task.cut(scores, int(group), wish[group])
        members = np.flatnonzero((task.group == group) & (task.weight > 0))
        is_right = (scores[members] > cut) == task.good[members]
        right += float(task.weight[members] @ is_right)
    return right


# ---------------------------------------------------------------- steps


def first_offsets(
    task: Task,
    scores: Reals,
    shares: Reals,
    wanted: Reals,
    likely: Reals | None,
) -> tuple[Reals, Slopes | None]:
    """What moves each group's share from that of the first students to the wanted."""
    if task.sees_group:
        if likely is not None:
            scores = log_odds(likely, SURE)
        unmoved = np.zeros(task.groups)
        return moved(task, None, unmoved, scores, shares, wanted, 1.0)
    if likely is None:
        likely = probability(scores)
    groups = task.foretold(task.group, task.groups)  # P(g | x)
    return Surrogate(task, likely, groups).solve(wanted)


def moved(
    task: Task,
    slopes: Slopes | None,
    offsets: Reals,
    scores: Reals,
    shares: Reals,
    wanted: Reals,
    damping: float,
) -> tuple[Reals, Slopes | None]:
    """Offsets after which the wanted share of each group would be decided for.

    Less far for groups of few people; ``slopes`` lead if the group is not seen.
    """
    shares = np.clip(shares, 0.001, 0.999)
    wanted = np.clip(wanted, 0.001, 0.999)
    reliable = damping * task.size / (task.size + _RELIABLE)
    if slopes is not None:
        return slopes.moved(offsets, shares, reliable * (wanted - shares))
    steps = np.zeros(task.groups)
    for group in np.flatnonzero((task.size > 0) & (shares != wanted)):
        steps[group] = task.border - task.cut(scores, int(group), wanted[group])
    steps = np.clip(reliable * steps, -_STEP, _STEP)
    return np.clip(offsets + steps, -_FARTHEST, _FARTHEST), None
