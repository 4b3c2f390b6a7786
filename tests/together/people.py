"""A small table in which every option has something to do, and a model to train on it.

`GOOD` says which level of an outcome is the good one.
"""

from functools import cache

import numpy as np
import pandas as pd

from fairmaxent import Domain

ROWS = 360
GOOD = {"hired": "yes", "promoted": "yes", "grade": 3}
IN_A_BRANCH = 8  # people
EDGES = [-4.0, -0.5, 0.5, 4.0]  # of the bins of ``skill``


@cache
def everybody() -> pd.DataFrame:
    """Make the table, the same every time.

    Outcomes differ between the groups of ``sex`` and ``race``, and between towns.
    ``grade`` is an outcome in numbers, ``race`` has missing values, ``name`` looks like
    an identifier, and ``design`` holds design weights that are about 1. People of one
    ``branch`` are alike. ``p_near`` and ``p_far`` say how likely an origin is.
    """
    rng = np.random.default_rng(43)
    sex = rng.choice(["f", "m"], ROWS, p=[0.4, 0.6])
    race = rng.choice(["a", "b"], ROWS, p=[0.35, 0.65])
    town = rng.choice(["in", "out"], ROWS, p=[0.55, 0.45])
    skill = rng.normal(size=ROWS)
    lean = 0.8 * skill + 0.7 * (sex == "m") + 0.6 * (race == "b") - 0.6
    lean = lean + 0.3 * (town == "in")
    is_hired = rng.random(ROWS) < 1 / (1 + np.exp(-lean))
    ahead = 0.6 * is_hired + 0.5 * (sex == "m") - 0.4
    is_promoted = rng.random(ROWS) < 1 / (1 + np.exp(-ahead))
    grade = np.clip(np.round(1.7 + 0.5 * lean + rng.normal(size=ROWS)), 1, 3)
    table = pd.DataFrame(
        {
            "hired": np.where(is_hired, "yes", "no"),
            "promoted": np.where(is_promoted, "yes", "no"),
            "grade": grade.astype(int),
            "sex": sex,
            "race": race,
            "town": town,
            "skill": skill,
            "drive": rng.choice(["bike", "car", "train"], ROWS, p=[0.3, 0.5, 0.2]),
            "name": [f"person {number:04d}" for number in range(ROWS)],
            "design": rng.choice([0.5, 1.0, 1.5], ROWS),
        }
    )
    table.loc[rng.choice(ROWS, 40, replace=False), "race"] = None
    chance = rng.beta(0.6, 0.8, ROWS)  # of an origin that is written down of few
    table["p_near"] = chance
    table["p_far"] = 1 - chance
    origin = np.where(rng.random(ROWS) < chance, "near", "far").astype(object)
    origin[rng.random(ROWS) < 0.8] = None
    table["origin_known"] = origin
    alike = table.sort_values(["sex", "race", "drive", "hired", "promoted", "grade"])
    table.loc[alike.index, "branch"] = np.arange(ROWS) // IN_A_BRANCH
    return table


def people(*columns: str) -> pd.DataFrame:
    """The table with these columns, and some that every call has."""
    usual = ["sex", "race", "town", "skill", "drive"]
    table = everybody()
    return table[[name for name in table if name in (*usual, *columns)]].copy()


def declared(columns: list[str]):
    """What these columns can hold, said without looking at a row."""
    levels = {
        "hired": ["no", "yes"],
        "promoted": ["no", "yes"],
        "grade": [1, 2, 3],
        "sex": ["f", "m"],
        "race": ["a", "b"],
        "town": ["in", "out"],
        "drive": ["bike", "car", "train"],
        "name": [f"person {number:04d}" for number in range(ROWS)],
        "origin_known": ["near", "far"],
    }
    edges = {"skill": EDGES, "branch": [0, ROWS // IN_A_BRANCH]}
    edges |= {"p_near": [0, 1], "p_far": [0, 1]}
    return Domain.declare(
        levels={name: levels[name] for name in columns if name in levels},
        edges={name: edges[name] for name in columns if name in edges},
        missing=[name for name in ("race", "origin_known") if name in columns],
    )


class Quick:
    """A logistic regression that learns in a millisecond.

    It takes a table's columns, or the numbers that an estimate prepares.
    """

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, table, outcomes, sample_weight=None):
        outcomes = np.asarray(outcomes)
        self.classes_ = np.unique(outcomes)
        matrix = self._numbers(table)
        weights = np.ones(len(matrix))
        if sample_weight is not None:
            weights = np.asarray(sample_weight)
        # one regression for each level; of two, that of the second says all
        levels = self.classes_[-1:] if len(self.classes_) == 2 else self.classes_
        self.slopes = [self._learned(matrix, outcomes == y, weights) for y in levels]
        return self

    def _learned(self, matrix, is_level, weights):
        ridge = 1e-3 * np.eye(matrix.shape[1])
        slopes = np.zeros(matrix.shape[1])
        for _ in range(8):  # Newton's steps
            chance = 1 / (1 + np.exp(-matrix @ slopes))
            gradient = matrix.T @ (weights * (is_level - chance)) - ridge @ slopes
            curvature = (matrix.T * (weights * chance * (1 - chance))) @ matrix + ridge
            slopes = slopes + np.linalg.solve(curvature, gradient)
        return slopes

    def predict_proba(self, table):
        matrix = self._numbers(table)
        chances = [1 / (1 + np.exp(-matrix @ slopes)) for slopes in self.slopes]
        if len(chances) == 1:
            chances.insert(0, 1 - chances[0])
        total = np.sum(chances, axis=0)
        return np.column_stack(chances) / total[:, None]

    def predict(self, table):
        return self.classes_[self.predict_proba(table).argmax(axis=1)]

    def _numbers(self, table):
        if isinstance(table, np.ndarray):
            return np.column_stack([np.ones(len(table)), np.nan_to_num(table)])
        columns = [np.ones(len(table)), table["skill"].to_numpy()]
        for name, level in {"sex": "f", "race": "a", "town": "in"}.items():
            if name in table.columns:
                columns.append((table[name] == level).to_numpy(dtype=float))
        return np.column_stack(columns)
