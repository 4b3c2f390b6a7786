"""Formats of tables in files, by their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from fairmaxent.errors import InputError, check_choice, did_you_mean

FileFormat = Literal["csv", "tsv", "parquet", "arrow", "jsonl"]
Compression = Literal["uncompressed", "gzip", "zstd"]
STANDARD = "-"  # stdin or stdout
SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv",
    ".data": "csv",
    ".txt": "csv",
    ".tab": "tsv",
    ".tsv": "tsv",
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
    """The last two suffixes, the outermost first."""
    return [suffix.lower() for suffix in reversed(Path(path).suffixes[-2:])]


def output_format(path: str | os.PathLike[str], format: FileFormat | None = None) -> tuple[FileFormat, Compression]:
    """Say how a file of this name is written, or refuse the name."""
    if format is not None:
        check_choice("format", format, FileFormat)
    suffixes = suffixes_of(path)
    compression = COMPRESSED.get(suffixes[0], "uncompressed") if suffixes else "uncompressed"
    own = [suffix for suffix in suffixes if suffix not in COMPRESSED][:1]
    if format is None and not own:
        format = "csv"
    kind = format or SUFFIXES.get(own[0])
    if kind is None:
        also = f"; text may be compressed, with {' or '.join(COMPRESSED)} behind it"
        raise InputError(f"{path}: no format is known for {own[0]!r}; {did_you_mean(own[0], SUFFIXES)}{also}")
    if compression != "uncompressed" and kind in ("parquet", "arrow"):
        raise InputError(f"{path}: {kind} files are compressed inside; leave {suffixes[0]!r} out")
    return kind, compression
