"""Golden cases: fits that were saved and loaded again."""

from __future__ import annotations

import fairmaxent
from fairmaxent import Estimate, Relabel, debias
from golden_results import array, csv, outputs, temporary_folder, without_column
from golden_tables import people, people_in_pandas


def _reloaded(fit):
    with temporary_folder():
        fit.save("model.fme")
        return fairmaxent.load("model.fme")


def _reloaded_outputs(fit, table):
    reloaded = _reloaded(fit)
    return outputs(reloaded, table) | {
        "weights": array(reloaded.weights()),
        "added": csv(reloaded.top_up()),
        "given": csv(reloaded.sample(50, given={"sex": "Female"}, iid=True)),
    }


def save_and_load_polars():
    table = people().drop("weight")
    forbid = [{"sex": "Male", "job": "nurse"}]
    fit = debias(table, "income", "sex", random_state=4, target={"job": None}, forbid=forbid)
    return _reloaded_outputs(fit, table)


def save_and_load_relabelled():
    table = people_in_pandas()
    relabel = Relabel(parity="predictions", labeller="tree")
    estimate = Estimate(output="weights", student="tree")
    fit = debias(table, "income", "sex", favourable=">50K", random_state=4, relabel=relabel, estimate=estimate)
    return _reloaded_outputs(fit, table) | without_column("weighed", fit.weigh(table), "fair_weight")
