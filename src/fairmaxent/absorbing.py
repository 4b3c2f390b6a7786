"""Where a change of the outcomes is absorbed: in how much rows count, or in which outcome they have.

Reweighing keeps p(x | y, z) and moves the mass of the cells; a model that sees x well enough then still tells the old
outcome. Relabelling keeps p(x, z) and moves the outcome, so that a model trained on the result learns the fair one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fairmaxent.errors import InfeasibleError, InputError, check_choice
from fairmaxent.fairness import check_rate, fair_table
from fairmaxent.labeller import check_model, choose_labeller, cross_fit
from fairmaxent.problem import HALF_A_ROW, Problem
from fairmaxent.profiles import Profiles, root_shape
from fairmaxent.relabelling import FLOOR, Labels, decisions_of, level, tilt
from fairmaxent.table import Counted, Reals, Table, tally

AbsorbOption = Literal["reweigh", "relabel"]
ParityOption = Literal["probabilities", "predictions"]


@dataclass(frozen=True)
class Absorption:
    """What the user chose; from a probability of ``threshold`` on, a model decides for the favourable outcome."""

    absorb: AbsorbOption = "reweigh"
    parity: ParityOption = "probabilities"
    threshold: float = 0.5
    labeller: Any = None

    def __post_init__(self) -> None:
        check_choice("absorb", self.absorb, AbsorbOption)
        check_choice("parity", self.parity, ParityOption)
        check_rate("threshold", self.threshold)
        if self.threshold == 1:
            raise InputError("threshold is 1, which no probability exceeds; pass a number below 1")
        check_model("labeller", self.labeller)
        if self.absorb == "relabel":
            return
        for name, given in (
            ("parity='predictions'", self.parity == "predictions"),
            ("a labeller", self.labeller is not None),
            ("a threshold", self.threshold != 0.5),
        ):
            if given:
                raise InputError(f"{name} is about soft labels; it needs absorb='relabel'")


def check_in_memory(option: str, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        raise InputError(
            f"{option} needs the distinct rows in memory, but they are on the workers of a cluster; compute() the "
            "frame first, or close the client"
        )


def soft_labels(problem: Problem, labeller: Any) -> Reals:
    """π(y | x, z) of the profiles of a problem, cross-fitted."""
    profiles = _profiles(problem)
    return cross_fit(choose_labeller(problem.roles, labeller), profiles)


def relabel(problem: Problem, fair: Reals, wishes: Absorption, soft: Reals) -> Problem:
    """Return the problem with every profile once per outcome, counting n(x, z)·g(y | x, z).

    ``fair`` is the fair table t(y, z). Then e(y | z) is t(y | z) exactly, and each profile is as common as it was.
    """
    blocks, profiles = problem.blocks, _profiles(problem)
    soft = _possible(problem, profiles, soft)
    fair = fair.reshape(root_shape(blocks))
    shares = fair.sum(axis=0)
    wanted = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    mass, groups = profiles.mass, profiles.groups
    labels = tilt(soft, mass, groups, wanted)
    if wishes.parity == "predictions":
        handicap = _handicap(problem, wishes.threshold)
        decided = _decided_shares(problem, labels, mass, groups, handicap)
        labels = level(soft, mass, groups, wanted, decided, handicap=handicap)
    return replace(problem, table=_labelled_table(problem.table.collect(), profiles, labels))


def _profiles(problem: Problem) -> Profiles:
    """The profiles of a problem's rows; those that a rule forbids count zero."""
    return Profiles.of(problem.table.collect(), problem.blocks, problem.counted.collect().counts)


def _possible(problem: Problem, profiles: Profiles, soft: Reals) -> Reals:
    """Soft labels away from zero, but zero where a rule forbids an outcome for a profile."""
    kept = np.ones(soft.shape, dtype=bool)
    codes = profiles.labelled()
    for rule in problem.rules:
        kept &= ~rule.breaks(codes).reshape(soft.shape[::-1]).T
    lost = (profiles.mass > 0) & ~kept.any(axis=1)
    if lost.any():
        raise InfeasibleError("forbid leaves no outcome for some rows; take them out of the table, or drop the rule")
    raised = np.where(kept, np.maximum(soft, FLOOR), 0.0)
    return np.asarray(raised / np.maximum(raised.sum(axis=1, keepdims=True), FLOOR))


def _handicap(problem: Problem, threshold: float) -> Reals:
    """What the favourable outcome's odds must exceed, as a logarithm, for two outcomes; none for more."""
    outcomes, _ = root_shape(problem.blocks)
    result = np.zeros(outcomes)
    if threshold == 0.5:
        return result
    favourable = problem.measure.favourable
    if outcomes > 2 or len(favourable) != 1:
        raise InputError(
            f"threshold={threshold} needs an outcome of two levels and the favourable one named; here "
            f"{problem.roles.names[0]!r} has {outcomes} levels. Pass favourable=…, or leave the threshold at 0.5, "
            "which stands for the likeliest outcome."
        )
    result[favourable[0]] = np.log(threshold / (1 - threshold))
    return result


def _decided_shares(problem: Problem, labels: Reals, mass: Reals, groups: Labels, handicap: Reals) -> Reals:
    """Share of each group that should be decided each way: the fair table of the decisions that the labels lead to.

    Taken after means were made fair, these are shares that the soft labels come to by themselves on average.
    """
    outcomes, number = root_shape(problem.blocks)
    cells = decisions_of(labels, handicap) * number + groups
    decided = tally(cells, mass / mass.sum(), outcomes * number)
    made = np.flatnonzero(decided.reshape(outcomes, number).sum(axis=1) > 0)
    result = np.zeros((outcomes, number))
    if len(made) < 2:  # everybody is decided alike already
        result[made] = 1.0
        return result
    fair = fair_table(
        decided.reshape(problem.blocks.shape(0))[made],
        groupings=problem.measure.groupings,
        representation=(None,) * len(problem.measure.groupings),
        statistical=problem.statistical,
        favourable=tuple(place for place, level in enumerate(made) if level in problem.measure.favourable),
        fill=HALF_A_ROW / problem.table.size,
        describe=problem.roles.describe_cell,
    ).table.reshape(len(made), number)
    shares = fair.sum(axis=0)
    result[made] = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    return result


def _labelled_table(table: Table, profiles: Profiles, labels: Reals) -> Table:
    """Every profile once per outcome; what it counts is shared out by its labels."""

    def shared(per_row: Reals, part: Reals) -> Reals:
        return np.asarray((tally(profiles.places, per_row, len(labels)) * part.T).ravel())

    return Table(
        codes=profiles.labelled(),
        counts=np.asarray((profiles.mass * labels.T).ravel()),
        rows=shared(table.rows, labels),
        squares=shared(table.squares, labels**2),
    )
