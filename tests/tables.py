"""Random biased tables, rates by group-by, and how often tests repeat: what the tests
share.
"""

import numpy as np
import pandas as pd
import pytest

from fairmaxent import Model

EQUAL_PROBABILITIES = Model("logistic", parity="probabilities")  # rows are relabelled
SHARE = 1.0  # of the repetitions; conftest lowers it where slow tests are left out


def times(count: int) -> int:
    """So many repetitions of a random test in the exhaustive run, and a quarter of them
    in the quick one.
    """
    return max(1, round(SHARE * count))


def spread(count: int, size: int) -> set[int]:
    """So many of the places 0 … size - 1, spread over all of them.

    >>> sorted(spread(1, 10)), sorted(spread(3, 10)), sorted(spread(5, 3))
    ([0], [0, 4, 9], [0, 1, 2])
    """
    step = (size - 1) / max(1, count - 1)
    return {round(place * step) for place in range(count)}


def seeds(quick: int, count: int) -> list:
    """The first seeds always, the others with the slow tests."""
    return [
        *range(quick),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, count)),
    ]


def random_frame(
    rng: np.random.Generator, groups, outcomes: int, rows: int = 500
) -> pd.DataFrame:
    """Groups of unequal size, outcomes that depend on them, and three other columns
    that depend on both.
    """
    codes = [
        rng.choice(size, rows, p=rng.dirichlet(np.full(size, 4.0))) for size in groups
    ]
    lean = sum((codes[i] + 1) * rng.normal() for i in range(len(groups)))
    scores = rng.normal(size=outcomes) + np.outer(lean, rng.normal(size=outcomes)) * 0.4
    outcome = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    frame = {f"z{i}": [f"g{c}" for c in column] for i, column in enumerate(codes)}
    frame["y"] = [f"o{c}" for c in outcome]
    frame["x0"] = [
        f"v{c}"
        for c in (outcome + codes[0] + rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])) % 4
    ]
    frame["x1"] = rng.normal(size=rows) + outcome
    frame["x2"] = rng.random(rows) < 0.3
    return pd.DataFrame(frame)


def rates_of(
    table: pd.DataFrame, columns, outcome: str, favourable=None
) -> tuple[float, float]:
    """Both rates from a frame with a column ``probability``, by group-by, not by the
    library.
    """
    by_group = table.groupby(list(columns))["probability"].sum()
    by_group = by_group[by_group > 0]
    both = (
        table.groupby([*columns, outcome])["probability"]
        .sum()
        .unstack(outcome, fill_value=0.0)
        .loc[by_group.index]
    )
    conditional = both.div(by_group, axis=0)
    if favourable is not None:
        conditional = conditional[[favourable]]
    return (
        by_group.min() / by_group.max(),
        (conditional.min() / conditional.max()).min(),
    )


def as_table(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(probability=1 / len(frame))


def hiring(seed, rows=2000, groups=("f", "m"), shares=None):
    """Who is hired depends on numbers that differ between the groups, and on the
    group.
    """
    rng = np.random.default_rng([seed, 28])
    z = rng.choice(len(groups), rows, p=shares)
    x = (
        rng.normal(size=(rows, 3))
        + np.array([[0.0, 0, 0], [0.9, 0.5, 0], [0.4, 0, 0]])[z]
    )
    lean = x @ [0.9, 0.7, 0.5] + np.array([-0.7, 0.2, 0.0])[z] - 0.4
    y = rng.random(rows) < 1 / (1 + np.exp(-lean))
    town = np.where(x[:, 2] > 0, "in", "out")
    columns = {
        "sex": np.array(groups)[z],
        "a": x[:, 0],
        "b": x[:, 1].round(1),
        "town": town,
    }
    return pd.DataFrame(columns | {"hired": np.where(y, "yes", "no")})
