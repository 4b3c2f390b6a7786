"""The paper's data sets, their folds, and the statistics that drawn rows are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fairmaxent
from fairmaxent.experiments.plan import FOLDS, DatasetName

Reals = NDArray[np.float64]

# Text columns of COMPAS small that have an order.
_ORDER = {"age_cat": ["Less than 25", "25 - 45", "Greater than 45"], "priors_count": ["0", "1-3", ">3"]}

# With more points in the domain than this, KL divergence says nothing: nearly all of them are unseen.
_LARGEST_ENUMERATED = 100_000


@dataclass(frozen=True, eq=False)
class ExperimentData:
    """A data set with its text columns as categories, its domain, and the statistics of all its rows."""

    frame: Any
    outcome: str
    favourable: object
    domain: fairmaxent.Domain

    def fold(self, number: int) -> tuple[Any, Any]:
        """Return training and test rows. As in the authors' code, folds are contiguous; the last gets the remainder."""
        size = len(self.frame) // FOLDS
        stop = len(self.frame) if number == FOLDS - 1 else (number + 1) * size
        test = np.zeros(len(self.frame), dtype=bool)
        test[number * size : stop] = True
        return self.frame[~test].reset_index(drop=True), self.frame[test].reset_index(drop=True)

    def numbers(self, frame: Any) -> Reals:
        """Return every column as numbers: its values, or the positions of its categories."""
        columns = [frame[name] for name in self.domain.names]
        return np.column_stack([column.cat.codes if column.dtype == "category" else column for column in columns]) * 1.0

    def split(self, frame: Any) -> tuple[Reals, NDArray[np.bool_]]:
        """Return the features, including the protected column, and whether the outcome is favourable."""
        outcome = self.domain.index(self.outcome)
        return np.delete(self.numbers(frame), outcome, axis=1), (frame[self.outcome] == self.favourable).to_numpy()

    @property
    def is_enumerable(self) -> bool:
        """Whether the domain is small enough to list all its points."""
        return self.domain.size <= _LARGEST_ENUMERATED

    def probabilities(self, frame: Any, weights: Reals | None = None) -> Reals:
        """Return the share of each point of the domain among the rows."""
        points = np.ravel_multi_index(tuple(self.domain.encode(frame).T.astype(np.intp)), self.domain.sizes)
        counts = np.bincount(points, weights, minlength=self.domain.size)
        return np.asarray(counts / counts.sum())

    @cached_property
    def raw_probabilities(self) -> Reals:
        """The share of each point among all rows."""
        return self.probabilities(self.frame)

    @cached_property
    def raw_correlation(self) -> Reals:
        """Pearson correlations of all rows."""
        return correlation(self.numbers(self.frame))

    @cached_property
    def raw_covariance(self) -> Reals:
        """Covariances of all rows."""
        return np.cov(self.numbers(self.frame), rowvar=False)


def correlation(numbers: Reals) -> Reals:
    """Pearson correlations of columns; a constant column has correlation 0 with all."""
    covariance = np.cov(numbers, rowvar=False)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.asarray(covariance * np.outer(scale, scale))


@cache
def load(name: DatasetName) -> ExperimentData:
    """Load a data set once per process. Columns of the large one enter as numbers, as in the paper."""
    import pandas as pd

    dataset = fairmaxent.datasets.load(name)
    texts = dataset.frame.select_dtypes("string").columns
    kinds = {text: pd.CategoricalDtype(_ORDER[text], ordered=True) if text in _ORDER else "category" for text in texts}
    frame = dataset.frame.astype(kinds)
    domain = fairmaxent.Domain.infer(frame, features="moment" if name == "compas-large" else "indicator")
    return ExperimentData(frame, dataset.outcome, dataset.favourable, domain)
