"""Relabelling: change which outcome rows have, rather than how much they count.

Reweighing keeps p(x | y, z) and moves the mass of the cells; if x predicts y well, a
model trained on the result still predicts the old outcome. Relabelling keeps p(x, z)
and moves the outcome, so that such a model learns the fair one.

A model's soft labels π(y | x, z) become fair ones, g(y | x, z) ∝ π(y | x, z)·e^{μ(y,
z)}, with μ such that the mean of g in each group is the one that the fair table asks
for. Of all g with that mean it is the closest to π (smallest KL divergence averaged
over the profiles), so this is maximum entropy again, normalised profile by profile.

Equal means are not equal decisions: a decision also depends on a threshold, and groups
with the same mean can differ in the share of members above it. `closed_loop` is about
decisions.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.reading import Reading
from fairmaxent.data.table import Counted, Mask, Reals, Table, ratio, tally
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fairness.fair_table import FairTable
from fairmaxent.fit.models import Model
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.student import Taught
from fairmaxent.maxent.logspace import log_sum_exp
from fairmaxent.maxent.search import ROUNDING, SearchPoint, backtrack, search
from fairmaxent.progress import Progress
from fairmaxent.relabelling.labellers import LOGISTIC, choose_labeller, cross_fit
from fairmaxent.relabelling.people import People, pooled_labels, root_shape

Labels = NDArray[np.intp]

# Soft labels are kept away from zero: no model is trusted to be more certain than this.
_FLOOR = 1e-6

_TOLERANCE = 1e-13  # error of a mean at which Newton's method stops
_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class Labelling:
    """How the outcomes of profiles are split.

    A refit is given what the fit before it has learned of that.
    """

    soft: Reals | None = None  # π(y | x, z); None: rows keep their outcome
    labels: Reals | None = None  # g(y | x, z)
    # the table that a student needs; None: none is asked for
    taught: Taught | None = None


def relabelled(
    problem: Problem,
    request: Request,
    data: Reading,
    learned: Labelling,
    progress: Progress,
) -> tuple[FairTable, Problem, Labelling]:
    """Make the fair table t(y, z), and relabel the rows if that is asked for.

    Every relabelled profile is there once per outcome, and as common as it was; e(y |
    z) is t(y | z) exactly. A student may need another table.
    """
    fair = problem.fair_table()
    taught = learned.taught
    if taught is not None:
        labels = taught.labels
        if labels is not None:
            problem = with_labels(problem, labels)
        table = replace(fair, table=taught.table)  # in the place of the fair one
        return table, problem, Labelling(labels, labels, taught)

    plan = request.relabelling
    if plan is None:
        return fair, problem, Labelling()

    check_in_memory(Option("model"), problem.table)
    progress("label", 0.0)
    soft = learned.soft
    if soft is None:
        soft = _soft_labels(problem, plan, data)
    labels = learned.labels
    if labels is None:
        raised = np.maximum(soft, _FLOOR)
        soft = raised / raised.sum(axis=1, keepdims=True)
        labels = _fair_labels(problem, fair, soft)
    return fair, with_labels(problem, labels), Labelling(soft, labels)


def check_in_memory(option: Option, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        raise InputError(
            option,
            " needs the distinct rows in memory, but they are on the workers of a"
            " cluster; compute() the frame first, or close the client",
        )


def _soft_labels(problem: Problem, plan: Model, data: Reading) -> Reals:
    """π(y | x, z): what the named model predicts for people it has not seen."""
    people = People.of(
        problem.roles,
        problem.table.collect(),
        problem.counted.collect().counts,
        positions=data.positions,
        design=data.design,
    )
    labeller = choose_labeller(problem.roles, plan.estimator or LOGISTIC)
    return pooled_labels(people, cross_fit(labeller, people))


def _fair_labels(problem: Problem, fair: FairTable, soft: Reals) -> Reals:
    """g(y | x, z): soft labels moved until their mean in each group is t(y | z)."""
    table = fair.table.reshape(root_shape(problem.blocks))
    sizes = table.sum(axis=0)  # t(z)
    wanted = ratio(table, sizes)
    profiles = problem.profiles
    return tilt(soft, profiles.mass, profiles.groups, wanted)


def with_labels(problem: Problem, labels: Reals) -> Problem:
    """The problem with every profile once per outcome, counting by its labels."""
    profiles = problem.profiles

    def shared(per_row: Reals) -> Reals:
        per_profile = tally(profiles.profile_of_row, per_row, len(labels))
        return (per_profile * labels.T).ravel()

    # The parts of a row stay one row: squared weights are shared out like the rest, or
    # rows would seem to be gained.
    rows = shared(problem.table.collect().rows)
    squares = shared(problem.counted.collect().squares)
    counts = (profiles.mass * labels.T).ravel()
    return replace(problem, table=Table(profiles.labelled(), counts, rows, squares))


# ---------------------------------------------------------------- tilting


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

    def step(point: _DualPoint) -> _DualPoint | None:
        return backtrack(means.at, point, _direction(means, point))

    found = search(
        means.start(), step, tolerance=_TOLERANCE, max_iterations=_ITERATIONS
    )
    point = found.point
    if point.residual > ROUNDING:
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
