"""Methods that need a model: massaging, which changes outcomes, and fairlearn's, which
train the classifier itself.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Unpack

import numpy as np

from fairmaxent.baselines.data import CodedData, Names, Reading, WeightedRows, raw
from fairmaxent.data import frames
from fairmaxent.data.table import Codes, Mask, Reals
from fairmaxent.errors import DependencyError, InputError, first_line


@dataclass(frozen=True, eq=False)
class Lesson:
    """A fold in codes: the people to learn from, those to decide about, and the
    classifier, a pipeline of codes.
    """

    classifier: Any
    columns: Codes  # all but the outcome
    outcomes: Codes
    others: Codes  # columns of the people to decide about
    protected: tuple[int, ...]  # places of the protected columns
    sizes: tuple[int, ...]  # levels of each column
    seed: int

    def groups(self, columns: Codes) -> Codes:
        """The joint group of each row."""
        own = tuple(columns[:, place].astype(np.intp) for place in self.protected)
        return np.ravel_multi_index(
            own, [self.sizes[place] for place in self.protected]
        )

    def decided(self, model: Any, **known: Any) -> Codes:
        """Train a model of fairlearn's, and return what it decides about the others,
        given what else it must know.
        """
        bad, good = two_levels(self.outcomes)
        try:
            # about how fairlearn calls other libraries
            with warnings.catch_warnings(action="ignore"):
                model.fit(
                    self.columns,
                    self.outcomes == good,
                    sensitive_features=self.groups(self.columns),
                )
        except ValueError as problem:
            raise InputError(
                f"fairlearn could not learn from this table: {first_line(problem)}"
            ) from problem
        return np.where(
            model.predict(self.others, random_state=self.seed, **known), good, bad
        )


def exponentiated_gradient(lesson: Lesson) -> Codes:
    """Agarwal et al. 2018: a random choice among classifiers that were trained under a
    constraint.
    """
    library = _library("fairlearn.reductions")
    name = f"{lesson.classifier.steps[-1][0]}__sample_weight"
    parity = library.DemographicParity()
    return lesson.decided(
        library.ExponentiatedGradient(
            lesson.classifier, parity, sample_weight_name=name
        )
    )


def threshold_optimizer(lesson: Lesson) -> Codes:
    """Hardt et al. 2016: thresholds for each group, which must be known to decide."""
    how = {"constraints": "demographic_parity", "predict_method": "predict_proba"}
    model = _library("fairlearn.postprocessing").ThresholdOptimizer(
        estimator=lesson.classifier, **how
    )
    return lesson.decided(model, sensitive_features=lesson.groups(lesson.others))


def correlation_remover(lesson: Lesson) -> Codes:
    """The other columns, as indicators, without what the protected ones tell of them in
    a straight line.
    """
    hidden = np.flatnonzero(
        np.isin(np.repeat(np.arange(len(lesson.sizes)), lesson.sizes), lesson.protected)
    )
    indicators = _library("sklearn.preprocessing").OneHotEncoder(
        categories=[np.arange(size) for size in lesson.sizes], sparse_output=False
    )
    remover = _library("fairlearn.preprocessing").CorrelationRemover(
        sensitive_feature_ids=hidden.tolist()
    )
    model = _library("sklearn.pipeline").make_pipeline(
        indicators, remover, lesson.classifier.steps[-1][1]
    )
    return np.asarray(
        model.fit(lesson.columns, lesson.outcomes).predict(lesson.others), dtype=np.intp
    )


FAIRLEARN: Mapping[str, Callable[[Lesson], Codes]] = {
    "ExponentiatedGradient": exponentiated_gradient,
    "ThresholdOptimizer": threshold_optimizer,
    "CorrelationRemover": correlation_remover,
}


def massaging(
    frame: Any, outcome: str, protected: Names, **reading: Unpack[Reading]
) -> WeightedRows:
    """Change the outcomes of the people nearest to the border, until every joint group
    has the same share of them.

    Kamiran and Calders, "Classifying without discriminating", 2009. People are ranked
    by scikit-learn's logistic regression of the same rows; there must be two outcomes.
    """
    encoder = _library("sklearn.preprocessing").OneHotEncoder()
    ranker = _library("sklearn.linear_model").LogisticRegression(max_iter=1000)
    data = CodedData.read(frame, outcome, protected, **reading)
    outcomes, groups = np.divmod(data.cells, data.empirical.shape[1])
    good = outcomes == two_levels(outcomes)[1]
    own = np.arange(len(outcomes))
    seen = encoder.fit_transform(
        np.delete(data.roles.domain.encode(frame), data.roles.outcome, axis=1)
    )
    changed = massaged(good, ranker.fit(seen, good).decision_function(seen), groups)
    origin = np.where(
        changed == good, own, np.where(changed, good.argmax(), good.argmin())
    )
    columns = {
        name: (data.frame.get_column(name), origin if name == outcome else own)
        for name in data.frame.columns
    }
    return raw(frames.gather(columns), outcome, protected, **reading)


def massaged(good: Mask, scores: Reals, groups: Codes) -> Mask:
    """Promote the best-scored of a group below the overall share, demote the
    worst-scored of one above it.

    For two groups the numbers of changes are the paper's M = (P(+ | a) − P(+ |
    b))·|a|·|b| / N in each of them.
    """
    result = good.copy()
    share = good.mean()
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        changes = round(len(rows) * share - good[rows].sum())
        movable = rows[good[rows] != (changes > 0)]
        border = movable[
            np.argsort(
                -scores[movable] if changes > 0 else scores[movable], kind="stable"
            )
        ]
        result[border[: abs(changes)]] = changes > 0
    return np.asarray(result)


def two_levels(outcomes: Codes) -> tuple[int, int]:
    """The outcomes that there are, the second taken for the good one: all of this is
    the same the other way round.
    """
    levels = np.unique(outcomes)
    if len(levels) != 2:
        raise InputError(
            f"it needs an outcome of two levels, and here there are {len(levels)}"
        )
    return int(levels[0]), int(levels[1])


def _library(module: str) -> Any:
    name = {"sklearn": "scikit-learn"}.get(library := module.split(".")[0], library)
    if not frames.has_library(library):
        raise DependencyError(
            f"it needs {name}, which is not installed; pip install {name}"
        )
    return import_module(module)
