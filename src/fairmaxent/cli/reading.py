"""How a file becomes a table, and its columns levels: options of all such commands.

What a command reads it may not overwrite: it may be the only copy.
"""

import contextlib
import fnmatch
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from fairmaxent.cli.config import config_option, read_domain
from fairmaxent.cli.options import CONFIG, Decorator, Function, taking
from fairmaxent.cli.values import FILE
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.frames import open_frame, read_weights
from fairmaxent.data.limits import max_memory
from fairmaxent.data.table import NameList
from fairmaxent.errors import ColumnError, StorageError, did_you_mean
from fairmaxent.files import formats
from fairmaxent.files.parquet import (
    is_pattern,
    loaded,
    named_part,
    parts_of,
    scan_table,
)
from fairmaxent.files.reading import STANDARD, FileReading, Name, TableFile
from fairmaxent.options import option
from fairmaxent.options.refusals import Refused, refuse
from fairmaxent.options.values import comma_hint
from fairmaxent.plain_text import Values

_LEARNING = ("bins", "kinds", "order", "max_levels")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(FileReading):
    """How a file becomes a table, and which of its columns are left out."""

    HEADING = "How the file is read"

    input_format: str | None = option(
        None,
        choices=tuple(formats.FORMATS),
        label="Format of the file",
        help="Format of the file; by default its content and suffix decide.",
    )
    drop: list[str] | None = option(
        None,
        text="columns",
        label="Leave out",
        help=(
            "Columns to leave out, e.g. id,name; repeatable. A table that only gets"
            " weights keeps them."
        ),
    )

    def read(self, path: str, declaration: Declaration | None = None) -> TableFile:
        """Read the table without the columns to drop, by a declaration if given."""
        return self.without_dropped(
            formats.read_table(path, self, declaration=declaration)
        )

    def scan(self, path: str, *, whole: bool = False) -> TableFile | None:
        """Open Parquet files without reading them; None for what must be read whole.

        Or load the ``whole`` table, if there is room for it.
        """
        from fairmaxent.engines.lazy_frame import FEW, READ_AHEAD

        os.environ.setdefault(READ_AHEAD, FEW)  # for what is written from the file, too
        if self.input_format not in (None, "parquet"):
            return None
        lazy = scan_table(path)
        if lazy is None:
            return None
        formats.refuse_options(path, self, "parquet")
        if whole:
            lazy = loaded(
                lazy,
                f"{path} whole (for rows to share, declare the domain, and it is"
                " scanned instead)",
            )
        return self.without_dropped(TableFile(self.renamed(lazy)))

    def without_dropped(self, table: TableFile, *, beside: NameList = ()) -> TableFile:
        """Leave out the columns to drop; ``beside`` are those of other tables."""
        if not self.drop:
            return table
        names = table.frame.collect_schema().names()
        every = [*names, *beside]
        for name in self.drop:
            if name not in every:
                hint = f"{did_you_mean(name, every)}{comma_hint(every)}"
                raise ColumnError(
                    f"--drop names {name!r}, which is not a column; {hint}"
                )
        dropped = tuple(name for name in names if name in self.drop)
        return replace(
            table,
            frame=table.frame.drop(dropped),
            whole=table.frame,
            dropped=dropped,
        )


@dataclass(frozen=True)
class DomainOptions:
    """How columns are read as levels; if nothing is given, `Domain.infer` decides."""

    HEADING = "How columns become levels"
    REFUSED = tuple(
        Refused(name, other, f"{what} how all columns are read")
        for name in _LEARNING
        for other, what in (
            ("domain", "it says"),
            ("release", "rows to share decide"),
        )
    )

    bins: Any = option(
        None,
        text="bins",
        label="Bins",
        help=(
            "Number of bins for numbers and dates, '8' or 'age: 8', or edges, 'age: 0,"
            " 18, 65, 120'."
        ),
    )
    kinds: dict[str, Any] | None = option(
        None,
        text="kind",
        label="Kind",
        help="Read a column as another kind: 'zip: categorical'.",
    )
    order: dict[str, Any] | None = option(
        None,
        text="levels",
        label="Order of its levels",
        help="Order of levels: 'size: small, medium, large'.",
    )
    max_levels: int | None = option(
        None,
        text="whole",
        least=2,
        label="Most levels of a column",
        help=(
            "Most levels that a column may have; rare ones beyond that become 'other'."
        ),
    )
    domain: str | None = option(
        None,
        text="file",
        label="Public values of every column",
        help=(
            "TOML file that declares the levels or edges of every column; 'inspect"
            " --write-domain' drafts one."
        ),
    )

    def __post_init__(self) -> None:
        refuse(self)

    @property
    def given(self) -> Values:
        """The options of `Domain.infer` that were given."""
        values = {name: getattr(self, name) for name in _LEARNING}
        return {
            name: value for name, value in values.items() if value not in (None, {})
        }

    @property
    def declaration(self) -> Declaration | None:
        """The domain that a file declares."""
        if self.domain is None:
            return None
        return read_domain(self.domain)

    def domain_of(self, frame: Any, weight: str | None) -> Domain | None:
        """Learn the domain as asked, or take it from the file that declares it."""
        from fairmaxent.engines.lazy_counts import average_weight
        from fairmaxent.engines.lazy_frame import collect, learn_domain, open_lazy

        declaration = self.declaration
        if not self.given and declaration is None:
            return None
        names = frame.collect_schema().names()
        if weight is not None and weight not in names:
            raise ColumnError(f"no column {weight!r}; {did_you_mean(weight, names)}")
        lazy = open_lazy(frame)
        weights = [] if weight is None else [weight]
        if declaration is not None:
            if lazy is None:
                first = open_frame(frame)
            else:
                first = collect(lazy.head(1))
            return bound(declaration, first.drop(weights))
        if lazy is not None:
            if weight is not None:
                average_weight(lazy, weight)  # which refuses what are no weights
            return learn_domain(lazy, weight=weight, **self.given)
        return Domain.infer(
            frame.drop(weights),
            weight=read_weights(open_frame(frame), weight),
            **self.given,
        )


def reading_options(function: Function) -> Function:
    """Add the options of reading, which a command gets as ``reading``, and a limit."""
    limited = click.option(
        "--max-memory",
        metavar="AMOUNT",
        expose_value=False,
        callback=_limit_memory,
        help=(
            "Refuse what is expected to take more memory than this, e.g. 4GB; by"
            " default, than there is."
        ),
    )(function)
    limited.__click_params__[-1].heading = ReadingOptions.HEADING  # type: ignore[attr-defined]
    return taking(ReadingOptions, "reading")(limited)


def _limit_memory(ctx: click.Context, _: click.Parameter, limit: str | None) -> None:
    if limit is not None:
        ctx.with_resource(max_memory(limit))


def table_command(
    *records: Decorator, **settings: Any
) -> Callable[[Function], click.Command]:
    """Make a command about a table.

    It gets its context, the path, other records, and how the table is read.
    """
    adding: list[Decorator] = [
        click.argument("data", type=FILE, metavar="DATA"),
        *records,
        taking(DomainOptions, "columns_as"),
        reading_options,
        config_option,
    ]

    def decorate(function: Function) -> click.Command:
        decorated: Function = click.pass_context(function)
        for add in reversed(adding):
            decorated = add(decorated)
        return click.command(**settings)(decorated)

    return decorate


# ---------------------------------------------------------------- what must not change


def check_files(targets: Sequence[str], *named: str) -> None:
    """Refuse to overwrite what a command reads, under whatever name.

    That is what arguments and options name, and what is ``named`` in a file among them.
    Nor is a file written where the next run would read it as data.
    """
    sources = [*_files_given(click.get_current_context()), *named]
    if sources.count(STANDARD) > 1:
        raise click.UsageError(
            "only one table can be read from stdin; name files for the others"
        )
    inputs = {
        _identity(file, 0) for source in sources for file in _files_of(source)
    } - {None}
    for target in targets:
        if _identity(target, 1) in inputs:
            raise click.UsageError(
                f"{target} is an input file and would be overwritten; name another file"
            )
        for source in sources:
            if STANDARD not in (target, source) and would_be_read(target, source):
                raise click.UsageError(
                    f"{target} would be read as data by the next run, because the input"
                    f" is {source}; name a file elsewhere"
                )


def _files_given(context: click.Context) -> Iterator[str]:
    """Every file that is read, as arguments, options and the config file name it."""
    if CONFIG in context.meta:
        yield context.meta[CONFIG]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.type is not FILE or value is None:
            continue
        if isinstance(value, str):
            yield value
        else:
            yield from value


@contextlib.contextmanager
def unchanged(source: str) -> Iterator[None]:
    """Refuse what was made of files that somebody changed meanwhile.

    They are read several times, and must not mix. One that cannot be read is named.
    """
    before = states(source)
    with named_part(source):
        yield
    if states(source) != before:
        raise StorageError(
            f"{source} was changed while it was read; run the command again"
        )


def states(source: str) -> dict[str, tuple[int, int, int]]:
    """What tells the files behind a path from others in their place."""
    states = {}
    for file in _files_of(source):
        if os.path.exists(file):
            state = os.stat(file)
            states[str(file)] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return states


def _files_of(source: str) -> Sequence[Any]:
    """The files behind a path."""
    return parts_of(source) or [source]


def _identity(path: Name, standard: int) -> tuple[int, int] | None:
    """Device and inode of a regular file, which the standard stream may be, too."""
    with contextlib.suppress(OSError, ValueError):
        if path == STANDARD:
            state = os.fstat(standard)
        else:
            state = os.stat(path)
        if stat.S_ISREG(state.st_mode):
            return state.st_dev, state.st_ino
    return None


def would_be_read(target: str, source: str) -> bool:
    """Whether a file of this name would be a part of the source."""
    names = (os.path.realpath(target), os.path.abspath(target))
    if os.path.isdir(source):
        folder = os.path.realpath(source)
        return any(os.path.commonpath([name, folder]) == folder for name in names)
    if not is_pattern(source):
        return False
    pattern = os.path.abspath(source)
    same_depth = (
        name
        for name in names
        if "**" in pattern or name.count(os.sep) == pattern.count(os.sep)
    )
    return any(fnmatch.fnmatchcase(name, pattern) for name in same_depth)
