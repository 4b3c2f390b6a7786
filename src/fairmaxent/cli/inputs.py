"""What a command reads, none of which may be overwritten: it may be the only copy."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence

import click

from fairmaxent.errors import StorageError
from fairmaxent.files.parquet import is_pattern, parts_of
from fairmaxent.files.reading import STANDARD

CONFIG = "fairmaxent.config"  # where a context keeps the path of the config file
CONFIG_KEYS = "fairmaxent.config_keys"  # and which options it sets, also of other commands
_STDIN, _STDOUT = 0, 1

_Identity = tuple[int, int]  # device and inode: the same for all names of a file


def refuse_overwriting(read: Sequence[str | None], written: Sequence[str]) -> None:
    """Refuse to overwrite what is read, under whatever name, and to write where the next run would read it as data."""
    context = click.get_current_context(silent=True)
    beside = () if context is None else (context.meta.get(CONFIG), context.params.get("declared"))  # --config, --domain
    sources = [source for source in (*read, *beside) if source is not None]
    inputs = {identity for source in sources for identity in _identities(source)}
    for target in written:
        if _identity(target, _STDOUT) in inputs:
            raise click.UsageError(f"{target} is an input file and would be overwritten; name another file")
        for source in sources:
            if target != STANDARD and source != STANDARD and would_be_read(target, source):
                raise click.UsageError(
                    f"{target} would be read as data by the next run, because the input is {source}; name a file "
                    "elsewhere"
                )


@contextlib.contextmanager
def unchanged(source: str) -> Iterator[None]:
    """Refuse what was made of files that somebody changed meanwhile: they are read several times, and must not mix."""
    before = _states(source)
    yield
    if _states(source) != before:
        raise StorageError(f"{source} was changed while it was read; run the command again")


def _states(source: str) -> list[tuple[str, int, int, int] | None]:
    parts = parts_of(source)
    return [_state(str(file)) for file in ([source] if parts is None else parts)]


def _state(path: str) -> tuple[str, int, int, int] | None:
    with contextlib.suppress(OSError, ValueError):
        known = os.stat(path)
        return path, known.st_ino, known.st_size, known.st_mtime_ns
    return None


def _identities(source: str) -> Iterator[_Identity]:
    """The files behind a path, each by device and inode."""
    parts = None if source == STANDARD else parts_of(source)
    for file in [source] if parts is None else parts:
        identity = _identity(file, _STDIN)
        if identity is not None:
            yield identity


def _identity(path: str | os.PathLike[str], standard: int) -> _Identity | None:
    """Device and inode of a regular file, also if it is stdin or stdout; None for anything else."""
    with contextlib.suppress(OSError, ValueError):
        known = os.fstat(standard) if path == STANDARD else os.stat(path)
        if stat.S_ISREG(known.st_mode):
            return known.st_dev, known.st_ino
    return None


def would_be_read(target: str, source: str) -> bool:
    """Whether a file of this name would be a part of the source."""
    names = (os.path.realpath(target), os.path.abspath(target))
    if os.path.isdir(source):
        folder = os.path.realpath(source)
        return any(os.path.commonpath([name, folder]) == folder for name in names)
    if not is_pattern(source):
        return False
    pattern = os.path.abspath(source)
    deep = "**" in pattern
    same_depth = (name for name in names if deep or name.count(os.sep) == pattern.count(os.sep))
    return any(fnmatch.fnmatchcase(name, pattern) for name in same_depth)
