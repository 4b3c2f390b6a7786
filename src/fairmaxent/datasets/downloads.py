"""Data files that are not shipped: read from the user's folder or fetched, and known by their checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairmaxent.errors import StorageError

FOLDER_VARIABLE = "FAIRMAXENT_DATA"
_PATIENCE = 30  # seconds without an answer


@dataclass(frozen=True)
class DataFile:
    """A file with its one right content."""

    name: str
    sha256: str
    address: str


def read_files(files: Sequence[DataFile]) -> list[bytes]:
    """Return the files' contents, checked; where that is impossible the error says which files to place where."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return [_checked(file, folder, advice=_advice(files)) for file in files]


def _checked(file: DataFile, folder: str | None, *, advice: str) -> bytes:
    place = str(Path(folder, file.name)) if folder else file.address
    try:
        content = Path(place).read_bytes() if folder else _fetch(place)
    except OSError as error:
        raise StorageError(f"cannot read {place}: {error}; {advice}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise StorageError(
            f"{place} is damaged or another file: its SHA-256 is {found} instead of {file.sha256}; {advice}"
        )
    return content


def _fetch(address: str) -> bytes:
    """Return what the address serves; every failure is an OSError."""
    # Imported here, because they take longer than all else in this package and are rarely needed.
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=_PATIENCE) as answer:
            content: bytes = answer.read()
    except HTTPException as error:
        raise OSError(f"the transfer broke off ({error})") from error
    return content


def _advice(files: Sequence[DataFile]) -> str:
    listed = ", ".join(f"{file.name} (SHA-256 {file.sha256}, from {file.address})" for file in files)
    return f"place these files in one folder and set the environment variable {FOLDER_VARIABLE} to it: {listed}"
