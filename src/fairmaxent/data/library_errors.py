"""What other libraries raise, turned into errors of our own that say where it happened and what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fairmaxent.errors import FairMaxEntError, InputError, first_line

# The packages whose exceptions are turned: those that hold tables or compute them. pyo3 is how polars panics, which is
# a bug in polars that damaged data can reach; it is no Exception, so it would pass every handler.
_LIBRARIES = {
    *("pandas", "polars", "pyarrow", "narwhals", "pyo3_runtime"),
    *("duckdb", "_duckdb", "dask", "distributed", "tornado", "pyspark", "py4j"),
}


def is_foreign(problem: BaseException) -> bool:
    """Whether an exception belongs to one of the libraries that hold tables."""
    return type(problem).__module__.split(".")[0] in _LIBRARIES


@contextlib.contextmanager
def library_errors(explain: Callable[[str], FairMaxEntError], *also: type[BaseException]) -> Iterator[None]:
    """Turn the exceptions of those libraries, and ``also`` these, into what ``explain`` makes of their first line."""
    try:
        yield
    except FairMaxEntError:
        raise
    except BaseException as problem:
        if isinstance(problem, also) or is_foreign(problem):
            raise explain(first_line(problem)) from problem
        raise


@contextlib.contextmanager
def column_errors(series: Any) -> Iterator[None]:
    """Name the column that its library cannot handle: some kinds of columns can be made, but not sorted or taken from.

    Dates far away can be stored by all libraries and shown by none.
    """

    def explain(why: str) -> InputError:
        return InputError(
            f"column {series.name!r} ({series.dtype}) holds values that cannot be read ({why}); convert it, e.g. to "
            "text, or make such values missing",
            column=str(series.name),
        )

    with library_errors(explain, ValueError, OverflowError, NotImplementedError):
        yield
