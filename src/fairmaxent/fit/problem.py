"""The problem: the data in codes, and what is asked for.

The levels of a numeric outcome stand for numbers: a bin for the mean of the numbers in it, which differs from group to
group. Reweighing keeps what is inside a cell as it is, so the mean of a group is linear in the table:
Σ v(y, z)·t(y, z) / t(z).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Blocks, Codes, Counted, Mask, Positions, Reals, tally
from fairmaxent.errors import ForbiddenError, InputError, LevelError, Option, TargetError
from fairmaxent.fairness.fair_table import FairTable, fair_table
from fairmaxent.fairness.measure import Measure
from fairmaxent.fairness.rates import Grouping, group_table
from fairmaxent.fairness.strata import Stratified, group_counts
from fairmaxent.fairness.weights import algorithm_1, capped, reweigh
from fairmaxent.fairness.wishes import OtherOutcome, Wanted
from fairmaxent.fit.option_values import read_rates, read_rules
from fairmaxent.fit.plans import PaperRequest
from fairmaxent.fit.request import Request
from fairmaxent.fit.target import FREE, read_target
from fairmaxent.maxent.features import root_marginals
from fairmaxent.maxent.forbidden import Rule, break_any
from fairmaxent.maxent.priors.bases import reachable_roots


@dataclass(frozen=True, eq=False)
class CellValues:
    """v(y, z), one axis per column, NaN for a missing outcome."""

    data: Reals  # of all rows
    counted: Reals  # of the rows that no rule forbids: those that weights are given to


def cell_values(
    request: Request | PaperRequest, roles: Roles, table: Counted, positions: Positions | None, design: Reals | None
) -> CellValues | None:
    """The numbers that cells stand for; None if nobody asked for equal means.

    ``positions`` say which raw value each input row has, and ``design`` are the design weights of these rows.
    """
    if not isinstance(request, Request) or request.means is None:
        return None
    outcome, shape = roles.attributes[0], roles.blocks.shape(0)
    if outcome.kind != "numeric":
        raise InputError(
            Option("means", request.means), f" needs an outcome of numbers, but {outcome.name!r} is {outcome.kind}"
        )
    if request.relabelling is not None:
        raise InputError(
            Option("means", request.means), " is not available with ", Option("relabel"), "; leave one of the two out"
        )
    levels = outcome.scores().reshape(-1, *(1,) * (len(shape) - 1))
    if outcome.is_value_coded:
        values = np.asarray(np.broadcast_to(levels, shape))
        return CellValues(values, values)
    if positions is None or roles.outcome not in positions:
        raise InputError(
            Option("means", request.means),
            f" needs the exact numbers of {outcome.name!r}, which are only at hand for a table in memory with ",
            Option("detail", "rows"),
        )
    if request.base_share == 1:
        raise InputError(
            Option("means", request.means),
            f" needs the exact numbers of {outcome.name!r}, but no row is drawn with those of a real one with ",
            Option("base_share", 1),
            "; use a lower share",
        )
    _refuse_other_targets(request, roles)
    rows, numbers = table.collect(), frames.to_numbers(outcome.values)[positions[roles.outcome]]
    weights = np.ones(len(numbers)) if design is None else design
    forbidden = break_any(read_rules(roles, request.forbid), rows.codes)[rows.inverse]
    cells = rows.codes[rows.inverse, 0].astype(np.intp)
    return CellValues(
        *(_means(cells, numbers, counting, levels, shape) for counting in (weights, np.where(forbidden, 0.0, weights)))
    )


def _means(cells: Codes, numbers: Reals, weights: Reals, levels: Reals, shape: tuple[int, ...]) -> Reals:
    """The mean number of each cell, or of its level if no row of the cell counts."""
    known = ~np.isnan(numbers)
    totals, sums = (
        tally(cells[known], (weights * value)[known], int(np.prod(shape))).reshape(shape) for value in (1.0, numbers)
    )
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), levels)


def _refuse_other_targets(request: Request, roles: Roles) -> None:
    """Refuse targets of other columns, which weigh the rows inside a cell unequally, so that its mean moves."""
    others = [index for index in read_target(roles, request.target) if index not in roles.root]
    if others:
        raise InputError(
            Option("means", request.means),
            f" cannot be kept together with a target of {roles.domain.names[others[0]]!r}, which weighs the numbers "
            f"inside a bin of {roles.names[0]!r} unequally; leave one of the two out, or give each number a level of "
            "its own with ",
            Option("bins"),
        )


HALF_A_ROW = 0.5  # what a cell without rows that must have mass counts as


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that the fair table, the prior, the target and the certificate are made from."""

    roles: Roles
    table: Counted  # distinct rows as block codes
    measure: Measure
    representation: tuple[float | None, ...]  # ρ of each grouping
    statistical: tuple[float | None, ...]  # σ of each grouping
    rules: tuple[Rule, ...] = ()
    chosen: Mapping[int, Reals | None] = field(default_factory=dict)  # the user's marginals, by attribute
    largest_weight: float | None = None  # of a row, as a multiple of the weight that it came with
    free_outcomes: tuple[str, ...] = ()  # whose shares may move
    values: CellValues | None = None  # the numbers that cells stand for, if their means are to be equal

    @classmethod
    def of(cls, roles: Roles, table: Counted, request: Request, *, values: CellValues | None = None) -> Problem:
        """Look up what a request means for these columns and rows; ``values`` are those of `cell_values`."""
        groups = request.groups
        return cls(
            roles=roles,
            table=table,
            measure=Measure.of(
                roles, groups=groups, favourable=request.favourable, missing=request.missing, within=request.within
            ),
            representation=read_rates(request.representation_rate, "representation_rate", roles, groups),
            statistical=read_rates(request.statistical_rate, "statistical_rate", roles, groups),
            rules=read_rules(roles, request.forbid),
            chosen=read_target(roles, request.target),
            largest_weight=request.largest_weight,
            free_outcomes=tuple(name for name, wanted in (request.target or {}).items() if wanted == FREE),
            values=values,
        )

    @classmethod
    def of_paper(cls, roles: Roles, table: Counted, request: PaperRequest) -> Problem:
        """Look up what one of the paper's own configurations means for these columns and rows."""
        representation: dict[str, float | None] = {"d": None, "b": 1.0, "w": request.tau}
        return cls(
            roles=roles,
            table=table,
            measure=Measure.of(roles, favourable=request.favourable),
            representation=(representation[request.theta],),
            statistical=(1.0,),  # of Algorithm 1's weights, whatever τ (Lemma 7.2)
        )

    def paper_weights(self, request: PaperRequest) -> Counted:
        """The rows that the paper's prior is made of: those of the data, or with the weights of Algorithm 1."""
        if request.prior == "w":
            return reweigh(self.table, algorithm_1(self.empirical, request.tau).ravel())
        return self.table.reweighed(np.full(self.blocks.levels[0], 1 / self.table.total))

    @property
    def blocks(self) -> Blocks:
        """Outcome, protected attributes and strata pooled as the root, the others on their own."""
        return self.roles.blocks

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The axes of the groups that are compared, without those of the strata."""
        named = self.measure.of_first_outcome
        return tuple(tuple(axes[: len(axes) - self.measure.strata]) for _, axes in named)

    @cached_property
    def counted(self) -> Counted:
        """The distinct rows with their n_α; rows that a rule forbids count zero."""
        counted = self.table.without(partial(break_any, self.rules)) if self.rules else self.table
        self._refuse_lost_levels(counted)
        return counted

    @cached_property
    def data_table(self) -> Reals:
        """The data's table of outcome, protected attributes and strata, one axis each, forbidden rows and all."""
        return self._root_table(self.table)

    @cached_property
    def empirical(self) -> Reals:
        """e(y, z): the same table without the rows that a rule forbids."""
        return self._root_table(self.counted)

    @cached_property
    def root_targets(self) -> dict[int, Reals]:
        """Shares the user wants for the root's attributes, by axis; None stands for those of the data."""
        in_data = root_marginals(self.blocks, self.data_table.ravel())
        wanted: dict[int, Reals] = {}
        for axis, attribute in enumerate(self.roles.root):
            if attribute in self.chosen:
                share = self.chosen[attribute]
                wanted[axis] = in_data[axis] if share is None else share
                if axis not in self.roles.strata_axes:
                    self._refuse_single_level(axis, wanted[axis])
        return wanted

    @property
    def outcome_shares(self) -> Reals | None:
        """c(y): the share that each outcome should have, by default that of the data; None: it may move."""
        if self.roles.names[0] in self.free_outcomes or (self.values is not None and 0 not in self.root_targets):
            return None
        return self.root_targets.get(0, group_table(self.data_table, ()))

    def fair_table(self, *, may_fill: bool) -> FairTable:
        """t(y, z): the closest table with the wanted shares and rates, in which no row counts too much."""
        count = len(self.groupings)
        fair = self._closest_table(
            self.groupings, self.representation[:count], self.statistical[:count], may_fill=may_fill
        )
        if self.largest_weight is None:
            return fair
        return replace(fair, table=capped(fair.table, self.empirical, self.largest_weight, self._kept_marginals()))

    def relabelled_table(self) -> FairTable:
        """t(y, z) for relabelling, which changes who has an outcome, but not how much a row counts.

        If no group shares are asked for, t(z) is that of the data, for all protected columns together.
        """
        groupings, representation, statistical = self.groupings, self.representation, self.statistical
        asked = any(rate is not None for rate in representation) or any(self.root_targets.keys() - {0})
        if not asked and len(groupings) > 1:
            groupings = (*groupings, tuple(range(1, 1 + len(self.roles.protected))))
            representation, statistical = (*representation, None), (*statistical, None)
        fair = self._closest_table(groupings, representation, statistical, may_fill=True)
        if self.largest_weight is None:
            return fair
        # A row counts t(z) / e(z) times, over all the outcomes that it is split between.
        groups, data = fair.table.sum(axis=0), self.empirical.sum(axis=0)
        kept = [tuple(axis - 1 for axis in axes) for axes in self._kept_marginals() if 0 not in axes]
        limited = capped(groups, data, self.largest_weight, kept or [()])
        factor = np.divide(limited, groups, where=groups > 0, out=groups)
        return replace(fair, table=fair.table * factor)

    def _kept_marginals(self) -> list[tuple[int, ...]]:
        """Marginals that the fair table has from the data, so that a limit on weights keeps them too."""
        strata = self.roles.strata_axes
        if any(axis in self.root_targets for axis in strata):
            return [()]
        marginals: list[tuple[int, ...]] = []
        outcomes = self.outcome_shares
        if outcomes is not None and np.allclose(outcomes, group_table(self.empirical, ()), rtol=0, atol=1e-12):
            marginals.append((0, *strata))
        kept = [axis for axis in self.roles.other_axes if self.roles.names[axis] not in self.free_outcomes]
        marginals += [(axis, *strata) for axis in kept if axis not in self.root_targets]
        for (_, grouping), rate in zip(self.measure.of_first_outcome, self.representation, strict=False):
            if rate is None and not any(axis in self.root_targets for axis in grouping):
                marginals.append(grouping)
        return marginals or [strata]

    def _closest_table(
        self,
        groupings: tuple[Grouping, ...],
        representation: tuple[float | None, ...],
        statistical: tuple[float | None, ...],
        *,
        may_fill: bool,
    ) -> FairTable:
        empirical = self.empirical  # first: it refuses rules that leave no row of a level
        self._refuse_nothing_to_compare()
        wanted = Wanted(
            groupings,
            representation,
            statistical,
            self.measure.favourable,
            self.roles.describe_cell,
            left_out=dict(self.measure.left_out),
            allowed=reachable_roots(self.blocks, self.rules).reshape(self.blocks.shape(0)),
            fill=HALF_A_ROW / self.table.size if may_fill else 0.0,
            others=tuple(self._other_outcomes()),
            values=None if self.values is None else self.values.counted,
        )
        return self.closest_to(empirical, wanted, outcome_shares=self.outcome_shares, targets=self.root_targets)

    def _other_outcomes(self) -> Iterator[OtherOutcome]:
        """What is asked of each outcome but the first."""
        count, left_out = len(self.groupings), dict(self.measure.left_out)
        for number, (axis, favourable) in enumerate(self.measure.others, start=1):
            name = self.roles.names[axis]
            shares = self.root_targets.get(axis, group_table(np.swapaxes(self.data_table, 0, axis), ()))
            yield OtherOutcome(
                axis,
                favourable,
                self.statistical[number * count : (number + 1) * count],
                None if name in self.free_outcomes else shares,
                left_out.get(axis),
            )

    def closest_to(
        self,
        table: Reals,
        wanted: Wanted,
        *,
        outcome_shares: Reals | None,
        targets: Mapping[int, Reals] | None = None,
    ) -> FairTable:
        """The closest table to one of outcome, groups and strata, with what is wanted, in every stratum if there are.

        Without ``targets``, shares that are kept are those of the table.
        """
        strata, shares, other_axes = self.roles.strata_axes, targets or {}, self.roles.other_axes
        if not strata:
            shares = {axis: share for axis, share in shares.items() if axis and axis not in other_axes}
            return fair_table(table, wanted, shares if outcome_shares is None else {**shares, 0: outcome_shares})
        left_out = {axis: level for axis, level in wanted.left_out.items() if axis not in strata}
        return Stratified(
            empirical=table,
            data=table if targets is None else self.data_table,
            strata=len(strata),
            compared=self.compared_strata,
            wanted=replace(wanted, left_out=left_out),
            targets=shares,
            outcome_is_free=outcome_shares is None,
            describe_stratum=partial(self.roles.describe_group, strata),
        ).closest()

    @property
    def compared_strata(self) -> Mask:
        """By stratum, whether its groups are compared: it was asked for, and is not one of missing values."""
        strata = self.roles.strata_axes
        shape = self.blocks.shape(0)[strata[0] :]
        return np.array([self.measure.is_compared(strata, stratum) for stratum in np.ndindex(*shape)]).reshape(shape)

    def single_groups(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Strata in which a grouping has rows of a single group, so that there is nothing to compare; by its name."""
        for (name, _), groups in zip(self.measure.of_first_outcome, self._group_counts(), strict=True):
            yield from ((name, tuple(int(n) for n in stratum)) for stratum in np.argwhere(groups == 1))

    def _group_counts(self) -> Iterator[Reals]:
        """For each grouping, the number of groups that are compared in each stratum."""
        for _, axes in self.measure.of_first_outcome:
            yield group_counts(self.measure.groups_compared(self.empirical, axes), axes, self.measure.strata)

    def _refuse_nothing_to_compare(self) -> None:
        for grouping, groups in zip(self.groupings, self._group_counts(), strict=True) if self.measure.strata else ():
            if not (groups > 1).any():
                columns, strata = self.roles.grouping_name(grouping), self.roles.grouping_name(self.roles.strata_axes)
                raise LevelError(
                    f"no stratum of {strata} that is compared has rows of more than one group of {columns}, so there "
                    "is nothing to compare; compare within other columns, or leave ",
                    Option("within"),
                    " out",
                )

    def _root_table(self, rows: Counted) -> Reals:
        (cells,) = rows.tables([(0,)], self.blocks.levels)
        return np.asarray(cells / cells.sum()).reshape(self.blocks.shape(0))

    def _refuse_lost_levels(self, counted: Counted) -> None:
        """Refuse rules that leave no row of a group or an outcome, and columns with rows in a single level."""
        before, after = (
            root_marginals(self.blocks, rows.tables([(0,)], self.blocks.levels)[0]) for rows in (self.table, counted)
        )
        compared = self.roles.attributes[: 1 + len(self.roles.protected) + len(self.roles.others)]
        for column, old, new in zip(compared, before, after, strict=False):
            lost = np.flatnonzero((old > 0) & (new == 0))
            if len(lost):
                raise ForbiddenError(
                    Option("forbid"),
                    f" leaves no row with {column.name} = {column.labels[lost[0]]}, a level of the outcome or a "
                    "protected column; take those rows out of the table, or drop the rule",
                )
            self._refuse_one_level_and_missing(column, new)
            if np.count_nonzero(new) < 2:
                raise LevelError(
                    f"all rows with positive weight have the same level of column {column.name!r} "
                    f"({column.labels[int(np.argmax(new))]!r}); at least two are needed to compare. "
                    "Check the weights, or choose another column."
                )

    def _refuse_one_level_and_missing(self, column: Attribute, shares: Reals) -> None:
        """Refuse a column that has one level besides missing values if these are not compared."""
        axis = self.roles.names.index(column.name)
        level = dict(self.measure.left_out).get(axis)
        if level is not None and np.count_nonzero(np.delete(shares, level)) < 2:
            raise LevelError(
                f"column {column.name!r} has a single level besides missing values, so there is nothing to compare it "
                "with; to compare missing values too, use ",
                Option("missing", "compare"),
            )

    def _refuse_single_level(self, axis: int, share: Reals) -> None:
        if np.count_nonzero(share) < 2:
            column = self.roles.attributes[axis]
            raise TargetError(
                Option("target", column=column.name),
                f" leaves a single level, {column.labels[int(np.argmax(share))]!r}; at least two are "
                "needed to compare. Use those rows alone, or give another level a share.",
            )
