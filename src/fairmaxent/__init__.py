"""fairmaxent: turn a biased table into a fair one by maximum entropy."""

import importlib
from typing import TYPE_CHECKING, Any

from fairmaxent import datasets, paper, solvers
from fairmaxent.certificate import Certificate
from fairmaxent.debias import debias
from fairmaxent.distribution import Distribution
from fairmaxent.domain import Attribute, Domain
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
from fairmaxent.fit import Fit, load
from fairmaxent.metrics import representation_rate, statistical_rate

if TYPE_CHECKING:
    from fairmaxent import aif360, baselines, report
    from fairmaxent.estimator import FairMaxEnt

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
    "datasets",
    "debias",
    "load",
    "paper",
    "report",
    "representation_rate",
    "solvers",
    "statistical_rate",
]

# Loaded when first asked for: an ordinary fit needs none of them.
_MODULES = ("aif360", "baselines", "report")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fairmaxent.{name}")
    if name == "FairMaxEnt":
        return importlib.import_module("fairmaxent.estimator").FairMaxEnt
    raise AttributeError(f"module 'fairmaxent' has no attribute {name!r}")
