"""Which columns are compared, as options of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.help import Decorator, section
from fairmaxent.cli.options import taking
from fairmaxent.errors import ColumnError, did_you_mean
from fairmaxent.files.csv import DELIMITERS

if TYPE_CHECKING:
    from fairmaxent.files.reading import TableFile


@dataclass(frozen=True)
class RoleOptions:
    """Which columns the rates are about."""

    outcome: str  # empty if `inspect` is to propose it
    protected: tuple[str, ...]  # as typed, until `checked` has seen the columns
    favourable: tuple[object, ...]
    groups: Any
    weight: str | None

    @property
    def favoured(self) -> object:
        """The favourable levels as `debias` takes them."""
        if len(self.favourable) > 1:
            return list(self.favourable)
        return self.favourable[0] if self.favourable else None

    def checked(self, table: TableFile, path: str) -> RoleOptions:
        """Check that the columns exist, and read the favourable levels as the outcome holds them (true, numbers)."""
        schema = table.frame.collect_schema()
        names = schema.names()
        protected = tuple(name for text in self.protected for name in option_types.columns_in(text, names))
        for name in (self.outcome, *protected, self.weight):
            if name and name not in names:
                if table.whole is not None and name in table.whole.collect_schema().names():
                    raise ColumnError(f"--drop names the column {name!r}, which has a role; take it out of --drop")
                raise ColumnError(f"{path} has no column {name!r}; {_column_hint(name, names, path)}")
        if self.favourable and not self.outcome:
            raise click.UsageError("--favourable is a level of the outcome; name that with --outcome, too")
        levels = tuple(typed_level(level, schema[self.outcome]) for level in self.favourable)
        return replace(self, protected=protected, favourable=levels)


def typed_level(text: object, dtype: Any) -> object:
    """Read the text of a level as the boolean or number that a column of this kind holds; a label stays text."""
    if not isinstance(text, str):
        return text
    if str(dtype) == "Boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    return float(text) if dtype.is_numeric() and _is_number(text) else text


def _column_hint(name: str, names: Sequence[str], path: str) -> str:
    """Say why a column may be missing."""
    hint = f"{did_you_mean(name, names)}{option_types.comma_hint(names)}"
    mark = next((mark for mark in DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if mark is not None:
        return f"{hint}. Its first line seems to be separated by {mark!r}: leave --delimiter out, or set it to that"
    if any(map(_is_number, names)):
        return f"{hint}. If the first line of {path} is not a header, name the columns with --columns"
    return hint


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _role_options(*, required: bool) -> Decorator:
    proposed = "" if required else " By default one is proposed."
    return taking(
        RoleOptions,
        "roles",
        *section(
            "What is compared",
            click.option(
                "--outcome",
                required=required,
                callback=lambda ctx, param, value: value or "",
                metavar="COLUMN",
                help=f"The outcome column, e.g. income.{proposed}",
            ),
            click.option(
                "--protected",
                required=required,
                multiple=True,
                type=option_types.PROTECTED,
                help="Columns whose groups are compared, e.g. sex,race; repeatable."
                f"{proposed.replace('one is', 'some are')}",
            ),
            click.option(
                "--favourable",
                "--favorable",
                "favourable",
                multiple=True,
                type=option_types.LEVEL,
                help="The good outcome, which the statistical rate compares; repeatable. "
                f"{'By default every level is compared.' if required else proposed.strip()}",
            ),
            click.option(
                "--groups",
                type=click.Choice(["each", "joint"]),
                default="each",
                show_default=True,
                help="Compare each protected column on its own, or their intersections.",
            ),
            click.option("--weight", metavar="COLUMN", help="Column of design weights; the fair weights include them."),
        ),
    )


role_options = _role_options(required=True)
proposed_role_options = _role_options(required=False)
