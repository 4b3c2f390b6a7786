"""The closed loop: labels from which a student learns to decide equally for all groups.

Labels that lead to equal decisions themselves need not teach them: a student smooths what it learns. So the student is
tried out. It learns from the relabelled people of all folds but one, and decides about the people of that fold; where
its decisions fall out of fold, the labels of each group are moved by the offset that would put the wanted share of the
group across the threshold, and it is tried out again.

What is used in the end is the student who learned from everybody, and a student with a few sharp rules, such as a
decision tree, can differ from those of the folds. So it is trained as well. By how much it decides for more of a group
than the students of the folds, each among the people it learned from, is added to the decisions out of fold.

The soft labels that a student learns from are learned without the fold too, or they would tell it the outcomes of the
people it decides about.

Two ways of moving the labels are tried. The first keeps the mean of each group at the fair one (`soft_labels.level`),
so the table itself is fair as well. Not every student can follow it: the mean probabilities of a logistic regression
are those of its labels, in each group, and leave it no freedom. If its decisions stay unequal, the second way keeps
only the mean of all groups together (`soft_labels.shift`), and the better of the two is taken.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Reals, effective_rows, tally
from fairmaxent.relabelling.labellers import Labeller, Predict, checked, cross_fit
from fairmaxent.relabelling.people import People, one_by_one, pooled_labels
from fairmaxent.relabelling.soft_labels import FLOOR, correction, level, shift, tilt_offsets

ROUNDS = 6  # of each way
FEW_PEOPLE, MORE_FOLDS, FOLDS = 10_000, 5, 3  # up to so many people there are more folds
_MOST = 50_000  # people that take part; more are represented by that many
_SEED = 1  # of the folds, which differ from those of the soft labels

# Shortfalls of a rate, and in parentheses the same as a multiple of its standard error, whichever is larger: less than
# that may be chance, and would be chased rather than corrected.
_ENOUGH = 0.005, 0.25  # at which the loop stops
_SMALL = 0.02, 1.0  # up to which the fair means are kept without trying the other way
_GAIN = 0.01, 0.25  # by which the other way must be better

_FARTHEST = 3.0  # logits by which one round moves a group at most
_RELIABLE = 10.0  # people of a group at which half of a correction is made


@dataclass(frozen=True)
class Shortfall:
    """How far a rate is below the wanted one, and the standard error of the rate."""

    value: float
    error: float

    def within(self, limit: tuple[float, float]) -> bool:
        """Whether it is at most so much, or at most so many standard errors."""
        return self.value <= max(limit[0], limit[1] * self.error)


@dataclass(frozen=True, eq=False)
class Wish:
    """What is wanted of labels and decisions; tables are outcomes × groups."""

    wanted: Reals  # t(y | z)
    factor: Reals  # t(z) / e(z), by which the people of each group count when a model learns
    handicap: Reals  # see `level`
    fair_shares: Callable[[Reals], Reals]  # decided table -> the closest fair shares of decisions in each group
    shortfall: Callable[[Reals, Reals], Shortfall]  # decided table, people of each group -> its worst rate


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """One fold: people to learn from, with soft labels learned from them alone, and people to decide about."""

    taught: People
    soft: Reals  # (profiles, outcomes)
    asked: People


@dataclass(frozen=True, eq=False)
class Attempt:
    """Offsets, how they are used, and where the student's decisions fell."""

    offsets: Reals  # (groups, outcomes)
    keeps_means: bool
    scores: Reals  # (people, outcomes): the student's log probabilities out of fold, minus the handicap
    weight: Reals  # of these people
    group: NDArray[np.intp]
    rehearsed: Reals  # (outcomes, groups): weight of those decided each way out of fold
    decided: Reals  # the same for the student who learned from everybody
    shortfall: Shortfall  # of `decided`


@dataclass(frozen=True, eq=False)
class Levelled:
    """Labels for all profiles, and the attempt they come from."""

    labels: Reals
    attempt: Attempt
    rounds: int  # that were tried
    folds: int


def rehearse(people: People, labeller: Labeller, finish: Callable[[Reals], Reals]) -> list[Rehearsal]:
    """Split people into folds, and learn soft labels without each; ``finish`` makes labels what they may be."""
    some = _at_most(people, _MOST)
    folds = MORE_FOLDS if some.size.sum() <= FEW_PEOPLE else FOLDS
    result = []
    for held in some.deal(folds, seed=_SEED).T:
        taught, asked = some.only(some.size - held), some.only(held)
        soft = finish(pooled_labels(taught, cross_fit(labeller, taught, folds=FOLDS)))
        result.append(Rehearsal(taught, soft, asked))
    return result


def close_loop(people: People, soft: Reals, rehearsals: list[Rehearsal], student: Labeller, wish: Wish) -> Levelled:
    """Find the labels from which the student's decisions come closest to the wish."""
    offsets = tilt_offsets(soft, people.profiles.mass, people.profiles.groups, wish.wanted)
    trials = _Trials(rehearsals, _at_most(people, _MOST), soft, student, wish)
    attempts: list[Attempt] = []
    for keeps_means in (True, False):
        for _ in range(ROUNDS):
            attempts.append(trials.attempt(offsets, keeps_means=keeps_means))
            if attempts[-1].shortfall.within(_ENOUGH):
                break
            offsets = offsets + _corrections(attempts[-1], wish)
        best = min(attempts, key=_merit)
        if best.shortfall.within(_SMALL):
            break
        offsets = best.offsets
    labels = moved_labels(people, soft, wish, best.offsets, keeps_means=best.keeps_means)
    return Levelled(labels, best, len(attempts), len(rehearsals))


@dataclass(frozen=True, eq=False)
class _Trials:
    """Trains the student without each fold, and on everybody, and sees what it decides."""

    rehearsals: list[Rehearsal]
    people: People  # everybody
    soft: Reals  # their soft labels
    student: Labeller
    wish: Wish

    def attempt(self, offsets: Reals, *, keeps_means: bool) -> Attempt:
        """Try labels moved by these offsets."""
        chances, taught = [], []
        for fold in self.rehearsals:
            predict = self._train(fold.taught, fold.soft, offsets, keeps_means=keeps_means)
            chances.append(predict(fold.asked.inputs))
            taught.append(self._among(predict, fold.taught))
        weight = np.concatenate([fold.asked.weight for fold in self.rehearsals])
        group = np.concatenate([fold.asked.group for fold in self.rehearsals])
        scores = self._scores(np.concatenate(chances))
        rehearsed = self._decided(scores, weight, group)
        everybody = self._train(self.people, self.soft, offsets, keeps_means=keeps_means)
        # Pooled, because a group of one or two people is missing from some folds.
        more = _shares(self._among(everybody, self.people)) - _shares(np.sum(taught, axis=0))
        decided = _shares(np.maximum(_shares(rehearsed) + more, 0.0)) * rehearsed.sum(axis=0)
        sums = (tally(group, power, decided.shape[1]) for power in (weight, weight**2))
        shortfall = self.wish.shortfall(decided, np.nan_to_num(effective_rows(*sums)))
        return Attempt(offsets, keeps_means, scores, weight, group, rehearsed, decided, shortfall)

    def _train(self, people: People, soft: Reals, offsets: Reals, *, keeps_means: bool) -> Predict:
        labels = moved_labels(people, soft, self.wish, offsets, keeps_means=keeps_means)
        counted = labels * self.wish.factor[people.profiles.groups][:, None]
        return self.student.learn(people.lesson(people.size, counted))

    def _among(self, predict: Predict, people: People) -> Reals:
        """Weight of these people of each group decided each way (outcomes × groups)."""
        return self._decided(self._scores(predict(people.inputs)), people.weight, people.group)

    def _scores(self, chances: Reals) -> Reals:
        return np.asarray(np.log(np.maximum(checked(self.student, chances), FLOOR)) - self.wish.handicap)

    def _decided(self, scores: Reals, weight: Reals, group: NDArray[np.intp]) -> Reals:
        """Weight of the people of each group decided each way (outcomes × groups)."""
        outcomes, groups = self.wish.wanted.shape
        return tally(scores.argmax(axis=1) * groups + group, weight, outcomes * groups).reshape(outcomes, groups)


def _shares(decided: Reals) -> Reals:
    """Each group's shares; 0 for a group without people."""
    total = decided.sum(axis=0)
    return np.asarray(np.divide(decided, total, out=np.zeros_like(decided), where=total > 0))


def _merit(attempt: Attempt) -> float:
    """What to minimise: the shortfall, and an allowance for means that are not kept."""
    allowance = max(_GAIN[0], _GAIN[1] * attempt.shortfall.error)
    return attempt.shortfall.value + (0.0 if attempt.keeps_means else allowance)


def moved_labels(people: People, soft: Reals, wish: Wish, offsets: Reals, *, keeps_means: bool) -> Reals:
    """Move the labels of each group by its offsets, and keep the mean of each group, or of all together."""
    groups = people.profiles.groups
    mass = people.profiles.mass * wish.factor[groups]
    if keeps_means:
        return level(soft, mass, groups, wish.wanted, offsets, wish.handicap)
    return shift(soft, mass, groups, wish.wanted, offsets)


def _corrections(attempt: Attempt, wish: Wish) -> Reals:
    """Offsets that would have put the fair share of each group across the threshold; less for groups of few people."""
    lacking = wish.fair_shares(attempt.decided) - _shares(attempt.decided)
    result = np.zeros_like(attempt.offsets)
    for group in np.flatnonzero((attempt.decided.sum(axis=0) > 0) & (wish.wanted.sum(axis=0) > 0)):
        members = (attempt.group == group) & (attempt.weight > 0)
        weight = attempt.weight[members]
        people = float(effective_rows(weight.sum(), (weight**2).sum()))
        before = _shares(attempt.rehearsed)[:, group]
        scores, share = attempt.scores[members], weight / weight.sum()
        after = np.clip(before + lacking[:, group], 0.0, 1.0)
        move = correction(scores, share, after / after.sum()) - correction(scores, share, before)
        result[group] = np.clip(move * people / (people + _RELIABLE), -_FARTHEST, _FARTHEST)
    return result


def _at_most(people: People, most: int) -> People:
    """All people, or that many to represent them."""
    if people.size.sum() <= most:
        return people
    return people.only(np.bincount(one_by_one(people.size, most), minlength=len(people.size)))
