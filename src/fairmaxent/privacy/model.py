"""The private model: a rooted tree made of noisy tables only, and the rows drawn from it.

p(root)·Π P(child | root, parent), like the tree of a fit without privacy. Each conditional table is the maximum-entropy
one that agrees with three noisy tables: root × parent, root × child and parent × child.

A fit measures, relabels, estimates and reports by looking at rows. Once these are drawn from the private model instead
of being anybody's, all of that is arithmetic on what was paid for, and reveals nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.draws import quota, shuffled_cells
from fairmaxent.data.roles import Reading, Roles
from fairmaxent.data.table import Counted, Reals, Table, tally
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.maxent.forbidden import Rule, needed_edges
from fairmaxent.maxent.priors.tree import Tree, refuse_large_tables
from fairmaxent.privacy.budget import Ledger, Privacy
from fairmaxent.privacy.measurements import SHARES, Noise, NoisyCounter, NoisyTable, Pair, choose_edges, parents_of
from fairmaxent.privacy.repair import column_counts, pair_counts, root_counts, three_way

_PUBLIC = (
    "the names and order of the columns",
    "the levels and edges that were declared",
    "that every value in the table is declared",
    "which columns are the outcome and protected, and all other options of the request",
)


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
    return PrivateModel(max(1, round(float(root.sum()))), tree, Ledger(privacy, spent, _PUBLIC))


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
