"""A fit in one file: JSON for what has names, arrays for what has numbers, never pickle.

The file is a zip archive with ``header.json`` and one ``.npy`` member per array. Writing the same fit twice gives the
same bytes. Reading checks format, version, checksums and shapes, and never runs anything from the file.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fairmaxent.blocks import Blocks
from fairmaxent.certificate import Certificate, Measure
from fairmaxent.distribution import Distribution
from fairmaxent.domain import Domain
from fairmaxent.dual import Dual
from fairmaxent.errors import FairMaxEntError, StorageError
from fairmaxent.features import Features
from fairmaxent.fit import Fit
from fairmaxent.frame_storage import Arrays, Record, from_storage, nest, to_storage, unnest
from fairmaxent.maxent import Optimum
from fairmaxent.priors.mixture import Mixture
from fairmaxent.priors.product import Product
from fairmaxent.priors.protocol import Prior
from fairmaxent.priors.rows import Rows
from fairmaxent.priors.tree import Tree
from fairmaxent.request import Roles
from fairmaxent.solvers import Solution, Status
from fairmaxent.table import Table

FORMAT = "fairmaxent model"
VERSION = 1

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal fits give equal bytes


def save(fit: Fit, path: str | PathLike[str]) -> None:
    """Write a fit, whole or not at all."""
    record, arrays = _pack(fit)
    _write_whole(Path(path), _archive(record, arrays))


def load(path: str | PathLike[str]) -> Fit:
    """Read a fit back.

    Raises :class:`fairmaxent.StorageError` for a file that is missing, damaged, foreign, or of a newer format.
    """
    record, arrays = _read(Path(path))
    if record.get("format") != FORMAT:
        raise StorageError(f"{path} is not a fairmaxent model; pass a file written by fit.save()")
    if record.get("version") != VERSION:
        raise StorageError(
            f"{path} has format version {record.get('version')!r}, this fairmaxent reads version {VERSION}; "
            "upgrade fairmaxent, or fit and save again"
        )
    try:
        fit = _unpack(record, arrays)
        _check(fit)
    except FairMaxEntError:
        raise
    except Exception as problem:
        raise _damaged(path, problem) from problem
    return fit


def _damaged(path: object, problem: Exception) -> StorageError:
    return StorageError(
        f"{path} is damaged or was not written by fairmaxent ({type(problem).__name__}: {problem}); "
        "restore it from a copy, or fit and save again"
    )


# ---------------------------------------------------------------- the file


def _archive(record: Record, arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "header.json", json.dumps(record, ensure_ascii=False, indent=1).encode())
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            _add(archive, f"{name}.npy", member.getvalue())
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    information = zipfile.ZipInfo(name, date_time=_LONG_AGO)
    information.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(information, content)


def _write_whole(path: Path, content: bytes) -> None:
    """Write to a temporary file beside the wanted one, then rename."""
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as problem:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise StorageError(f"cannot write {path}: {problem}; choose another place") from problem


def _read(path: Path) -> tuple[Record, Arrays]:
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in members
            }
    except OSError as problem:
        raise StorageError(f"cannot read {path}: {problem.strerror or problem}") from problem
    except Exception as problem:
        raise _damaged(path, problem) from problem
    if not isinstance(header, dict):
        raise StorageError(f"{path} is not a fairmaxent model; pass a file written by fit.save()")
    return header, arrays


# ---------------------------------------------------------------- the fit


def _pack(fit: Fit) -> tuple[Record, Arrays]:
    domain, domain_arrays = fit.domain.to_storage()
    features, solution = fit.optimum.dual.features, fit.optimum.solution
    prior, prior_arrays = _pack_prior(fit.optimum.dual.prior)
    record: Record = {
        "format": FORMAT,
        "version": VERSION,
        "options": _tag(dict(fit.options)),
        "columns": list(fit.columns),
        "outcome": fit.roles.outcome,
        "protected": list(fit.roles.protected),
        "domain": domain,
        "prior": prior,
        "solution": {
            "value": solution.value,
            "residual": solution.residual,
            "iterations": solution.iterations,
            "status": solution.status.name,
            "method": solution.method,
        },
        "certificate": _tag(fit.certificate.to_dict()),
        "measure": _tag(vars(fit.certificate.measure)),
    }
    arrays: Arrays = {
        "table/codes": fit.table.codes,
        "table/counts": fit.table.counts,
        "table/inverse": fit.table.inverse.astype(np.min_scalar_type(len(fit.table.codes))),
        "row_weights": fit.row_weights,
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
    if fit.design_weights is not None and fit.weight_column is not None:
        record["weight"], weight_arrays = to_storage(fit.weight_column)
        record["weight_name"] = fit.weight_column.name
        arrays |= {"design_weights": fit.design_weights, **nest("weight", weight_arrays)}
    return record, arrays


def _unpack(record: Record, arrays: Arrays) -> Fit:
    domain = Domain.from_storage(record["domain"], unnest("domain", arrays))
    roles = Roles(domain, record["outcome"], tuple(record["protected"]))
    blocks = roles.blocks
    features = Features(
        blocks, **{name: arrays[f"features/{name}"] for name in ("starts", "levels", "values", "possible")}
    )
    solution = dict(record["solution"])
    solution["status"] = Status[solution["status"]]
    prior = _unpack_prior(record["prior"], unnest("prior", arrays), blocks)
    optimum = Optimum(
        Dual(prior, features, features.mean(arrays["target"])),
        Solution(multipliers=arrays["multipliers"], **solution),
    )
    weighted = "weight" in record
    return Fit(
        options=_untag(record["options"]),
        columns=tuple(record["columns"]),
        roles=roles,
        table=Table(
            np.asfortranarray(arrays["table/codes"]),
            arrays["table/counts"],
            arrays["table/inverse"].astype(np.intp),
        ),
        row_weights=arrays["row_weights"],
        target=arrays["target"],
        optimum=optimum,
        distribution=Distribution.of(domain, optimum),
        certificate=_unpack_certificate(record, arrays),
        design_weights=arrays["design_weights"] if weighted else None,
        weight_column=from_storage(record["weight_name"], record["weight"], unnest("weight", arrays))
        if weighted
        else None,
    )


def _unpack_certificate(record: Record, arrays: Arrays) -> Certificate:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in _untag(record["certificate"]).items()
    }
    measure = _untag(record["measure"])
    return Certificate(
        **fields,
        measure=Measure(tuple(map(tuple, measure["groupings"])), tuple(measure["names"]), tuple(measure["favourable"])),
        table=arrays["certificate/table"],
    )


def _check(fit: Fit) -> None:
    """Refuse a file whose parts do not fit together, before anything is drawn from it."""
    blocks = fit.distribution.blocks
    tables = [fit.table.codes, *(part.codes for part in _parts(fit.optimum.dual.prior) if isinstance(part, Rows))]
    for codes in tables:
        if codes.ndim != 2 or codes.shape[1] != len(blocks.levels) or (codes.max(axis=0) >= blocks.levels).any():
            raise ValueError("rows do not fit the domain")
    if len(fit.table.counts) != len(fit.table.codes) or fit.table.inverse.max() >= len(fit.table.codes):
        raise ValueError("rows and counts do not fit together")
    if fit.distribution.potentials.shape != (blocks.width,) or np.isnan(fit.distribution.potentials).any():
        raise ValueError("multipliers do not fit the domain")
    if not np.isclose(fit.distribution.root_table.sum(), 1.0):
        raise ValueError("the distribution does not sum to one")


def _parts(prior: Prior) -> tuple[Prior, ...]:
    return prior.parts if isinstance(prior, Mixture) else (prior,)


# ---------------------------------------------------------------- priors


def _pack_prior(prior: Prior) -> tuple[Record, Arrays]:
    if isinstance(prior, Rows):
        return {"kind": "rows"}, {"codes": prior.codes, "log_weights": prior.log_weights}
    if isinstance(prior, Product):
        return {"kind": "product"}, {"log_levels": prior.log_levels}
    if isinstance(prior, Tree):
        tables = {str(number): table for number, table in enumerate(prior.log_tables)}
        return {"kind": "tree", "parents": list(prior.parents)}, {"root": prior.log_root, **tables}
    if isinstance(prior, Mixture):
        packed = [_pack_prior(part) for part in prior.parts]
        arrays: Arrays = {"log_shares": prior.log_shares}
        for number, (_, own) in enumerate(packed):
            arrays |= nest(str(number), own)
        return {"kind": "mixture", "parts": [record for record, _ in packed]}, arrays
    raise StorageError(f"a prior of type {type(prior).__name__} cannot be stored")


def _unpack_prior(record: Record, arrays: Arrays, blocks: Blocks) -> Prior:
    kind = record["kind"]
    if kind == "rows":
        return Rows(blocks, np.asfortranarray(arrays["codes"]), arrays["log_weights"])
    if kind == "product":
        return Product(blocks, arrays["log_levels"])
    if kind == "tree":
        parents = tuple(int(parent) for parent in record["parents"])
        tables = tuple(arrays[str(number)] for number in range(len(parents)))
        return Tree(blocks, parents, arrays["root"], tables)
    if kind == "mixture":
        parts = tuple(
            _unpack_prior(part, unnest(str(number), arrays), blocks) for number, part in enumerate(record["parts"])
        )
        return Mixture(parts, arrays["log_shares"])
    raise ValueError(f"unknown kind of prior {kind!r}")


# ---------------------------------------------------------------- options as JSON


def _tag(value: Any) -> Any:
    """Turn a user's value into JSON that keeps the keys of mappings as they are."""
    if isinstance(value, Mapping):
        return {"map": [[_tag(key), _tag(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple | set | frozenset):
        return {"list": [_tag(item) for item in value]}
    if isinstance(value, np.generic):
        return _tag(value.item())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _untag(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "map" in value:
        return {_untag(key): _untag(item) for key, item in value["map"]}
    return [_untag(item) for item in value["list"]]
