"""Golden cases: the paper's own method, methods of other authors, the metrics, and the
scikit-learn estimator.
"""

from dataclasses import asdict

import numpy as np
import pytest

import fairmaxent
from fairmaxent import Domain, baselines, debias, paper
from golden_results import (
    array,
    csv,
    discrete,
    outputs,
    people,
    people_in_pandas,
    prefixed,
    rate_numbers,
    without_column,
)
from mixed import polars_table
from reproduction.box_newton import BoxNewton
from reproduction.calmon import calmon


def paper_fits():
    table, results = discrete(rows=500), {}
    for prior, theta in (("w", "d"), ("w", "b"), ("d", "w")):
        fit = paper.fit(
            table,
            outcome="y",
            protected="z0",
            prior=prior,
            theta=theta,
            favourable="o1",
        )
        divergence = {"divergence": paper.divergence_from_raw(fit)}
        results |= prefixed(
            f"{prior} {theta}", outputs(fit, table, 80, random_state=1) | divergence
        )
    return results


def paper_options():
    table, results = discrete(rows=500), {}
    for name, solver in {
        "newton-cg": "newton-cg",
        "box-newton": BoxNewton(C=0.3),
    }.items():
        fit = paper.fit(
            table, outcome="y", protected="z0", C=0.3, tau=0.8, solver=solver
        )
        results |= prefixed(name, outputs(fit, table, 50, random_state=2))
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
    return _baseline(baselines.king_zeng)


def baseline_calmon():
    table = discrete(rows=300).drop(columns="b")
    changed = calmon(table, "y", "z0", epsilon=0.05, distortion=0.4, random_state=3)
    return {
        "reached": asdict(changed.reached),
        **without_column("marginal", changed.marginal(["z0", "a", "y"]), "probability"),
        "rows": csv(changed.sample(100)),
    }


def _scores(table):
    """Probabilities of a high income as a model might give them."""
    noise = np.random.default_rng(9).normal(0, 0.15, len(table))
    scores = (
        0.3
        + 0.25 * (table["income"] == ">50K")
        + 0.1 * (table["sex"] == "Male")
        + noise
    )
    return np.clip(scores.to_numpy(), 0.01, 0.99)


def metric_representation_rate():
    table = people().to_pandas()
    fit = debias(
        table.drop(columns="weight"), "income", ["sex", "race"], representation_rate=0.9
    )
    rates = {
        "weight": fairmaxent.metrics.representation_rate(table, "sex", weight="weight"),
        "bins": fairmaxent.metrics.representation_rate(
            table, "age", domain=Domain.infer(table, bins=4)
        ),
        "fit": fairmaxent.metrics.representation_rate(fit, ["sex", "race"]),
        "missing": fairmaxent.metrics.representation_rate(polars_table(), "group"),
    }
    return {name: rate_numbers(rate) for name, rate in rates.items()}


def metric_statistical_rate():
    table = people().to_pandas()
    scores = _scores(table)
    fit = debias(
        table.drop(columns="weight"), "income", ["sex", "race"], statistical_rate=0.9
    )
    rates = {
        "weight": fairmaxent.metrics.statistical_rate(
            table, "income", "sex", weight="weight"
        ),
        "probabilities": fairmaxent.metrics.statistical_rate(
            table, scores, "sex", favourable=">50K", as_probability=True
        ),
        "fit": fairmaxent.metrics.statistical_rate(
            fit, "income", ["sex", "race"], favourable=">50K"
        ),
    }
    return {name: rate_numbers(rate) for name, rate in rates.items()}


def metric_equalised_odds():
    table = people().to_pandas()
    options = {"favourable": ">50K", "as_probability": True, "weight": "weight"}
    odds = fairmaxent.metrics.equalised_odds(
        table, "income", _scores(table), ["sex", "race"], **options
    )
    both = {
        "true": rate_numbers(odds.true_positive),
        "false": rate_numbers(odds.false_positive),
    }
    return {
        "weight": (
            {
                "value": float(odds),
                "interval": odds.interval,
                "difference": odds.difference,
            }
            | both
        )
    }


def estimator_resample():
    pytest.importorskip("sklearn")
    table, results = people_in_pandas(), {}
    X, y = table.drop(columns="income"), table["income"]
    for name, options in {
        "plain": {},
        "rows": {"rows": 100, "favourable": ">50K", "statistical_rate": 0.9},
    }.items():
        sampler = fairmaxent.FairMaxEnt(["sex", "race"], random_state=1, **options)
        fair_X, fair_y = sampler.fit_resample(X, y)
        classes = sampler.sampling_strategy_
        results |= {
            f"{name}, X": csv(fair_X),
            f"{name}, y": csv(fair_y),
            f"{name}, classes": classes,
        }
    sampled_X, sampled_y = sampler.sample(40, given={"sex": "Female"}, random_state=3)
    weights = array(sampler.sample_weight_)
    return results | {
        "weights": weights,
        "sampled X": csv(sampled_X),
        "sampled y": csv(sampled_y),
    }
