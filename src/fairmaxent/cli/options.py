"""Options that several commands share, each set as one frozen dataclass."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, get_args

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.help import Decorator, section
from fairmaxent.cli.streams import check_stdin
from fairmaxent.data.limits import max_memory
from fairmaxent.errors import ColumnError, InputError, Option, did_you_mean
from fairmaxent.files import formats
from fairmaxent.files.parquet import parts_of, scan_table
from fairmaxent.files.reading import MISSING, STANDARD, DateOrder, Reading, TableFile

if TYPE_CHECKING:
    from fairmaxent.data.declaration import Declaration
    from fairmaxent.data.domain import Domain
    from fairmaxent.report import Source

FORMATS = click.Choice(tuple(formats.FORMATS))


def taking(kind: type, name: str, *options: Decorator) -> Decorator:
    """Add options to a command, which gets their values as one dataclass."""
    names = [field.name for field in fields(kind)]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def collected(*args: Any, **params: Any) -> None:
            values = kind(**{field: params.pop(field) for field in names})
            function(*args, **{**params, name: values})

        decorated: Callable[..., None] = collected
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Reading):
    """How a file becomes a table, and which of its columns are left out."""

    drop: list[str] | None = None

    def read(self, path: str, *, texts: Collection[str] = ()) -> TableFile:
        """Read the table without the columns to drop; ``texts`` are columns that were declared as text."""
        if path == STANDARD:
            check_stdin()
        return self.without_dropped(formats.read_table(path, self, texts=texts))

    def scan(self, path: str) -> TableFile | None:
        """Open Parquet files without reading them; None for what must be read whole."""
        from fairmaxent.engines.lazy_frame import FEW, READ_AHEAD
        from fairmaxent.files.reading import TableFile

        os.environ.setdefault(READ_AHEAD, FEW)  # for what is written from the file, too
        lazy = scan_table(path) if self.input_format in (None, "parquet") else None
        if lazy is None:
            return None
        formats.refuse_options(path, self, "parquet")
        parts = parts_of(path)
        return self.without_dropped(TableFile(lazy, () if parts is None else parts.notes))

    def without_dropped(self, table: TableFile) -> TableFile:
        """Leave out the columns to drop."""
        if not self.drop:
            return table
        dropped = columns_to_drop(self.drop, table.frame.collect_schema().names())
        return replace(table, frame=table.frame.drop(dropped), whole=table.frame)


def columns_to_drop(asked: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns that --drop names; refuse one that is not there."""
    dropped = option_types.joined(asked, names)
    for name in dropped:
        if name not in names:
            hint = f"{did_you_mean(name, names)}{option_types.comma_hint(names)}"
            raise ColumnError(f"--drop names {name!r}, which is not a column; {hint}")
    return dropped


@dataclass(frozen=True)
class DomainOptions:
    """How columns are read as levels; nothing given means that `Domain.infer` decides."""

    bins: tuple[tuple[str | None, Any], ...]
    kinds: tuple[tuple[str, Any], ...]
    order: tuple[tuple[str, Any], ...]
    max_levels: int | None
    declared: str | None

    @property
    def said(self) -> dict[str, Any]:
        """The options of `Domain.infer` that were given."""
        bins = once("bins", self.bins)
        for_all = bins.pop(None, None)
        if bins and for_all is not None:
            raise InputError("--bins is given both for all columns and by column; use one of the two")
        given = {
            "bins": bins or for_all,
            "kinds": once("kinds", self.kinds),
            "order": once("order", self.order),
            "max_levels": self.max_levels,
        }
        said = {name: value for name, value in given.items() if value not in (None, {})}
        if said and self.declared is not None:
            option = next(iter(said)).replace("_", "-")
            raise InputError(f"--domain says how all columns are read; leave --{option} out")
        return said

    @property
    def declaration(self) -> Declaration | None:
        """The domain that a file declares."""
        from fairmaxent.cli.domain_file import read_domain

        if self.declared is None or self.said:  # which refuses both
            return None
        return read_domain(self.declared)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that were declared as text: which of the levels a file has must not decide how it is read."""
        declaration = self.declaration
        return () if declaration is None else declaration.texts

    def domain(self, frame: Any, weight: str | None) -> Domain | None:
        """Learn the domain as asked, or take it from the file that declares it."""
        from fairmaxent.data.domain import Domain, bound
        from fairmaxent.data.frames import open_frame
        from fairmaxent.data.weights import read_weights
        from fairmaxent.engines.lazy_counts import lazy_weight_scale, with_shifted_weights
        from fairmaxent.engines.lazy_frame import collect, open_lazy
        from fairmaxent.engines.lazy_values import learn_domain

        declaration = self.declaration
        if not self.said and declaration is None:
            return None
        lazy = open_lazy(frame)
        if declaration is not None:
            first = open_frame(frame) if lazy is None else collect(lazy.head(1))
            return bound(declaration, first if weight is None else first.drop(weight))
        if lazy is not None:
            if weight is not None:
                lazy = with_shifted_weights(lazy, weight, lazy_weight_scale(lazy, weight))
            return learn_domain(lazy, weight=weight, **self.said)
        table = frame if weight is None else frame.drop(weight)
        return Domain.infer(table, weight=read_weights(open_frame(frame), weight), **self.said)


def once(option: str, pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Values by column, each named once."""
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(Option(option), f" is given twice for {repeated[0] or 'all columns'!r}; give it once")
    return dict(pairs)


def source_of(data: str | None, columns_as: DomainOptions | None, command: str | None) -> Source:
    """Say, for a report, where its data came from; None: the report has no data."""
    from fairmaxent.report.source import FrontDoor, Source, file_sha256

    front_door = FrontDoor("on the command line", as_typed)
    if data is None:
        return Source(front_door=front_door)
    is_file = data != "-" and os.path.isfile(data)
    return Source(
        command=command,
        file="stdin" if data == "-" else os.path.basename(data),
        sha256=file_sha256(data) if is_file else None,
        domain=columns_as.said if columns_as else {},
        front_door=front_door,
    )


def _within_memory(ctx: click.Context, param: click.Parameter, limit: str | None) -> None:
    """Refuse, for as long as the command runs, what would take more memory."""
    if limit is not None:
        ctx.with_resource(max_memory(limit))


# ---------------------------------------------------------------- the options themselves

data_argument = click.argument("data", type=option_types.FILE, metavar="DATA")
readable_option = click.option(
    "--readable-by-others",
    is_flag=True,
    help="Let other users of this computer read the files, if your umask allows. By default only you "
    "can; a file that is replaced keeps its permissions.",
)
force_option = click.option("--force", is_flag=True, help="Replace existing files.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
output_format_option = click.option(
    "--output-format", type=FORMATS, help="Format of the output; by default its suffix decides."
)

like_input_option = click.option(
    "--like-input",
    is_flag=True,
    help="Write the table in the form of DATA: its format, and the separator, decimal mark and encoding of a CSV.",
)

reading_options = taking(
    ReadingOptions,
    "reading",
    *section(
        "How the file is read",
        click.option(
            "--input-format", type=FORMATS, help="Format of the file; by default its content and suffix decide."
        ),
        click.option(
            "--sheet",
            type=option_types.SHEET,
            help="Name or number of the sheet of an Excel workbook; by default the first that holds a table.",
        ),
        click.option(
            "--skip-lines",
            type=click.IntRange(0),
            help="How many lines (of a sheet: rows) stand above the header; titles are detected by default.",
        ),
        click.option(
            "--skip-last",
            type=click.IntRange(0),
            help="How many rows to leave out at the end, such as sums and remarks.",
        ),
        click.option("--delimiter", metavar="CHAR", help="Delimiter of a CSV; detected by default."),
        click.option("--encoding", help="Encoding of a CSV; detected by default."),
        click.option("--decimal", type=click.Choice([",", "."]), help="Decimal mark of a CSV; detected by default."),
        click.option(
            "--date-order",
            type=click.Choice(get_args(DateOrder)),
            help="Whether 1/2/2025 is in February (dmy) or in January (mdy); by default other dates show it.",
        ),
        click.option(
            "--missing",
            multiple=True,
            metavar="TEXT",
            help="Text of a cell that means missing; repeatable. Replaces the default: "
            f"{', '.join(mark or 'empty' for mark in MISSING)}.",
        ),
        click.option(
            "--columns",
            cls=option_types.ColumnsOption,
            type=option_types.NAMES,
            help="Names of the columns, if there is no header line; one that contains a comma goes in double quotes.",
        ),
        click.option(
            "--drop",
            cls=option_types.ColumnsOption,
            type=option_types.NAMES,
            help="Columns to leave out, e.g. id,name; repeatable. A table that only gets weights keeps them.",
        ),
        click.option(
            "--max-memory",
            metavar="AMOUNT",
            expose_value=False,
            callback=_within_memory,
            help="Refuse what is expected to take more memory than this, e.g. 4GB; by default, than there is.",
        ),
    ),
)
domain_options = taking(
    DomainOptions,
    "columns_as",
    *section(
        "How columns become levels",
        click.option(
            "--bins",
            multiple=True,
            type=option_types.BINS,
            help="Number of bins for numbers and dates, '8' or 'age: 8', or edges, 'age: 0, 18, 65, 120'.",
        ),
        click.option(
            "--kinds", multiple=True, type=option_types.KIND, help="Read a column as another kind: 'zip: categorical'."
        ),
        click.option(
            "--order", multiple=True, type=option_types.ORDER, help="Order of levels: 'size: small, medium, large'."
        ),
        click.option(
            "--max-levels",
            type=click.IntRange(2),
            help="Most levels that a column may have; rare ones beyond that become 'other'.",
        ),
        click.option(
            "--domain",
            "declared",
            type=option_types.FILE,
            metavar="FILE",
            help="TOML file that declares the levels or edges of every column; 'inspect --write-domain' drafts one.",
        ),
    ),
)
