"""fairmaxent: turn a biased table into a fair one by maximum entropy."""

import importlib

# `typing` is slow to import, and until the command line has started Ctrl-C shows a
# traceback
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fairmaxent import baselines, datasets, errors, metrics, paper, report
    from fairmaxent.baselines.comparison import compare
    from fairmaxent.data.domain import Domain
    from fairmaxent.data.likely import Likely
    from fairmaxent.debiasing import debias, load
    from fairmaxent.errors import FairMaxEntError, InfeasibleError, InputError
    from fairmaxent.estimator import FairMaxEnt
    from fairmaxent.evaluation.evaluation import evaluate
    from fairmaxent.fair_classifier import FairClassifier
    from fairmaxent.fit.models import Estimate, Model
    from fairmaxent.fit.verification import verify
    from fairmaxent.gate import check
    from fairmaxent.inspection import inspect
    from fairmaxent.privacy.budget import Privacy
    from fairmaxent.raking.raking import rake

    __version__: str

__all__ = [
    "Domain",
    "Estimate",
    "FairClassifier",
    "FairMaxEnt",
    "FairMaxEntError",
    "InfeasibleError",
    "InputError",
    "Likely",
    "Model",
    "Privacy",
]
__all__ += ["baselines", "check", "compare", "datasets", "debias", "errors", "evaluate"]
__all__ += ["inspect", "load", "metrics", "paper", "rake", "report", "verify"]

# Loaded when first asked for, so that importing the package, or asking the command line
# for help, costs nothing.
_MODULES = ("baselines", "datasets", "errors", "metrics", "paper", "report")
_NAMES = {
    "baselines.comparison": ("compare",),
    "data.domain": ("Domain",),
    "data.likely": ("Likely",),
    "debiasing": ("debias", "load"),
    "errors": ("FairMaxEntError", "InfeasibleError", "InputError"),
    "estimator": ("FairMaxEnt",),
    "evaluation.evaluation": ("evaluate",),
    "fair_classifier": ("FairClassifier",),
    "fit.models": ("Estimate", "Model"),
    "fit.verification": ("verify",),
    "gate": ("check",),
    "inspection": ("inspect",),
    "privacy.budget": ("Privacy",),
    "raking.raking": ("rake",),
}
_HOMES = {
    name: f"fairmaxent.{module}" for module, names in _NAMES.items() for name in names
}


def __getattr__(name: str) -> "Any":
    if name in _MODULES:
        return importlib.import_module(f"fairmaxent.{name}")
    if name == "__version__":  # pyproject.toml states it, and the installation knows it
        found: Any = importlib.import_module("importlib.metadata").version("fairmaxent")
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'fairmaxent' has no attribute {name!r}")
    globals()[name] = found  # the next look finds it at once
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
