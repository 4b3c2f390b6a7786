"""A million distinct rows with a target that they do not have: the whole solve against
one pass over the rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.floor import tilted_means
from benchmarks.meter import reading, repeated
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.process import fresh
from benchmarks.tables import correlated_codes


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int
    attributes: int
    levels: int


FULL = Sizes(rows=1_000_000, attributes=20, levels=7)
QUICK = Sizes(rows=100_000, attributes=20, levels=7)

PASSES = 30.0  # NumPy passes that the whole solve may take
GRADIENT = 1e-8
COPIES, BESIDES = 3, 200.0  # of the coded rows, and megabytes for the rest


def measure(sizes: Sizes) -> Outcome:
    """Measure in one process: the pass and the solve."""
    found = fresh(solve, sizes.rows, sizes.attributes, sizes.levels)
    times = found["solve"] / found["pass"]
    memory = COPIES * found["coded"] + BESIDES
    rows = (
        ("distinct rows", found["rows"]),
        ("features", found["features"]),
        ("one NumPy pass, CPU s", found["pass"]),
        ("whole solve, CPU s", found["solve"]),
        ("whole solve, seconds on the clock", found["wall"]),
        ("whole solve, passes", times),
        ("iterations", found["iterations"]),
        ("max |gradient|, by the NumPy pass", found["gradient"]),
        ("coded rows, MB", found["coded"]),
        ("peak, MB", found["peak"]),
    )
    return Outcome(
        "A million rows",
        "Rows alone as the prior, θ ≠ θ^w. The pass computes ⟨λ, φ⟩, softmax and the"
        " mean of every feature.",
        (Table("", ("what", "measured"), rows),),
        (
            Bar("Whole solve", times, PASSES, "NumPy passes"),
            Bar("max |gradient|", found["gradient"], GRADIENT),
            Bar("Peak memory of the solve", found["peak"], memory, "MB"),
        ),
    )


def solve(rows: int, attributes: int, levels: int) -> dict[str, Any]:
    """Solve for the averages that the rows have under multipliers drawn at random."""
    from fairmaxent.data.table import Blocks
    from fairmaxent.maxent.features import cell_features
    from fairmaxent.maxent.optimum import maximise_entropy
    from fairmaxent.maxent.priors.rows import Rows

    blocks = Blocks.rooted([levels] * attributes, [0])
    codes = distinct_codes(rows, attributes, levels)
    rng = np.random.default_rng(1)
    weights = rng.gamma(3, size=len(codes))
    weights /= weights.sum()
    hidden = list(rng.normal(scale=0.3, size=(attributes, levels)))
    target = np.concatenate(tilted_means(codes, blocks.levels, np.log(weights), hidden))
    features = cell_features(blocks, [None] * attributes, target)
    one_pass, _ = repeated(
        lambda: tilted_means(codes, blocks.levels, np.log(weights), hidden)
    )
    with reading() as cost:
        optimum = maximise_entropy(
            Rows.weighted(blocks, codes, weights), features, target, describe=str
        )
    reached = tilted_means(
        codes, blocks.levels, np.log(weights), blocks.split(optimum.potentials)
    )
    return {
        "rows": len(codes),
        "features": features.count,
        "pass": one_pass.cpu,
        "solve": cost.cpu,
        "wall": cost.wall,
        "peak": cost.peak,
        "coded": codes.nbytes / 1e6,
        "iterations": optimum.solution.iterations,
        "gradient": float(np.abs(np.concatenate(reached) - target).max()),
    }


def distinct_codes(rows: int, attributes: int, levels: int) -> Any:
    """Return that many distinct rows in lexicographic order, or as many as there are
    among a few more.
    """
    from fairmaxent.data.table import Table as Rows

    codes = correlated_codes(rows + rows // 100, attributes, levels)
    return np.asfortranarray(Rows.compress(codes, [levels] * attributes).codes[:rows])
