"""Cells that a spreadsheet would run as a formula when it opens a text file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairmaxent.data.frames import load_library
from fairmaxent.files.formats import output_format
from fairmaxent.files.reading import STANDARD

if TYPE_CHECKING:
    from fairmaxent.data.domain import Domain
    from fairmaxent.files.formats import FileFormat

_FORMULA = r"^[=+\-@\t\r]."  # a lone sign is none
_NUMBER = r"^[+\-]?[\d\s.,]+(?:[eE][+\-]?\d+)?\s*%?$"
_SHOWN = 3  # names of columns


def formula_notes(columns: Iterable[Any], target: str | None, format: FileFormat | None) -> tuple[str, ...]:
    """Say if the table that was written is text, and a spreadsheet would take some of its cells for formulas."""
    if target in (None, STANDARD) or output_format(target or "", format)[0] not in ("csv", "tsv"):
        return ()
    names = formula_columns(columns)
    if not names:
        return ()
    shown = ", ".join(repr(name) for name in names[:_SHOWN]) + (" and others" if len(names) > _SHOWN else "")
    return (
        f"{target} has cells that begin with =, +, - or @, in {shown}; a spreadsheet may run them as formulas, so "
        "import these columns as text",
    )


def domain_columns(domain: Domain) -> list[Any]:
    """The values that drawn rows may have, as polars columns."""
    return [attribute.values.to_polars().rename(attribute.name) for attribute in domain.attributes]


def formula_columns(columns: Iterable[Any]) -> list[str]:
    """Return the names of the polars columns that have such a cell, or such a name.

    >>> import polars
    >>> table = polars.DataFrame({"a": ["=1+1", "x"], "b": ["-5,1", "-"], "c": ["-cmd|' /C calc'!A0", None]})
    >>> formula_columns(table)
    ['a', 'c']
    """
    polars = load_library("polars")
    texts = (polars.String, polars.Categorical, polars.Enum)

    def runs(column: Any) -> bool:
        values = polars.Series([column.name])
        if isinstance(column.dtype, texts):
            values = values.append(column.drop_nulls().cast(polars.String).rename(""))
        return bool((values.str.contains(_FORMULA) & ~values.str.contains(_NUMBER)).any())

    return [column.name for column in columns if runs(column)]
