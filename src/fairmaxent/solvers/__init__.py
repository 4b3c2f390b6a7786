"""Solvers of the dual: frozen configurations with one method, ``solve``."""

from fairmaxent.solvers.box_newton import BoxNewton
from fairmaxent.solvers.newton import Newton
from fairmaxent.solvers.newton_cg import NewtonCG
from fairmaxent.solvers.solution import Solution, Solver, Status
from fairmaxent.solvers.thinned_newton import ThinnedNewton

__all__ = ["BoxNewton", "Newton", "NewtonCG", "Solution", "Solver", "Status", "ThinnedNewton"]
