"""Priors as records and arrays, and back."""

from __future__ import annotations

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.column_storage import Arrays, Record, nest, unnest
from fairmaxent.errors import StorageError
from fairmaxent.fit.stored_arrays import distinct_codes, logarithms
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.product import Product
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.priors.tree import Tree


def pack_prior(prior: Prior) -> tuple[Record, Arrays]:
    """Return a record and arrays from which `unpack_prior` restores the prior."""
    if isinstance(prior, Rows):
        return {"kind": "rows"}, {"codes": prior.codes, "log_weights": prior.log_weights}
    if isinstance(prior, Product):
        return {"kind": "product"}, {"log_levels": prior.log_levels}
    if isinstance(prior, Tree):
        tables = {str(number): table for number, table in enumerate(prior.log_tables)}
        return {"kind": "tree", "parents": list(prior.parents)}, {"root": prior.log_root, **tables}
    if isinstance(prior, Mixture):
        packed = [pack_prior(part) for part in prior.parts]
        arrays: Arrays = {"log_shares": prior.log_shares}
        for number, (_, part) in enumerate(packed):
            arrays |= nest(str(number), part)
        return {"kind": "mixture", "parts": [record for record, _ in packed]}, arrays
    raise StorageError(f"a prior of type {type(prior).__name__} cannot be stored")


def unpack_prior(record: Record, arrays: Arrays, blocks: Blocks) -> Prior:
    """Restore what `pack_prior` wrote, after checking it."""
    kind = record["kind"]
    if kind == "rows":
        codes = distinct_codes(arrays["codes"], blocks)
        return Rows(blocks, codes, logarithms(arrays["log_weights"], len(codes)))
    if kind == "product":
        return Product(blocks, logarithms(arrays["log_levels"], blocks.width))
    if kind == "tree":
        return _unpack_tree(record, arrays, blocks)
    if kind == "mixture":
        parts = tuple(
            unpack_prior(part, unnest(str(number), arrays), blocks) for number, part in enumerate(record["parts"])
        )
        return Mixture(parts, logarithms(arrays["log_shares"], len(parts)))
    raise ValueError(f"unknown kind of prior {kind!r}")


def _unpack_tree(record: Record, arrays: Arrays, blocks: Blocks) -> Tree:
    root, *sizes = blocks.levels
    parents = tuple(record["parents"])
    if len(parents) != len(sizes) or not {*parents} <= {*range(len(blocks.levels))}:
        raise ValueError("the tree has other parents than blocks")
    shapes = [(root, blocks.levels[parent] if parent else 1, size) for parent, size in zip(parents, sizes, strict=True)]
    tables = tuple(logarithms(arrays[str(number)], *shape) for number, shape in enumerate(shapes))
    tree = Tree(blocks, parents, logarithms(arrays["root"], root), tables)
    if len(tree.order) != len(parents):
        raise ValueError("the tree has a cycle")
    return tree
