"""The small tables that golden cases start from, and what they return: rows as CSV
text, arrays, and plain values.
"""

import contextlib
import re
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl


def people(rows=400, seed=5):
    """Women are rarer and rarely have a high income; nurses are mostly women. Weights
    are quarters: sums are exact.
    """
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], rows, p=[0.3, 0.7])
    race = rng.choice(["Black", "Other", "White"], rows, p=[0.25, 0.15, 0.6])
    high = rng.random(rows) < np.where(sex == "Male", 0.5, 0.2) + 0.1 * (
        race == "White"
    )
    job = np.where(
        (sex == "Female") & (rng.random(rows) < 0.7),
        "nurse",
        rng.choice(["clerk", "cook"], rows),
    )
    columns = {"sex": sex, "race": race, "job": job, "age": rng.integers(17, 90, rows)}
    columns |= {
        "hours": np.round(rng.normal(38, 6, rows) + 4 * high, 2),
        "weight": rng.integers(2, 7, rows) / 4,
    }
    return pl.DataFrame(columns | {"income": np.where(high, ">50K", "<=50K")})


def people_in_pandas():
    """People without weights, as a pandas frame."""
    return people().drop("weight").to_pandas()


def discrete(groups=(2,), outcomes=2, rows=400, seed=0):
    """Protected columns z0, z1, …, an outcome y and two other columns, all of them
    text.
    """
    rng = np.random.default_rng([seed, *groups, outcomes])
    codes = [
        rng.choice(size, rows, p=rng.dirichlet(np.full(size, 8.0))) for size in groups
    ]
    a, b = rng.integers(0, 4, rows), rng.integers(0, 3, rows)
    score = np.stack(
        [0.8 * a * y / outcomes + 0.7 * codes[0] * (y == 1) for y in range(outcomes)],
        axis=1,
    )
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    protected = {
        f"z{i}": [f"g{code}" for code in column] for i, column in enumerate(codes)
    }
    others = {"a": [f"a{code}" for code in a], "b": [f"b{code}" for code in b]}
    return pd.DataFrame(protected | others | {"y": [f"o{code}" for code in y]})


def hiring(rows=500, seed=0):
    """x predicts both z and y, so a model trained on fair data may still be unfair."""
    rng = np.random.default_rng(seed)
    z = rng.choice(2, rows, p=[0.4, 0.6])
    x = np.clip(rng.integers(0, 6, rows) + 2 * z - 1, 0, 6)
    c = np.where(rng.random(rows) < 0.8, z, 1 - z)
    y = rng.random(rows) < 1 / (1 + np.exp(-(2.0 * (x - 3) + c - 0.5)))
    columns = {"z": z, "x": x, "c": c, "d": rng.integers(0, 4, rows)}
    table = pd.DataFrame(
        {name: [f"{name}{code}" for code in codes] for name, codes in columns.items()}
    )
    return table.assign(y=np.where(y, "p", "n"))


CERTIFICATE = (
    *(
        "wanted",
        "before",
        "achieved",
        "bound",
        "delta",
        "dual",
        "iterations",
        "residual",
    ),
    *("multiplier_norm", "multiplier_bound", "effective_rows", "distance"),
)
CERTIFICATE_LISTS = ("small_groups", "filled_cells", "removed_levels")
MODEL_SCORES = (
    *("accuracy", "auc", "by_predictions", "by_probabilities"),
    *("equal_opportunity", "equalised_odds", "calibration_gap"),
)
REPORT = (
    *(
        "rows",
        "distinct_rows",
        "columns",
        "points",
        "rates",
        "groups",
        "marginals",
        "associations",
    ),
    *("trade_off", "relabelled", "iid", "new_rows", "for_report", "copies", "seed"),
)
LIST_ITEMS = 3  # kept from each list in a report


def csv(table):
    """Return any table or series as CSV text."""
    if isinstance(table, pd.DataFrame | pd.Series):
        return table.to_csv(index=False, lineterminator="\n")
    return pl.DataFrame(table).write_csv()


def schema(table):
    """Return the dtypes of a table's columns as text."""
    if isinstance(table, pd.DataFrame):
        return {name: str(dtype) for name, dtype in table.dtypes.items()}
    if isinstance(table, pl.DataFrame):
        return {name: str(dtype) for name, dtype in table.schema.items()}
    return {field.name: str(field.type) for field in table.schema}


def array(values):
    """Return numbers as an array of floats."""
    return np.asarray(values, dtype=np.float64)


def without_column(name, table, column):
    """Return a table's rows as text and, separately, one column of numbers that may
    differ by rounding.
    """
    rows = (
        pl.from_pandas(table)
        if isinstance(table, pd.DataFrame)
        else pl.DataFrame(table)
    )
    return {
        name: csv(rows.drop(column)),
        f"{name}, {column}": array(rows[column].to_numpy()),
    }


def certificate_numbers(certificate):
    """Return the numbers of a certificate, or of the dict made from one."""
    entries = certificate if isinstance(certificate, dict) else certificate.to_dict()
    numbers = {name: entries[name] for name in CERTIFICATE}
    lengths = {name: len(entries[name]) for name in CERTIFICATE_LISTS}
    return numbers | lengths | {"estimate": model_numbers(entries["estimate"])}


def model_numbers(estimate):
    """Return what a model trained on the result is expected to do, or None without an
    estimate.
    """
    if estimate is None:
        return None
    scores = {
        side: {name: estimate[side][name] for name in MODEL_SCORES}
        for side in ("before", "after")
    }
    return scores | {name: estimate[name] for name in ("output", "folds", "threshold")}


def report_numbers(report):
    """Return the numbers of a report's dict."""
    numbers = {
        name: without_texts(report[name]) for name in REPORT if report[name] is not None
    }
    return numbers | {"certificate": certificate_numbers(report["certificate"])}


def without_texts(value):
    """Drop the texts from a tree of plain values, and shorten its lists; the keys
    stay.
    """
    if isinstance(value, dict):
        return {
            key: without_texts(item)
            for key, item in value.items()
            if not isinstance(item, str)
        }
    if isinstance(value, list | tuple):
        return [without_texts(item) for item in value if not isinstance(item, str)][
            :LIST_ITEMS
        ]
    return value


def decimals(text):
    """Return every number in a text that has four decimals or more, exactly as
    shown.
    """
    return re.findall(r"(?<![\d.])\d+\.\d{4,}(?![\d.])", text)


def rate_numbers(rate):
    """Return everything a rate holds."""
    return {
        "value": float(rate),
        "difference": rate.difference,
        "interval": rate.interval,
        "worst": asdict(rate.worst),
        "groups": [asdict(group) for group in rate.groups],
        "left out": [group.group for group in rate.left_out],
    }


def outputs(fit, table, rows=200, **options):
    """Return the certificate, the fair table, sampled rows, and the probability of each
    row of a table.
    """
    drawn = fit.sample(rows, **options)
    return {
        "certificate": certificate_numbers(fit.certificate),
        "fair table": array(fit.certificate.table),
        "rows": csv(drawn),
        "schema": schema(drawn),
        "probability": array(fit.distribution.probability(table)),
    }


def prefixed(prefix, results):
    """Return results with a prefix before each name."""
    return {f"{prefix}, {name}": result for name, result in results.items()}


@contextlib.contextmanager
def temporary_folder():
    """Work in a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        yield Path(name)
