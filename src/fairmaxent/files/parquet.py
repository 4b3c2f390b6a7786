"""Parquet files, read and written in pieces with polars."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw

from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import MOST_INFLATION, memory_limit
from fairmaxent.errors import StorageError
from fairmaxent.files.content import too_long_texts
from fairmaxent.files.parquet_footer import check_footer
from fairmaxent.files.parts import is_pattern, parts_of


def scan_table(path: str | os.PathLike[str]) -> Any | None:
    """Open a Parquet file, a folder of them, or a pattern such as ``"part-*.parquet"`` as a polars LazyFrame.

    None for anything else, which must be read at once. Hidden and empty files in a folder are not data.
    """
    source = Path(path)
    parts = parts_of(path)
    if not (parts is not None or is_pattern(path) or _is_parquet(source)):
        return None
    if parts is not None and not parts.files:
        if source.is_dir():
            raise StorageError(f"{path} is a folder without Parquet files; pass one of the files in it")
        raise StorageError(f"cannot read {path} as parquet (no file with content matches it); check the path")
    polars = load_library("polars")

    def explain(why: str) -> StorageError:
        return StorageError(f"cannot read {path} as parquet ({why}); check the path, or write the file again")

    with library_errors(explain, OSError, RecursionError):
        files = [source] if parts is None else parts.files
        longest = sum(map(_check_part, files))
        lazy = polars.scan_parquet(path if parts is None else list(files))
        lazy.collect_schema()
        size = sum(part.stat().st_size for part in files if part.is_file())
        most = max(MOST_INFLATION * size, int(memory_limit()))
        if longest > most and (texts := _text_bytes(lazy, polars)) > most:
            raise too_long_texts(path, size=size, texts=texts, most=most)
    return lazy


def _check_part(path: Path) -> int:
    """Refuse a damaged file; return the most bytes that its texts can have if some are long, else 0."""
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return check_footer(file, path)


def _text_bytes(lazy: Any, polars: Any) -> int:
    """The bytes of all texts, without a copy of any: polars keeps each text once, and lengths where the cells are."""
    schema, lengths = lazy.collect_schema(), polars.col("text").cast(polars.String).str.len_bytes().cast(polars.UInt64)
    total = 0
    for name, kind in schema.items():
        column = lazy.select(polars.col(name).alias("text"))
        if kind == polars.String:
            total += column.select(lengths.sum()).collect(engine="streaming").item()
        elif kind in (polars.Categorical, polars.Enum):
            counted = column.group_by("text").len("rows").select((lengths * polars.col("rows")).sum())
            total += counted.collect(engine="streaming").item()
    return total


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


def _is_parquet(path: Path) -> bool:
    """Whether its first bytes are those of Parquet; a pipe would lose them, so only regular files are opened."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except (OSError, ValueError):  # reported when the file is read
        return False
