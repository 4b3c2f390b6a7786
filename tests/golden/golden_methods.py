"""Golden cases: the paper's own method, and the methods of other authors."""

from __future__ import annotations

from dataclasses import asdict

import fairmaxent
from fairmaxent import baselines, paper
from golden_results import array, csv, outputs, prefixed, rate_numbers, without_column
from golden_tables import discrete


def paper_fits():
    table, results = discrete(rows=500), {}
    for prior, theta in (("w", "d"), ("w", "b"), ("d", "w")):
        fit = paper.fit(table, outcome="y", protected="z0", prior=prior, theta=theta, favourable="o1")
        divergence = {"divergence": paper.divergence_from_raw(fit)}
        results |= prefixed(f"{prior} {theta}", outputs(fit, table, 80, random_state=1) | divergence)
    return results


def paper_options():
    table, results = discrete(rows=500), {}
    for solver in ("newton-cg", "box-newton"):
        fit = paper.fit(table, outcome="y", protected="z0", C=0.3, tau=0.8, solver=solver)
        results |= prefixed(solver, outputs(fit, table, 50, random_state=2))
    return results


def _baseline(method):
    protected = ["z0", "z1"]
    rows = method(discrete((2, 2), rows=500), "y", protected, random_state=3)
    return {
        "rows": csv(rows.sample(100)),
        "iid": csv(rows.sample(100, iid=True, random_state=1)),
        **without_column("marginal", rows.marginal(["z0", "y", "a"]), "probability"),
        "rate": rate_numbers(fairmaxent.metrics.statistical_rate(rows, "y", protected)),
        "weights": array(rows.weights()),
    }


def baseline_kamiran_calders():
    return _baseline(baselines.kamiran_calders)


def baseline_king_zeng():
    rows = baselines.king_zeng(discrete(rows=500), "y", "z0", shares={"g0": 0.6, "g1": 0.4})
    return _baseline(baselines.king_zeng) | {"shares": array(rows.weights())}


def baseline_calmon():
    table = discrete(rows=300).drop(columns="b")
    changed = baselines.calmon(table, "y", "z0", epsilon=0.05, distortion=0.4, random_state=3)
    return {
        "reached": asdict(changed.reached),
        **without_column("marginal", changed.marginal(["z0", "a", "y"]), "probability"),
        "rows": csv(changed.sample(100)),
    }
