"""Mechanisms: the only ways in which anything about the rows gets out, each with its cost.

The noise comes from OpenDP, whose samplers are exact and use the operating system's randomness, so that neither a seed
nor floating point gives it away.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.errors import DependencyError, InputError


class Noise(Protocol):
    """What protects the rows; tests put others in its place."""

    def counts(self, table: Reals, scale: float) -> Reals:
        """Whole counts with noise of this standard deviation."""
        ...

    def choice(self, scores: Reals, scale: float) -> int:
        """The position of a score, each with probability ∝ e^{score/scale}."""
        ...


class OpenDP:
    """Noise from the library OpenDP."""

    def __init__(self) -> None:
        self._dp = _load()

    def counts(self, table: Reals, scale: float) -> Reals:
        """Whole counts with discrete Gaussian noise."""
        dp, whole = self._dp, np.round(table).astype(np.int64)
        space = dp.domains.vector_domain(dp.domains.atom_domain(T="i64")), dp.metrics.l2_distance(T="f64")
        measure = dp.measurements.make_gaussian(*space, scale=scale)
        _check_cost(measure.map(1.0), scale)
        return np.array(measure(whole.ravel().tolist()), dtype=np.float64).reshape(table.shape)

    def choice(self, scores: Reals, scale: float) -> int:
        """The noisy maximum."""
        dp = self._dp
        scored = dp.domains.vector_domain(dp.domains.atom_domain(T="f64", nan=False))
        cost = dp.measures.zero_concentrated_divergence()
        measure = dp.measurements.make_noisy_max(scored, dp.metrics.linf_distance(T="f64"), cost, scale=scale)
        _check_cost(measure.map(1.0), scale)
        return int(measure(scores.tolist()))


def scale_of(rho: float) -> float:
    """The scale at which one look at what a person changes by one costs ρ = 1/(2·scale²); never less noise."""
    return math.nextafter(math.sqrt(1 / (2 * rho)), math.inf)


def _check_cost(stated: float, scale: float) -> None:
    """Refuse a library that accounts for its noise in another way than the ledger does."""
    if not math.isclose(stated, 1 / (2 * scale**2), rel_tol=1e-9):
        raise InputError(f"OpenDP charges {stated:.6g} for noise of scale {scale:.6g}, and the ledger another amount")


def _load() -> Any:
    try:  # module by module: its prelude also imports everything that it can work with
        import opendp.domains
        import opendp.measurements
        import opendp.measures
        import opendp.metrics
        import opendp.mod
    except ImportError as error:
        raise DependencyError(
            "a private fit needs opendp, which is not installed; pip install 'fairmaxent[private]'"
        ) from error
    opendp.mod.enable_features("contrib")
    return opendp
