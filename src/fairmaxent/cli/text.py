"""What a command shows: tables, JSON, and progress."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from fairmaxent.cli.streams import echo
from fairmaxent.data.levels import value_text
from fairmaxent.data.text_table import cell_text as cell_text
from fairmaxent.data.text_table import text_table as text_table
from fairmaxent.document.words import counted as counted
from fairmaxent.plain_text import json_text


def as_json(record: Any) -> str:
    """Plain JSON: what is no number (infinite, NaN) is null, what has no JSON form is its text."""
    return json_text(record, indent=2, text=value_text)


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
