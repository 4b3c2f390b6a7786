"""Parquet files that are read and written in pieces, through polars."""

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
from fairmaxent.data.frames import load_library
from fairmaxent.errors import StorageError, first_line

_WILD = "*?["  # signs of a pattern


def scan_table(path: str | os.PathLike[str]) -> Any | None:
    """Open a Parquet file, a folder of them, or a pattern such as ``"part-*.parquet"`` as a polars LazyFrame.

    None for anything else, which is to be read whole.
    """
    place = Path(path)
    pattern = any(sign in str(path) for sign in _WILD) and not place.exists()
    if not (pattern or place.is_dir() or _is_parquet(place)):
        return None
    if place.is_dir() and not any(place.rglob("*.parquet")):
        raise StorageError(f"{path} is a folder without Parquet files; pass one of the files in it")
    polars = load_library("polars")
    try:
        lazy = polars.scan_parquet(place / "**/*.parquet" if place.is_dir() else path)
        lazy.collect_schema()
    except (polars.exceptions.PolarsError, OSError) as problem:
        raise StorageError(
            f"cannot read {path} as parquet ({first_line(problem)}); look at the path, or write it again"
        ) from problem
    return lazy


def as_lazy(batches: Iterable[Any]) -> Any:
    """Polars tables of the same columns that come one after the other, as one LazyFrame that can be read once."""
    plugins = load_library("polars.io.plugins")
    rest = iter(batches)
    first = next(rest)
    return plugins.register_io_source(lambda *_: itertools.chain([first], rest), schema=first.schema)


def with_categories(domain: Domain) -> Domain:
    """Return the domain with texts as polars categories, which are drawn and written far faster.

    The categories ascend, so that the least and the largest are the same as those of the texts.
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
    """Return the metadata by which a Parquet file declares these columns, whatever it was written from."""
    polars = load_library("polars")
    empty = io.BytesIO()
    polars.DataFrame(schema=schema).write_parquet(empty)
    empty.seek(0)
    return {"ARROW:schema": polars.read_parquet_metadata(empty)["ARROW:schema"]}


def _is_parquet(place: Path) -> bool:
    try:
        with place.open("rb") as file:
            return file.read(4) == b"PAR1"
    except (OSError, ValueError):  # said where the file is read
        return False
