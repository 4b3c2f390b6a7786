"""The pages of the documentation as lists of code blocks, and how each kind of block is
run.
"""

import ast
import contextlib
import doctest
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from fairmaxent.cli.group import group

DOCS = Path(__file__).parents[1] / "docs"
# what a page finds in its folder
TABLES = ("census.csv", "stories/applications.xlsx", "stories/survey.csv")
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
# the others stand in the source alone
SITE = [page for page in PAGES if not re.match(r"decisions/|publishing", page)]
# each runs alone
RECIPES = re.findall(
    r"^## (.+)$", (DOCS / "recipes.md").read_text(encoding="utf-8"), flags=re.M
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_CHECKER = doctest.OutputChecker()
_FENCE = re.compile(
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.M | re.S,
)
# What a boosting learns from relabelled people turns on the last digits, and kinds of
# machines round them differently: whether relabelling helps, what is said about a
# model, and the numbers of what was relabelled.
_TRIAL = re.compile(
    r"\. A quick trial gave .*|^Note: fair data are not enough: if a model is trained"
    r" on .*\n",
    re.M,
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NEAR = 0.25, 0.1  # by which numbers of what was relabelled may differ, and relatively
_FILLED = re.compile(r"<!-- measured: [\w ]+ -->.*?<!-- measured: end -->", re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str | None
    text: str
    line: int

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The commands of a console block, each with the output shown below it."""
        parts = re.split(r"^\$ ", self.text.replace("\\\n", " "), flags=re.M)
        assert not parts[0].strip(), (
            f"line {self.line}: a console block begins with a command"
        )
        return [tuple(part.partition("\n")[::2]) for part in parts[1:]]


def text_of(name: str) -> str:
    """A page, or the part of it that is named after a #."""
    page, _, heading = name.partition("#")
    text = (DOCS / page).read_text(encoding="utf-8")
    return (
        text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        if heading
        else text
    )


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            found["language"],
            found["title"],
            found["text"],
            text.count("\n", 0, found.start()) + 2,
        )
        for found in _FENCE.finditer(text)
    ]


def prose_of(text: str) -> str:
    """What people wrote: a page without its blocks, code inside sentences, and what
    benchmarks fill in.
    """
    return re.sub(r"`[^`\n]+`", "", _FILLED.sub("", _FENCE.sub("", text)))


def run_python(block: Block, names: dict[str, object], page: str) -> str:
    """Run the examples of a block as doctests; return what went wrong."""
    test = doctest.DocTestParser().get_doctest(
        block.text, names, page, page, block.line - 1
    )
    assert test.examples, (
        f"{page}, line {block.line}: a pycon block holds examples with >>>"
    )
    # get_doctest copies them, and the next block of the page goes on from here
    test.globs = names
    complaints: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(
        test, out=complaints.append, clear_globs=False
    )
    return "".join(complaints)


def run_console(block: Block, page: str) -> str:
    """Run the commands of a block and compare what they print; return what went
    wrong.
    """
    return "".join(_run_command(line, shown, page) for line, shown in block.commands)


def words_of(line: str) -> list[str]:
    """The arguments of a command, which is one of ours."""
    program, *arguments = shlex.split(line)
    assert program == "fairmaxent", (
        f"only our own commands can be run here, not {program}"
    )
    return arguments


def _run_command(line: str, shown: str, page: str) -> str:
    code, output = run_line(line)
    return complaint(line, shown, code, output, page)


def run_line(line: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    result = CliRunner().invoke(group, words_of(line), prog_name="fairmaxent")
    return result.exit_code, result.output


def complaint(line: str, shown: str, code: int, output: str, page: str) -> str:
    """What is wrong with a command that is shown with some output, if anything is."""
    # their answer is a code
    is_answer = shown.startswith("check: ") or "not what the saved fit gives" in shown
    if code and not (words_of(line)[0] in ("check", "verify") and is_answer):
        return f"{page}: {line}\nended with {code}\n{output}"
    if _is_same(shown, output) or (_relabels(line) and _is_near(shown, output)):
        return ""
    return (
        f"{page}:"
        f" {line}\n{_CHECKER.output_difference(doctest.Example(line, shown), output, FLAGS)}"
    )


def _is_same(shown: str, printed: str) -> bool:
    """Say whether a command prints what is shown, but for the trial of a remedy."""
    plain = (_TRIAL.sub("", output).strip("\n") + "\n" for output in (shown, printed))
    return _CHECKER.check_output(*plain, FLAGS)


def _relabels(line: str) -> bool:
    return "--model" in line or line.startswith("fairmaxent compare ")


def _is_near(shown: str, printed: str) -> bool:
    """Say whether the same words are printed, and about the same numbers, unless some
    of them are not shown.
    """
    if not _is_same(_NUMBER.sub("0", shown), _NUMBER.sub("0", printed)):
        return False
    if doctest.ELLIPSIS_MARKER in shown:
        return True
    pairs = zip(_numbers(shown), _numbers(printed), strict=True)
    return all(
        abs(now - before) <= _NEAR[0] + _NEAR[1] * abs(before) for before, now in pairs
    )


def _numbers(output: str) -> list[float]:
    return [
        float(number.replace(",", ""))
        for number in _NUMBER.findall(_TRIAL.sub("", output))
    ]


def run_page(text: str, page: str) -> str:
    """Run every block of a page in order, in one namespace and in the current folder;
    return what went wrong.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    complaints = ""
    with contextlib.redirect_stderr(io.StringIO()):
        for block in blocks_of(text):
            if block.language == "pycon":
                complaints += run_python(block, names, page)
            elif block.language == "console":
                complaints += run_console(block, page)
            elif block.language == "toml":
                Path(block.title).write_text(block.text, encoding="utf-8")
    return complaints


# Distributions that are called differently from what is imported.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "imblearn": "imbalanced-learn"}
# What parts of our own need beyond the core.
PARTS = {
    r"\bFairMaxEnt\(|\bFairClassifier\(|\bfair_scorer\(": "scikit-learn",
    r"\.plot\(": "matplotlib",
    r"datasets\.load\((?!.*library=)": "pandas",
    r"\bmodel=": "scikit-learn",
}


def needs_of(text: str) -> Iterator[str]:
    """The distributions that the blocks of a page need."""
    for block in blocks_of(text):
        if block.language in ("pycon", "python") and ">>>" in block.text:
            for example in doctest.DocTestParser().get_examples(block.text):
                yield from needs_of_code(example.source)
        elif block.language == "console":
            yield from ("click", "polars")


def needs_of_code(source: str) -> Iterator[str]:
    """Distributions behind the imports of some code, and behind what it uses of
    ours.
    """
    for node in ast.walk(ast.parse(source)):
        modules = (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        )
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            top = module.partition(".")[0]
            if top != "fairmaxent" and top not in sys.stdlib_module_names:
                yield DISTRIBUTIONS.get(top, top)
    yield from (
        distribution
        for pattern, distribution in PARTS.items()
        if re.search(pattern, source)
    )
