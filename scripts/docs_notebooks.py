"""The stories as notebooks: `python scripts/docs_notebooks.py` makes one of each page
in docs/stories/, beside it.

The page is the source, and the tests run it; a test holds the notebook equal to it.
Notebooks have no outputs.
"""

import doctest
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

STORIES = Path(__file__).parents[1] / "docs" / "stories"
_BLOCK = re.compile(
    r"^```(?P<language>pycon|console)\n(?P<code>.*?)^```\n", re.M | re.S
)
_FOLDED = re.compile(
    r'^\?\?\? info "(?P<title>[^"]+)"\n(?P<text>(?:\n|    .*\n)+)', re.M
)
_REPORT = re.compile(r"^<!-- report: ([\w.]+) -->$", re.M)


def commands_of(block: str) -> list[str]:
    """The commands of a console block, each of which may go on in the next line after a
    backslash.
    """
    return [
        found[0].removeprefix("$ ").rstrip("\n")
        for found in re.finditer(r"^\$ (?:.*\\\n)*.*\n", block, re.M)
    ]


def notebook_of(page: str) -> str:
    """A page as a notebook, which Jupyter runs: a cell ends where something is
    shown.
    """
    cells = [
        {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": source.splitlines(keepends=True),
        }
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for number, (kind, source) in enumerate(_cells(page))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _cells(page: str) -> Iterator[tuple[str, str]]:
    """Text and code by turns."""
    page, end = _FOLDED.sub(_unfolded, _REPORT.sub(r"Open `\1`.", page)), 0
    quiet = False
    for block in _BLOCK.finditer(page):
        yield from _text(page[end : block.start()])
        if block["language"] == "console":
            if not quiet:  # Jupyter would show every step of a progress bar
                yield "code", "%env TERM=dumb"
            quiet = True
            yield from (
                ("code", f"!{command}") for command in commands_of(block["code"])
            )
        else:
            yield from (("code", source) for source in _statements(block["code"]))
        end = block.end()
    yield from _text(page[end:])


def _text(text: str) -> Iterator[tuple[str, str]]:
    if text.strip():
        yield "markdown", text.strip()


def _statements(code: str) -> Iterator[str]:
    """The statements of a block, cut after each one that shows something, because a
    cell shows its last value only.
    """
    gathered = ""
    for example in doctest.DocTestParser().get_examples(code):
        gathered += example.source
        if example.want:
            yield gathered.rstrip()
            gathered = ""
    if gathered:
        yield gathered.rstrip()


def _unfolded(box: re.Match[str]) -> str:
    return f"**{box['title']}**\n{textwrap.dedent(box['text'])}"


if __name__ == "__main__":
    for path in sorted(STORIES.glob("*.md")):
        path.with_suffix(".ipynb").write_text(
            notebook_of(path.read_text(encoding="utf-8")), encoding="utf-8"
        )
