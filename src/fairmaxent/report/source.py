"""Where a fit came from, as far as is known: the file, the command, and how its columns were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """What a fit does not know about its table; all of it is shown, and the call to repeat it is made from it."""

    command: str | None = None  # the command line that made it
    file: str | None = None
    sha256: str | None = None  # of the file's bytes
    dropped: tuple[str, ...] = ()  # columns of the file that took no part
    domain: Mapping[str, object] = field(default_factory=dict)  # options of Domain.infer, where they were used
