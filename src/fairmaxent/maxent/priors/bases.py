"""Bases of full support: uniform, product and tree.

A new one is a class of its own and an entry in `BASES`; `register_base` adds one that
somebody else wrote.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal, get_args

import numpy as np

from fairmaxent.data.columns import Arrays
from fairmaxent.data.draws import Choice
from fairmaxent.data.limits import logarithms
from fairmaxent.data.table import Blocks, Codes, Counted, Indices, Mask, Reals
from fairmaxent.errors import InputError, StorageError, shown
from fairmaxent.maxent.forbidden import (
    Rules,
    allowed_roots,
    needed_edges,
    strike_out,
)
from fairmaxent.maxent.logspace import softmax
from fairmaxent.maxent.priors.learned_tree import learn_tree, spanning_parents
from fairmaxent.maxent.priors.protocol import Drawn, Prior, Tabular
from fairmaxent.maxent.priors.tree import Tree

BaseKind = Literal["tree", "product", "uniform"]
# blocks, weighted rows, and the distribution wanted for the root -> a base
BuildBase = Callable[[Blocks, Counted, Reals], Prior]
UnpackBase = Callable[[Blocks, Arrays], Prior]


@dataclass(frozen=True, eq=False)
class Product(Tabular):
    """u(α) = Π_b u_b(α_b). Tilting goes block by block."""

    blocks: Blocks
    log_levels: Reals  # log u_b of each level, each block normalised

    @classmethod
    def of(cls, blocks: Blocks, levels: Reals) -> "Product":
        """Build from non-negative weights of the levels, normalised block by block."""
        with np.errstate(divide="ignore"):
            parts = [np.log(part / part.sum()) for part in blocks.split(levels)]
        return cls(blocks, np.concatenate(parts))

    def pack(self) -> Arrays:
        """Return arrays from which `unpack` restores the product."""
        return {"log_levels": self.log_levels}

    @classmethod
    def unpack(cls, blocks: Blocks, arrays: Arrays) -> "Product":
        """Restore what `pack` gave, after checking it."""
        return cls(blocks, logarithms(arrays["log_levels"], blocks.width))

    def tilt(self, potentials: Reals) -> "TiltedProduct":
        """Tilt by one potential per level."""
        scores = self.blocks.split(self.log_levels + potentials)
        tilted = [softmax(part) for part in scores]
        return TiltedProduct(
            blocks=self.blocks,
            log_partition=sum(total for total, _ in tilted),
            parts=[part for _, part in tilted],
        )

    def log_probability(self, codes: Codes) -> Reals:
        """log u(α)."""
        result = np.zeros(len(codes))
        parts = self.blocks.split(self.log_levels)
        for column, part in zip(codes.T, parts, strict=True):
            result += part[column]
        return result

    @property
    def full_support(self) -> bool:
        """Whether no level was struck out."""
        return bool(np.isfinite(self.log_levels).all())

    def log_floor(self) -> float:
        """Return the smallest log u(α) on the support."""
        parts = self.blocks.split(self.log_levels)
        return float(sum(part[np.isfinite(part)].min() for part in parts))


@dataclass(frozen=True, eq=False)
class TiltedProduct:
    """Independent blocks again."""

    blocks: Blocks
    log_partition: float
    parts: list[Reals]  # probabilities of each block's levels

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level of each block."""
        possible = np.isfinite(self.log_partition)
        return np.concatenate(self.parts) * float(possible)

    def pairs(self) -> Reals:
        """Probability of each pair of levels; those of one block exclude each other."""
        pairs = np.outer(self.levels, self.levels)
        for part in self.blocks.slices:
            pairs[part, part] = np.diag(self.levels[part])
        return pairs

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks."""
        parts = (self.parts[block] for block in wanted)
        return reduce(np.multiply.outer, parts, np.ones(()))

    def draw(
        self,
        roots: Indices,
        rng: np.random.Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Draw every block but the root on its own."""
        nowhere = np.zeros(len(roots), dtype=np.intp)
        others = [choice.draw(nowhere, rng) for choice in self._choices]
        return Drawn(np.column_stack([roots, *others]), nowhere - 1)

    @cached_property
    def _choices(self) -> list[Choice]:
        return [Choice.rows_of(part[None, :]) for part in self.parts[1:]]


@dataclass(frozen=True)
class Base:
    """One kind of base: how it is made and named."""

    build: Callable[..., Prior]
    sentence: str  # what the rows are mixed with
    # whether small cells borrow from it what their few rows cannot say
    lends: bool = False
    unpack: UnpackBase | None = None  # of somebody's own


def build_base(
    kind: str,
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Rules = (),
) -> Prior:
    """Build a base of full support on everything that is not forbidden.

    ``counted`` are the distinct rows with how many rows each stands for, ``weighted``
    the same with their fair weights w, and ``root`` is the distribution wanted for the
    root block.
    """
    return BASES[kind].build(
        blocks,
        counted,
        weighted,
        root=root,
        rules=rules,
    )


def _uniform(
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Rules,
) -> Prior:
    return _independent(blocks, np.ones(blocks.width), rules)


def _product(
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Rules,
) -> Prior:
    single = [(block,) for block in range(len(blocks.levels))]
    levels = np.concatenate(weighted.tables(single, blocks.levels))
    levels[blocks.slices[0]] = root
    return _independent(blocks, levels, rules)


BASES: dict[str, Base] = {
    "tree": Base(
        learn_tree,
        "a model of the same rows that keeps the strongest relations between columns",
        lends=True,
    ),
    "product": Base(
        _product, "a model of the same rows that keeps only each column's own shares"
    ),
    "uniform": Base(_uniform, "in which all combinations are equally likely"),
}


def register_base(
    name: str,
    build: BuildBase,
    *,
    unpack: UnpackBase | None = None,
    sentence: str = "a model of its user's own",
) -> None:
    """Let ``base=name`` of `debias` and ``prior=name`` of `paper.fit` be your prior.

    ``build`` gets the blocks, the rows with their fair weights, and the distribution
    that is wanted for the root, and returns a `paper.Prior`. Block 0, the root, is
    outcome and groups together; other columns are blocks of their own.
    ``blocks.levels`` says how many levels each has, ``blocks.split(vector)`` and
    ``blocks.slices`` cut a vector over all levels into blocks, and
    ``rows.tables([(0,), (0, 2)], blocks.levels)`` sums the weights by the levels of
    some blocks, a table for each tuple.

    To save fits of it, give it a ``pack()`` that returns arrays by name; ``unpack``
    gets the blocks and these arrays. A program that loads such a fit registers the base
    before. ``sentence`` says in the certificate what is mixed into the rows.
    """
    if not isinstance(name, str) or not name or name in get_args(BaseKind):
        raise InputError(
            f"a base cannot be registered as {shown(name)}; give it a name of its own"
        )

    def ruled(
        blocks: Blocks,
        counted: Counted,
        weighted: Counted,
        *,
        root: Reals,
        rules: Rules,
    ) -> Prior:
        return build(blocks, weighted, root)  # rules are refused beside it

    BASES[name] = Base(ruled, sentence, unpack=unpack)


def is_own(name: str) -> bool:
    """Whether somebody else wrote the base of this name."""
    return name not in get_args(BaseKind)


def check_registered(path: object, request: object) -> None:
    """Refuse the file of a fit whose base somebody registered elsewhere."""
    if not isinstance(request, dict):
        return  # not written by this library, which is told elsewhere
    name = request.get("base")
    if not isinstance(name, str) or name in get_args(BaseKind):
        return
    if name not in BASES or BASES[name].unpack is None:
        raise StorageError(
            f"{path} was fitted with the base {shown(name)}, which is not known here;"
            f" call fairmaxent.paper.register_base({shown(name)}, build, unpack=…)"
            " before you load it"
        )


def pack_base(base: Any) -> Arrays:
    """Arrays from which `unpack_base` restores it."""
    if not hasattr(base, "pack"):
        raise StorageError(
            "a fit with this base cannot be saved; give the prior a pack() that returns"
            " arrays, and register it with an unpack"
        )
    return base.pack()


def unpack_base(kind: str, blocks: Blocks, arrays: Arrays) -> Prior:
    """Restore a base of any kind from the arrays that its ``pack`` gave.

    Rules make a tree of a product.
    """
    own = BASES[kind].unpack
    if own is not None:
        return own(blocks, arrays)
    if "parents" in arrays:
        return Tree.unpack(blocks, arrays)
    return Product.unpack(blocks, arrays)


def rerooted(tree: Tree, root: Reals, rules: Rules) -> Tree:
    """Return a tree with another distribution of the root, and with rules honoured."""
    tables = [np.exp(table) for table in tree.log_tables]
    strike_out(rules, tree.parents, tables)
    allowed = root * allowed_roots(rules, len(root))
    return Tree.of(tree.blocks, tree.parents, allowed, tables)


def _independent(blocks: Blocks, levels: Reals, rules: Rules) -> Prior:
    """Blocks with these shares of levels, independent but for the rules."""
    levels[blocks.slices[0]] *= allowed_roots(rules, blocks.levels[0])
    if not any(rule.others for rule in rules):
        return Product.of(blocks, levels)
    root, *others = [share / share.sum() for share in blocks.split(levels)]
    count = len(blocks.levels)
    parents = spanning_parents(np.zeros((count, count)), needed_edges(rules))
    # P(block) for every level of root and parent, where rules can then strike out cells
    tables = []
    for shares, parent in zip(others, parents, strict=True):
        above = blocks.levels[parent] if parent else 1
        tables.append(np.tile(shares, (len(root), above, 1)))
    strike_out(rules, parents, tables)
    return Tree.of(blocks, parents, root, tables)


def reachable_roots(blocks: Blocks, rules: Rules) -> Mask:
    """Levels of the root that at least one point has that breaks no rule."""
    if not rules:
        return np.ones(blocks.levels[0], dtype=bool)
    everywhere = _independent(blocks, np.ones(blocks.width), rules)
    levels = everywhere.tilt(np.zeros(blocks.width)).levels
    return levels[blocks.slices[0]] > 0
