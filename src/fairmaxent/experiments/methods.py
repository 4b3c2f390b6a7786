"""From training rows to a distribution to draw from."""

from __future__ import annotations

from typing import Any

import fairmaxent
from fairmaxent.experiments.data import ExperimentData
from fairmaxent.experiments.plan import Baseline, Method


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
