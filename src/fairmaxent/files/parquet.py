"""Files that store the types of their columns: Parquet, read at once or in pieces,
Arrow and JSON lines.
"""

import codecs
import contextlib
import glob
import io
import itertools
import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import narwhals as nw

from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import check_file_columns
from fairmaxent.errors import ColumnError, StorageError, shown
from fairmaxent.files.formats import STREAM
from fairmaxent.files.reading import need_room

_CELL_MEMORY = 8  # bytes of a cell, at least
_UNFINISHED = re.compile(r"(^|/)(\.|_[^=/]*(/|$))")  # or a record of another tool
_JSON_MEMORY = 2.5  # bytes of memory for each byte of JSON lines
# that are looked at before the others: polars takes long to collect many columns
_JSON_LINES = 17_000


def read_typed(
    content: bytes, path: str, reading: object, format: str
) -> tuple[Any, tuple[()], None]:
    """Read a table in one of these formats."""
    remedy = "write the file again, or specify its format"
    with library_errors(
        f"cannot read {path} as {format}", remedy, OSError, ValueError, RecursionError
    ):
        return _read(content, path, format), (), None


def _read(content: bytes, path: str, format: str) -> Any:
    polars = load_library("polars")
    if format == "jsonl":
        text = content.removeprefix(codecs.BOM_UTF8)
        frame = polars.read_ndjson(text, schema=_json_schema(text, path, polars))
        _check_keys(text, path, polars)
        return frame
    if content.startswith(STREAM):
        return polars.read_ipc_stream(content)
    is_arrow = format == "arrow"
    scanned = (polars.scan_ipc if is_arrow else polars.scan_parquet)(
        io.BytesIO(content)
    )
    cells = len(scanned.collect_schema()) * int(
        scanned.select(polars.len()).collect().item()
    )
    need_room(len(content) + float(_CELL_MEMORY * cells), path)
    return (polars.read_ipc if is_arrow else polars.read_parquet)(content)


def _json_schema(content: bytes, path: object, polars: Any) -> Any:
    """The columns of JSON lines; each line may have its own, and then a small file
    stands for a table of many cells.
    """
    need_room(_JSON_MEMORY * len(content), path)
    lines = content.count(b"\n") + 1
    for looked_at in (_JSON_LINES, None) if lines > _JSON_LINES else (None,):
        schema = polars.scan_ndjson(
            io.BytesIO(content), infer_schema_length=looked_at
        ).collect_schema()
        check_file_columns(len(schema), path)
        need_room(float(_CELL_MEMORY * len(schema) * lines), path)
    return schema


def _check_keys(content: bytes, path: str, polars: Any) -> None:
    """Refuse a row that has a key twice, of which polars takes one; only lines that may
    have one are parsed again.
    """

    def unique(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ColumnError(
                f"{path}, line {line}: the key {shown(twice)} stands there twice;"
                " remove or rename one"
            )

    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n")
    for before in itertools.count(step=_JSON_LINES):
        if not (
            some := polars.Series(
                list(itertools.islice(lines, _JSON_LINES)), dtype=polars.String
            )
        ).len():
            return
        keys = some.str.extract_all(r'"(?:[^"\\]|\\.)*"\s*:').list
        for index in (keys.n_unique() < keys.len()).arg_true():
            line = before + index + 1
            json.loads(some[index], object_pairs_hook=unique)


def write_typed(
    lazy: Any, file: IO[bytes], compression: str, form: object, schema: Any, format: str
) -> tuple[str, ...]:
    """Write a lazy frame in one of these formats, all of which hold any table."""
    if format == "arrow":
        lazy.sink_ipc(file)
    elif format == "jsonl":
        lazy.sink_ndjson(file, compression=compression, check_extension=False)
    elif schema is None:
        lazy.sink_parquet(file)
    else:
        polars = load_library("polars")
        empty = io.BytesIO()
        # which declares the types, whatever the rows come as
        polars.DataFrame(schema=schema).write_parquet(empty)
        empty.seek(0)
        record = {"ARROW:schema": polars.read_parquet_metadata(empty)["ARROW:schema"]}
        # Drawn rows come in no order, so the minimum and maximum of a row group would
        # not help a reader.
        lazy.sink_parquet(file, metadata=record, statistics=False)
    return ()


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pattern such as ``part-*.parquet``, and not a file with such
    a name.
    """
    return any(sign in str(path) for sign in "*?[") and not Path(path).exists()


def parts_of(path: str | os.PathLike[str]) -> list[Path] | None:
    """List the parts of a folder or a pattern; None if the path is neither, or an
    address that only polars can list.
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


def scan_table(path: str | os.PathLike[str]) -> Any | None:
    """Open a Parquet file, a folder of them, or a pattern such as ``"part-*.parquet"``
    as a polars LazyFrame.

    None for anything else, which must be read at once. Hidden files in a folder are not
    data.
    """
    parts = parts_of(path)
    if not (parts is not None or is_pattern(path) or _is_parquet(Path(path))):
        return None
    if parts == []:
        raise StorageError(
            f"{path} is a pattern or a folder without Parquet files; check it, or pass"
            " a file"
        )
    empty = next((part for part in parts or () if not part.stat().st_size), None)
    if empty is not None:
        raise StorageError(
            f"{empty}, a part of the table, is an empty file; remove it, or write it"
            " again"
        )
    remedy = "check the path, or write the file again"
    with library_errors(
        f"cannot read {path} as parquet", remedy, OSError, RecursionError
    ):
        lazy = load_library("polars").scan_parquet(path if parts is None else parts)
        lazy.collect_schema()
    return lazy


def _is_parquet(path: Path) -> bool:
    """Whether its first bytes are those of Parquet; a pipe would lose them, so only
    regular files are opened.
    """
    with contextlib.suppress(OSError, ValueError):  # reported when the file is read
        if path.is_file():
            with path.open("rb") as file:
                return file.read(4) == b"PAR1"
    return False


def as_lazy(batches: Iterable[Any]) -> Any:
    """Return polars tables that arrive one after the other as one LazyFrame, which can
    be read once.
    """
    plugins = load_library("polars.io.plugins")
    rest = iter(batches)
    first = next(rest)
    return plugins.register_io_source(
        lambda *_: itertools.chain([first], rest), schema=first.schema
    )


def with_categories(domain: Domain) -> Domain:
    """Return the domain with texts as polars categories, which are much faster to draw
    and write.
    """
    # The categories ascend, so their minimum and maximum are those of the texts.
    polars = load_library("polars")
    changed = {}
    for index, attribute in enumerate(domain.attributes):
        texts = attribute.values.to_native()
        if domain.library == "polars" and texts.dtype == polars.String:
            categories = texts.cast(polars.Enum(texts.drop_nulls().unique().sort()))
            changed[index] = replace(
                attribute, values=nw.from_native(categories, series_only=True)
            )
    return domain.with_attributes(changed)
