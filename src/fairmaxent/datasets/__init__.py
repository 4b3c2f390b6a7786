"""Data sets to try the library on, shipped with it.

A shipped table is compressed text with one line per column: its name, then its cells,
separated by tabs. An empty cell is a missing value; if all other cells of a column are
integers, so is the column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairmaxent.data import frames
from fairmaxent.data.table import Names
from fairmaxent.errors import StorageError, check_choice
from fairmaxent.plain_text import Values

__all__ = ["Dataset", "load"]
DatasetName = Literal["acs", "adult", "german", "compas"]
Library = Literal["pandas", "polars", "pyarrow"]
Column = Sequence[Any]
Columns = Mapping[str, Column]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: a frame, the roles of its columns, and its origin."""

    name: str
    frame: Any = field(repr=False)
    """A pandas DataFrame, a polars DataFrame or a pyarrow Table."""
    description: str
    outcome: str
    """The column to be predicted (Y)."""
    protected: Names
    """The columns that name the groups (Z)."""
    favourable: object
    """The level of the outcome whose share is compared between the groups."""
    origin: str
    """Where the records come from, and under which licence."""
    citation: str

    @classmethod
    def build(
        cls,
        name: str,
        columns: Columns,
        library: Library,
        facts: Values,
    ) -> "Dataset":
        """Put the columns into a frame, beside what is known about them."""
        roles = {**facts, "protected": tuple(facts["protected"])}
        return cls(name=name, frame=_build_frame(columns, library), **roles)


def load(name: DatasetName, *, library: Library = "pandas") -> Dataset:
    """Return a data set as a frame of the given library.

    It knows its roles, its origin and its citation.

    >>> german = load("german", library="polars")
    >>> german.frame.shape, german.outcome, german.favourable, german.protected
    ((1000, 22), 'credit', 'good', ('sex',))
    """
    import tomllib  # read with the first data set

    check_choice("name", name, DatasetName)
    check_choice("library", library, Library)
    columns = read_table(name)
    facts = tomllib.loads(_shipped("facts.toml").decode())
    return Dataset.build(name, columns, library, facts[name])


def read_table(name: str) -> Columns:
    """Return the columns of a shipped table, as integers or text; None is missing."""
    import lzma  # slow to import, and needed only here

    file = f"{name}.tsv.xz"
    try:
        text = lzma.decompress(_shipped(file)).decode()
    except (OSError, lzma.LZMAError) as error:
        raise StorageError(
            f"the table {file} inside the package fairmaxent is missing or damaged"
            f" ({error}); install fairmaxent again"
        ) from error
    lines = [line.split("\t") for line in text.splitlines()]
    return {column: _parse(cells) for column, *cells in lines}


def _shipped(file: str) -> bytes:
    from importlib import resources  # slow to import, and needed only here

    return resources.files("fairmaxent.datasets").joinpath(file).read_bytes()


def _parse(cells: Sequence[str]) -> Column:
    # each is parsed once, and equal cells share one object, which halves the time
    distinct = dict.fromkeys(cells)
    values: Values
    try:
        values = {cell: int(cell) for cell in distinct if cell}
    except ValueError:
        values = {cell: cell for cell in distinct if cell}
    return [values.get(cell) for cell in cells]


def _build_frame(columns: Columns, library: Library) -> Any:
    """Return the columns as a frame of the given library."""
    if library != "pandas":
        return frames.new_frame(columns, library)
    pandas = frames.load_library(library)
    # Without a dtype, pandas would turn integers with gaps into floats.
    gaps = {
        name: pandas.array(cells, dtype="Int64")
        for name, cells in columns.items()
        if None in cells and any(isinstance(cell, int) for cell in cells)
    }
    return pandas.DataFrame({**columns, **gaps})
