"""Records in a file, and back: any frozen dataclass, by its annotations.

The file is a zip archive of ``header.json``, an ``.npy`` member for each array, and
``SHA256SUMS``. Nothing is trusted: sizes are added up before anything is inflated,
nothing is unpickled, and records have exactly their fields, of the annotated types.
"""

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from numbers import Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import (
    Arrays,
    Record,
    from_storage,
    nest,
    to_storage,
    unnest,
)
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_key, value_text
from fairmaxent.data.limits import masses, sound
from fairmaxent.errors import StorageError, cut, first_line
from fairmaxent.files.write import write_whole
from fairmaxent.plain_text import Values

_PAIRS = ""  # the key of a mapping whose keys are not texts
_MARKED = re.compile(r" \(\d+\)$")  # a label that would otherwise repeat
_NUMBER = re.compile(r"-?\d[\d.]*(?:e[+-]?\d+)?")
# what the members of a saved fit may add up to, inflated, unless `load` is told
# otherwise
MOST_BYTES = 1 << 30
# what its header may take: as Python objects, JSON takes many times as much memory
MOST_HEADER_BYTES = 1 << 26
_CHUNK = 1 << 20
_LONGEST_HEADER = 10_000  # bytes of an array's header, far more than ours have
_HEADER = "header.json"
_SUMS = "SHA256SUMS"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal fits give equal bytes


def pack(
    value: Any,
    arrays: Arrays | None = None,
    path: str = "",
    *,
    without: Sequence[str] = (),
) -> Any:
    """Return JSON from which `unpack` restores a value.

    Arrays and columns are put into ``arrays`` by their path. What JSON has no word for
    becomes its text, and a field that may hold anything (a model, say) keeps only a
    name.
    """
    if is_dataclass(value) and not isinstance(value, type):
        stored = {}
        for name, hint in _hints(type(value)).items():
            part = getattr(value, name)
            if hint is Any and not isinstance(part, str):
                part = None
            if name not in without:
                stored[name] = pack(part, arrays, _inside(path, name))
        return stored
    if arrays is not None and isinstance(value, np.ndarray):
        arrays[path] = value
        return None
    if arrays is not None and isinstance(value, nw.Series):
        record, parts = to_storage(value)
        arrays |= nest(path, parts)
        return {"name": value.name, **record}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) and key != _PAIRS for key in value):
            return {_PAIRS: [[pack(key), pack(item)] for key, item in value.items()]}
        return {
            key: pack(item, arrays, _inside(path, key)) for key, item in value.items()
        }
    if isinstance(value, set | frozenset):
        return pack(sorted(value, key=repr))
    if isinstance(value, list | tuple):
        return [
            pack(item, arrays, _inside(path, number))
            for number, item in enumerate(value)
        ]
    # item() of a longdouble is a longdouble
    if isinstance(value, np.generic) and not isinstance(value, np.floating):
        return pack(value.item())
    if isinstance(value, Enum):
        return value.name
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Real) and not isinstance(value, int):
        return float(value)

    return str(value)


def _inside(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def unpack(
    value: Any,
    hint: Any,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    path: str = "",
) -> Any:
    """Restore what `pack` gave, as an annotation says.

    >>> unpack([1, 2.5], tuple[float, ...])
    (1, 2.5)
    >>> unpack({"sex": None}, dict[str, float | None])
    {'sex': None}
    """
    # newer versions of numpy name a type instead of writing it out
    hint = getattr(hint, "__value__", hint)
    if hint in (Any, object):  # a value of a user, such as a level or several
        if isinstance(value, dict):
            hint = dict[Any, Any]
        elif isinstance(value, list):
            hint = list[Any]
        else:
            return value
    origin = get_origin(hint)
    options = get_args(hint)
    arrays = arrays or {}
    if origin in (Union, UnionType):
        problems = []
        for option in options:
            try:
                return unpack(value, option, arrays, path)
            except (ValueError, TypeError) as problem:
                problems.append(problem)
        raise problems[0]
    if is_dataclass(hint) and isinstance(hint, type):
        hints = _hints(hint)
        if not isinstance(value, dict) or value.keys() != hints.keys():
            raise ValueError(
                f"the fields of {hint.__name__} are not those that it should have"
            )
        fields_of = {
            name: unpack(value[name], kind, arrays, _inside(path, name))
            for name, kind in hints.items()
        }
        return hint(**fields_of)
    if origin is np.ndarray:
        array = arrays.get(path)
        kind = get_args(options[1])[0]
        if array is None or (kind is not Any and not np.issubdtype(array.dtype, kind)):
            found = "none" if array is None else array.dtype
            raise ValueError(f"expected an array of {kind}, found {found}")
        return array
    if origin is nw.Series:
        record = dict(value)
        name = unpack(record.pop("name"), str)
        return from_storage(name, record, unnest(path, arrays))
    if origin is None or origin is Literal:
        return _unpack_plain(value, hint)

    return _unpack_container(value, hint, arrays, path)


def _unpack_plain(value: Any, hint: Any) -> Any:
    wanted = getattr(hint, "__name__", hint)
    if get_origin(hint) is Literal:
        options = get_args(hint)
        wanted = " or ".join(map(repr, options))
        fits = any(
            type(value) is type(option) and value == option for option in options
        )
    elif hint in (float, int):
        # a whole number is a float too, and a truth value is no number
        numbers = int | float if hint is float else int
        fits = isinstance(value, numbers) and not isinstance(value, bool)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value]
    elif hint in (None, NoneType):
        fits = value is None
    else:
        fits = isinstance(value, hint)
    if not fits:
        raise ValueError(f"expected {wanted}, found {type(value).__name__}")

    return value


def _unpack_container(
    value: Any,
    hint: Any,
    arrays: Mapping[str, NDArray[Any]],
    path: str,
) -> Any:
    origin: Any = get_origin(hint)
    options = get_args(hint)
    if not isinstance(value, dict if issubclass(origin, Mapping) else list):
        raise ValueError(f"expected {origin.__name__}, found {type(value).__name__}")
    if isinstance(value, dict):
        key, item = options
        pairs = value.get(_PAIRS) or value.items()
        return {
            unpack(name, key): unpack(part, item, arrays, _inside(path, name))
            for name, part in pairs
        }
    if origin is not tuple or options[-1] is ...:
        options = (options[0],) * len(value)
    parts = [
        unpack(part, kind, arrays, _inside(path, number))
        for number, (part, kind) in enumerate(zip(value, options, strict=True))
    ]
    return tuple(parts) if origin is tuple else parts


@cache
def _hints(kind: Any) -> Values:
    """The annotations of the fields that are stored.

    Fields for a single call, which do not count as equal, are not.
    """
    hints = get_type_hints(kind)
    return {
        field.name: hints[field.name]
        for field in fields(kind)
        if field.init and field.compare
    }


def require(problem: str, holds: bool) -> None:  # noqa: FBT001
    """Refuse what a file holds."""
    if not holds:
        raise ValueError(problem)


def check_domain(domain: Domain) -> None:
    """Refuse columns that are not what `Domain.learn` makes."""
    require(
        "two columns have the same name, or there is none",
        0 < len(domain.names) == len(set(domain.names)),
    )
    libraries = {frames.library_of(attribute.values) for attribute in domain.attributes}
    require("columns come from different libraries", len(libraries) == 1)
    for attribute in domain.attributes:
        for problem, holds in _demands(attribute):
            require(f"column {attribute.name!r}: {problem}", bool(holds))


def _demands(attribute: Attribute) -> Iterator[tuple[str, object]]:
    """What must hold of a column; what comes later relies on what came before."""
    values = attribute.values
    starts = attribute.level_starts
    size = attribute.size
    missing = attribute.missing
    count = len(values)
    present = count - (missing is not None)
    sound(np.diff(sound(starts, "i", (size + 1,))), "i", (size,), low=1)
    counts = masses(attribute.counts, count)
    numeric = attribute.kind in ("numeric", "date", "boolean")
    yield "its values have another name", values.name == attribute.name
    yield "two of its labels are equal", len(set(attribute.labels)) == size > 0
    whole = starts[0] == 0 and starts[-1] == count and missing in (None, size - 1)
    yield "its levels and values do not fit together", whole
    yield (
        "a level has no values to draw",
        np.add.reduceat(counts, starts[:-1]).all() and np.isfinite(counts.sum()),
    )
    binned = attribute.edges is not None or attribute.features != "indicator"
    yield "texts have neither bins nor moments", numeric or not binned
    plain = values.to_list()
    levels = np.repeat(np.arange(size), np.diff(starts))
    absent = np.array([frames.is_missing(value) for value in plain])
    apart = (
        absent.sum() == count - present
        and not absent[:present].any()
        and np.sum(levels == missing) <= 1
    )
    yield "missing values are not where they belong", apart
    if values.dtype == nw.Object:
        different = {value_key(value) for value in plain[:present]}
    else:
        different = set(plain[:present])
    yield "a value repeats", len(different) == present
    numbers = np.empty(0)
    if numeric:
        numbers = sound(frames.to_numbers(values)[:present], "f", (present,))
    if attribute.edges is not None:
        edges = sound(attribute.edges, "f", (size - 1 - (count - present),))
        sound(np.diff(edges), "f", (max(len(edges) - 1, 0),), low=np.nextafter(0, 1))
        inside = np.searchsorted(edges, numbers, side="right") == levels[:present]
        yield "a number lies outside its bin", inside.all()
    yield (
        "a label names another value",
        all(_label_fits(attribute, level, plain) for level in range(size)),
    )


def _label_fits(attribute: Attribute, level: int, values: list[Any]) -> bool:
    """Whether a label is what `Domain.learn` gives a level.

    That is the text of its value, "missing", "other" for several, or the ends of a bin.
    """
    label = attribute.labels[level]
    edges = attribute.edges
    plain = _MARKED.sub("", label)
    if level == attribute.missing:
        return plain == "missing"

    inside = values[attribute.level_starts[level] : attribute.level_starts[level + 1]]
    texts = {cut(value_text(value)) for value in inside}
    if not texts.isdisjoint((label, plain)):  # a text may itself end like a mark
        return edges is None or len(set(map(frames.number_of, inside))) == 1
    if edges is None:
        return len(inside) > 1 and plain == "other"

    ends = []
    if attribute.kind == "numeric":
        ends = [float(text) for text in _NUMBER.findall(plain)]
    if not ends:  # times, or all values
        return attribute.kind == "date" or not len(edges)

    # Labels have four digits or more, and what follows a value that stands alone begins
    # just above it.
    return all(
        math.isclose(edges[side], end, rel_tol=1e-3, abs_tol=1e-300)
        for side, end in ((level - 1, ends[0]), (level, ends[-1]))
        if 0 <= side < len(edges)
    )


def path_of(path: str | PathLike[str]) -> Path:
    """Refuse what is not a path."""
    if not isinstance(path, str | PathLike):
        raise StorageError(
            f"{cut(repr(path))} is not a path; pass the name of a file, e.g."
            " 'model.fme'"
        )
    return Path(path)


def damaged(path: object, problem: BaseException) -> StorageError:
    """Say that a file cannot be trusted."""
    what = cut(first_line(problem), 200)
    if type(problem) is not ValueError:  # those are the sentences of the checks
        what = f"{type(problem).__name__}: {what}"
    return StorageError(
        f"{path} is damaged or was not written by fairmaxent ({what}); restore it from"
        " a copy, or fit and save again (which spends again if it is private)"
    )


def write_archive(
    path: str | PathLike[str],
    record: Record,
    arrays: Arrays,
    *,
    readable: bool,
) -> None:
    """Write a record and arrays, whole or not at all; equal ones give equal bytes."""
    members = {_HEADER: json.dumps(record, indent=1).encode()}
    for name, array in arrays.items():
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
        members[f"{name}.npy"] = content.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in (*members.items(), (_SUMS, _sums(members))):
            information = zipfile.ZipInfo(name, date_time=_LONG_AGO)
            information.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(information, member)
    write_whole(path_of(path), buffer.getvalue(), readable=readable)


def _sums(members: Mapping[str, bytes | bytearray]) -> bytes:
    """The digest of each member, in the form that ``sha256sum --check`` reads."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in members.items()
    ).encode()


def read_archive(
    name: str | PathLike[str], form: str, max_bytes: int = MOST_BYTES
) -> tuple[Record, Arrays]:
    """Read the record, which must name this format, and the arrays of a file."""
    path = path_of(name)
    # opening a pipe would wait for somebody to write
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise StorageError(
            f"cannot read {path}: it is not an ordinary file; pass a file written by"
            " fit.save()"
        )

    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(path, archive.infolist(), max_bytes)
            members = {
                member.filename: _inflated(archive, member)
                for member in archive.infolist()
            }
            header = json.loads(members[_HEADER], object_pairs_hook=_distinct_keys)
            if isinstance(header, dict) and bytes(members.pop(_SUMS, b"")) != _sums(
                members
            ):
                raise ValueError("its SHA-256 digests do not match what it holds")
            del members[_HEADER]
            # two names could become one below
            if not all(member.endswith(".npy") for member in members):
                raise ValueError("it holds members that are no arrays")
            arrays = {
                member.removesuffix(".npy"): _read_array(content)
                for member, content in members.items()
            }
    except StorageError:
        raise
    except OSError as problem:
        why = problem.strerror or problem
        raise StorageError(
            f"cannot read {path}: {why}; pass a file written by fit.save()"
        ) from problem
    except Exception as problem:
        raise damaged(path, problem) from problem
    if not isinstance(header, dict) or header.get("format") != form:
        raise StorageError(
            f"{path} is not a fairmaxent model; pass a file written by fit.save()"
        )

    return header, arrays


def _check_sizes(
    path: Path, members: Sequence[zipfile.ZipInfo], max_bytes: int
) -> None:
    """Refuse members with the same name, and sizes beyond the limits.

    No member is inflated beyond what it declares.
    """
    sizes = {member.filename: member.file_size for member in members}
    if len(sizes) < len(members):
        raise ValueError("it holds two members of the same name")

    total = sum(sizes.values())
    if total > max_bytes:
        raise StorageError(
            f"{path} would take {total:,} bytes of memory, more than the limit of"
            f" {max_bytes:,}; if you trust it, use fairmaxent.load(path, max_bytes=…)"
        )
    if sizes.get(_HEADER, 0) > MOST_HEADER_BYTES:
        raise StorageError(
            f"the header of {path} has more than {MOST_HEADER_BYTES:,} bytes; fit again"
            " without columns of long texts"
        )


def _distinct_keys(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("its header names something twice")
    return record


def _inflated(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytearray:
    """Inflate a member into memory that an array can then use as it is.

    A second copy could be another GiB.
    """
    content = bytearray(member.file_size)
    size = 0
    with archive.open(member) as stream:
        # never more than is declared, and the last one checks the checksum
        while chunk := stream.read(_CHUNK):
            content[size : size + len(chunk)] = chunk
            size += len(chunk)
    if size != member.file_size or size != len(content):
        raise ValueError("a member has another size than it declares")

    return content


def _read_array(content: bytearray) -> NDArray[Any]:
    """Read an array whose header agrees with the bytes that are there."""
    stream = io.BytesIO(content[:_LONGEST_HEADER])
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, columns_first, dtype = read_header[np.lib.format.read_magic(stream)](stream)
    start = stream.tell()
    count = math.prod(shape)
    if dtype.kind not in "biuf" or dtype.itemsize * count != len(content) - start:
        raise ValueError("the size or type of an array does not match what it holds")

    flat = np.empty(0, dtype)
    if count:
        flat = np.frombuffer(
            content,
            dtype=dtype,
            count=count,
            offset=start,
        )
    return flat.astype(dtype.newbyteorder("="), copy=False).reshape(
        shape, order="F" if columns_first else "C"
    )
