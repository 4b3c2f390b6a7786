"""Solvers of the dual: frozen configurations with one method, ``solve``."""

from fairmaxent.maxent.solvers import (
    BoxNewton,
    Newton,
    NewtonCG,
    Solution,
    Solver,
    Status,
    ThinnedNewton,
)

__all__ = [
    "BoxNewton",
    "Newton",
    "NewtonCG",
    "Solution",
    "Solver",
    "Status",
    "ThinnedNewton",
]
