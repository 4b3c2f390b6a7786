"""The private model: a rooted tree of noisy tables only, and rows drawn from it.

p(root)·Π P(child | root, parent), like the tree of a fit without privacy; where the
noise leaves enough to see, with a hub, one more parent of all columns. Noisy counts may
be negative and contradict each other, so they are repaired first. Each conditional
table is then the maximum-entropy one that agrees with three noisy tables: trunk ×
parent, trunk × child and parent × child, where the trunk is the root, or root and hub.

A fit measures, relabels, estimates and reports by looking at rows. Once these are drawn
from the private model instead of being anybody's, all of that is arithmetic on what was
paid for, and reveals nothing more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from fairmaxent.data.draws import shuffled_cells
from fairmaxent.data.quotas import quota
from fairmaxent.data.reading import Reading
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Counted,
    Reals,
    Sizes,
    Table,
    ratio,
    tally,
)
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.maxent.forbidden import Rule, needed_edges
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.privacy.budget import Ledger, Privacy, Spent
from fairmaxent.privacy.measurements import (
    ROOT_SHARE,
    Noise,
    NoisyCounter,
    NoisyTable,
    Pair,
    choose_columns,
    choose_edges,
    choose_hub,
    parents_of,
)

# What every possible cell has, in rows: too little to be drawn, but enough to be
# possible.
FLOOR = 1e-6
_ROUNDS = 100
_LEAST = 1e-200  # in a cell, or margins divided by it could be infinite
_CLOSE = 1e-7  # of the total, at which margins agree
# Groups of cells of similar size that are shrunk alike, at most; and cells in each at
# least, or noise passes for more.
_STEPS = 20
_ALIKE = 16
_PUBLIC = (
    "the names and order of the columns, and their types in a table that has some",
    "the levels and edges that were declared",
    "which columns are the outcome and protected, and all other options of the request",
)
_ALL_DECLARED = "that every value in the table is declared"
# More rows than these are not drawn one by one: each that is drawn then stands for
# several.
MOST_DRAWN = 1 << 20


def on_simplex(counts: Reals, total: Reals | float) -> Reals:
    """The closest counts (least squares) that are not negative and have these totals.

    Along the last axis: max(counts − θ, 0) for the θ that gives the total, found among
    the sorted counts (Held, Wolfe and Crowder 1974).
    """
    totals = np.broadcast_to(total, counts.shape[:-1])
    falling = -np.sort(-counts, axis=-1)
    excess = np.cumsum(falling, axis=-1) - totals[..., None]
    excess = excess / np.arange(1, counts.shape[-1] + 1)
    kept = np.maximum(np.count_nonzero(falling > excess, axis=-1) - 1, 0)
    theta = np.take_along_axis(excess, kept[..., None], axis=-1)
    return np.maximum(counts - theta, 0.0)


def root_counts(root: NoisyTable, with_columns: Sequence[NoisyTable]) -> Reals:
    """Rows of each level of the root, from its own table and those with a column.

    Each is weighted by the inverse of its variance; a sum over k levels has k times the
    variance of one cell.
    """
    estimates = [root.counts]
    variances = [root.variance]
    for table in with_columns:
        estimates.append(table.counts.sum(axis=1))
        variances.append(table.counts.shape[1] * table.variance)

    weights = 1 / np.array(variances)
    best = np.asarray(np.tensordot(weights, np.stack(estimates), axes=1))
    best = best / weights.sum()
    return on_simplex(best, max(float(best.sum()), 1.0)) + FLOOR


def column_counts(
    root: Reals,
    alone: NoisyTable,
    counted: NoisyTable | None,
    shape: Sizes,
) -> tuple[Reals, Reals]:
    """Rows of each level of a column, alone and with each level of the root.

    They agree with each other and the root. The column was counted with the root, with
    its first column, the outcome, or with neither. Least squares: where two tables
    disagree about a level, the cells take their part of the difference, by their
    variances. Then, as far as noise does not explain how they differ, each outcome,
    each group of each protected column and at last each level of the root moves away
    from the whole column. ``shape`` are the levels of those columns.
    """
    roots = len(root)
    cells = alone.counts[None]
    variance = 0.0
    if counted is not None:
        cells = counted.counts
        variance = counted.variance
        share = variance / (len(cells) * variance + alone.variance)
        cells = cells + share * (alone.counts - cells.sum(axis=0))

    column = on_simplex(cells.sum(axis=0), root.sum()) + FLOOR
    # Of k parts of a known sum, each has 1 − 1/k of its noise.
    cells = cells + (column - cells.sum(axis=0)) / len(cells)
    table = np.outer(root, column / column.sum()).reshape(*shape, -1)
    told = int(counted is not None)  # columns of the root that cells tell apart
    if len(cells) == roots:
        told = len(shape)
    cells_of = cells.reshape(*shape[:told], *[1] * (len(shape) - told), -1)
    for axis in range(told):
        others = tuple(other for other in range(len(shape)) if other != axis)
        expected = table.sum(axis=others, keepdims=True)
        noise = variance * len(cells) / shape[axis] * (1 - 1 / shape[axis])
        seen = cells_of.sum(axis=others, keepdims=True)
        moved = shrunk(seen, expected, noise, column)
        table = table * ratio(np.maximum(moved, FLOOR), expected, 1.0)
        table = agreeing(table.reshape(roots, -1), root, column).reshape(*shape, -1)

    table = table.reshape(roots, -1)
    if told < len(shape):
        return column, table
    rows = [
        shrunk(row, towards, variance * (1 - 1 / roots))
        for row, towards in zip(cells, table, strict=True)
    ]
    return column, agreeing(on_simplex(np.stack(rows), root) + FLOOR, root, column)


def family(
    with_parent: Reals, with_child: Reals, measured: NoisyTable | None = None
) -> Reals:
    """P(child | trunk, parent) from counts of trunk × parent and of trunk × child.

    And from a noisy table, if measured. The noisy one is parent × child, or one such
    table for each level of the root. It is shrunk to what the other two say of it, as
    far as noise explains the difference: first for all levels of the root together,
    then for each.
    """
    alone = np.asarray(with_child / with_child.sum(axis=1, keepdims=True))[:, None, :]
    if measured is None:
        return alone
    counts = measured.counts.reshape(-1, with_parent.shape[1], with_child.shape[1])
    table = with_parent[:, :, None] * alone
    for parts in sorted({1, len(counts)}):
        split = (parts, -1, *counts.shape[1:])
        seen = counts.reshape(split).sum(axis=1)
        expected = table.reshape(split).sum(axis=1)
        variance = measured.variance * len(counts) / parts
        pairs = [
            pair_counts(*both, variance) for both in zip(seen, expected, strict=True)
        ]
        table = three_way(table, with_parent, with_child, np.stack(pairs))

    total = table.sum(axis=2, keepdims=True)
    given_both = table / np.where(total > 0, total, 1.0)
    return np.where(total > 0, given_both, alone)


def pair_counts(counts: Reals, expected: Reals, variance: float) -> Reals:
    """Rows of each pair of levels of two columns, with the margins of ``expected``.

    Cells are shrunk to it as far as noise explains how they differ; this is decided for
    cells of similar size together.
    """
    seen = counts.ravel()
    towards = expected.ravel()
    result = np.empty_like(seen)
    by_size = np.argsort(towards, kind="stable")
    for cells in np.array_split(by_size, max(1, min(_STEPS, seen.size // _ALIKE))):
        result[cells] = shrunk(seen[cells], towards[cells], variance)
    result = np.maximum(result, 0.0).reshape(expected.shape) + FLOOR
    return agreeing(result, expected.sum(axis=1), expected.sum(axis=0))


def shrunk(
    counts: Reals,
    towards: Reals,
    variance: float,
    sizes: Reals | float = 1.0,
) -> Reals:
    """Empirical Bayes: differences that noise explains are noise (James and Stein).

    They are about as large as ``sizes``.
    """
    difference = counts - towards
    squares = np.square(np.broadcast_to(sizes, counts.shape))
    signal = squares * max(float(np.sum(difference**2 - variance) / squares.sum()), 0.0)
    return towards + difference * (signal / (signal + variance))


def agreeing(table: Reals, first: Reals, second: Reals) -> Reals:
    """The table with these margins that is closest to a positive one."""
    second = second * (first.sum() / second.sum())
    return three_way(table[None], first[None], second[None])[0]


def three_way(
    table: Reals,
    with_parent: Reals,
    with_child: Reals,
    pairs: Reals | None = None,
) -> Reals:
    """The table with these margins that is closest to one of trunk × parent × child.

    Iterative proportional fitting; ``pairs`` are parent × child for equal parts of the
    trunk, one after the other. The margins are counts of rows that agree with each
    other.
    """
    for _ in range(_ROUNDS):
        table = np.maximum(table, _LEAST)
        if pairs is not None:
            parts = table.reshape(len(pairs), -1, *pairs.shape[1:])
            moved = parts * ratio(pairs, parts.sum(axis=1), 1.0)[:, None]
            table = moved.reshape(table.shape)
        children = table.sum(axis=1)
        table = table * ratio(with_child, children, 1.0)[:, None, :]
        table = table * ratio(with_parent, table.sum(axis=2), 1.0)[:, :, None]
        if np.abs(children - with_child).max() <= _CLOSE * with_child.sum():
            break
    return table


def with_margin(table: Reals, above: Reals, column: Reals) -> Reals:
    """P(child | trunk, parent) that gives the column its counts, beside those above.

    Tables that hardly agree leave a little behind, in each table more; what is known
    best is put right in the end.
    """
    for _ in range(_ROUNDS):
        reached = np.tensordot(above, table, axes=2)
        if np.abs(reached - column).max() <= _CLOSE * column.sum():
            break
        table = table * ratio(column, reached, 1.0)
        table = table / table.sum(axis=2, keepdims=True)
    return table


@dataclass(frozen=True, eq=False)
class Columns:
    """Each column's counts with each level of the trunk: the root, or root and hub."""

    trunk: Reals
    given_trunk: dict[int, Reals]  # of each block that is not in the trunk

    def expected(self, pair: Pair) -> Reals:
        """Counts of two columns if only the trunk made them depend on each other."""
        first, second = (self.given_trunk[block] for block in pair)
        return (first / self.trunk[:, None]).T @ second

    def worth(self, outcomes: int) -> dict[int, float]:
        """How much each column differs between outcomes, at most 1."""
        off = {}
        for block, table in self.given_trunk.items():
            by_outcome = table.reshape(outcomes, -1, table.shape[1]).sum(axis=1)
            alone = by_outcome.sum(axis=0) / by_outcome.sum()
            expected = by_outcome.sum(axis=1, keepdims=True) * alone
            off[block] = float(np.abs(by_outcome - expected).sum())
        return {block: size / max(*off.values(), FLOOR) for block, size in off.items()}

    def given(self, hub: int, pairs: dict[int, NoisyTable]) -> "Columns":
        """The same for the trunk with a hub, from tables of it and each other block."""
        trunk = self.given_trunk[hub]
        given = {}
        for block, measured in pairs.items():
            table = family(trunk, self.given_trunk[block], measured)
            given[block] = (trunk[:, :, None] * table).reshape(trunk.size, -1)
        return Columns(trunk.ravel(), given)


@dataclass(frozen=True, eq=False)
class PrivateModel:
    """About how many rows there are, what they are like, and what that cost."""

    rows: int  # a noisy count, at least 1
    tree: Tree
    ledger: Ledger


def learn_private_model(
    table: Counted,
    roles: Roles,
    privacy: Privacy,
    *,
    rules: Sequence[Rule] = (),
    noise: Noise,
) -> PrivateModel:
    """Measure the table within the budget, and make a model of what was measured."""
    counter = _counter(table, roles, privacy, noise)
    forced = needed_edges(rules)
    known, looks, rhos = _columns(counter, roles, privacy, forced)
    tree, spent = _tree(counter, known, roles, forced, rhos)
    public: tuple[str, ...] = _PUBLIC
    if privacy.undeclared == "refuse":
        public = (*_PUBLIC, _ALL_DECLARED)
    ledger = Ledger(privacy, (*looks, *spent), public)
    return PrivateModel(max(1, round(float(known.trunk.sum()))), tree, ledger)


class _Unheard:
    """No noise, for what depends on the number of rows only."""

    def counts(self, table: Reals, scale: float) -> Reals:
        return table

    def choice(self, scores: Reals, scale: float) -> int:
        return 0


@dataclass(frozen=True)
class Worth:
    """How far off a private fit of so many rows would be, with some confidence.

    This is known from the declaration and their number alone. Rates are those of groups
    that are equally large, and of which half have the outcome.
    """

    promise: str
    confidence: float
    count_range: float  # of an outcome in a group of all protected columns
    # by protected column: of a group's rate, and of the ratio of two of them
    rate_ranges: dict[str, tuple[float, float]]
    with_groups: int  # other columns that are counted for each outcome and group
    with_outcome: int  # or for each outcome alone

    @classmethod
    def of(
        cls, roles: Roles, privacy: Privacy, rows: int, confidence: float = 0.95
    ) -> "Worth":
        """Foresee how a fit would measure its columns, whoever the people are."""
        counts = np.array([float(rows)])
        somebody = np.zeros((1, len(roles.blocks.levels)), dtype=int)
        table = Table(somebody, counts, counts, counts)
        counter = _counter(table, roles, privacy, _Unheard())
        _, looks, _ = _columns(counter, roles, privacy, ())
        usual_range, _ = Ledger(privacy, tuple(looks), _PUBLIC).count_ranges
        count_range = usual_range * NormalDist().inv_cdf((1 + confidence) / 2) / 1.96
        outcomes, *groups = roles.blocks.shape(0)
        ranges = {}
        for name, levels in zip(roles.names[1:], groups, strict=True):
            cells = outcomes * math.prod(groups) / levels  # of one of its groups
            # of c/(c + d) at a half, where each cell has the same noise
            rate = count_range * math.sqrt(cells) / 2 * levels / rows
            ranges[name] = (rate, rate * math.sqrt(8))
        names = [look.measured for look in looks]
        with_groups = sum(name.startswith(f"{names[0]} × ") for name in names)
        with_any = sum(name.startswith(f"{roles.names[0]} × ") for name in names[1:])
        return cls(
            promise=str(privacy),
            confidence=confidence,
            count_range=count_range,
            rate_ranges=ranges,
            with_groups=with_groups,
            with_outcome=with_any - with_groups,
        )


def _counter(
    table: Counted, roles: Roles, privacy: Privacy, noise: Noise
) -> NoisyCounter:
    blocks = roles.blocks
    names = (
        " × ".join(roles.names),
        *(roles.domain.names[member] for (member,) in blocks.members[1:]),
    )
    rows = float(privacy.rows_per_person)
    return NoisyCounter(table, blocks.levels, names, noise, rows)


def _columns(
    counter: NoisyCounter,
    roles: Roles,
    privacy: Privacy,
    forced: Sequence[Pair],
) -> tuple[Columns, list[Spent], tuple[float, float]]:
    """Measure the root, and each column, alone and with the root.

    If noise would hide that, the best ones are measured with the outcome. What is left
    of ρ is for choosing pairs and for measuring them.
    """
    rho = privacy.rho * (1 - 1e-12)
    root_share = ROOT_SHARE if roles.blocks.levels[1:] else 1.0
    (root_alone,) = counter.measure([(0,)], rho * root_share)
    rho *= 1 - ROOT_SHARE
    rows = max(root_alone.counts.sum(), 1.0)
    shares = counter.shares(rho, rows, forced=bool(forced))
    *rhos, rho_choice, rho_pairs = rho * shares
    shape = roles.blocks.shape(0)
    every = range(1, len(counter.levels))
    alone = counter.measure([(block,) for block in every], rhos[0])
    counter, few = counter.for_columns(rhos[1], rows, shape[0], roles.names[0])
    parts = root_counts(root_alone, []).reshape(counter.levels[0], -1).sum(axis=1)
    chosen, choices = choose_columns(counter, parts, few, rhos[1])
    rho = rhos[1] - sum(look.rho for look in choices)
    measured = counter.measure([(0, block) for block in chosen], rho)
    counted = dict(zip(chosen, measured, strict=True))
    root = root_counts(root_alone, measured if counter.groups == 1 else [])
    fitted = {
        block: column_counts(root, alone[block - 1], counted.get(block), shape)[1]
        for block in every
    }
    looks = [table.spent for table in (root_alone, *alone)]
    looks += [*choices, *(table.spent for table in measured)]
    return Columns(root, fitted), looks, (rho_choice, rho_pairs)


def _tree(
    counter: NoisyCounter,
    known: Columns,
    roles: Roles,
    forced: Sequence[Pair],
    rhos: tuple[float, float],
) -> tuple[Tree, list[Spent]]:
    """Choose and measure a hub, if that pays, and a tree; and say what it cost.

    ``rhos`` are for choosing and for measuring.
    """
    blocks = roles.blocks
    root = known.trunk
    rows = float(known.trunk.sum())
    choice_rho, pairs_rho = rhos
    parents: dict[int, int] = {}
    tables: dict[int, Reals] = {}
    worth = known.worth(blocks.shape(0)[0])
    hub, looks = choose_hub(
        counter,
        known.expected,
        worth,
        rhos=(choice_rho / 4, pairs_rho / 2),
    )
    choice_rho -= sum(look.rho for look in looks)
    if hub:
        pairs_rho /= 2
        others = {block: hub for block in worth if block != hub}
        measured = counter.families(others, pairs_rho, rows)
        parents[hub] = hub
        tables[hub] = family(root, known.given_trunk[hub])
        known = known.given(hub, measured)
        looks += [table.spent for table in measured.values()]

    edges, choices = choose_edges(
        counter,
        known.expected,
        known.given_trunk,
        forced,
        rhos=(choice_rho, pairs_rho),
    )
    tree = parents_of(edges, list(known.given_trunk))  # parents first
    with_parent = {block: parent for block, parent in tree.items() if parent}
    measured = counter.families(with_parent, pairs_rho, rows)
    reached = {0: known.trunk[:, None]}
    for block, parent in tree.items():
        mine = known.given_trunk[block]
        above = reached[parent]
        table = family(known.given_trunk.get(parent, above), mine, measured.get(block))
        tables[block] = with_margin(table, above, mine.sum(axis=0))
        reached[block] = np.asarray((above[:, :, None] * tables[block]).sum(axis=1))

    parents |= tree
    looks += [*choices, *(table.spent for table in measured.values())]
    order = range(1, len(blocks.levels))
    parents_in_order = [parents[block] for block in order]
    tables_in_order = [tables[block] for block in order]
    made = Tree.of(blocks, parents_in_order, root / root.sum(), tables_in_order)
    return made, looks


def check_visible(model: PrivateModel, roles: Roles) -> None:
    """Refuse a model in which noise hides the outcome or a protected column.

    It has left fewer than two levels of it.
    """
    shares = np.exp(model.tree.log_root).reshape(roles.blocks.shape(0))
    for axis, name in enumerate(roles.names):
        others = tuple(other for other in range(shares.ndim) if other != axis)
        rows = model.rows * shares.sum(axis=others)
        if np.count_nonzero(rows >= 1) < 2:
            raise InfeasibleError(
                f"the noise of ε = {model.ledger.privacy.epsilon:g} hides which levels"
                f" of {name!r} there are; use a larger ",
                Option("epsilon"),
                ", or a larger table",
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivateReading(Reading):
    """A table whose rows were drawn from a private model, with that and its cost."""

    tree: Tree
    ledger: Ledger


def private_reading(
    data: Reading, model: PrivateModel, rng: np.random.Generator
) -> PrivateReading:
    """Replace the rows of a table by about as many drawn from the private model.

    Nothing else of the rows is kept. They are drawn by quota and evenly, so that their
    tables are close to those of the model.
    """
    blocks = model.tree.blocks
    drawn = min(model.rows, MOST_DRAWN)
    tilted = model.tree.tilt(np.zeros(blocks.width))
    cells = shuffled_cells(quota(tilted.root.reshape(blocks.shape(0)), drawn, rng), rng)
    codes = tilted.draw(cells, rng, spread=True).codes
    codes = codes.astype(np.min_scalar_type(max(blocks.levels)))
    table = Table.compress(np.asfortranarray(codes), blocks.levels)
    each, rest = divmod(model.rows, drawn)
    stands_for = each + (np.arange(drawn) < rest).astype(float)
    rows = tally(table.inverse, stands_for, table.distinct)
    drawn_table = replace(
        table,
        counts=rows,
        rows=rows,
        squares=rows,
        places=None,
    )
    return PrivateReading(
        data.columns,
        data.roles,
        drawn_table,
        None,
        None,
        tree=model.tree,
        ledger=model.ledger,
    )
