"""Data sets to try the library on, shipped with it."""

from fairmaxent.datasets.dataset import Dataset, load

__all__ = ["Dataset", "load"]
