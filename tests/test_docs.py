"""The documentation: every block runs and prints what is shown, the site builds, and
nothing in it is broken.
"""

import contextlib
import importlib.util
import inspect
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
from click.testing import CliRunner

import fairmaxent
import pages
from fairmaxent import baselines
from fairmaxent.cli.group import group
from fairmaxent.files.formats import read_table

ROOT = pages.DOCS.parent
TABLE, WORKBOOK, SURVEY = (pages.DOCS / table for table in pages.TABLES)
STORIES = [page for page in pages.PAGES if page.startswith("stories/")]
# Pages that `make test` runs, too.
FIRST = {"index.md", "first.md", "questions/check.md", "reference/limits.md"}
MORE = pytest.mark.more
# at the end of the title of code that needs what is not installed
NOT_RUN = "(not run here)"
RUN = [page for page in pages.PAGES if page != "recipes.md"] + [
    f"recipes.md#{name}" for name in pages.RECIPES
]


@pytest.mark.parametrize(
    "page",
    [page if page in FIRST else pytest.param(page, marks=MORE) for page in RUN],
)
def test_every_block_runs_and_prints_what_is_shown(
    page, tmp_path, monkeypatch, record_property
):
    """No page is left out where others run: what is shown is true at every landing."""
    text = pages.text_of(page)
    for need in set(pages.needs_of(text)):
        pytest.importorskip(MODULES.get(need, need), reason=f"the page needs {need}")
    for table in (TABLE, WORKBOOK, SURVEY):
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("GX_ANALYTICS_ENABLED", "false")
    with (
        others_warn()
        if page.startswith(("coming-from/", "recipes"))
        else contextlib.nullcontext()
    ):
        began = time.process_time()
        complaints = pages.run_page(text, page)
        seconds = time.process_time() - began
    record_property("page", (page, len(pages.blocks_of(text)), seconds))
    if plots := sys.modules.get("matplotlib.pyplot"):
        plots.close("all")  # what the page drew
    assert not complaints, complaints


MODULES = {name: module for module, name in pages.DISTRIBUTIONS.items()}
# to tell Hugging Face's from our folder of tests
MODULES["datasets"] = "datasets.arrow_dataset"


@contextlib.contextmanager
def others_warn():
    """fairlearn and AIF360 use what pandas deprecates, and AIF360 logs what it can do
    without.
    """
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("page", pages.PAGES)
def test_every_block_is_of_a_kind_that_is_run(page):
    """What cannot be run here, such as an installation, is plain text of one line; a
    file has a name.
    """
    text = (pages.DOCS / page).read_text(encoding="utf-8")
    assert not re.search(r"^(<{7}|>{7}) ", text, flags=re.M), f"{page}: half merged"
    for block in pages.blocks_of(text):
        assert block.language in (
            "pycon",
            "console",
            "toml",
            "text",
            "python",
        ), f"{page}, line {block.line}"
        assert (block.language in ("toml", "python")) == (block.title is not None), (
            f"{page}, line {block.line}"
        )
        assert block.language != "text" or block.text.count("\n") == 1, (
            f"{page}, line {block.line}"
        )
        assert block.language != "python" or block.title.endswith(NOT_RUN), (
            f"{page}, line {block.line}"
        )


@pytest.mark.parametrize("page", pages.SITE)
def test_numbers_in_sentences_come_out_of_a_block(page):
    text = (pages.DOCS / page).read_text(encoding="utf-8")
    shown = "\n".join(block.text for block in pages.blocks_of(text))
    # versions, and numbers of laws
    others = "Python|CC BY|CFR|fairlearn|AIF360|imbalanced-learn|SDV|svy|weightipy"
    prose = re.sub(
        rf"(Definition|Theorem|Lemma|Remark|{others})s?\s+\d+\.\d+",
        "",
        pages.prose_of(text),
    )
    for number in re.findall(r"\d+\.\d+", prose):
        assert number in shown, f"{page} says {number}, and no block of it shows that"


def test_the_table_of_the_examples_is_what_the_start_page_says():
    people = fairmaxent.datasets.load("acs").frame
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    assert len(names) == 8
    expected = (
        people.iloc[::8][names].to_csv(index=False, lineterminator="\n").splitlines()
    )
    assert lines == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Got:\n    2"),
        ("```pycon\n>>> a = 1\n```\n\n```pycon\n>>> a\n2\n```\n", "Got:\n    1"),
        ("```pycon\n>>> 1 / 0\n```\n", "ZeroDivisionError"),
        (
            "```console\n$ fairmaxent --version\nfairmaxent 0\n```\n",
            fairmaxent.__version__,
        ),
        (
            (
                "```console\n$ fairmaxent inspect missing.csv --outcome a --protected"
                " b\n```\n"
            ),
            "missing.csv",
        ),
    ],
)
def test_a_page_that_is_wrong_is_noticed(text, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complaint in pages.run_page(text, "page")


def script(name):
    """A file of scripts/ as a module."""
    pytest.importorskip("mkdocs", reason="MkDocs is not installed")
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Parts(HTMLParser):
    """What a built page links to, what it loads, and the places in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.assets, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = {name: value for name, value in attrs if value}
        self.ids += [known["id"]] if "id" in known else []
        found, names = (
            (self.links, ("href",))
            if tag == "a"
            else (self.assets, ("href", "src", "data"))
        )
        found += [known[name] for name in names if name in known]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    pytest.importorskip(
        "mkdocs", reason="the documentation's builder is not installed: make engines"
    )
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(folder),
    ]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    built = subprocess.run(
        command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def built(site):
    """The parts of every page of the site, by path."""
    return {
        path: Parts(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }


def test_every_page_is_built_and_what_it_loads_is_there(site, built):
    assert {site / Path(page).with_suffix(".html") for page in pages.SITE} <= set(built)
    for path, parts in built.items():
        for asset in parts.assets:
            assert not urlsplit(asset).netloc, (
                f"{path.name} loads {asset} from the network"
            )
            if path.name != "404.html" and not asset.startswith(("data:", "#")):
                assert (path.parent / unquote(urlsplit(asset).path)).exists(), (
                    f"{path.name}: {asset}"
                )
    for path in site.rglob("*.css"):
        assert not re.search(
            r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text(encoding="utf-8")
        ), path.name


def test_no_link_leads_nowhere(built):
    for path, parts in built.items():
        # Found on any page, the error page stands at the root of a server.
        for link in parts.links if path.name != "404.html" else ():
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (
                (path.parent / unquote(address.path)).resolve()
                if address.path
                else path.resolve()
            )
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.name}: {link}"
            if address.fragment and target in built:
                assert unquote(address.fragment) in built[target].ids, (
                    f"{path.name}: {link}"
                )


@pytest.mark.parametrize(
    ("language", "text", "copied"),
    [
        ("console", "$ a \\\n    -b\nout\n$ c\nmore\n", "a \\\n    -b\nc"),
        (
            "pycon",
            ">>> for a in b:\n...     a\n1\n>>> c\n...\n2\n",
            "for a in b:\n    a\nc\n",
        ),
        ("text", "$ left\n", "$ left\n"),
    ],
)
def test_what_is_copied_from_a_block(language, text, copied):
    assert script("docs_hooks").copied_text(language, text) == copied


@pytest.mark.parametrize("page", ["gallery.md", *STORIES])
def test_a_page_has_the_pictures_that_its_code_draws(page, site, built):
    path, text = (
        site / Path(page).with_suffix(".html"),
        (pages.DOCS / page).read_text(encoding="utf-8"),
    )
    made = [
        (path.parent / asset).resolve()
        for asset in built[path].assets
        if "pictures/" in asset
    ]
    drawn = [picture for picture in made if picture.suffix == ".svg"]
    assert (
        len(drawn)
        == sum("axes = " in block.text for block in pages.blocks_of(text))
        > 0
    )
    for picture in drawn:
        assert picture.read_text(encoding="utf-8").count("<path") > 20
    reports = [link for link in built[path].links if link.endswith("-report.html")]
    assert len(reports) == text.count("<!-- report: ")
    photographed = [picture for picture in made if picture.suffix == ".webp"]
    assert len(photographed) == len(reports) or not any(
        map(shutil.which, script("docs_gallery").BROWSERS)
    )
    assert all(picture.read_bytes()[8:12] == b"WEBP" for picture in photographed)


@pytest.mark.parametrize("page", STORIES)
def test_the_notebook_of_a_story_is_its_page(page):
    """It is made by scripts/docs_notebooks.py, so what the page runs is what it
    runs.
    """
    text, stored = (
        (pages.DOCS / page).with_suffix(suffix).read_text(encoding="utf-8")
        for suffix in (".md", ".ipynb")
    )
    assert stored == script("docs_notebooks").notebook_of(text)
    cells = json.loads(stored)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    commands = [
        line
        for block in pages.blocks_of(text)
        if block.language == "console"
        for line, _ in block.commands
    ]
    assert [
        cell[1:].replace("\\\n", " ") for cell in code if cell.startswith("!")
    ] == commands
    for cell in code:
        compile(re.sub(r"^[!%](.*\\\n)*.*", "pass", cell), page, "exec")


@pytest.mark.more
@pytest.mark.parametrize(
    ("path", "name"), [(WORKBOOK, "applications"), (SURVEY, "survey")]
)
def test_the_table_of_a_story_is_what_its_script_simulates(path, name):
    made = getattr(script("story_tables"), name)()
    assert [tuple(row.values()) for row in made] == read_table(path).frame.rows()


def _public() -> list[str]:
    """Full names of everything public, as they are imported."""
    names = []
    for name in fairmaxent.__all__:
        thing = getattr(fairmaxent, name)
        own = getattr(thing, "__all__", None) if inspect.ismodule(thing) else [None]
        names += [
            f"fairmaxent.{name}" if part is None else f"fairmaxent.{name}.{part}"
            for part in own or ()
        ]
    return [*names, *(f"fairmaxent.baselines.{name}" for name in baselines.__all__)]


@pytest.mark.parametrize("page", pages.SITE)
def test_what_a_page_imports_is_in_the_reference(page):
    text = (pages.DOCS / page).read_text(encoding="utf-8")
    reference = "".join(
        path.read_text(encoding="utf-8")
        for path in (pages.DOCS / "reference").glob("*.md")
    )
    modules = {f"fairmaxent.{name}" for name in fairmaxent.__all__}
    for module, names in re.findall(r"from (fairmaxent[\w.]*) import ([\w, ]+)", text):
        for name in names.split(", "):
            full = f"{module}.{name}"
            assert full in modules or full in reference, f"{page} imports {full}"


def test_every_metric_has_an_entry_in_the_reference():
    reference = (pages.DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    for name in fairmaxent.metrics.__all__:
        assert f"heading: fairmaxent.metrics.{name}" in reference


def test_every_public_name_is_in_the_reference(site):
    """Each stands there under the name by which people import it; errors are imported
    from the package.
    """
    reference = "".join(
        path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")
    )
    headings = re.findall(
        r"<h\d id=\"([^\"]+)\"[^>]*>(.*?)</h\d>", reference, flags=re.S
    )
    shown = {place for place, _ in headings} | {
        re.sub(r"<[^>]+>", "", title).split()[0] for _, title in headings
    }
    assert [
        name
        for name in _public()
        if not {name, name.removeprefix("fairmaxent.")} & shown
    ] == []


def test_the_help_of_every_command_is_in_the_reference(site):
    shown = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for command in group.list_commands(click.Context(group)):
        assert f'id="fairmaxent-{command}"' in shown
    text = (
        CliRunner()
        .invoke(group, ["debias", "--help"], prog_name="fairmaxent", terminal_width=100)
        .output
    )
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, flags=re.M)
    assert len(options) > 20
    assert [option for option in options if option not in shown] == []
