"""Golden cases: frames that are not in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fairmaxent import debias
from golden_results import array, certificate_numbers, csv, schema, without_column
from golden_tables import people


def _numbered_people():
    """People whose hours are all different, because an engine may return rows in any order."""
    return people().with_columns(hours=pl.Series(np.arange(400) * 0.25))


def _lazy_outputs(lazy, collect, **options):
    """A fit of a lazy frame, and its weights joined inside the engine."""
    fit = debias(lazy, "income", ["sex", "race"], favourable=">50K", random_state=3, **options)
    return {
        "certificate": certificate_numbers(fit.certificate),
        "rows": csv(fit.sample(200)),
        "iid": csv(fit.sample(200, iid=True)),
        "schema": schema(fit.sample(1)),
        "added": csv(fit.top_up()),
        "batches": "".join(map(csv, fit.sample_batches(120, size=50))),
        "potentials": array(fit.distribution.potentials),
        **without_column("weighed", collect(fit.weigh(lazy)).sort("hours"), "fair_weight"),
    }


def lazy_polars_design_weights():
    return _lazy_outputs(_numbered_people().lazy(), lambda lazy: lazy.collect(), weight="weight")


def lazy_polars_rules_and_targets():
    options = {"forbid": [{"sex": "Male", "job": "nurse"}], "target": {"job": None}, "base_share": 0.5}
    return _lazy_outputs(_numbered_people().drop("weight").lazy(), lambda lazy: lazy.collect(), **options)


def lazy_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(_numbered_people().drop("weight").to_arrow())
    return _lazy_outputs(relation, lambda lazy: lazy.pl())
