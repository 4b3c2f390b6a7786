"""What a command shows: tables, JSON, and progress."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from fairmaxent.cli.streams import echo
from fairmaxent.data.levels import value_text
from fairmaxent.data.text_table import cell_text as cell_text
from fairmaxent.data.text_table import counted as counted
from fairmaxent.data.text_table import text_table as text_table
from fairmaxent.plain_text import escaped_json


def as_json(record: Any) -> str:
    """Plain JSON: what is no number (infinite, NaN) is null, what has no JSON form is its text."""
    return escaped_json(json.dumps(_plain(record), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value_text(value)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Say on a terminal what is being done; a pipe or a file stays as it is."""
    if not sys.stderr.isatty():
        yield
        return
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        yield
        return
    with Console(stderr=True).status(Text(cell_text(text))):  # not markup: a file may be called a[b].csv
        yield


def say(text: str, *, data_on_stdout: bool) -> None:
    """Print for people; to stderr if stdout carries the data."""
    echo(text, err=data_on_stdout)
