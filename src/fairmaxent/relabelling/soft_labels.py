"""Soft labels, tilted until every group has the wanted outcomes; p(x, z) does not
change.

A model's soft labels π(y | x, z) become fair ones, g(y | x, z) ∝ π(y | x, z)·e^{μ(y,
z)}, with μ such that the mean of g in each group is the one that the fair table asks
for. Of all g with that mean it is the closest to π (smallest KL divergence averaged
over the profiles), so this is maximum entropy again, normalised profile by profile.

Equal means are not equal decisions: a decision also depends on a threshold, and groups
with the same mean can differ in the share of members above it. `closed_loop` is about
decisions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.maxent.logspace import log_sum_exp

Labels = NDArray[np.intp]

# Soft labels are kept away from zero: no model is trusted to be more certain than this.
FLOOR = 1e-6

_TOLERANCE = 1e-13  # error of a mean at which Newton's method stops
_ROUNDING = 1e-9  # error of a mean above which it was not met
_ITERATIONS = 200
_MARGIN = 1e-9  # between a score and the threshold that it must not pass


def tilt(soft: Reals, mass: Reals, groups: Labels, wanted: Reals) -> Reals:
    """g ∝ π·e^{μ(y, z)} whose mean in group z is ``wanted[:, z]``.

    ``soft`` is π (profiles × outcomes), ``mass`` the weight of each profile, ``wanted``
    t(y | z) (outcomes × groups). A group whose wanted shares are all 0 keeps its
    labels.
    """
    result = soft.copy()
    for group, members in _members(mass, groups, wanted):
        scores = _logarithm(soft[members])
        result[members] = _match_mean(
            _Means(scores, _share(mass[members]), wanted[:, group])
        ).labels
    return result


def _members(
    mass: Reals, groups: Labels, wanted: Reals
) -> list[tuple[int, NDArray[np.intp]]]:
    """Groups that have wanted shares, each with its profiles that have mass."""
    by_group = (
        (group, np.flatnonzero((groups == group) & (mass > 0)))
        for group in range(wanted.shape[1])
    )
    return [
        (group, members)
        for group, members in by_group
        if len(members) and wanted[:, group].sum() > 0
    ]


def _share(mass: Reals) -> Reals:
    return np.asarray(mass / mass.sum())


def _logarithm(soft: Reals) -> Reals:
    with np.errstate(divide="ignore"):
        return np.log(soft)


# ---------------------------------------------------------------- means


@dataclass(frozen=True, eq=False)
class _DualPoint:
    """The dual at offsets μ: the labels g there, its value, and its first and second
    derivatives.
    """

    offsets: Reals
    labels: Reals
    value: float
    gradient: Reals  # mean of g minus the wanted mean
    curvature: Reals

    @property
    def miss(self) -> float:
        return float(np.abs(self.gradient).max())


@dataclass(frozen=True, eq=False)
class _Means:
    """One group's scores, the share of each profile, and the wanted mean of g."""

    scores: Reals
    share: Reals
    wanted: Reals

    @property
    def kept(self) -> Mask:
        """Outcomes that take part; those wanted at zero are dropped."""
        return np.asarray(self.wanted > 0)

    def start(self) -> _DualPoint:
        """Outcomes wanted at zero are dropped; the others start at a first guess."""
        with np.errstate(divide="ignore"):
            labels = np.exp(self.scores - log_sum_exp(self.scores)[:, None])
            return self.at(
                np.log(self.wanted) - np.log(np.maximum(self.share @ labels, 1e-300))
            )

    def at(self, offsets: Reals) -> _DualPoint:
        """The dual D(μ) = Σᵢ sᵢ·log Σ_y e^{aᵢ(y) + μ(y)} − ⟨w, μ⟩, which is convex in
        μ.

        sᵢ is the share of profile i, aᵢ its scores, and w the wanted mean; g is the
        softmax of aᵢ + μ.
        """
        scores = self.scores + offsets
        logs = log_sum_exp(scores)
        labels = np.exp(scores - logs[:, None])
        mean = self.share @ labels
        curvature = np.diag(mean) - (labels * self.share[:, None]).T @ labels
        value = float(self.share @ logs - self.wanted[self.kept] @ offsets[self.kept])
        return _DualPoint(offsets, labels, value, mean - self.wanted, curvature)


def _match_mean(means: _Means) -> _DualPoint:
    """Solve for μ with Σ share·g = wanted, by Newton's method on the convex dual."""
    point = means.start()
    for _ in range(_ITERATIONS):
        better = None
        if not (point.miss <= _TOLERANCE):
            better = _newton_step(means, point)
        if better is None:
            break
        point = better
    if point.miss > _ROUNDING:
        raise InfeasibleError(
            f"no labels have the wanted outcomes, the closest are {point.miss:.3g}"
            " away: forbidden combinations leave too few rows that may have them."
            " Remove a rule from ",
            Option("forbid"),
            ", or lower ",
            Option("statistical_rate"),
            ".",
        )
    return point


def _newton_step(means: _Means, point: _DualPoint) -> _DualPoint | None:
    """Go along Newton's direction as far as it helps; None if rounding hides any
    gain.
    """
    kept = means.kept
    ridge = max(1e-14 * float(np.trace(point.curvature)), 1e-13)
    matrix = point.curvature[np.ix_(kept, kept)] + ridge * np.eye(kept.sum())
    direction = np.zeros(len(kept))  # with components clipped to ±10
    direction[kept] = np.clip(
        -np.linalg.lstsq(matrix, point.gradient[kept], rcond=None)[0], -10.0, 10.0
    )
    slope = float(point.gradient @ direction)
    for halvings in range(50):
        length = 0.5**halvings
        trial = means.at(point.offsets + length * direction)
        if trial.value < point.value + 1e-4 * length * slope:
            return trial
        # Near the end rounding hides the gain in the value, but the mean still shows
        # it; far from the end, judging by the mean would go in circles.
        if trial.value <= point.value + 1e-12 and trial.miss <= 0.9 * point.miss:
            return trial
    return None


# ---------------------------------------------------------------- decisions


def quantile(scores: Reals, share: Reals, above: float) -> float:
    """The cut with the share ``above`` over it, interpolated where many have the same
    score.

    A model of few rules gives few scores. The nearest cut would be the present one
    again and again; between two cuts, the labels move a little, and the next model
    draws its rules elsewhere.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    passed = np.concatenate([[0.0], np.cumsum(share[order])[ends]])
    distinct = ordered[ends]
    finite = np.flatnonzero(np.isfinite(distinct))
    if not len(finite):  # no other outcome is possible for anybody
        return 0.0
    first = finite[0]
    last = finite[-1]
    levels = distinct[first : last + 1]
    cuts = np.concatenate(
        [[levels[0] + _MARGIN], (levels[1:] + levels[:-1]) / 2, [levels[-1] - _MARGIN]]
    )
    return float(np.interp(above, passed[first : last + 2], cuts))
