"""Methods that need a model.

Massaging changes outcomes; those of fairlearn and OxonFair train the classifier itself.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from fairmaxent.baselines.data import CodedData, MethodOptions, WeightedRows, raw
from fairmaxent.data import frames
from fairmaxent.data.roles import ColumnNames
from fairmaxent.data.table import Axes, Codes, Mask, Reals
from fairmaxent.errors import InputError, first_line

OXONFAIR = "OxonFair"
_DIFFERENCE = 0.01  # between shares, that OxonFair may leave: fairlearn's default


@dataclass(frozen=True, eq=False)
class CodedFold:
    """A fold in codes: people to learn from, and others to decide about."""

    classifier: Any  # a pipeline that takes codes
    columns: Codes  # all but the outcome
    outcomes: Codes
    others: Codes  # columns of the people to decide about
    protected: Axes  # places of the protected columns
    sizes: Axes  # levels of each column
    seed: int

    def groups(self, columns: Codes) -> Codes:
        """The joint group of each row."""
        levels = tuple(columns[:, place].astype(int) for place in self.protected)
        sizes = [self.sizes[place] for place in self.protected]
        return np.ravel_multi_index(levels, sizes)

    @property
    def weight_name(self) -> str:
        """By which name the last step of the classifier is given weights."""
        return f"{self.classifier.steps[-1][0]}__sample_weight"

    def decided(self, model: Any, **known: Any) -> Codes:
        """Train a model of fairlearn's, and return what it decides about the others.

        ``known`` is what else it must know to decide.
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
        decisions = model.predict(self.others, random_state=self.seed, **known)
        return np.where(decisions, good, bad)


def exponentiated_gradient(fold: CodedFold) -> Codes:
    """Agarwal et al. 2018: a random choice of classifiers trained with a constraint."""
    library = frames.load_library("fairlearn.reductions")
    model = library.ExponentiatedGradient(
        fold.classifier,
        library.DemographicParity(),
        sample_weight_name=fold.weight_name,
    )
    return fold.decided(model)


def threshold_optimizer(fold: CodedFold) -> Codes:
    """Hardt et al. 2016: thresholds for each group, which must be known to decide."""
    model = frames.load_library("fairlearn.postprocessing").ThresholdOptimizer(
        estimator=fold.classifier,
        constraints="demographic_parity",
        predict_method="predict_proba",
    )
    return fold.decided(model, sensitive_features=fold.groups(fold.others))


def correlation_remover(fold: CodedFold) -> Codes:
    """The other columns, in indicators, less what the protected ones tell linearly."""
    column_of_indicator = np.repeat(np.arange(len(fold.sizes)), fold.sizes)
    hidden = np.flatnonzero(np.isin(column_of_indicator, fold.protected))
    indicators = frames.load_library("sklearn.preprocessing").OneHotEncoder(
        categories=[np.arange(size) for size in fold.sizes], sparse_output=False
    )
    remover = frames.load_library("fairlearn.preprocessing").CorrelationRemover(
        sensitive_feature_ids=hidden.tolist()
    )
    model = frames.load_library("sklearn.pipeline").make_pipeline(
        indicators, remover, fold.classifier.steps[-1][1]
    )
    model.fit(fold.columns, fold.outcomes)
    return np.asarray(model.predict(fold.others), dtype=int)


def oxonfair(fold: CodedFold) -> Codes:
    """Delaney et al. 2024: thresholds for each group, found on people held out."""
    library = frames.load_library("oxonfair")
    bad, good = two_levels(fold.outcomes)
    order = np.random.default_rng(fold.seed).permutation(len(fold.outcomes))
    held, learned = np.split(order, [len(order) // 3])
    is_good = fold.outcomes == good

    def people(columns: Codes, labels: Mask) -> dict[str, Any]:
        return {"data": columns, "target": labels, "groups": fold.groups(columns)}

    model = library.FairPredictor(
        fold.classifier.fit(fold.columns[learned], is_good[learned]),
        people(fold.columns[held], is_good[held]),
    )
    metrics = library.group_metrics
    model.fit(metrics.accuracy, metrics.demographic_parity, _DIFFERENCE)
    unknown = np.zeros(len(fold.others), dtype=bool)  # which it does not look at
    decisions = model.predict(people(fold.others, unknown))
    return np.where(decisions, good, bad)


TRAINED: Mapping[str, Callable[[CodedFold], Codes]] = {
    "ExponentiatedGradient": exponentiated_gradient,
    "ThresholdOptimizer": threshold_optimizer,
    "CorrelationRemover": correlation_remover,
    OXONFAIR: oxonfair,
}


def massaging(
    frame: Any, outcome: str, protected: ColumnNames, **options: Unpack[MethodOptions]
) -> WeightedRows:
    """Change the outcomes of the people nearest to the border.

    So many are changed that every joint group has the same share of them. Kamiran and
    Calders, "Classifying without discriminating", 2009. People are ranked by
    scikit-learn's logistic regression of the same rows; there must be two outcomes.
    """
    encoder = frames.load_library("sklearn.preprocessing").OneHotEncoder()
    linear = frames.load_library("sklearn.linear_model")
    ranker = linear.LogisticRegression(max_iter=1000)
    data = CodedData.read(frame, outcome, protected, **options)
    outcomes, groups = np.divmod(data.cells, data.empirical.shape[1])
    good = outcomes == two_levels(outcomes)[1]
    codes = np.delete(data.roles.domain.encode(frame), data.roles.outcome, axis=1)
    seen = encoder.fit_transform(codes)
    changed = massaged(good, ranker.fit(seen, good).decision_function(seen), groups)
    # Each person gets their own outcome, or that of the first with the other one.
    own = np.arange(len(outcomes))
    other = np.where(changed, good.argmax(), good.argmin())
    columns = {name: (data.frame.get_column(name), own) for name in data.frame.columns}
    columns[outcome] = (
        data.frame.get_column(outcome),
        np.where(changed == good, own, other),
    )
    return raw(frames.gather(columns), outcome, protected, **options)


def massaged(good: Mask, scores: Reals, groups: Codes) -> Mask:
    """Promote the best-scored of a group below the overall share.

    Of a group above it, demote the worst-scored. For two groups the numbers of changes
    are the paper's M = (P(+ | a) − P(+ | b))·|a|·|b| / N in each of them.
    """
    result = good.copy()
    share = good.mean()
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        changes = round(len(rows) * share - good[rows].sum())
        promotes = changes > 0
        movable = rows[good[rows] != promotes]
        farness = -scores[movable] if promotes else scores[movable]
        border = movable[np.argsort(farness, kind="stable")]
        result[border[: abs(changes)]] = promotes
    return result


def two_levels(outcomes: Codes) -> tuple[int, int]:
    """The outcomes that there are, the second taken for the good one.

    All of this is the same the other way round.
    """
    levels = np.unique(outcomes)
    if len(levels) != 2:
        raise InputError(
            f"it needs an outcome of two levels, and here there are {len(levels)}"
        )
    return int(levels[0]), int(levels[1])
