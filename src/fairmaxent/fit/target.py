"""Targets θ: the probability wanted for each level of each block.

Targets live on the levels, so θ^d, θ^w, θ^b and the user's own are vectors of one kind; the features turn them
into expectations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted
from fairmaxent.data.weights import effective_rows
from fairmaxent.fit.problem import Problem
from fairmaxent.maxent.features import Features, cell_features
from fairmaxent.maxent.priors.protocol import Prior

# A cell of outcome and groups with fewer effective rows says too little about what it is like.
FEW_ROWS = 30


def level_means(blocks: Blocks, rows: Counted) -> Reals:
    """Share of each level among the rows: θ^d by their counts, θ^w where these are the weights w."""
    return np.concatenate(rows.tables([(block,) for block in range(len(blocks.levels))], blocks.levels)) / rows.total


def balanced(levels: Reals, blocks: Blocks) -> Reals:
    """θ^b (Remark 4.6): as given, but the protected attributes balanced and independent of the outcome."""
    shape = blocks.shape(0)
    outcome = levels[blocks.slices[0]].reshape(shape).sum(axis=tuple(range(1, len(shape))))
    groups = int(np.prod(shape[1:]))
    result = levels.copy()
    result[blocks.slices[0]] = np.repeat(outcome / groups, groups)
    return result


def with_chosen(levels: Reals, data: Reals, blocks: Blocks, chosen: Mapping[int, Reals | None]) -> Reals:
    """Replace the share of attributes outside the root by the chosen one, or by the data's own (None)."""
    result = levels.copy()
    for attribute, wanted in chosen.items():
        if attribute not in blocks.members[0]:
            part = blocks.slices[blocks.block_of(attribute)]
            result[part] = data[part] if wanted is None else wanted
    return result


def fair_levels(problem: Problem, weighted: Counted, fair: Reals, base: Prior, *, borrowed: Reals) -> Reals:
    """θ: the fair table for the root, the user's own marginals, and for the rest what keeps p(x | y, z).

    That is θ^w, the mean under the reweighted rows, but for the ``borrowed`` share of each cell (y, z), which has the
    base's mean in that cell.
    """
    blocks, root = problem.blocks, fair.ravel()
    lent = root * borrowed
    levels = np.zeros(blocks.width)
    if (lent < root).any():
        rows = weighted.reweighed(1 - borrowed) if lent.any() else weighted
        levels += (1 - lent.sum()) * level_means(blocks, rows)
    if lent.any():
        levels += lent.sum() * _means_in_cells(base, lent)
    levels[blocks.slices[0]] = root
    if not problem.chosen:
        return levels
    return with_chosen(levels, level_means(blocks, problem.table), blocks, problem.chosen)


def borrowed_shares(problem: Problem, in_small_cells: float) -> Reals:
    """How much of p(x | y, z) is to be the base's: all of it in a cell without rows, a given share in one with few.

    Otherwise the few would be taken for what their cell is like, and the other cells be tilted towards them.
    """
    total, squares = (problem.counted.tables([(0,)], problem.blocks.levels, of=of)[0] for of in ("counts", "squares"))
    few = np.nan_to_num(effective_rows(total, squares)) < FEW_ROWS
    return np.where(total == 0, 1.0, np.where(few, in_small_cells, 0.0))


def asked_of_rows(
    roles: Roles, weighted: Counted, levels: Reals, chosen: Mapping[int, Reals | None]
) -> tuple[Features, Reals]:
    """Features and θ for rows alone, given θ for rows and base: θ^w even in small cells, as they cannot borrow."""
    blocks = roles.blocks
    target = with_chosen(level_means(blocks, weighted), levels, blocks, dict.fromkeys(chosen))
    target[blocks.slices[0]] = levels[blocks.slices[0]]
    return cell_features(blocks, moment_scores(roles.domain, chosen), target), target


def _means_in_cells(base: Prior, masses: Reals) -> Reals:
    """Share of each level under the base, if the levels of the root had these masses instead of the base's."""
    roots, potentials = base.blocks.slices[0], np.zeros(base.blocks.width)
    ratio = np.divide(masses, base.tilt(potentials).levels[roots], out=np.zeros_like(masses), where=masses > 0)
    potentials[roots] = np.log(ratio, out=np.full_like(masses, -np.inf), where=masses > 0)
    return base.tilt(potentials).levels


def moment_scores(domain: Domain, chosen: Mapping[int, Reals | None]) -> list[Reals | None]:
    """Scores of the attributes that enter by their value; one with a chosen marginal enters by its levels."""
    return [
        attribute.scores() if attribute.features == "moment" and index not in chosen else None
        for index, attribute in enumerate(domain.attributes)
    ]
