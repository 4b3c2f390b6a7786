"""The problem: the data in codes, and what is asked for.

The levels of a numeric outcome stand for numbers: a bin for the mean of the numbers in
it, which differs from group to group. Reweighing keeps what is inside a cell as it is,
so the mean of a group is linear in the table: Σ v(y, z)·t(y, z) / t(z).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.reading import Reading
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Counted,
    Mask,
    Names,
    Reals,
    Summed,
    marginal,
    ratio,
    tally,
)
from fairmaxent.errors import (
    BASE_SHARE,
    ForbiddenError,
    InputError,
    LevelError,
    Option,
    TargetError,
)
from fairmaxent.fairness.fair_table import FairTable, fair_table
from fairmaxent.fairness.rates import (
    Grouping,
    Measure,
    by_stratum,
    group_table,
    outcome_axis,
    without_strata,
)
from fairmaxent.fairness.small_groups import SmallGroups
from fairmaxent.fairness.strata import Stratified
from fairmaxent.fairness.wishes import Limit, OtherOutcome, Wanted
from fairmaxent.fit.likely import Split, Weighed
from fairmaxent.fit.request import Request
from fairmaxent.fit.rules import read_rules
from fairmaxent.fit.wanted_rates import read_rates
from fairmaxent.fit.wanted_shares import read_target
from fairmaxent.maxent.features import root_marginals
from fairmaxent.maxent.forbidden import Rule, break_any
from fairmaxent.maxent.priors.bases import reachable_roots
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.relabelling.people import Profiles

HALF_A_ROW = 0.5  # what a cell without rows that must have mass counts as


def _cell_values(request: Request, data: Reading) -> Reals:
    """v(y, z), one axis per column: what the outcome of each cell is in numbers.

    That is the number of a level, or the mean of the raw values in a bin; NaN: missing.
    """
    roles = data.roles
    outcome = roles.attributes[0]
    shape = roles.blocks.shape(0)
    if outcome.kind != "numeric":
        raise InputError(
            Option("equal_means", value=True),
            f" needs an outcome of numbers, but {outcome.name!r} is {outcome.kind}",
        )

    levels = outcome.scores().reshape(-1, *(1,) * (len(shape) - 1))
    if outcome.is_value_coded:
        return np.broadcast_to(levels, shape)

    positions = _exact_outcomes(request, data)
    _refuse_uneven_bins(request, data)
    numbers = frames.to_numbers(outcome.values)[positions]
    weights = data.design
    if weights is None:
        weights = np.ones(len(numbers))
    rows = data.table.collect()
    present = ~np.isnan(numbers)
    cells = rows.codes[rows.inverse, 0].astype(np.intp)[present]
    size = roles.blocks.levels[0]
    totals = tally(cells, weights[present], size).reshape(shape)
    sums = tally(cells, (weights * numbers)[present], size).reshape(shape)
    # its level's if no row counts
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), levels)


def _exact_outcomes(request: Request, data: Reading) -> Codes:
    """Where the raw outcome of each input row is; refuse a fit that has none."""
    asked = Option("equal_means", value=True)
    needs = f" needs the exact numbers of {request.outcome_name!r}, "
    if data.positions is None or data.roles.outcome not in data.positions:
        raise InputError(
            asked,
            f"{needs}which are only at hand for a table in memory with ",
            Option("detail", "rows"),
        )
    if request.C == 1:
        raise InputError(
            asked,
            f"{needs}but no row is drawn with those of a real one with ",
            replace(BASE_SHARE, value=1),
            "; use a lower share",
        )

    return data.positions[data.roles.outcome]


def _refuse_uneven_bins(request: Request, data: Reading) -> None:
    """Refuse wishes that weigh the numbers in a bin unequally: its mean would move."""
    roles = data.roles
    codes = data.table.collect().codes
    uneven = [
        f"a target of {roles.domain.names[index]!r}"
        for index in read_target(roles, request.target)
        if index not in roles.root
    ]
    uneven += [
        f"a rule that rows break ({rule.text})"
        for rule in read_rules(roles, request.forbid)
        if rule.others and rule.breaks(codes).any()
    ]
    if uneven:
        raise InputError(
            Option("equal_means", value=True),
            f" cannot be kept together with {uneven[0]}, which weighs the numbers"
            f" inside a bin of {request.outcome_name!r} unequally; leave one of the two"
            " out, or give each number a level of its own with ",
            Option("bins"),
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """What the fair table, the prior, the target and the certificate are made from."""

    roles: Roles
    table: Counted  # distinct rows as block codes
    measure: Measure
    representation: tuple[float | None, ...]  # ρ of each grouping
    statistical: tuple[float | None, ...]  # σ of each grouping
    rules: tuple[Rule, ...] = ()
    # the user's marginals, by attribute
    chosen: Mapping[int, Reals | None] = field(default_factory=dict)
    # of a row, as a multiple of the weight that it came with
    weight_limit: float | None = None
    free_outcomes: Names = ()  # whose shares may move
    # the numbers that cells stand for, if their means are to be equal
    values: Reals | None = None
    relabels: bool = False  # rows change their outcome, rather than how much they count
    may_fill: bool = True  # cells that no row has may get mass
    small: SmallGroups = SmallGroups()  # noqa: RUF009 (it never changes)
    split: Split | None = None  # between groups that are probabilities

    @classmethod
    def of(cls, request: Request, data: Reading) -> "Problem":
        """Look up what a request means for these columns and rows."""
        roles = data.roles
        split = None
        if request.likely is not None and data.chances is not None:
            split = Split.of(request.likely, data)
            roles = split.roles
        groups = request.groups
        relabels = request.relabelling is not None
        return cls(
            roles=roles,
            table=data.table,
            measure=Measure.of(
                roles,
                groups=groups,
                favourable=request.favourable,
                compare_missing=request.compare_missing,
                within=request.within,
            ),
            representation=read_rates(
                request.representation_rate, "representation_rate", roles, groups
            ),
            statistical=read_rates(
                request.statistical_rate, "statistical_rate", roles, groups
            ),
            rules=read_rules(roles, request.forbid),
            chosen=read_target(roles, request.target),
            weight_limit=request.largest_weight,
            free_outcomes=tuple(request.free_outcomes),
            values=None if not request.equal_means else _cell_values(request, data),
            relabels=relabels,
            may_fill=relabels or request.C > 0,
            small=SmallGroups.of(request.smallest_group),
            split=split,
        )

    @property
    def blocks(self) -> Blocks:
        """Outcome, protected attributes and strata as one root, others on their own."""
        return self.roles.blocks

    @property
    def moment_scores(self) -> list[Reals | None]:
        """Scores of the attributes that enter by their value.

        One with a chosen marginal enters by its levels.
        """
        scores: list[Reals | None] = []
        for index, attribute in enumerate(self.roles.domain.attributes):
            by_value = attribute.features == "moment" and index not in self.chosen
            scores.append(attribute.scores() if by_value else None)
        return scores

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The axes of the groups that are compared, without those of the strata."""
        named = self.measure.of_first_outcome
        return tuple(
            tuple(axes[: len(axes) - self.measure.strata]) for _, axes in named
        )

    @cached_property
    def counted(self) -> Counted:
        """The distinct rows with their n_α; rows that a rule forbids count zero."""
        counted = self.table
        if self.rules:
            counted = counted.without(partial(break_any, self.rules))
        self._refuse_lost_levels(counted)
        return counted

    @cached_property
    def profiles(self) -> Profiles:
        """The distinct rows without their outcome; forbidden ones count zero."""
        return Profiles.of(
            self.table.collect(), self.blocks, self.counted.collect().counts
        )

    def cells(self, of: Summed = "counts") -> Reals:
        """What the rows in each cell of the root add up to, one axis per attribute."""
        return self._cells_of(self.table, of)

    @cached_property
    def weighed(self) -> Weighed | None:
        """People with fair weights, if their groups are probabilities."""
        if self.split is None:
            return None
        return self.split.weigh(self.fair_table().table, self.weight_limit)

    def _cells_of(self, rows: Counted, of: Summed = "counts") -> Reals:
        if self.split is not None:
            return self.split.cells[of]
        (cells,) = rows.tables([(0,)], self.blocks.levels, of=of)
        return cells.reshape(self.blocks.shape(0))

    @cached_property
    def data_table(self) -> Reals:
        """The data's table of the root, one axis per attribute, forbidden rows too."""
        return self._root_table(self.table)

    @cached_property
    def empirical(self) -> Reals:
        """e(y, z): the same table without the rows that a rule forbids."""
        return self._root_table(self.counted)

    def _root_table(self, rows: Counted) -> Reals:
        cells = self._cells_of(rows)
        return cells / cells.sum()

    @cached_property
    def root_targets(self) -> dict[int, Reals]:
        """Shares the user wants for the root's attributes, by axis."""
        in_data = root_marginals(self.blocks, self.data_table.ravel())
        wanted: dict[int, Reals] = {}
        for axis, attribute in enumerate(self.roles.root):
            if attribute not in self.chosen:
                continue
            share = self.chosen[attribute]
            if share is None:
                share = in_data[axis]
            if axis not in self.roles.strata_axes and np.count_nonzero(share) < 2:
                column = self.roles.attributes[axis]
                raise TargetError(
                    Option("target", column=column.name),
                    f" leaves a single level, {column.labels[int(np.argmax(share))]!r};"
                    " at least two are needed to compare. Use those rows alone, or give"
                    " another level a share.",
                )
            wanted[axis] = share
        return wanted

    @property
    def outcome_shares(self) -> Reals | None:
        """c(y): the wanted share of each outcome, by default the data's; None: free."""
        if self.roles.names[0] in self.free_outcomes:
            return None
        if self.values is not None and 0 not in self.root_targets:
            return None
        return self.root_targets.get(0, group_table(self.data_table, ()))

    def fair_table(self) -> FairTable:
        """t(y, z): the closest table with the wanted shares and rates.

        No row counts too much in it.
        """
        # first: it refuses rules that leave no row of a level
        empirical = self.empirical
        self._refuse_nothing_to_compare()
        wanted = self.wanted()
        keeps_sizes = all(rate is None for rate in self.representation)
        if self.relabels and keeps_sizes and len(wanted.groupings) > 1:
            # t(z) is that of the data, for all z together
            every_axis = tuple(range(1, 1 + len(self.roles.protected)))
            wanted = replace(
                wanted,
                groupings=(*wanted.groupings, every_axis),
                representation=(*wanted.representation, None),
                statistical=(*wanted.statistical, None),
            )
        return self.closest_to(
            empirical,
            replace(wanted, limit=self._limit),
            outcome_shares=self.outcome_shares,
            targets=self.root_targets,
        )

    @property
    def _limit(self) -> Limit | None:
        """How much rows may count, as shares of all rows.

        Those that a rule forbids leave the others more to carry.
        """
        if self.weight_limit is None:
            return None
        rows = self.empirical * self.counted.total / self.table.total
        return Limit(np.where(rows > 0, rows, np.inf), self.weight_limit)

    def wanted(self) -> Wanted:
        """The rates of each grouping, and what is asked of the outcomes."""
        count = len(self.groupings)
        left_out = dict(self.measure.left_out)
        others = []
        for number, (axis, favourable) in enumerate(self.measure.others, start=1):
            shares: Reals | None = None
            if self.roles.names[axis] not in self.free_outcomes:
                in_data = group_table(np.swapaxes(self.data_table, 0, axis), ())
                shares = self.root_targets.get(axis, in_data)
            rates = self.statistical[number * count : (number + 1) * count]
            others.append(
                OtherOutcome(axis, favourable, rates, shares, left_out.get(axis))
            )
        return Wanted(
            self.groupings,
            self.representation[:count],
            self.statistical[:count],
            self.measure.favourable,
            self.roles.describe_cell,
            left_out=left_out,
            apart=self._apart,
            allowed=self.allowed,
            fill=HALF_A_ROW / self.table.size if self.may_fill else 0.0,
            others=tuple(others),
            values=self.values,
        )

    @property
    def _apart(self) -> list[Mask]:
        """By grouping, the groups that nothing is asked of; strata come last."""
        if not self.small.are_chosen:
            return []
        named = self.measure.of_first_outcome
        return [np.all(self.judged.apart_of(axes), axis=0) for _, axes in named]

    @cached_property
    def judged(self) -> Measure:
        """What is compared in rates that are shown: small groups decide none."""
        return self.with_small_groups(self.measure)

    def with_small_groups(self, measure: Measure) -> Measure:
        """The same, with the groups set apart that are too small in the data.

        If they leave nothing to compare in a grouping, none of it is.
        """
        apart = {}
        cells = [self.cells(), self.cells("squares"), self.cells("rows")]
        for grouping in measure.groupings:
            tables = [measure.having(table, grouping) for table in cells]
            # strata × outcomes × groups
            weight, squares, rows = (
                np.moveaxis(by_stratum(table, measure.strata, first=1), 0, -2)
                for table in tables
            )
            sizes = weight.sum(axis=-2)
            counted = WeightSums(weight, squares, np.where(weight > 0, rows, 0.0))
            too_small = self.small.among(
                counted.against_others().sizes,
                ratio(weight, sizes[:, None]),
                counted.rows.sum(axis=-2),
                sizes,
            )
            has_people = (sizes > 0)[:, None]
            is_large = has_people & ~too_small
            # An outcome that nobody has, or everybody, is equal and compares nothing.
            with_it = weight.sum(axis=-1)
            differs = (with_it > 0) & (with_it < sizes.sum(axis=-1, keepdims=True))
            large = is_large.sum(axis=-1) * differs
            favourable = list(measure.favourable_of(grouping))
            if (large[:, favourable] > 1).any() or self.small.are_chosen:
                key = (outcome_axis(grouping), *grouping)
                shape = tables[0].shape[1:]
                small = np.moveaxis(too_small & has_people, -2, 0)
                apart[key] = without_strata(small, shape)
        return replace(measure, apart=apart, sizes_apart=self.small.are_chosen)

    @property
    def allowed(self) -> Mask:
        """The cells of outcome, groups and strata that no rule forbids."""
        return reachable_roots(self.blocks, self.rules).reshape(self.blocks.shape(0))

    def closest_to(
        self,
        table: Reals,
        wanted: Wanted,
        *,
        outcome_shares: Reals | None,
        targets: Mapping[int, Reals] | None = None,
    ) -> FairTable:
        """The closest table to one of the root with what is wanted.

        If there are strata, it is wanted in each of them.
        """
        strata = self.roles.strata_axes
        shares = targets or {}
        if not strata:
            outcomes = (0, *self.roles.other_axes)
            kept = {axis: own for axis, own in shares.items() if axis not in outcomes}
            if outcome_shares is not None:
                kept[0] = outcome_shares
            return fair_table(table, wanted, kept)

        left_out = {
            axis: level for axis, level in wanted.left_out.items() if axis not in strata
        }
        shape = self.blocks.shape(0)[strata[0] :]
        compared = [
            self.measure.is_compared(strata, stratum) for stratum in np.ndindex(*shape)
        ]
        return Stratified(
            empirical=table,
            # The data's table has the shares that are kept.
            data=table if targets is None else self.data_table,
            strata=len(strata),
            compared=np.array(compared).reshape(shape),
            wanted=replace(wanted, left_out=left_out),
            targets=shares,
            outcome_is_free=outcome_shares is None,
            describe_stratum=partial(self.roles.describe_group, strata),
        ).closest()

    def group_counts(self) -> Iterator[tuple[str, Reals]]:
        """By grouping, the number of groups that are compared in each stratum."""
        for name, axes in self.measure.of_first_outcome:
            compared = self.measure.groups_compared(self.empirical, axes)
            present = marginal(compared, axes) > 0
            if self.small.are_chosen:
                present &= ~self.judged.apart_of(axes).all(axis=0)
            groups = tuple(range(present.ndim - self.measure.strata))
            yield name, present.sum(axis=groups)

    def _refuse_nothing_to_compare(self) -> None:
        counts = self.group_counts()
        for grouping, (name, groups) in zip(self.groupings, counts, strict=False):
            if not (groups > 1).any():
                if self.small.are_chosen:
                    raise LevelError(
                        Option("smallest_group"),
                        f" leaves fewer than two groups of {name} to compare; choose a"
                        " smaller size",
                    )
                strata = self.roles.grouping_name(self.roles.strata_axes)
                raise LevelError(
                    f"no stratum of {strata} that is compared has rows of more than one"
                    f" group of {self.roles.grouping_name(grouping)}, so there is"
                    " nothing to compare; compare within other columns, or leave ",
                    Option("within"),
                    " out",
                )

    def _refuse_lost_levels(self, counted: Counted) -> None:
        """Refuse rules that leave no row of a level, and columns of a single level."""
        before = root_marginals(self.blocks, self.cells().ravel())
        after = root_marginals(self.blocks, self._cells_of(counted).ravel())
        left_out = dict(self.measure.left_out)
        for axis in range(1 + len(self.roles.protected) + len(self.roles.others)):
            column = self.roles.attributes[axis]
            rows = after[axis]
            lost = np.flatnonzero((before[axis] > 0) & (rows == 0))
            if len(lost):
                raise ForbiddenError(
                    Option("forbid"),
                    f" leaves no row with {column.describe(lost[0])}, a"
                    " level of the outcome or a protected column; take those rows out"
                    " of the table, or drop the rule",
                )
            if (
                axis in left_out
                and np.count_nonzero(np.delete(rows, left_out[axis])) < 2
            ):
                raise LevelError(
                    f"column {column.name!r} has a single level besides missing values,"
                    " so there is nothing to compare it with; to compare missing values"
                    " too, use ",
                    Option("compare_missing", value=True),
                )
            if np.count_nonzero(rows) < 2:
                raise LevelError(
                    "all rows with positive weight have the same level of column"
                    f" {column.name!r} ({column.labels[int(np.argmax(rows))]!r}); at"
                    " least two are needed to compare. Check the weights, or choose"
                    " another column."
                )
