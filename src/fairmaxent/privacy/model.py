"""The private model: a rooted tree made of noisy tables only, and the rows drawn from it.

p(root)·Π P(child | root, parent), like the tree of a fit without privacy. Noisy counts may be negative and contradict
each other, so they are repaired first. Each conditional table is then the maximum-entropy one that agrees with three
noisy tables: root × parent, root × child and parent × child.

A fit measures, relabels, estimates and reports by looking at rows. Once these are drawn from the private model instead
of being anybody's, all of that is arithmetic on what was paid for, and reveals nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.draws import shuffled_cells
from fairmaxent.data.quotas import quota
from fairmaxent.data.roles import Reading, Roles
from fairmaxent.data.table import Counted, Reals, Table, tally
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.maxent.forbidden import Rule, needed_edges
from fairmaxent.maxent.priors.tree import Tree, refuse_large_tables
from fairmaxent.privacy.budget import Ledger, Privacy
from fairmaxent.privacy.measurements import SHARES, Noise, NoisyCounter, NoisyTable, Pair, choose_edges, parents_of

# What every possible cell has, in rows: too little to be drawn, but enough to be possible.
FLOOR = 1e-6
_ROUNDS = 100
_CLOSE = 1e-7  # of the total, at which margins agree
_STEPS = 20  # groups of cells of similar size that are shrunk alike


def on_simplex(counts: Reals, total: Reals | float) -> Reals:
    """The closest counts (least squares), along the last axis, that are not negative and have these totals.

    Max(counts − θ, 0) for the θ that gives the total, found among the sorted counts (Held, Wolfe and Crowder 1974).
    """
    wanted = np.broadcast_to(np.asarray(total, dtype=np.float64), counts.shape[:-1])[..., None]
    falling = -np.sort(-counts, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - wanted) / np.arange(1, counts.shape[-1] + 1)
    kept = np.maximum(np.count_nonzero(falling > excess, axis=-1) - 1, 0)
    return np.asarray(np.maximum(counts - np.take_along_axis(excess, kept[..., None], axis=-1), 0.0))


def root_counts(root: NoisyTable, with_columns: Sequence[NoisyTable]) -> Reals:
    """Rows of each level of the root, from its own table and from those that it shares with a column.

    Each is weighted by the inverse of its variance; a sum over k levels has k times the variance of one cell.
    """
    estimates = [root.counts, *(table.counts.sum(axis=1) for table in with_columns)]
    variances = [root.variance, *(table.counts.shape[1] * table.variance for table in with_columns)]
    weights = 1 / np.array(variances)
    best = np.asarray(np.tensordot(weights, np.stack(estimates), axes=1) / weights.sum())
    return on_simplex(best, max(float(best.sum()), 1.0)) + FLOOR


def column_counts(root: Reals, alone: NoisyTable, given_root: NoisyTable) -> tuple[Reals, Reals]:
    """Rows of each level of a column, alone and with each level of the root, that agree with each other and the root.

    Least squares: where the two tables disagree about a level, the cells take their part of the difference, by their
    variances. The rows of each root level are shrunk to those of the whole column as far as noise explains how they
    differ.
    """
    cells, roots = given_root.counts, len(root)
    share = given_root.variance / (roots * given_root.variance + alone.variance)
    cells = cells + share * (alone.counts - cells.sum(axis=0))
    column = on_simplex(cells.sum(axis=0), root.sum()) + FLOOR
    expected = np.outer(root, column / column.sum())
    variance = given_root.variance - share * given_root.variance  # of a cell, once both tables are combined
    rows = [shrunk(row, towards, variance) for row, towards in zip(cells, expected, strict=True)]
    return column, agreeing(on_simplex(np.stack(rows), root) + FLOOR, root, column)


def pair_counts(pair: NoisyTable, expected: Reals, first: Reals, second: Reals) -> Reals:
    """Rows of each pair of levels of two columns, with their counts as margins.

    Cells are shrunk to what the root already says of the pair (``expected``), as far as noise explains how they differ;
    this is decided for cells of similar size together.
    """
    counts, towards = pair.counts.ravel(), expected.ravel()
    result = np.empty_like(counts)
    for cells in np.array_split(np.argsort(towards, kind="stable"), _STEPS):
        result[cells] = shrunk(counts[cells], towards[cells], pair.variance)
    return agreeing(np.maximum(result, 0.0).reshape(expected.shape) + FLOOR, first, second)


def shrunk(counts: Reals, towards: Reals, variance: float) -> Reals:
    """Empirical Bayes: differences that are no larger than the noise are noise (James and Stein)."""
    difference = counts - towards
    signal = max(float(np.mean(difference**2)) - variance, 0.0) if counts.size else 0.0
    return np.asarray(towards + difference * (signal / (signal + variance)))


def agreeing(table: Reals, first: Reals, second: Reals) -> Reals:
    """The table with these margins that is closest to a positive one (iterative proportional fitting)."""
    second = second * (first.sum() / second.sum())
    for _ in range(_ROUNDS):
        table = table * _factor(second, table.sum(axis=0))[None, :]
        rows = table.sum(axis=1)
        table = table * _factor(first, rows)[:, None]
        if np.abs(rows - first).max() <= _CLOSE * first.sum():
            break
    return table


def three_way(with_parent: Reals, with_child: Reals, pair: Reals) -> Reals:
    """P(child | root, parent): the maximum-entropy table with the margins root × parent, root × child, parent × child.

    Iterative proportional fitting; the margins are counts of rows that agree with each other.
    """
    given_root = with_child / with_child.sum(axis=1, keepdims=True)
    table = with_parent[:, :, None] * given_root[:, None, :]
    for _ in range(_ROUNDS):
        table = table * _factor(pair, table.sum(axis=0))[None, :, :]
        children = table.sum(axis=1)
        table = table * _factor(with_child, children)[:, None, :]
        table = table * _factor(with_parent, table.sum(axis=2))[:, :, None]
        if np.abs(children - with_child).max() <= _CLOSE * with_child.sum():
            break
    return np.asarray(table / table.sum(axis=2, keepdims=True))


def _factor(wanted: Reals, reached: Reals) -> Reals:
    return np.divide(wanted, reached, out=np.ones_like(reached), where=reached > 0)


_PUBLIC = (
    "the names and order of the columns",
    "the levels and edges that were declared",
    "which columns are the outcome and protected, and all other options of the request",
)
_ALL_DECLARED = "that every value in the table is declared"


@dataclass(frozen=True, eq=False)
class PrivateModel:
    """How many rows there are, about, what they are like, and what it cost to learn that."""

    rows: int  # a noisy count, at least 1
    tree: Tree
    ledger: Ledger


def learn_private_model(
    table: Counted, roles: Roles, privacy: Privacy, *, rules: Sequence[Rule] = (), noise: Noise
) -> PrivateModel:
    """Measure the table within the budget, and make a model of what was measured."""
    blocks = roles.blocks
    names = (" × ".join(roles.names), *(roles.domain.names[member] for (member,) in blocks.members[1:]))
    if len(blocks.levels) > 2:
        refuse_large_tables(blocks.levels)
    counter = NoisyCounter(table, blocks.levels, names, noise)
    columns = range(1, len(blocks.levels))
    # What a table of few columns has no use for goes to the other measurements.
    shares = np.array(SHARES) * [1, *[len(columns) > 0] * 2, *[len(columns) > 1] * 2]
    rhos = (privacy.rho * (1 - 1e-12) * shares / shares.sum()).tolist()
    rho_root, rho_columns, rho_both, rho_choice, rho_pairs = rhos
    (root_alone,) = counter.measure([(0,)], rho_root)
    alone = counter.measure([(block,) for block in columns], rho_columns)
    given_root = counter.measure([(0, block) for block in columns], rho_both)
    root = root_counts(root_alone, given_root)
    fitted = [column_counts(root, *both) for both in zip(alone, given_root, strict=True)]
    noisy = _Columns(root, [single for single, _ in fitted], [both for _, both in fitted])
    edges, choices = choose_edges(
        counter, noisy.expected, forced=needed_edges(rules), choice_rho=rho_choice, pairs_rho=rho_pairs
    )
    pairs = dict(zip(edges, counter.measure(edges, rho_pairs), strict=True))
    parents = parents_of(edges, len(blocks.levels))
    tables = [noisy.conditional(block, parent, pairs) for block, parent in zip(columns, parents, strict=True)]
    before, after = (root_alone, *alone, *given_root), pairs.values()
    spent = (*(measured.spent for measured in before), *choices, *(measured.spent for measured in after))
    tree = Tree.of(blocks, parents, root / root.sum(), tables)
    public = [*_PUBLIC, *([_ALL_DECLARED] if privacy.undeclared == "refuse" else [])]
    return PrivateModel(max(1, round(float(root.sum()))), tree, Ledger(privacy, spent, tuple(public)))


def check_visible(model: PrivateModel, roles: Roles) -> None:
    """Refuse a model in which noise has left fewer than two levels of the outcome or a protected column."""
    shares = np.exp(model.tree.log_root).reshape(roles.blocks.shape(0))
    for axis, name in enumerate(roles.names):
        rows = model.rows * shares.sum(axis=tuple(other for other in range(shares.ndim) if other != axis))
        if np.count_nonzero(rows >= 1) < 2:
            raise InfeasibleError(
                f"the noise of ε = {model.ledger.privacy.epsilon:g} hides which levels of {name!r} there are (about "
                f"{model.rows:,} rows were counted); use a larger ",
                Option("epsilon"),
                ", or a larger table",
            )


@dataclass(frozen=True, eq=False)
class _Columns:
    """What is known of each column: its counts, alone and with each level of the root."""

    root: Reals
    alone: list[Reals]
    given_root: list[Reals]

    def expected(self, pair: Pair) -> Reals:
        """Counts of two columns if they depended on each other through the root only."""
        first, second = (self.given_root[block - 1] for block in pair)
        return np.asarray((first / self.root[:, None]).T @ second)

    def conditional(self, block: int, parent: int, pairs: dict[Pair, NoisyTable]) -> Reals:
        """P(block | root, parent), with axes root, parent, block; one parent level if there is no parent."""
        mine = self.given_root[block - 1]
        if not parent:
            return np.asarray(mine / mine.sum(axis=1, keepdims=True))[:, None, :]
        pair = (parent, block) if (parent, block) in pairs else (block, parent)
        counts = pair_counts(pairs[pair], self.expected(pair), *(self.alone[end - 1] for end in pair))
        return three_way(self.given_root[parent - 1], mine, counts if pair[0] == parent else counts.T)


# More rows than these are not drawn one by one: each that is drawn then stands for several.
MOST_DRAWN = 1 << 20


@dataclass(frozen=True, eq=False)
class PrivateReading(Reading):
    """A table whose rows were drawn from a private model, with that model and what it cost."""

    tree: Tree | None = None  # None: rows were relabelled since
    ledger: Ledger | None = None


def private_reading(data: Reading, model: PrivateModel, rng: np.random.Generator) -> PrivateReading:
    """Replace the rows of a table by as many drawn from the private model, about; nothing else of the rows is kept.

    They are drawn by quota and evenly, so that their tables are close to those of the model.
    """
    blocks, drawn = model.tree.blocks, min(model.rows, MOST_DRAWN)
    tilted = model.tree.tilt(np.zeros(blocks.width))
    cells = shuffled_cells(quota(tilted.root.reshape(blocks.shape(0)), drawn, rng), rng)
    codes = tilted.draw(cells, rng, evenly=True).codes.astype(np.min_scalar_type(max(blocks.levels)))
    table = Table.compress(np.asfortranarray(codes), blocks.levels)
    each, rest = divmod(model.rows, drawn)
    rows = tally(table.inverse, each + (np.arange(drawn) < rest).astype(np.float64), table.distinct)
    drawn_table = replace(table, counts=rows, rows=rows, squares=rows, places=None)
    return PrivateReading(data.columns, data.roles, drawn_table, None, None, tree=model.tree, ledger=model.ledger)
