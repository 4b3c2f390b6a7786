"""Notebooks as pages: each is run from top to bottom while the site is built, and shown with what it printed and drew.

Notebooks are stored without outputs. The tests run them in the same way; a Jupyter kernel is not needed for either.
"""

import ast
import contextlib
import html
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One cell of a notebook."""

    kind: str  # "code" or "markdown"
    source: str


@dataclass(frozen=True)
class Shown:
    """What a code cell shows: printed text, the value of its last line, and figures as SVG."""

    printed: str
    value: str  # as HTML; empty: none
    figures: tuple[str, ...]


def read_cells(path: Path) -> list[Cell]:
    """The cells of a notebook, in order."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [Cell(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def run_cells(cells: list[Cell], folder: Path) -> Iterator[tuple[Cell, Shown | None]]:
    """Run the code cells in one namespace and in a folder, as Jupyter does."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for cell in cells:
            yield cell, _run(cell.source, names) if cell.kind == "code" else None


def _run(source: str, names: dict[str, Any]) -> Shown:
    """Run a cell; the value of its last line is shown, unless a semicolon ends it."""
    statements = ast.parse(source).body
    last = statements[-1] if statements else None
    shown = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(statements[: -1 if shown else None], []), "<cell>", "exec"), names)
        if shown and isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return Shown(printed.getvalue(), "" if value is None else _rich(value), tuple(_figures()))


def _rich(value: object) -> str:
    """The HTML that a value brings, or its text."""
    made = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return made or f"<pre><code>{html.escape(repr(value))}</code></pre>"


def _figures() -> Iterator[str]:
    """Every figure that is open, as SVG; they are closed then."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        yield svg_of(pyplot.figure(number))
    pyplot.close("all")


def svg_of(figure: Any) -> str:
    """A figure as SVG that is the same in every build, to stand on a page with others."""
    import matplotlib as mpl

    drawn = io.StringIO()
    # Letters as shapes, because readers may not have the font.
    with mpl.rc_context({"svg.hashsalt": "fairmaxent", "svg.fonttype": "path"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return drawn.getvalue()


# ---------------------------------------------------------------- pages


def on_files(files: Any, config: Any) -> Any:
    """Add a page and its pictures for each notebook; the notebook itself stays as a file to download."""
    from mkdocs.structure.files import File  # here, because the tests run notebooks without MkDocs, too

    os.environ.setdefault("MPLBACKEND", "agg")
    for path in sorted(Path(config.docs_dir).glob("notebooks/*.ipynb")):
        for name, content in _page(path):
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def _page(path: Path) -> Iterator[tuple[str, str]]:
    """The files that a notebook becomes: its pictures, and the page."""
    parts: list[str] = []
    pictures = 0
    with tempfile.TemporaryDirectory() as folder:
        for cell, shown in run_cells(read_cells(path), Path(folder)):
            if shown is None:
                parts.append(cell.source)
                continue
            parts.append(f"```python\n{cell.source}\n```")
            if shown.printed:
                parts.append(f"```text\n{shown.printed.rstrip()}\n```")
            if shown.value:
                parts.append(f'<div class="value">{_one_line(shown.value)}</div>')
            for figure in shown.figures:
                pictures += 1
                yield f"{path.stem}-{pictures}.svg", figure
                parts.append(f"![What the cell above draws]({path.stem}-{pictures}.svg)")
    title, _, rest = "\n\n".join(parts).partition("\n")
    download = f"[Download this notebook]({path.name}) to run it yourself. The outputs below come from this build."
    yield f"{path.stem}.md", f"{title}\n\n{download}\n{rest}\n"


def _one_line(markup: str) -> str:
    """HTML without line ends and styles, so that Markdown takes it as it is."""
    return re.sub(r"\s*\n\s*", "", re.sub(r"<style.*?</style>", "", markup, flags=re.S))
