"""Run pages of the documentation, and put what they print now in place of what they
show.

    python scripts/docs_outputs.py [--write] [PAGE …]

Without --write it says which pages differ, how many blocks each has, and how much CPU
they take. A page is named as below docs/; without names, all are run.
"""

import contextlib
import doctest
import io
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import pages  # noqa: E402 (it stands beside the tests)

_COMMAND = re.compile(r"^\$ (?:.*\\\n)*.*\n", re.M)


class Renewing(doctest.DocTestRunner):
    """Keeps what examples printed where it is not what is shown."""

    def __init__(self) -> None:
        super().__init__(optionflags=pages.FLAGS)
        self.printed: dict[int, str] = {}  # by line of the block
        self.broken: list[str] = []

    def report_failure(self, out, test, example, got):  # noqa: ANN001, ANN201, D102
        self.printed[example.lineno] = got

    def report_unexpected_exception(self, out, test, example, exc_info):  # noqa: ANN001, ANN201, D102
        self.broken.append(f"{example.source.strip()}: {exc_info[1]!r}")


def renewed_python(text: str, names: dict[str, object], broken: list[str]) -> str:
    """The text of a block of Python with what it prints now."""
    test = doctest.DocTestParser().get_doctest(text, names, "page", "page", 0)
    test.globs = names
    runner = Renewing()
    runner.run(test, out=lambda _: None, clear_globs=False)
    broken += runner.broken
    lines = text.splitlines(keepends=True)
    for example in reversed(test.examples):
        if example.lineno not in runner.printed:
            continue
        start = example.lineno + example.source.count("\n")
        end = start + example.want.count("\n")
        lines[start:end] = [_with_blank_lines(runner.printed[example.lineno])]
    return "".join(lines)


def _with_blank_lines(printed: str) -> str:
    return re.sub(r"^$(?=\n)", "<BLANKLINE>", printed, flags=re.M)


def renewed_console(block: pages.Block, broken: list[str]) -> str:
    """The text of a block of commands with what they print now."""
    typed = _COMMAND.findall(block.text)
    parts = []
    for words, (line, shown) in zip(typed, block.commands, strict=True):
        code, printed = pages.run_line(line)
        said = pages.complaint(line, shown, code, printed, "page")
        if not said:
            parts.append(words + shown)
            continue
        if code not in (0, 1, 3):
            broken.append(f"{line}: {printed.strip()}")
        parts.append(words + printed.strip("\n") + "\n")
    return "".join(parts)


def renewed(text: str, broken: list[str]) -> str:
    """A page, with what its blocks print now."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in pages.blocks_of(text):
        now = block.text
        if block.language == "pycon":
            now = renewed_python(block.text, names, broken)
        elif block.language == "console":
            now = renewed_console(block, broken)
        elif block.language == "toml":
            Path(str(block.title)).write_text(block.text, encoding="utf-8")
        if now != block.text:
            text = text.replace(block.text, now)
    return text


def run(name: str, *, write: bool) -> None:
    """Run one page, and say how it went."""
    path = pages.DOCS / name
    text = path.read_text(encoding="utf-8")
    broken: list[str] = []
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for table in pages.TABLES:
            shutil.copy(pages.DOCS / table, folder)
        with contextlib.redirect_stderr(io.StringIO()):
            now = renewed(text, broken)
    spent = time.process_time() - began
    blocks = len(pages.blocks_of(text))
    state = "differs" if now != text else "is as it is shown"
    print(f"{name}: {blocks} blocks, {spent:.1f} CPU seconds, {state}", flush=True)
    for problem in broken:
        print(f"    {problem}")
    if write and now != text:
        path.write_text(now, encoding="utf-8")


def main() -> None:
    """Run the pages that are named."""
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.simplefilter("ignore")
    named = [word for word in sys.argv[1:] if word != "--write"]
    for name in named or pages.PAGES:
        run(name, write="--write" in sys.argv)


if __name__ == "__main__":
    main()
