"""A data set: a frame, the roles of its columns, and its origin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Library = Literal["pandas", "polars", "pyarrow"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: a frame, the roles of its columns, and its origin."""

    name: str
    frame: Any = field(repr=False)
    """A pandas DataFrame, a polars DataFrame or a pyarrow Table."""
    description: str
    outcome: str
    """The column to be predicted (Y)."""
    protected: tuple[str, ...]
    """The columns that name the groups (Z)."""
    favourable: object
    """The level of the outcome whose share is compared between the groups."""
    origin: str
    """Where the records come from, and under which licence."""
    citation: str
