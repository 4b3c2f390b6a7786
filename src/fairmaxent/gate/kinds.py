"""The kinds of documents: each section of `papers.toml` is one, by its name."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("papers.toml")


@dataclass(frozen=True)
class Kind:
    """A kind of document: what it is for, and what it is made of."""

    help: str  # a line for the command line
    suffix: str  # of the file that it is written to
    form: str  # the function of `papers` that writes it
    title: str
    note: str
    parts: list[dict[str, Any]]  # with a title, the facts to fill in, and who writes
    head: dict[str, Any] = field(default_factory=dict)  # of the file, for programs


KINDS = {
    name: Kind(**section)
    for name, section in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
