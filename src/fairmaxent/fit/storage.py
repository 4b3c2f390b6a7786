"""A fit in one file: JSON for what has names, arrays for what has numbers, never pickle.

Only what cannot be made again is stored: what was asked for, the columns and rows, the labels of relabelled rows, the
base, the target, the multipliers and the certificate. Features, weights and the prior follow. Writing the same fit
twice gives the same bytes. Reading checks types and ranges, and never runs anything from the file.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Positions, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.column_storage import Arrays, Record, from_storage, masses, nest, sound, to_storage, unnest
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import Column
from fairmaxent.data.roles import Roles, read_columns
from fairmaxent.data.table import Counted, Table, match_rows, row_keys
from fairmaxent.data.weights import UNSCALED, WeightScale
from fairmaxent.engines.rows import row_prior
from fairmaxent.fairness.weights import reweigh
from fairmaxent.files.write import write_whole
from fairmaxent.fit.archive import path_of, to_archive
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.distribution import Distribution, moment_scores
from fairmaxent.fit.estimate import Deferred
from fairmaxent.fit.learned import Learned
from fairmaxent.fit.option_values import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.records import pack, unpack
from fairmaxent.fit.relabel import with_labels
from fairmaxent.fit.request import Request
from fairmaxent.fit.stored_columns import check_domain
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import attribute_features, cell_features
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.bases import BASES, Base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.solvers import Solution
from fairmaxent.relabelling.people import Profiles

FORMAT = "fairmaxent model"
VERSION = 1

_MADE_AGAIN = ("measure", "table")  # of a certificate: they follow from the rest


def save(fit: Learned, path: str | PathLike[str], *, readable: bool = False) -> None:
    """Write a fit, whole or not at all; ``readable``: other users may read it."""
    record, arrays = pack_fit(fit)
    write_whole(path_of(path), to_archive(record, arrays), readable=readable)


def pack_fit(fit: Learned) -> tuple[Record, Arrays]:
    """Return a JSON-able record and arrays, from which `unpack_fit` restores a fit."""
    domain, domain_arrays = fit.domain.to_storage()
    weight, weight_arrays = (None, {}) if fit.weight_column is None else to_storage(fit.weight_column)
    details, solution = fit.distribution.details, fit.optimum.solution
    record: Record = {
        "format": FORMAT,
        "version": VERSION,
        "request": pack(fit.request),
        "columns": list(fit.columns),
        "domain": domain,
        "weight": weight,
        "weight_scale": pack(fit.weight_scale),
        "solution": pack(solution, without=("multipliers",)),
        "certificate": pack(_without_pending(fit.certificate), without=_MADE_AGAIN),
    }
    arrays: Arrays = {
        **_pack_table(fit.table.collect()),
        **({} if fit.soft is None or fit.labels is None else {"soft": fit.soft, "labels": fit.labels}),
        **_pack_prior(fit),
        "target": fit.target,
        "multipliers": solution.multipliers,
        **nest("domain", domain_arrays),
        **nest("weight", weight_arrays),
        **nest("positions", {} if details is None else {str(key): rows for key, rows in details.positions.items()}),
    }
    if fit.design_weights is not None:
        arrays["design_weights"] = fit.design_weights
    return record | {"arrays": list(arrays)}, arrays


def _without_pending(certificate: Certificate) -> Certificate:
    """An estimate that nobody has asked for so far is not made to be stored."""
    pending = isinstance(certificate.estimated, Deferred) and not certificate.estimated.is_done
    return replace(certificate, estimated=None if pending else certificate.estimate)


def _pack_table(table: Table) -> Arrays:
    """The distinct row of each input row or, if no row was kept, the counts."""
    arrays = {"table/codes": table.codes, "table/counts": table.counts}
    if table.places is not None:
        return arrays | {"table/inverse": table.places.astype(np.min_scalar_type(len(table.codes)))}
    arrays |= {"table/rows": table.rows, "table/squares": table.squares}
    return arrays if table.peaks is None else arrays | {"table/peaks": table.peaks}


def _pack_prior(fit: Learned) -> Arrays:
    """The base; of rows alone, those in use if some are not."""
    prior, weighted = fit.optimum.dual.prior, fit.weighted.collect()
    if not isinstance(prior, Rows):
        base = prior.parts[0] if isinstance(prior, Mixture) else prior
        return nest("base", _base_of(fit.request).pack(base))
    if prior.rows == np.count_nonzero(weighted.counts):
        return {}
    every_row = Rows.of(fit.roles.blocks, weighted)
    return {"rows_in_use": match_rows(prior.codes, every_row.codes, prior.blocks.levels) >= 0}


def _base_of(request: Request | PaperRequest) -> Base:
    return BASES[request.base if isinstance(request, Request) else "uniform"]


# ---------------------------------------------------------------- back from a file


def unpack_fit(record: Record, arrays: Arrays) -> tuple[Learned, Problem]:
    """Restore what `pack_fit` gave, with the problem that was solved; what the certificate states is not compared."""
    request = unpack(record["request"], PaperRequest if "theta" in record["request"] else Request)
    domain = Domain.from_storage(record["domain"], unnest("domain", arrays))
    check_domain(domain)
    roles, weight = _unpack_roles(request, domain), _unpack_weight(record, arrays, request.weight)
    columns = _unpack_columns(record, request, domain)
    table, design = _unpack_table(arrays, roles.blocks, weighted=weight is not None)
    positions = _unpack_positions(arrays, domain, roles.blocks, table)
    problem = Problem.of(request, roles, table, positions, design)
    target = masses(arrays["target"], roles.blocks.width)
    soft, labels = _unpack_labels(arrays, problem)
    weighted = _weighted(request, problem, labels, target)
    optimum = _unpack_optimum(record, arrays, problem, request, weighted, target)
    distribution = Distribution.of(domain, optimum).detailed(positions, table, design, problem)
    fit = Learned(
        request=request,
        columns=columns,
        roles=roles,
        table=table,
        weighted=weighted,
        soft=soft,
        labels=labels,
        target=target,
        optimum=optimum,
        distribution=distribution,
        certificate=unpack(record["certificate"], Certificate, measure=problem.measure, table=distribution.root_table),
        design_weights=design,
        weight_column=weight,
        weight_scale=_unpack_scale(record),
    )
    return fit, problem


def _weighted(request: Request | PaperRequest, problem: Problem, labels: Reals | None, target: Reals) -> Counted:
    """The rows that the prior is made of, with the weights that make their table the fair one."""
    if isinstance(request, PaperRequest):
        return problem.paper_weights(request)
    labelled = problem if labels is None else with_labels(problem, labels)
    return reweigh(labelled.counted, target[problem.blocks.slices[0]])


def _unpack_columns(record: Record, request: Request | PaperRequest, domain: Domain) -> tuple[str, ...]:
    columns: tuple[str, ...] = unpack(record["columns"], tuple[str, ...])
    if sorted(columns) != sorted([*domain.names, *([] if request.weight is None else [request.weight])]):
        raise ValueError("columns and their descriptions do not fit together")
    if isinstance(request, Request) and not set(read_columns("keep_columns", request.keep_columns or [])) <= set(
        columns
    ):
        raise ValueError("the request keeps columns that the model does not have")
    return columns


def _unpack_roles(request: Request | PaperRequest, domain: Domain) -> Roles:
    if isinstance(request, PaperRequest):
        return Roles.of(domain, request.outcome, [request.protected])
    return Roles.of(domain, request.outcome, request.protected_names, request.within_names, request.also_names)


def _unpack_optimum(
    record: Record, arrays: Arrays, problem: Problem, request: Request | PaperRequest, weighted: Counted, target: Reals
) -> Optimum:
    make = attribute_features if isinstance(request, PaperRequest) else cell_features
    features = make(problem.blocks, moment_scores(problem.roles.domain, problem.chosen), target)
    prior = _unpack_prior(arrays, request, row_prior(problem.blocks, weighted))
    multipliers = sound(arrays["multipliers"], "f", (features.count,))
    solution: Solution = unpack(record["solution"], Solution, multipliers=multipliers)
    return Optimum(Dual(prior, features, features.mean(target)), solution)


def _unpack_prior(arrays: Arrays, request: Request | PaperRequest, rows: Prior) -> Prior:
    share = float(request.base_share if isinstance(request, Request) else request.C)
    if share:
        base = _base_of(request).unpack(rows.blocks, unnest("base", arrays))
        return Mixture.of((share, 1 - share), (base, rows))
    if "rows_in_use" not in arrays or not isinstance(rows, Rows):
        return rows
    return rows.only(sound(arrays["rows_in_use"], "b", (rows.rows,)))


def _unpack_table(arrays: Arrays, blocks: Blocks, *, weighted: bool) -> tuple[Table, Reals | None]:
    """The distinct rows, and the design weights of the input rows if both were kept."""
    codes = _distinct_codes(arrays["table/codes"], blocks)
    counts = masses(arrays["table/counts"], len(codes))
    if "table/inverse" not in arrays:
        rows = sound(arrays["table/rows"], "f", (len(codes),), low=1)
        peaks = masses(arrays["table/peaks"], len(codes)) if "table/peaks" in arrays else None
        counted = Table(codes, counts, rows, masses(arrays["table/squares"], len(codes)), peaks=peaks)
        _check_counted(counted)
        return counted, None
    size = len(arrays["table/inverse"])
    inverse = sound(arrays["table/inverse"], "u", (size,), low=0, high=len(codes) - 1).astype(np.intp)
    design = masses(arrays["design_weights"], size) if weighted else None
    table = Table.tallied(codes, inverse, design)
    if not (table.rows.all() and counts.any() and np.allclose(table.counts, counts, rtol=1e-6, atol=0)):
        raise ValueError("the rows and their counts do not fit together")
    return replace(table, counts=counts), design  # as they were summed up when they were read


def _distinct_codes(array: NDArray[Any], blocks: Blocks) -> NDArray[Any]:
    """Return distinct rows of block codes in lexicographic order, stored column by column as the model reads them."""
    rows = len(array)
    for column, size in zip(sound(array, "u", (rows, len(blocks.levels))).T, blocks.levels, strict=True):
        sound(column, "u", (rows,), high=size - 1)
    keys, _ = row_keys(array, blocks.levels)
    sound(np.diff(keys), "i", (rows - 1,), low=1)
    return np.asfortranarray(array)


def _check_counted(table: Table) -> None:
    """Refuse sums that no weights of this many rows have."""
    rows, counts, squares = table.rows, table.counts, table.squares
    slack = 1e-9 * counts**2
    whole = (rows == np.round(rows)).all() and np.isfinite(rows.sum()) and rows.sum() < 2**53
    possible = (squares * rows >= counts**2 - slack).all() and (squares <= counts**2 + slack).all()
    peaks = counts if table.peaks is None else table.peaks
    highest = (peaks <= counts * (1 + 1e-9)).all() and (peaks * rows >= counts * (1 - 1e-9)).all()
    if not (whole and possible and highest and 0 < counts.sum() < np.inf):
        raise ValueError("the rows and their counts do not fit together")


def _unpack_labels(arrays: Arrays, problem: Problem) -> tuple[Reals | None, Reals | None]:
    """Soft labels π of the profiles, and how their outcomes were split; none without relabelling."""
    if "soft" not in arrays:
        return None, None
    if arrays["soft"].shape[1:] != (problem.blocks.shape(0)[0],):  # before there is an array of that many columns
        raise ValueError("soft labels are about other outcomes")
    profiles = Profiles.of(problem.table.collect(), problem.blocks, problem.counted.collect().counts)
    soft, labels = (masses(arrays[name], *profiles.counts.shape) for name in ("soft", "labels"))
    for shares in (soft, labels):
        totals = shares.sum(axis=1)
        if not (np.isclose(totals, 1) | (np.isclose(totals, 0) & (profiles.mass == 0))).all():
            raise ValueError("soft labels do not sum to one")
    if (labels[soft <= 0] > 0).any():
        raise ValueError("an impossible outcome has a weight")
    return soft, labels


def _unpack_positions(arrays: Arrays, domain: Domain, blocks: Blocks, table: Table) -> Positions | None:
    """Raw values of the input rows, each inside the level that the row has."""
    stored = unnest("positions", arrays)
    if not stored:
        return None
    codes = blocks.unpool(table.codes)[table.inverse]
    positions: dict[int, NDArray[np.unsignedinteger]] = {}
    for key, array in stored.items():
        index = int(key)
        starts, level = domain.attributes[index].level_starts, codes[:, index]
        sound(sound(array, "u", (len(codes),)) - starts[level], "i", (len(codes),), low=0)
        sound(starts[level + 1] - array, "i", (len(codes),), low=1)
        positions[index] = array
    return positions


def _unpack_weight(record: Record, arrays: Arrays, name: str | None) -> Column | None:
    if record["weight"] is None or name is None:
        return None
    weight = from_storage(name, record["weight"], unnest("weight", arrays), rows=1)
    if len(weight) != 1 or weight.to_list() != [1]:
        raise ValueError("the weight column holds a single one")
    return weight


def _unpack_scale(record: Record) -> WeightScale:
    scale: WeightScale = unpack(record["weight_scale"], WeightScale)
    if not (abs(scale.exponent) < 1100 and 0 < scale.average < 2):
        raise ValueError("the scale of the design weights makes no sense")
    return UNSCALED if scale == UNSCALED else scale
