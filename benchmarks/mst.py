"""MST (McKenna, Miklau and Sheldon 2021), written around mbi: private rows to compare
ours with.

A third of ρ each: every column alone; the choice of a spanning tree of pairs; these
pairs. Levels with fewer rows than three standard deviations of the noise are merged
before pairs are chosen, and drawn uniformly in the end. Noise comes from NumPy: this is
a yardstick, not for real people. Runs in an interpreter that may have nothing but NumPy
and mbi, so this file imports nothing else.
"""

import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

STEPS, FIRST_STEPS = 5000, 1000  # of mirror descent, as private-pgm has them
_HIDDEN = 3.0  # standard deviations


def mst_rows(codes: Any, sizes: Any, rho: float, seed: int) -> Any:
    """Draw as many rows as mbi's model says there are."""
    from mbi import Dataset, Domain, LinearMeasurement, WeightedQuery, estimation

    rng = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002 - what mbi draws with
    names = [f"x{number}" for number in range(len(sizes))]
    sigma = np.sqrt(3 * len(names) / (2 * rho))
    alone, kept = [], {}
    for number, name in enumerate(names):
        noisy = np.bincount(codes[:, number], minlength=sizes[number]) + rng.normal(
            0, sigma, sizes[number]
        )
        seen = noisy >= _HIDDEN * sigma
        place = np.where(seen, np.cumsum(seen) - 1, seen.sum())
        kept[name] = place
        if seen.all():
            alone.append(LinearMeasurement(noisy, (name,), sigma))
            continue
        # a sum has more noise than a count
        weight = np.append(np.ones(seen.sum()), 1 / np.sqrt((~seen).sum()))
        merged = np.append(noisy[seen], noisy[~seen].sum())
        alone.append(
            LinearMeasurement(merged * weight, (name,), sigma, WeightedQuery(weight))
        )
    domain = Domain(names, [int(place.max()) + 1 for place in kept.values()])
    data = Dataset(
        {name: kept[name][codes[:, number]] for number, name in enumerate(names)},
        domain,
    )
    engine = estimation.MirrorDescent()
    pairs = _chosen(
        data, engine.estimate(domain, alone, iters=FIRST_STEPS), rho / 3, rng
    )
    sigma = np.sqrt(3 * len(pairs) / (2 * rho))
    noisy_pairs = []
    for pair in pairs:
        table = np.asarray(data.project(pair).datavector())
        noisy_pairs.append(
            LinearMeasurement(table + rng.normal(0, sigma, table.size), pair, sigma)
        )
    rows = (
        engine.estimate(domain, alone + noisy_pairs, iters=STEPS)
        .synthetic_data()
        .decompress(kept)
    )
    return np.column_stack([np.asarray(rows.data[name]) for name in names])


def _chosen(data: Any, model: Any, rho: float, rng: Any) -> list[tuple[str, str]]:
    """Choose a spanning tree edge by edge with the exponential mechanism, each for an
    equal part of ρ.

    Columns of the model are independent, so its pairs are products; asking mbi for each
    takes minutes to compile.
    """
    names = data.domain.attributes
    pairs = list(combinations(names, 2))
    shares = {name: np.asarray(model.marginals[(name,)].datavector()) for name in names}
    off = {
        (a, b): (
            np.abs(
                data.project((a, b)).datavector()
                - np.outer(shares[a], shares[b]).ravel() / model.total
            ).sum()
        )
        for a, b in pairs
    }
    tree, edges = {name: name for name in names}, []
    for _ in names[1:]:
        pairs = [pair for pair in pairs if tree[pair[0]] != tree[pair[1]]]
        scores = (
            np.array([float(off[pair]) for pair in pairs])
            * np.sqrt(8 * rho / (len(names) - 1))
            / 2
        )
        chances = np.exp(scores - scores.max())
        edges.append(pairs[rng.choice(len(pairs), p=chances / chances.sum())])
        old, new = (tree[end] for end in edges[-1])
        tree = {name: new if top == old else top for name, top in tree.items()}
    return edges


def main() -> None:
    """Turn ``table.npz`` (codes, sizes) into ``rows.npz`` (codes, CPU seconds): mst.py
    table.npz rows.npz ρ seed.
    """
    import jax

    jax.config.update("jax_enable_x64", True)  # noqa: FBT003
    jax.config.update("jax_enable_compilation_cache", False)  # noqa: FBT003
    source, target, rho, seed = sys.argv[1:]
    with np.load(Path(source)) as stored:
        codes, sizes = stored["codes"].astype(np.intp), stored["sizes"]
    began = time.process_time()
    rows = mst_rows(codes, sizes, float(rho), int(seed))
    np.savez_compressed(
        target, codes=rows.astype(np.uint8), cpu=time.process_time() - began
    )


if __name__ == "__main__":
    main()
