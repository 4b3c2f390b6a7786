"""The gallery and the stories: their code is run while the site is built, and what it
draws is put below it.

A report is shown as it is, and as a picture where Chromium is installed.
"""

import contextlib
import doctest
import io
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from mkdocs.structure.files import File, Files

from fairmaxent.cli.group import group

sys.path.insert(0, str(Path(__file__).parent))
from docs_notebooks import commands_of

TABLES = ("census.csv", "stories/*.xlsx", "stories/*.csv")
_BLOCK = re.compile(
    r"^```(?P<language>pycon|console)\n(?P<code>.*?)^```\n|^<!--"
    r" (?P<kind>notebook|report): (?P<name>[\w.]+) -->\n",
    re.M | re.S,
)
_HEADING = re.compile(r"^##+ (.+)$", re.M)
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
_SIZE = 900, 1000  # as wide as a page of the site shows it, so that it can be read

log = logging.getLogger("mkdocs.hooks.gallery")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Run the page's code in a folder of its own and put what it makes below it."""
    source = page.file.src_uri
    if source != "gallery.md" and not source.startswith("stories/"):
        return markdown
    os.environ.setdefault("MPLBACKEND", "agg")
    with tempfile.TemporaryDirectory() as name:
        folder, docs = Path(name), Path(config.docs_dir)
        for table in (path for pattern in TABLES for path in docs.glob(pattern)):
            shutil.copy(table, folder)
        gallery = _Gallery(folder, Path(source).stem, "../" * source.count("/"))
        with contextlib.chdir(folder):
            markdown = _BLOCK.sub(
                lambda block: gallery.shown(block, markdown), markdown
            )
    for path, content in gallery.made.items():
        files.append(File.generated(config, path, content=content))
    return markdown


@dataclass
class _Gallery:
    """What has been made so far, by path in the site."""

    folder: Path
    page: str
    root: str  # the way from the page to the root of the site
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    made: dict[str, str | bytes] = field(default_factory=dict)

    def shown(self, block: re.Match[str], markdown: str) -> str:
        """A block, and what it makes."""
        if block["kind"] == "notebook":
            value = self.names[block["name"]]._repr_html_()
            return f'<div class="value">{value}</div>\n'.replace("\n<", "<")
        if block["kind"] == "report":
            return self._report(block["name"])
        if block["language"] == "console":
            for command in commands_of(block["code"]):
                CliRunner().invoke(
                    group,
                    shlex.split(command.replace("\\\n", " "))[1:],
                    prog_name="fairmaxent",
                )
            return block[0]
        with contextlib.redirect_stdout(io.StringIO()):
            for example in doctest.DocTestParser().get_examples(block["code"]):
                exec(compile(example.source, self.page, "single"), self.names)
        about = _HEADING.findall(markdown[: block.start()])[-1]
        return block[0] + "".join(
            f"\n![{about}]({self.root}{path})\n" for path in self._figures()
        )

    def _figures(self) -> Iterator[str]:
        """Save every open figure."""
        from matplotlib import pyplot

        for number in pyplot.get_fignums():
            path = f"pictures/{self.page}-{len(self.made) + 1}.svg"
            self.made[path] = svg_of(pyplot.figure(number))
            yield path
        pyplot.close("all")

    def _report(self, name: str) -> str:
        """A link to the report, and its picture."""
        path = f"pictures/{self.page}-{name}"
        self.made[path] = (self.folder / name).read_bytes()
        link = f"[Open this report]({self.root}{path})"
        picture = photograph(self.folder, name)
        if picture is None:
            return f"{link}.\n"
        self.made[f"{path}.webp"] = picture
        return f"{link}. Its beginning:\n\n![The report]({self.root}{path}.webp)\n"


def svg_of(figure: Any) -> str:
    """A figure as SVG that is the same in every build, to stand on a page with
    others.
    """
    import matplotlib as mpl

    drawn = io.StringIO()
    # Letters as shapes, because readers may not have the font.
    with mpl.rc_context({"svg.hashsalt": "fairmaxent", "svg.fonttype": "path"}):
        figure.savefig(
            drawn, format="svg", metadata={"Date": None}, bbox_inches="tight"
        )
    return drawn.getvalue()


def photograph(folder: Path, name: str) -> bytes | None:
    """A picture of a page in Chromium; None where there is none, or where it fails."""
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        log.info("no Chromium here: the gallery has no picture of the report")
        return None
    picture = folder / "report.webp"
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
    size = f"--window-size={_SIZE[0]},{_SIZE[1]}"
    command = [
        browser,
        *options,
        size,
        f"--user-data-dir={folder / 'profile'}",
        f"--screenshot={picture}",
        (folder / name).as_uri(),
    ]
    try:
        subprocess.run(command, capture_output=True, timeout=60, check=True)
        return picture.read_bytes()
    except (OSError, subprocess.SubprocessError) as problem:
        log.info("Chromium took no picture of the report: %s", problem)
        return None
