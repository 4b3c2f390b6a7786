"""The shipped tables, read without any DataFrame library and then turned into a frame.

A table is compressed text with one line per column: its name, then its cells, separated by tabs. An empty cell is a
missing value; if all other cells of a column are integers, so is the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairmaxent.data import frames
from fairmaxent.datasets.dataset import Library
from fairmaxent.errors import StorageError

Column = Sequence[Any]
Columns = Mapping[str, Column]


def read_table(name: str) -> Columns:
    """Return the columns of a shipped table, as integers or text; None is missing."""
    import lzma  # both are slow to import, and needed only here
    from importlib import resources

    file = f"{name}.tsv.xz"
    try:
        text = lzma.decompress(resources.files("fairmaxent.datasets").joinpath(file).read_bytes()).decode()
    except (OSError, lzma.LZMAError) as error:
        raise StorageError(
            f"the table {file} inside the package fairmaxent is missing or damaged ({error}); install fairmaxent again"
        ) from error
    lines = [line.split("\t") for line in text.splitlines()]
    return {column: _parse(cells) for column, *cells in lines}


def _parse(cells: Sequence[str]) -> Column:
    distinct = dict.fromkeys(cells)  # each is parsed once, and equal cells share one object, which halves the time
    try:
        values: dict[str, Any] = {cell: int(cell) if cell else None for cell in distinct}
    except ValueError:
        values = {cell: cell or None for cell in distinct}
    return [values[cell] for cell in cells]


def build_frame(columns: Columns, library: Library) -> Any:
    """Return the columns as a frame of the given library."""
    namespace = frames.load_library(library)
    if library == "pyarrow":
        return namespace.table(dict(columns))
    if library == "polars":
        return namespace.DataFrame(dict(columns))
    # Without a dtype, pandas would turn integers with gaps into floats.
    gaps = {
        name: namespace.array(cells, dtype="Int64") for name, cells in columns.items() if _is_integer_with_gaps(cells)
    }
    return namespace.DataFrame(dict(columns) | gaps)


def _is_integer_with_gaps(cells: Column) -> bool:
    return None in cells and any(isinstance(cell, int) for cell in cells)
