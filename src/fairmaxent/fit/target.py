"""Targets θ: the probability wanted for each level of each block.

Targets live on the levels, so θ^d, θ^w, θ^b and the user's own are vectors of one kind; the features turn them
into expectations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks, mask
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import Counted
from fairmaxent.fit.problem import Problem
from fairmaxent.maxent.priors.protocol import Prior


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


def fair_levels(problem: Problem, weighted: Counted, fair: Reals, base: Prior) -> Reals:
    """θ: the fair table for the root, the user's own marginals, and for the rest what keeps p(x | y, z).

    That is θ^w, the mean under the reweighted rows; a cell that has no rows to tell takes the base's p(x | y, z).
    """
    blocks = problem.blocks
    roots = blocks.slices[0]
    filled = np.flatnonzero((fair.ravel() > 0) & (problem.empirical.ravel() == 0))
    levels = (1 - fair.ravel()[filled].sum()) * level_means(blocks, weighted)
    for cell in filled:
        only = np.ones(blocks.width, dtype=bool)
        only[roots] = np.arange(blocks.levels[0]) == cell
        levels += fair.ravel()[cell] * base.tilt(mask(only)).levels
    levels[roots] = fair.ravel()
    if not problem.chosen:
        return np.asarray(levels)
    return with_chosen(levels, level_means(blocks, problem.table), blocks, problem.chosen)


def moment_scores(domain: Domain, chosen: Mapping[int, Reals | None]) -> list[Reals | None]:
    """Scores of the attributes that enter by their value; one with a chosen marginal enters by its levels."""
    return [
        attribute.scores() if attribute.features == "moment" and index not in chosen else None
        for index, attribute in enumerate(domain.attributes)
    ]
