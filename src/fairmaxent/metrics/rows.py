"""Rows as metrics compare them: weights, levels, strata, and groups.

Groups are known, or only likely. Then each row i is shared between groups by
q_i(g), the probability of group g given what is known of the row and its outcome
(see `fairness.likely`), before anything is added up: the weight of outcome y in group g
is Σ w_i·q_i(g) over the rows with y. Everything that metrics do with such sums stays
as it is; only how sure they are is another matter.

**Draws** say that: of tables that people like these may have (`fairness.likely`).
**Limits** hold whatever is assumed: Fréchet's bounds of each outcome and group.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import factorize
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.likely import Likely
from fairmaxent.data.roles import listed
from fairmaxent.data.table import Codes, Mask, NameList, Reals, ratio, row_keys, tally
from fairmaxent.errors import InputError, LevelError, Option, did_you_mean_level, unfit
from fairmaxent.fairness.likely import Membership, bounds, contradiction
from fairmaxent.fairness.people import People
from fairmaxent.fairness.small_groups import SmallGroups
from fairmaxent.metrics.effective_counts import (
    Dependence,
    EffectiveCounts,
    WeightSums,
    effects_of,
    opposite,
)

# The label of missing values. A cell may hold the same text, so this is an object of
# its own, compared with `is`; it is joined when the module is loaded, because Python
# keeps a single object for equal texts in the code.
MISSING = "".join(("miss", "ing"))
Levels = tuple[Codes, list[object]]  # level of each row, and the levels
Columns = tuple[str, ...]  # whose levels, or their intersections, are groups
Label = tuple[object, ...]  # of a group: its level of each column
StratumLevels = tuple[tuple[str, object], ...]  # column and value
# and its rows: all of them, if nothing is compared within strata
Stratum = tuple[StratumLevels, Any]
_LEAST_VARIANCE = 1e-12  # of a rate that is certain


@dataclass(frozen=True, eq=False)
class LikelyRows:
    """The probabilities of rows, and what is known of their groups besides.

    If intersections are compared, the columns that are known are combined, and what
    outcomes tell about the others is learned within each combination.
    """

    likely: Likely
    shares: Reals  # (rows, groups): p(g)
    combination: Codes  # of the columns of groups that are known
    combinations: int

    @property
    def places(self) -> Codes:
        """Of each row, the likeliest of all combinations of groups."""
        return self.combination * self.shares.shape[1] + self.shares.argmax(axis=1)

    def only(self, rows: Any) -> "LikelyRows":
        """Those of some of the rows."""
        return replace(
            self, shares=self.shares[rows], combination=self.combination[rows]
        )

    def shared(self, outcome: Codes, outcomes: int, weights: Reals) -> "SharedRows":
        """Learn what outcomes tell about groups, from the rows that count."""
        counts = weights > 0
        present, codes = np.unique(outcome[counts], return_inverse=True)
        shape = (self.combinations, max(len(present), 1))
        own = weights[counts]
        people = People.of(
            self.shares[counts],
            self.combination[counts] * shape[1] + codes,
            shape,
            own,
            own**2,
        )
        membership = Membership.of(people, self.likely.told_by)
        return SharedRows(membership, present, outcomes)


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows shared between groups: what each outcome (axis −2) and group adds up to."""

    membership: Membership
    present: Codes  # the outcomes that somebody has
    outcomes: int

    def _laid_out(self, tables: Reals) -> Reals:
        """Combinations × outcomes × groups as all outcomes × groups."""
        *first, combinations, _, groups = tables.shape
        moved = np.moveaxis(tables, -3, -2).reshape(*first, -1, combinations * groups)
        result = np.zeros((*first, self.outcomes, combinations * groups))
        result[..., self.present, :] = moved
        return result

    @cached_property
    def sums(self) -> WeightSums:
        """Weights, their squares and rows, by what is assumed."""
        people = self.membership.people
        rows = tally(people.place, None, len(people.weight))
        parts = (people.weight, people.squares, rows)
        return WeightSums(*map(self._laid_out, map(self.membership.table, parts)))

    def known(self, outcomes: Sequence[int], axis: int) -> "KnownRates":
        """Rates of some outcomes in groups (axis −2), or shares of groups (axis −1).

        Limits are parts of what the probabilities add up to.
        """
        chosen = (..., list(outcomes), slice(None))

        def parts(tables: Reals, whole: Reals) -> Reals:
            total = whole.sum(axis=axis, keepdims=True)
            return ratio(tables, total, np.nan)[chosen]

        membership = self.membership
        people = membership.people
        everybody = np.ones_like(people.weight)
        tables = self._laid_out(membership.true_tables(everybody))
        drawn = membership.like_these(tables, self.sums.weight, self.sums.squares)
        assumed = membership.assumed(people.weight)
        told = {one: self._laid_out(table) for one, table in assumed.items()}
        least, most = map(self._laid_out, bounds(people, everybody))
        return KnownRates(
            told_by=membership.told_by,
            contradiction=contradiction(people, membership.rates),
            drawn=parts(drawn, drawn),
            assumed={one: parts(own, own) for one, own in told.items()},
            least=parts(least, told["columns"]),
            most=np.minimum(parts(most, told["columns"]), 1.0),
        )


@dataclass(frozen=True, eq=False)
class KnownRates:
    """What is known of the rates of groups that are only likely.

    Axes are outcomes and groups; those of draws come behind an axis of their own.
    """

    told_by: str
    contradiction: float | None  # p-value of "names"; None: it cannot be tested
    drawn: Reals  # rates that the true groups may have: draws × outcomes × groups
    assumed: Mapping[str, Reals]  # rates by what tells the group
    least: Reals  # whatever is true
    most: Reals

    def counts(self, rates: Reals) -> EffectiveCounts:
        """Rows that would tell as much of each rate."""
        variance = np.maximum(self.drawn.var(axis=0), _LEAST_VARIANCE)
        return EffectiveCounts.of_rates(rates, rates * (1 - rates) / variance)


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Rows with weights: a sample, or an exact marginal's cells and probabilities."""

    frame: frames.Frame
    weights: Reals  # 0: not compared
    levels: Levels  # of the outcome
    exact: bool  # the cells of a marginal: nothing is estimated from a sample
    # of the rows that each stands for, if several
    counted: WeightSums | None = field(default=None, kw_only=True)
    # of each row, if people of one are not independent
    cluster: Codes | None = field(default=None, kw_only=True)

    def one_favourable(self, level: object) -> int:
        """Code of the one outcome that the probabilities refer to."""
        codes = []
        if level is not None:
            codes = favourable_codes(self.levels[1], level)
        if len(codes) != 1:
            raise unfit(
                "favourable",
                level,
                "name the one outcome that the probabilities refer to",
            )
        return codes[0]

    def probabilities(self, values: Any, *, what: str = "predictions") -> Reals:
        """Read probabilities: a column, or one per row."""
        chance = frames.to_numbers(outcome_column(self.frame, values, what=what))
        outside = ~((chance >= 0) & (chance <= 1))
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                f"row {row} has probability {chance[row]}; every probability must lie"
                " between 0 and 1"
            )
        return chance


@dataclass(frozen=True, eq=False)
class GroupedRows(MeasuredRows):
    """Rows with their groups by some columns: all rows, or those of one stratum."""

    columns: Columns
    labels: list[Label]  # of the groups
    group: Codes  # of each row
    strata: Sequence[Stratum]
    stratum: StratumLevels = ()
    rows: Any = ...  # which of all rows they are
    small: SmallGroups = SmallGroups()  # noqa: RUF009 (it never changes)
    reference: Label | None = None  # the group that the others are compared with
    # what is known of each row's group; None: `group` is
    likely: LikelyRows | None = None

    def refuse_absent(self, favourable: object) -> None:
        """Refuse favourable outcomes that no row has.

        If no row is compared, that is what is wrong, and is said later.
        """
        codes, outcomes = self.levels
        weight = tally(codes, self.weights, len(outcomes))
        if favourable is None or not weight.any():
            return
        for code in favourable_codes(outcomes, favourable):
            if not weight[code]:
                raise LevelError(
                    f"no row that is compared has the outcome {outcomes[code]!r}; name"
                    " another outcome, or other columns"
                )

    def only(self, rows: Any) -> "GroupedRows":
        """Some of the rows, in the same groups."""
        codes, outcomes = self.levels
        return replace(
            self,
            group=self.group[rows],
            weights=self.weights[rows],
            counted=self.counted and self.counted.only(rows),
            cluster=None if self.cluster is None else self.cluster[rows],
            likely=self.likely and self.likely.only(rows),
            levels=(codes[rows], outcomes),
            rows=rows,
        )

    def parts(self) -> "Iterator[GroupedRows]":
        """The rows of each stratum.

        Groups that no row of it has are no groups there.
        """
        for levels, rows in self.strata:
            part = replace(self.only(rows), stratum=levels)
            if levels and self.likely is None:
                present, group = np.unique(part.group, return_inverse=True)
                labels = [self.labels[code] for code in present]
                part = replace(part, group=group, labels=labels)
            yield part

    def dependence(
        self, values: Iterable[Reals | Mask], rates: Reals, sizes: Reals
    ) -> Dependence | None:
        """How much less is told about rates; None if rows are in no clusters.

        ``values`` say of each outcome which rows have it, ``sizes`` how many
        independent rows would tell as much about it.
        """
        if self.cluster is None:
            return None
        counts = self.weights > 0
        group = self.group[counts]
        weights = self.weights[counts]
        cells, cell = np.unique(
            self.cluster[counts] * len(self.labels) + group, return_inverse=True
        )
        of_cluster, of_group = np.divmod(cells, len(self.labels))
        mass = np.bincount(group, weights, len(self.labels))
        effects = []
        freedom = []
        opposed = []
        for value, rate, size in zip(values, rates, sizes, strict=True):
            moves = tally(cell, weights * (value[counts] - rate[group]), len(cells))
            alone = rate * (1 - rate) / size * mass**2
            effect, degrees = effects_of(moves, of_group, alone)
            effects.append(effect)
            freedom.append(degrees)
            relative = ratio(moves, (mass * rate)[of_group])  # of log rates
            opposed.append(opposite(relative, of_cluster, of_group, len(mass)))
        return Dependence(np.stack(effects), np.stack(freedom), np.stack(opposed))

    def refuse_likely(self, what: str) -> None:
        """Refuse what takes groups that are known, and no probabilities."""
        if self.likely is not None:
            raise InputError(
                Option("likely"),
                f" has no {what}, which takes groups that are known; compare the"
                " decisions by their statistical rate",
            )

    def split(self) -> "GroupedRows":
        """Rows of which each is in one group."""
        if self.likely is None:
            return self
        codes, outcomes = self.levels
        return self.cells(self.likely.shared(codes, len(outcomes), self.weights).sums)

    def cells(self, sums: WeightSums) -> "GroupedRows":
        """A row for each outcome and group, which stands for what it adds up to."""
        _, outcomes = self.levels
        outcome, group = np.indices(sums.weight.shape).reshape(2, -1)
        whole = WeightSums(*(part.ravel() for part in vars(sums).values()))
        return replace(
            self,
            weights=whole.weight,
            levels=(outcome, outcomes),
            counted=whole,
            group=group,
            likely=None,
        )


def stratum_text(levels: StratumLevels) -> str:
    """A stratum in words, to be put after what is compared; nothing if none."""
    if not levels:
        return ""
    named = [f"{column} = {value_text(value)}" for column, value in levels]
    return f" within {', '.join(named)}"


def groups_of(
    frame: frames.Frame, columns: NameList, domain: Domain | None
) -> tuple[Codes, list[Label]]:
    """Group of each row and the groups' labels, of intersections that occur."""
    if not columns:
        return np.zeros(len(frame), dtype=int), [()]
    levels = [levels_of(frames.column(frame, name), domain) for name in columns]
    codes = np.column_stack([column for column, _ in levels])
    keys, _ = row_keys(codes, [len(labels) for _, labels in levels])
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    labels_by_column = [
        [labels[code] for code in column[first]] for column, labels in levels
    ]
    return group, list(zip(*labels_by_column, strict=True))


def outcome_column(
    frame: frames.Frame, outcome: Any, *, what: str = "predictions"
) -> frames.Column:
    """The outcome as a column of the frame, or an array with one value per row."""
    if isinstance(outcome, str):
        return frames.column(frame, outcome)
    column = nw.from_native(outcome, series_only=True, pass_through=True)
    if not isinstance(column, nw.Series):
        values = np.asarray(outcome)
        if values.ndim != 1:
            raise InputError(
                f"{what} have shape {values.shape}; pass one per row, e.g. column 1 of"
                " predict_proba"
            )
        column = nw.new_series("outcome", values.tolist(), backend=frame.implementation)
    if len(column) != len(frame):
        raise InputError(
            f"{len(column)} {what} for {len(frame)} rows; pass one per row, in the same"
            " order"
        )
    return column


def levels_of(series: frames.Column, domain: Domain | None) -> Levels:
    """Codes and labels of a column; missing values form the last level."""
    codes, values = factorize(series)
    labels = values.to_list()
    if domain is not None and series.name in domain.names:
        attribute = domain.attribute(series.name)
        codes = np.append(attribute.levels_of(values), -1)[codes]
        labels = list(attribute.labels)
        if attribute.is_value_coded:
            labels = attribute.values.to_list()
        del labels[attribute.size - (attribute.missing is not None) :]
    if (codes < 0).any():
        codes = np.where(codes < 0, len(labels), codes)
        labels = [*labels, MISSING]
    return codes, labels


def favourable_codes(outcomes: list[object], favourable: object) -> list[int]:
    """Codes of the favourable levels; None means every level."""
    if favourable is None:
        return list(range(len(outcomes)))
    wanted = listed(favourable)
    if not wanted:
        raise LevelError(
            Option("favourable"),
            " is empty; name an outcome level, or pass None for every level",
        )
    codes = set()
    for value in wanted:
        level = MISSING if frames.is_missing(value) else value
        code = code_of(outcomes, level)
        if code is None:
            known = did_you_mean_level(level, outcomes)
            raise LevelError(f"no row has the outcome {level!r}; {known}")
        codes.add(code)
    return sorted(codes)


def code_of(levels: list[object], value: object) -> int | None:
    """Code of a level, by value or else by its text; None if there is none."""
    if value is MISSING:  # which comes last, after a text that reads the same
        if levels and levels[-1] is MISSING:
            return len(levels) - 1
        return None
    equal = [code for code, level in enumerate(levels) if level == value]
    if equal:  # True and 1 are equal, but two levels if a column has both
        is_bool = isinstance(value, bool | np.bool_)
        return min(equal, key=lambda code: isinstance(levels[code], bool) != is_bool)
    for text in (value_text, str):  # 1.0 is "1", or "1.0" as its file has it
        texts = [text(level) for level in levels]
        if text(value) in texts:
            return texts.index(text(value))
    return None
