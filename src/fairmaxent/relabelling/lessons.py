"""Lessons: how a table teaches a student the offsets λ of the groups.

There are two ways:

- *tilt*, if the student sees z and knows best what is likely: rows keep their outcome,
  and the weight e^{λ_z} on the good one moves the student's log-odds in the group,
  which keeps its weight, by λ_z;
- *soft labels* otherwise: rows keep their weight, and count as good by τ + k·(the gain
  of the rule), as far as that is a share. Beyond parity, what matters is on which side
  of the border somebody is, so labels turn there k times as fast as likelihood does.

If all offsets are 0, rows keep outcome and weight.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairmaxent.data.table import Reals, ratio, tally
from fairmaxent.relabelling.rule import SHARP, Known, gain, tilts
from fairmaxent.relabelling.task import Rows, Student, Task

Way = Literal["none", "tilt", "soft"]


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
