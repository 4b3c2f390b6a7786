"""A declared domain as a TOML file: read for ``debias --domain``, drafted by ``inspect --write-domain``."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmaxent.cli.config import toml_values
from fairmaxent.errors import InputError, StorageError, did_you_mean
from fairmaxent.plain_text import escaped_toml

if TYPE_CHECKING:
    from fairmaxent.data.declaration import Declaration

_KEYS = ("draft", "levels", "edges", "missing")

_HEAD = """\
# The values that each column can have, for 'fairmaxent debias --epsilon 1 --domain'. This is a draft, made from your
# table, and no part of it is protected: anyone who sees a private result may learn everything in this file. So each
# level and each edge must be something that everybody may know. Take out levels that only your table shows, add those
# that others could have, and round the edges."""

_DRAFT = """
# A private fit refuses a draft. Once you have read all of this, and it is public knowledge, remove the next line.
draft = true"""


def read_domain(path: str) -> Declaration:
    """Read a declared domain."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or getattr(problem, "reason", None) or problem
        raise StorageError(f"cannot read the domain {path}: {reason}; check the path and its permissions") from problem
    return declared(text, path)


def declared(text: str, path: str) -> Declaration:
    """The domain that a text declares; ``path`` is how messages name it."""
    from fairmaxent.data.domain import Domain

    record = toml_values(text, path)
    for name in record:
        if name not in _KEYS:
            raise InputError(f"{path} has the unknown key {name!r}; {did_you_mean(name, _KEYS)}")
    missing = record.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(name, str) for name in missing):
        raise InputError(f"{path}: missing must be a list of columns, e.g. missing = ['age']")
    for name in ("levels", "edges"):
        columns = record.get(name, {})
        if not isinstance(columns, dict) or not all(isinstance(values, list) for values in columns.values()):
            raise InputError(f"{path}: [{name}] must have a list for each column, e.g. sex = ['Female', 'Male']")
    draft = record.get("draft", False)
    if not isinstance(draft, bool):
        raise InputError(f"{path}: draft must be true or false; remove the line once you have read the draft")
    try:
        declaration = Domain.declare(levels=record.get("levels"), edges=record.get("edges"), missing=missing)
        return replace(declaration, draft=draft)
    except InputError as problem:
        raise InputError(f"{path}: ", problem) from problem


def domain_text(declaration: Declaration, left_out: Sequence[str]) -> str:
    """A declared domain as TOML, to be edited."""
    lines = [_HEAD]
    if left_out:
        names = ", ".join(_toml(name) for name in left_out)
        lines.append(f"# Left out, because they look like identifiers (leave them out with --drop, too): {names}")
    if declaration.draft:
        lines.append(_DRAFT)
    if declaration.missing:
        lines += ["", "# Columns that can have missing values.", f"missing = {_toml(list(declaration.missing))}"]
    lines += _section("levels", declaration.levels)
    lines += _section("edges", declaration.edges)
    return "\n".join(lines) + "\n"


def _section(name: str, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    entries = [f"{_toml(column)} = [{', '.join(map(_toml, values))}]" for column, values in columns.items()]
    return ["", f"[{name}]", *entries] if entries else []


def _toml(value: object) -> str:
    """A value as TOML: dates bare, the rest as JSON writes it."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return escaped_toml(json.dumps(value, ensure_ascii=False, default=str))
