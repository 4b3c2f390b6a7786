"""Data files that are not shipped: read from a folder of the user or downloaded, and verified by their checksum."""

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
    """A file with the checksum of its content and the address to download it from."""

    name: str
    sha256: str
    address: str


def read_files(files: Sequence[DataFile]) -> list[bytes]:
    """Return the verified contents of the files; the error otherwise says which files to save where."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return [_checked(file, folder, advice=_advice(files)) for file in files]


def _checked(file: DataFile, folder: str | None, *, advice: str) -> bytes:
    source = str(Path(folder, file.name)) if folder else file.address
    try:
        content = Path(source).read_bytes() if folder else _fetch(source)
    except OSError as error:
        raise StorageError(f"cannot read {source}: {error}; {advice}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != file.sha256:
        raise StorageError(
            f"{source} is damaged or a different file: its SHA-256 is {checksum} instead of {file.sha256}; {advice}"
        )
    return content


def _fetch(address: str) -> bytes:
    """Download a file; every failure is an OSError."""
    # Imported here, because they are slow to import and rarely needed.
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=_PATIENCE) as answer:
            content: bytes = answer.read()
    except HTTPException as error:
        raise OSError(f"the download broke off ({error})") from error
    return content


def _advice(files: Sequence[DataFile]) -> str:
    listed = ", ".join(f"{file.name} (SHA-256 {file.sha256}, from {file.address})" for file in files)
    return f"save these files in one folder and set the environment variable {FOLDER_VARIABLE} to it: {listed}"
