"""Weights for the rows of a Dask frame, computed from their levels alone: no join, and no row moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.roles import Roles
from fairmaxent.data.weights import WeightScale
from fairmaxent.engines.lazy.frame import Lazy, fresh_name, names_of
from fairmaxent.engines.lazy.level_expressions import key_parts, with_keys
from fairmaxent.engines.lazy.row_counts import unpacked
from fairmaxent.errors import InputError
from fairmaxent.maxent.forbidden import Rule, break_any


def weigh_rows(
    lazy: Lazy,
    roles: Roles,
    log_levels: Reals,
    *,
    rules: Sequence[Rule],
    weight: str | None,
    scale: WeightScale,
    name: str,
) -> Any:
    """Return the Dask frame with a column ``name``: the product of the weights of a row's levels and its design weight.

    Design weights are scaled. Rows that break a rule get the weight 0.
    """
    if not lazy.implementation.is_dask():
        raise InputError(
            "the rows of this fit stay on a Dask cluster; pass the Dask frame that was fitted, or for another kind of "
            "frame use fit.collect().weigh(frame)"
        )
    blocks = roles.blocks
    keys = [fresh_name(f"key{number}", [*names_of(lazy), name]) for number, _ in enumerate(key_parts(blocks.levels))]
    coded = with_keys(lazy, roles.domain, blocks, keys).to_native()
    shared = (keys, blocks, log_levels, tuple(rules), weight, scale, name)
    return coded.map_partitions(_weighed, *shared, meta=_weighed(coded._meta, *shared))


def _weighed(
    frame: Any,
    keys: list[str],
    blocks: Blocks,
    log_levels: Reals,
    rules: Sequence[Rule],
    weight: str | None,
    scale: WeightScale,
    name: str,
) -> Any:
    """Weigh the rows of one partition, a pandas frame."""
    codes = unpacked([frame[key].to_numpy(dtype=np.int64) for key in keys], blocks)
    scores = np.zeros(len(codes))
    for column, part in zip(codes.T, blocks.split(log_levels), strict=True):
        scores += part[column]
    weights = np.where(break_any(rules, codes), 0.0, np.exp(scores))
    if weight is not None:
        weights *= scale.scaled(frame[weight].to_numpy(dtype=np.float64))
    return frame.drop(columns=keys).assign(**{name: weights})
