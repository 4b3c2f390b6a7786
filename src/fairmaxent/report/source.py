"""Where a fit came from, as far as is known: the files, the command, how columns were read, and by which front door."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fairmaxent.report.front_door import IN_PYTHON, FrontDoor


@dataclass(frozen=True)
class WrittenFile:
    """A file that belongs to the result, by its name without folders, and the SHA-256 of its bytes."""

    what: str  # e.g. "Fair table" or "Model"
    name: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """What a fit does not know about its table; all of it is shown, and the call to repeat it is made from it."""

    command: str | None = None  # the command line that made it
    file: str | None = None
    sha256: str | None = None  # of the file's bytes
    reading: tuple[str, ...] = ()  # what the reader noted about the file, such as its encoding
    dropped: tuple[str, ...] = ()  # columns of the file that took no part
    domain: Mapping[str, object] = field(default_factory=dict)  # options of Domain.infer, where they were used
    written: tuple[WrittenFile, ...] = ()  # what was made from it, where that is in files
    front_door: FrontDoor = IN_PYTHON

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON."""
        return asdict(self) | {"front_door": self.front_door.where}


def written_file(what: str, path: str | os.PathLike[str], *, name: str | os.PathLike[str] | None = None) -> WrittenFile:
    """Take the digest of a file; ``name`` is the one it will have, if it is still at a temporary path."""
    return WrittenFile(what, os.path.basename(path if name is None else name), file_sha256(path))


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
