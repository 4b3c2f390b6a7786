"""The paper's own configurations, by the paper's own names.

Celis, Keswani, Vishnoi, "Data preprocessing to mitigate bias: a maximum entropy based
approach", ICML 2020.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Literal, get_args

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.reading import encode_table
from fairmaxent.data.roles import ColumnNames, Roles, read_columns
from fairmaxent.data.table import Counted, Reals, marginal
from fairmaxent.debiasing import Fit
from fairmaxent.distribution import Distribution
from fairmaxent.errors import (
    ColumnError,
    InfeasibleError,
    InputError,
    LevelError,
    Option,
    check_choice,
    checked_number,
    unfit,
)
from fairmaxent.facts.fitted import UnderivedFacts
from fairmaxent.fairness.fair_table import algorithm_1, reweigh
from fairmaxent.fairness.rates import Measure, check_rate
from fairmaxent.fit.base import check_base, check_share
from fairmaxent.fit.certificate import certify
from fairmaxent.fit.paper_request import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.target import level_means
from fairmaxent.maxent.features import attribute_features
from fairmaxent.maxent.optimum import maximise_entropy
from fairmaxent.maxent.priors.bases import build_base, register_base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import (
    Drawn,
    Prior,
    Tabular,
    Tilted,
    check_prior,
)
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.solvers import Newton, NewtonCG, Solver

PriorName = Literal["w", "d"]
ThetaName = Literal["d", "b", "w"]
SolverName = Literal["newton", "newton-cg"]
# the share of each level of columns; or of all of them, as `feature_names` has them
Theta = Mapping[str, Mapping[object, float]] | Sequence[float] | Reals
_WANTED = "name a rule of the paper, or give a share for each level, by column"

__all__ = [
    "Drawn",
    "Prior",
    "Tabular",
    "Tilted",
    "check_prior",
    "divergence_from_raw",
    "feature_names",
    "fit",
    "register_base",
]
_OWN = "own"  # θ, in words
_SLACK = 1e-6  # how far shares may be from summing to 1


def fit(
    frame: Any,
    *,
    outcome: str,
    protected: str,
    C: float = 0.5,
    prior: str = "w",
    theta: ThetaName | Theta = "w",
    tau: float = 1.0,
    solver: SolverName | Solver = "newton",
    favourable: object = None,
    domain: Domain | None = None,
    keep_columns: ColumnNames | None = None,
) -> Fit:
    """Fit p* for the prior q_C^w or q_C^d and the expectation θ^d, θ^b or θ^w.

    ``prior`` may also be the name of a base, one of `register_base` too, in place of
    the uniform one in q_C^w: with C=1 it is the whole prior. ``theta`` may be your own:
    the shares of the levels of some columns, ``{"sex": {"f": 0.5, "m": 0.5}}``, beside
    θ^w of the others, or an array with one share for each of `feature_names`.

    Every attribute enters by its own marginal, so the statistical rate only has the
    bound of Theorem 4.5; :func:`fairmaxent.debias` meets it exactly. ``tau`` is the one
    of Algorithm 1: it sets the representation rate, with the first level of the
    protected column as z = 0. Columns that look like identifiers are left out unless
    ``keep_columns`` names them.
    """
    _check_column("outcome", outcome)
    _check_column("protected", protected)
    check_base("prior", prior, others=get_args(PriorName))
    named_theta = _OWN
    if isinstance(theta, str):
        check_choice("theta", theta, ThetaName)
        named_theta = theta
    check_rate("tau", tau)
    share = check_share("C", C)
    method = _solver(solver)
    favourable = frames.plain_option("favourable", favourable)
    opened = frames.open_frame(frame)
    named = frames.plain_option("keep_columns", keep_columns) or []
    kept = [outcome, protected, *read_columns("keep_columns", named)]
    encoded = encode_table(opened, domain, keep=kept)
    domain = encoded.domain
    left_out = tuple(name for name in opened.columns if name not in domain.names)
    roles = Roles.of(domain, outcome, [protected])
    _check_groups(roles.attributes[1])
    representation = {
        "d": None,
        "b": 1.0,
        "w": tau,
        _OWN: None,
    }[named_theta]
    measure = Measure.of(roles, favourable=favourable)
    table = roles.compress(encoded.codes)
    # The statistical rate is that of Algorithm 1's weights, whatever τ (Lemma 7.2).
    problem = Problem(roles, table, measure, (representation,), (1.0,))
    _check_cells(problem)
    request = PaperRequest(
        outcome,
        protected,
        C=C,
        prior=prior,
        theta=named_theta,
        tau=tau,
        solver=str(solver),
        favourable=favourable,
    )
    own = None
    if not isinstance(theta, str):
        own = _own_shares(theta, domain)
    solved = _solved(problem, request, share, own, method, opened.columns)
    underived = UnderivedFacts(left_out_columns=left_out)
    return Fit(**vars(solved), certificate=certify(solved, underived))


def _solved(
    problem: Problem,
    request: PaperRequest,
    share: float,
    own: Mapping[int, Reals] | None,
    solver: Solver,
    columns: Sequence[str],
) -> Solved:
    """From the weights of Algorithm 1 to p*."""
    table = problem.table
    fair = algorithm_1(problem.empirical, request.tau).ravel()
    weighted = reweigh(table, fair)
    if own is None:
        levels = _expectation(request.theta, problem, weighted)
    else:
        levels = _own_expectation(own, problem, weighted)
    if request.prior == "d":
        equal = np.full(problem.blocks.levels[0], 1 / table.total)
        weighted = table.reweighed(equal)
    optimum = maximise_entropy(
        _prior(request.prior, problem, weighted, fair, share),
        attribute_features(problem.blocks, problem.moment_scores, levels),
        levels,
        describe=problem.roles.describe_level,
        solver=solver,
    )
    domain = problem.roles.domain
    return Solved(
        request=request,
        columns=tuple(name for name in columns if name in domain.names),
        problem=problem,
        weighted=weighted,
        target=levels,
        optimum=optimum,
        distribution=Distribution.of(domain, optimum),
    )


def _prior(
    name: str,
    problem: Problem,
    weighted: Counted,
    fair: Reals,
    share: float,
) -> Prior:
    """q_C: the base, with share C, and the weighted rows."""
    blocks = problem.blocks
    kind = name
    if name in get_args(PriorName):
        kind = "uniform"
    base = build_base(
        kind,
        blocks,
        problem.table,
        weighted,
        root=fair,
    )
    rows = Rows.of(blocks, weighted.collect())
    return Mixture.of((share, 1 - share), (base, rows))


def _check_column(role: str, name: object) -> None:
    if not isinstance(name, str):
        raise ColumnError(
            f"{role} is {name!r}; pass the name of one column, or use"
            " fairmaxent.debias for more"
        )


def _check_groups(protected: Attribute) -> None:
    if protected.size != 2:
        raise LevelError(
            f"Algorithm 1 is stated for two groups, and {protected.name!r} has"
            f" {protected.size}: {', '.join(protected.labels[:8])}. Merge them into"
            " two, or use fairmaxent.debias."
        )


def _check_cells(problem: Problem) -> None:
    empty = np.argwhere(problem.empirical <= 0).tolist()
    if empty:
        cell = problem.roles.describe_cell(empty[0])
        raise InfeasibleError(
            f"Algorithm 1 needs rows in every cell, and {cell} has none. Merge levels,"
            " or use fairmaxent.debias."
        )


def _solver(solver: SolverName | Solver) -> Solver:
    if not isinstance(solver, str) and hasattr(solver, "solve"):
        return solver
    check_choice("solver", solver, SolverName)
    return Newton() if solver == "newton" else NewtonCG()


def divergence_from_raw(fitted: Fit, *, epsilon: float = 1e-7) -> float:
    """KL(p* ‖ raw + ε), the paper's measure of accuracy, over all points.

    The domain must be small. As in the authors' code ε is added to every cell, not only
    to unseen ones, and the result is normalised.
    """
    blocks = fitted.distribution.blocks
    points = np.indices(blocks.levels).reshape(len(blocks.levels), -1).T
    probability = np.exp(fitted.distribution.density.log_probability(points))
    rows = Rows.of(blocks, fitted.table.collect())
    raw = np.exp(rows.log_probability(points)) + epsilon
    seen = probability > 0
    divergence = probability[seen] @ np.log(probability[seen] / raw[seen])
    return float(divergence + np.log(raw.sum()))


def _expectation(theta: str, problem: Problem, weighted: Counted) -> Reals:
    """θ^d, θ^b (both from the data) or θ^w, as the wanted share of each level."""
    blocks = problem.blocks
    levels = level_means(blocks, weighted if theta == "w" else problem.table)
    # θ^b (Remark 4.6) is θ^d, but with the protected attributes balanced and
    # independent of the outcome.
    if theta == "b":
        outcomes, groups = blocks.shape(0)
        shares = levels[blocks.slices[0]].reshape(outcomes, groups).sum(axis=1)
        levels[blocks.slices[0]] = np.repeat(shares / groups, groups)
    return levels


# ---------------------------------------------------------------- θ of one's own


def feature_names(domain: Domain) -> list[str]:
    """The order of an array for θ: every level of every column, as ``column=level``."""
    return [
        f"{attribute.name}={label}"
        for attribute in domain.attributes
        for label in attribute.labels
    ]


def _own_shares(theta: Theta, domain: Domain) -> dict[int, Reals]:
    """The shares of the levels of columns, by the number of the column."""
    shares: dict[int, Reals] = {}
    if isinstance(theta, Mapping):
        for name, wanted in theta.items():
            attribute = domain.attribute(name)
            levels = np.zeros(attribute.size)
            if not isinstance(wanted, Mapping):
                raise unfit("theta", theta, _WANTED)
            for value, share in wanted.items():
                levels[attribute.level(value)] = checked_number(
                    "theta", share, "be a positive share", lambda share: share > 0
                )
            shares[domain.index(name)] = levels
    else:
        try:
            array = np.asarray(theta, dtype=float)
        except (TypeError, ValueError, OverflowError) as problem:
            raise unfit("theta", theta, _WANTED) from problem
        ends = np.cumsum(domain.sizes)
        if array.shape != (ends[-1],):
            raise InputError(
                Option("theta"),
                f" has the shape {array.shape}, but there are {ends[-1]} levels; it"
                " must have a share for each of fairmaxent.paper.feature_names(domain)",
            )
        shares = dict(enumerate(np.split(array, ends[:-1])))
    for index, levels in shares.items():
        if not (levels > 0).all() or abs(levels.sum() - 1) > _SLACK:
            raise InputError(
                Option("theta", column=domain.names[index]),
                " needs a positive share for each level, and they must sum to 1",
            )
    return shares


def _own_expectation(
    own: Mapping[int, Reals], problem: Problem, weighted: Counted
) -> Reals:
    """The wanted share of each level; that of θ^w where nothing is said.

    Attributes enter by their own marginals, so those of the root can be independent.
    """
    blocks = problem.blocks
    theta_w = blocks.split(level_means(blocks, weighted))
    for number, members in enumerate(blocks.members):
        table = theta_w[number].reshape(blocks.shape(number))
        margins = [
            own.get(index, marginal(table, [axis]))
            for axis, index in enumerate(members)
        ]
        theta_w[number] = reduce(np.multiply.outer, margins).ravel()
    return np.concatenate(theta_w)
