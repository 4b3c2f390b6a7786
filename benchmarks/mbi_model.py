"""mbi (private-pgm): a graphical model of the fair marginals, and rows from it.

Runs in an interpreter that may have nothing but NumPy and mbi, so this file imports
nothing else.
"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.meter import repeated

STEPS = 1000  # of mirror descent, as in its documentation


def model_cpu(path: str) -> dict[str, Any]:
    """CPU seconds to fit marginals outcome × group × column of weighted codes, and to
    draw as many rows.
    """
    from importlib.metadata import version

    import jax

    jax.config.update("jax_enable_x64", True)  # noqa: FBT003
    with np.load(Path(path)) as stored:
        codes, sizes, weights = stored["codes"], stored["sizes"], stored["weights"]
    cost, _ = repeated(
        lambda: _fit(codes, sizes, weights).synthetic_data(rows=len(codes))
    )
    return {"cpu": cost.cpu, "peak": cost.peak, "version": version("mbi")}


def _fit(codes: Any, sizes: Any, weights: Any) -> Any:
    """Outcome and group come first."""
    from mbi import Domain, LinearMeasurement, estimation

    names = [f"x{number}" for number in range(len(sizes))]
    measured = []
    for column in range(2, len(sizes)):
        clique = [0, 1, column]
        shape = [int(sizes[place]) for place in clique]
        cells = np.ravel_multi_index(tuple(codes[:, clique].T.astype(np.intp)), shape)
        table = np.bincount(cells, weights, minlength=int(np.prod(shape)))
        measured.append(
            LinearMeasurement(table, tuple(names[place] for place in clique))
        )
    domain = Domain(names, [int(size) for size in sizes])
    return estimation.MirrorDescent().estimate(domain, measured, iters=STEPS)
