"""Options that several commands share, each set as one frozen dataclass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli import values
from fairmaxent.csv_text import MISSING
from fairmaxent.errors import ColumnError, InputError, did_you_mean

if TYPE_CHECKING:
    from fairmaxent.domain import Domain
    from fairmaxent.files import FileFormat, TableFile
    from fairmaxent.fit import Fit

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
FORMATS = click.Choice(["csv", "tsv", "parquet", "arrow", "jsonl"])


def taking(kind: type, name: str, *options: Decorator) -> Decorator:
    """Add options to a command, which gets their values as one dataclass."""
    own = [field.name for field in fields(kind)]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def collected(*args: Any, **params: Any) -> None:
            found = kind(**{field: params.pop(field) for field in own})
            function(*args, **{**params, name: found})

        decorated: Callable[..., None] = collected
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


@dataclass(frozen=True)
class ReadingOptions:
    """How a file becomes a table."""

    input_format: FileFormat | None
    delimiter: str | None
    encoding: str | None
    missing: tuple[str, ...]
    columns: list[str] | None
    drop: list[str] | None

    def read(self, path: str) -> TableFile:
        """Read the table without the columns to drop."""
        from fairmaxent.files import TableFile, read_table

        table = read_table(
            path,
            format=self.input_format,
            delimiter=self.delimiter,
            encoding=self.encoding,
            missing=self.missing or MISSING,
            columns=self.columns,
        )
        for name in self.drop or ():
            if name not in table.frame.columns:
                raise ColumnError(f"drop names the column {name!r}; {did_you_mean(name, table.frame.columns)}")
        return TableFile(table.frame.drop(self.drop or []), table.notes)


@dataclass(frozen=True)
class RoleOptions:
    """Which columns the rates are about."""

    outcome: str
    protected: list[str]
    favourable: tuple[object, ...]
    groups: Any
    weight: str | None

    @property
    def favoured(self) -> object:
        """The favourable levels as `debias` takes them."""
        if len(self.favourable) > 1:
            return list(self.favourable)
        return self.favourable[0] if self.favourable else None

    def check(self, frame: Any, path: str) -> None:
        """Look for the columns first: a file without names is the likeliest reason for not finding them."""
        names = list(frame.columns)
        for name in (self.outcome, *self.protected, *([self.weight] if self.weight else [])):
            if name not in names:
                numbers = [own for own in names if _is_number(own)]
                hint = did_you_mean(name, names)
                if numbers:
                    hint = f"{hint}. If the first line of {path} holds no names, give them with --columns"
                raise ColumnError(f"{path} has no column {name!r}; {hint}")


@dataclass(frozen=True)
class DomainOptions:
    """How columns are read as levels; nothing given means that `Domain.infer` decides."""

    bins: tuple[tuple[str | None, Any], ...]
    kinds: tuple[tuple[str, Any], ...]
    order: tuple[tuple[str, Any], ...]
    max_levels: int | None

    def domain(self, frame: Any, weight: str | None) -> Domain | None:
        """Learn the domain as asked."""
        from fairmaxent.domain import Domain
        from fairmaxent.frames import open_frame
        from fairmaxent.levels import DEFAULT_BINS
        from fairmaxent.reading import read_weights

        if not (self.bins or self.kinds or self.order or self.max_levels):
            return None
        bins = once("bins", self.bins)
        for_all = bins.pop(None, None)
        if bins and for_all is not None:
            raise InputError("bins are given for all columns and by column; do one of the two")
        return Domain.infer(
            frame if weight is None else frame.drop(weight),
            bins=bins or for_all or DEFAULT_BINS,
            kinds=once("kinds", self.kinds),
            order=once("order", self.order),
            max_levels=64 if self.max_levels is None else self.max_levels,
            weight=read_weights(open_frame(frame), weight),
        )


@dataclass(frozen=True)
class FitOptions:
    """What is asked for: the options of `fairmaxent.debias` by the same names."""

    representation_rate: Any
    statistical_rate: Any
    target: tuple[tuple[str, Any], ...]
    base: Any
    base_share: float
    forbid: tuple[dict[str, object], ...]
    random_state: int | None

    def fit(self, frame: Any, roles: RoleOptions, domain: Domain | None) -> Fit:
        """Call `debias`."""
        from fairmaxent.pipeline import debias

        return debias(
            frame,
            roles.outcome,
            roles.protected,
            representation_rate=self.representation_rate,
            statistical_rate=self.statistical_rate,
            favourable=roles.favoured,
            groups=roles.groups,
            target=once("target", self.target) or None,
            base=self.base,
            base_share=self.base_share,
            weight=roles.weight,
            forbid=list(self.forbid) or None,
            domain=domain,
            random_state=self.random_state,
        )


def once(option: str, pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Values by column, each named once."""
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"{option} is given twice for {repeated[0] or 'all columns'!r}; give it once")
    return dict(pairs)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------- the options themselves

data_argument = click.argument("data", type=click.Path(), metavar="DATA")
force_option = click.option("--force", is_flag=True, help="Replace files that exist.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
output_format_option = click.option("--output-format", type=FORMATS, help="By default what the output's suffix says.")

reading_options = taking(
    ReadingOptions,
    "reading",
    click.option("--input-format", type=FORMATS, help="By default what the file and its suffix say."),
    click.option("--delimiter", metavar="CHAR", help="Of a CSV; found out by default."),
    click.option("--encoding", help="Of a CSV; found out by default."),
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT",
        help=f"A cell that means missing, repeatable, instead of {', '.join(m or 'empty' for m in MISSING)}.",
    ),
    click.option("--columns", type=values.NAMES, help="Names of the columns, if the CSV has no line of names."),
    click.option("--drop", type=values.NAMES, help="Columns to leave out, e.g. identifiers."),
)
role_options = taking(
    RoleOptions,
    "roles",
    click.option("--outcome", required=True, metavar="COLUMN", help="The outcome, e.g. income."),
    click.option("--protected", required=True, type=values.NAMES, help="Columns of the groups, e.g. sex,race."),
    click.option(
        "--favourable",
        multiple=True,
        type=values.LEVEL,
        help="Outcome level that the statistical rate is about, repeatable; by default every level.",
    ),
    click.option(
        "--groups",
        type=click.Choice(["each", "joint"]),
        default="each",
        show_default=True,
        help="Compare each protected column on its own, or their intersections.",
    ),
    click.option("--weight", metavar="COLUMN", help="Column of design weights."),
)
domain_options = taking(
    DomainOptions,
    "columns_as",
    click.option(
        "--bins",
        multiple=True,
        type=values.BINS,
        help="Number of bins of numbers and dates, '8' or 'age: 8', or edges, 'age: 0, 18, 65, 120'.",
    ),
    click.option("--kinds", multiple=True, type=values.KIND, help="Read a column as another kind: 'zip: categorical'."),
    click.option("--order", multiple=True, type=values.ORDER, help="Order of levels: 'size: small, medium, large'."),
    click.option("--max-levels", type=int, help="Levels of a column before the rare ones become 'other'."),
)
fit_options = taking(
    FitOptions,
    "asked",
    click.option(
        "--representation-rate",
        type=values.RATE,
        default=1.0,
        show_default=True,
        help="Smallest ratio allowed between group shares: 0.9, none, or by column: sex=0.9,race=none.",
    ),
    click.option(
        "--statistical-rate",
        type=values.RATE,
        default=1.0,
        show_default=True,
        help="Smallest ratio allowed between the groups' rates of an outcome; written alike.",
    ),
    click.option(
        "--target",
        multiple=True,
        type=values.TARGET,
        help="Wanted shares of a column: 'sex: Female=0.6, Male=0.4'; 'age: keep' keeps what it has.",
    ),
    click.option(
        "--base",
        type=click.Choice(["tree", "product", "uniform"]),
        default="tree",
        show_default=True,
        help="What is mixed into the rows to reach combinations that have none.",
    ),
    click.option("--base-share", type=float, default=0.5, show_default=True, help="How much of it, from 0 to 1."),
    click.option(
        "--forbid",
        multiple=True,
        type=values.PAIRS,
        help="Impossible combination: 'sex=Male,pregnant=yes'; repeatable.",
    ),
    click.option("--seed", "--random-state", "random_state", type=int, help="Same seed, same rows."),
)
