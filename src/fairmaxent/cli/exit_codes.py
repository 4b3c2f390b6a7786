"""How a command ends: every failure is one line on stderr and an exit code with a meaning."""

from __future__ import annotations

import contextlib
import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import NoReturn

import click

from fairmaxent.cli.quoting import quoted
from fairmaxent.cli.streams import echo, forget_stdout, was_interrupted
from fairmaxent.errors import (
    DependencyError,
    EvidenceError,
    FairMaxEntError,
    InfeasibleError,
    InputError,
    Option,
    SolverError,
    StorageError,
)
from fairmaxent.options import typed_options

UNEXPECTED = 1
USAGE = 2
UNUSABLE = 3
UNREACHABLE = 4
UNREADABLE = 5
INTERRUPTED = 130
CLOSED_PIPE = 141

MEANINGS = """\b
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
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (InfeasibleError, UNREACHABLE),
    (EvidenceError, UNREACHABLE),
    (SolverError, UNREACHABLE),
    (InputError, UNUSABLE),
    (DependencyError, UNUSABLE),
    (StorageError, UNREADABLE),
    (FairMaxEntError, UNUSABLE),
    (OSError, UNREADABLE),
    (UnicodeError, UNREADABLE),
)


@contextlib.contextmanager
def one_line(*, debug: bool) -> Iterator[None]:
    """End the process with one line and a code if anything is raised inside; ``debug`` shows the traceback of a bug."""
    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        _interrupted()
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        sys.exit(USAGE)
    except click.UsageError as problem:
        where = "fairmaxent" if problem.ctx is None else problem.ctx.command_path
        _fail(f"{_one(problem.format_message())}{_hint(problem)} See '{where} --help'.", USAGE)
    except click.ClickException as problem:
        _fail(problem.format_message(), problem.exit_code)
    except BaseException as problem:
        from fairmaxent.data.frames import is_foreign

        if not isinstance(problem, Exception) and not is_foreign(problem):
            raise  # the process ends; a panic of polars is no Exception either, but has to be said
        if was_interrupted():
            _interrupted()
        text, code = _explain(problem)
        if debug:
            echo("".join(traceback.format_exception(problem)), err=True)
        _fail(text, code)


def _hint(problem: click.UsageError) -> str:
    """Who does not know which columns to name is told where they are proposed."""
    missing = problem.param if isinstance(problem, click.MissingParameter) else None
    is_role = missing is not None and missing.name in ("outcome", "protected")
    return " 'fairmaxent inspect' proposes one for your table." if is_role else ""


def _interrupted() -> NoReturn:
    _fail("interrupted; no incomplete file was left behind", INTERRUPTED)


def _explain(problem: BaseException) -> tuple[str, int]:
    code = next((code for kind, code in _CODES if isinstance(problem, kind)), UNEXPECTED)
    if isinstance(problem, MemoryError):
        return f"not enough memory ({problem}); ask for fewer rows, or drop columns", UNUSABLE
    if code == UNEXPECTED:
        what = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
        return (
            f"this is a bug in fairmaxent, not in your data ({what}). "
            "Run it again as 'fairmaxent --debug …' to see the traceback, and report it.",
            code,
        )
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}; check the path, its permissions and the free space", code
    return problem.spelled(as_typed) if isinstance(problem, FairMaxEntError) else str(problem), code


def as_typed(option: Option) -> str:
    """Spell an option the way it is typed on the command line.

    >>> as_typed(Option("base_share")), as_typed(Option("groups", "each")), as_typed(Option("statistical_rate", None))
    ('--base-share', '--groups each', '--statistical-rate none')
    >>> as_typed(Option("release", True))
    '--release'
    >>> as_typed(Option("target", column="sex"))
    "--target for 'sex'"
    >>> as_typed(Option("representation_rate", {"sex": 0.9, "race": None}))
    '--representation-rate sex=0.9,race=none'
    >>> print(as_typed(Option("keep_columns", ["id", "race, ethnicity"])))
    --keep-columns 'id,"race, ethnicity"'
    >>> as_typed(Option("bins", {"age": [17.0, 40.0, 90.0]}))
    "--bins 'age: 17, 40, 90'"
    """
    flag, is_flag = _flag_of(option.name)
    if option.column is not None:
        return f"{flag} for {option.column!r}"
    if is_flag or option.value is ... or option.value is True:
        return flag
    return f"{flag} {shlex.quote(_typed_value(option.value, is_bins=option.name == 'bins'))}"


def _flag_of(name: str) -> tuple[str, bool]:
    """How an option is typed, and whether that says its value, too: one of a record in a request is typed for it."""
    from fairmaxent.fit.request import Request

    for source in typed_options(Request):
        if source.field.name == name and source.owner is None:
            return source.flags[0], source.info.text == "flag"
        if source.owner == name:
            return source.flags[0], True
    return f"--{name.removesuffix('_text').replace('_', '-')}", False  # missing_text: of a reader


def _typed_value(value: object, *, is_bins: bool = False) -> str:
    from fairmaxent.data.levels import value_text

    if is_bins and isinstance(value, Mapping):
        return "; ".join(f"{quoted(column)}: {', '.join(map(value_text, edges))}" for column, edges in value.items())
    if isinstance(value, Mapping):
        return ",".join(f"{quoted(column)}={_typed_value(item)}" for column, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(quoted(_typed_value(item)) for item in value)
    return "none" if value is None else str(value)


def _one(text: str) -> str:
    """One line that ends as a sentence."""
    joined = " ".join(text.split())
    return joined if joined.endswith((".", "?", "!")) else f"{joined}."


def _fail(text: str, code: int) -> NoReturn:
    with contextlib.suppress(StorageError, BrokenPipeError):  # the code still says it
        echo(f"Error: {' '.join(text.split())}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        forget_stdout()
    sys.exit(code)
