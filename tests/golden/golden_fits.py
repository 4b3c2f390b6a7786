"""Golden cases: tables in memory and out of it, every way to use a fit, relabelling,
and saved models.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairmaxent
from fairmaxent import Estimate, Model, debias
from golden_results import (
    array,
    certificate_numbers,
    csv,
    decimals,
    discrete,
    hiring,
    outputs,
    people,
    people_in_pandas,
    schema,
    temporary_folder,
    without_column,
)


def quota_pyarrow():
    table = people().drop("weight").to_arrow()
    fit = debias(table, "income", "sex", favourable=">50K", random_state=11)
    weighed = without_column("weighed", fit.weigh(table), "fair_weight")
    return outputs(fit, table, 300) | weighed | {"weights": array(fit.weights())}


def iid_rows():
    fit = debias(people_in_pandas(), "income", "sex")
    return {
        "seed": csv(fit.sample(300, iid=True, random_state=1)),
        "generator": csv(
            fit.sample(300, iid=True, random_state=np.random.default_rng(2))
        ),
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
    rows = {
        name: csv(fit.sample(100, given=given, random_state=7))
        for name, given in evidence.items()
    }
    return rows | {
        "iid": csv(fit.sample(100, given=evidence["several"], random_state=7, iid=True))
    }


def written_parts():
    fit = debias(people(), "income", "sex", weight="weight", random_state=2)
    with temporary_folder():
        fit.write_sample(250, "parts", size=100)
        parts = [pl.read_parquet(path) for path in sorted(Path("parts").iterdir())]
    return {"files": [len(part) for part in parts]} | {
        f"part {i}": csv(part) for i, part in enumerate(parts)
    }


def rows_to_add():
    results = {}
    for name, options in {
        "rates": {},
        "below one": {"representation_rate": 0.8, "statistical_rate": 0.9},
        "target": {
            "representation_rate": None,
            "target": {"sex": {"Female": 0.6, "Male": 0.4}},
        },
    }.items():
        fit = debias(
            people_in_pandas(),
            "income",
            "sex",
            favourable=">50K",
            random_state=6,
            **options,
        )
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
        **without_column(
            "marginal", distribution.marginal(["sex", "race", "income"]), "probability"
        ),
        **without_column(
            "marginal given",
            distribution.marginal("job", given={"sex": "Female"}),
            "probability",
        ),
        **without_column(
            "joint", distribution.marginal(["hours", "job"]), "probability"
        ),
        "expectations": expectations,
        "conditioned": array(
            distribution.condition({"sex": "Female", "age": 40}).probability(table)
        ),
        "sample": csv(distribution.sample(50, random_state=1)),
        "multipliers": array(distribution.potentials),
    }


def _numbered_people():
    """People whose hours are all different, because an engine may return rows in any
    order.
    """
    return people().with_columns(hours=pl.Series(np.arange(400) * 0.25))


def _lazy_outputs(lazy, collect, **options):
    """A fit of a lazy frame, and its weights joined inside the engine."""
    fit = debias(
        lazy, "income", ["sex", "race"], favourable=">50K", random_state=3, **options
    )
    return {
        "certificate": certificate_numbers(fit.certificate),
        "rows": csv(fit.sample(200)),
        "iid": csv(fit.sample(200, iid=True)),
        "schema": schema(fit.sample(1)),
        "added": csv(fit.top_up()),
        "batches": "".join(map(csv, fit.sample_batches(120, size=50))),
        "potentials": array(fit.distribution.potentials),
        **without_column(
            "weighed", collect(fit.weigh(lazy)).sort("hours"), "fair_weight"
        ),
    }


def lazy_polars_design_weights():
    return _lazy_outputs(
        _numbered_people().lazy(), lambda lazy: lazy.collect(), weight="weight"
    )


def lazy_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(_numbered_people().drop("weight").to_arrow())
    return _lazy_outputs(relation, lambda lazy: lazy.pl())


def _relabelled(table, protected, **options):
    model = Model("logistic", parity="probabilities")
    fit = debias(table, "y", protected, random_state=2, model=model, **options)
    return outputs(fit, table) | {
        "weights": array(fit.weights()),
        **without_column("weighed", fit.weigh(table), "fair_weight"),
        "iid": csv(fit.sample(60, iid=True, random_state=1)),
        "added": csv(fit.top_up()),
    }


def equal_probabilities():
    return _relabelled(hiring(), ["z"], favourable="p")


def equal_probabilities_three_outcomes():
    return _relabelled(discrete((2, 2), outcomes=3), ["z0", "z1"], groups="joint")


def estimate_rows():
    estimate = Estimate(output="rows", model="tree")
    fit = debias(hiring(), "y", "z", favourable="p", random_state=0, estimate=estimate)
    return {
        "certificate": certificate_numbers(fit.certificate),
        "shown": decimals(str(fit.certificate)),
        "warnings": len(fit.certificate.warnings),
        "rows": csv(fit.sample(50)),
    }


def save_and_load_relabelled():
    table = people_in_pandas()
    estimate = Estimate(output="weights", model="tree")
    fit = debias(
        table,
        "income",
        "sex",
        favourable=">50K",
        random_state=4,
        model=Model("logistic", parity="probabilities"),
        estimate=estimate,
    )
    with temporary_folder():
        fit.save("fit.fme")
        reloaded = fairmaxent.load("fit.fme")
    return outputs(reloaded, table) | {
        "weights": array(reloaded.weights()),
        "added": csv(reloaded.top_up()),
        "given": csv(reloaded.sample(50, given={"sex": "Female"}, iid=True)),
        **without_column("weighed", fit.weigh(table), "fair_weight"),
    }
