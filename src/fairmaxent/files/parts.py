"""The files that a path stands for: itself, the Parquet files in a folder, or those that match a pattern."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path

_WILD = "*?["  # characters of a pattern
_EXAMPLES = 3


@dataclass(frozen=True)
class Parts:
    """The parts of a table in their order, and files that look like parts but are empty."""

    files: tuple[Path, ...]
    empty: tuple[Path, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about files that were left out."""
        if not self.empty:
            return ()
        shown = ", ".join(str(path) for path in self.empty[:_EXAMPLES])
        more = f" and {len(self.empty) - _EXAMPLES} more" if len(self.empty) > _EXAMPLES else ""
        return (f"empty files were left out: {shown}{more}",)


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pattern such as ``part-*.parquet``, and not a file with such a name."""
    return any(sign in str(path) for sign in _WILD) and not Path(path).exists()


def parts_of(path: str | os.PathLike[str]) -> Parts | None:
    """List the parts of a folder or a pattern; None if the path is neither, or an address that only polars can list."""
    if "://" in str(path):
        return None
    source = Path(path)
    if is_pattern(path):
        names = [Path(name) for name in glob.glob(str(path), recursive=True)]
    elif source.is_dir():
        names = [name for name in source.rglob("*.parquet") if not _is_hidden(name.relative_to(source))]
    else:
        return None
    files = sorted(name for name in names if name.is_file())
    empty = tuple(name for name in files if not name.stat().st_size)
    return Parts(tuple(name for name in files if name not in empty), empty)


def _is_hidden(path: Path) -> bool:
    """Whether it is unfinished, or a record of another tool: their names begin with a dot or an underscore."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.parts)
