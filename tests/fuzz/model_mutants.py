"""Mutants of model files: headers and arrays changed at random, with digests that match, and raw bytes changed too."""

from __future__ import annotations

import copy
import io
import json

import numpy as np

from modelfiles import array_bytes, sealed


def mutant(members, rng):
    """One to three changes of a model's members; members that are text or numbers are changed as such."""
    changed = dict(members)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.55:
            header = json.loads(changed["header.json"])
            changed["header.json"] = json.dumps(_changed_record(header, rng)).encode()
        else:
            names = [name for name in changed if name.endswith(".npy")]
            name = names[int(rng.integers(len(names)))]
            changed[name] = _changed_array(changed[name], rng)
    return sealed(changed)


def flipped(content, rng):
    """Some bytes of the file changed, or a piece of it lost or repeated."""
    raw = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(raw)))
        match int(rng.integers(4)):
            case 0 | 1:
                raw[at] ^= 1 << int(rng.integers(8))
            case 2:
                del raw[at : at + int(rng.integers(1, 200))]
            case _:
                raw[at:at] = raw[at : at + int(rng.integers(1, 200))]
        if not raw:
            break
    return bytes(raw)


# ---------------------------------------------------------------- records


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _changed_record(record, rng):
    record = copy.deepcopy(record)
    paths = [path for path in _paths(record) if path]
    path = paths[int(rng.integers(len(paths)))]
    parent, key = _at(record, path[:-1]), path[-1]
    match int(rng.integers(8)):
        case 0:
            del parent[key]
        case 1:
            other = paths[int(rng.integers(len(paths)))]
            parent[key] = copy.deepcopy(_at(record, other))
        case 2 if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        case 3 if isinstance(parent, list) and len(parent) > 1:
            other = int(rng.integers(len(parent)))
            parent[key], parent[other] = parent[other], parent[key]
        case _:
            parent[key] = _changed_value(parent[key], rng)
    return record


STRANGE = [
    None, True, False, 0, 1, -1, 2, 3, 64, 2**31, 2**63, 2**70, -(2**63), 0.0, 0.5, 1.0, 1.0000001, 1.5, -0.25, 1e-300,
    1e300, float("inf"), float("-inf"), float("nan"), "", "x", "1", "\0", "é", "a" * 300, "constructor", "sex", "hired",
    [], [1], [[]], {}, {"map": []}, {"list": []}, {"map": [["a", 1]]}, {"list": [1, "a"]}, "CONVERGED", "STALLED",
    "rows", "tree", "product", "numeric", "categorical", "moment", "category", "objects", "stream", "text", "times",
    "polars", "pandas", "pyarrow", "int64", "datetime64[ns]", "datetime64[ns, UTC]", "str", "object", "free", "keep",
]  # fmt: skip


def _changed_value(value, rng):
    if isinstance(value, bool | None) or rng.random() < 0.4:
        return copy.deepcopy(STRANGE[int(rng.integers(len(STRANGE)))])
    if isinstance(value, int):
        return value + int(rng.integers(-3, 4))
    if isinstance(value, float):
        return float(value * rng.choice([-1, 0.5, 0.9, 1.1, 2, 1e9, 1e-9]) + rng.choice([0, 0, 1e-3, 1]))
    if isinstance(value, str):
        return value[: int(rng.integers(len(value) + 1))] + str(rng.choice(["", "x", "1", "\x1b[31m"]))
    return copy.deepcopy(STRANGE[int(rng.integers(len(STRANGE)))])


# ---------------------------------------------------------------- arrays


def _changed_array(content, rng):
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    with np.errstate(all="ignore"):
        array = _changed_numbers(array.copy(), rng)
    return array_bytes(array)


def _changed_numbers(array, rng):
    flat = array.reshape(-1) if array.flags.c_contiguous or array.flags.f_contiguous else array.ravel()
    how = int(rng.integers(12))
    if how == 0:
        return array[:-1] if array.ndim else array
    if how == 1 and array.ndim and len(array):
        return np.append(array, array[-1:], axis=0)
    if how == 2:
        return array.astype(rng.choice(["f8", "f4", "i8", "u1", "u2", "i4", "?"]))
    if how == 3 and array.ndim:
        return array[::-1]
    if how == 4:
        return array.T
    if how == 5:
        return np.zeros_like(array)
    if how == 6 and array.ndim and len(array):
        return array[rng.permutation(len(array))]
    if flat.size == 0:
        return array
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(flat.size))
        flat[at] = _other_number(flat, at, rng)
    return flat.reshape(array.shape, order="C" if array.flags.c_contiguous else "F")


def _other_number(flat, at, rng):
    if flat.dtype.kind == "b":
        return not flat[at]
    if flat.dtype.kind in "iu":
        limits = np.iinfo(flat.dtype)
        options = [limits.min, limits.max, int(flat[at]) ^ 1, int(flat[int(rng.integers(flat.size))])]
        return options[int(rng.integers(4))]
    options = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 1e300, 1e-300, float(flat[at]) * 1.5, float(flat[at]) + 1e-3]
    return np.array(options[int(rng.integers(len(options)))]).astype(flat.dtype)
