"""Learners: the classifiers that are trained on what a method gives, and how they see a
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Encoder:
    """Columns as numbers, learned once per fold from its real people, so that every
    method is read alike.
    """

    levels: Mapping[str, list[Any]]  # of text columns
    numbers: tuple[str, ...]
    middle: Reals  # median, in the place of missing numbers
    centre: Reals
    scale: Reals

    @classmethod
    def of(cls, frame: Any) -> Encoder:
        """Learn levels of text, and median, mean and deviation of numbers."""
        texts = frame.select_dtypes(exclude="number").columns
        numbers = tuple(frame.columns.difference(texts, sort=False))
        values = _numbers(frame, numbers)
        middle = np.nanmedian(values, axis=0)
        filled = np.where(np.isnan(values), middle, values)
        deviation = filled.std(axis=0)
        levels = {name: sorted(frame[name].dropna().unique()) for name in texts}
        return cls(
            levels,
            numbers,
            middle,
            filled.mean(axis=0),
            np.where(deviation > 0, deviation, 1.0),
        )

    def coded(self, frame: Any) -> Reals:
        """Levels as codes, then numbers as they are; missing is NaN."""
        codes = [self._codes(frame, name).astype(float) for name in self.levels]
        return np.column_stack(
            [
                *(np.where(code < 0, np.nan, code) for code in codes),
                _numbers(frame, self.numbers),
            ]
        )

    def indicators(self, frame: Any) -> Reals:
        """One column per level, none of them for a missing one, then standardised
        numbers and where they miss.
        """
        values = _numbers(frame, self.numbers)
        missing = np.isnan(values)
        standard = (np.where(missing, self.middle, values) - self.centre) / self.scale
        levels = [
            np.eye(len(own) + 1)[self._codes(frame, name)][:, :-1]
            for name, own in self.levels.items()
        ]
        return np.hstack([*levels, standard, missing])

    def _codes(self, frame: Any, name: str) -> NDArray[np.intp]:
        import pandas as pd

        return np.asarray(
            pd.Categorical(frame[name], categories=self.levels[name]).codes,
            dtype=np.intp,
        )


def _numbers(frame: Any, names: tuple[str, ...]) -> Reals:
    return frame[list(names)].astype("float64").to_numpy()


@dataclass(frozen=True)
class Learner:
    """A classifier, and the form in which it takes a table."""

    build: Callable[[Encoder], Any]
    view: Callable[[Encoder, Any], Reals] = Encoder.indicators

    def pipeline(self, encoder: Encoder) -> Any:
        """The same classifier as a pipeline that takes the columns of the table."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        return make_pipeline(
            FunctionTransformer(partial(self.view, encoder)), self.build(encoder)
        )


def _logistic_regression(_: Encoder | None = None) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _decision_tree(_: Encoder | None = None) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(min_samples_leaf=50, random_state=0)


def _gradient_boosting(encoder: Encoder) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    categorical = list(range(len(encoder.levels)))
    # Early stopping would hold back another part of the rows with every method.
    return HistGradientBoostingClassifier(
        categorical_features=categorical, early_stopping=False, random_state=0
    )


LEARNERS: Mapping[str, Learner] = {
    "logistic regression": Learner(_logistic_regression),
    "decision tree": Learner(_decision_tree),
    "gradient boosting": Learner(_gradient_boosting, Encoder.coded),
}
