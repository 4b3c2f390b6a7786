"""Files that store the types of their columns: Parquet, read at once or in pieces, Arrow and JSON lines."""

from __future__ import annotations

import codecs
import contextlib
import glob
import io
import itertools
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw

from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import check_file_columns, need_memory
from fairmaxent.errors import ColumnError, StorageError, first_line, shown

_CELL_MEMORY = 8  # bytes of a cell, at least
_JSON_MEMORY = 2.5  # bytes of memory for each byte of JSON lines
_JSON_LINES = 17_000  # that are looked at before the others: polars takes long to collect many columns
_STREAM = b"\xff\xff\xff\xff"  # the beginning of an Arrow stream
_COLON = re.compile(rb'"\s{0,2}:\s{0,2}')
_COLONS_AFTER_KEYS = (b'":', b" :", b"\t:", b"\r:")
_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_WILD = "*?["  # characters of a pattern
_EXAMPLES = 3

# ---------------------------------------------------------------- a file


def read_typed(content: bytes, format: str, path: object) -> Any:
    """Read a table in one of these formats, and return it as polars does."""
    polars = load_library("polars")

    def explain(why: str) -> StorageError:
        return StorageError(f"cannot read {path} as {format} ({why}); write the file again, or specify its format")

    with library_errors(explain, OSError, ValueError, RecursionError):
        try:
            if format == "jsonl":
                text = content.removeprefix(codecs.BOM_UTF8)
                _refuse_half_characters(text, path)
                frame = polars.read_ndjson(text, schema=_json_schema(text, path, polars))
                _refuse_repeated_keys(text, frame, path)
                return frame
            if content.startswith(_STREAM):
                return polars.read_ipc_stream(content)
            scan, read = polars.scan_parquet, polars.read_parquet
            if format == "arrow":
                scan, read = polars.scan_ipc, polars.read_ipc
            scanned = scan(io.BytesIO(content))
            cells = len(scanned.collect_schema()) * int(scanned.select(polars.len()).collect().item())
            _need_memory(len(content) + float(_CELL_MEMORY * cells), path)
            return read(content)
        except polars.exceptions.DuplicateError as repeated:
            raise ColumnError(
                f"{path} has two columns of the same name ({first_line(repeated)}); rename one"
            ) from repeated


def _json_schema(content: bytes, path: object, polars: Any) -> Any:
    """The columns of JSON lines; each line may have its own, and then a small file stands for a table of many cells."""
    _need_memory(_JSON_MEMORY * len(content), path)
    lines = content.count(b"\n") + 1
    for looked_at in (_JSON_LINES, None) if lines > _JSON_LINES else (None,):
        schema = polars.scan_ndjson(io.BytesIO(content), infer_schema_length=looked_at).collect_schema()
        check_file_columns(len(schema), path)
        _need_memory(float(_CELL_MEMORY * len(schema) * lines), path)
    return schema


def _need_memory(needed: float, path: object) -> None:
    need_memory(needed, f"reading {path}", "leave out columns, or take a part of the rows")


# ---------------------------------------------------------------- lines of JSON

# Polars takes the first of two equal keys in an object, and makes a zero of half a character, without a word.


def _refuse_half_characters(content: bytes, path: object) -> None:
    """Refuse lines with the first half of a character that takes two escapes, as texts have that were cut off."""
    if not _HALF.search(content):
        return
    half = _HALF.search(content.replace(rb"\\", b"__"))  # two backslashes are one that begins no escape
    if half is not None:
        number = content.count(b"\n", 0, half.start()) + 1
        raise StorageError(
            f"line {number} of {path} has half a character ({half[0].decode()} without its second half); "
            "write the file again, or take it out"
        )


def _refuse_repeated_keys(content: bytes, frame: Any, path: object) -> None:
    """Refuse lines in which a key stands twice; ``frame`` is what was read from them."""
    if not _has_more_keys(content, frame):
        return
    for number, line in enumerate(io.BytesIO(content), start=1):
        key = _repeated_key(line)
        if key is not None:
            raise ColumnError(f"line {number} of {path} has the key {shown(key)} twice; remove or rename one of them")


def _has_more_keys(content: bytes, frame: Any) -> bool:
    """Whether there seem to be more keys than values; texts with a quote before a colon seem so, too.

    A program writes all colons alike, so nulls are counted the way that the first colon is written. Each mistake makes
    keys more or values less, and then costs time only.
    """
    first = _COLON.search(content)
    colon = b'":' if first is None else first[0]
    keys, cells = sum(content.count(each) for each in _COLONS_AFTER_KEYS), len(frame) * frame.width
    missing = sum(frame.null_count().row(0))
    values = cells - missing + (content.count(colon + b"null") if missing else 0)
    return bool(keys > min(cells, values))


def _repeated_key(line: bytes) -> str | None:
    repeated: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            repeated.extend(name for name in names if names.count(name) > 1)

    with contextlib.suppress(ValueError, RecursionError):  # polars has read the line, so it is no worse than it was
        json.loads(line, object_pairs_hook=look, parse_int=str, parse_float=str)
    return repeated[0] if repeated else None


# ---------------------------------------------------------------- parts


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


def scan_table(path: str | os.PathLike[str]) -> Any | None:
    """Open a Parquet file, a folder of them, or a pattern such as ``"part-*.parquet"`` as a polars LazyFrame.

    None for anything else, which must be read at once. Hidden and empty files in a folder are not data.
    """
    parts = parts_of(path)
    if not (parts is not None or is_pattern(path) or _is_parquet(Path(path))):
        return None
    if parts is not None and not parts.files:
        if Path(path).is_dir():
            raise StorageError(f"{path} is a folder without Parquet files; pass one of the files in it")
        raise StorageError(f"cannot read {path} as parquet (no file with content matches it); check the path")

    def explain(why: str) -> StorageError:
        return StorageError(f"cannot read {path} as parquet ({why}); check the path, or write the file again")

    with library_errors(explain, OSError, RecursionError):
        lazy = load_library("polars").scan_parquet(path if parts is None else list(parts.files))
        lazy.collect_schema()
    return lazy


def _is_parquet(path: Path) -> bool:
    """Whether its first bytes are those of Parquet; a pipe would lose them, so only regular files are opened."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except (OSError, ValueError):  # reported when the file is read
        return False


# ---------------------------------------------------------------- pieces


def as_lazy(batches: Iterable[Any]) -> Any:
    """Return polars tables that arrive one after the other as one LazyFrame, which can be read once."""
    plugins = load_library("polars.io.plugins")
    rest = iter(batches)
    first = next(rest)
    return plugins.register_io_source(lambda *_: itertools.chain([first], rest), schema=first.schema)


def with_categories(domain: Domain) -> Domain:
    """Return the domain with texts as polars categories, which are much faster to draw and write.

    The categories ascend, so their minimum and maximum are those of the texts.
    """
    polars = load_library("polars")
    changed = {}
    for index, attribute in enumerate(domain.attributes):
        texts = attribute.values.to_native()
        if domain.library == "polars" and texts.dtype == polars.String:
            categories = texts.cast(polars.Enum(texts.drop_nulls().unique().sort()))
            changed[index] = replace(attribute, values=nw.from_native(categories, series_only=True))
    return domain.with_attributes(changed)


def schema_record(schema: Any) -> dict[str, str]:
    """Return the metadata that declares these column types in a Parquet file, whatever it was written from."""
    polars = load_library("polars")
    empty = io.BytesIO()
    polars.DataFrame(schema=schema).write_parquet(empty)
    empty.seek(0)
    return {"ARROW:schema": polars.read_parquet_metadata(empty)["ARROW:schema"]}
