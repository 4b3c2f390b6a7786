"""A model file: a zip archive of ``header.json``, one ``.npy`` member per array, and ``SHA256SUMS`` of all of them.

Nothing in it is trusted: sizes are added up before anything is inflated, and arrays are never pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.columns import Arrays, Record
from fairmaxent.errors import StorageError, cut, first_line

MOST_BYTES = 1 << 30
"""What the members of a model file may add up to, inflated, unless `load` is told otherwise."""
MOST_HEADER_BYTES = 1 << 26
"""What its header may take: as Python objects, JSON takes many times as much memory."""

_CHUNK = 1 << 20
_LONGEST_HEADER = 10_000  # bytes of an array's header, far more than ours have
_HEADER, _SUMS = "header.json", "SHA256SUMS"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal fits give equal bytes


def path_of(path: str | PathLike[str]) -> Path:
    """Refuse what is not a path."""
    if not isinstance(path, str | PathLike):
        raise StorageError(f"{cut(repr(path))} is not a path; pass the name of a file, e.g. 'model.fme'")
    return Path(path)


def foreign(path: object) -> StorageError:
    """Say that a file is something else."""
    return StorageError(f"{path} is not a fairmaxent model; pass a file written by fit.save()")


def damaged(path: object, problem: BaseException) -> StorageError:
    """Say that a file cannot be trusted."""
    what = cut(first_line(problem), 200)
    if type(problem) is not ValueError:  # those are the sentences of the checks
        what = f"{type(problem).__name__}: {what}"
    return StorageError(
        f"{path} is damaged or was not written by fairmaxent ({what}); restore it from a copy, or fit and save again"
    )


# ---------------------------------------------------------------- writing


def to_archive(record: Record, arrays: Arrays) -> bytes:
    """Pack a record and arrays; equal ones give equal bytes."""
    members = {_HEADER: json.dumps(record, indent=1).encode()}
    members |= {f"{name}.npy": _array_bytes(array) for name, array in arrays.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*members.items(), (_SUMS, _sums(members))):
            information = zipfile.ZipInfo(name, date_time=_LONG_AGO)
            information.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(information, content)
    return buffer.getvalue()


def _array_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _sums(members: Mapping[str, bytes | bytearray]) -> bytes:
    """The digest of each member, in the form that ``sha256sum --check`` reads."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()).encode()


# ---------------------------------------------------------------- reading


def read_archive(path: Path, *, max_bytes: int = MOST_BYTES) -> tuple[Record, Arrays]:
    """Read the record and the arrays of a file; nothing in it is run."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # opening a pipe would wait for somebody to write
        raise StorageError(f"cannot read {path}: it is not an ordinary file; pass a file written by fit.save()")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(path, archive.infolist(), max_bytes)
            members = {member.filename: _inflated(archive, member) for member in archive.infolist()}
            header = json.loads(members[_HEADER], object_pairs_hook=_distinct_keys)
            if isinstance(header, dict) and bytes(members.pop(_SUMS, b"")) != _sums(members):
                raise ValueError("its SHA-256 digests do not match what it holds")
            del members[_HEADER]
            if not all(name.endswith(".npy") for name in members):  # two names could become one below
                raise ValueError("it holds members that are no arrays")
            arrays = {name.removesuffix(".npy"): _read_array(content) for name, content in members.items()}
    except StorageError:
        raise
    except OSError as problem:
        raise StorageError(
            f"cannot read {path}: {problem.strerror or problem}; pass a file written by fit.save()"
        ) from problem
    except Exception as problem:
        raise damaged(path, problem) from problem
    if not isinstance(header, dict):
        raise foreign(path)
    return header, arrays


def _check_sizes(path: Path, members: Sequence[zipfile.ZipInfo], max_bytes: int) -> None:
    """Refuse members with the same name, and sizes beyond the limits: no member is inflated beyond what it declares."""
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("it holds two members of the same name")
    total = sum(member.file_size for member in members)
    if total > max_bytes:
        raise StorageError(
            f"{path} would take {total:,} bytes of memory, more than the limit of {max_bytes:,}; if you trust it, use "
            "fairmaxent.load(path, max_bytes=…)"
        )
    if any(member.filename == _HEADER and member.file_size > MOST_HEADER_BYTES for member in members):
        raise StorageError(
            f"the header of {path} has more than {MOST_HEADER_BYTES:,} bytes; fit again without columns of long texts"
        )


def _distinct_keys(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("its header names something twice")
    return record


def _inflated(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytearray:
    """Inflate a member into memory that an array can then use as it is: a second copy could be another GiB."""
    content, size = bytearray(member.file_size), 0
    with archive.open(member) as stream:
        while chunk := stream.read(_CHUNK):  # never more than is declared, and the last one checks the checksum
            content[size : size + len(chunk)] = chunk
            size += len(chunk)
    if size != member.file_size or size != len(content):
        raise ValueError("a member has another size than it declares")
    return content


def _read_array(content: bytearray) -> NDArray[Any]:
    """Read an array whose header agrees with the bytes that are there."""
    stream = io.BytesIO(content[:_LONGEST_HEADER])
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, columns_first, dtype = read_header[np.lib.format.read_magic(stream)](stream)
    start = stream.tell()
    if dtype.kind not in "biuf" or dtype.itemsize * math.prod(shape) != len(content) - start:
        raise ValueError("the size or type of an array does not match what it holds")
    count = math.prod(shape)
    flat = (
        np.frombuffer(content, dtype=dtype.newbyteorder("="), count=count, offset=start)
        if count
        else np.empty(0, dtype)
    )
    if not dtype.isnative:
        flat = flat.byteswap()
    return flat.reshape(shape, order="F" if columns_first else "C")
