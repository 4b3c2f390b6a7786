"""The documentation: every block runs and prints what is shown, the site builds, and nothing in it is broken."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
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

ROOT = pages.DOCS.parent
TABLE = "census.csv"

# ---------------------------------------------------------------- pages


@pytest.mark.usefixtures("estimates_unasked")
@pytest.mark.parametrize("page", pages.PAGES)
def test_every_block_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    (tmp_path / TABLE).write_bytes((pages.DOCS / TABLE).read_bytes())
    monkeypatch.chdir(tmp_path)
    complaints = pages.run_page((pages.DOCS / page).read_text(encoding="utf-8"), page)
    assert not complaints, complaints


@pytest.mark.parametrize("page", pages.PAGES)
def test_every_block_is_of_a_kind_that_is_run(page):
    """What cannot be run here, such as an installation, is plain text of one line; a file has a name."""
    for block in pages.blocks_of((pages.DOCS / page).read_text(encoding="utf-8")):
        assert block.language in ("pycon", "console", "toml", "text"), f"{page}, line {block.line}"
        assert (block.language == "toml") == (block.title is not None), f"{page}, line {block.line}"
        assert block.language != "text" or block.text.count("\n") == 1, f"{page}, line {block.line}"


@pytest.mark.parametrize("page", [page for page in pages.PAGES if not page.startswith("decisions/")])
def test_numbers_in_sentences_come_out_of_a_block(page):
    text = (pages.DOCS / page).read_text(encoding="utf-8")
    shown = "\n".join(block.text for block in pages.blocks_of(text))
    prose = re.sub(r"(Definition|Theorem|Lemma|Remark|Python|CC BY)s? \d+\.\d+", "", pages.prose_of(text))
    for number in re.findall(r"\d+\.\d+", prose):
        assert number in shown, f"{page} says {number}, and no block of it shows that"


def test_the_table_of_the_examples_is_what_the_start_page_says():
    adult = fairmaxent.datasets.load("adult").frame
    lines = (pages.DOCS / TABLE).read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    assert len(names) == 8
    expected = adult.iloc[::48][names].to_csv(index=False, lineterminator="\n").splitlines()
    assert lines == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Got:\n    2"),
        ("```pycon\n>>> a = 1\n```\n\n```pycon\n>>> a\n2\n```\n", "Got:\n    1"),
        ("```pycon\n>>> 1 / 0\n```\n", "ZeroDivisionError"),
        ("```console\n$ fairmaxent --version\nfairmaxent 0\n```\n", fairmaxent.__version__),
        ("```console\n$ fairmaxent inspect missing.csv --outcome a --protected b\n```\n", "missing.csv"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(text, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complaint in pages.run_page(text, "page")


def test_a_command_may_go_over_several_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = f"fairmaxent {fairmaxent.__version__}"
    assert pages.run_page(f"```console\n$ fairmaxent \\\n    --version\n{shown}\n```\n", "page") == ""


# ---------------------------------------------------------------- site


@dataclass
class Parts(HTMLParser):
    """What a built page links to, what it loads, and the places in it."""

    links: list[str] = field(default_factory=list)
    assets: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids += [known[name] for name in ("id",) if known.get(name)]
        if tag == "a":
            self.links += [known["href"]] if known.get("href") else []
        else:
            self.assets += [known[name] for name in ("href", "src", "data") if known.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    pytest.importorskip("mkdocs", reason="the documentation's builder is not installed: make engines")
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def built(site):
    """The parts of every page of the site, by path."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        parts = Parts()
        parts.feed(path.read_text(encoding="utf-8"))
        found[path] = parts
    return found


def test_every_page_is_built(site, built):
    wanted = {site / Path(page).with_suffix(".html") for page in pages.PAGES}
    assert wanted <= set(built)


def test_nothing_is_loaded_from_the_network(site, built):
    for path, parts in built.items():
        for asset in parts.assets:
            assert not urlsplit(asset).netloc, f"{path.name} loads {asset}"
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path.name


def test_no_link_leads_nowhere(built):
    for path, parts in built.items():
        # Found on any page, the error page stands at the root of a server.
        for link in parts.links if path.name != "404.html" else ():
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.name}: {link}"
            if address.fragment and target in built:
                assert unquote(address.fragment) in built[target].ids, f"{path.name}: {link}"


def test_no_asset_is_missing(built):
    for path, parts in built.items():
        for asset in parts.assets if path.name != "404.html" else ():
            if not asset.startswith(("data:", "#")):
                assert (path.parent / unquote(urlsplit(asset).path)).exists(), f"{path.name}: {asset}"


def test_no_place_is_named_twice(built):
    for path, parts in built.items():
        headings = [name for name in parts.ids if not name.startswith("__")]
        assert len(headings) == len(set(headings)), path.name


def test_search_knows_the_pages_without_a_server(site):
    text = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("var __index = "))
    assert {f"{page.removesuffix('.md')}.html" for page in pages.PAGES} <= {
        entry["location"].partition("#")[0] for entry in index["docs"]
    }


# ---------------------------------------------------------------- reference


def _public() -> list[str]:
    """Full names of everything public, as they are imported."""
    names = []
    for name in fairmaxent.__all__:
        thing = getattr(fairmaxent, name)
        own = getattr(thing, "__all__", None) if inspect.ismodule(thing) else [None]
        names += [f"fairmaxent.{name}" if part is None else f"fairmaxent.{name}.{part}" for part in own or ()]
    return [*names, *(f"fairmaxent.baselines.{name}" for name in baselines.__all__)]


@pytest.mark.parametrize("name", _public())
def test_every_public_name_is_in_the_reference(name, site):
    """Each stands there under the name by which people import it; errors are imported from the package."""
    reference = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html"))
    headings = re.findall(r"<h\d id=\"([^\"]+)\"[^>]*>(.*?)</h\d>", reference, flags=re.S)
    places = {place for place, _ in headings}
    titles = {re.sub(r"<[^>]+>", "", title).split()[0] for _, title in headings}
    assert name in places | titles or name.removeprefix("fairmaxent.") in titles


def test_the_help_of_every_command_is_in_the_reference(site):
    shown = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for command in group.list_commands(click.Context(group)):
        assert f'id="fairmaxent-{command}"' in shown
    text = CliRunner().invoke(group, ["debias", "--help"], prog_name="fairmaxent", terminal_width=100).output
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, flags=re.M)
    assert len(options) > 20
    assert [option for option in options if option not in shown] == []


def test_no_role_of_another_documentation_tool_is_left(site):
    for path in site.rglob("*.html"):
        assert not re.search(r":(func|class|meth|attr|mod):", path.read_text(encoding="utf-8")), path.name
