"""Bases of full support: uniform, product and tree; a new one is a class of its own and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.columns import Arrays
from fairmaxent.data.table import Blocks, Counted, Reals
from fairmaxent.maxent.forbidden import Rule, allowed_roots, needed_edges, strike_out
from fairmaxent.maxent.priors.product import Product
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.maxent.priors.tree_learning import learn_tree, spanning_parents

BaseKind = Literal["tree", "product", "uniform"]


@dataclass(frozen=True)
class Base:
    """One kind of base: how it is made, stored and named."""

    build: Callable[[Ingredients], Prior]
    pack: Callable[[Any], Arrays]
    unpack: Callable[[Blocks, Arrays], Prior]
    sentence: str  # what the rows are mixed with


@dataclass(frozen=True, eq=False)
class Ingredients:
    """What a base is made from."""

    blocks: Blocks
    counted: Counted  # the distinct rows with how many rows each stands for
    weighted: Counted  # the same with their fair weights w
    root: Reals  # the distribution wanted for the root block
    rules: Sequence[Rule] = ()


def build_base(
    kind: BaseKind,
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Sequence[Rule] = (),
) -> Prior:
    """Build a base of full support on everything that is not forbidden; the options are those of `Ingredients`."""
    return BASES[kind].build(Ingredients(blocks, counted, weighted, root, rules))


def _build_uniform(given: Ingredients) -> Prior:
    return _independent(given.blocks, np.ones(given.blocks.width), given.rules)


def _build_product(given: Ingredients) -> Prior:
    blocks = given.blocks
    levels = np.concatenate(given.weighted.tables([(block,) for block in range(len(blocks.levels))], blocks.levels))
    levels[blocks.slices[0]] = given.root
    return _independent(blocks, levels, given.rules)


def _build_tree(given: Ingredients) -> Prior:
    return learn_tree(given.blocks, given.counted, given.weighted, root=given.root, rules=given.rules)


def _pack(base: Product | Tree) -> Arrays:
    return base.pack()


def _unpack(blocks: Blocks, arrays: Arrays) -> Prior:
    """Rules make a tree of a product."""
    return (Tree if "parents" in arrays else Product).unpack(blocks, arrays)


BASES: dict[BaseKind, Base] = {
    "tree": Base(
        _build_tree, _pack, _unpack, "a model of the same rows that keeps the strongest relations between columns"
    ),
    "product": Base(
        _build_product, _pack, _unpack, "a model of the same rows that keeps only each column's own shares"
    ),
    "uniform": Base(_build_uniform, _pack, _unpack, "in which all combinations are equally likely"),
}


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
