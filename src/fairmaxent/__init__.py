"""fairmaxent: turn a biased table into a fair one by maximum entropy."""

import importlib
from typing import TYPE_CHECKING, Any

from fairmaxent.errors import (
    ColumnError,
    ConflictError,
    DependencyError,
    EvidenceError,
    FairMaxEntError,
    ForbiddenError,
    InfeasibleError,
    InputError,
    LevelError,
    LimitError,
    RateError,
    SolverError,
    StorageError,
    TargetError,
    WeightError,
)

if TYPE_CHECKING:
    from fairmaxent import aif360, baselines, datasets, paper, report, solvers
    from fairmaxent.baselines.comparison import compare
    from fairmaxent.data.attribute import Attribute
    from fairmaxent.data.domain import Domain
    from fairmaxent.data.limits import max_memory
    from fairmaxent.estimator import FairMaxEnt
    from fairmaxent.evaluation.evaluation import Evaluation
    from fairmaxent.evaluation.pipeline import evaluate
    from fairmaxent.fit.certificate import Certificate
    from fairmaxent.fit.distribution import Distribution
    from fairmaxent.fit.fit import Fit, load
    from fairmaxent.fit.pipeline import debias
    from fairmaxent.fit.plans import Estimate, Relabel
    from fairmaxent.fit.uncertainty import Uncertainty
    from fairmaxent.fit.verification import Verification, verify
    from fairmaxent.inspection import inspect
    from fairmaxent.metrics.definitions import (
        conditional_demographic_disparity,
        equal_opportunity,
        equalised_odds,
        representation_rate,
        statistical_rate,
    )
    from fairmaxent.metrics.group_calibration import calibration
    from fairmaxent.metrics.scorer import FairScorer, fair_scorer
    from fairmaxent.privacy.budget import Ledger, Privacy
    from fairmaxent.raking.certificate import RakingCertificate
    from fairmaxent.raking.raking import Raking, rake

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "Certificate",
    "ColumnError",
    "ConflictError",
    "DependencyError",
    "Distribution",
    "Domain",
    "Estimate",
    "Evaluation",
    "EvidenceError",
    "FairMaxEnt",
    "FairMaxEntError",
    "FairScorer",
    "Fit",
    "ForbiddenError",
    "InfeasibleError",
    "InputError",
    "Ledger",
    "LevelError",
    "LimitError",
    "Privacy",
    "Raking",
    "RakingCertificate",
    "RateError",
    "Relabel",
    "SolverError",
    "StorageError",
    "TargetError",
    "Uncertainty",
    "Verification",
    "WeightError",
    "aif360",
    "baselines",
    "calibration",
    "compare",
    "conditional_demographic_disparity",
    "datasets",
    "debias",
    "equal_opportunity",
    "equalised_odds",
    "evaluate",
    "fair_scorer",
    "inspect",
    "load",
    "max_memory",
    "paper",
    "rake",
    "report",
    "representation_rate",
    "solvers",
    "statistical_rate",
    "verify",
]

# Loaded when first asked for, so that importing the package, or asking the command line for help, costs nothing.
_MODULES = ("aif360", "baselines", "datasets", "paper", "report", "solvers")
_HOMES = {
    "Attribute": "data.attribute",
    "Certificate": "fit.certificate",
    "Distribution": "fit.distribution",
    "Domain": "data.domain",
    "Estimate": "fit.plans",
    "Evaluation": "evaluation.evaluation",
    "FairMaxEnt": "estimator",
    "FairScorer": "metrics.scorer",
    "Fit": "fit.fit",
    "Ledger": "privacy.budget",
    "Privacy": "privacy.budget",
    "Raking": "raking.raking",
    "RakingCertificate": "raking.certificate",
    "Relabel": "fit.plans",
    "Uncertainty": "fit.uncertainty",
    "Verification": "fit.verification",
    "calibration": "metrics.group_calibration",
    "compare": "baselines.comparison",
    "conditional_demographic_disparity": "metrics.definitions",
    "debias": "fit.pipeline",
    "equal_opportunity": "metrics.definitions",
    "equalised_odds": "metrics.definitions",
    "evaluate": "evaluation.pipeline",
    "fair_scorer": "metrics.scorer",
    "inspect": "inspection",
    "load": "fit.fit",
    "max_memory": "data.limits",
    "rake": "raking.raking",
    "representation_rate": "metrics.definitions",
    "statistical_rate": "metrics.definitions",
    "verify": "fit.verification",
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
