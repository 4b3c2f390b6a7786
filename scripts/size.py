"""How large the house is, and whether it keeps its rules: `python scripts/size.py`, a
part of `make lint`.

A rule that is broken is printed with every place that breaks it, and ends the run with
status 1.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairmaxent"
MOST_LINES, MOST_FILES, MOST_TEST_LINES = 36_000, 190, 30_000
MOST_IMPORTS = 6.5  # per cent of all lines
LONGEST_FILE, SHORTEST_PARAGRAPH, MOST_PARAMETERS, MOST_FILES_OF_AN_OPTION = (
    400,
    60,
    9,
    5,
)
LONGEST_LINE = 120  # of the page, where no other tool counts
# What users call, as module and function: a signature is documentation, so each keyword
# stands in it.
FRONT_DOORS = {
    "baselines.compare",
    "evaluation.evaluate",
    "metrics.calibration",
    "metrics.equal_opportunity",
    "metrics.equalised_odds",
    "metrics.statistical_rate",
    "paper.fit",
}
# Options whose names are words of the theory as well; of a single word, every option is
# one.
THEORY = {"random_state", "representation_rate", "statistical_rate"}


class Module:
    """One file of the source, parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = ".".join(
            path.relative_to(PACKAGE.parent).with_suffix("").parts
        ).removesuffix(".__init__")
        self.lines = path.read_text().splitlines()
        self.tree = ast.parse(path.read_text())
        self.wing = path.relative_to(PACKAGE).parts[0].removesuffix(".py")

    @property
    def import_lines(self) -> int:
        """How many lines are imports."""
        nodes = (
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)

    def imported(self) -> Iterator[str]:
        """The names that this module imports, as modules and as members of modules."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            # modules that are loaded by name
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield (
                    node.value
                    if node.value.startswith("fairmaxent.")
                    else f"fairmaxent.{node.value}"
                )

    def functions(self) -> Iterator[tuple[str, int]]:
        """Each function and the number of its parameters."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                yield (
                    node.name,
                    sum(argument.arg not in ("self", "cls") for argument in given),
                )

    def words(self) -> tuple[set[str], set[str]]:
        """The words of the code, strings among them but no docstrings, and those that
        are typed as options (--name).
        """
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and isinstance(node.body[0], ast.Expr)
        }
        words: set[str] = set()
        typed: set[str] = set()
        for node in ast.walk(self.tree):
            words.update(
                getattr(node, name) or ""
                for name in ("id", "arg", "attr")
                if hasattr(node, name)
            )
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docstrings
            ):
                words |= words_of_text(node.value)
                typed |= typed_options(node.value)
        return words | typed, typed


def words_of_text(text: str) -> set[str]:
    """Every word of a text."""
    return set(re.findall(r"\w+", text))


def typed_options(text: str) -> set[str]:
    """Every option of a text that is spelled as on the command line."""
    return {name.replace("-", "_") for name in re.findall(r"--([a-z][a-z-]+)", text)}


def option_names() -> list[str]:
    """Every option of a request."""
    from fairmaxent.fit.option_values import Estimate
    from fairmaxent.fit.request import Request

    return sorted(
        {
            field.name
            for record in (Request, Estimate)
            for field in fields(record)
        }
    )


def files_of_options(modules: list[Module]) -> dict[str, list[str]]:
    """The files that name each option: one that is a word of the theory counts only
    where it is typed as an option.
    """
    sources = {module.path: module.words() for module in modules}
    for script in sorted(PACKAGE.rglob("*.js")):
        text = script.read_text()
        sources[script] = words_of_text(text), typed_options(text)
    named = defaultdict(list)
    for path, (words, typed) in sources.items():
        for option in option_names():
            if option in (typed if option in THEORY or "_" not in option else words):
                named[option].append(str(path.relative_to(PACKAGE)))
    return named


def paragraphs(modules: list[Module]) -> Iterator[str]:
    """Short modules that only one other imports: they are a part of it."""
    importers = defaultdict(set)
    for module in modules:
        for name in module.imported():
            importers[name].add(module.name)
    for module in modules:
        by = importers[module.name] - {module.name}
        if (
            len(module.lines) < SHORTEST_PARAGRAPH
            and module.path.name not in ("__init__.py", "__main__.py")
            and len(by) == 1
        ):
            yield (
                f"{module.path.relative_to(PACKAGE)} ({len(module.lines)} lines) is"
                f" imported by {next(iter(by))} only"
            )


def broken_rules(
    modules: list[Module], lines: int, test_lines: int, imports: float
) -> Iterator[str]:
    """Every rule that is broken, with the place."""
    if lines > MOST_LINES:
        yield f"the source has {lines:,} lines, more than {MOST_LINES:,}"
    if len(modules) > MOST_FILES:
        yield f"the source has {len(modules)} files, more than {MOST_FILES}"
    if imports > MOST_IMPORTS:
        yield (
            f"{imports:.1f} % of the source's lines are imports, more than"
            f" {MOST_IMPORTS}"
        )
    if test_lines > MOST_TEST_LINES:
        yield f"the tests have {test_lines:,} lines, more than {MOST_TEST_LINES:,}"
    for module in modules:
        place = module.path.relative_to(PACKAGE)
        if len(module.lines) > LONGEST_FILE:
            yield f"{place} has {len(module.lines)} lines, more than {LONGEST_FILE}"
        for name, count in module.functions():
            if count > MOST_PARAMETERS and f"{module.wing}.{name}" not in FRONT_DOORS:
                yield (
                    f"{place}: {name} takes {count} parameters, more than"
                    f" {MOST_PARAMETERS}; make a record of them"
                )
    yield from paragraphs(modules)
    for file in sorted((PACKAGE / "app" / "static").iterdir()):
        long = [
            line
            for line in file.read_text().splitlines()
            if len(line) > LONGEST_LINE and file.name != "preact.js"
        ]
        if long:
            yield (
                f"{file.relative_to(PACKAGE)} has {len(long)} lines of more than"
                f" {LONGEST_LINE} characters"
            )
    for option, files in sorted(files_of_options(modules).items()):
        if len(files) > MOST_FILES_OF_AN_OPTION:
            yield (
                f"the option {option} is named in {len(files)} files:"
                f" {', '.join(files)}"
            )


def main() -> int:
    """Print the sizes, then every rule that is broken."""
    modules = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]
    lines_of, files_of = Counter(), Counter()
    for module in modules:
        wing = module.wing if module.path.parent != PACKAGE else "(top level)"
        lines_of[wing] += len(module.lines)
        files_of[wing] += 1
    for wing in sorted(lines_of):
        print(f"{wing:<14}{files_of[wing]:>4} files{lines_of[wing]:>8,} lines")
    lines, imports = lines_of.total(), sum(module.import_lines for module in modules)
    test_lines = sum(
        len(path.read_text().splitlines())
        for path in sorted((ROOT / "tests").rglob("*.py"))
    )
    share = 100 * imports / lines
    print(
        f"{'source':<14}{len(modules):>4} files{lines:>8,} lines, {share:.1f} %"
        f" imports; tests {test_lines:,} lines"
    )
    broken = list(broken_rules(modules, lines, test_lines, share))
    print(*broken, sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
