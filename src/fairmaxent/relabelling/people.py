"""People: who the models learn from and decide about, one by one.

A profile stands for everybody with the same levels; people of one profile can still differ in their raw numbers and in
their outcome. Folds are dealt by person, so a model that has not seen somebody may have seen others of the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Positions, Reals
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table, tally
from fairmaxent.errors import InputError, Option
from fairmaxent.relabelling.inputs import Inputs
from fairmaxent.relabelling.profiles import Profiles

LARGEST_LESSON = 100_000  # people that one model learns from; more are represented by that many

# Folds must have nothing to do with the data, which may be simulated with a plain seed such as 0.
_STREAM = 20200713

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class People:
    """Everybody in a table: a record per input row if rows were kept, in their order, else one per distinct row."""

    profiles: Profiles
    inputs: Inputs
    row: NDArray[np.intp]  # the distinct row of each record
    weight: Reals  # of each record, all its people together; 1 per person on average
    size: Counts  # people of each record

    @classmethod
    def of(
        cls, roles: Roles, table: Table, counts: Reals, *, positions: Positions | None, design: Reals | None
    ) -> People:
        """Take the people of a table apart; ``counts`` is how much each of its distinct rows counts.

        ``positions`` and ``design`` (weights) are those of the input rows, if they were kept.
        """
        profiles = Profiles.per_row(table, roles.blocks, counts)
        scale = table.size / counts.sum()
        if table.keeps_rows:
            row = table.inverse
            share = np.divide(counts, table.counts, out=np.zeros_like(counts), where=table.counts > 0)
            weight = share[row] * (1.0 if design is None else design) * scale
            size = np.ones(len(row), dtype=np.int64)
        else:
            row, positions = np.arange(len(counts)), None
            weight, size = counts * scale, np.round(table.rows).astype(np.int64)
        inputs = Inputs.of(roles, profiles.codes[profiles.profile_of_row[row]], positions)
        return cls(profiles=profiles, inputs=inputs, row=row, weight=weight, size=size)

    @cached_property
    def profile(self) -> NDArray[np.intp]:
        """The profile of each record."""
        return self.profiles.profile_of_row[self.row]

    @cached_property
    def outcome(self) -> NDArray[np.intp]:
        """The outcome of each record."""
        return self.profiles.outcomes[self.row]

    @property
    def outcomes(self) -> int:
        """Number of outcomes."""
        return int(self.profiles.counts.shape[1])

    @property
    def group(self) -> NDArray[np.intp]:
        """The group z of each record, as one code for all protected attributes."""
        return self.profiles.groups[self.profile]

    def only(self, members: Counts) -> People:
        """So many people of each record; profiles keep their numbers, and count those people only."""
        kept = np.flatnonzero(members > 0)
        part = members / np.maximum(self.size, 1)
        row, weight = self.row[kept], (self.weight * part)[kept]
        cells = self.profiles.profile_of_row[row] * self.outcomes + self.profiles.outcomes[row]
        counts = tally(cells, weight, self.profiles.counts.size).reshape(self.profiles.counts.shape)
        profiles = replace(self.profiles, counts=counts)
        return People(profiles, self.inputs.take(kept), row, weight, members[kept])

    def deal(self, folds: int, *, seed: int = 0) -> Counts:
        """Deal people to folds like cards, by group, outcome and distinct row, so that all folds are similar.

        Returns how many people of each record are in each fold (records × folds). It is the same number for each
        distinct row whether rows were kept or not.
        """
        if self.size.sum() < 2 * folds:
            raise InputError(
                f"{self.size.sum()} rows are too few to learn from in {folds} folds; use ",
                Option("relabel", None),
                " and ",
                Option("estimate", None),
            )
        rng = np.random.default_rng([_STREAM, seed])
        shuffled = rng.permutation(len(self.profiles.outcomes))[self.row]
        order = np.lexsort((rng.random(len(self.row)), shuffled, self.outcome, self.group))
        first = np.empty(len(order), dtype=np.int64)  # the number of each record's first card
        first[order] = np.cumsum(self.size[order]) - self.size[order]
        rounds, rest = np.divmod(self.size, folds)
        return np.asarray(rounds[:, None] + ((np.arange(folds) - first[:, None]) % folds < rest[:, None]))

    def lesson(self, members: Counts, labels: Reals | None = None, *, most: int = LARGEST_LESSON) -> Lesson:
        """What a model learns from: ``members`` people of each record, one by one, but at most ``most`` of them.

        ``labels`` are soft labels of the profiles (profiles × outcomes); None: everybody has their outcome.
        """
        record = one_by_one(members, most)
        weight = (self.weight / np.maximum(self.size, 1))[record] * (members.sum() / max(len(record), 1))
        shares = np.eye(self.outcomes)[self.outcome[record]] if labels is None else labels[self.profile[record]]
        return Lesson(self.inputs.take(record), weight[:, None] * shares)


@dataclass(frozen=True, eq=False)
class Lesson:
    """People to learn from, and how much each counts with each outcome: about 1 in all."""

    inputs: Inputs
    weights: Reals  # (people, outcomes)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What models predict for people whom they did not learn from; a record may be in several folds."""

    record: NDArray[np.intp]
    weight: Reals
    chances: Reals  # (of these, outcomes)


def one_by_one(members: Counts, most: int) -> NDArray[np.intp]:
    """The record of each member or, if there are more than ``most``, of one from each of that many equal steps."""
    total = int(members.sum())
    if total <= most:
        return np.repeat(np.arange(len(members)), members)
    steps = np.arange(most) + np.random.default_rng([_STREAM, 0]).random(most)
    return np.searchsorted(np.cumsum(members), (steps * (total / most)).astype(np.int64), side="right")
