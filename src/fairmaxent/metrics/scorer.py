"""A scorer for model selection: how good a model is, less what fairness it lacks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Literal, SupportsFloat

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import factorize
from fairmaxent.data.roles import GroupsOption
from fairmaxent.errors import (
    ColumnError,
    InputError,
    Option,
    check_choice,
    checked_number,
)
from fairmaxent.fairness.compare import Compare
from fairmaxent.fairness.rates import check_rate
from fairmaxent.fairness.small_groups import SmallestGroupOption
from fairmaxent.metrics.definitions import (
    equal_opportunity,
    equalised_odds,
    statistical_rate,
)
from fairmaxent.metrics.rows import code_of, favourable_codes, outcome_column
from fairmaxent.options import like

FairnessMetric = Literal["statistical_rate", "equal_opportunity", "equalised_odds"]


def _rate_of_predictions(
    frame: Any,
    outcome: frames.Column,
    predictions: frames.Column,
    protected: list[str],
    *,
    favourable: Any,
    **how: Any,
) -> float:
    """The statistical rate of predictions.

    An outcome that nobody is predicted to have treats all the same way.
    """
    _, outcomes = factorize(outcome)
    _, values = factorize(predictions)
    predicted = values.to_list()
    both = list(dict.fromkeys([*outcomes.to_list(), *predicted]))
    levels = [both[code] for code in favourable_codes(both, favourable)]
    found = [level for level in levels if code_of(predicted, level) is not None]
    if not found:
        return 1.0
    rate = statistical_rate(frame, predictions, protected, favourable=found, **how)
    return float(rate)


_OF_PREDICTIONS: dict[FairnessMetric, Callable[..., SupportsFloat]] = {
    "statistical_rate": _rate_of_predictions,
    "equal_opportunity": equal_opportunity,
    "equalised_odds": equalised_odds,
}


@dataclass(frozen=True, eq=False)
class FairScorer:
    """A scorer for scikit-learn: rewards good models that predict fairly enough.

    The score is that of `base`, minus `penalty` times what the fairness of the
    predictions falls short of `rate`, which is above 0 and at most 1. A model that is
    fair enough gets the score of `base`: a scorer, or the name of one of
    scikit-learn's. If a model that predicts the same for everybody should not win, use
    one that punishes it, e.g. ``"balanced_accuracy"``. None: the score is the fairness
    itself. Use it as ``GridSearchCV(..., scoring=scorer)``.

    `protected` are the columns whose groups are compared, each on its own, or with
    ``groups="joint"`` their intersections. Either columns of X, by name, or by position
    if X is an array; or, if X does not have them, a pandas series or table with the
    index of the complete X; or None, if they come as `sensitive_features` by metadata
    routing. `favourable` is the outcome level or levels that are compared; None: every
    level.

    `metric` says how fairness is measured: the ``"statistical_rate"`` of the
    predictions, their ``"equal_opportunity"`` or their ``"equalised_odds"``, each the
    worst ratio between two groups. If a model predicts an outcome for nobody, all
    groups are treated the same way: the statistical rate is 1. `smallest_group` says
    which groups are too small to decide the score, as in :func:`fairmaxent.check`; if
    fewer than two are left, all of them count, so that each model has a score.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> X = pd.DataFrame({"sex": ["F", "F", "M", "M"]})
    >>> y = pd.Series([0, 1, 0, 1])
    >>> fair_scorer("sex", favourable=1)(DummyClassifier().fit(X, y), X, y)
    0.5
    """

    protected: Any = field(default=None, repr=False)
    _: KW_ONLY
    favourable: object
    rate: float = 0.8
    base: str | Callable[..., float] | None = "accuracy"
    metric: FairnessMetric = "statistical_rate"
    penalty: float = 1.0
    groups: GroupsOption = like(Compare, "groups")
    smallest_group: SmallestGroupOption = like(Compare, "smallest_group")
    # What metadata routing should pass on; sensitive features have no other use, so
    # they always are.
    requests: tuple[Any, Any] = field(default=(None, True), repr=False)

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        check_choice("metric", self.metric, FairnessMetric)
        Compare((), groups=self.groups, smallest_group=self.smallest_group)
        check_rate(Option("rate"), self.rate)
        checked_number(
            "penalty",
            self.penalty,
            "be a number, 0 or more",
            lambda penalty: 0 <= penalty < math.inf,
        )

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        sensitive_features: Any = None,
    ) -> float:
        """The score of a fitted model on these people."""
        people = _people(X, self.protected, sensitive_features)
        frame = nw.from_native(people, eager_only=True)
        predictions = outcome_column(frame, estimator.predict(X))
        flat = y
        if frames.is_table(y):  # scikit-learn also takes tables of one column
            flat = frames.columns_of(y, frame.implementation)[0].to_native()
        outcomes = outcome_column(frame, flat, what="outcomes")
        weight = None
        weighted = {}
        if sample_weight is not None:
            weight = np.asarray(sample_weight)
            weighted = {"sample_weight": sample_weight}
        fairness_of = partial(
            _OF_PREDICTIONS[self.metric],
            people,
            outcomes,
            predictions,
            list(frame.columns),
            favourable=self.favourable,
            groups=self.groups,
            weight=weight,
        )
        fairness = float(fairness_of(smallest_group=self.smallest_group))
        if math.isnan(fairness):
            fairness = float(fairness_of(smallest_group=0))
        if self.base is None:
            return fairness
        from sklearn.metrics import get_scorer  # slow to import

        score = float(get_scorer(self.base)(estimator, X, y, **weighted))
        return score - self.penalty * max(0.0, self.rate - fairness)

    def set_score_request(
        self, *, sample_weight: Any = None, sensitive_features: Any = True
    ) -> "FairScorer":
        """Say what metadata routing should pass on.

        ``sample_weight=True``, or the name under which it comes.
        """
        return replace(self, requests=(sample_weight, sensitive_features))

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn what to pass on."""
        from sklearn.utils.metadata_routing import MetadataRequest

        sample_weight, sensitive_features = self.requests
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=sample_weight)
        request.score.add_request(param="sensitive_features", alias=sensitive_features)
        return request

    def _accept_sample_weight(self) -> bool:
        """Asked by scikit-learn's searches when metadata routing is off."""
        return True


fair_scorer = FairScorer


def _people(X: Any, protected: Any, sensitive_features: Any) -> Any:
    """The protected columns of these people as a table."""
    if sensitive_features is not None:
        return _as_table(sensitive_features, X)
    if protected is None:
        raise InputError(
            "no protected column; name columns of X, e.g. fair_scorer('sex', …), or"
            " pass sensitive_features by metadata routing:"
            " sklearn.set_config(enable_metadata_routing=True)"
        )
    if hasattr(protected, "loc"):
        index = getattr(X, "index", None)
        if (
            index is None
            or not protected.index.is_unique
            or not index.isin(protected.index).all()
        ):
            raise InputError(
                Option("protected"),
                " must have every index of X once; take it from the same pandas table"
                " as X, before splitting",
            )
        return _as_table(protected.loc[index], X)
    names = protected
    if isinstance(protected, str | int | np.integer):
        names = [protected]
    if not isinstance(names, Sequence):
        raise ColumnError(
            Option("protected"),
            f" is a {type(protected).__name__}; pass names or positions of columns of"
            " X, or a pandas series or table",
        )
    if not nw.dependencies.is_into_dataframe(X):
        pandas = frames.load_library("pandas")
        X = pandas.DataFrame(np.asarray(X)).add_prefix("x")
    frame = frames.open_frame(X)
    count = len(frame.columns)
    columns = {}
    for name in names:
        if not isinstance(name, str) and -count <= name < count:
            name = frame.columns[name]
        columns[name] = frames.column(frame, name)
    return frames.build(columns)


def _as_table(columns: Any, X: Any) -> Any:
    """One column or several as a table, with names that are text."""
    parts = frames.columns_of(columns, frames.load_library("pandas"))
    if len(parts[0]) != len(X):
        raise InputError(
            f"{len(parts[0])} sensitive features for {len(X)} rows; pass one per row"
        )
    return frames.build(
        {
            str(part.name or f"sensitive_feature{number}"): part
            for number, part in enumerate(parts)
        }
    )
