"""The weights of rows in memory, the first output of a fit."""

from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.frames import read_weights
from fairmaxent.data.roles import check_weight_name
from fairmaxent.data.table import Reals, match_rows
from fairmaxent.distribution import Distribution
from fairmaxent.engines.rows import row_prior
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.target import asked_of_rows
from fairmaxent.maxent.optimum import maximise_entropy
from fairmaxent.maxent.priors.mixture import rows_of

NOTHING = 1e-9  # a part of a row that is the solver's
MODE_ROWS = Option("mode", "rows")


def spread_over_rows(fit: Solved, fair: Reals | None = None) -> Reals:
    """Weight of one input row of each distinct row, before its design weight.

    It is by outcome if rows are relabelled. ``fair`` are the weights of the prior's
    rows, by default those of the fair distribution on these rows.
    """
    if fair is None:
        fair = _fair_weights(fit)
    if fit.soft is None:
        counts = fit.table.collect().counts
        # rows of design weight zero stay at zero
        return fair / np.where(counts > 0, counts, 1.0)

    parts = fit.problem.profiles.by_row(fair)
    return np.where(parts > NOTHING * parts.sum(axis=1, keepdims=True), parts, 0.0)


def _fair_weights(fit: Solved) -> Reals:
    refuse_filled_cells(fit)
    rows = fit.weighted.collect()
    # If nothing is asked of columns outside the fair table, the weights w meet the
    # target θ^w as they are.
    asked = set(fit.request.target or ())
    if isinstance(fit.request, Request) and asked <= set(fit.roles.names):
        return fit.table.size * rows.counts / rows.total
    alone = rows_alone(fit).density.log_probability(rows.codes)
    return fit.table.size * np.exp(alone)


def weigh_rows(
    fit: Solved,
    weights: Reals,
    frame: nw.DataFrame[Any],
    name: str,
) -> Any:
    """Add a column of weights to rows in memory, in any order.

    Relabelled rows are there once for each outcome that has one.
    """
    check_weight_name(name, frame.columns)
    outcome = fit.roles.names[0]
    if fit.soft is not None and not fit.roles.attributes[0].is_value_coded:
        raise InputError(
            f"outcome {outcome!r} consists of bins, so a relabelled row has no value to"
            " show; turn it into levels before the fit, or use ",
            MODE_ROWS,
        )

    raw = read_weights(frame, fit.request.weight)
    by_row = with_design(
        _own_weights(fit, weights, frame),
        None if raw is None else raw / fit.weight_scale,
    )
    like = frame.get_column(outcome)
    if fit.soft is None:
        return frame.with_columns(frames.number_column(name, by_row, like)).to_native()

    parts = []
    for level in range(by_row.shape[1]):
        kept = np.flatnonzero(by_row[:, level] > 0)
        column = fit.domain.attribute(outcome).column_of(np.full(len(kept), level))
        parts.append(
            frame[kept].with_columns(
                column, frames.number_column(name, by_row[kept, level], like)
            )
        )
    return nw.concat(parts).to_native()


def _own_weights(fit: Solved, weights: Reals, frame: nw.DataFrame[Any]) -> Reals:
    """The weights of rows before their design weights.

    They are those of the distinct rows, unless groups are probabilities: then each row
    has its own.
    """
    if fit.weighed is not None:
        return fit.weighed.weigh(frame, fit.domain)
    codes = fit.encoded(frame)
    distinct_row = match_rows(fit.table.collect().codes, codes, fit.blocks.levels)
    if (distinct_row < 0).any():
        row = int(np.argmax(distinct_row < 0))
        raise InputError(
            f"row {row} was not in the fitted table; pass that table, with its rows in"
            " any order"
        )
    return weights[distinct_row]


def with_design(weights: Reals, design: Reals | None) -> Reals:
    """Multiply the weights of rows, or by outcome, by their scaled design weights."""
    if design is None:
        return weights
    return (weights.T * design).T


def refuse_filled_cells(fit: Solved) -> None:
    """Weights cannot fill cells that no row is in."""
    for cell in fit.filled:
        group = fit.roles.describe_group(tuple(range(1, len(cell))), cell[1:])
        raise InfeasibleError(
            "weights cannot reach the fair table:"
            f" {fit.roles.describe_cell(cell)} needs a share, but has no rows to weigh."
            " Use ",
            MODE_ROWS,
            " or ",
            Option("mode", "top-up"),
            f", ask for lower rates, merge {group} with another group by naming both"
            " alike in ",
            Option("levels"),
            ", or set small groups apart with ",
            Option("smallest_group", "2%"),
            ".",
        )


def rows_alone(fit: Solved) -> Distribution:
    """The fair distribution on the rows alone (C = 0)."""
    prior = fit.optimum.dual.prior
    rows = rows_of(prior) or row_prior(fit.distribution.blocks, fit.weighted)
    if rows is prior:  # C = 0 already
        return fit.distribution

    features = fit.optimum.dual.features
    target = fit.target
    if isinstance(fit.request, Request):
        features, target = asked_of_rows(fit.problem, fit.weighted, fit.target)
    try:
        optimum = maximise_entropy(
            rows,
            features,
            target,
            describe=fit.roles.describe_level,
        )
    except InfeasibleError as problem:
        raise InfeasibleError(
            "weights alone cannot meet the target: ",
            problem,
            " For this fit use ",
            MODE_ROWS,
            " or ",
            Option("mode", "top-up"),
            ".",
        ) from problem
    return Distribution.of(fit.domain, optimum)
