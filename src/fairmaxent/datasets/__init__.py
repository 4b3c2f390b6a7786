"""Data sets to try the library on, shipped with it, and the paper's versions of
them.
"""

from typing import Literal

from fairmaxent.datasets.dataset import Dataset, Library
from fairmaxent.datasets.prepared import load_prepared
from fairmaxent.errors import check_choice

__all__ = ["Dataset", "load"]

DatasetName = Literal[
    "acs", "adult", "adult-small", "german", "compas", "compas-small", "compas-large"
]


def load(name: DatasetName, *, library: Library = "pandas") -> Dataset:
    """Return a data set as a frame of the given library, with its roles, origin and
    citation.

    All but "compas-large" are shipped with the package. "compas-large" needs two files,
    which are read from the folder in the environment variable FAIRMAXENT_DATA or, if
    that is not set, downloaded.

    >>> german = load("german", library="polars")
    >>> german.frame.shape, german.outcome, german.favourable, german.protected
    ((1000, 22), 'credit', 'good', ('sex',))
    """
    check_choice("name", name, DatasetName)
    check_choice("library", library, Library)
    return load_prepared(name, library)
