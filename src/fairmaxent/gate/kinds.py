"""The kinds of documents: each section of `papers.toml` is one, by its name."""

import pkgutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("papers.toml")


@dataclass(frozen=True)
class Kind:
    """A kind of document: what it is for, and what it is made of."""

    name: str
    help: str  # a line for the command line
    suffix: str  # of the file that it is written to
    made_by: str  # a function of a module beside this one
    title: str
    note: str
    parts: list[dict[str, Any]]  # with a title, the facts to fill in, and who writes
    about: str = "model"  # or "table"
    head: dict[str, Any] = field(default_factory=dict)  # of the file, for programs

    @property
    def make(self) -> Callable[[Any], str]:
        """The function that writes a draft; imported late, as it takes a while."""
        made: Callable[[Any], str] = pkgutil.resolve_name(
            f"fairmaxent.gate.{self.made_by}"
        )
        return made


KINDS = {
    name: Kind(name=name, **section)
    for name, section in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
