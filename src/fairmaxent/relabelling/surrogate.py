"""A model of the student that does not see the group, and steps of its offsets.

η(x) and P(g | x) tell what the student would decide, and how that changes with λ.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.relabelling.task import Task, probability

_SMOOTH = 0.025  # width over which a decision turns
_STEPS = 15  # of Newton's method
_CLOSE = 1e-3  # to the wanted shares, at which it ends
_FARTHEST = 3.0  # offsets
_STEP = 0.3
_DIFFERENCE = 0.02  # of offsets between which slopes are taken
_SHORT = 0.02  # steps that say nothing about slopes
_CORRECTED = 0.7  # part of Broyden's correction
_FLATTEST = 0.2  # part of a first slope that must remain
_TINY = 1e-9


def hidden_gain(
    chances: Reals,
    groups: Reals,
    offsets: Reals,
    threshold: float,
) -> Reals:
    """η(x) − τ + Σ_g λ_g·P(g | x): it is decided for x where this is positive."""
    advantage = chances - threshold  # η(x) − τ
    shift = groups @ offsets  # Σ_g λ_g·P(g | x)
    return advantage + shift


@dataclass(frozen=True, eq=False)
class Slopes:
    """d shares / d offsets, corrected by what the student does."""

    size: Reals  # people of each group
    first: Reals  # by the surrogate
    now: Reals
    # of the step before
    offsets: Reals
    shares: Reals

    def moved(
        self,
        offsets: Reals,
        shares: Reals,
        missing: Reals,
    ) -> tuple[Reals, "Slopes"]:
        """One step, with slopes corrected by what the last one did."""
        slopes = self._corrected(offsets - self.offsets, shares - self.shares)
        step = replace(
            self,
            now=slopes,
            offsets=offsets,
            shares=shares,
        )
        return newton_step(slopes, self.size, offsets, missing), step

    def _corrected(self, step: Reals, change: Reals) -> Reals:
        """Broyden's method, unless a slope would vanish."""
        if np.linalg.norm(step) <= _SHORT:
            return self.now
        unforeseen = change - self.now @ step
        correction = _CORRECTED * np.outer(unforeseen, step) / (step @ step + 0.01)
        slopes = self.now + correction
        if (np.diag(slopes) >= _FLATTEST * np.diag(self.first)).all():
            return slopes
        return self.now


@dataclass(frozen=True, eq=False)
class Surrogate:
    """What the student would decide."""

    task: Task
    chances: Reals  # η(x)
    groups: Reals  # P(g | x)

    def shares(self, offsets: Reals) -> Reals:
        """Share of each group decided for."""
        gain = hidden_gain(self.chances, self.groups, offsets, self.task.threshold)
        decided = probability(np.clip(gain / _SMOOTH, -50, 50))
        return self.task.shares(decided)

    def solve(self, wanted: Reals) -> tuple[Reals, Slopes]:
        """Offsets with the wanted shares, by Newton's method, and the slopes there."""
        offsets = self._start(wanted)
        for _ in range(_STEPS):
            missing = wanted - self.shares(offsets)
            if np.abs(missing).max() < _CLOSE:
                break
            slopes = self.slopes(offsets)
            offsets = newton_step(slopes, self.task.size, offsets, missing)
        slopes = self.slopes(offsets)
        return offsets, Slopes(
            size=self.task.size,
            first=slopes,
            now=slopes,
            offsets=offsets,
            shares=wanted,
        )

    def _start(self, wanted: Reals) -> Reals:
        """The best of several offsets towards the wanted shares.

        Where η and P(g | x) rise together, small offsets only move one border for all.
        """
        lean = wanted - self.shares(np.zeros(self.task.groups))
        largest = max(float(np.abs(lean).max()), _TINY)
        starts = [part * lean / largest for part in np.linspace(0, 1, 6)]
        return min(starts, key=lambda start: np.abs(wanted - self.shares(start)).max())

    def slopes(self, offsets: Reals) -> Reals:
        """(shares, offsets): how much each share changes with each offset."""
        columns = []
        for unit in _DIFFERENCE * np.eye(len(offsets)):
            change = self.shares(offsets + unit) - self.shares(offsets - unit)
            columns.append(change / (2 * _DIFFERENCE))
        return np.array(columns).T


def newton_step(
    slopes: Reals,
    size: Reals,
    offsets: Reals,
    missing: Reals,
) -> Reals:
    """Offsets at which the shares rise by what is missing, as nearly as possible.

    Groups of few people count less.
    """
    scale = np.sqrt(size / size.sum())
    scaled = slopes * scale[:, None]
    square = scaled.T @ scaled
    ridge = 0.01 * np.trace(square) / len(square) + _TINY
    matrix = square + ridge * np.eye(len(square))
    step = np.linalg.solve(matrix, scaled.T @ (missing * scale))
    step *= min(1.0, _STEP / max(float(np.abs(step).max()), _TINY))
    return np.clip(offsets + step, -_FARTHEST, _FARTHEST)
