"""Every page says what to install before it uses it."""

from __future__ import annotations

import pytest

import installation
import pages

NOTEBOOKS = sorted(pages.DOCS.glob("notebooks/*.ipynb"))
README = installation.ROOT / "README.md"


@pytest.mark.parametrize("page", [*pages.PAGES, "../README.md"])
def test_what_a_page_uses_is_installed_by_a_line_above(page):
    assert installation.missing((pages.DOCS / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_uses_is_installed_by_a_line_above(path):
    assert installation.missing(installation.notebook_text(path)) == []


@pytest.mark.parametrize(
    ("line", "code", "complaints"),
    [
        ("", ">>> import numpy", ["line 2 needs numpy"]),
        ("pip install .", ">>> import numpy, scipy", []),
        ("pip install .", ">>> import pandas", ["line 3 needs pandas"]),
        ("pip install '.[sklearn]'", ">>> import pandas\n>>> from sklearn.base import clone", []),
        ("pip install '.[sklearn]'", ">>> from imblearn import pipeline", ["line 3 needs imbalanced-learn"]),
        ("pip install '.[sklearn]' imbalanced-learn", ">>> from imblearn import pipeline", []),
        ("pip install '.[experiments]'", ">>> import matplotlib, jinja2, sklearn", []),
        ("pip install .", ">>> fit.report('a.html')", ["line 3 needs jinja2"]),
        ("pip install .", ">>> import math", []),
    ],
)
def test_what_is_missing_is_noticed(line, code, complaints):
    assert installation.missing(f"{line}\n```pycon\n{code}\n```\n".lstrip("\n")) == complaints


def test_a_command_needs_the_command_line():
    text = "```console\n$ fairmaxent debias a.csv --report b.html\n```\n"
    assert installation.missing(text) == ["line 2 needs click", "line 2 needs polars", "line 2 needs jinja2"]
    assert installation.missing(f"pip install '.[cli,report]'\n{text}") == []
