"""Relabelling: soft labels tilted until every group has the wanted outcomes, with p(x, z) left alone.

From soft labels π(y | x, z) of a model come fair ones, g(y | x, z) ∝ π(y | x, z)·e^{μ(y, z)}, with μ such that the mean
of g in each group is what the fair table asks for. Of all g with that mean it is the closest to π (smallest KL
divergence averaged over the profiles), so this is maximum entropy once more, normalised profile by profile.

Means are about probabilities. A decision also has a threshold, and groups with the same mean can differ in how many of
their members pass it. `level` therefore moves and stretches each group's scores so that the *decisions* have wanted
shares too: the shift puts the wanted share beyond the threshold, the slope then restores the mean. Where no slope can,
the rest is done by the closest g that keeps every decision (a convex program again).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.data.table import tally
from fairmaxent.errors import InfeasibleError
from fairmaxent.maxent.logspace import log_sum_exp

Labels = NDArray[np.intp]

# Soft labels are kept away from zero: a model's certainty is never worth more than this.
FLOOR = 1e-6

_TOLERANCE = 1e-13  # of a mean, where Newton stops
_ROUNDING = 1e-9  # of a mean, above which it was not met
_ITERATIONS = 200
_MARGIN = 1e-9  # between a score and the threshold that it must not pass
_LEAD = 1e-9  # of a decision over what is tied with it, or rounding would decide
_STEEPEST = 8.0  # slopes are looked for between 1/8 and 8
_SHARPER = (4.0, 16.0, 64.0, 256.0)  # slopes by which shares of decisions are approached


def tilt(soft: Reals, mass: Reals, groups: Labels, wanted: Reals) -> Reals:
    """g ∝ π·e^{μ(y, z)} whose mean in group z is ``wanted[:, z]``; a group that nothing is wanted of stays.

    ``soft`` is π (profiles × outcomes), ``mass`` the weight of each profile, ``wanted`` t(y | z) (outcomes × groups).
    """
    result = soft.copy()
    for group, members in _members(mass, groups, wanted):
        scores = _logarithm(soft[members])
        result[members] = _match_mean(_Means(scores, _share(mass[members]), wanted[:, group])).labels
    return result


def level(
    soft: Reals, mass: Reals, groups: Labels, wanted: Reals, shares: Reals, *, handicap: Reals | None = None
) -> Reals:
    """g whose mean in group z is ``wanted[:, z]``, and of which a share ``shares[:, z]`` decides for each outcome.

    The decision is the likeliest outcome after ``handicap`` (one number per outcome) is taken from the logarithms:
    log τ/(1 − τ) for a threshold τ. Shares are met up to profiles that cannot be split: with two outcomes as near as
    any threshold comes. Where the tilt alone has these shares it stays, for nothing closer has the mean.
    """
    lead = np.zeros(soft.shape[1]) if handicap is None else handicap
    result = tilt(soft, mass, groups, wanted)
    for group, members in _members(mass, groups, wanted):
        share = _share(mass[members])
        decided = tally(decisions_of(result[members], lead), share, soft.shape[1])
        if np.abs(decided - shares[:, group]).max() > _ROUNDING:
            result[members] = _level_group(soft[members], share, wanted[:, group], shares[:, group], lead)
    return result


def _level_group(soft: Reals, share: Reals, wanted: Reals, decided: Reals, handicap: Reals) -> Reals:
    """Shift the scores of one group for the decisions, stretch them for the mean, and project for what is left."""
    scores = _logarithm(np.where(wanted > 0, soft, 0.0)) - handicap
    scores = scores + _match_shares(scores, share, decided)
    decisions = np.argmax(scores, axis=1)
    stretched = _match_slope(scores, handicap, share, wanted)
    return _match_mean(_Means(stretched + handicap, share, wanted, decisions, handicap)).labels


def decisions_of(soft: Reals, handicap: Reals | None = None) -> Labels:
    """The likeliest outcome of each profile after the handicap."""
    scores = _logarithm(soft)
    return np.asarray(np.argmax(scores if handicap is None else scores - handicap, axis=1))


def _members(mass: Reals, groups: Labels, wanted: Reals) -> list[tuple[int, NDArray[np.intp]]]:
    """Groups with people of whom something is wanted."""
    found = ((group, np.flatnonzero((groups == group) & (mass > 0))) for group in range(wanted.shape[1]))
    return [(group, members) for group, members in found if len(members) and wanted[:, group].sum() > 0]


def _share(mass: Reals) -> Reals:
    return np.asarray(mass / mass.sum())


def _logarithm(soft: Reals) -> Reals:
    with np.errstate(divide="ignore"):
        return np.log(soft)


def _softmax(scores: Reals) -> Reals:
    return np.asarray(np.exp(scores - log_sum_exp(scores)[:, None]))


# ---------------------------------------------------------------- means


@dataclass(frozen=True, eq=False)
class _DualPoint:
    """The dual at offsets μ: the labels g there, its value, and its first and second derivatives."""

    offsets: Reals
    labels: Reals
    value: float
    gradient: Reals  # mean of g less what is wanted
    curvature: Reals

    @property
    def miss(self) -> float:
        return float(np.abs(self.gradient).max())


@dataclass(frozen=True, eq=False)
class _Means:
    """One group's scores, the share of each profile, the wanted mean of g, and the decisions to keep, if any."""

    scores: Reals
    share: Reals
    wanted: Reals
    decisions: Labels | None = None
    handicap: Reals | None = None

    @property
    def kept(self) -> Mask:
        """Outcomes that take part; those wanted at zero are dropped."""
        return np.asarray(self.wanted > 0)

    def start(self) -> _DualPoint:
        """Drop what is not wanted; where no decision must be kept, a first guess at the rest."""
        if self.decisions is not None:
            return self.at(np.where(self.kept, 0.0, -np.inf))
        with np.errstate(divide="ignore"):
            return self.at(np.log(self.wanted) - np.log(np.maximum(self.share @ _softmax(self.scores), 1e-300)))

    def at(self, offsets: Reals) -> _DualPoint:
        """Σ share·max over g of (⟨g, score + μ⟩ + its entropy) − ⟨wanted, μ⟩, convex in μ; log Σ e^{score + μ} if free.

        Outcomes that are pooled move as one, so their part of the covariance is that of a single outcome.
        """
        scores = self.scores + offsets
        pool = np.zeros(scores.shape, dtype=bool)
        tilted = scores
        if self.decisions is not None and self.handicap is not None:
            tilted, pool = _pooled(scores, self.decisions, self.handicap)
        found = _softmax(tilted)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(found > 0, found * (scores - np.log(found)), 0.0).sum(axis=1)
        mean = self.share @ found
        together = np.where(pool, found, 0.0)
        together = together / np.sqrt(np.maximum(together.sum(axis=1, keepdims=True), 1e-300))
        weight = self.share[:, None]
        curvature = (together * weight).T @ together - (found * weight).T @ found
        curvature += np.diag(self.share @ np.where(pool, 0.0, found))
        value = float(self.share @ gain - self.wanted[self.kept] @ offsets[self.kept])
        return _DualPoint(offsets, found, value, mean - self.wanted, curvature)


def _match_mean(means: _Means) -> _DualPoint:
    """Solve for μ with Σ share·g = wanted, by Newton on the convex dual."""
    point = means.start()
    for _ in range(_ITERATIONS):
        better = None if point.miss <= _TOLERANCE else _newton_step(means, point)
        if better is None:
            break
        point = better
    if point.miss > _ROUNDING:
        raise InfeasibleError(_refusal(means, point.miss))
    return point


def _newton_step(means: _Means, point: _DualPoint) -> _DualPoint | None:
    """Go along Newton's direction as far as it helps; None where rounding hides any gain."""
    direction = _newton_direction(point, means.kept)
    slope = float(point.gradient @ direction)
    for halvings in range(50):
        length = 0.5**halvings
        trial = means.at(point.offsets + length * direction)
        if trial.value < point.value + 1e-4 * length * slope:
            return trial
        # Near the end rounding hides what the value gains, the mean still tells; far from it this would go in circles.
        if trial.value <= point.value + 1e-12 and trial.miss <= 0.9 * point.miss:
            return trial
    return None


def _newton_direction(point: _DualPoint, kept: Mask) -> Reals:
    """Newton's direction, no component beyond 10; on a flat stretch, where all is pooled, down the gradient."""
    ridge = max(1e-14 * float(np.trace(point.curvature)), 1e-13)
    matrix = point.curvature[np.ix_(kept, kept)] + ridge * np.eye(kept.sum())
    direction = np.zeros(len(kept))
    direction[kept] = np.clip(-np.linalg.lstsq(matrix, point.gradient[kept], rcond=None)[0], -10.0, 10.0)
    return direction


def _refusal(means: _Means, miss: float) -> str:
    if means.decisions is None:
        return (
            f"labels cannot have the wanted outcomes, they stay {miss:.3g} away: forbidden combinations leave too few "
            "rows that may have them. Drop a rule, or ask for a lower statistical_rate."
        )
    return (
        f"no labels have the wanted outcomes and the wanted decisions at once, they stay {miss:.3g} away. Use "
        "parity='probabilities', another threshold, or another labeller."
    )


def _pooled(scores: Reals, decisions: Labels, handicap: Reals) -> tuple[Reals, Mask]:
    """Scores of the closest g (smallest KL) whose decision leads, and which outcomes are tied with it.

    The decision and all that were ahead of it meet at their average, weighted by e^handicap, and it leads by a hair.
    """
    rows = np.arange(len(scores))
    fair = scores - handicap
    order = np.argsort(-fair, axis=1, kind="stable")
    first = order == decisions[:, None]
    order = np.take_along_axis(order, np.argsort(~first, axis=1, kind="stable"), axis=1)  # the decision, then the rest
    ordered = np.take_along_axis(fair, order, axis=1)
    weights = np.exp(handicap)[order]
    averages = np.cumsum(weights * ordered, axis=1) / np.cumsum(weights, axis=1)
    ahead = (ordered[:, 1:] > averages[:, :-1]).sum(axis=1)  # once one is not ahead of the average, none is
    meeting = averages[rows, ahead]
    pool = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(pool, order, np.arange(scores.shape[1]) <= ahead[:, None], axis=1)
    result = np.where(pool, meeting[:, None], fair)
    result[rows, decisions] += np.where(ahead > 0, _LEAD, 0.0)
    return result + handicap, pool


# ---------------------------------------------------------------- decisions


def _match_shares(scores: Reals, share: Reals, wanted: Reals) -> Reals:
    """Offsets after which a share ``wanted[y]`` of the profiles has y as its likeliest outcome.

    With two outcomes this is a quantile. With more it is the dual of an optimal assignment of profiles to outcomes;
    means of ever steeper softmaxes, which are convex problems, lead to it.
    """
    if len(wanted) == 2:
        return np.array([0.0, -_quantile(scores[:, 1] - scores[:, 0], share, wanted[1])])
    offsets = np.zeros(len(wanted))
    for slope in _SHARPER:
        try:
            steeper = _match_mean(_Means(slope * (scores + offsets), share, wanted))
        except InfeasibleError:  # profiles that cannot be split: as near as the last slope came
            break
        offsets = offsets + steeper.offsets / slope
    return _behind(scores, offsets, wanted)


def _behind(scores: Reals, offsets: Reals, wanted: Reals) -> Reals:
    """Give outcomes that nobody should be decided for the largest offset with which they lead nowhere."""
    none = wanted <= 0
    lead = np.max((scores + offsets)[:, ~none], axis=1)
    caps = np.min(lead[:, None] - scores, axis=0) - _MARGIN
    return np.where(none, np.where(np.isfinite(caps), caps, 0.0), offsets)


def _quantile(scores: Reals, share: Reals, above: float) -> float:
    """Halfway between two scores, where the share above comes nearest to what is wanted."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    passed = np.concatenate([[0.0], np.cumsum(share[order])[ends]])
    cut = int(np.argmin(np.abs(passed - above)))
    upper, lower = np.concatenate([[np.inf], ordered[ends], [-np.inf]])[cut : cut + 2]
    if np.isinf(upper):  # nobody, or only those who can have no other outcome
        return float(lower + _MARGIN) if np.isfinite(lower) else 0.0
    return float(upper - _MARGIN) if np.isinf(lower) else float((upper + lower) / 2)


def _match_slope(scores: Reals, handicap: Reals, share: Reals, wanted: Reals) -> Reals:
    """Stretch the scores about the threshold until the mean is nearest to what is wanted."""
    from scipy.optimize import minimize_scalar

    def miss(logarithm: float) -> float:
        mean = share @ _softmax(np.exp(logarithm) * scores + handicap)
        return float(np.abs(mean - wanted).sum())

    most = np.log(_STEEPEST)
    grid = np.linspace(-most, most, 33)
    best = grid[int(np.argmin([miss(point) for point in grid]))]
    step = grid[1] - grid[0]
    found = minimize_scalar(miss, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-12})
    return np.asarray(np.exp(found.x) * scores)
