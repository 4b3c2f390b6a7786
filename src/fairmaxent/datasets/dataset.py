"""A data set: a frame, the roles of its columns, its origin, and the file that it is
read from.

A shipped table is compressed text with one line per column: its name, then its cells,
separated by tabs. An empty cell is a missing value; if all other cells of a column are
integers, so is the column. Files that are not shipped are read from a folder of the
user or downloaded, and verified by their checksum.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fairmaxent.data import frames
from fairmaxent.errors import StorageError

Library = Literal["pandas", "polars", "pyarrow"]
FOLDER_VARIABLE = "FAIRMAXENT_DATA"
_PATIENCE = 30  # seconds without an answer
Column = Sequence[Any]
Columns = Mapping[str, Column]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: a frame, the roles of its columns, and its origin."""

    name: str
    frame: Any = field(repr=False)
    """A pandas DataFrame, a polars DataFrame or a pyarrow Table."""
    description: str
    outcome: str
    """The column to be predicted (Y)."""
    protected: tuple[str, ...]
    """The columns that name the groups (Z)."""
    favourable: object
    """The level of the outcome whose share is compared between the groups."""
    origin: str
    """Where the records come from, and under which licence."""
    citation: str


def facts(name: str) -> dict[str, Any]:
    """What there is to know about a data set: the roles of its columns, what it holds,
    its origin and citation.
    """
    import tomllib  # read with the first data set
    from importlib import resources

    text = (
        resources.files("fairmaxent.datasets")
        .joinpath("facts.toml")
        .read_text(encoding="utf-8")
    )
    known: dict[str, Any] = tomllib.loads(text)[name]
    return known | {"protected": tuple(known["protected"])}


@dataclass(frozen=True)
class DataFile:
    """A file with the checksum of its content and the address to download it from."""

    name: str
    sha256: str
    address: str


def read_files(files: Sequence[DataFile]) -> list[bytes]:
    """Return the verified contents of the files; the error otherwise says which files
    to save where.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    listed = ", ".join(
        f"{file.name} (SHA-256 {file.sha256}, from {file.address})" for file in files
    )
    advice = (
        "save these files in one folder and set the environment variable"
        f" {FOLDER_VARIABLE} to it: {listed}"
    )
    return [_checked(file, folder, advice=advice) for file in files]


def _checked(file: DataFile, folder: str | None, *, advice: str) -> bytes:
    if folder:
        source = str(Path(folder, file.name))
    else:
        source = file.address
    try:
        if folder:
            content = Path(source).read_bytes()
        else:
            content = _fetch(source)
    except OSError as error:
        raise StorageError(f"cannot read {source}: {error}; {advice}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != file.sha256:
        raise StorageError(
            f"{source} is damaged or a different file: its SHA-256 is {checksum}"
            f" instead of {file.sha256}; {advice}"
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


def read_table(name: str) -> Columns:
    """Return the columns of a shipped table, as integers or text; None is missing."""
    import lzma  # both are slow to import, and needed only here
    from importlib import resources

    file = f"{name}.tsv.xz"
    try:
        text = lzma.decompress(
            resources.files("fairmaxent.datasets").joinpath(file).read_bytes()
        ).decode()
    except (OSError, lzma.LZMAError) as error:
        raise StorageError(
            f"the table {file} inside the package fairmaxent is missing or damaged"
            f" ({error}); install fairmaxent again"
        ) from error
    lines = [line.split("\t") for line in text.splitlines()]
    return {column: _parse(cells) for column, *cells in lines}


def _parse(cells: Sequence[str]) -> Column:
    # each is parsed once, and equal cells share one object, which halves the time
    distinct = dict.fromkeys(cells)
    try:
        values: dict[str, Any] = {
            cell: int(cell) if cell else None for cell in distinct
        }
    except ValueError:
        values = {cell: cell or None for cell in distinct}
    return [values[cell] for cell in cells]


def build_frame(columns: Columns, library: Library) -> Any:
    """Return the columns as a frame of the given library."""
    namespace = frames.load_library(library)
    if library == "pyarrow":
        return namespace.table(dict(columns))
    if library == "polars":
        return namespace.DataFrame(dict(columns))
    # Without a dtype, pandas would turn integers with gaps into floats.
    gaps = {
        name: namespace.array(cells, dtype="Int64")
        for name, cells in columns.items()
        if None in cells and any(isinstance(cell, int) for cell in cells)
    }
    return namespace.DataFrame(dict(columns) | gaps)
