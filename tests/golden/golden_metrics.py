"""Golden cases: the fairness metrics."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

import fairmaxent
from fairmaxent import Domain, debias
from golden_results import rate_numbers
from golden_tables import every_kind_of_column, people


def _scores(table):
    """Probabilities of a high income as a model might give them."""
    noise = np.random.default_rng(9).normal(0, 0.15, len(table))
    scores = 0.3 + 0.25 * (table["income"] == ">50K") + 0.1 * (table["sex"] == "Male") + noise
    return np.clip(scores.to_numpy(), 0.01, 0.99)


def metric_representation_rate():
    table = people().to_pandas()
    fit = debias(table.drop(columns="weight"), "income", ["sex", "race"], representation_rate=0.9)
    rates = {
        "weight": fairmaxent.metrics.representation_rate(table, "sex", weight="weight"),
        "bins": fairmaxent.metrics.representation_rate(table, "age", domain=Domain.infer(table, bins=4)),
        "fit": fairmaxent.metrics.representation_rate(fit, ["sex", "race"]),
        "missing": fairmaxent.metrics.representation_rate(every_kind_of_column(), "sex"),
    }
    return {name: rate_numbers(rate) for name, rate in rates.items()}


def metric_statistical_rate():
    table = people().to_pandas()
    scores = _scores(table)
    fit = debias(table.drop(columns="weight"), "income", ["sex", "race"], statistical_rate=0.9)
    rates = {
        "weight": fairmaxent.metrics.statistical_rate(table, "income", "sex", weight="weight"),
        "probabilities": fairmaxent.metrics.statistical_rate(
            table, scores, "sex", favourable=">50K", as_probability=True
        ),
        "fit": fairmaxent.metrics.statistical_rate(fit, "income", ["sex", "race"], favourable=">50K"),
    }
    return {name: rate_numbers(rate) for name, rate in rates.items()}


def metric_equal_opportunity():
    table = people().to_pandas()
    scores = _scores(table)
    predicted = np.where(scores > 0.5, ">50K", "<=50K")
    options = {"favourable": ">50K", "as_probability": True, "threshold": 0.4}
    rates = {
        "every level": fairmaxent.metrics.equal_opportunity(
            table, "income", predicted, ["sex", "race"], favourable=None
        ),
        "probabilities": fairmaxent.metrics.equal_opportunity(table, "income", scores, "race", **options),
    }
    return {name: rate_numbers(rate) for name, rate in rates.items()}


def metric_equalised_odds():
    table = people().to_pandas()
    options = {"favourable": ">50K", "as_probability": True, "weight": "weight"}
    odds = fairmaxent.metrics.equalised_odds(table, "income", _scores(table), ["sex", "race"], **options)
    return {
        "weight": {
            "value": float(odds),
            "interval": odds.interval,
            "difference": odds.difference,
            "true": rate_numbers(odds.true_positive),
            "false": rate_numbers(odds.false_positive),
        }
    }


def metric_calibration():
    table = people().to_pandas()
    options = {"favourable": ">50K", "groups": "joint", "bins": 4}
    calibration = fairmaxent.metrics.calibration(table, "income", _scores(table), ["sex", "race"], **options)
    numbers = asdict(calibration) | {"error": calibration.error}
    return {"joint": numbers | {"groups": numbers["groups"][:2]}}
