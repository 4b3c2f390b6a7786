"""Where a change of the outcomes is absorbed: in how much rows count, or in which outcome they have.

Reweighing keeps p(x | y, z) and moves the mass of the cells; a model that sees x well enough then still tells the old
outcome. Relabelling keeps p(x, z) and moves the outcome, so that a model trained on the result learns the fair one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import Counted, Table, tally
from fairmaxent.errors import InfeasibleError, InputError, check_choice
from fairmaxent.fairness.fair_table import fair_table
from fairmaxent.fit.problem import HALF_A_ROW, Problem
from fairmaxent.maxent.priors.bases import reachable_roots
from fairmaxent.relabelling.labellers import check_model, choose_labeller, cross_fit
from fairmaxent.relabelling.profiles import Profiles, root_shape
from fairmaxent.relabelling.soft_labels import FLOOR, Labels, decisions_of, level, tilt

AbsorbOption = Literal["reweigh", "relabel"]
ParityOption = Literal["probabilities", "predictions"]


@dataclass(frozen=True)
class Absorption:
    """What the user chose; above a probability of ``threshold`` a model decides for the favourable outcome."""

    absorb: AbsorbOption = "reweigh"
    parity: ParityOption = "probabilities"
    threshold: float = 0.5
    labeller: Any = None

    def __post_init__(self) -> None:
        check_choice("absorb", self.absorb, AbsorbOption)
        check_choice("parity", self.parity, ParityOption)
        if not isinstance(self.threshold, Real) or isinstance(self.threshold, bool) or not 0 < self.threshold < 1:
            raise InputError(f"threshold is {self.threshold!r}; it is a probability between 0 and 1, such as 0.5")
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


def soft_labels(problem: Problem, labeller: Any, known: Reals | None = None) -> Reals:
    """π(y | x, z) of the profiles of a problem: known already, or cross-fitted; zero only where a rule forbids it."""
    profiles = Profiles.per_row(problem.table.collect(), problem.blocks, problem.counted.collect().counts)
    soft = cross_fit(choose_labeller(problem.roles, labeller), profiles) if known is None else known
    raised = np.maximum(soft, FLOOR)
    codes = profiles.labelled()
    for rule in problem.rules:
        raised[rule.breaks(codes).reshape(soft.shape[::-1]).T] = 0.0
    return np.asarray(raised / np.maximum(raised.sum(axis=1, keepdims=True), FLOOR))


def relabel(problem: Problem, fair: Reals, wishes: Absorption, soft: Reals) -> Problem:
    """Return the problem with every profile once per outcome, counting n(x, z)·g(y | x, z).

    ``fair`` is the fair table t(y, z). Then e(y | z) is t(y | z) exactly, and each profile is as common as it was.
    """
    blocks = problem.blocks
    profiles = Profiles.of(problem.table.collect(), blocks, problem.counted.collect().counts)
    handicap = _handicap(problem, wishes.threshold)
    fair = fair.reshape(root_shape(blocks))
    shares = fair.sum(axis=0)
    wanted = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    mass, groups = profiles.mass, profiles.groups
    people = np.flatnonzero((mass > 0) & (shares > 0)[groups])
    _refuse_lost_rows(soft[people], wanted[:, groups[people]])
    labels = tilt(soft, mass, groups, wanted)
    if wishes.parity == "predictions":
        decided = _decided_shares(problem, labels, mass, groups, handicap)
        labels = level(soft, mass, groups, wanted, decided, handicap=handicap)
    return replace(problem, table=_labelled_table(problem, profiles, labels))


def _refuse_lost_rows(soft: Reals, wanted: Reals) -> None:
    """Refuse rules and targets that leave no outcome for a profile."""
    if not ((soft > 0) & (wanted.T > 0)).any(axis=1).all():
        raise InfeasibleError(
            "forbid and target together leave no outcome for some rows; take them out of the table, or change one of "
            "the two"
        )


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
    shape = problem.blocks.shape(0)
    fair = fair_table(
        decided.reshape(shape)[made],
        groupings=problem.measure.groupings,
        representation=(None,) * len(problem.measure.groupings),
        statistical=problem.statistical,
        favourable=tuple(place for place, level in enumerate(made) if level in problem.measure.favourable),
        allowed=reachable_roots(problem.blocks, problem.rules).reshape(shape)[made],
        fill=HALF_A_ROW / problem.table.size,
        describe=lambda cell: problem.roles.describe_cell([int(made[cell[0]]), *cell[1:]]),
    ).table.reshape(len(made), number)
    shares = fair.sum(axis=0)
    result[made] = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    return result


def _labelled_table(problem: Problem, profiles: Profiles, labels: Reals) -> Table:
    """Every profile once per outcome; what it counts is shared out by its labels."""

    def shared(per_row: Reals) -> Reals:
        return np.asarray((tally(profiles.places, per_row, len(labels)) * labels.T).ravel())

    # The parts of a row stay one row: squared weights are shared out like the rest, or rows would seem to be gained.
    return Table(
        codes=profiles.labelled(),
        counts=np.asarray((profiles.mass * labels.T).ravel()),
        rows=shared(problem.table.collect().rows),
        squares=shared(problem.counted.collect().squares),
    )
