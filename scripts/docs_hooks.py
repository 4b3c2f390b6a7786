"""Parts of the site that are generated: the help of every command, the table of what is
refused, the page for contributors, links in docstrings, the link to the glossary below
each page.

Blocks of commands also get what their copy button copies, and long lines of theirs are
broken instead of cut.
"""

import html
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

import fairmaxent
from fairmaxent.cli.group import group
from fairmaxent.cli.models import ReportOptions
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.values import as_typed
from fairmaxent.errors import Option, spelled
from fairmaxent.fit.models import Model
from fairmaxent.fit.refused import EVALUATION
from fairmaxent.fit.request import Request
from fairmaxent.gate.audit import AuditRequest
from fairmaxent.gate.policy import Policy
from fairmaxent.options.refusals import GIVEN, MISSING, Pattern, Refused
from fairmaxent.privacy.budget import Privacy
from fairmaxent.report.report import ReportRequest

MARKER = "<!-- the help of every command -->"
TABLE = "<!-- what is refused -->"
GLOSSARY = "What a word means"
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
# Each row stands under the first heading that has it.
REFUSED: dict[str, tuple[Refused, ...]] = {
    "What is made of a fit": ReportRequest.REFUSED,
    "The model that a table is made for": Model.REFUSED,
    "What is asked of a fit": Request.REFUSED,
    "Privacy": Privacy.REFUSED,
    "Checking a table": Policy.REFUSED,
    "An audit of a table": AuditRequest.REFUSED[1:],
    "Judging new rows": EVALUATION,
    "Files that commands write": OutputOptions.REFUSED,
    "How commands read columns": DomainOptions.REFUSED,
    "The report on a saved model": ReportOptions.REFUSED,
}
TYPED = [*REFUSED][-3:]  # of commands alone, which have their own spellings
_WIDE = 40  # characters of a line that fit on a phone
_TAG = re.compile(r"<[^>]+>")
_PROMPT = re.compile(r"^(\$|>>>|\.\.\.)?\s*")  # and the indentation behind it
_CODE = re.compile(
    r'<div class="language-(?P<language>console|pycon|text|python)'
    r' highlight">(?P<open>.*?<code>)(?P<code>.*?)</code>',
    re.S,
)
_ROLE = re.compile(r":(?:attr|class|func|meth):<code>([\w.]+)</code>")


def on_config(config: Any) -> Any:
    """Show the version in the header and in titles."""
    config.site_name = f"{config.site_name} {fairmaxent.__version__}"
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Insert the help of every command, or the table of what is refused, into the page
    that has the marker for it; and the way to the glossary below each page.
    """
    if TABLE in markdown:
        markdown = markdown.replace(TABLE, all_refused())
    if MARKER in markdown:
        markdown = markdown.replace(MARKER, _all_help())
    if page.file.src_uri == "contributors.md":
        markdown = _without_links(CONTRIBUTING.read_text(encoding="utf-8"))
    above = "../" * page.file.src_uri.count("/")
    return f"{markdown}\n\n*{GLOSSARY}: [the glossary]({above}glossary.md).*\n"


def on_page_content(html: str, **_: Any) -> str:
    """Turn the :func:`name` of a docstring into a link to the name's documentation, and
    make blocks easy to copy.
    """
    return _CODE.sub(_copyable, _ROLE.sub(_link, html))


def _link(role: re.Match[str]) -> str:
    """Link to an object by its full name; an unknown name becomes plain code."""
    name = role[1]
    try:
        target = attrgetter(name.removeprefix("fairmaxent."))(fairmaxent)
        identifier = f"{target.__module__}.{target.__qualname__}"
    except AttributeError:
        return f"<code>{name}</code>"
    return f'<code><autoref optional identifier="{identifier}">{name}</autoref></code>'


def _without_links(text: str) -> str:
    """A file of the source whose links lead beside it, where the site has nothing."""
    return re.sub(r"\[([^]\n]+)\]\(\w+\.md\)", r"\1", text)


# ---------------------------------------------------------------- what is refused


def all_refused() -> str:
    """The rows of every record, as tables."""
    shown: set[Refused] = set()
    parts = []
    for heading, rows in REFUSED.items():
        new = [row for row in rows if row not in shown]
        shown.update(new)
        lines = [row_text(row, is_typed=heading in TYPED) for row in new]
        if new:
            head = "| Refused | together with | because | instead |\n|---|---|---|---|"
            parts += [f"## {heading}", "\n".join([head, *lines])]
    return "\n\n".join(parts)


def row_text(row: Refused, *, is_typed: bool) -> str:
    """One line of the table."""
    spell = as_typed if is_typed else str
    instead = "leave one of them out"
    if row.beside == MISSING:
        instead = "add it"
    why = spelled((row.why,), spell)
    if row.when is not None:
        function = getattr(row.when, "func", row.when)  # of a partial one
        why = f"{_first_words(function)}: {why}"
    cells = [
        _cell(spell(Option(row.option)), row.value),
        _cell(spell(Option(row.other)), row.beside),
        why,
        spelled((row.instead,), spell) or instead,
    ]
    return f"| {' | '.join(cells)} |"


def _cell(name: str, pattern: Pattern) -> str:
    if pattern == GIVEN:
        return f"`{name}`"
    if pattern == MISSING:
        return f"no `{name}`"
    if isinstance(pattern, tuple):
        return f"`{name}`: {', '.join(f'`{value}`' for value in pattern)}"
    return f"`{name}`: {_first_words(pattern)}"


def _first_words(function: Any) -> str:
    """What a function of a row says in its docstring."""
    words: str = function.__doc__.partition("\n")[0].rstrip(".")
    return f"{words[0].lower()}{words[1:]}"


# ---------------------------------------------------------------- blocks of code


def copied_text(language: str, text: str) -> str:
    """What the copy button of a block gives: its commands or statements, without
    prompts and without output.

    A command goes on in the next line after a backslash, a statement in lines that
    begin with three dots.
    """
    if language not in ("console", "pycon"):
        return text
    kept, goes_on = [], False
    for line in text.splitlines():
        starts = line.startswith("$ " if language == "console" else ">>> ")
        if starts or (goes_on if language == "console" else line.startswith("...")):
            kept.append(
                line[2:]
                if starts and language == "console"
                else line
                if language == "console"
                else line[4:]
            )
            goes_on = line.endswith("\\")
        else:
            goes_on = False
    return "\n".join(kept)


def _copyable(block: re.Match[str]) -> str:
    """Say what is copied from a block, and mark its long lines, unless they are rows of
    a table.
    """
    text = html.unescape(_TAG.sub("", block["code"]))
    copied = html.escape(
        copied_text(block["language"], text).rstrip(), quote=True
    ).replace("\n", "&#10;")
    code = "\n".join(map(_breakable, block["code"].split("\n")))
    return (
        f'<div class="language-{block["language"]} highlight"'
        f' data-copy="{copied}">{block["open"]}{code}</code>'
    )


def _breakable(line: str) -> str:
    """A line that may be broken at the edge, if it is long and its columns need not
    line up.
    """
    text = _PROMPT.sub("", html.unescape(_TAG.sub("", line)))
    return (
        f'<span class="long">{line}</span>'
        if len(text) > _WIDE and "  " not in text
        else line
    )


# ---------------------------------------------------------------- help


def _all_help() -> str:
    commands = group.list_commands(click.Context(group))
    return "\n".join(_help(name) for name in ("", *commands))


def _help(command: str) -> str:
    shown = CliRunner().invoke(
        group, [*command.split(), "--help"], prog_name="fairmaxent", terminal_width=100
    )
    return (
        f"## fairmaxent {command}".rstrip()
        + f"\n\n```text\n{shown.output.rstrip()}\n```\n"
    )
