"""Cells that a spreadsheet would run as a formula when it opens a text file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairmaxent.data.frames import load_library

_FORMULA = r"^[=+\-@\t\r]."  # a lone sign is none
_NUMBER = r"^[+\-]?[\d\s.,]+(?:[eE][+\-]?\d+)?\s*%?$"


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
