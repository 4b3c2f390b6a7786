"""Solvers of the dual: frozen configurations with one method, ``solve``."""

from fairmaxent.maxent.solvers.box_newton import BoxNewton
from fairmaxent.maxent.solvers.newton import Newton
from fairmaxent.maxent.solvers.newton_cg import NewtonCG
from fairmaxent.maxent.solvers.solution import Solution, Solver, Status
from fairmaxent.maxent.solvers.thinned_newton import ThinnedNewton

__all__ = ["BoxNewton", "Newton", "NewtonCG", "Solution", "Solver", "Status", "ThinnedNewton"]
