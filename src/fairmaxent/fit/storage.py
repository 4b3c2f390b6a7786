"""A fit in one file: JSON for what has names, arrays for what has numbers, never pickle.

The file is a zip archive with ``header.json``, one ``.npy`` member per array, and the SHA-256 of each. Writing the same
fit twice gives the same bytes. Reading checks format, version, digests, types and ranges, makes the certificate again
from the distribution, and never runs anything from the file.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Positions, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.column_storage import Arrays, Record, from_storage, nest, to_storage, unnest
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import Column, is_foreign
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table
from fairmaxent.data.weights import WeightScale
from fairmaxent.errors import DependencyError, StorageError, shown
from fairmaxent.files.write import write_whole
from fairmaxent.fit.archive import MOST_BYTES, damaged, foreign, path_of, read_archive, to_archive
from fairmaxent.fit.certificate_ranges import check_ranges
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.json_records import pack_certificate, pack_request, unpack_certificate, unpack_request
from fairmaxent.fit.learned import Learned
from fairmaxent.fit.plans import PaperRequest
from fairmaxent.fit.prior_storage import pack_prior, unpack_prior
from fairmaxent.fit.recomputed import recomputed
from fairmaxent.fit.record_types import check_fields, fits
from fairmaxent.fit.request import Request
from fairmaxent.fit.stored_arrays import distinct_codes, masses, sound
from fairmaxent.fit.stored_columns import check_domain
from fairmaxent.fit.version_1 import upgraded
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import Features
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.solvers import Solution, Status
from fairmaxent.relabelling.people import Profiles

FORMAT = "fairmaxent model"
# Raise it whenever a number of the certificate changes its meaning: files of this version are compared with it.
VERSION = 3


def save(fit: Learned, path: str | PathLike[str], *, readable: bool = False) -> None:
    """Write a fit, whole or not at all; ``readable``: other users may read it."""
    record, arrays = _pack(fit)
    write_whole(path_of(path), to_archive(record, arrays), readable=readable)


def load(path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> Learned:
    """Read back what `save` wrote."""
    record, arrays = read_archive(path_of(path), max_bytes=max_bytes)
    if record.get("format") != FORMAT:
        raise foreign(path)
    version = record.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise StorageError(
            f"{path} has format version {shown(version)}, but this fairmaxent reads versions up to {VERSION}; "
            "upgrade fairmaxent, or fit and save again"
        )
    try:
        with np.errstate(all="ignore"):  # of numbers that are refused below
            learned = _unpack(upgraded(record, arrays) if version == 1 else record, arrays)
            _refuse_unread(learned, record, arrays, complete=version == VERSION)
            return recomputed(learned, complete=version == VERSION)
    except DependencyError:
        raise
    except BaseException as problem:
        if isinstance(problem, Exception) or is_foreign(problem):
            raise damaged(path, problem) from problem
        raise


# ---------------------------------------------------------------- the fit


def _pack(fit: Learned) -> tuple[Record, Arrays]:
    domain, domain_arrays = fit.domain.to_storage()
    features, solution = fit.optimum.dual.features, fit.optimum.solution
    prior, prior_arrays = pack_prior(fit.optimum.dual.prior)
    table = fit.table.collect()
    record: Record = {
        "format": FORMAT,
        "version": VERSION,
        "request": pack_request(fit.request),
        "columns": list(fit.columns),
        "outcome": fit.roles.outcome,
        "protected": list(fit.roles.protected),
        "within": list(fit.roles.strata),
        "also": list(fit.roles.others),
        "domain": domain,
        "prior": prior,
        "solution": {
            "value": solution.value,
            "residual": solution.residual,
            "iterations": solution.iterations,
            "status": solution.status.name,
            "method": solution.method,
        },
        "certificate": pack_certificate(fit.certificate),
    }
    arrays: Arrays = {
        "table/codes": table.codes,
        "table/counts": table.counts,
        **_pack_places(table),
        **_pack_labels(fit),
        "row_weights": fit.weighted.collect().counts,
        "target": fit.target,
        "multipliers": solution.multipliers,
        "features/starts": features.starts,
        "features/levels": features.levels,
        "features/values": features.values,
        "features/possible": features.possible,
        "certificate/table": fit.certificate.table,
        **nest("domain", domain_arrays),
        **nest("prior", prior_arrays),
    }
    if fit.weight_column is not None:
        record["weight"], weight_arrays = to_storage(fit.weight_column)
        record["weight_name"] = fit.weight_column.name
        record["weight_scale"] = [fit.weight_scale.exponent, fit.weight_scale.average]
        arrays |= nest("weight", weight_arrays)
    if fit.distribution.details is not None:
        arrays |= nest("positions", {str(index): rows for index, rows in fit.distribution.details.positions.items()})
    if fit.design_weights is not None:
        arrays["design_weights"] = fit.design_weights
    return record | {"arrays": list(arrays)}, arrays


def _refuse_unread(fit: Learned, record: Record, arrays: Arrays, *, complete: bool) -> None:
    """Refuse what saving the fit again would not write: nothing reads it, and it could hold people's rows."""
    read, read_arrays = _pack(fit)
    if not arrays.keys() <= read_arrays.keys():
        raise ValueError("it holds arrays that are no part of a model")
    if complete and not _names_less(record, read):
        raise ValueError("its header holds something that is no part of a model")


def _names_less(stored: object, read: object) -> bool:
    """Whether all keys of records, and of records inside them, are among those that were read."""
    if isinstance(stored, dict) and isinstance(read, dict):
        if stored.keys() == read.keys() == {"map"}:  # pairs of keys and values, in any order
            pairs, stored, read = stored["map"], *({repr(k): v for k, v in one["map"]} for one in (stored, read))
            if len(stored) < len(pairs):
                return False
        return stored.keys() <= read.keys() and all(_names_less(stored[key], read[key]) for key in stored)
    if isinstance(stored, list) and isinstance(read, list | tuple):
        return len(stored) <= len(read) and all(map(_names_less, stored, read))
    return not isinstance(stored, dict | list)


def _pack_places(table: Table) -> Arrays:
    """The distinct row of each input row or, if no row was kept, the counts."""
    if table.places is None:
        kept = {"table/rows": table.rows, "table/squares": table.squares}
        return kept if table.peaks is None else kept | {"table/peaks": table.peaks}
    return {"table/inverse": table.places.astype(np.min_scalar_type(len(table.codes)))}


def _pack_labels(fit: Learned) -> Arrays:
    """Soft labels, and the input rows that relabelled rows stand for; nothing without relabelling."""
    if fit.soft is None:
        return {}
    weighted = fit.weighted.collect()
    return {"soft": fit.soft, "labelled/rows": weighted.rows, "labelled/squares": weighted.squares}


def _unpack(record: Record, arrays: Arrays) -> Learned:
    if sorted(record["arrays"]) != sorted(arrays):
        raise ValueError("arrays are missing or do not belong here")
    domain = Domain.from_storage(record["domain"], unnest("domain", arrays))
    check_domain(domain)
    roles = _unpack_roles(record, domain)
    optimum = _unpack_optimum(record, arrays, roles.blocks)
    weight = _unpack_weight(record, arrays)
    table, design = _unpack_table(arrays, roles.blocks, weighted=weight is not None)
    soft, support = _unpack_labels(arrays, table, roles.blocks)
    columns = tuple(record["columns"])
    if not fits(columns, tuple[str, ...]) or sorted(columns) != sorted(
        [*domain.names, *([] if weight is None else [weight.name])]
    ):
        raise ValueError("columns and their descriptions do not fit together")
    positions = _unpack_positions(arrays, domain, roles.blocks, table)
    request = unpack_request(record["request"])
    by_cell = isinstance(request, Request) and request.means is not None
    distribution = Distribution.of(domain, optimum).detailed(
        positions, table, design, relabelled=soft is not None, by_cell=by_cell
    )
    certificate = unpack_certificate(record["certificate"], masses(arrays["certificate/table"], *roles.blocks.shape(0)))
    check_ranges(certificate)
    _check_request(request, roles, columns, weight)
    return Learned(
        request=request,
        columns=columns,
        roles=roles,
        table=table,
        weighted=support.counting(masses(arrays["row_weights"], support.distinct)),
        soft=soft,
        target=masses(arrays["target"], roles.blocks.width),
        optimum=optimum,
        distribution=distribution,
        certificate=certificate,
        design_weights=design,
        weight_column=weight,
        weight_scale=_unpack_scale(record),
    )


def _unpack_roles(record: Record, domain: Domain) -> Roles:
    """The outcome and the protected columns, refused as in a call if they make no sense."""
    outcome, protected = record["outcome"], record["protected"]
    within, also = (record.get(role, []) for role in ("within", "also"))
    root = [outcome, *protected, *also, *within]
    if not fits(root, list[int]) or not {*root} <= {*range(len(domain.names))}:
        raise ValueError("outcome and protected columns are not among the columns")
    names = ([domain.names[index] for index in part] for part in (protected, within, also))
    return Roles.of(domain, domain.names[outcome], *names)


def _check_request(
    request: Request | PaperRequest, roles: Roles, columns: tuple[str, ...], weight: Column | None
) -> None:
    """Refuse a request that is about other columns."""
    others = [request.protected]
    if isinstance(request, Request):
        others = [*request.protected_names, *request.also_names, *request.within_names]
        if not set(request.kept_names) <= set(columns):
            raise ValueError("the request keeps columns that the model does not have")
    if (request.outcome, *others) != roles.names or request.weight != (None if weight is None else weight.name):
        raise ValueError("the request names other columns than the model has")


def _unpack_optimum(record: Record, arrays: Arrays, blocks: Blocks) -> Optimum:
    entries, count = len(arrays["features/levels"]), len(arrays["features/starts"])
    features = Features(
        blocks,
        starts=sound(arrays["features/starts"], "i", (count,), low=0, high=entries - 1),
        levels=sound(arrays["features/levels"], "i", (entries,), low=0, high=blocks.width - 1),
        values=sound(arrays["features/values"], "f", (entries,)),
        possible=sound(arrays["features/possible"], "b", (blocks.width,)),
    )
    stated = record["solution"] | {"status": Status[record["solution"]["status"]]}
    solution = Solution(multipliers=sound(arrays["multipliers"], "f", (count,)), **stated)
    check_fields(solution)
    dual = Dual(
        unpack_prior(record["prior"], unnest("prior", arrays), blocks),
        features,
        features.mean(masses(arrays["target"], blocks.width)),
    )
    return Optimum(dual, solution)


def _unpack_table(arrays: Arrays, blocks: Blocks, *, weighted: bool) -> tuple[Table, Reals | None]:
    """The distinct rows, and the design weights of the input rows if both were kept."""
    codes = distinct_codes(arrays["table/codes"], blocks)
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
    return replace(table, counts=counts), design


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


def _unpack_labels(arrays: Arrays, table: Table, blocks: Blocks) -> tuple[Reals | None, Table]:
    """Soft labels of the profiles and the relabelled rows; none, and the rows themselves, without relabelling."""
    if "soft" not in arrays:
        return None, table
    if arrays["soft"].shape[1:] != (blocks.shape(0)[0],):  # before there is an array of that many columns
        raise ValueError("soft labels are about other outcomes")
    profiles = Profiles.of(table, blocks, table.counts)
    soft = masses(arrays["soft"], *profiles.counts.shape)
    codes = profiles.labelled()
    counts, rows, squares = (
        masses(arrays[name], len(codes)) for name in ("row_weights", "labelled/rows", "labelled/squares")
    )
    return soft, Table(codes, counts, rows, squares)


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


def _unpack_weight(record: Record, arrays: Arrays) -> Column | None:
    if "weight" not in record:
        return None
    weight = from_storage(record["weight_name"], record["weight"], unnest("weight", arrays), rows=1)
    if len(weight) != 1 or weight.to_list() != [1]:
        raise ValueError("the weight column holds a single one")
    return weight


def _unpack_scale(record: Record) -> WeightScale:
    """The scale of the design weights; files that were written before there was one hold raw weights."""
    exponent, average = record.get("weight_scale", [0, 1.0])
    if not (fits(exponent, int) and fits(average, float) and abs(exponent) < 1100 and 0 < average < 2):
        raise ValueError("the scale of the design weights makes no sense")
    return WeightScale(exponent, float(average))
