"""A note on cells that a spreadsheet would run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairmaxent.files.formats import STANDARD, output_format
from fairmaxent.files.formulas import formula_columns

if TYPE_CHECKING:
    from fairmaxent.data.domain import Domain
    from fairmaxent.files.formats import FileFormat

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
