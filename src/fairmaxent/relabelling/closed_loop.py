"""The closed loop: what a table must say so that a student decides equally for all.

`rule` says which decisions are the most accurate of all equal ones, and how a table
teaches them to a student: a handful of numbers λ, the offsets of the groups, is all
there is to find.

The search starts where cross-fitted thresholds are, and corrects them by trying the
student out. Its decisions about the people it learned from (of which all students have
some share too many or too few) are corrected by how much students of folds decide
differently about people whom they have not seen; the folds are others each time, or
they would be fitted instead of the student. It stops when what is left is chance.

Part of a difference between groups is luck. So the wanted share of a group keeps as
much of its first difference as chance explains (empirical Bayes): little, unless the
group is small.

Of many people, a sample is searched on. Then the student learns from everybody, and is
corrected once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.relabelling.rule import (
    FIRST,
    Known,
    Way,
    first_response,
    gain,
    groups_apart,
    known_of,
    known_without,
    lesson,
    most_accurate,
    response,
    soft_labels,
    tilts,
    train,
)
from fairmaxent.relabelling.task import (
    FOLDS,
    MOST_TRAININGS,
    Rows,
    Student,
    Task,
    Train,
)

MOST_SEARCHED = 10_000  # people; of more, about so many are searched on
_ROUNDS = 2  # times that folds are asked
_TRIES = 2  # students between two times
_DAMPINGS = (1.0, 0.8)
# Students of folds learn from two thirds of the people, and what is learned by heart
# falls with the root of their number.
_FEWER = np.sqrt(1 - 1 / FOLDS)
_FARTHEST_TILT = 8.0  # offset of a group, as log-odds
_FARTHEST = 3.0  # of what an offset, or all of them, add to anybody's gain
_FEWEST = 0.02  # of the labels of a table, for either outcome
_TINY = 1e-6
_RELIABLE = 10.0  # people of a group at which half of a correction is made


@dataclass(frozen=True, eq=False)
class Attempt:
    """A student of everybody, and what it decides about the people it learned from."""

    offsets: Reals  # that it was taught
    chances: Reals
    shares: Reals
    student: Student


@dataclass(frozen=True, eq=False)
class State:
    """Where the search stands."""

    known: Known
    wanted: Reals  # share of each group: fair, but for what chance explains
    offsets: Reals  # that are taught next
    trainings: float  # so far, of the student on everybody
    attempts: tuple[Attempt, ...] = ()  # in order
    # one for each time that folds were asked: shares decided for by students of folds
    # if people are unseen, minus if they are seen
    unseen_gaps: tuple[Reals, ...] = ()
    tries: int = 0  # attempts since then


@dataclass(frozen=True, eq=False)
class Closed:
    """What the loop found."""

    offsets: Reals  # λ of each group
    way: Way  # in which the table teaches
    weight: Reals  # of each person
    good: Reals  # the part of it that counts as good
    before: Reals  # of each group decided for by students of the data
    # the same, as estimated for people whom the student has not seen
    shares: Reals
    size: Reals  # effective people of each group
    # variance of these shares from one round to the next, beside that of who is asked
    noise: Reals
    student: Student
    trainings: float


def search(task: Task, watch: Callable[[float], object] = float) -> Closed:
    """Find the offsets from which the student's decisions come closest to the wish.

    ``watch`` is told before each training how much is done.
    """
    task = replace(task, train=watched(task.train, watch))
    rows = task.sample(MOST_SEARCHED)
    known = known_of(task, rows)
    searched = task.part(rows)
    state = begin(searched, known.of(rows))
    while not is_done(searched, state):
        state = next_round(searched, state)
    if len(rows) < len(task.good):
        state = on_everybody(task, known, searched, state)
    return conclude(task, state)


def watched(train: Train, watch: Callable[[float], object]) -> Train:
    """Train as before, and tell how much is done."""
    number = count(1)

    def told(rows: Rows, good: Mask, weight: Reals) -> Student:
        watch(min(next(number) / MOST_TRAININGS, 1.0))
        return train(rows, good, weight)

    return told


# ---------------------------------------------------------------- begin, step, end


def begin(task: Task, known: Known) -> State:
    """Wish, and correct the rule's offsets by what students of folds make of them."""
    wanted = wish(task, known)
    offsets = np.zeros(task.groups)
    if shortfall(task, wanted, known.shares) > enough(task, wanted):
        step = first_response(task, known).solve(wanted - known.shares)
        offsets = kept_near(task, known, wanted, step)
    state = State(
        known=known, wanted=wanted, offsets=offsets, trainings=known.trainings
    )
    chances, gap = ask_folds(task, known, offsets, FIRST)
    shares = task.shares(chances > task.threshold)
    return replace(
        state,
        offsets=corrected(task, state, offsets, chances, shares),
        unseen_gaps=(gap,),
        trainings=state.trainings + asking(task, known, FIRST),
    )


def is_done(task: Task, state: State) -> bool:
    """Whether new folds confirm that a student is close, or enough was tried."""
    if not state.attempts:
        return False
    asked = len(state.unseen_gaps)
    if asked > 1 and is_close(task, state, best(task, state)):
        return True
    cost = asking(task, state.known, FIRST + asked)
    is_last = asked == _ROUNDS or state.trainings + cost > MOST_TRAININGS
    is_last = is_last and state.tries == _TRIES
    return is_last or state.trainings + 1 > MOST_TRAININGS


def next_round(task: Task, state: State) -> State:
    """Try another student; or if one seems close, or enough are not, ask new folds."""
    if state.attempts:
        chosen = best(task, state)
        if state.tries == _TRIES or is_close(task, state, chosen):
            return asked_again(task, state, chosen)
    return next_student(task, state)


def asked_again(task: Task, state: State, chosen: Attempt) -> State:
    """Ask new folds about the table of a student, and go on from there."""
    number = FIRST + len(state.unseen_gaps)
    _, gap = ask_folds(task, state.known, chosen.offsets, number)
    state = replace(
        state,
        unseen_gaps=(*state.unseen_gaps, gap),
        trainings=state.trainings + asking(task, state.known, number),
        tries=0,
    )
    chosen = best(task, state)
    return replace(state, offsets=after(task, state, chosen))


def next_student(task: Task, state: State) -> State:
    """Train a student of everybody, and move the offsets on from there."""
    attempt = attempt_at(task, state.known, state.offsets)
    state = replace(
        state,
        attempts=(*state.attempts, attempt),
        trainings=state.trainings + 1,
        tries=state.tries + 1,
    )
    return replace(state, offsets=after(task, state, attempt))


def on_everybody(task: Task, known: Known, searched: Task, state: State) -> State:
    """Teach everybody what was found among some, and correct it once.

    What is learned by heart falls with the root of the number of people.
    """
    part = len(searched.good) / len(task.good)
    gaps = [np.sqrt(part) * gap for gap in state.unseen_gaps]
    trainings = known.trainings + part * (state.trainings - known.trainings)
    whole = State(
        known=known,
        wanted=wish(task, known),
        offsets=best(searched, state).offsets,
        trainings=trainings,
        unseen_gaps=tuple(gaps),
    )
    whole = next_student(task, whole)
    if is_close(task, whole, whole.attempts[0]):
        return whole
    return next_student(task, whole)


def conclude(task: Task, state: State) -> Closed:
    """Take the best student of all."""
    chosen = best(task, state)
    taught = lesson(task, state.known, chosen.offsets)
    return Closed(
        offsets=chosen.offsets,
        way=taught.way,
        weight=taught.weight,
        good=taught.good,
        before=state.known.shares,
        shares=unseen_shares(chosen, state.unseen_gaps),
        size=task.size,
        noise=np.var(state.unseen_gaps, axis=0),
        student=chosen.student,
        trainings=state.trainings,
    )


# ---------------------------------------------------------------- students


def ask_folds(
    task: Task, known: Known, offsets: Reals, number: int
) -> tuple[Reals, Reals]:
    """Chances of everybody by students who have not seen them, and the unseen gap."""
    unseen = np.empty(len(task.good))
    seen = []
    by_fold: Iterable[Known] = [known] * FOLDS
    if not task.sees_group:
        by_fold = known_without(task, known, number)
    for (rows, asked), own in zip(task.folds(number), by_fold, strict=True):
        student = train(task, rows, lesson(task, own, offsets))
        chances = student.chances(task.everybody)
        unseen[asked] = chances[asked]
        seen.append(task.shares(chances[rows] > task.threshold, rows))
    shares = task.shares(unseen > task.threshold)
    return unseen, shares - np.mean(seen, axis=0)


def asking(task: Task, known: Known, number: int) -> float:
    """Trainings on everybody that it costs to ask folds.

    Students of folds learn from all other folds, tellers of groups from one.
    """
    tellers = 0.0
    if not task.sees_group and (number != FIRST or not known.tellers):
        tellers = len(groups_apart(task, task.everybody)) - 1.0
    return FOLDS - 1.0 + tellers


def attempt_at(task: Task, known: Known, offsets: Reals) -> Attempt:
    """Train the student on everybody."""
    student = train(task, task.everybody, lesson(task, known, offsets))
    chances = student.chances(task.everybody)
    return Attempt(
        offsets=offsets,
        chances=chances,
        shares=task.shares(chances > task.threshold),
        student=student,
    )


def unseen_shares(attempt: Attempt, gaps: Sequence[Reals]) -> Reals:
    """Shares that a student will decide for, of people whom it has not seen."""
    gap = np.mean(gaps, axis=0)
    return np.clip(attempt.shares + _FEWER * gap, 0.0, 1.0)


def best(task: Task, state: State) -> Attempt:
    """The attempt closest to the wish; of those that decide alike, the last one."""

    def missed(attempt: Attempt) -> float:
        shares = unseen_shares(attempt, state.unseen_gaps)
        return shortfall(task, state.wanted, shares)

    return min(reversed(state.attempts), key=missed)


def is_close(task: Task, state: State, attempt: Attempt) -> bool:
    """Whether what the attempt falls short of the wish may be chance."""
    shares = unseen_shares(attempt, state.unseen_gaps)
    return shortfall(task, state.wanted, shares) <= enough(task, state.wanted)


def shortfall(task: Task, wanted: Reals, shares: Reals) -> float:
    """How far shares are from the wish: between groups that steer, and half in all."""
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


def wish(task: Task, known: Known) -> Reals:
    """Fair shares of the groups, and as much of their difference as chance explains.

    Overall as many as now are decided for, or as many as is most accurate.
    """
    fair = task.fair_shares(known.shares)
    if task.decided != "best":
        return wanted_shares(fair, known.shares, task.size)
    others = most_accurate(task, known)
    return wanted_shares(others, known.shares + others - fair, task.size)


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


# ---------------------------------------------------------------- steps


def after(task: Task, state: State, attempt: Attempt) -> Reals:
    """The offsets to teach after an attempt."""
    shares = unseen_shares(attempt, state.unseen_gaps)
    return corrected(task, state, attempt.offsets, attempt.chances, shares)


def corrected(
    task: Task, state: State, offsets: Reals, chances: Reals, shares: Reals
) -> Reals:
    """Offsets after which the wanted share of each group would be decided for.

    Less far for groups of few people, and after several tries.
    """
    if shortfall(task, state.wanted, shares) <= enough(task, state.wanted):
        return offsets
    reliable = _DAMPINGS[min(state.tries, _TRIES - 1)] * task.size
    reliable = reliable / (task.size + _RELIABLE)
    missing = reliable * (state.wanted - shares)
    step = response(task, state.known, chances).solve(missing)
    return kept_near(task, state.known, state.wanted, offsets + step)


def kept_near(task: Task, known: Known, wanted: Reals, offsets: Reals) -> Reals:
    """Offsets that are not too far from 0, and leave both outcomes to learn from."""
    if tilts(task, known):
        return np.clip(offsets, -_FARTHEST_TILT, _FARTHEST_TILT)
    most = np.maximum(known.moves.max(axis=0), _TINY)
    one_by_one = np.clip(offsets, -_FARTHEST / most, _FARTHEST / most)
    farthest = float(np.abs(known.moves @ offsets).max())
    all_alike = offsets * min(1.0, _FARTHEST / max(farthest, _TINY))

    def missed(shorter: Reals) -> float:
        decided = gain(known, shorter, task.threshold) > 0
        return shortfall(task, wanted, task.shares(decided))

    # Cut one by one, offsets may send everybody to one side; shortened all alike, a
    # group apart from the others may leave too little to these.
    chosen = min((one_by_one, all_alike), key=missed)
    return leaving_both(task, known, chosen)


def leaving_both(task: Task, known: Known, offsets: Reals) -> Reals:
    """Halve offsets until labels are neither (nearly) all good nor all bad."""
    while offsets.any():
        labels = soft_labels(gain(known, offsets, task.threshold), task.threshold)
        if _FEWEST < labels.mean() < 1 - _FEWEST:
            break
        offsets = np.where(np.abs(offsets) > _TINY, offsets / 2, 0.0)
    return offsets
