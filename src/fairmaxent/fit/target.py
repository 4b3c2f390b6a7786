"""θ: the share of each level that the fair distribution is to have."""

from collections.abc import Mapping

import numpy as np

from fairmaxent.data.table import Blocks, Counted, Reals
from fairmaxent.fit.problem import Problem
from fairmaxent.maxent.features import Features, cell_features
from fairmaxent.maxent.priors.protocol import Prior


def level_means(blocks: Blocks, rows: Counted) -> Reals:
    """θ: the share of each level among the rows.

    It is θ^d by their counts, and θ^w where these are the weights w.
    """
    each = [(block,) for block in range(len(blocks.levels))]
    return np.concatenate(rows.tables(each, blocks.levels)) / rows.total


def _with_chosen(
    levels: Reals,
    data: Reals,
    blocks: Blocks,
    chosen: Mapping[int, Reals | None],
) -> Reals:
    """Replace the share of attributes outside the root by the chosen or data's own."""
    for attribute, wanted in chosen.items():
        if attribute not in blocks.members[0]:
            part = blocks.slices[blocks.block_of(attribute)]
            if wanted is None:
                levels[part] = data[part]
            else:
                levels[part] = wanted
    return levels


def fair_levels(
    problem: Problem,
    weighted: Counted,
    fair: Reals,
    base: Prior,
    *,
    borrowed: Reals,
) -> Reals:
    """θ: the fair table for the root, the user's own marginals, and the rest.

    The rest is what keeps p(x | y, z): θ^w, the mean under the reweighted rows, but for
    the ``borrowed`` share of each cell (y, z), which has the base's mean in that cell.
    """
    roots = base.blocks.slices[0]
    root = fair.ravel()
    blocks = base.blocks
    lent = root * borrowed
    levels = np.zeros(blocks.width)
    if (lent < root).any():
        rows = weighted
        if lent.any():
            rows = weighted.reweighed(1 - borrowed)
        levels += (1 - lent.sum()) * level_means(blocks, rows)
    if lent.any():
        # They give the levels of the root these masses instead of the base's.
        potentials = np.zeros(blocks.width)
        ratio = np.divide(
            lent,
            base.tilt(potentials).levels[roots],
            out=np.zeros_like(lent),
            where=lent > 0,
        )
        potentials[roots] = np.log(
            ratio, out=np.full_like(lent, -np.inf), where=lent > 0
        )
        levels += lent.sum() * base.tilt(potentials).levels
    levels[roots] = root
    data = levels
    if problem.chosen:
        data = level_means(blocks, problem.table)
    return _with_chosen(levels, data, blocks, problem.chosen)


def asked_of_rows(
    problem: Problem, weighted: Counted, levels: Reals
) -> tuple[Features, Reals]:
    """Features and θ for rows alone, given θ for rows and base.

    It is θ^w even in small cells, as they cannot borrow.
    """
    blocks = problem.blocks
    target = _with_chosen(
        level_means(blocks, weighted), levels, blocks, dict.fromkeys(problem.chosen)
    )
    target[blocks.slices[0]] = levels[blocks.slices[0]]
    return cell_features(blocks, problem.moment_scores, target), target
