"""A model file: a zip archive of ``header.json`` and one ``.npy`` member per array."""

from __future__ import annotations

import io
import json
import zipfile
from os import PathLike
from pathlib import Path

import numpy as np

from fairmaxent.data.column_storage import Arrays, Record
from fairmaxent.errors import StorageError

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal fits give equal bytes


def path_of(path: str | PathLike[str]) -> Path:
    """Refuse what is not a path."""
    if not isinstance(path, str | PathLike):
        raise StorageError(f"{path!r} is not a path; pass the name of a file, e.g. 'model.fme'")
    return Path(path)


def foreign(path: object) -> StorageError:
    """Say that a file is something else."""
    return StorageError(f"{path} is not a fairmaxent model; pass a file written by fit.save()")


def damaged(path: object, problem: Exception) -> StorageError:
    """Say that a file cannot be trusted."""
    return StorageError(
        f"{path} is damaged or was not written by fairmaxent ({type(problem).__name__}: {problem}); "
        "restore it from a copy, or fit and save again"
    )


def to_archive(record: Record, arrays: Arrays) -> bytes:
    """Pack a record and arrays; equal ones give equal bytes."""
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


def read_archive(path: Path) -> tuple[Record, Arrays]:
    """Read the record and the arrays of a file; nothing in it is run."""
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
        raise damaged(path, problem) from problem
    if not isinstance(header, dict):
        raise foreign(path)
    return header, arrays
