"""Parts of the site that are generated: the list of decisions, the help of every command, links in docstrings."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

import fairmaxent
from fairmaxent.cli.group import group

MARKER = "<!-- the help of every command -->"
_ROLE = re.compile(r":(?:attr|class|func|meth):<code>([\w.]+)</code>")


def on_config(config: Any) -> Any:
    """List every decision record."""
    docs = Path(config.docs_dir)
    records = sorted(path.relative_to(docs).as_posix() for path in docs.glob("decisions/*.md"))
    config.nav = [*config.nav, {"Decisions": records}]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert the help of every command into the page that has the marker for it."""
    return markdown.replace(MARKER, _all_help()) if MARKER in markdown else markdown


def on_page_content(html: str, **_: Any) -> str:
    """Turn the :func:`name` of a docstring into a link to the name's documentation."""
    return _ROLE.sub(_link, html)


def _link(role: re.Match[str]) -> str:
    """Link to an object by its full name; an unknown name becomes plain code."""
    name = role[1]
    try:
        target = attrgetter(name.removeprefix("fairmaxent."))(fairmaxent)
        identifier = f"{target.__module__}.{target.__qualname__}"
    except AttributeError:
        return f"<code>{name}</code>"
    return f'<code><autoref optional identifier="{identifier}">{name}</autoref></code>'


def _all_help() -> str:
    commands = group.list_commands(click.Context(group))
    return "\n".join(_help(name) for name in ("", *commands))


def _help(command: str) -> str:
    shown = CliRunner().invoke(group, [*command.split(), "--help"], prog_name="fairmaxent", terminal_width=100)
    return f"## fairmaxent {command}".rstrip() + f"\n\n```text\n{shown.output.rstrip()}\n```\n"
