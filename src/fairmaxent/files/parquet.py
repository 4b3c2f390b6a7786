"""Parquet, read at once or in pieces, and Arrow: files that store types of columns."""

import contextlib
import glob
import io
import itertools
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import narwhals as nw

from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import declared_size
from fairmaxent.errors import ClusterError, StorageError, first_line
from fairmaxent.files.content import need_room
from fairmaxent.files.formats import STREAM
from fairmaxent.files.reading import Name

CELL_MEMORY = 8  # bytes of a cell, at least
_UNFINISHED = re.compile(r"(^|/)(\.|_[^=/]*(/|$))")  # or a record of another tool


def read_typed(
    content: bytes,
    path: str,
    reading: object,
    format: str,
) -> tuple[Any, tuple[()], None]:
    """Read a table from a Parquet file, an Arrow file or an Arrow stream."""
    polars = load_library("polars")
    with reading_errors(path, format):
        if content.startswith(STREAM):
            rows, _ = declared_size(content)
            columns = polars.read_ipc_stream(content, n_rows=0).width
            need_room(len(content) + float(CELL_MEMORY * columns * rows), path)
            return polars.read_ipc_stream(content), (), None
        if format == "arrow":
            lazy = polars.scan_ipc(io.BytesIO(content))
        else:
            lazy = polars.scan_parquet(io.BytesIO(content))
        return loaded(lazy, path, held=len(content)), (), None


def loaded(lazy: Any, path: Name, *, held: int = 0) -> Any:
    """Load what was scanned; refuse beforehand what has no room beside what is held."""
    polars = load_library("polars")
    rows = lazy.select(polars.len()).collect().item()
    cells = len(lazy.collect_schema()) * rows
    need_room(held + float(CELL_MEMORY * cells), path)
    return lazy.collect()


def reading_errors(path: str, format: str) -> AbstractContextManager[None]:
    """Turn what polars raises into an error that names the file."""
    return library_errors(
        f"cannot read {path} as {format}",
        "write the file again, or specify its format",
        OSError,
        ValueError,
        RecursionError,
        struct.error,
    )


def write_parquet(lazy: Any, file: IO[bytes], *, schema: Any, **_: object) -> tuple[()]:
    """Write a lazy frame; the file declares the types of ``schema``, if given."""
    if schema is None:
        lazy.sink_parquet(file)
        return ()

    polars = load_library("polars")
    empty = io.BytesIO()
    # which declares the types, whatever the rows come as
    polars.DataFrame(schema=schema).write_parquet(empty)
    empty.seek(0)
    record = {"ARROW:schema": polars.read_parquet_metadata(empty)["ARROW:schema"]}
    # Drawn rows come in no order, so the minimum and maximum of a row group would not
    # help a reader.
    lazy.sink_parquet(file, metadata=record, statistics=False)
    return ()


def write_arrow(lazy: Any, file: IO[bytes], **_: object) -> tuple[()]:
    """Write a lazy frame; the format holds any table."""
    lazy.sink_ipc(file)
    return ()


def is_pattern(path: Name) -> bool:
    """Whether a path is a pattern such as ``part-*.parquet``, and no file's name."""
    return any(sign in str(path) for sign in "*?[") and not Path(path).exists()


def parts_of(path: Name) -> list[Path] | None:
    """List the parts of a folder or a pattern; None if the path is neither.

    None also for an address, which only polars can list.
    """
    if "://" in str(path):
        return None
    source = Path(path)
    if is_pattern(path):
        names = [Path(name) for name in glob.glob(str(path), recursive=True)]
    elif source.is_dir():
        found = source.rglob("*.parquet")
        names = [
            name
            for name in found
            if not _UNFINISHED.search(name.relative_to(source).as_posix())
        ]
    else:
        return None
    return sorted(name for name in names if name.is_file())


def scan_table(path: Name) -> Any | None:
    """Open a Parquet file, a folder of them, or a pattern, as a polars LazyFrame.

    None for anything else, which must be read at once. Hidden files in a folder are not
    data.
    """
    parts = parts_of(path)
    if parts is None and not is_pattern(path) and not _is_parquet(Path(path)):
        return None
    if parts == []:
        raise StorageError(
            f"{path} is a pattern or a folder without Parquet files; check it, or pass"
            " a file"
        )

    remedy = "check the path, or write the file again"
    with library_errors(
        f"cannot read {path} as parquet", remedy, OSError, RecursionError
    ):
        lazy = load_library("polars").scan_parquet(parts or path)
        lazy.collect_schema()
    return lazy


@contextlib.contextmanager
def named_part(path: Name) -> Iterator[None]:
    """If an engine cannot read a table of several files, say which of them is to blame.

    Engines do not; so the files are looked at when one has failed.
    """
    try:
        yield
    except ClusterError:  # no file is to blame
        raise
    except StorageError:
        check_parts(path, _read_through)
        raise


def check_parts(path: Name, *more: Callable[[Path], Any]) -> None:
    """Refuse a table of several files if one cannot be read, or differs from others.

    What each says of its columns is read first; its rows, which ``more`` looks may
    read, take long.
    """
    looks = [load_library("polars").read_parquet_schema, *more]
    fault = _fault_in(parts_of(path) or [], looks)
    if fault is not None:
        raise StorageError(f"{fault}; write that file again, or remove it")


def _fault_in(parts: list[Path], looks: Iterable[Callable[[Path], Any]]) -> str | None:
    """What is wrong with the first part that differs from others, or cannot be read."""
    wanted = None
    for look in looks:
        for part in parts:
            if not part.stat().st_size:
                return f"{part}, a part of the table, is an empty file"
            try:
                schema = look(part)
            except Exception as problem:  # whatever a damaged file makes polars raise
                return f"cannot read {part} ({first_line(problem)})"
            if wanted is None:
                wanted = schema
            for name, dtype in wanted.items():
                if name not in schema:
                    return f"{part} has no column {name!r}, which {parts[0]} has"
                if schema[name] != dtype:
                    return (
                        f"column {name!r} is {schema[name]} in {part}, and {dtype} in"
                        f" {parts[0]}"
                    )
    return None


def _read_through(part: Path) -> Any:
    """Read all rows of a part; return its columns."""
    lazy = load_library("polars").scan_parquet(part)
    for _ in lazy.collect_batches():
        pass
    return lazy.collect_schema()


def _is_parquet(path: Path) -> bool:
    """Whether its first bytes are those of Parquet.

    A pipe would lose them, so only regular files are opened.
    """
    with contextlib.suppress(OSError, ValueError):  # reported when the file is read
        if path.is_file():
            with path.open("rb") as file:
                return file.read(4) == b"PAR1"
    return False


def as_lazy(batches: Iterable[Any]) -> Any:
    """Return polars tables that arrive one by one as a LazyFrame to be read once."""
    plugins = load_library("polars.io.plugins")
    rest = iter(batches)
    first = next(rest)
    return plugins.register_io_source(
        lambda *_: itertools.chain([first], rest), schema=first.schema
    )


def with_categories(domain: Domain) -> Domain:
    """Return the domain with texts as categories, much faster to draw and write."""
    # The categories ascend, so their minimum and maximum are those of the texts.
    polars = load_library("polars")
    changed = {}
    for index, attribute in enumerate(domain.attributes):
        texts = attribute.values.to_native()
        if domain.library == "polars" and texts.dtype == polars.String:
            enum = polars.Enum(texts.drop_nulls().unique().sort())
            values = nw.from_native(texts.cast(enum), series_only=True)
            changed[index] = replace(attribute, values=values)
    return domain.with_attributes(changed)
