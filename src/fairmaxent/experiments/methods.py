"""From training rows to something that rows can be drawn from."""

from __future__ import annotations

from typing import Any

import fairmaxent
from fairmaxent.experiments.data import Data
from fairmaxent.experiments.plan import Baseline, Method


def learn(method: Method, frame: Any, data: Data, protected: str) -> Any:
    """Learn from training rows; whatever the method, the result has ``sample`` and ``distribution``."""
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
