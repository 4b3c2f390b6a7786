"""One cell: learn from training rows, measure what is drawn, store the result in a file, and look it up again."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import fairmaxent
from fairmaxent.experiments import data as sets
from fairmaxent.experiments.data import ExperimentData, Reals, correlation
from fairmaxent.experiments.plan import RAW, ROWS, Baseline, Cell, Method
from fairmaxent.files.write import write_whole
from fairmaxent.fit.distribution import Distribution


def learn(method: Method, frame: Any, data: ExperimentData, protected: str) -> Any:
    """Learn from training rows; the result of every method has ``sample`` and ``distribution``."""
    if isinstance(method, Baseline):
        return getattr(fairmaxent.baselines, method.name)(frame, data.outcome, protected, domain=data.domain)
    return fairmaxent.paper.fit(
        frame,
        outcome=data.outcome,
        protected=protected,
        C=method.C,
        prior=method.prior,
        theta=method.theta,
        favourable=data.favourable,
        domain=data.domain,
    )


_SMALLEST = 1e-7  # added to the share of every point of the raw data, as in the authors' code


def measure_rows(rows: Any, data: ExperimentData, protected: str) -> dict[str, float]:
    """Fairness of drawn rows, and their distance from the raw data."""
    rate = fairmaxent.metrics.statistical_rate(rows, data.outcome, protected, favourable=data.favourable)
    numbers = data.numbers(rows)
    measured = {
        "data_sr": float(rate),
        "data_rr": float(fairmaxent.metrics.representation_rate(rows, protected)),
        "correlation_distance": float(((correlation(numbers) - data.raw_correlation) ** 2).sum()),
        "covariance_distance": float(((np.cov(numbers, rowvar=False) - data.raw_covariance) ** 2).sum()),
    }
    if data.is_enumerable:
        measured["kl_plugin"] = divergence(data.probabilities(rows), data.raw_probabilities)
    return measured


def measure_exactly(distribution: Distribution, data: ExperimentData) -> dict[str, float]:
    """KL divergence from the raw data, computed from the distribution itself, without drawing rows."""
    if not data.is_enumerable:
        return {}
    points = distribution.marginal(data.domain.names)
    probabilities = data.probabilities(points, points["probability"].to_numpy())
    return {"kl_exact": divergence(probabilities, data.raw_probabilities)}


def measure_classifiers(rows: Any, test: Any, data: ExperimentData, protected: str) -> dict[str, float]:
    """Train on drawn rows, test on the real rows of the fold. The protected column is a feature, as in the paper."""
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    features, outcomes = data.split(rows)
    test_features, test_outcomes = data.split(test)
    measured: dict[str, float] = {}
    for name, classifier in (("tree", DecisionTreeClassifier(random_state=0)), ("bayes", GaussianNB())):
        chance = classifier.fit(features, outcomes).predict_proba(test_features)[:, 1].clip(0.0, 1.0)
        predicted = chance > 0.5
        rates = fairmaxent.metrics.statistical_rate
        measured |= {
            f"{name}_accuracy": float((predicted == test_outcomes).mean()),
            f"{name}_sr_probabilities": float(rates(test, chance, protected, favourable=1, as_probability=True)),
            # If the outcome is predicted for nobody, there is no ratio.
            f"{name}_sr_predictions": float(rates(test, predicted, protected, favourable=True))
            if predicted.any()
            else float("nan"),
        }
    return measured


def divergence(probabilities: Reals, raw: Reals) -> float:
    """KL(p ‖ raw + 1e-7), with the second argument normalised again."""
    seen = probabilities > 0
    reference = raw + _SMALLEST
    return float(probabilities[seen] @ np.log(probabilities[seen] / reference[seen]) + np.log(reference.sum()))


Record = dict[str, Any]


def run_cell(cell: Cell) -> Record:
    """Learn from the fold's training rows, then draw, train and measure once for each repetition."""
    data = sets.load(cell.dataset)
    train, test = data.fold(cell.fold)
    began = time.process_time()
    source = learn(cell.method, train, data, cell.protected)
    learned = time.process_time()
    measured = []
    seconds = 0.0
    for repetition in range(cell.repetitions):
        start = time.process_time()
        # "Raw" means the training rows themselves, not a draw from them: in the paper their divergence is 0.
        rows = train if cell.method == RAW else source.sample(ROWS, random_state=_seed(cell, repetition), iid=True)
        seconds += time.process_time() - start
        measured.append(
            measure_rows(rows, data, cell.protected) | measure_classifiers(rows, test, data, cell.protected)
        )
    return {
        "made_with": made_with(),
        "repetitions": measured,
        "exact": measure_exactly(source.distribution, data),
        "seconds": learned - began + seconds / cell.repetitions,  # CPU: learn, and draw once
    }


def save(cell: Cell, record: Record, folder: Path) -> None:
    """Write the file of a cell completely or not at all."""
    write_whole(folder / f"{cell.name}.json", json.dumps(record).encode(), readable=True)


def find(cell: Cell, folder: Path) -> Record | None:
    """Return the stored result of a cell; None if there is none, or it is damaged or from other versions."""
    try:
        record: Record = json.loads((folder / f"{cell.name}.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("made_with") == made_with() else None


@lru_cache(maxsize=1)
def made_with() -> dict[str, str]:
    """The versions that a result depends on, with a fingerprint of this package's code and shipped data."""
    packages = ("fairmaxent", "numpy", "pandas", "scipy", "scikit-learn")
    versions = {"python": platform.python_version()} | {package: version(package) for package in packages}
    fingerprint = hashlib.sha256()
    home = Path(fairmaxent.__file__).parent
    for path in sorted(home.rglob("*")):
        if path.suffix in (".py", ".xz") and path.relative_to(home).parts[0] not in ("cli", "report"):
            fingerprint.update(path.read_bytes())
    return versions | {"fingerprint": fingerprint.hexdigest()[:12]}


def _seed(cell: Cell, repetition: int) -> int:
    """A separate seed for each repetition, independent of what ran before."""
    return int.from_bytes(hashlib.sha256(f"{cell.name}/{repetition}".encode()).digest()[:4], "big")
