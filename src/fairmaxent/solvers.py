"""Solvers of the dual: frozen configurations with one method, ``solve``."""

from fairmaxent.maxent.search import Status
from fairmaxent.maxent.solvers import (
    Newton,
    NewtonCG,
    Solution,
    Solver,
    ThinnedNewton,
)

__all__ = [
    "Newton",
    "NewtonCG",
    "Solution",
    "Solver",
    "Status",
    "ThinnedNewton",
]
