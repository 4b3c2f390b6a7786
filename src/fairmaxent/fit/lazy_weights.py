"""The weights of rows that stay in their engine."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairmaxent.data.roles import check_weight_name
from fairmaxent.data.table import Blocks, Codes, Reals, ratio
from fairmaxent.engines.lazy_counts import Coding, join_weights, weigh_by_part
from fairmaxent.engines.lazy_frame import Lazy, check_column, names_of
from fairmaxent.errors import InputError
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.weights import MODE_ROWS, refuse_filled_cells, rows_alone
from fairmaxent.maxent.forbidden import Rules, break_any


def weigh_lazily(
    fit: Solved,
    weights: Reals | None,
    lazy: Lazy,
    name: str,
) -> Any:
    """Join a lazy frame with the weights of its distinct rows, inside its engine."""
    if fit.soft is not None:
        raise InputError(
            "a relabelled fit weighs tables in memory only, because each row appears"
            " there once per outcome; pass the collected table, or use ",
            MODE_ROWS,
        )

    for column in fit.columns:
        check_column(lazy, column)
    check_weight_name(name, names_of(lazy))
    weight = fit.request.weight
    scale = fit.weight_scale
    # the distinct rows are on workers
    if weights is None and not lazy.implementation.is_dask():
        raise InputError(
            "the rows of this fit stay on a Dask cluster; pass the Dask frame that was"
            " fitted, or for another kind of frame use fit.collect().weigh(frame)"
        )
    if weights is None or lazy.implementation.is_spark_like():
        of_levels = partial(
            level_weights,
            blocks=fit.blocks,
            log_levels=_log_levels(fit),
            rules=fit.problem.rules,
        )
        if weights is None or _agree(fit, of_levels, weights):
            coding = Coding.of(fit.domain, fit.blocks, weight, taken=())
            return weigh_by_part(lazy, coding, of_levels, scale=scale, name=name)
    return join_weights(
        lazy,
        fit.domain,
        fit.blocks,
        fit.table.collect(),
        weights,
        weight=weight,
        scale=scale,
        name=name,
    )


def _log_levels(fit: Solved) -> Reals:
    """Logarithms of the weights of levels, whose product is the weight of a row.

    For w(α)/n_α is a factor that depends on its cell.
    """
    blocks = fit.roles.blocks
    refuse_filled_cells(fit)
    alone = rows_alone(fit)
    (fair,) = fit.weighted.tables([(0,)], blocks.levels)
    (old,) = fit.problem.counted.tables([(0,)], blocks.levels)
    factor = ratio(fit.table.size * fair, old)
    log_levels = alone.potentials.copy()
    with np.errstate(divide="ignore"):
        log_levels[blocks.slices[0]] += np.log(factor) - alone.tilted.log_partition
    return log_levels


def level_weights(
    codes: Codes, blocks: Blocks, log_levels: Reals, rules: Rules
) -> Reals:
    """The product of the weights of each row's levels; 0 if it breaks a rule."""
    scores = np.zeros(len(codes))
    for column, part in zip(codes.T, blocks.split(log_levels), strict=True):
        scores += part[column]
    return np.where(break_any(rules, codes), 0.0, np.exp(scores))


def _agree(fit: Solved, of_levels: Callable[[Codes], Reals], weights: Reals) -> bool:
    """Whether the products are the weights: not if the solution gives up some rows."""
    rows = fit.table.collect()
    counts = rows.counts > 0  # rows of design weight zero stay at zero anyway
    return np.allclose(of_levels(rows.codes)[counts], weights[counts])
