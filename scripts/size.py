"""How much code there is, how densely it is packed, and which rule a place breaks.

Code is counted in syntax nodes, which no formatting changes. What there is in all has
no bound, neither source nor tests; a file, a function and a line have. `make lint` runs
this, and fails with status 1 if a rule is broken. With --options it prints for each
option the files that act on it, with --since REV what was added and removed since then.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairmaxent"
PAGE = PACKAGE / "app" / "static"

# The whole source, per 1,000 lines.
MOST_PACKED = 1.0  # a, b = x, y
MOST_CONDITIONAL = 8.0  # x if c else y
# A file.
MOST_NODES_OF_A_FILE = 4_500
MOST_LINES_OF_A_FILE = 600
LEAST_LINES_OF_A_FILE = 60  # if only one other imports it
# A function: lines of its body, without signature and docstring.
MOST_LINES_OF_A_FUNCTION = 50
USUAL_LINES_OF_A_FUNCTION = 30
LEAST_USUAL_FUNCTIONS = 0.9
MOST_PARAMETERS = 9
# A line of the page, where no other tool counts.
LONGEST_LINE = 100

# What users call, as module and function: a signature is documentation, so each
# keyword stands in it.
FRONT_DOORS = {
    "baselines.compare",
    "evaluation.evaluate",
    "paper.fit",
}

MOST_FILES_OF_AN_OPTION = 5
# Names under which a record of options is passed on.
HOLDERS = {"request", "asked", "plan", "training", "estimating"}
# How many files act on an option at most where these are not enough, and why.
REASONS = {
    "domain": (11, "each door that reads a table can say how its columns are read"),
    "estimate": (10, "made by the pipeline, shown by each telling; two refuse it"),
    "favourable": (16, "each question about outcomes has it, in records of its own"),
    "forbid": (
        9,
        "a rule for cells, for rows and for labels; each names it if it fails",
    ),
    "likely": (15, "rows are read, shared, weighed and stored by it; each door asks"),
    "model": (12, "what is trained and what it decides; most of them give advice"),
    "outcome": (11, "a column's role: each door that reads a table asks for it"),
    "privacy": (7, "whatever would read rows again must refuse a private fit"),
    "progress": (7, "handed from the doors down to what takes long"),
    "protected": (11, "a column's role: each door that reads a table asks for it"),
    "random_state": (9, "each output draws, and each page says how to repeat it"),
    "release": (9, "reading, outputs, judging and the texts that advise it"),
    "representation_rate": (9, "a wish, remedies name it; compared methods get it too"),
    "statistical_rate": (
        9,
        "a wish and a limit of checks; compared methods get it too",
    ),
    "target": (11, "shares of any column: wishes, strata, weights, and their errors"),
    "weight": (18, "a column's role, in tables, rakings and files that are written"),
    "within": (8, "strata of fits and of metrics, which have records of their own"),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


class Module:
    """One file of the source, parsed."""

    def __init__(self, path: Path) -> None:
        text = path.read_text()
        self.path = path
        self.place = path.relative_to(PACKAGE)
        self.lines = len(text.splitlines())
        self.tree = ast.parse(text)
        self.nodes = list(ast.walk(self.tree))

    @property
    def name(self) -> str:
        """As it is imported."""
        parts = self.path.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts).removesuffix(".__init__")

    @property
    def wing(self) -> str:
        """The folder that it is in, or its own name."""
        return self.place.parts[0].removesuffix(".py")

    @property
    def packed(self) -> int:
        """How many assignments are a, b = x, y."""
        return sum(
            isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            for node in self.nodes
            if isinstance(node, ast.Assign)
        )

    @property
    def conditionals(self) -> list[ast.IfExp]:
        """Each x if c else y."""
        return [node for node in self.nodes if isinstance(node, ast.IfExp)]

    @property
    def functions(self) -> list[Function]:
        """Each function and method."""
        return [node for node in self.nodes if isinstance(node, Function)]

    def imported(self) -> Iterator[str]:
        """The names that it imports, as modules and as members of modules."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # a module may be loaded by its name
                yield f"fairmaxent.{node.value.removeprefix('fairmaxent.')}"


def main() -> int:
    """Print the sizes, then every rule that is broken."""
    asked = arguments()
    if asked.since is not None:
        return print_ledger(asked.since)
    modules = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]
    if asked.options:
        print_options(modules)
        return 0
    print_wings(modules)
    broken = [
        *rules_of_the_whole(modules),
        *rules_of_files(modules),
        *rules_of_functions(modules),
        *rules_of_lines(modules),
        *paragraphs(modules),
        *rules_of_the_page(),
        *rules_of_options(modules),
    ]
    print(*broken, sep="\n")
    return min(len(broken), 1)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description="How much code there is.")
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--options", action="store_true", help="which files act on each option"
    )
    only.add_argument(
        "--since", metavar="REV", help="nodes added and removed since a commit"
    )
    return parser.parse_args()


def print_wings(modules: list[Module]) -> None:
    """Print the size of each wing, and of all."""
    wings = defaultdict(list)
    for module in modules:
        wings[wing_of(module.place)].append(module)
    for wing, members in sorted(wings.items()):
        print(size_line(wing, members))
    print(size_line("source", modules))


def wing_of(place: Path) -> str:
    """The folder of the package that a file is in, the package's own files together."""
    return "(top level)" if len(place.parts) == 1 else place.parts[0]


def size_line(name: str, modules: list[Module]) -> str:
    """The size of some modules, in one line."""
    lines, nodes = lines_and_nodes(modules)
    return f"{name:<14}{len(modules):>4} files{nodes:>9,} nodes{lines:>8,} lines"


def lines_and_nodes(modules: list[Module]) -> tuple[int, int]:
    """How many lines and nodes some modules have."""
    lines = sum(module.lines for module in modules)
    nodes = sum(len(module.nodes) for module in modules)
    return lines, nodes


def rules_of_the_whole(modules: list[Module]) -> Iterator[str]:
    """Rules that the source as a whole breaks."""
    lines, _ = lines_and_nodes(modules)
    thousands = lines / 1000
    packed = sum(module.packed for module in modules) / thousands
    conditional = sum(len(module.conditionals) for module in modules) / thousands
    sizes = [
        body_lines(function) for module in modules for function in module.functions
    ]
    usual = sum(size <= USUAL_LINES_OF_A_FUNCTION for size in sizes) / len(sizes)
    measured = [
        (packed, MOST_PACKED, "assignments a, b = x, y per 1,000 lines"),
        (conditional, MOST_CONDITIONAL, "conditional expressions per 1,000 lines"),
    ]
    for value, most, what in measured:
        if value > most:
            yield f"the source has {value:,.4g} {what}, more than {most:,}"
    if usual < LEAST_USUAL_FUNCTIONS:
        yield (
            f"{usual:.1%} of the functions have at most {USUAL_LINES_OF_A_FUNCTION}"
            f" lines, fewer than {LEAST_USUAL_FUNCTIONS:.0%}"
        )


def rules_of_files(modules: list[Module]) -> Iterator[str]:
    """Files that are too large."""
    for module in modules:
        nodes = len(module.nodes)
        if nodes > MOST_NODES_OF_A_FILE:
            yield f"{module.place} has {nodes} nodes, more than {MOST_NODES_OF_A_FILE}"
        if module.lines > MOST_LINES_OF_A_FILE:
            most = MOST_LINES_OF_A_FILE
            yield f"{module.place} has {module.lines} lines, more than {most}"


def rules_of_functions(modules: list[Module]) -> Iterator[str]:
    """Functions that are too long, or take too much."""
    for module in modules:
        for function in module.functions:
            place = f"{module.place}:{function.lineno}: {function.name}"
            size = body_lines(function)
            if size > MOST_LINES_OF_A_FUNCTION:
                yield f"{place} has {size} lines, more than {MOST_LINES_OF_A_FUNCTION}"
            count = parameter_count(function)
            is_door = f"{module.wing}.{function.name}" in FRONT_DOORS
            if count > MOST_PARAMETERS and not is_door:
                most = f"more than {MOST_PARAMETERS}; make a record of them"
                yield f"{place} takes {count} parameters, {most}"


def body_lines(function: Function) -> int:
    """Lines of a function's body, without its docstring."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if not body:
        return 0
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def parameter_count(function: Function) -> int:
    """How many parameters a function has, besides the object that it belongs to."""
    given = function.args
    names = [
        argument.arg for argument in given.posonlyargs + given.args + given.kwonlyargs
    ]
    return sum(name not in ("self", "cls") for name in names)


def rules_of_lines(modules: list[Module]) -> Iterator[str]:
    """Lines that must be read twice."""
    for module in modules:
        for outer in module.conditionals:
            inside = [*ast.walk(outer.body), *ast.walk(outer.orelse)]
            if any(isinstance(node, ast.IfExp) for node in inside):
                yield f"{module.place}:{outer.lineno}: a conditional inside another"
        for node in module.nodes:
            if isinstance(node, ast.Call) and has_walrus(node):
                yield f"{module.place}:{node.lineno}: a name is given in an argument"


def has_walrus(call: ast.Call) -> bool:
    """Whether an argument of a call is itself name := value."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(value, ast.NamedExpr) for value in values)


def paragraphs(modules: list[Module]) -> Iterator[str]:
    """Short modules that only one other imports: they are a part of it."""
    importers = defaultdict(set)
    for module in modules:
        for name in module.imported():
            importers[name].add(module.name)
    for module in modules:
        others = importers[module.name] - {module.name}
        is_short = module.lines < LEAST_LINES_OF_A_FILE
        is_named = module.path.name not in ("__init__.py", "__main__.py")
        if is_short and is_named and len(others) == 1:
            other = next(iter(others))
            yield f"{module.place} ({module.lines} lines) is imported by {other} only"


def rules_of_the_page() -> Iterator[str]:
    """Files of the page with lines that are too long."""
    for file in sorted(PAGE.iterdir()):
        lines = file.read_text().splitlines()
        long = [line for line in lines if len(line) > LONGEST_LINE]
        if long and file.name not in ("preact.js", "NOTICE.txt"):
            too_long = f"{len(long)} lines of more than {LONGEST_LINE} characters"
            yield f"{file.relative_to(PACKAGE)} has {too_long}"


# Options: who acts on them.


def option_names() -> list[str]:
    """Every option of a request."""
    from fairmaxent.fit.models import Estimate, Model
    from fairmaxent.fit.request import Request

    records = (Request, Model, Estimate)
    return sorted({field.name for record in records for field in fields(record)})


def files_of_options(modules: list[Module]) -> dict[str, list[str]]:
    """The files that act on each option, JavaScript included."""
    names = option_names()
    found = defaultdict(list)
    acting = {str(module.place): options_used(module) for module in modules}
    for script in sorted(PAGE.glob("*.js")):
        acting[str(script.relative_to(PACKAGE))] = options_typed(script.read_text())
    for place, used in acting.items():
        for name in names:
            if name in used:
                found[name].append(place)
    return found


def options_used(module: Module) -> set[str]:
    """What a module reads from a record of options, asks for, or tells people to use.

    These are request.name, asked["name"], replace(request, name=…), Option("name") and
    "--name" in a message; a word of the theory that is no option's value is not.
    """
    used: set[str] = set()
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and is_holder(node.value):
            used.add(node.attr)
        elif isinstance(node, ast.Subscript) and is_holder(node.value):
            used |= texts_of([node.slice])
        elif isinstance(node, ast.Call):
            used |= options_of_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used |= options_typed(node.value)
    return used


def is_holder(node: ast.expr) -> bool:
    """Whether an expression is a record of options, by its name."""
    if isinstance(node, ast.Attribute):
        return node.attr in HOLDERS
    return isinstance(node, ast.Name) and node.id in HOLDERS


def options_of_call(call: ast.Call) -> set[str]:
    """The options that a call names: Option(…), Request(…), replace(request, …)."""
    called = call.func
    name = getattr(called, "id", getattr(called, "attr", ""))
    if name == "Option":
        return texts_of(call.args[:1])
    changes = name == "replace" and any(is_holder(value) for value in call.args)
    if changes or name in ("Request", "Model", "Estimate"):
        return {keyword.arg for keyword in call.keywords if keyword.arg}
    return set()


def texts_of(nodes: list[ast.expr]) -> set[str]:
    """The texts among some expressions."""
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return {value for value in values if isinstance(value, str)}


def options_typed(text: str) -> set[str]:
    """Every option of a text that is spelled as on the command line."""
    found = re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text)
    return {name.replace("-", "_") for name in found}


def rules_of_options(modules: list[Module]) -> Iterator[str]:
    """Options on which too many files act, without a reason; reasons for no cause."""
    files = files_of_options(modules)
    for option, places in sorted(files.items()):
        most, _ = REASONS.get(option, (MOST_FILES_OF_AN_OPTION, ""))
        if len(places) > most:
            listed = ", ".join(places)
            yield f"{len(places)} files act on the option {option}: {listed}"
        if len(places) < most and option in REASONS:
            yield f"{len(places)} files act on the option {option}: lower its bound"


def print_options(modules: list[Module]) -> None:
    """Print how many files act on each option, and which."""
    files = files_of_options(modules)
    counts = Counter({name: len(files[name]) for name in option_names()})
    for name, count in counts.most_common():
        print(f"{name:<20}{count:>3}  {', '.join(files[name])}")
        if name in REASONS:
            print(f"{'':<25}because: {REASONS[name][1]}")


# The ledger of a change.


def print_ledger(revision: str) -> int:
    """Print what was added and removed since a commit, wing by wing, and in all.

    Each definition is counted by itself: one that is new, gone, or in another file
    counts whole, one that was changed by what it grew or shrank. So a move from file to
    file is seen, and a wing that grew as much as it shrank does not look untouched.
    """
    try:
        before = sizes_of(texts_at(revision))
    except LookupError as error:
        print(error, file=sys.stderr)
        return 2
    now = ((path, path.read_text()) for path in PACKAGE.rglob("*.py"))
    after = sizes_of((path.relative_to(PACKAGE), text) for path, text in now)
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for place, name in before | after:
        change = after[place, name] - before[place, name]
        added[wing_of(place)] += max(change, 0)
        removed[wing_of(place)] += max(-change, 0)
    for wing in sorted(+(added + removed)):
        print(ledger_line(wing, added[wing], removed[wing]))
    print(ledger_line("nodes", added.total(), removed.total()))
    return 0


def ledger_line(name: str, added: int, removed: int) -> str:
    """What one wing gained and lost, and what is left of that."""
    sum_of_both = added - removed
    return f"{name:<14}{added:>+9,}{-removed:>+9,}  = {sum_of_both:>+8,}"


def texts_at(revision: str) -> Iterator[tuple[Path, str]]:
    """The files of the package as they were at a commit: their places and texts."""
    tree = f"{revision}:{PACKAGE.relative_to(ROOT).as_posix()}"
    git = ["git", "-C", str(ROOT), "archive", "--format=tar", tree]
    try:
        packed = subprocess.run(git, capture_output=True, check=True)
    except FileNotFoundError:
        raise LookupError("there is no git here, which knows what was before") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        advice = "a shallow clone has the last commits only: git fetch --unshallow"
        message = f"there is no source of {revision!r} here ({said}); {advice}"
        raise LookupError(message) from None
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive:
            held = archive.extractfile(member)
            place = Path(member.name)
            if held is not None and place.suffix == ".py":
                yield place, held.read().decode()


def sizes_of(texts: Iterable[tuple[Path, str]]) -> Counter[tuple[Path, str]]:
    """The nodes of each definition of some files, by the file and its name there.

    A class is counted without its methods, a file without its definitions.
    """
    sizes: Counter[tuple[Path, str]] = Counter()
    for place, text in texts:
        for name, nodes in sizes_within(ast.parse(text)):
            sizes[place, name] += nodes
    return sizes


def sizes_within(outer: ast.Module | ast.ClassDef) -> Iterator[tuple[str, int]]:
    """The definitions inside a file or a class, with their nodes, and then the rest."""
    rest = node_count(outer)
    for inner in outer.body:
        if isinstance(inner, Definition):
            rest -= node_count(inner)
        if isinstance(inner, ast.ClassDef):
            for name, nodes in sizes_within(inner):
                yield f"{inner.name}.{name}", nodes
        elif isinstance(inner, Function):
            yield inner.name, node_count(inner)
    yield "", rest


def node_count(node: ast.AST) -> int:
    """How many syntax nodes there are in one, itself included."""
    return sum(1 for _ in ast.walk(node))


if __name__ == "__main__":
    sys.exit(main())
