"""fairmaxent: turn a biased table into a fair one by maximum entropy."""

import importlib
from typing import TYPE_CHECKING, Any

from fairmaxent.errors import (
    ColumnError,
    DependencyError,
    EvidenceError,
    FairMaxEntError,
    ForbiddenError,
    InfeasibleError,
    InputError,
    LevelError,
    RateError,
    SolverError,
    StorageError,
    TargetError,
    WeightError,
)

if TYPE_CHECKING:
    from fairmaxent import aif360, baselines, datasets, paper, report, solvers
    from fairmaxent.certificate import Certificate
    from fairmaxent.distribution import Distribution
    from fairmaxent.domain import Attribute, Domain
    from fairmaxent.estimator import FairMaxEnt
    from fairmaxent.fit import Fit, load
    from fairmaxent.metrics import representation_rate, statistical_rate
    from fairmaxent.mistakes import equal_opportunity, equalised_odds
    from fairmaxent.pipeline import debias
    from fairmaxent.reliability import calibration

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "Certificate",
    "ColumnError",
    "DependencyError",
    "Distribution",
    "Domain",
    "EvidenceError",
    "FairMaxEnt",
    "FairMaxEntError",
    "Fit",
    "ForbiddenError",
    "InfeasibleError",
    "InputError",
    "LevelError",
    "RateError",
    "SolverError",
    "StorageError",
    "TargetError",
    "WeightError",
    "aif360",
    "baselines",
    "calibration",
    "datasets",
    "debias",
    "equal_opportunity",
    "equalised_odds",
    "load",
    "paper",
    "report",
    "representation_rate",
    "solvers",
    "statistical_rate",
]

# Loaded when first asked for, so that importing the package, or asking the command line for help, costs nothing.
_MODULES = ("aif360", "baselines", "datasets", "paper", "report", "solvers")
_HOMES = {
    "Attribute": "domain",
    "Certificate": "certificate",
    "Distribution": "distribution",
    "Domain": "domain",
    "FairMaxEnt": "estimator",
    "Fit": "fit",
    "calibration": "reliability",
    "debias": "pipeline",
    "equal_opportunity": "mistakes",
    "equalised_odds": "mistakes",
    "load": "fit",
    "representation_rate": "metrics",
    "statistical_rate": "metrics",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fairmaxent.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fairmaxent' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"fairmaxent.{_HOMES[name]}"), name)
    globals()[name] = found  # the next look finds it at once
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
