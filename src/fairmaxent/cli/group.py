"""The group of all commands, imported when called.

Every failure is one line on stderr and a code with a meaning.
"""

import contextlib
import importlib
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click

from fairmaxent import errors
from fairmaxent.cli.terminal import (
    check_addresses,
    echo,
    forget_stdout,
    was_interrupted,
)
from fairmaxent.errors import (
    EvidenceError,
    FairMaxEntError,
    InfeasibleError,
    SolverError,
    StorageError,
)
from fairmaxent.options import FORMER
from fairmaxent.plain_text import visible

# One line each, so that --help needs to import none of them.
COMMANDS = {
    "inspect": (
        "Start here: look at a table, and see what to type next. Changes nothing."
    ),
    "app": "The same in your browser: move a slider, and see at once who gains.",
    "check": "Fail a build if a table, or a model's decisions, are unfair.",
    "debias": "Turn a biased table into a fair one: new rows, weights, or rows to add.",
    "rake": "Weigh a table so that it has known margins, e.g. those of a census.",
    "evaluate": "Judge new rows before you share them: fidelity, utility, risk.",
    "sample": "Draw rows from a saved fit.",
    "verify": "Check a saved fit: is it whole, and is its certificate true?",
    "report": "Write a report on a saved fit, for readers who did not run the fit.",
    "document": (
        "Draft a document to file: Article 10, Local Law 144, a dataset card,"
        " Croissant."
    ),
    "ledger": "Show what private fits have spent on the same people, or set a budget.",
    "compare": (
        "Compare fairmaxent with other methods on your table: rates, accuracy, time."
    ),
    "demo": "Try it: make a census table fair, from start to finish.",
}
_MODULES = {  # where commands are, if not in a module of their own beside this one
    "app": "fairmaxent.app",  # a layer above, which is made of the same records
    "check": "fairmaxent.cli.gate",
    "document": "fairmaxent.cli.gate",
    "demo": "fairmaxent.cli.debias",
    "ledger": "fairmaxent.cli.debias",
    "sample": "fairmaxent.cli.models",
    "verify": "fairmaxent.cli.models",
    "report": "fairmaxent.cli.models",
    "evaluate": "fairmaxent.cli.judging",
    "compare": "fairmaxent.cli.judging",
}

UNEXPECTED = 1
USAGE = 2
UNUSABLE = 3
UNREACHABLE = 4
UNREADABLE = 5
INTERRUPTED = 130
CLOSED_PIPE = 141
# Commands whose other codes are answers: whatever goes wrong ends them with this one.
_ANSWERING = {"check": USAGE}
_INTERRUPTION = "interrupted; no incomplete file was left behind"

_MEANINGS = """\b
Exit codes:
  0    done
  1    unexpected: a bug in fairmaxent
  2    wrong usage
  3    the data or the options cannot be used
  4    what was asked for is impossible
  5    a file cannot be read or written
  130  interrupted
"""

# The first that fits counts.
_CODES: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((errors.RefusedError,), USAGE),
    ((InfeasibleError, EvidenceError, SolverError), UNREACHABLE),
    ((StorageError,), UNREADABLE),
    ((FairMaxEntError,), UNUSABLE),
    ((OSError, UnicodeError), UNREADABLE),
)


class VisibleContext(click.Context):
    """Help as it may be shown: defaults may come from a config file."""

    def get_help(self) -> str:
        """The help, with escapes for characters that would steer the terminal."""
        return visible(super().get_help())


class LazyGroup(click.Group):
    """Finds a command by its name, and reports every failure in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(
            _MODULES.get(cmd_name, f"fairmaxent.cli.{cmd_name}")
        )
        command = getattr(module, f"{cmd_name}_command")
        command.context_class = VisibleContext
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a closed pipe ends it quietly, as other unix tools do."""
        check_addresses()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_stdout()
            ctx.exit(CLOSED_PIPE)
        return result

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Run, and end the process with one line and a code that means something."""
        given = list(sys.argv[1:] if args is None else args)
        # what was typed: a report says how to repeat a run
        extra = {"obj": ["fairmaxent", *given], **extra}
        words = [word for word in given if not word.startswith("-")]
        name = [*words, ""][0]
        with _one_line(debug="--debug" in given, always=_ANSWERING.get(name)):
            code = super().main(given, *more, **{**extra, "standalone_mode": False})
        sys.exit(code if isinstance(code, int) else 0)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_MEANINGS,
)
@click.version_option(package_name="fairmaxent", message="%(prog)s %(version)s")
@click.option(
    "--debug", is_flag=True, help="Show the traceback of an unexpected error."
)
def group(debug: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Turn a biased table into a fair one by maximum entropy.

    Start with 'fairmaxent inspect data.csv': it says what to type next.
    """


# only their names: click suggests the nearest
group.commands = dict.fromkeys(COMMANDS, group)


@contextlib.contextmanager
def _one_line(*, debug: bool, always: int | None) -> Iterator[None]:
    """End the process with one line and a code if anything is raised inside.

    ``debug`` shows the traceback of a bug; ``always`` is the code of every failure.
    """
    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        _fail(_INTERRUPTION, INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        sys.exit(USAGE)
    except click.UsageError as problem:
        _fail(_usage_text(problem), USAGE)
    except BaseException as problem:
        from fairmaxent.data.frames import is_foreign

        if not isinstance(problem, Exception) and not is_foreign(problem):
            # the process ends; a panic of polars is no Exception either, but has to be
            # said
            raise
        if was_interrupted():
            _fail(_INTERRUPTION, INTERRUPTED)
        text, code = _explain(problem)
        if debug:
            echo("".join(traceback.format_exception(problem)), err=True)
        _fail(text, always or code)


def _usage_text(problem: click.UsageError) -> str:
    where = "fairmaxent"
    if problem.ctx is not None:
        where = problem.ctx.command_path
    text = problem.format_message().strip()
    if not text.endswith((".", "?", "!")):
        text += "."
    if isinstance(problem, click.NoSuchOption):
        name = problem.option_name.lstrip("-").replace("-", "_")
        if name in FORMER:
            text = f"No such option {problem.option_name}: {_typed(FORMER[name])}."
    if isinstance(problem, click.BadParameter) and "--model" in text:
        text += " To save the fit to a file, use --save."
    if isinstance(problem, click.MissingParameter):
        missing = problem.param
        if missing is not None and missing.name in ("outcome", "protected"):
            text += " 'fairmaxent inspect' proposes one for your table."
    return f"{text} See '{where} --help'."


def _typed(hint: str) -> str:
    """A hint with its options as they are typed."""
    flags = re.compile("'([a-z_]+)'")
    return flags.sub(lambda name: f"--{name[1].replace('_', '-')}", hint)


def _explain(problem: BaseException) -> tuple[str, int]:
    """What a failure means to the reader, and its exit code."""
    codes = [code for kinds, code in _CODES if isinstance(problem, kinds)]
    code = [*codes, UNEXPECTED][0]
    if errors.is_out_of_memory(problem):
        remedy = (
            "ask for fewer rows, drop columns, or raise the limit of this process if it"
            " has one (ulimit -v)"
        )
        return f"memory ran out ({errors.first_line(problem)}); {remedy}", UNUSABLE
    if code == UNEXPECTED:
        what = type(problem).__name__
        if str(problem):
            what += f": {problem}"
        whose = "fairmaxent"
        if type(problem).__module__ == "pyo3_runtime":  # that is how polars panics
            whose = "polars, which fairmaxent uses"
        text = (
            f"this is a bug in {whose}, not in your data ({what}). Run it again as"
            " 'fairmaxent --debug …' to see the traceback, and report it."
        )
        return text, code
    if isinstance(problem, FairMaxEntError):
        from fairmaxent.cli.values import as_typed

        return problem.spelled(as_typed), code
    if isinstance(problem, OSError):
        text = (
            f"{problem.filename or 'stdout'}: {problem.strerror or problem}; check the"
            " path, its permissions and the free space"
        )
        return text, code
    return str(problem), code


def _fail(text: str, code: int) -> NoReturn:
    with contextlib.suppress(StorageError, BrokenPipeError):  # the code still says it
        echo(f"Error: {' '.join(text.split())}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        forget_stdout()
    sys.exit(code)
