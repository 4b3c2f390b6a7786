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

import numpy as np
from numpy.typing import NDArray

from fairmaxent.errors import SolverError
from fairmaxent.priors.protocol import log_sum_exp
from fairmaxent.table import Reals

Labels = NDArray[np.intp]

# Soft labels are kept away from zero: a model's certainty is never worth more than this.
FLOOR = 1e-6

_TOLERANCE = 1e-13
_ROUNDING = 1e-9
_STEEPEST = 8.0  # slopes are looked for between 1/8 and 8
_SHARPER = (4.0, 16.0, 64.0, 256.0)  # slopes by which shares of decisions are approached


def tilt(soft: Reals, mass: Reals, groups: Labels, wanted: Reals) -> Reals:
    """g ∝ π·e^{μ(y, z)} whose mean in group z is ``wanted[:, z]``; a group that nothing is wanted of stays.

    ``soft`` is π (profiles × outcomes), ``mass`` the weight of each profile, ``wanted`` t(y | z) (outcomes × groups).
    """
    result = soft.copy()
    for group, members in _members(mass, groups, wanted):
        scores = _logarithm(soft[members])
        offsets = _match_mean(scores, _share(mass[members]), wanted[:, group])
        result[members] = _softmax(scores + offsets)
    return result


def level(
    soft: Reals, mass: Reals, groups: Labels, wanted: Reals, shares: Reals, *, handicap: Reals | None = None
) -> Reals:
    """g whose mean in group z is ``wanted[:, z]``, and of which a share ``shares[:, z]`` decides for each outcome.

    The decision is the likeliest outcome after ``handicap`` (one number per outcome) is taken from the logarithms:
    log τ/(1 − τ) for a threshold τ. Shares are met up to a profile that cannot be split.
    """
    lead = np.zeros(soft.shape[1]) if handicap is None else handicap
    result = soft.copy()
    for group, members in _members(mass, groups, wanted):
        share = _share(mass[members])
        scores = _logarithm(soft[members]) - lead
        scores = scores + _match_shares(scores, share, shares[:, group])
        decisions = np.argmax(scores, axis=1)
        scores = _match_slope(scores, lead, share, wanted[:, group])
        offsets = _match_mean(scores + lead, share, wanted[:, group], decisions=decisions, handicap=lead)
        result[members] = _softmax(_pooled(scores + lead + offsets, decisions, lead))
    return result


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


def _match_mean(
    scores: Reals, share: Reals, wanted: Reals, *, decisions: Labels | None = None, handicap: Reals | None = None
) -> Reals:
    """μ with Σ share·g = wanted, by Newton on the convex Σ share·log Σ_y e^{score + μ} − ⟨wanted, μ⟩.

    With ``decisions`` g is the closest distribution that keeps them; outcomes wanted at zero are dropped.
    """
    with np.errstate(divide="ignore"):
        offsets = np.log(wanted) - np.log(np.maximum(share @ _softmax(scores), 1e-300))
    kept = wanted > 0
    if decisions is not None:
        offsets = np.where(kept, 0.0, -np.inf)
    value, mean, curvature = _moments(scores, share, wanted, offsets, decisions, handicap)
    for _ in range(200):
        gradient = (mean - wanted)[kept]
        if np.abs(gradient).max() <= _TOLERANCE:
            return offsets
        ridge = 1e-14 * max(float(np.trace(curvature)), 1e-300)
        direction = np.zeros_like(offsets)
        matrix = curvature[np.ix_(kept, kept)] + ridge * np.eye(kept.sum())
        direction[kept] = -np.linalg.lstsq(matrix, gradient, rcond=None)[0]
        direction[kept] = np.clip(direction[kept], -10.0, 10.0)
        slope = float(gradient @ direction[kept])
        length, found = 1.0, False
        for _ in range(50):
            trial = np.where(kept, offsets + length * direction, offsets)
            new = _moments(scores, share, wanted, trial, decisions, handicap)
            closer = np.abs(new[1] - wanted).max() <= 0.9 * np.abs(gradient).max()
            if closer or new[0] < value + 1e-4 * length * slope:
                offsets, (value, mean, curvature), found = trial, new, True
                break
            length /= 2
        if not found:
            break
    if np.abs(mean - wanted).max() > _ROUNDING:
        raise SolverError(
            f"soft labels cannot be given the wanted outcomes: they stay {np.abs(mean - wanted).max():.3g} away. "
            "Use parity='probabilities', ask for a lower statistical_rate, or pass another labeller."
        )
    return offsets


def _moments(
    scores: Reals, share: Reals, wanted: Reals, offsets: Reals, decisions: Labels | None, handicap: Reals | None
) -> tuple[float, Reals, Reals]:
    """Value, mean and curvature of the dual at μ."""
    tilted = scores + offsets
    if decisions is not None and handicap is not None:
        tilted = _pooled(tilted, decisions, handicap)
    found = _softmax(tilted)
    kept = wanted > 0
    # max ⟨g, score⟩ + entropy of g is log Σ e^score, also where g must keep a decision
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(found > 0, found * (scores + offsets - np.log(found)), 0.0).sum(axis=1)
    mean = share @ found
    curvature = np.diag(mean) - (found * share[:, None]).T @ found
    return float(share @ gain - wanted[kept] @ offsets[kept]), mean, curvature


def _pooled(scores: Reals, decisions: Labels, handicap: Reals) -> Reals:
    """The closest scores for which the decision leads: it and all that were ahead of it meet at their average."""
    fair = scores - handicap
    rows = np.arange(len(fair))
    own = fair[rows, decisions]
    others = fair.copy()
    others[rows, decisions] = -np.inf
    others = -np.sort(-others, axis=1)
    with np.errstate(invalid="ignore"):
        averages = (own[:, None] + np.cumsum(others, axis=1)) / np.arange(2, fair.shape[1] + 2)
        before = np.concatenate([own[:, None], averages[:, :-1]], axis=1)
        ahead = (others > before).sum(axis=1)
    meeting = np.where(ahead > 0, averages[rows, np.maximum(ahead - 1, 0)], own)
    result = np.minimum(fair, meeting[:, None])
    result[rows, decisions] = meeting
    return np.asarray(result + handicap)


def _match_shares(scores: Reals, share: Reals, wanted: Reals) -> Reals:
    """Offsets after which a share ``wanted[y]`` of the profiles has y as its likeliest outcome.

    With two outcomes this is a quantile. With more it is the dual of an optimal assignment of profiles to outcomes;
    means of ever steeper softmaxes, which are convex problems, lead to it.
    """
    if len(wanted) == 2:
        return np.array([0.0, -_quantile(scores[:, 1] - scores[:, 0], share, wanted[1])])
    offsets = np.zeros(len(wanted))
    goal = np.maximum(wanted, 0.5 / len(share))
    goal = goal / goal.sum()
    for slope in _SHARPER:
        try:
            offsets = offsets + _match_mean(slope * (scores + offsets), share, goal) / slope
        except SolverError:  # profiles that cannot be split: as near as the last slope came
            break
    return offsets


def _quantile(scores: Reals, share: Reals, above: float) -> float:
    """Halfway between two scores, where the share above comes nearest to what is wanted."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    passed = np.concatenate([[0.0], np.cumsum(share[order])[ends]])
    cut = int(np.argmin(np.abs(passed - above)))
    bounds = np.concatenate([[ordered[0] + 1.0], ordered[ends], [ordered[-1] - 1.0]])
    if cut == 0:
        return float(ordered[0] + 1e-9)
    if cut == len(ends):
        return float(ordered[-1] - 1e-9)
    return float((bounds[cut] + bounds[cut + 1]) / 2)


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
