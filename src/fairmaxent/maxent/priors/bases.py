"""Bases of full support: uniform, product and tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Counted
from fairmaxent.maxent.forbidden import Rule, allowed_roots, needed_edges, strike_out
from fairmaxent.maxent.priors.product import Product
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.maxent.priors.tree_learning import learn_tree, spanning_parents

BaseKind = Literal["uniform", "product", "tree"]


def build_base(
    kind: BaseKind,
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Sequence[Rule] = (),
) -> Prior:
    """Build a base of full support on everything that is not forbidden.

    ``counted`` are the distinct rows with how many rows each stands for, ``weighted`` the same with their fair weights
    w, and ``root`` is the distribution wanted for the root block.
    """
    if kind == "uniform":
        return _independent(blocks, np.ones(blocks.width), rules)
    if kind == "product":
        levels = np.concatenate(weighted.tables([(block,) for block in range(len(blocks.levels))], blocks.levels))
        levels[blocks.slices[0]] = root
        return _independent(blocks, levels, rules)
    return learn_tree(blocks, counted, weighted, root=root, rules=rules)


def rerooted(tree: Tree, root: Reals, rules: Sequence[Rule]) -> Tree:
    """Return a tree with another distribution of the root, and without what is forbidden."""
    tables = [np.exp(table) for table in tree.log_tables]
    strike_out(rules, tree.parents, tables)
    return Tree.of(tree.blocks, tree.parents, root * allowed_roots(rules, tree.blocks.levels[0]), tables)


def _independent(blocks: Blocks, levels: Reals, rules: Sequence[Rule]) -> Prior:
    """Blocks with these shares of levels, independent but for the rules."""
    levels[blocks.slices[0]] *= allowed_roots(rules, blocks.levels[0])
    if not any(rule.others for rule in rules):
        return Product.of(blocks, levels)
    parents = spanning_parents(np.zeros((len(blocks.levels), len(blocks.levels))), needed_edges(rules))
    tables = [_independent_table(blocks, levels, block, parent) for block, parent in enumerate(parents, start=1)]
    strike_out(rules, parents, tables)
    return Tree.of(blocks, parents, levels[blocks.slices[0]] / levels[blocks.slices[0]].sum(), tables)


def reachable_roots(blocks: Blocks, rules: Sequence[Rule]) -> NDArray[np.bool_]:
    """Levels of the root that at least one point has that breaks no rule."""
    if not rules:
        return np.ones(blocks.levels[0], dtype=bool)
    everywhere = _independent(blocks, np.ones(blocks.width), rules)
    return np.asarray(everywhere.tilt(np.zeros(blocks.width)).levels[blocks.slices[0]] > 0)


def _independent_table(blocks: Blocks, levels: Reals, block: int, parent: int) -> Reals:
    """P(block) repeated for every level of root and parent, where rules can then strike out cells."""
    shares = levels[blocks.slices[block]] / levels[blocks.slices[block]].sum()
    above = blocks.levels[parent] if parent else 1
    return np.tile(shares, (blocks.levels[0], above, 1))
