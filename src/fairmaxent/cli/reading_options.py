"""How a file becomes a table, and its columns levels: the options that all commands with a table share."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.options import taking
from fairmaxent.cli.streams import check_stdin
from fairmaxent.data.limits import max_memory
from fairmaxent.errors import ColumnError, InputError, did_you_mean
from fairmaxent.files import formats
from fairmaxent.files.parquet import scan_table
from fairmaxent.files.reading import STANDARD, Reading, TableFile
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.data.declaration import Declaration
    from fairmaxent.data.domain import Domain
    from fairmaxent.report import Source


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Reading):
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
        help="Columns to leave out, e.g. id,name; repeatable. A table that only gets weights keeps them.",
    )

    def read(self, path: str, *, texts: Collection[str] = ()) -> TableFile:
        """Read the table without the columns to drop; ``texts`` are columns that were declared as text."""
        if path == STANDARD:
            check_stdin()
        return self.without_dropped(formats.read_table(path, self, texts=texts))

    def scan(self, path: str) -> TableFile | None:
        """Open Parquet files without reading them; None for what must be read whole."""
        from fairmaxent.engines.lazy_frame import FEW, READ_AHEAD

        os.environ.setdefault(READ_AHEAD, FEW)  # for what is written from the file, too
        lazy = scan_table(path) if self.input_format in (None, "parquet") else None
        if lazy is None:
            return None
        formats.refuse_options(path, self, "parquet")
        return self.without_dropped(TableFile(lazy))

    def without_dropped(self, table: TableFile) -> TableFile:
        """Leave out the columns to drop."""
        if not self.drop:
            return table
        names = table.frame.collect_schema().names()
        asked = columns_to_drop(self.drop, names)
        dropped = tuple(name for name in names if name in asked)
        return replace(table, frame=table.frame.drop(dropped), whole=table.frame, dropped=dropped)


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

    HEADING = "How columns become levels"

    bins: tuple[tuple[str | None, Any], ...] = option(
        (),
        text="bins",
        label="Bins",
        help="Number of bins for numbers and dates, '8' or 'age: 8', or edges, 'age: 0, 18, 65, 120'.",
    )
    kinds: tuple[tuple[str, Any], ...] = option(
        (), text="kind", label="Kind", help="Read a column as another kind: 'zip: categorical'."
    )
    order: tuple[tuple[str, Any], ...] = option(
        (), text="levels", label="Order of its levels", help="Order of levels: 'size: small, medium, large'."
    )
    max_levels: int | None = option(
        None,
        text="whole",
        least=2,
        label="Most levels of a column",
        help="Most levels that a column may have; rare ones beyond that become 'other'.",
    )
    declared: str | None = option(
        None,
        flags=("--domain",),
        text="file",
        metavar="FILE",
        label="Public values of every column",
        help="TOML file that declares the levels or edges of every column; 'inspect --write-domain' drafts one.",
    )

    @property
    def given(self) -> dict[str, Any]:
        """The options of `Domain.infer` that were given."""
        bins = option_types.once("bins", self.bins)
        for_all = bins.pop(None, None)
        if bins and for_all is not None:
            raise InputError("--bins is given both for all columns and by column; use one of the two")
        values = {
            "bins": bins or for_all,
            "kinds": option_types.once("kinds", self.kinds),
            "order": option_types.once("order", self.order),
            "max_levels": self.max_levels,
        }
        given = {name: value for name, value in values.items() if value not in (None, {})}
        if given and self.declared is not None:
            option = next(iter(given)).replace("_", "-")
            raise InputError(f"--domain says how all columns are read; leave --{option} out")
        return given

    @property
    def declaration(self) -> Declaration | None:
        """The domain that a file declares."""
        from fairmaxent.cli.config import read_domain

        if self.declared is None or self.given:  # which refuses both
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
        from fairmaxent.data.frames import open_frame, read_weights
        from fairmaxent.engines.lazy_counts import lazy_weight_scale, with_shifted_weights
        from fairmaxent.engines.lazy_frame import collect, learn_domain, open_lazy

        declaration = self.declaration
        if not self.given and declaration is None:
            return None
        lazy = open_lazy(frame)
        if declaration is not None:
            first = open_frame(frame) if lazy is None else collect(lazy.head(1))
            return bound(declaration, first if weight is None else first.drop(weight))
        if lazy is not None:
            if weight is not None:
                lazy = with_shifted_weights(lazy, weight, lazy_weight_scale(lazy, weight))
            return learn_domain(lazy, weight=weight, **self.given)
        table = frame if weight is None else frame.drop(weight)
        return Domain.infer(table, weight=read_weights(open_frame(frame), weight), **self.given)


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
        domain=columns_as.given if columns_as else {},
        front_door=front_door,
    )


def _within_memory(ctx: click.Context, param: click.Parameter, limit: str | None) -> None:
    """Refuse, for as long as the command runs, what would take more memory."""
    if limit is not None:
        ctx.with_resource(max_memory(limit))


# ---------------------------------------------------------------- on the command line

data_argument = click.argument("data", type=option_types.FILE, metavar="DATA")
domain_options = taking(DomainOptions, "columns_as")
memory_option = click.option(
    "--max-memory",
    metavar="AMOUNT",
    expose_value=False,
    callback=_within_memory,
    help="Refuse what is expected to take more memory than this, e.g. 4GB; by default, than there is.",
)


def reading_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of reading to a command, which gets them as ``reading``, and a limit of memory."""
    limited = memory_option(function)
    limited.__click_params__[-1].heading = ReadingOptions.HEADING  # type: ignore[attr-defined]
    return taking(ReadingOptions, "reading")(limited)
