"""A fit in one file: JSON for what has names, arrays for what has numbers, never pickle.

The file is a zip archive with ``header.json`` and one ``.npy`` member per array. Writing the same fit twice gives the
same bytes. Reading checks format, version, checksums and shapes, and never runs anything from the file.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.column_storage import Arrays, Record, from_storage, nest, to_storage, unnest
from fairmaxent.data.domain import Attribute, Domain
from fairmaxent.data.frames import Column
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Reals, Table, row_keys
from fairmaxent.errors import DependencyError, StorageError
from fairmaxent.files.atomic import write_whole
from fairmaxent.fit.certificate import Certificate, Downstream, Measure, Outlook
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.raw_values import Positions
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import Features
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.product import Product
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.maxent.solvers import Solution, Status
from fairmaxent.relabelling.profiles import Profiles

if TYPE_CHECKING:
    from fairmaxent.fit.fit import Fit

FORMAT = "fairmaxent model"
VERSION = 1

_LARGEST = float(np.finfo(np.float64).max)
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal fits give equal bytes


def save(fit: Fit, path: str | PathLike[str]) -> None:
    """Write a fit, whole or not at all."""
    record, arrays = _pack(fit)
    write_whole(_path(path), _archive(record, arrays))


def load_parts(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the parts of a fit back, by the names of its fields."""
    record, arrays = _read(_path(path))
    if record.get("format") != FORMAT:
        raise _foreign(path)
    if record.get("version") != VERSION:
        raise StorageError(
            f"{path} has format version {record.get('version')!r}, this fairmaxent reads version {VERSION}; "
            "upgrade fairmaxent, or fit and save again"
        )
    try:
        return _unpack(record, arrays)
    except DependencyError:
        raise
    except Exception as problem:
        raise _damaged(path, problem) from problem


def _path(path: str | PathLike[str]) -> Path:
    if not isinstance(path, str | PathLike):
        raise StorageError(f"{path!r} is not a path; pass the name of a file, e.g. 'model.fme'")
    return Path(path)


def _foreign(path: object) -> StorageError:
    return StorageError(f"{path} is not a fairmaxent model; pass a file written by fit.save()")


def _damaged(path: object, problem: Exception) -> StorageError:
    return StorageError(
        f"{path} is damaged or was not written by fairmaxent ({type(problem).__name__}: {problem}); "
        "restore it from a copy, or fit and save again"
    )


# ---------------------------------------------------------------- the file


def _archive(record: Record, arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "header.json", json.dumps(record, indent=1).encode())
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            _add(archive, f"{name}.npy", member.getvalue())
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    information = zipfile.ZipInfo(name, date_time=_LONG_AGO)
    information.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(information, content)


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
        raise StorageError(
            f"cannot read {path}: {problem.strerror or problem}; pass a file written by fit.save()"
        ) from problem
    except Exception as problem:
        raise _damaged(path, problem) from problem
    if not isinstance(header, dict):
        raise _foreign(path)
    return header, arrays


# ---------------------------------------------------------------- the fit


def _pack(fit: Fit) -> tuple[Record, Arrays]:
    domain, domain_arrays = fit.domain.to_storage()
    features, solution = fit.optimum.dual.features, fit.optimum.solution
    prior, prior_arrays = _pack_prior(fit.optimum.dual.prior)
    table = fit.table.collect()
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
        arrays |= nest("weight", weight_arrays)
    if fit.distribution.details is not None:
        arrays |= nest("positions", {str(index): own for index, own in fit.distribution.details.positions.items()})
    if fit.design_weights is not None:
        arrays["design_weights"] = fit.design_weights
    return record | {"arrays": list(arrays)}, arrays


def _pack_places(table: Table) -> Arrays:
    """Where each input row went, or where no row was kept, what was counted."""
    if table.places is None:
        return {"table/rows": table.rows, "table/squares": table.squares}
    return {"table/inverse": table.places.astype(np.min_scalar_type(len(table.codes)))}


def _pack_labels(fit: Fit) -> Arrays:
    """Soft labels, and the input rows that relabelled rows stand for, where there are any."""
    if fit.soft is None:
        return {}
    weighted = fit.weighted.collect()
    return {"soft": fit.soft, "labelled/rows": weighted.rows, "labelled/squares": weighted.squares}


def _unpack(record: Record, arrays: Arrays) -> dict[str, Any]:
    if sorted(record["arrays"]) != sorted(arrays):
        raise ValueError("arrays are missing or do not belong here")
    domain = Domain.from_storage(record["domain"], unnest("domain", arrays))
    for attribute in domain.attributes:
        _check_attribute(attribute)
    roles = Roles(domain, record["outcome"], tuple(record["protected"]))
    if len({*roles.root} & {*range(len(domain.names))}) != 1 + len(roles.protected):
        raise ValueError("outcome and protected columns are not among the columns")
    optimum = _unpack_optimum(record, arrays, roles.blocks)
    weight = _unpack_weight(record, arrays)
    table, design = _unpack_table(arrays, roles.blocks, weighted=weight is not None)
    soft, support = _unpack_labels(arrays, table, roles.blocks)
    columns = tuple(record["columns"])
    if sorted(columns) != sorted([*domain.names, *([] if weight is None else [weight.name])]):
        raise ValueError("columns and their descriptions do not fit together")
    positions = _unpack_positions(arrays, domain, roles.blocks, table)
    distribution = Distribution.of(domain, optimum).detailed(positions, table, design, relabelled=soft is not None)
    if not abs(distribution.root_table.sum() - 1) < 1e-6:
        raise ValueError("the distribution does not sum to one")
    return {
        "options": _untag(record["options"]),
        "columns": columns,
        "roles": roles,
        "table": table,
        "weighted": support.counting(_masses(arrays["row_weights"], support.distinct)),
        "soft": soft,
        "target": _masses(arrays["target"], roles.blocks.width),
        "optimum": optimum,
        "distribution": distribution,
        "certificate": _unpack_certificate(record, arrays, roles.blocks),
        "design_weights": design,
        "weight_column": weight,
    }


def _unpack_optimum(record: Record, arrays: Arrays, blocks: Blocks) -> Optimum:
    entries, count = len(arrays["features/levels"]), len(arrays["features/starts"])
    features = Features(
        blocks,
        starts=_sound(arrays["features/starts"], "i", (count,), low=0, high=entries - 1),
        levels=_sound(arrays["features/levels"], "i", (entries,), low=0, high=blocks.width - 1),
        values=_sound(arrays["features/values"], "f", (entries,)),
        possible=_sound(arrays["features/possible"], "b", (blocks.width,)),
    )
    solution = record["solution"] | {"status": Status[record["solution"]["status"]]}
    return Optimum(
        Dual(
            _unpack_prior(record["prior"], unnest("prior", arrays), blocks),
            features,
            features.mean(_masses(arrays["target"], blocks.width)),
        ),
        Solution(multipliers=_sound(arrays["multipliers"], "f", (count,)), **solution),
    )


def _unpack_table(arrays: Arrays, blocks: Blocks, *, weighted: bool) -> tuple[Table, Reals | None]:
    """The distinct rows, and the design weights of the input rows where both were kept."""
    codes = _codes(arrays["table/codes"], blocks)
    counts = _masses(arrays["table/counts"], len(codes))
    if "table/inverse" not in arrays:
        rows = _sound(arrays["table/rows"], "f", (len(codes),), low=1)
        return Table(codes, counts, rows, _masses(arrays["table/squares"], len(codes))), None
    size = len(arrays["table/inverse"])
    inverse = _sound(arrays["table/inverse"], "u", (size,), low=0, high=len(codes) - 1).astype(np.intp)
    design = _masses(arrays["design_weights"], size) if weighted else None
    return replace(Table.tallied(codes, inverse, design), counts=counts), design


def _unpack_labels(arrays: Arrays, table: Table, blocks: Blocks) -> tuple[Reals | None, Table]:
    """Soft labels of the profiles and the relabelled rows; none, and the rows themselves, without relabelling."""
    if "soft" not in arrays:
        return None, table
    profiles = Profiles.of(table, blocks, table.counts)
    soft = _masses(arrays["soft"], *profiles.counts.shape)
    codes = profiles.labelled()
    counts, rows, squares = (
        _masses(arrays[name], len(codes)) for name in ("row_weights", "labelled/rows", "labelled/squares")
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
        _sound(_sound(array, "u", (len(codes),)) - starts[level], "i", (len(codes),), low=0)
        _sound(starts[level + 1] - array, "i", (len(codes),), low=1)
        positions[index] = array
    return positions


def _unpack_weight(record: Record, arrays: Arrays) -> Column | None:
    if "weight" not in record:
        return None
    weight = from_storage(record["weight_name"], record["weight"], unnest("weight", arrays))
    if len(weight) != 1:
        raise ValueError("the weight column holds a single one")
    return weight


def _unpack_certificate(record: Record, arrays: Arrays, blocks: Blocks) -> Certificate:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in _untag(record["certificate"]).items()
    }
    measure = _untag(record["measure"])
    downstream = fields.get("downstream")
    if downstream is not None:
        outlooks = {when: Outlook(**downstream[when]) for when in ("before", "after")}
        fields["downstream"] = Downstream(**downstream | outlooks)
    return Certificate(
        **fields,
        measure=Measure(tuple(map(tuple, measure["groupings"])), tuple(measure["names"]), tuple(measure["favourable"])),
        table=_masses(arrays["certificate/table"], *blocks.shape(0)),
    )


# ---------------------------------------------------------------- trusting no array


def _sound(
    array: NDArray[Any], kind: str, shape: Sequence[int], *, low: float = -_LARGEST, high: float = _LARGEST
) -> NDArray[Any]:
    """Return an array that has this kind (numpy's letter), shape and range; NaN is in no range."""
    if array.dtype.kind != kind or array.shape != tuple(shape):
        raise ValueError(f"expected {kind} of shape {tuple(shape)}, found {array.dtype} of shape {array.shape}")
    if array.size and not (array.min() >= low and array.max() <= high):
        raise ValueError(f"expected numbers from {low} to {high}, found {array.min()} to {array.max()}")
    return array


def _masses(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return numbers that are not negative."""
    return _sound(array, "f", shape, low=0)


def _logs(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return logarithms of numbers that may be zero."""
    return _sound(array, "f", shape, low=-np.inf)


def _codes(array: NDArray[Any], blocks: Blocks) -> NDArray[Any]:
    """Return distinct rows of block codes in lexicographic order, stored column by column as the model reads them."""
    rows = len(array)
    for column, size in zip(_sound(array, "u", (rows, len(blocks.levels))).T, blocks.levels, strict=True):
        _sound(column, "u", (rows,), high=size - 1)
    keys, _ = row_keys(array, blocks.levels)
    _sound(np.diff(keys), "i", (rows - 1,), low=1)
    return np.asfortranarray(array)


def _check_attribute(attribute: Attribute) -> None:
    """Refuse levels that do not cut the values into one piece each, with something to draw in it."""
    values, starts = len(attribute.values), attribute.level_starts
    _sound(np.diff(_sound(starts, "i", (attribute.size + 1,))), "i", (attribute.size,), low=1)
    if starts[0] != 0 or starts[-1] != values or attribute.missing not in (None, attribute.size - 1):
        raise ValueError(f"levels and values of column {attribute.name!r} do not fit together")
    if not np.add.reduceat(_masses(attribute.counts, values), starts[:-1]).all():
        raise ValueError(f"a level of column {attribute.name!r} has no values to draw")
    if attribute.edges is not None:
        _sound(attribute.edges, "f", (attribute.size - 1 - (attribute.missing is not None),))


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
        codes = _codes(arrays["codes"], blocks)
        return Rows(blocks, codes, _logs(arrays["log_weights"], len(codes)))
    if kind == "product":
        return Product(blocks, _logs(arrays["log_levels"], blocks.width))
    if kind == "tree":
        return _unpack_tree(record, arrays, blocks)
    if kind == "mixture":
        parts = tuple(
            _unpack_prior(part, unnest(str(number), arrays), blocks) for number, part in enumerate(record["parts"])
        )
        return Mixture(parts, _logs(arrays["log_shares"], len(parts)))
    raise ValueError(f"unknown kind of prior {kind!r}")


def _unpack_tree(record: Record, arrays: Arrays, blocks: Blocks) -> Tree:
    root, *sizes = blocks.levels
    parents = tuple(record["parents"])
    if len(parents) != len(sizes) or not {*parents} <= {*range(len(blocks.levels))}:
        raise ValueError("the tree has other parents than blocks")
    shapes = [(root, blocks.levels[parent] if parent else 1, size) for parent, size in zip(parents, sizes, strict=True)]
    tables = tuple(_logs(arrays[str(number)], *shape) for number, shape in enumerate(shapes))
    tree = Tree(blocks, parents, _logs(arrays["root"], root), tables)
    if len(tree.order) != len(parents):
        raise ValueError("the tree has a cycle")
    return tree


# ---------------------------------------------------------------- options as JSON


def _tag(value: Any) -> Any:
    """Turn a user's value into JSON that keeps the keys of mappings as they are."""
    if isinstance(value, Mapping):
        return {"map": [[_tag(key), _tag(item)] for key, item in value.items()]}
    if isinstance(value, set | frozenset):
        return _tag(sorted(value, key=repr))
    if isinstance(value, list | tuple):
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
