"""The private model: a rooted tree made of noisy tables only, and the rows drawn from
it.

p(root)·Π P(child | root, parent), like the tree of a fit without privacy; where the
noise leaves enough to see, with a hub, one more parent of all columns. Noisy counts may
be negative and contradict each other, so they are repaired first. Each conditional
table is then the maximum-entropy one that agrees with three noisy tables: trunk ×
parent, trunk × child and parent × child, where the trunk is the root, or root and hub.

A fit measures, relabels, estimates and reports by looking at rows. Once these are drawn
from the private model instead of being anybody's, all of that is arithmetic on what was
paid for, and reveals nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.draws import shuffled_cells
from fairmaxent.data.quotas import quota
from fairmaxent.data.reading import Reading
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, Reals, Table, tally
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.maxent.forbidden import Rule, needed_edges
from fairmaxent.maxent.priors.learned_tree import refuse_large_tables
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
_CLOSE = 1e-7  # of the total, at which margins agree
# Groups of cells of similar size that are shrunk alike, at most; and cells in each at
# least, or noise passes for more.
_STEPS = 20
_ALIKE = 16
_PUBLIC = (
    "the names and order of the columns",
    "the levels and edges that were declared",
    "which columns are the outcome and protected, and all other options of the request",
)
_ALL_DECLARED = "that every value in the table is declared"
# More rows than these are not drawn one by one: each that is drawn then stands for
# several.
MOST_DRAWN = 1 << 20


def on_simplex(counts: Reals, total: Reals | float) -> Reals:
    """The closest counts (least squares), along the last axis, that are not negative
    and have these totals.

    Max(counts − θ, 0) for the θ that gives the total, found among the sorted counts
    (Held, Wolfe and Crowder 1974).
    """
    wanted = np.broadcast_to(np.asarray(total, dtype=np.float64), counts.shape[:-1])[
        ..., None
    ]
    falling = -np.sort(-counts, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - wanted) / np.arange(1, counts.shape[-1] + 1)
    kept = np.maximum(np.count_nonzero(falling > excess, axis=-1) - 1, 0)
    return np.asarray(
        np.maximum(counts - np.take_along_axis(excess, kept[..., None], axis=-1), 0.0)
    )


def root_counts(root: NoisyTable, with_columns: Sequence[NoisyTable]) -> Reals:
    """Rows of each level of the root, from its own table and from those that it shares
    with a column.

    Each is weighted by the inverse of its variance; a sum over k levels has k times the
    variance of one cell.
    """
    estimates = [root.counts, *(table.counts.sum(axis=1) for table in with_columns)]
    variances = [
        root.variance,
        *(table.counts.shape[1] * table.variance for table in with_columns),
    ]
    weights = 1 / np.array(variances)
    best = np.asarray(
        np.tensordot(weights, np.stack(estimates), axes=1) / weights.sum()
    )
    return on_simplex(best, max(float(best.sum()), 1.0)) + FLOOR


def column_counts(
    root: Reals, alone: NoisyTable, counted: NoisyTable | None, shape: Sequence[int]
) -> tuple[Reals, Reals]:
    """Rows of each level of a column, alone and with each level of the root, that agree
    with each other and the root.

    The column was counted with the root, with its first column, the outcome, or with
    neither. Least squares: where two tables disagree about a level, the cells take
    their part of the difference, by their variances. Then, as far as noise does not
    explain how they differ, each outcome, each group of each protected column and at
    last each level of the root moves away from the whole column. ``shape`` are the
    levels of those columns.
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
    # columns of the root that cells tell apart
    if len(cells) == roots:
        told = len(shape)
    else:
        told = int(counted is not None)
    cells_of = cells.reshape(*shape[:told], *[1] * (len(shape) - told), -1)
    for axis in range(told):
        others = tuple(other for other in range(len(shape)) if other != axis)
        expected = table.sum(axis=others, keepdims=True)
        noise = variance * len(cells) / shape[axis] * (1 - 1 / shape[axis])
        moved = shrunk(
            cells_of.sum(axis=others, keepdims=True), expected, noise, column
        )
        table = agreeing(
            (table * _factor(np.maximum(moved, FLOOR), expected)).reshape(roots, -1),
            root,
            column,
        )
        table = table.reshape(*shape, -1)
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
    """P(child | trunk, parent) from three tables of counts: trunk × parent, trunk ×
    child, and a noisy one if measured.

    The noisy one is parent × child, or one such table for each level of the root. It is
    shrunk to what the other two say of it, as far as noise explains the difference:
    first for all levels of the root together, then for each.
    """
    alone = np.asarray(with_child / with_child.sum(axis=1, keepdims=True))[:, None, :]
    if measured is None:
        return alone
    counts = measured.counts.reshape(-1, with_parent.shape[1], with_child.shape[1])
    table = with_parent[:, :, None] * alone
    for parts in sorted({1, len(counts)}):
        seen, expected = (
            some.reshape(parts, -1, *counts.shape[1:]).sum(axis=1)
            for some in (counts, table)
        )
        variance = measured.variance * len(counts) / parts
        pairs = np.stack(
            [pair_counts(*both, variance) for both in zip(seen, expected, strict=True)]
        )
        table = three_way(table, with_parent, with_child, pairs)
    total = table.sum(axis=2, keepdims=True)
    return np.asarray(
        np.where(total > 0, table / np.where(total > 0, total, 1.0), alone)
    )


def pair_counts(counts: Reals, expected: Reals, variance: float) -> Reals:
    """Rows of each pair of levels of two columns, with the margins of what is
    ``expected``.

    Cells are shrunk to it as far as noise explains how they differ; this is decided for
    cells of similar size together.
    """
    seen = counts.ravel()
    towards = expected.ravel()
    result = np.empty_like(seen)
    for cells in np.array_split(
        np.argsort(towards, kind="stable"), max(1, min(_STEPS, seen.size // _ALIKE))
    ):
        result[cells] = shrunk(seen[cells], towards[cells], variance)
    result = np.maximum(result, 0.0).reshape(expected.shape) + FLOOR
    return agreeing(result, expected.sum(axis=1), expected.sum(axis=0))


def shrunk(
    counts: Reals, towards: Reals, variance: float, sizes: Reals | float = 1.0
) -> Reals:
    """Empirical Bayes: differences, about as large as ``sizes``, that noise explains
    are noise (James and Stein).
    """
    difference = counts - towards
    squares = np.square(np.broadcast_to(sizes, counts.shape))
    signal = squares * max(float(np.sum(difference**2 - variance) / squares.sum()), 0.0)
    return np.asarray(towards + difference * (signal / (signal + variance)))


def agreeing(table: Reals, first: Reals, second: Reals) -> Reals:
    """The table with these margins that is closest to a positive one."""
    second = second * (first.sum() / second.sum())
    return np.asarray(three_way(table[None], first[None], second[None])[0])


def three_way(
    table: Reals, with_parent: Reals, with_child: Reals, pairs: Reals | None = None
) -> Reals:
    """The table closest to one of trunk × parent × child with the margins trunk ×
    parent, trunk × child, and pairs.

    Iterative proportional fitting; ``pairs`` are parent × child for equal parts of the
    trunk, one after the other. The margins are counts of rows that agree with each
    other.
    """
    for _ in range(_ROUNDS):
        if pairs is not None:
            parts = table.reshape(len(pairs), -1, *pairs.shape[1:])
            table = (parts * _factor(pairs, parts.sum(axis=1))[:, None]).reshape(
                table.shape
            )
        children = table.sum(axis=1)
        table = table * _factor(with_child, children)[:, None, :]
        table = table * _factor(with_parent, table.sum(axis=2))[:, :, None]
        if np.abs(children - with_child).max() <= _CLOSE * with_child.sum():
            break
    return table


def with_margin(table: Reals, above: Reals, column: Reals) -> Reals:
    """P(child | trunk, parent) that gives the column these counts, where the table of
    the two above has these.

    Tables that hardly agree leave a little behind, in each table more; what is known
    best is put right in the end.
    """
    for _ in range(_ROUNDS):
        reached = np.tensordot(above, table, axes=2)
        if np.abs(reached - column).max() <= _CLOSE * column.sum():
            break
        table = table * _factor(column, reached)
        table = table / table.sum(axis=2, keepdims=True)
    return table


def _factor(wanted: Reals, reached: Reals) -> Reals:
    return np.divide(wanted, reached, out=np.ones_like(reached), where=reached > 0)


@dataclass(frozen=True, eq=False)
class Columns:
    """What is known of each column: its counts with each level of the trunk (the root,
    or root and hub).
    """

    trunk: Reals
    given_trunk: dict[int, Reals]  # of each block that is not in the trunk

    def expected(self, pair: Pair) -> Reals:
        """Counts of two columns if they depended on each other through the trunk
        only.
        """
        first, second = (self.given_trunk[block] for block in pair)
        return np.asarray((first / self.trunk[:, None]).T @ second)

    def worth(self, outcomes: int) -> dict[int, float]:
        """How much each column differs between outcomes, from 0 to 1 for the one that
        does most.
        """
        off = {}
        for block, table in self.given_trunk.items():
            by_outcome = table.reshape(outcomes, -1, table.shape[1]).sum(axis=1)
            alone = by_outcome.sum(axis=0) / by_outcome.sum()
            off[block] = float(
                np.abs(by_outcome - by_outcome.sum(axis=1, keepdims=True) * alone).sum()
            )
        return {block: size / max(*off.values(), FLOOR) for block, size in off.items()}

    def given(self, hub: int, pairs: dict[int, NoisyTable]) -> "Columns":
        """The same for the trunk with a hub, from tables of it and each other block."""
        trunk = self.given_trunk[hub]
        tables = (
            (block, family(trunk, self.given_trunk[block], table))
            for block, table in pairs.items()
        )
        return Columns(
            trunk.ravel(),
            {
                b: (trunk[:, :, None] * table).reshape(trunk.size, -1)
                for b, table in tables
            },
        )


@dataclass(frozen=True, eq=False)
class PrivateModel:
    """How many rows there are, about, what they are like, and what it cost to learn
    that.
    """

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
    blocks = roles.blocks
    names = (
        " × ".join(roles.names),
        *(roles.domain.names[member] for (member,) in blocks.members[1:]),
    )
    if len(blocks.levels) > 2:
        refuse_large_tables(blocks.levels)
    counter = NoisyCounter(
        table, blocks.levels, names, noise, float(privacy.rows_per_person)
    )
    rho = privacy.rho * (1 - 1e-12)
    (root_alone,) = counter.measure(
        [(0,)], rho * (ROOT_SHARE if blocks.levels[1:] else 1.0)
    )
    rho *= 1 - ROOT_SHARE
    rows = max(root_alone.counts.sum(), 1.0)
    forced = needed_edges(rules)
    *rho_columns, rho_choice, rho_pairs = rho * counter.shares(
        rho, rows, forced=bool(forced)
    )
    known, looks = _columns(counter, roles, root_alone, rho_columns)
    tree, spent = _tree(counter, known, roles, forced, (rho_choice, rho_pairs))
    ledger = Ledger(
        privacy,
        (*looks, *spent),
        (*_PUBLIC, *([_ALL_DECLARED] if privacy.undeclared == "refuse" else [])),
    )
    return PrivateModel(max(1, round(float(known.trunk.sum()))), tree, ledger)


def _columns(
    counter: NoisyCounter, roles: Roles, root_alone: NoisyTable, rhos: Sequence[float]
) -> tuple[Columns, list[Spent]]:
    """Measure each column, alone and with the root; if noise would hide that, the best
    ones with the outcome.

    ``rhos`` are for the columns alone and for what is measured with them.
    """
    shape = roles.blocks.shape(0)
    every = range(1, len(counter.levels))
    rows = max(root_alone.counts.sum(), 1.0)
    alone = counter.measure([(block,) for block in every], rhos[0])
    counter, few = counter.for_columns(rhos[1], rows, shape[0], roles.names[0])
    parts = root_counts(root_alone, []).reshape(counter.levels[0], -1).sum(axis=1)
    chosen, choices = choose_columns(counter, parts, few, rhos[1])
    rho = rhos[1] - sum(look.rho for look in choices)
    counted = dict(
        zip(chosen, counter.measure([(0, block) for block in chosen], rho), strict=True)
    )
    root = root_counts(root_alone, [*counted.values()] if counter.groups == 1 else [])
    fitted = {
        block: column_counts(root, alone[block - 1], counted.get(block), shape)[1]
        for block in every
    }
    looks = (
        [table.spent for table in (root_alone, *alone)]
        + choices
        + [table.spent for table in counted.values()]
    )
    return Columns(root, fitted), looks


def _tree(
    counter: NoisyCounter,
    known: Columns,
    roles: Roles,
    forced: Sequence[Pair],
    rhos: tuple[float, float],
) -> tuple[Tree, list[Spent]]:
    """Choose and measure a hub, if that pays, and the edges of a tree; make the tree,
    and say what it cost.
    """
    blocks = roles.blocks
    root = known.trunk
    rows = float(known.trunk.sum())
    tables, parents, (choice_rho, pairs_rho) = {}, {}, rhos
    worth = known.worth(blocks.shape(0)[0])
    hub, looks = choose_hub(
        counter, known.expected, worth, rhos=(choice_rho / 4, pairs_rho / 2)
    )
    choice_rho -= sum(look.rho for look in looks)
    if hub:
        pairs_rho /= 2
        measured = counter.families(
            {block: hub for block in worth if block != hub}, pairs_rho, rows
        )
        parents[hub], tables[hub] = hub, family(root, known.given_trunk[hub])
        known = known.given(hub, measured)
        looks += [table.spent for table in measured.values()]
    edges, choices = choose_edges(
        counter, known.expected, known.given_trunk, forced, rhos=(choice_rho, pairs_rho)
    )
    tree = parents_of(edges, list(known.given_trunk))  # parents first
    measured = counter.families(
        {block: parent for block, parent in tree.items() if parent}, pairs_rho, rows
    )
    reached = {0: known.trunk[:, None]}
    for block, parent in tree.items():
        mine = known.given_trunk[block]
        above = reached[parent]
        table = family(known.given_trunk.get(parent, above), mine, measured.get(block))
        tables[block] = with_margin(table, above, mine.sum(axis=0))
        reached[block] = np.asarray((above[:, :, None] * tables[block]).sum(axis=1))
    parents = parents | tree
    order = range(1, len(blocks.levels))
    looks += [*choices, *(table.spent for table in measured.values())]
    return (
        Tree.of(
            blocks,
            [parents[b] for b in order],
            root / root.sum(),
            [tables[b] for b in order],
        ),
        looks,
    )


def check_visible(model: PrivateModel, roles: Roles) -> None:
    """Refuse a model in which noise has left fewer than two levels of the outcome or a
    protected column.
    """
    shares = np.exp(model.tree.log_root).reshape(roles.blocks.shape(0))
    for axis, name in enumerate(roles.names):
        rows = model.rows * shares.sum(
            axis=tuple(other for other in range(shares.ndim) if other != axis)
        )
        if np.count_nonzero(rows >= 1) < 2:
            raise InfeasibleError(
                f"the noise of ε = {model.ledger.privacy.epsilon:g} hides which levels"
                f" of {name!r} there are (about {model.rows:,} rows were counted); use"
                " a larger ",
                Option("epsilon"),
                ", or a larger table",
            )


@dataclass(frozen=True, eq=False)
class PrivateReading(Reading):
    """A table whose rows were drawn from a private model, with that model and what it
    cost.
    """

    tree: Tree | None = None  # None: rows were relabelled since
    ledger: Ledger | None = None


def private_reading(
    data: Reading, model: PrivateModel, rng: np.random.Generator
) -> PrivateReading:
    """Replace the rows of a table by as many drawn from the private model, about;
    nothing else of the rows is kept.

    They are drawn by quota and evenly, so that their tables are close to those of the
    model.
    """
    blocks = model.tree.blocks
    drawn = min(model.rows, MOST_DRAWN)
    tilted = model.tree.tilt(np.zeros(blocks.width))
    cells = shuffled_cells(quota(tilted.root.reshape(blocks.shape(0)), drawn, rng), rng)
    codes = tilted.draw(cells, rng, spread=True).codes.astype(
        np.min_scalar_type(max(blocks.levels))
    )
    table = Table.compress(np.asfortranarray(codes), blocks.levels)
    each, rest = divmod(model.rows, drawn)
    rows = tally(
        table.inverse,
        each + (np.arange(drawn) < rest).astype(np.float64),
        table.distinct,
    )
    drawn_table = replace(table, counts=rows, rows=rows, squares=rows, places=None)
    return PrivateReading(
        data.columns,
        data.roles,
        drawn_table,
        None,
        None,
        tree=model.tree,
        ledger=model.ledger,
    )
