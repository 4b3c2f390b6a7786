"""fairmaxent: turn a biased table into a fair one by maximum entropy."""

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

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "Certificate",
    "ColumnError",
    "DependencyError",
    "Distribution",
    "Domain",
    "EvidenceError",
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
    "datasets",
    "debias",
    "load",
    "paper",
    "representation_rate",
    "solvers",
    "statistical_rate",
]
