"""Soft labels, tilted until every group has the wanted outcomes.

p(x, z) does not change. A model's soft labels π(y | x, z) become fair ones, g(y | x, z)
∝ π(y | x, z)·e^{μ(y, z)}, with μ such that the mean of g in each group is the one that
the fair table asks for. Of all g with that mean it is the closest to π (smallest KL
divergence averaged over the profiles), so this is maximum entropy again, normalised
profile by profile.

Equal means are not equal decisions: a decision also depends on a threshold, and groups
with the same mean can differ in the share of members above it. `closed_loop` is about
decisions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.maxent.dual import SearchPoint
from fairmaxent.maxent.logspace import log_sum_exp
from fairmaxent.maxent.solvers import backtrack

Labels = NDArray[np.intp]

# Soft labels are kept away from zero: no model is trusted to be more certain than this.
FLOOR = 1e-6

_TOLERANCE = 1e-13  # error of a mean at which Newton's method stops
_ROUNDING = 1e-9  # error of a mean above which it was not met
_ITERATIONS = 200


def tilt(
    soft: Reals,
    mass: Reals,
    groups: Labels,
    wanted: Reals,
) -> Reals:
    """g ∝ π·e^{μ(y, z)} whose mean in group z is ``wanted[:, z]``.

    ``soft`` is π (profiles × outcomes), ``mass`` the weight of each profile, ``wanted``
    t(y | z) (outcomes × groups). A group whose wanted shares are all 0 keeps its
    labels.
    """
    result = soft.copy()
    for group in range(wanted.shape[1]):
        members = np.flatnonzero((groups == group) & (mass > 0))
        if not len(members) or not wanted[:, group].sum() > 0:
            continue
        with np.errstate(divide="ignore"):
            scores = np.log(soft[members])
        share = mass[members] / mass[members].sum()
        means = _Means(
            scores=scores,
            share=share,
            wanted=wanted[:, group],
        )
        result[members] = _match_mean(means).labels
    return result


# ---------------------------------------------------------------- means


@dataclass(frozen=True, eq=False)
class _DualPoint(SearchPoint):
    """The dual at offsets μ; the gradient is the mean of g minus the wanted mean."""

    labels: Reals  # g
    curvature: Reals  # second derivatives


@dataclass(frozen=True, eq=False)
class _Means:
    """One group's scores, the share of each profile, and the wanted mean of g."""

    scores: Reals
    share: Reals
    wanted: Reals

    @property
    def kept(self) -> Mask:
        """Outcomes that take part; those wanted at zero are dropped."""
        return self.wanted > 0

    def start(self) -> _DualPoint:
        """Outcomes wanted at zero are dropped; the others start at a first guess."""
        with np.errstate(divide="ignore"):
            labels = np.exp(self.scores - log_sum_exp(self.scores)[:, None])
            mean = np.maximum(self.share @ labels, 1e-300)
            return self.at(np.log(self.wanted) - np.log(mean))

    def at(self, offsets: Reals) -> _DualPoint:
        """The dual D(μ) = Σᵢ sᵢ·log Σ_y e^{aᵢ(y) + μ(y)} − ⟨w, μ⟩, convex in μ.

        sᵢ is the share of profile i, aᵢ its scores, and w the wanted mean; g is the
        softmax of aᵢ + μ.
        """
        scores = self.scores + offsets
        logs = log_sum_exp(scores)
        labels = np.exp(scores - logs[:, None])
        mean = self.share @ labels
        curvature = np.diag(mean) - (labels * self.share[:, None]).T @ labels
        value = float(self.share @ logs - self.wanted[self.kept] @ offsets[self.kept])
        return _DualPoint(
            multipliers=offsets,
            value=value,
            gradient=mean - self.wanted,
            labels=labels,
            curvature=curvature,
        )


def _match_mean(means: _Means) -> _DualPoint:
    """Solve for μ with Σ share·g = wanted, by Newton's method on the convex dual."""
    point = means.start()
    for _ in range(_ITERATIONS):
        if point.residual <= _TOLERANCE:
            break
        better = backtrack(means.at, point, _direction(means, point))
        if better is None:
            break
        point = better
    if point.residual > _ROUNDING:
        raise InfeasibleError(
            f"no labels have the wanted outcomes, the closest are {point.residual:.3g}"
            " away; lower ",
            Option("statistical_rate"),
        )
    return point


def _direction(means: _Means, point: _DualPoint) -> Reals:
    """Newton's direction, not too far for any outcome."""
    kept = means.kept
    ridge = max(1e-14 * float(np.trace(point.curvature)), 1e-13)
    matrix = point.curvature[np.ix_(kept, kept)] + ridge * np.eye(kept.sum())
    newton, *_ = np.linalg.lstsq(matrix, point.gradient[kept], rcond=None)
    direction = np.zeros(len(kept))
    direction[kept] = np.clip(-newton, -10.0, 10.0)
    return direction
