"""Exact rates: what was asked of a whole table, and how far weights and drawn rows are
from it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.judging import group_means, worst_ratio
from benchmarks.people import Fold, people

DRAWN = 10_000
ASKED: Sequence[Mapping[str, float | None]] = (
    {"statistical_rate": 1.0, "representation_rate": None},
    {"statistical_rate": 1.0, "representation_rate": 1.0},
    {"statistical_rate": 0.9, "representation_rate": 0.5},
)


def exact_rates(name: str) -> list[dict[str, Any]]:
    """Ask for rates on a whole table, and compare weights and drawn rows with them: a
    job of a process of its own.
    """
    import fairmaxent

    frame, _, (outcome, protected, good) = people(name)
    whole, cells = Fold(frame, frame, outcome, protected, good, seed=0), []
    # loads what is loaded at first use
    fairmaxent.debias(frame, outcome, protected).weights()
    for groups in ("joint",) if isinstance(protected, str) else ("joint", "each"):
        compared = [whole]
        if groups == "each":
            compared = [
                Fold(frame, frame, outcome, column, good, seed=0)
                for column in protected
            ]
        for asked in ASKED:
            began = time.process_time()
            fit = fairmaxent.debias(
                frame,
                outcome,
                protected,
                favourable=good,
                groups=groups,
                random_state=0,
                **asked,
            )
            weights = np.asarray(fit.weights())
            seconds = time.process_time() - began
            drawn = fit.sample(DRAWN)
            cells.append(
                {"data": name, "rows": len(frame), "groups": groups, "asked": asked}
                | {
                    "before": min(
                        _rates(own, np.ones(len(frame)))["statistical_rate"]
                        for own in compared
                    )
                }
                | {"short": max(_short(own, weights, asked) for own in compared)}
                | {"rows off": max(_rows_off(own, weights, drawn) for own in compared)}
                | {"seconds": round(seconds, 3)}
            )
    return cells


def _rates(fold: Fold, weights: NDArray[Any]) -> dict[str, float]:
    """The smallest over the largest group's share of good outcomes, and of people."""
    groups = fold.groups(fold.train)
    good = worst_ratio(group_means(fold.labels(fold.train), groups, weights))
    return {
        "statistical_rate": good or 0.0,
        "representation_rate": worst_ratio(np.bincount(groups, weights)) or 0.0,
    }


def _short(
    fold: Fold, weights: NDArray[Any], asked: Mapping[str, float | None]
) -> float:
    """By how much the weights fall short of a rate that was asked for."""
    found = _rates(fold, weights)
    return max(
        0.0, *(rate - found[name] for name, rate in asked.items() if rate is not None)
    )


def _rows_off(fold: Fold, weights: NDArray[Any], drawn: Any) -> float:
    """The largest difference, in rows, between the drawn rows of an outcome and group
    and their exact number.
    """

    def cells(frame: Any) -> NDArray[np.intp]:
        return 2 * fold.groups(frame) + fold.labels(frame)

    exact = np.bincount(cells(fold.train), weights) / weights.sum() * len(drawn)
    return float(np.abs(np.bincount(cells(drawn), minlength=len(exact)) - exact).max())
