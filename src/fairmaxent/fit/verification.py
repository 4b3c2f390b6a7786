"""Verification: what a model file states, made again from what it holds; nothing is believed that can be recomputed.

The certificate follows from the rows and the fitted distribution. What was learned by training a model (an estimate,
decisions of a student) cannot be repeated without training; it is checked for its form and its ranges only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from fairmaxent.data.columns import Arrays, Record
from fairmaxent.data.frames import is_foreign
from fairmaxent.errors import DependencyError, StorageError, shown
from fairmaxent.fit.archive import MOST_BYTES, damaged, foreign, path_of, read_archive
from fairmaxent.fit.certificate import Certificate, Solved, certify
from fairmaxent.fit.estimate import ModelEstimate
from fairmaxent.fit.learned import Learned
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.records import pack
from fairmaxent.fit.storage import FORMAT, VERSION, pack_fit, unpack_fit
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.solvers import Status

# Other machines add in another order; nobody sees a smaller difference.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
_LARGEST_RESIDUAL = 1e-6  # solvers stop far below


def load(path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> Learned:
    """Read a fit that was saved, and refuse it if its parts do not follow from each other."""
    record, arrays = read_archive(path_of(path), max_bytes=max_bytes)
    if record.get("format") != FORMAT:
        raise foreign(path)
    if record.get("version") != VERSION:
        raise StorageError(
            f"{path} has format version {shown(record.get('version'))}, but this fairmaxent reads version {VERSION}; "
            "upgrade fairmaxent, or fit and save again"
        )
    try:
        with np.errstate(all="ignore"):  # of numbers that are refused below
            fit, problem = unpack_fit(record, arrays)
            _refuse_unread(fit, record, arrays)
            _check_distribution(fit)
            _check_privacy(fit)
            _check_certificate(fit, problem)
            return fit
    except DependencyError:
        raise
    except BaseException as problem:
        if isinstance(problem, Exception) or is_foreign(problem):
            raise damaged(path, problem) from problem
        raise


def _refuse_unread(fit: Learned, record: Record, arrays: Arrays) -> None:
    """Refuse what saving the fit again would not write: nothing reads it, and it could hold people's rows."""
    read, read_arrays = pack_fit(fit)
    if arrays.keys() != read_arrays.keys():
        raise ValueError("it holds arrays that are no part of a model")
    if json.dumps(record) != json.dumps(read):
        raise ValueError("its header holds something that is no part of a model")


def _check_distribution(fit: Learned) -> None:
    """Probabilities that are none, a prior that is none, multipliers that do not reach the target."""
    blocks, tilted = fit.roles.blocks, fit.distribution.tilted
    for levels in (tilted.levels, fit.target):
        for part in blocks.split(levels):
            _require("the distribution does not sum to one", _is_close(float(part.sum()), 1.0, slack=1e-5))
            _require("a probability is outside its range", bool(((part >= 0) & (part <= 1 + 1e-9)).all()))
    dual, solution = fit.optimum.dual, fit.optimum.solution
    for component in dual.prior.parts if isinstance(dual.prior, Mixture) else (dual.prior,):
        excess = component.tilt(np.zeros(blocks.width)).log_partition
        _require("the prior does not sum to one", _is_close(excess, 0.0, slack=1e-6))
    value = tilted.log_partition - float(solution.multipliers @ dual.target)
    residual = float(np.max(np.abs(dual.features.mean(tilted.levels) - dual.target), initial=0.0))
    _require("the solver did not converge", solution.status is Status.CONVERGED and residual <= _LARGEST_RESIDUAL)
    stated = _is_close(solution.value, value) and _is_close(solution.residual, residual)
    _require("the solution states other numbers than it has", stated)


def _check_privacy(fit: Learned) -> None:
    """A model is private if it was asked to be, and then only if it holds nobody's row."""
    ledger, asked = fit.certificate.privacy, fit.request.privacy
    _require("the ledger is about another privacy budget", (None if ledger is None else ledger.privacy) == asked)
    if ledger is None:
        return
    within = bool(ledger.spent) and ledger.rho <= ledger.privacy.rho
    _require("the ledger spends more than the privacy budget", within)
    kept = fit.table.keeps_rows or fit.distribution.details is not None or fit.weight_column is not None
    _require("a private model keeps rows", not kept)


# ---------------------------------------------------------------- the certificate


def _check_certificate(fit: Learned, problem: Problem) -> None:
    """Compare a certificate with the one that `certify` gives now; what cannot be recomputed is as stored."""
    stored = fit.certificate
    _check_trained(stored)
    kept = set(fit.columns).intersection(stored.left_out_columns)
    _require("the certificate says of a column that it was left out, but the model has it", not kept)
    binned = tuple(column.name for column in fit.domain.attributes if not column.is_value_coded)
    _require(
        "the certificate redraws other columns than have bins",
        stored.redrawn is None or stored.redrawn.columns == binned,
    )
    empty = (fit.target[problem.blocks.slices[0]].reshape(problem.empirical.shape) <= 0) & (problem.empirical > 0)
    names = {problem.roles.describe_cell(cell) for cell in np.argwhere(empty).tolist()}
    _require("the certificate names cells that are not empty", set(stored.emptied_cells) <= names)
    made = certify(
        Solved(
            request=fit.request,
            problem=problem,
            weighted=fit.weighted,
            relabelled=fit.soft is not None,
            target=fit.target,
            optimum=fit.optimum,
            distribution=fit.distribution,
            design=fit.design_weights,
            emptied=stored.emptied_cells,
            redrawn=stored.redrawn,
            decisions=stored.decisions,
            left_out_columns=stored.left_out_columns,
            privacy=stored.privacy,
        )
    )
    stated, expected = (pack(one, without=("measure", "table")) for one in (stored, _with_trained(made, stored)))
    for name in expected:
        for path, told, real in _differences(name, stated[name], expected[name]):
            raise ValueError(f"its certificate states {path} as {_text(told)}, but what it holds gives {_text(real)}")
    str(stored)  # raises if groupings do not fit together


def _with_trained(made: Certificate, stored: Certificate) -> Certificate:
    return replace(made, estimated=stored.estimated)


def _check_trained(certificate: Certificate) -> None:
    """Refuse numbers that no trained model can have."""
    estimate, decisions = certificate.estimated, certificate.decisions
    _require("the reason for no estimate is not stored", estimate is None or isinstance(estimate, ModelEstimate))
    shares: list[Any] = []
    counts = [0]
    if isinstance(estimate, ModelEstimate):
        shares += [pack(estimate.before), pack(estimate.after), estimate.threshold, estimate.remedied]
        counts += [estimate.folds, estimate.rounds, estimate.people, estimate.measured_on]
    if decisions is not None:
        shares += [decisions.threshold, *(pack(share, without=("vacuous",)) for share in decisions.rates)]
        shares += [pack(share) for share in decisions.shares]
        counts += [decisions.folds, decisions.rounds]
    _require("the estimate or the decisions of the certificate count below zero", min(counts) >= 0)
    sound = all(0 <= number <= 1 + 1e-9 or math.isnan(number) for number in _numbers(shares))
    _require("a rate or share of the certificate is outside its range", sound)


def _numbers(value: Any) -> Iterator[float]:
    """All numbers in nested mappings and lists."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield float(value)


def _differences(path: str, stated: Any, expected: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ by more than rounding."""
    if isinstance(expected, Mapping) and isinstance(stated, Mapping) and stated.keys() == expected.keys():
        for name in expected:
            yield from _differences(f"{path} {name}", stated[name], expected[name])
    elif isinstance(expected, list) and isinstance(stated, list) and len(stated) == len(expected):
        for told, real in zip(stated, expected, strict=True):
            yield from _differences(path, told, real)
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


def _require(problem: str, holds: bool) -> None:  # noqa: FBT001
    if not holds:
        raise ValueError(problem)


# ---------------------------------------------------------------- in words


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What was verified of a model file, and what was not; printed, it is a short report."""

    path: str
    sha256: str  # of the whole file, to compare with one that was written down
    version: int  # of the file format
    holds: str  # which rows of people
    unverified: tuple[str, ...]  # what the file alone cannot show
    certificate: Certificate

    def __str__(self) -> str:
        lines = [
            f"{self.path}: verified",
            f"  SHA-256 of the file: {self.sha256}",
            f"  format version {self.version}; digests of its parts: match",
            "  certificate: made again from the stored rows and distribution; every number agrees",
        ]
        certificate = self.certificate
        for kind, name in certificate.rates_shown:
            lines.append(f"  {certificate.measure.rate_name(kind, name)}: {certificate.achieved[kind][name]:.4f}")
        lines += [f"  not verified: {what}" for what in self.unverified]
        lines.append(f"  it holds {self.holds}")
        return "\n".join(lines)


def verify(path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> Verification:
    """Check a model file, and say what was checked; nothing in the file is run.

    Raises :class:`fairmaxent.errors.StorageError` if the file is damaged, or if its certificate states something else
    than follows from the rows and the distribution in it. A file that passes is consistent; who made it, and from which
    table, it cannot prove: compare its SHA-256 with one that you trust.
    """
    fit = load(path, max_bytes=max_bytes)
    certificate = fit.certificate
    unverified = {
        "the estimate for a trained model, which would have to be trained again": certificate.estimate,
        "the decisions of the student of relabelling, which would have to be trained again": certificate.decisions,
        "that the counts have the noise that the ledger states, which only the table would show": certificate.privacy,
        "which columns were left out, because the model does not have them": certificate.left_out_columns or None,
        "the seed, which only the rows that were drawn with it would show": fit.request.random_state,
        "the notes on how columns were read, which are kept as text": certificate.notes or None,
    }
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    what = tuple(part for part, stated in unverified.items() if stated is not None)
    return Verification(str(path), digest, VERSION, contents(fit), what, certificate)


def contents(fit: Learned) -> str:
    """Say which rows are in a saved model, as the end of a sentence that begins with "it holds".

    Every model holds rows: its certificate and its weights are made from them. Those of a private model are nobody's.
    """
    if fit.certificate.privacy is not None:
        return (
            f"no row of the data, but {fit.table.size:,} drawn from noisy counts; it is private with "
            f"{fit.certificate.privacy.privacy}"
        )
    details = fit.distribution.details
    exact = [] if details is None else [fit.domain.names[index] for index in sorted(details.positions)]
    if not fit.table.keeps_rows:
        rows = f"the distinct rows among {fit.table.size:,}, as levels"
    elif exact:
        rows = f"all {fit.table.size:,} rows, with the exact values of {_listed(exact)}"
    else:
        rows = f"all {fit.table.size:,} rows, as levels"
    return f"{rows}; protect it like the table itself"


def _listed(names: list[str]) -> str:
    few = ", ".join(map(repr, names[:3]))
    return few if len(names) <= 3 else f"{few} and {len(names) - 3} more columns"
