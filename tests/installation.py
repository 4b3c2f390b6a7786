"""What the code of a page needs, and what the installation lines above it bring."""

from __future__ import annotations

import ast
import doctest
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pages

ROOT = pages.DOCS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Distributions that are called differently from what is imported.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "imblearn": "imbalanced-learn"}
# What parts of our own need beyond the core.
PARTS = {
    r"\bFairMaxEnt\(|\bfair_scorer\(": "scikit-learn",
    r"\.report\(|\bwrite_report\(|--report\b": "jinja2",
    r"\.plot\(": "matplotlib",
    r"datasets\.load\((?!.*library=)": "pandas",
    r"\bmodel=\"gradient|relabel=|student=": "scikit-learn",
}

_INSTALLATION = re.compile(r"pip install ((?:'[^']+'|[\w.-]+)(?: (?:'[^']+'|[\w-]+))*)")


@dataclass(frozen=True)
class Need:
    """A distribution, and the line of the page that needs it."""

    distribution: str
    line: int


def installed_by(extras: list[str]) -> set[str]:
    """Names of the distributions that some of our extras bring, with those of the core."""
    brought = {_name(requirement) for requirement in PROJECT["dependencies"]}
    for extra in extras:
        for requirement in PROJECT["optional-dependencies"][extra]:
            extended = re.fullmatch(r"fairmaxent\[([\w,-]+)\]", requirement)
            brought |= installed_by(extended[1].split(",")) if extended else {_name(requirement)}
    return brought


def _name(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0].lower()


def installations(text: str) -> Iterator[tuple[int, set[str]]]:
    """The line of each installation on a page, and all that it brings."""
    for line in _INSTALLATION.finditer(text):
        brought: set[str] = set()
        for part in re.findall(r"'[^']+'|[\w.-]+", line[1]):
            ours = re.fullmatch(r"'?\.(?:\[([\w,-]+)\])?'?", part)
            brought |= installed_by(ours[1].split(",") if ours[1] else []) if ours else {_name(part.strip("'"))}
        yield text.count("\n", 0, line.start()) + 1, brought


def needs_of(text: str) -> Iterator[Need]:
    """What the blocks of a page need, in order."""
    for block in pages.blocks_of(text):
        if block.language in ("pycon", "python") and ">>>" in block.text:
            for example in doctest.DocTestParser().get_examples(block.text):
                yield from (Need(name, block.line + example.lineno) for name in needs_of_code(example.source))
        elif block.language == "console":
            yield from (Need(name, block.line) for name in ("click", "polars"))
            typed = "\n".join(command for command, _ in block.commands)  # not what it says to type next
            yield from (Need("jinja2", block.line) for _ in re.findall(r"--report\b|fairmaxent report", typed))


def needs_of_code(source: str) -> Iterator[str]:
    """Distributions behind the imports of some code, and behind what it uses of ours."""
    for node in ast.walk(ast.parse(source)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            top = module.partition(".")[0]
            if module == "fairmaxent.aif360":
                yield "aif360"
            if top != "fairmaxent" and top not in sys.stdlib_module_names:
                yield DISTRIBUTIONS.get(top, top)
    yield from (distribution for pattern, distribution in PARTS.items() if re.search(pattern, source))


def missing(text: str) -> list[str]:
    """What is needed on a page, and not brought by an installation above it."""
    lines = list(installations(text))
    complaints = []
    for need in needs_of(text):
        brought = set().union(*(names for line, names in lines if line < need.line))
        if need.distribution not in brought:
            complaints.append(f"line {need.line} needs {need.distribution}")
    return list(dict.fromkeys(complaints))


def notebook_text(path: Path) -> str:
    """A notebook as a page: its code as examples."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(_cell_text(cell["cell_type"], "".join(cell["source"])) for cell in cells)


def _cell_text(kind: str, source: str) -> str:
    if kind == "markdown":
        return source
    lines = [f"{'>>>' if number == 0 else '...'} {line}" for number, line in enumerate(source.splitlines())]
    return "\n".join(["```pycon", *lines, "```"])
