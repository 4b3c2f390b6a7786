"""What a model file states, made again from what it holds: nothing is believed that can be recomputed.

The features follow from the request and the target, the weights from the rows and the target, and the certificate from
the fitted distribution. What was learned by training a model (an estimate, decisions of a student) cannot be repeated
without training; it is checked for its form and its ranges only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import Table, match_rows, tally
from fairmaxent.errors import shown
from fairmaxent.fairness.weights import algorithm_1, reweigh
from fairmaxent.fit.certificate import Certificate, certify
from fairmaxent.fit.costs import measure_costs
from fairmaxent.fit.learned import Learned
from fairmaxent.fit.plans import PaperRequest
from fairmaxent.fit.problem import Problem, cell_values
from fairmaxent.fit.target import moment_scores
from fairmaxent.maxent.features import attribute_features, cell_features, root_marginals
from fairmaxent.maxent.priors.mixture import Mixture, rows_of
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.solvers import Status
from fairmaxent.relabelling.people import Profiles, root_shape

# Other machines add in another order; nobody sees a smaller difference.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
_LARGEST_RESIDUAL = 1e-6  # solvers stop far below
_CORE = ("rows", "wanted", "before", "achieved")  # what every version of the format has meant by the same names


def recomputed(learned: Learned, *, complete: bool) -> Learned:
    """Refuse a fit whose parts do not follow from each other; return it with everything that a certificate states.

    A file of an older format states less, so only what it always held is compared, and the rest is made now.
    """
    problem = _problem(learned)
    _check_distribution(learned)
    _check_features(learned, problem)
    _check_weights(learned, problem)
    _check_privacy(learned)
    kept = set(learned.columns).intersection(learned.certificate.left_out_columns)
    _require("the certificate says of a column that it was left out, but the model has it", not kept)
    redrawn = learned.certificate.redrawn
    binned = tuple(column.name for column in learned.domain.attributes if not column.is_value_coded)
    _require("the certificate redraws other columns than have bins", redrawn is None or redrawn.columns == binned)
    stored, made = learned.certificate, _certificate(learned, problem)
    _check_certificate(stored, made, complete=complete)
    if complete:
        return learned
    return replace(learned, certificate=replace(made, **{name: getattr(stored, name) for name in _CORE}))


def _problem(learned: Learned) -> Problem:
    if isinstance(learned.request, PaperRequest):
        return Problem.of_paper(learned.roles, learned.table, learned.request)
    details = learned.distribution.details
    positions = None if details is None else details.positions
    values = cell_values(learned.request, learned.roles, learned.table, positions, learned.design_weights)
    return Problem.of(learned.roles, learned.table, learned.request, values=values)


# ---------------------------------------------------------------- the distribution


def _check_distribution(learned: Learned) -> None:
    """Probabilities that are none, a prior that is none, multipliers that do not reach the target."""
    blocks, tilted = learned.roles.blocks, learned.distribution.tilted
    for levels in (tilted.levels, learned.target):
        for part in blocks.split(levels):
            _require("the distribution does not sum to one", _is_close(float(part.sum()), 1.0, slack=1e-5))
            _require("a probability is outside its range", bool(((part >= 0) & (part <= 1 + 1e-9)).all()))
    prior, solution = learned.optimum.dual.prior, learned.optimum.solution
    for component in _parts(prior):
        excess = component.tilt(np.zeros(blocks.width)).log_partition
        _require("the prior does not sum to one", _is_close(excess, 0.0, slack=1e-6))
    if isinstance(prior, Mixture):
        _require("the shares of the prior are not those asked for", _same(np.exp(prior.log_shares), _shares(learned)))
    dual = learned.optimum.dual
    value = tilted.log_partition - float(solution.multipliers @ dual.target)
    residual = float(np.max(np.abs(dual.features.mean(tilted.levels) - dual.target), initial=0.0))
    _require("the solver did not converge", solution.status is Status.CONVERGED and residual <= _LARGEST_RESIDUAL)
    stated = _is_close(solution.value, value) and _is_close(solution.residual, residual)
    _require("the solution states other numbers than it has", stated)


def _parts(prior: Prior) -> tuple[Prior, ...]:
    return prior.parts if isinstance(prior, Mixture) else (prior,)


def _base_share(learned: Learned) -> float:
    return float(learned.request.C if isinstance(learned.request, PaperRequest) else learned.request.base_share)


def _shares(learned: Learned) -> Reals:
    share = _base_share(learned)
    return np.array([share, 1 - share])


# ---------------------------------------------------------------- features and weights


def _check_features(learned: Learned, problem: Problem) -> None:
    """Features follow from the target and from what was asked for."""
    make = attribute_features if isinstance(learned.request, PaperRequest) else cell_features
    expected = make(problem.blocks, moment_scores(problem.roles.domain, problem.chosen), learned.target)
    stored = learned.optimum.dual.features
    same = (
        np.array_equal(expected.starts, stored.starts)
        and np.array_equal(expected.levels, stored.levels)
        and np.array_equal(expected.possible, stored.possible)
        and _same(expected.values, stored.values)
    )
    _require("the features are not those of the columns", same)


def _check_weights(learned: Learned, problem: Problem) -> None:
    """The fair weights follow from the rows and the fair table, and the prior from the weights."""
    weighted, root = learned.weighted.collect(), learned.target[problem.blocks.slices[0]]
    if learned.soft is not None:
        _check_relabelled(learned.soft, weighted, problem, root)
    else:
        _require(
            "the weights are not those of the fair table", _same(weighted.counts, _fair_counts(learned, problem, root))
        )
    rows = rows_of(learned.optimum.dual.prior)
    if rows is None:
        return
    at = match_rows(weighted.codes, rows.codes, problem.blocks.levels)
    _require("the prior has rows that are not in the data", bool((at >= 0).all()))
    kept = weighted.counts[at]
    _require("the prior has other weights than the rows", _same(np.exp(rows.log_weights), kept / kept.sum()))
    is_all = len(at) == np.count_nonzero(weighted.counts)
    _require("the prior lacks rows", is_all or isinstance(learned.optimum.dual.prior, Rows))


def _fair_counts(learned: Learned, problem: Problem, root: Reals) -> Reals:
    if not isinstance(learned.request, PaperRequest):
        return reweigh(problem.counted, root).collect().counts
    if learned.request.prior == "d":
        return problem.table.collect().counts / problem.table.total
    return reweigh(problem.table, algorithm_1(problem.empirical, learned.request.tau).ravel()).collect().counts


def _check_relabelled(soft: Reals, weighted: Table, problem: Problem, root: Reals) -> None:
    """Relabelling splits each profile between outcomes; how common profiles are in their group stays as it was."""
    profiles = Profiles.of(problem.table.collect(), problem.blocks, problem.counted.collect().counts)
    totals = soft.sum(axis=1)
    one, none = np.isclose(totals, 1), np.isclose(totals, 0) & (profiles.mass == 0)
    _require("soft labels do not sum to one", bool((one | none).all()))
    cells = weighted.tables([(0,)], problem.blocks.levels)[0]
    reached = np.where(cells > 0, root, 0.0)
    _require("the weights are not those of the fair table", _same(cells, reached / reached.sum()))
    by_outcome = weighted.counts.reshape(soft.shape[::-1])
    _require("an impossible outcome has a weight", not (by_outcome.T[soft <= 0] > 0).any())
    parts = by_outcome.sum(axis=0)
    _, groups = root_shape(problem.blocks)
    mass, share = (tally(profiles.groups, numbers, groups) for numbers in (profiles.mass, parts))
    factor = np.divide(share, mass, out=np.zeros(groups), where=mass > 0)
    scale = factor[profiles.groups]
    _require("relabelled people count more or less than they did", _same(parts, scale * profiles.mass))
    labels = np.divide(by_outcome, parts, out=np.zeros_like(by_outcome), where=parts > 0)
    seen, squares = (
        tally(profiles.profile_of_row, of_rows, len(soft))
        for of_rows in (problem.table.collect().rows, problem.counted.collect().squares)
    )
    counted = np.broadcast_to(parts > 0, labels.shape).ravel()
    for stored, expected in ((weighted.rows, seen * labels), (weighted.squares, squares * scale**2 * labels)):
        same = _same(stored[counted], expected.ravel()[counted])
        _require("relabelled people stand for other rows than they are", same)


# ---------------------------------------------------------------- the certificate


def _check_privacy(learned: Learned) -> None:
    """A model is private if it was asked to be, and then only if it holds nobody's row."""
    ledger, asked = learned.certificate.privacy, learned.request.privacy
    _require("the ledger is about another privacy budget", (None if ledger is None else ledger.privacy) == asked)
    kept = learned.table.keeps_rows or learned.distribution.details is not None or learned.weight_column is not None
    _require("a private model keeps rows", asked is None or not kept)


def _check_certificate(stored: Certificate, made: Certificate, *, complete: bool) -> None:
    _require("the certificate measures something else than was asked for", stored.measure == made.measure)
    columns = stored.measure.columns
    _require("the certificate is about other columns", columns == made.measure.columns or not (complete or columns))
    _require("the certificate has another table than the distribution", _same(stored.table, made.table))
    stated, expected = stored.to_dict(), made.to_dict()
    for name in expected if complete else _CORE:
        for path, said, real in _differences(name, stated.get(name), expected[name]):
            raise ValueError(f"its certificate states {path} as {_text(said)}, but what it holds gives {_text(real)}")


def _certificate(learned: Learned, problem: Problem) -> Certificate:
    """The certificate that `certify` gives now; what cannot be recomputed is as stored."""
    stored, request = learned.certificate, learned.request
    filled, emptied = _filled(learned, problem), _emptied(learned, problem)
    split = problem.blocks.split(learned.target)
    if isinstance(request, PaperRequest):
        split = [*root_marginals(problem.blocks, learned.target), *split[1:]]
        known_tau = request.tau if request.prior == "w" and request.theta in ("b", "w") else None
        costs = None
    else:
        known_tau = None
        costs = measure_costs(
            problem,
            learned.distribution,
            weighted=learned.weighted,
            target=learned.target,
            relabelled=learned.soft is not None,
            filled=bool(filled),
            design=learned.design_weights,
        )
    made = certify(
        problem,
        learned.optimum,
        learned.distribution,
        weighted=learned.weighted,
        simplices=split,
        base=_parts(learned.optimum.dual.prior)[0],
        base_share=_base_share(learned),
        filled=filled,
        emptied=emptied,
        tau=known_tau,
        redrawn=stored.redrawn,
        costs=costs,
        decisions=stored.decisions,
        left_out_columns=stored.left_out_columns,
        privacy=stored.privacy,
    )
    return replace(made, estimated=stored.estimated)


def _filled(learned: Learned, problem: Problem) -> list[tuple[int, ...]]:
    """Cells that should have a share, but that no row has; the paper's own configurations have none."""
    if isinstance(learned.request, PaperRequest):
        return []
    rows = learned.weighted.collect().tables([(0,)], problem.blocks.levels)[0]
    return _cells((learned.target[problem.blocks.slices[0]] > 0) & (rows <= 0), problem)


def _emptied(learned: Learned, problem: Problem) -> list[tuple[int, ...]]:
    """The cells that the certificate says had to be emptied: they must have rows, and no share."""
    empty = (learned.target[problem.blocks.slices[0]] <= 0) & (problem.empirical.ravel() > 0)
    names = {problem.roles.describe_cell(cell): cell for cell in _cells(empty, problem)}
    _require("the certificate names cells that are not empty", set(learned.certificate.emptied_cells) <= names.keys())
    return [names[name] for name in learned.certificate.emptied_cells]


def _cells(chosen: NDArray[np.bool_], problem: Problem) -> list[tuple[int, ...]]:
    return [tuple(cell) for cell in np.argwhere(chosen.reshape(problem.blocks.shape(0))).tolist()]


def _differences(path: str, stated: Any, expected: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ by more than rounding."""
    if isinstance(expected, Mapping) and isinstance(stated, Mapping) and stated.keys() == expected.keys():
        for name in expected:
            yield from _differences(f"{path} {name}", stated[name], expected[name])
    elif isinstance(expected, list) and isinstance(stated, list) and len(stated) == len(expected):
        for said, real in zip(stated, expected, strict=True):
            yield from _differences(path, said, real)
    elif not _equal(stated, expected):
        yield path, stated, expected


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shown(value)


def _equal(stated: Any, expected: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, expected))
    return _is_close(stated, expected) if numbers else bool(type(stated) is type(expected) and stated == expected)


def _is_close(stated: float, expected: float, *, slack: float = _ABSOLUTE) -> bool:
    both_unknown = math.isnan(stated) and math.isnan(expected)
    return both_unknown or math.isclose(stated, expected, rel_tol=_RELATIVE, abs_tol=slack)


def _same(stated: Reals, expected: Reals) -> bool:
    return stated.shape == expected.shape and np.allclose(stated, expected, rtol=_RELATIVE, atol=_ABSOLUTE)


def _require(problem: str, holds: bool) -> None:  # noqa: FBT001
    if not holds:
        raise ValueError(problem)
