"""Solvers of the dual: frozen configurations with one method, ``solve``."""

from fairmaxent.maxent.solvers import (
    Newton,
    NewtonCG,
    Solution,
    Solver,
    Status,
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
