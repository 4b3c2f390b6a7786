"""People whom models learn from, their profiles, and what a model sees of them.

A profile is a distinct combination (x, z) of all columns except the outcome.
Relabelling keeps how common each profile is, p(x, z), and changes how often it has each
outcome. A profile stands for everybody with the same levels; people of one profile can
still differ in their raw numbers and in their outcome. Folds are dealt by person, so a
model that has not seen somebody may have seen others of the profile.

A model sees numbers and dates as they are if the raw values are known, and as the means
of their bins if not; all other columns it sees as levels. A blind model does not see
the protected columns.

What a model predicts for a profile, and the outcomes that its people have, are pooled
into one soft label: a Dirichlet prior with mean m (what the model predicts) and
strength κ, and the profile's counts n(y), give the label (κ·m(y) + n(y)) / (κ + Σ n). κ
is the same for all profiles: the one under which each person's outcome is likeliest,
given the outcomes of the others in the profile (empirical Bayes by leave-one-out
likelihood).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Indices,
    Positions,
    Reals,
    Table,
    ratio,
    tally,
)
from fairmaxent.errors import InputError, Option

ORDERED = ("numeric", "date")  # kinds of columns whose raw values are numbers
# people that one model learns from; more are represented by that many
LARGEST_LESSON = 100_000
# Folds must have nothing to do with the data, which may be simulated with a plain seed
# such as 0.
_STREAM = 20200713
Counts = NDArray[np.int64]
# where κ is searched; the last one leaves the predictions as they are
_STRENGTHS = np.geomspace(0.5, 1e6, 60)
_SMALLEST = 1e-12  # of a probability whose logarithm is taken


@dataclass(frozen=True, eq=False)
class Profiles:
    """Distinct profiles in lexicographic order, and how much each outcome counts."""

    blocks: Blocks
    # (profiles, blocks): block codes, with the group z instead of the root
    codes: Codes
    counts: Reals  # (profiles, outcomes): n(x, z, y)
    # (distinct rows,): the profile of each row of the table
    profile_of_row: Indices
    outcomes: Indices  # (distinct rows,): its outcome

    @classmethod
    def of(
        cls,
        table: Table,
        blocks: Blocks,
        counts: Reals,
    ) -> "Profiles":
        """Take the outcome out of the rows of a table, which count ``counts`` each."""
        outcomes, groups = root_shape(blocks)
        codes = table.codes.copy(order="F")
        outcome, codes[:, 0] = np.divmod(table.codes[:, 0], groups)
        merged = Table.compress(codes, (groups, *blocks.levels[1:]))
        cells = merged.inverse * outcomes + outcome
        size = len(merged.codes)
        summed = tally(cells, counts, size * outcomes).reshape(size, outcomes)
        return cls(
            blocks=blocks,
            codes=merged.codes,
            counts=summed,
            profile_of_row=merged.inverse,
            outcomes=outcome.astype(int),
        )

    @property
    def groups(self) -> Indices:
        """The group z of each profile, as one code for all protected attributes."""
        return self.codes[:, 0].astype(int)

    @property
    def mass(self) -> Reals:
        """n(x, z): how much each profile counts over all outcomes."""
        return self.counts.sum(axis=1)

    def by_row(self, weights: Reals) -> Reals:
        """(distinct rows, outcomes): how much people count who counted 1.

        It is 0 if the row counted 0. ``weights`` is how much each profile counts with
        each outcome, in the order of :meth:`labelled`. People keep their own outcome as
        far as that allows; where it has too many of them, each gives up the same part.
        """
        wanted = weights.reshape(-1, len(self.codes)).T
        mass = np.where(self.mass > 0, self.mass, 1.0)[:, None]
        scale = wanted.sum(axis=1, keepdims=True) / mass
        own = self.counts * scale
        lacking = np.maximum(wanted - own, 0.0)
        given_up = ratio(np.maximum(own - wanted, 0.0), own)
        total = lacking.sum(axis=1, keepdims=True)
        taken = lacking / np.maximum(total, np.finfo(float).tiny)
        profile = self.profile_of_row
        part = given_up[profile, self.outcomes, None]
        scale = scale[profile]
        scale[self.counts[profile, self.outcomes] <= 0] = 0.0
        is_own = np.eye(len(own.T))[self.outcomes]
        return scale * (part * taken[profile] + (1 - part) * is_own)

    def labelled(self) -> Codes:
        """Every profile once per outcome, in lexicographic order of block codes."""
        outcomes, groups = root_shape(self.blocks)
        codes = np.asfortranarray(np.concatenate([self.codes] * outcomes))
        outcome = np.repeat(np.arange(outcomes), len(self.codes))
        codes[:, 0] += (outcome * groups).astype(codes.dtype)
        return codes


def weight_of_rows(table: Table, counts: Reals, design: Reals | None) -> Reals:
    """How much each input row counts: its part of what its distinct row does."""
    weight = ratio(counts, table.counts)[table.inverse]
    if design is None:
        return weight
    return weight * design


def root_shape(blocks: Blocks) -> tuple[int, int]:
    """Number of outcomes and of groups; the root numbers cells outcome by outcome."""
    outcomes, *protected = blocks.shape(0)
    return outcomes, math.prod(protected)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Some people, one record each."""

    roles: Roles
    codes: Codes  # (records, blocks): block codes, with the group z instead of the root
    # raw numbers of ordered columns, by attribute; NaN if missing
    numbers: Mapping[int, Reals]

    @classmethod
    def of(
        cls,
        roles: Roles,
        codes: Codes,
        positions: Positions | None,
    ) -> "Inputs":
        """Look numbers up by their positions among raw values, or else by level."""
        levels = roles.blocks.unpool(codes)
        numbers = {}
        for index, attribute in enumerate(roles.domain.attributes):
            if index == roles.outcome or attribute.kind not in ORDERED:
                continue
            if positions is not None and index in positions:
                numbers[index] = frames.to_numbers(attribute.values)[positions[index]]
            else:
                numbers[index] = attribute.scores()[levels[:, index]]
        return cls(roles, codes, numbers)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, records: Indices | slice) -> "Inputs":
        """Some of the records, in this order; they may repeat."""
        numbers = {index: column[records] for index, column in self.numbers.items()}
        return Inputs(self.roles, self.codes[records], numbers)

    @cached_property
    def levels(self) -> Codes:
        """The level of each record in each column; the outcome's means nothing."""
        return self.roles.blocks.unpool(self.codes)

    def matrix(self, *, blind: bool, with_categories: bool) -> Reals:
        """What a model sees.

        For trees that can handle categories, numbers as they are, and levels as
        numbers. For any other classifier, standardised numbers, and one indicator per
        level of the other columns.
        """
        columns: list[Any] = [np.empty((len(self), 0))]
        for index, attribute in seen_columns(self.roles, blind=blind):
            level = self.levels[:, index]
            numbers = self.numbers.get(index)
            if with_categories:
                columns.append(self.numbers.get(index, level)[:, None])
            elif numbers is None:
                columns.append(np.eye(attribute.size)[level])
            else:
                centre, spread = _centre_and_spread(attribute)
                columns.append(np.nan_to_num((numbers - centre) / spread)[:, None])
                if attribute.missing is not None:
                    columns.append((level == attribute.missing)[:, None].astype(float))
        return np.concatenate(columns, axis=1)


def seen_columns(roles: Roles, *, blind: bool) -> Iterator[tuple[int, Attribute]]:
    """The columns that a model sees, with their positions in the domain."""
    for index, column in enumerate(roles.domain.attributes):
        hidden = blind and index in roles.protected
        if index != roles.outcome and not hidden:
            yield index, column


def _centre_and_spread(attribute: Attribute) -> tuple[float, float]:
    """Mean and standard deviation over all rows of the domain that have a value."""
    values = frames.to_numbers(attribute.values)
    counts = np.where(np.isnan(values), 0.0, attribute.counts)
    if not counts.any():
        return 0.0, 1.0
    values = np.nan_to_num(values)
    centre = float(np.average(values, weights=counts))
    variance = np.average((values - centre) ** 2, weights=counts)
    if variance > 0:
        return centre, float(np.sqrt(variance))
    return centre, 1.0


@dataclass(frozen=True, eq=False)
class People:
    """Everybody in a table: a record per input row, or per distinct row if not kept."""

    profiles: Profiles
    inputs: Inputs
    row: Indices  # the distinct row of each record
    weight: Reals  # of each record, all its people together; 1 per person on average
    size: Counts  # people of each record

    @classmethod
    def of(
        cls,
        roles: Roles,
        table: Table,
        counts: Reals,
        *,
        positions: Positions | None,
        design: Reals | None,
    ) -> "People":
        """Take the people of a table apart, whose distinct rows count ``counts`` each.

        ``positions`` and ``design`` (weights) are those of the input rows, if they were
        kept.
        """
        # Models learn from weights of 1 on average, whatever the design weights are.
        scale = table.size / counts.sum()
        profiles = Profiles.of(table, roles.blocks, counts * scale)
        if table.keeps_rows:
            row = table.inverse
            weight = weight_of_rows(table, counts, design) * scale
            size = np.ones(len(row), dtype=int)
        else:
            row = np.arange(len(counts))
            positions = None
            weight = counts * scale
            size = np.round(table.rows).astype(int)
        codes = profiles.codes[profiles.profile_of_row[row]]
        inputs = Inputs.of(roles, codes, positions)
        return cls(
            profiles=profiles,
            inputs=inputs,
            row=row,
            weight=weight,
            size=size,
        )

    @cached_property
    def profile(self) -> Indices:
        """The profile of each record."""
        return self.profiles.profile_of_row[self.row]

    @cached_property
    def outcome(self) -> Indices:
        """The outcome of each record."""
        return self.profiles.outcomes[self.row]

    @property
    def outcomes(self) -> int:
        """Number of outcomes."""
        return int(self.profiles.counts.shape[1])

    @property
    def group(self) -> Indices:
        """The group z of each record, as one code for all protected attributes."""
        return self.profiles.groups[self.profile]

    def deal(self, folds: int) -> Counts:
        """Deal people to folds like cards, by group, outcome and distinct row.

        So all folds are similar. Returns how many people of each record are in each
        fold (records × folds). It is the same number for each distinct row whether rows
        were kept or not.
        """
        if self.size.sum() < 2 * folds:
            raise InputError(
                f"{self.size.sum()} rows are too few to learn from in {folds} folds;"
                " use ",
                Option("model", None),
                " and ",
                Option("estimate", None),
            )
        rng = np.random.default_rng([_STREAM, 0])
        shuffled = rng.permutation(len(self.profiles.outcomes))[self.row]
        order = np.lexsort(
            (rng.random(len(self.row)), shuffled, self.outcome, self.group)
        )
        # the number of each record's first card
        first = np.empty(len(order), dtype=int)
        first[order] = np.cumsum(self.size[order]) - self.size[order]
        rounds, rest = np.divmod(self.size, folds)
        gets_one_more = (np.arange(folds) - first[:, None]) % folds < rest[:, None]
        return rounds[:, None] + gets_one_more

    def lesson(self, members: Counts, *, most: int = LARGEST_LESSON) -> "Lesson":
        """What a model learns from: ``members`` people of each record, one by one.

        There are at most ``most`` of them.
        """
        record = one_by_one(members, most)
        weight_of_one = self.weight / np.maximum(self.size, 1)
        represented = members.sum() / max(len(record), 1)
        weight = weight_of_one[record] * represented
        is_outcome = np.eye(self.outcomes)[self.outcome[record]]
        return Lesson(self.inputs.take(record), weight[:, None] * is_outcome)


@dataclass(frozen=True, eq=False)
class Lesson:
    """People to learn from, and how much each counts with each outcome."""

    inputs: Inputs
    weights: Reals  # (people, outcomes): about 1 in all for each person


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What models predict for people whom they did not learn from."""

    record: Indices  # which may be in several folds
    weight: Reals
    chances: Reals  # (of these, outcomes)


def one_by_one(members: Counts, most: int) -> Indices:
    """The record of each member.

    If there are more than ``most``, of one from each of that many equal steps.
    """
    total = int(members.sum())
    if total <= most:
        return np.repeat(np.arange(len(members)), members)
    steps = np.arange(most) + np.random.default_rng([_STREAM, 0]).random(most)
    chosen = (steps * (total / most)).astype(int)
    return np.searchsorted(np.cumsum(members), chosen, side="right")


def pooled_labels(people: People, held_out: HeldOut) -> Reals:
    """π(y | x, z) of each profile: its mean prediction, shrunk with its own counts."""
    counts = people.profiles.counts
    profile = people.profile[held_out.record]
    mass = tally(profile, held_out.weight, len(counts))
    # Where nobody of a profile has weight, their predictions count the same.
    weight = np.where(mass[profile] > 0, held_out.weight, 1.0)
    sums = [
        tally(profile, weight * chance, len(counts)) for chance in held_out.chances.T
    ]
    mean = np.column_stack(sums)
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), _SMALLEST)
    strength = prior_strength(mean, counts)
    total = counts.sum(axis=1, keepdims=True)
    return (strength * mean + counts) / (strength + total)


def prior_strength(mean: Reals, counts: Reals) -> float:
    """κ of the largest leave-one-out likelihood, over all profiles.

    It is Σ n(y)·log((κ·m(y) + n(y) − 1) / (κ + Σ n − 1)).
    """
    several = counts.sum(axis=1) > 1
    mean = mean[several]
    counts = counts[several]
    if not len(counts):
        return float(_STRENGTHS[-1])
    others = np.maximum(counts - 1, 0)
    total = counts.sum(axis=1, keepdims=True) - 1

    def likelihood(strength: float) -> float:
        chance = (strength * mean + others) / (strength + total)
        return float((counts * np.log(np.maximum(chance, _SMALLEST))).sum())

    return float(max(_STRENGTHS, key=likelihood))
