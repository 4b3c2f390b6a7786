"""Golden cases: tables in memory, and every way to use a fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from fairmaxent import debias
from golden_results import array, certificate_numbers, csv, decimals, outputs, temporary_folder, without_column
from golden_tables import people, people_in_pandas


def _every_output(table):
    fit = debias(table, "income", "sex", favourable=">50K", random_state=11)
    weighed = without_column("weighed", fit.weigh(table), "fair_weight")
    return outputs(fit, table, 300) | weighed | {"weights": array(fit.weights())}


def quota_pyarrow():
    return _every_output(people().drop("weight").to_arrow())


def iid_rows():
    fit = debias(people_in_pandas(), "income", "sex")
    return {
        "seed": csv(fit.sample(300, iid=True, random_state=1)),
        "generator": csv(fit.sample(300, iid=True, random_state=np.random.default_rng(2))),
        "few": csv(fit.sample(3, random_state=4)),
    }


def given_columns():
    fit = debias(people_in_pandas(), "income", ["sex", "race"], random_state=0)
    evidence = {
        "one": {"sex": "Female"},
        "several": {"race": ["Black", "Other"], "income": ">50K"},
        "number": {"age": 40},
        "other column": {"job": "nurse", "sex": "Male"},
    }
    rows = {name: csv(fit.sample(100, given=given, random_state=7)) for name, given in evidence.items()}
    return rows | {"iid": csv(fit.sample(100, given=evidence["several"], random_state=7, iid=True))}


def written_parts():
    fit = debias(people(), "income", "sex", weight="weight", random_state=2)
    with temporary_folder():
        fit.write_sample(250, "parts", size=100)
        parts = [pl.read_parquet(path) for path in sorted(Path("parts").iterdir())]
    return {"files": [len(part) for part in parts]} | {f"part {i}": csv(part) for i, part in enumerate(parts)}


def rows_to_add():
    results = {}
    for name, options in {
        "rates": {},
        "below one": {"representation_rate": 0.8, "statistical_rate": 0.9},
        "target": {"representation_rate": None, "target": {"sex": {"Female": 0.6, "Male": 0.4}}},
    }.items():
        fit = debias(people_in_pandas(), "income", "sex", favourable=">50K", random_state=6, **options)
        added = fit.top_up()
        results |= {name: csv(added), f"{name}, rows": len(added)}
    return results


def distribution_queries():
    table = people_in_pandas()
    distribution = debias(table, "income", ["sex", "race"], random_state=0).distribution
    expectations = {
        "age": distribution.expectation("age"),
        "hours of women": distribution.expectation("hours", given={"sex": "Female"}),
    }
    return {
        **without_column("marginal", distribution.marginal(["sex", "race", "income"]), "probability"),
        **without_column("marginal given", distribution.marginal("job", given={"sex": "Female"}), "probability"),
        **without_column("joint", distribution.marginal(["hours", "job"]), "probability"),
        "expectations": expectations,
        "conditioned": array(distribution.condition({"sex": "Female", "age": 40}).probability(table)),
        "sample": csv(distribution.sample(50, random_state=1)),
        "multipliers": array(distribution.potentials),
    }


def certificate_shown():
    fit = debias(people_in_pandas(), "income", ["sex", "race"], statistical_rate={"sex": 0.9, "race": None})
    certificate = fit.certificate
    intervals = {
        "quota": certificate.interval(100),
        "iid": certificate.interval(100, iid=True),
        "narrow": certificate.interval(999, confidence=0.5),
    }
    return {
        "shown": decimals(str(certificate)),
        "certificate": certificate_numbers(certificate),
        "intervals": intervals,
        "warnings": len(certificate.warnings),
    }
