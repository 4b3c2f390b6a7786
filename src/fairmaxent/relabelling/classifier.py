"""Classifiers of others, by scikit-learn's interface: copied, trained and asked.

A certificate rests on what they answer, so nothing of it is believed unseen. What goes
wrong inside one is told with its name, from its own exception.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.frames import is_foreign
from fairmaxent.data.table import Reals
from fairmaxent.errors import InputError, first_line, shown

_ROUNDING = 1e-3  # of probabilities and of their sums, which some round
_AGAIN = 10  # rows that are asked about twice
_NOISE = 0.01  # between two answers about one row, e.g. in half precision

Rows = NDArray[np.intp]


def fresh_copy(model: Any) -> Any:
    """A copy that has learned nothing."""
    from sklearn.base import clone

    try:
        copied = clone(model, safe=False)
    except Exception as problem:
        raise InputError(
            f"{name_of_model(model)} cannot be copied for each training"
            f" ({_said(problem)}); pass a classifier that sklearn.base.clone copies"
        ) from problem
    if copied is model:
        raise InputError(
            f"the copy of {name_of_model(model)} is itself, so that one training would"
            " change another; pass a classifier that sklearn.base.clone copies"
        )
    return copied


def name_of_model(model: Any) -> str:
    """A model by its class, a pipeline by that of its last step."""
    return type(_last_step(model)).__name__


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier that was trained."""

    model: Any
    classes: list[object]  # in the order of its columns
    training: str  # which one it was, for messages

    @classmethod
    def trained(
        cls,
        model: Any,
        seen: Any,
        labels: NDArray[Any],
        weights: Reals,
        training: str = "training",
    ) -> "Classifier":
        """Train the model itself, and see that it knows the labels that it was given.

        ``training`` names this training among others.
        """
        expected = set(labels.tolist())  # before the model can change them
        _fit(model, seen, labels, weights, training)
        name = name_of_model(model)
        with _in_our_words(name, training):
            classes = np.asarray(model.classes_).tolist()
            is_known = len(classes) == len(expected) and expected == set(classes)
        if not is_known:
            raise InputError(
                f"{name} has the classes_ {shown(classes)} after {training} with"
                f" the outcomes {shown(sorted(expected, key=str))}; pass a classifier"
                " whose classes_ are the outcomes, each once"
            )
        return cls(model=model, classes=classes, training=training)

    def chances(self, take: Callable[[Rows], Any], rows: Rows) -> Reals:
        """The probability of each class for some rows; ``take`` returns what is seen.

        Some are asked about again, the last one first: the answer about somebody
        may not depend on who else is asked about.
        """
        if not len(rows):
            return np.zeros((0, len(self.classes)))
        chances = self._answer(take(rows), len(rows))
        places = np.unique(np.linspace(0, len(rows) - 1, _AGAIN).astype(int))
        places = places[::-1]
        again = self._answer(take(rows[places]), len(places))
        if np.abs(again - chances[places]).max() > _NOISE:
            raise self._refused(
                "answered otherwise about the same rows in another order"
            )
        return chances

    def _answer(self, seen: Any, rows: int) -> Reals:
        """What predict_proba says of these rows, if it can be probabilities."""
        with _in_our_words(name_of_model(self.model), self.training):
            with _alone(self.model):
                found = self.model.predict_proba(seen)
            is_sparse = hasattr(found, "toarray")
        if found is None or is_sparse:
            what = "a sparse matrix" if is_sparse else None
            raise self._refused(f"returned {what}")
        try:
            chances = np.asarray(found)
            if chances.dtype.kind not in "fiub":  # complex numbers are not cut
                chances = np.asarray(chances, dtype=object).astype(float)
        except Exception as problem:
            raise self._refused(f"returned no numbers ({_said(problem)})") from problem
        wanted = (rows, len(self.classes))
        if chances.shape != wanted:
            raise self._refused(f"returned the shape {chances.shape}, not {wanted}")
        return self._probabilities(chances.astype(float))

    def _probabilities(self, chances: Reals) -> Reals:
        """Refuse numbers that are not between 0 and 1 or do not sum to 1."""
        if not np.isfinite(chances).all():
            raise self._refused("returned values that are not finite")
        least = chances.min()
        most = chances.max()
        if least < -_ROUNDING or most > 1 + _ROUNDING:
            raise self._refused(f"returned values from {least:.4g} to {most:.4g}")
        sums = chances.sum(axis=1)
        worst = sums[np.abs(sums - 1).argmax()]
        if abs(worst - 1) > _ROUNDING:
            raise self._refused(f"returned a row that sums to {worst:.4g}")
        return chances.clip(0.0, 1.0)

    def _refused(self, what: str) -> InputError:
        return InputError(
            f"predict_proba of {name_of_model(self.model)} {what} after"
            f" {self.training}; pass a classifier that returns a row for each row and a"
            " column for each of classes_, of probabilities from 0 to 1 that sum to 1"
        )


def _said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {first_line(problem)}"


@contextmanager
def _in_our_words(name: str, training: str) -> Iterator[None]:
    """Say whose exception it is, and when it came."""
    try:
        yield
    except BaseException as problem:
        # a library's panic is none
        if not isinstance(problem, Exception) and not is_foreign(problem):
            raise
        raise InputError(
            f"{name} raised {_said(problem)}, in {training}; mend the model, or pass"
            " another classifier with fit, predict_proba and classes_"
        ) from problem


@contextmanager
def _alone(model: Any) -> Iterator[None]:
    """On a busy machine threads wait for each other far longer than they save.

    Weights go to the last step by its name, whatever an outer pipeline routes.
    """
    from sklearn import config_context
    from threadpoolctl import threadpool_limits

    last = _last_step(model)
    # For scikit-learn None is one thread; other libraries start as many as there are
    # cores, whatever the limit.
    free = getattr(last, "n_jobs", 0) is None and not type(last).__module__.startswith(
        "sklearn."
    )
    if free:
        last.n_jobs = 1
    with threadpool_limits(1), config_context(enable_metadata_routing=False):
        yield
    if free:  # a failure ends the search, and this copy with it
        last.n_jobs = None


def _last_step(model: Any) -> Any:
    """The classifier itself, at the end of a pipeline or alone."""
    from sklearn.pipeline import Pipeline

    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def _fit(
    model: Any,
    seen: Any,
    labels: NDArray[Any],
    weights: Reals,
    training: str,
) -> None:
    """Train with weights, which a pipeline hands to its last step."""
    path = []
    part = model
    while part is not _last_step(model):  # pipelines, one inside the other
        step, part = part.steps[-1]
        path.append(step)
    name = "__".join([*path, "sample_weight"])
    try:
        with _in_our_words(name_of_model(model), training), _alone(model):
            model.fit(seen, labels, **{name: weights})
    except InputError as problem:
        if not isinstance(problem.__cause__, TypeError | ValueError):
            raise
        raise InputError(
            f"{name_of_model(model)} could not be trained on the columns of the table"
            f" with sample weights, in {training} ({first_line(problem.__cause__)});"
            " pass a classifier whose fit takes sample_weight, or a Pipeline that"
            " prepares the columns for one (fills gaps, encodes texts) and leaves all"
            " rows there"
        ) from problem.__cause__
