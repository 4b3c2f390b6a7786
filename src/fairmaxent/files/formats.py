"""Formats of tables in files, and the suffixes that stand for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from fairmaxent.errors import InputError, check_choice, did_you_mean

FileFormat = Literal["csv", "tsv", "parquet", "arrow", "jsonl", "xlsx"]
Compression = Literal["uncompressed", "gzip", "zstd"]
STANDARD = "-"  # stdin or stdout
SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv",
    ".data": "csv",
    ".txt": "csv",
    ".tab": "tsv",
    ".tsv": "tsv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
COMPRESSED: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}


def suffixes_of(path: str | os.PathLike[str]) -> list[str]:
    """Return the last two suffixes, the outermost first."""
    return [suffix.lower() for suffix in reversed(Path(path).suffixes[-2:])]


def output_format(path: str | os.PathLike[str], format: FileFormat | None = None) -> tuple[FileFormat, Compression]:
    """Return the format and compression for a file of this name, or refuse the name."""
    if format is not None:
        check_choice("format", format, FileFormat)
    suffixes = suffixes_of(path)
    compression = COMPRESSED.get(suffixes[0], "uncompressed") if suffixes else "uncompressed"
    suffix = next((suffix for suffix in suffixes if suffix not in COMPRESSED), "")
    kind = format or (SUFFIXES.get(suffix) if suffix else "csv")
    if kind is None:
        compressed = f"for a compressed text file, add {' or '.join(COMPRESSED)}"
        raise InputError(
            f"{path}: the format of {suffix!r} is not known; {did_you_mean(suffix, SUFFIXES)}; {compressed}"
        )
    if compression != "uncompressed" and kind in ("parquet", "arrow", "xlsx"):
        raise InputError(f"{path}: {kind} files are already compressed; leave out {suffixes[0]!r}")
    return kind, compression
