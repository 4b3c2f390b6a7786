"""Simulated people: tables that are harder than the public ones at hand, and need no
download.

In the census, the columns predict the outcome well (AUC about .91), and women have it
less than half as often as men. In lending, the protected column itself has no effect,
but skewed amounts and a district of many levels predict it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def census(rows: int = 20_000, seed: int = 0) -> Any:
    """Income by sex: jobs, hours and marriage differ between the sexes, and decide
    about income.
    """
    import pandas as pd

    rng = np.random.default_rng([77, seed])
    man = rng.random(rows) < 0.52
    skill = rng.normal(size=rows)
    age = np.clip(rng.gamma(6, 7, rows) + 17, 17, 90).round()
    education = np.clip(np.round(9 + 2.4 * skill + 0.8 * rng.normal(size=rows)), 1, 16)
    rank = np.clip(
        np.round(
            6
            + 2.2
            * (0.9 * skill + np.where(man, 0.54, -0.54) + 0.8 * rng.normal(size=rows))
        ),
        0,
        13,
    )
    married = rng.random(rows) < _chance(0.07 * (age - 32) + np.where(man, 0.5, -0.3))
    hours = np.clip(
        np.round(38 + np.where(man, 4, -4) + 7 * rng.normal(size=rows) + 2 * skill),
        5,
        90,
    )
    gain = np.where(
        rng.random(rows) < 0.06,
        np.round(np.exp(rng.normal(8 + 0.5 * skill, 1, rows))),
        0,
    )
    lean = (
        0.34 * (education - 9)
        + 0.42 * (rank - 6)
        + 0.085 * (hours - 38)
        + 1.5 * married
    )
    lean += (
        0.06 * (np.minimum(age, 55) - 38)
        + 0.0004 * gain * (gain > 3000)
        + np.where(man, 0.2, -0.2)
    )
    names = np.array([f"job {number:02}" for number in rng.permutation(14)])
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "education": education.astype(int),
            "occupation": names[rank.astype(int)],
            "married": np.where(married, "yes", "no"),
            "hours": hours.astype(int),
            "gain": gain.astype(int),
            "region": rng.choice(list("abcdefgh"), rows),
            "sector": rng.choice(
                ["private", "public", "self"], rows, p=[0.7, 0.2, 0.1]
            ),
            "sex": np.where(man, "male", "female"),
            "income": np.where(
                rng.random(rows) < _chance(1.17 * (lean - 3.1) + 0.35), "high", "low"
            ),
        }
    )


def lending(rows: int = 9_000, seed: int = 0) -> Any:
    """Loans by origin, of which a quarter are people of the smaller group: wealth and
    district differ, not conduct.
    """
    import pandas as pd

    rng = np.random.default_rng([78, seed])
    smaller = rng.random(rows) < 0.25
    wealth = rng.normal(size=rows) - 0.9 * smaller
    district = np.clip(
        np.round(12 + 5 * np.where(smaller, 0.8, -0.3) + 3.5 * rng.normal(size=rows)),
        0,
        24,
    ).astype(int)
    amount = np.exp(rng.normal(8.5 + 0.3 * wealth, 0.6))
    income = np.exp(rng.normal(10.2 + 0.45 * wealth, 0.35))
    years = np.clip(rng.gamma(2.5 + np.maximum(wealth, 0), 2.2), 0, 40).round(1)
    late = rng.poisson(np.exp(-0.3 - 0.6 * wealth))
    lean = (
        1.1
        + 1.6 * np.log(income / amount / 5.5)
        + 0.09 * years
        - 0.7 * late
        + 0.05 * (12 - district)
    )
    return pd.DataFrame(
        {
            "amount": amount.round(-1),
            "income": income.round(-2),
            "years": years,
            "late": late,
            "district": [f"d{number:02}" for number in district],
            "purpose": rng.choice(
                ["car", "home", "study", "other"], rows, p=[0.4, 0.2, 0.15, 0.25]
            ),
            "origin": np.where(smaller, "b", "a"),
            "repaid": np.where(rng.random(rows) < _chance(lean), "yes", "no"),
        }
    )


def _chance(logits: Reals) -> Reals:
    return 1 / (1 + np.exp(-logits))
