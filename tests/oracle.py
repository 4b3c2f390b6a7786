"""The slow twin: every point of a small domain, written out.

Nothing here uses the code under test beyond plain data (sizes, tables, weights), so
that agreement proves it.
"""

import warnings
from itertools import product

import numpy as np

from fairmaxent.data.table import Blocks
from fairmaxent.maxent.priors.bases import Product
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.priors.tree import Tree


def points(sizes) -> np.ndarray:
    """All points of the product of alphabets, in lexicographic order."""
    return np.array(
        list(product(*(range(size) for size in sizes))), dtype=np.intp
    ).reshape(-1, len(sizes))


def dense(prior) -> np.ndarray:
    """q(α) of every point, from the prior's own numbers and the definition."""
    grid = points(prior.blocks.levels)
    if isinstance(prior, Rows):
        weight = {
            tuple(int(c) for c in row): np.exp(w)
            for row, w in zip(prior.codes, prior.log_weights, strict=True)
        }
        return np.array(
            [weight.get(tuple(int(c) for c in point), 0.0) for point in grid]
        )
    if isinstance(prior, Product):
        parts = prior.blocks.split(np.exp(prior.log_levels))
        return np.array(
            [
                np.prod([part[c] for part, c in zip(parts, point, strict=True)])
                for point in grid
            ]
        )
    if isinstance(prior, Tree):
        return np.array([_tree_probability(prior, point) for point in grid])
    if isinstance(prior, Mixture):
        return sum(
            np.exp(share) * dense(part)
            for share, part in zip(prior.log_shares, prior.parts, strict=True)
        )
    raise TypeError(prior)


def _tree_probability(tree: Tree, point) -> float:
    value = np.exp(tree.log_root[point[0]])
    hub = next(
        (
            block
            for block, parent in enumerate(tree.parents, start=1)
            if parent == block
        ),
        None,
    )
    for block in range(1, len(point)):
        parent = tree.parents[block - 1]
        trunk = (
            point[0]
            if hub in (None, block)
            else point[0] * tree.blocks.levels[hub] + point[hub]
        )
        value *= np.exp(
            tree.log_tables[block - 1][
                trunk, point[parent] if parent not in (0, hub) else 0, point[block]
            ]
        )
    return value


def one_hot(blocks: Blocks) -> np.ndarray:
    """Indicator of every level for every point."""
    grid = points(blocks.levels)
    columns = [grid[:, [b]] == np.arange(size) for b, size in enumerate(blocks.levels)]
    return np.concatenate(columns, axis=1).astype(float)


def matrix_of(features) -> np.ndarray:
    """φ as a dense matrix, levels × features."""
    matrix = np.zeros((features.blocks.width, features.count))
    for feature, start in enumerate(features.starts):
        stop = (
            features.starts[feature + 1]
            if feature + 1 < features.count
            else len(features.levels)
        )
        for entry in range(start, stop):
            matrix[features.levels[entry], feature] = features.values[entry]
    return matrix


def tilted(
    q: np.ndarray, blocks: Blocks, potentials: np.ndarray
) -> tuple[float, np.ndarray]:
    """log Z and the normalised tilted distribution, in extended precision."""
    with np.errstate(invalid="ignore"):
        scores = (
            np.where(one_hot(blocks) > 0, potentials, 0.0)
            .sum(axis=1)
            .astype(np.longdouble)
        )
    with np.errstate(divide="ignore"):
        scores = scores + np.log(q.astype(np.longdouble))
    top = scores.max()
    if not np.isfinite(top):
        return -np.inf, np.zeros(len(q))
    weights = np.exp(scores - top)
    return float(top + np.log(weights.sum())), (weights / weights.sum()).astype(float)


def random_blocks(
    rng: np.random.Generator, *, attributes: int | None = None, largest: int = 4
) -> Blocks:
    """A root of two or three attributes and a few others."""
    count = attributes or int(rng.integers(2, 6))
    sizes = rng.integers(2, largest + 1, size=count)
    root = rng.permutation(count)[: int(rng.integers(1, min(3, count) + 1))]
    return Blocks.rooted([int(s) for s in sizes], [int(r) for r in root])


def random_rows(rng: np.random.Generator, blocks: Blocks, rows: int = 30) -> Rows:
    """Some rows with random weights."""
    codes = np.unique(
        np.column_stack([rng.integers(0, k, rows) for k in blocks.levels]), axis=0
    )
    return Rows.weighted(blocks, codes, rng.dirichlet(np.ones(len(codes))))


def random_tree(
    rng: np.random.Generator, blocks: Blocks, *, zeros: float = 0.0, hub: bool = False
) -> Tree:
    """A random rooted forest with random tables, some cells struck out, all given the
    first block if there is a hub.
    """
    count = len(blocks.levels)
    order = [int(b) for b in rng.permutation(np.arange(1 + hub, count))]
    parents = [int(hub)] * (count > 1) + [0] * (count - 2)
    for place, block in enumerate(order):
        parents[block - 1] = int(rng.choice([0, *order[:place]]))
    roots = blocks.levels[0]
    tables = []
    for block, parent in enumerate(parents, start=1):
        trunk = roots * blocks.levels[1] if hub and block > 1 else roots
        above = blocks.levels[parent] if parent not in (0, block) else 1
        table = rng.dirichlet(np.ones(blocks.levels[block]), size=(trunk, above))
        table[rng.random(table.shape) < zeros] = 0.0
        tables.append(table)
    return Tree.of(blocks, parents, rng.dirichlet(np.ones(roots)), tables)


def random_prior(rng: np.random.Generator, blocks: Blocks, kind: str):
    """One prior of each kind."""
    rows = random_rows(rng, blocks)
    base = {
        "uniform": Product.of(blocks, np.ones(blocks.width)),
        "product": Product.of(blocks, rng.random(blocks.width) + 0.05),
        "tree": random_tree(rng, blocks),
        "pruned tree": random_tree(rng, blocks, zeros=0.1),
        "hub": random_tree(rng, blocks, zeros=0.02, hub=True),
        "rows": rows,
    }[kind.removesuffix(" mixture")]
    if kind.endswith("mixture"):
        share = float(rng.choice([0.1, 0.5, 0.9]))
        return Mixture.of([share, 1 - share], [base, rows])
    return base


def divergence(table: np.ndarray, prior: np.ndarray) -> float:
    """KL(table‖prior)."""
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / prior[seen])).sum())


def closest(variable, prior, conditions):
    """The value of a cvxpy variable of least KL to the prior; None where nothing meets
    the conditions.

    The tolerances are tighter than the solver can always reach: it then says
    "inaccurate", here better than 1e-8.
    """
    import cvxpy as cp

    problem = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(variable, prior))), conditions)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
        )
    return (
        variable.value if problem.status in ("optimal", "optimal_inaccurate") else None
    )


_MIXED = [f"{base} mixture" for base in ("uniform", "product", "tree")]
KINDS = ["rows", "uniform", "product", "tree", "pruned tree", *_MIXED, "hub"]
