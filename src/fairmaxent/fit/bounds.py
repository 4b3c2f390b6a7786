"""Bounds: what the paper proves of a fit before it is looked at."""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.data.blocks import mask
from fairmaxent.data.roles import Roles
from fairmaxent.fairness.measure import Measure
from fairmaxent.fairness.rates import group_table, worst_ratio
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.protocol import Prior


def theorem_4_5(tau: float, *, base_mass: float, delta: float) -> float:
    """τ' = τ − δ(1 + τ)/(m + δ), where q(y, z) ≥ m in every cell; m = C/4 for the uniform base on two by two cells.

    With m = C/4 this is the paper's τ − 4δ(1 + τ)/(C + 4δ).
    """
    if delta == 0:
        return tau
    return max(0.0, tau - delta * (1 + tau) / (base_mass + delta))


def lemma_4_2(log_floor: float, shares: list[Reals]) -> float:
    """‖λ*‖₂ ≤ L_q/η, with L_q = log 1/min q and η the distance of θ to the boundary of the features' hull.

    The indicators of one alphabet, less the reference, fill a simplex; its faces are θ_i away, and the one opposite
    the origin θ_reference/√(number of indicators).
    """
    radius = np.inf
    for share in shares:
        ordered = np.sort(share[share > 0])
        if len(ordered) > 1:
            radius = min(radius, ordered[0], ordered[-1] / np.sqrt(len(ordered) - 1))
    return float(-log_floor / radius)


def rate_bound(
    optimum: Optimum,
    measure: Measure,
    achieved: Reals,
    *,
    base: Prior,
    base_share: float,
    tau: float | None,
) -> tuple[float, float]:
    """Theorem 4.5 with its δ, on the worst grouping and favourable outcome.

    The theorem's own hypotheses (Algorithm 1, θ between 1/2 and 1/(1 + τ)) allow τ as it is. Otherwise its proof, which
    bounds a ratio of joint probabilities, is applied to the same numbers divided by the groups' shares, which are
    rates.
    """
    features = optimum.dual.features
    roots = features.blocks.slices[0]
    prior = optimum.dual.start.tilted.levels[roots].reshape(achieved.shape)
    base_table = base.tilt(mask(features.possible)).levels[roots].reshape(achieved.shape)
    bounds, deltas = [], []
    for grouping in measure.groupings:
        present = group_table(achieved, grouping)
        outcomes = [level for level in measure.favourable_of(grouping) if present[level].any()]
        if not outcomes:  # a target removed every favourable outcome: there is nothing to compare
            continue
        seen = group_table(measure.groups_compared(achieved, grouping), grouping).sum(axis=0) > 0
        sizes = group_table(achieved, grouping).sum(axis=0)[seen] if tau is None else 1.0
        joint, reached, base_joint = (
            group_table(table, grouping)[outcomes][:, seen] / sizes for table in (prior, achieved, base_table)
        )
        delta = float(np.max(np.abs(reached - joint)))
        ratio = _worst_ratio(joint, seen, measure.strata) if tau is None else tau
        bounds.append(theorem_4_5(ratio, base_mass=base_share * float(base_joint.min()), delta=delta))
        deltas.append(delta)
    if not bounds:
        return 1.0, 0.0
    worst = int(np.argmin(bounds))
    return bounds[worst], deltas[worst]


def _worst_ratio(joint: Reals, seen: Mask, strata: int) -> float:
    """The smallest ratio between the seen groups (last axis) of a stratum, for the worst outcome."""
    return min(worst_ratio(_spread(row, seen), strata) for row in joint)


def _spread(values: Reals, seen: Mask) -> Reals:
    result = np.full(seen.shape, np.nan)
    result[seen] = values
    return result


def multiplier_bound(optimum: Optimum, roles: Roles, simplices: list[Reals]) -> float | None:
    """Lemma 4.2; it speaks of indicators and of a prior that reaches every point."""
    if not optimum.dual.prior.full_support:
        return None
    if any(attribute.features == "moment" for attribute in roles.domain.attributes):
        return None
    return lemma_4_2(optimum.dual.prior.log_floor(), simplices)
