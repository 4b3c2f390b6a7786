"""Lessons: how a table teaches a student the offsets λ of the groups.

There are five ways:

- *none*, if all offsets are 0: rows keep their outcome and their weight;
- *tilt*, if the student sees z: rows keep their outcome, and the weight e^{λ_z} on the
  good one moves the student's log-odds in the group, which keeps its weight, by λ_z;
- *soft tilt*, if it sees z, but boosting predicts outcomes better than it does, or it
  learns them by heart: rows keep their weight, and count as good by η, whose log-odds
  are moved by λ_z. Few rules are learned better from what is likely than from what
  happened, and what is known by heart is then no longer what is asked;
- *along P(g | x)*, if it does not see z: rows keep their weight, and one with outcome y
  (1 is good) counts as good by τ + (y − τ + λ_z) / M, with the least M ≥ 1 at which
  all of these are shares. What the student then compares with τ is
  τ + (η(x) − τ + Σ_g λ_g·P(g | x)) / M;
- *soft along*: the same with η in place of y, for the reasons of the soft tilt.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairmaxent.data.table import Mask, Reals, ratio, tally
from fairmaxent.relabelling.task import Rows, Student, Task, log_odds, probability

SURE = 0.01  # of a teacher's probabilities whose logarithm is taken
_TEACHERS = 10  # folds of boosting for a student that learns by heart, its errors too
# of the surprise in the outcomes that boosting must take away to be the teacher
_BETTER = 0.03
_BY_HEART = 0.08  # more people whom a student judges rightly if it knows them

Way = Literal["none", "tilt", "soft tilt", "along", "soft along"]


@dataclass(frozen=True, eq=False)
class Teaching:
    """What a table says of each person, and in which way that teaches."""

    way: Way
    weight: Reals
    good: Reals  # the part of the person that counts as good


def lesson(task: Task, likely: Reals | None, offsets: Reals) -> Teaching:
    """Teach these offsets; ``likely`` is η of everybody, if outcomes are softened."""
    weight = task.weight * task.factor[task.group]
    good = task.good.astype(float)
    offset = offsets[task.group]  # λ_z of each person
    if not offsets.any():
        return Teaching("none", weight, good)
    if likely is None:
        if task.sees_group:
            return Teaching("tilt", tilt(weight, good, task.group, offsets), good)
        shares = along(good, offset, task.threshold)
        return Teaching("along", weight, dealt(task, shares))
    if task.sees_group:
        return Teaching("soft tilt", weight, dealt(task, soft_tilt(likely, offset)))
    shares = along(likely, offset, task.threshold)
    return Teaching("soft along", weight, dealt(task, shares))


def tilt(
    weight: Reals,
    good: Reals,
    group: Rows,
    offsets: Reals,
) -> Reals:
    """Weights with e^{λ_z} on the good outcome; each group keeps its total."""
    tilted = weight * np.exp(good * offsets[group])
    before = tally(group, weight, len(offsets))
    after = tally(group, tilted, len(offsets))
    return tilted * ratio(before, after, 1.0)[group]


def soft_tilt(likely: Reals, offset: Reals) -> Reals:
    """η with its log-odds moved by λ_z."""
    return probability(log_odds(likely, SURE) + offset)


def along(outcome: Reals, offset: Reals, threshold: float) -> Reals:
    """τ + (y − τ + λ_z) / M, with the least M ≥ 1 at which all of these are shares."""
    beyond = outcome - threshold + offset  # y − τ + λ_z
    above = beyond / (1 - threshold)  # M at which this one would be 1
    below = -beyond / threshold  # M at which it would be 0
    most = float(np.where(beyond > 0, above, below).max())
    return threshold + beyond / max(1.0, most)


def dealt(task: Task, shares: Reals) -> Reals:
    """The part of each person that counts as good, if these do on average in a profile.

    As in `Profiles.by_row`, people keep their own outcome as far as that allows.
    """
    before = task.mean_of_profile(task.good)
    after = task.mean_of_profile(shares)
    kept = np.where(task.good, after, after - before)
    part = kept / np.where(task.good, before, 1 - before)
    return part.clip(0.0, 1.0)


def likely_outcomes(task: Task, unseen: Reals, seen: Reals) -> Reals | None:
    """η of everybody, if outcomes that are softened serve the student; see above.

    ``unseen`` and ``seen`` are the log-odds of everybody by students of the data who
    have not seen them, and by one who has. η is what boosting predicts, or what the
    students do if they know better.
    """
    own = task.mean_of_profile(probability(unseen))
    outcomes = task.good.astype(int)
    boosted = task.foretold(outcomes, 2)[:, 1]
    surprise_of_boosting = surprise(task.good, boosted, task.weight)
    surprise_of_students = surprise(task.good, own, task.weight)
    by_heart = rightly_judged(task, seen) - rightly_judged(task, unseen)
    if by_heart > _BY_HEART * task.weight.sum():
        if surprise_of_boosting < surprise_of_students:
            return task.foretold(outcomes, 2, _TEACHERS)[:, 1]
        return own
    if surprise_of_boosting < (1 - _BETTER) * surprise_of_students:
        return boosted
    return None


def surprise(good: Mask, chances: Reals, weight: Reals) -> float:
    """−Σ w·log P of the outcomes that happened."""
    happened = np.where(good, chances, 1 - chances)
    return float(-np.log(happened.clip(SURE)) @ weight)


def rightly_judged(task: Task, scores: Reals) -> float:
    """Weight of the people whose outcome is the one that is decided."""
    right = (scores > task.border) == task.good
    return float(right @ task.weight)


def train(task: Task, rows: Rows, taught: Teaching) -> Student:
    """Train a student on some rows, each once for every outcome it counts with."""
    bad = taught.weight * (1 - taught.good)
    good = taught.weight * taught.good
    parts = np.column_stack([bad, good])[rows]
    person, outcome = np.nonzero(parts)
    return task.train(rows[person], outcome == 1, parts[person, outcome])
