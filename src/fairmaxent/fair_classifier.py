"""FairClassifier: a model that decides equally, like every other to use."""

from collections.abc import Sequence
from dataclasses import fields
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.table import Reals
from fairmaxent.debiasing import Fit, debias
from fairmaxent.engines.lazy_frame import fresh_name
from fairmaxent.errors import ColumnError, InputError
from fairmaxent.estimator import (
    SENSITIVE,
    DebiasingEstimator,
    Joined,
    read_columns,
    table_of_array,
)
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.models import Model
from fairmaxent.fit.request import Request
from fairmaxent.options import storing_options_of
from fairmaxent.relabelling.labellers import Classroom, readable_by_models

# isort: split
# After ours, which says what to install if there is no scikit-learn.
from sklearn.base import ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Tags, column_or_1d, get_tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

_WEIGHT = "sample_weight"
_FAIR = "\0weight"  # no user has a column of this name
# Options of debias that a model leaves no room for, and those about new rows.
_OTHERS = (
    "equal_means",
    "target",
    "largest_weight",
    "forbid",
    "privacy",
    "likely",
    "smallest_group",
)
_OF_ROWS = ("base", "base_share", "detail", "release", "random_state", "keep_columns")
_OWN = ("model", "estimate", "weight", "progress")
_OF_MODEL = [field.name for field in fields(Model) if field.name != "estimator"]


class FairClassifier(ClassifierMixin, DebiasingEstimator):  # type: ignore[misc]
    """Your classifier or pipeline, trained so that it decides equally for all groups.

    A thin door to :func:`fairmaxent.debias` with ``model=``: the training table is made
    for this model, which is then an ordinary one. It can be cloned, cross-validated,
    searched over (``estimator__…``), pickled, and stand at the end of a pipeline.

    Parameters
    ----------
    estimator
        The classifier, a pipeline that ends with one, or a name: ``"logistic"`` (the
        default), ``"boosting"`` or ``"decision tree"``, as :class:`Model` takes them.
    protected
        The column or columns of X whose groups are compared, by name or position. None:
        the columns that ``sensitive_features`` brings to `fit`.
    favourable
        The good outcome; by default the last of `classes_`, as in scikit-learn.
    **options
        Those of :class:`Model` (parity, hide_protected, threshold, decided) and of
        :func:`fairmaxent.debias`, by the same names. With ``hide_protected=True``,
        `predict` does not need the protected columns.

    Attributes
    ----------
    estimator_ : object
        The trained classifier itself, which knows nothing of fairness. It takes the
        columns of X, or arrays if it was given arrays; a model by name takes tables.
    classes_ : ndarray
        The outcomes, in the order of the columns of `predict_proba`.
    fit_ : Fit
        The table that it learned from, with everything there is to know about it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = np.column_stack([group, rng.normal(size=2000) + group])
    >>> y = (X[:, 1] + rng.normal(size=2000) > 0).astype(int)
    >>> model = FairClassifier("logistic", protected=0).fit(X, y)
    >>> decided = model.predict(X)
    >>> [round(float(decided[group == one].mean()), 1) for one in (0, 1)]
    [0.7, 0.7]
    """

    @storing_options_of(Model, Request, without=(*_OTHERS, *_OF_ROWS, *_OWN))
    def __init__(
        self,
        estimator: Any = None,
        protected: str | int | Sequence[str | int] | None = None,
        *,
        favourable: object = None,
    ) -> None:
        self.estimator = estimator
        self.protected = protected
        self.favourable = favourable

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> "FairClassifier":
        """Make the table for the model, and train it.

        ``sensitive_features`` are columns, not in X, that join X: a series, a table or
        an array. If the model sees them, `predict` needs them too.
        """
        if isinstance(y, np.ndarray):
            y = column_or_1d(y, warn=True)
        joined = self._joined(_with_text_names(X), y, sensitive_features)
        outcome = joined.columns[joined.outcome].to_numpy()
        kind = type_of_target(outcome, input_name="y")
        if kind != "binary":
            raise InputError(
                "Only binary classification is supported. The type of the target is"
                f" {kind}; pass an outcome of two levels"
            )
        self.classes_ = np.unique(outcome)
        self._joined_names = joined.extra
        self._hidden = tuple(joined.protected) if self.hide_protected else ()

        table, weight = _weighted(joined, sample_weight)
        asked = FairClassifier.__init__.options  # type: ignore[attr-defined]
        options = {name: getattr(self, name) for name in asked}
        of_model = {name: options.pop(name) for name in _OF_MODEL}
        self.fit_: Fit = debias(
            table,
            joined.outcome,
            joined.protected,
            favourable=self._good_class,
            weight=weight,
            model=Model(self._student(), **of_model),
            **options,
        )
        trained = self._trained_on(table, joined.outcome, weight)
        self.estimator_ = trained.steps[-1][1] if self._takes_arrays else trained
        return self

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Decide: for the good outcome from the threshold on."""
        chances = self.predict_proba(X, sensitive_features=sensitive_features)
        is_good = self.classes_ == self._good_class
        decided = chances[:, is_good] > self.threshold
        places = np.where(decided[:, 0], is_good.argmax(), is_good.argmin())
        return self.classes_[places]

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Reals:
        """The probability of each of `classes_`, as the trained model has it."""
        check_is_fitted(self)
        seen = self._seen(X, sensitive_features)
        found = np.asarray(self.estimator_.predict_proba(seen), dtype=float)
        chances = np.zeros((len(found), len(self.classes_)))
        chances[:, np.isin(self.classes_, self.estimator_.classes_)] = found
        return chances

    def report(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report for readers who did not run the fit: :meth:`Fit.report`."""
        check_is_fitted(self)
        self.fit_.report(path, **options)

    @property
    def certificate_(self) -> Certificate:
        """What was reached, and what is expected of the model's decisions."""
        check_is_fitted(self)
        return self.fit_.certificate

    @property
    def weights_(self) -> Reals:
        """What it learned from: a weight for each row, or for each row and outcome."""
        check_is_fitted(self)
        return self.fit_.weights()

    def __sklearn_tags__(self) -> Tags:
        """Those of the classifier; fairness may cost accuracy, and there are two
        classes.
        """
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = False
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    # ------------------------------------------------------------ what the model sees

    @property
    def _good_class(self) -> Any:
        """The good outcome, among the classes."""
        if self.favourable is None:
            return self.classes_.tolist()[-1]
        return self.favourable

    @property
    def _takes_arrays(self) -> bool:
        """Whether the model was given arrays, which it then learns from."""
        is_named = self.estimator is None or isinstance(self.estimator, str)
        return self._x_form.kind != "table" and not is_named

    def _student(self) -> Any:
        """The model as the closed loop trains it, on columns of a table."""
        if not self._takes_arrays:
            return self.estimator
        return make_pipeline(FunctionTransformer(np.asarray), self.estimator)

    def _trained_on(self, table: Any, outcome: str, weight: str | None) -> Any:
        """The trained model; one of equal probabilities has to be trained yet."""
        if self.fit_.student is not None:
            return self.fit_.student
        weighed = frames.open_frame(self.fit_.weigh(table, weight_name=_FAIR))
        good = weighed.get_column(outcome).to_numpy() == self._good_class
        classroom = Classroom.of(
            weighed,
            outcome,
            good,
            self.estimator,
            hidden=[name for name in (_FAIR, weight) if name is not None],
            unused=self.certificate_.left_out_columns,
        )
        fair = weighed.get_column(_FAIR).to_numpy()
        return classroom.train(np.arange(len(good)), good, fair).learned.model

    def _seen(self, X: Any, sensitive_features: Any) -> Any:
        """What the model sees of these people, in the form that it learned from."""
        features = self._opened(X)
        extra = [name for name in self._joined_names if name not in self._hidden]
        columns = {
            name: features.get_column(name)
            for name in self._x_form.names
            if name not in self._hidden
        }
        if extra:
            if sensitive_features is None:
                raise ColumnError(
                    f"the model sees {', '.join(map(repr, extra))}; pass"
                    " sensitive_features, or fit it with hide_protected=True"
                )
            given, _ = read_columns(
                sensitive_features, SENSITIVE, features.implementation
            )
            columns |= dict(zip(self._joined_names, given.values(), strict=True))
        table = frames.build(columns)
        if self._takes_arrays:
            return np.asarray(table)
        return readable_by_models(frames.open_frame(table)).to_native()

    def _opened(self, X: Any) -> nw.DataFrame[Any]:
        """X as a table with the columns of the fit; hidden ones may be missing."""
        X = _with_text_names(X)
        if self._x_form.kind != "table" or not frames.is_table(X):
            X = check_array(
                X, dtype=None, ensure_all_finite="allow-nan", estimator=self
            )
            validate_data(self, X=X, reset=False, skip_check_array=True)
            opened = frames.open_frame(table_of_array(X))
            return opened.rename(
                dict(zip(opened.columns, self._x_form.names, strict=True))
            )

        opened = frames.open_frame(X)
        missing = {*self._x_form.names} - {*self._hidden, *opened.columns}
        if self._hidden and not missing:
            return opened
        try:
            validate_data(self, X=X, reset=False, skip_check_array=True)
        except ValueError as problem:
            said = str(problem)
            if missing:
                said += (
                    "\nThe protected columns need not be there if the model is fitted"
                    " with hide_protected=True."
                )
            raise ColumnError(said) from problem
        return opened


def _with_text_names(X: Any) -> Any:
    """A table whose columns have no names is an array to scikit-learn."""
    if nw.dependencies.is_pandas_dataframe(X) and not any(
        isinstance(name, str) for name in X.columns
    ):
        return X.to_numpy()
    return X


def _weighted(joined: Joined, weight: Any) -> tuple[Any, str | None]:
    """The table of the fit, with a column of sample weights if there are any."""
    if weight is None:
        return frames.build(joined.columns), None
    name = fresh_name(_WEIGHT, list(joined.columns))
    outcome = joined.columns[joined.outcome]
    check_consistent_length(outcome, weight)
    numbers = np.asarray(weight, dtype=float)
    if numbers.ndim != 1:
        raise InputError(
            f"sample_weight has {numbers.ndim} dimensions; pass one number for each row"
        )
    column = nw.new_series(name, numbers, backend=outcome.implementation)
    return frames.build({**joined.columns, name: column}), name
