"""FairMaxEnt: the front door as a scikit-learn estimator, and a sampler."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import factorize
from fairmaxent.data.draws import RandomState
from fairmaxent.data.table import Reals
from fairmaxent.debiasing import Fit, debias
from fairmaxent.distribution import Evidence
from fairmaxent.errors import (
    ColumnError,
    DependencyError,
    InfeasibleError,
    InputError,
    LevelError,
)
from fairmaxent.fit.request import Request
from fairmaxent.options import storing_options_of

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin
    from sklearn.utils import InputTags, Tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        check_array,
        check_consistent_length,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise DependencyError(
        "FairMaxEnt needs scikit-learn 1.6 or later, which is not installed; pip"
        " install 'scikit-learn>=1.6'"
    ) from error

with suppress(ImportError):
    # Where imbalanced-learn is installed, importing it teaches scikit-learn's metadata
    # routing the method fit_resample; that has to happen before the class below is
    # made, or it would have no set_fit_resample_request.
    import imblearn.base  # noqa: F401

_WEIGHT = "\0weight"  # no user has a column of this name
SENSITIVE = "sensitive_feature"
_Kind = Literal["table", "series", "array", "list"]


class _NoWeightsError(InfeasibleError, AttributeError):
    """No weight per row is fair.

    It is an AttributeError, too: code that looks at every attribute skips this one.
    """


def table_of_array(X: Any) -> Any:
    """Its columns as x0, x1, … of a table."""
    names = [f"x{index}" for index in range(X.shape[1])]
    table = frames.load_library("pandas").DataFrame(X, columns=names)
    return table.infer_objects()


@dataclass(frozen=True, eq=False)
class Joined:
    """The table of a fit: X, then the sensitive features, then y."""

    columns: dict[str, frames.Column]
    outcomes: tuple[str, ...]
    protected: list[str]
    extra: list[str]  # the sensitive features

    @property
    def outcome(self) -> str:
        """The outcome; of several, the first."""
        return self.outcomes[0]


class DebiasingEstimator(BaseEstimator):  # type: ignore[misc]
    """What estimators do with X, y and sensitive features: join them to one table."""

    privacy: Any = None
    likely: Any = None
    protected: Any
    _fitting = "fit"  # the method that takes sensitive features in a pipeline
    _takes_several = False  # outcomes, as the columns of a table
    _x_form: "InputForm"
    _y_form: "InputForm"

    def _joined(self, X: Any, y: Any, sensitive_features: Any) -> Joined:
        """Check them as scikit-learn does, and join them."""
        features = self._open_features(X, y)
        check_consistent_length(X, y, sensitive_features)
        backend = features.implementation
        outcome, self._y_form = read_columns(y, "y", backend)
        is_named = self._takes_several and self._y_form.kind == "table"
        if len(outcome) > 1 and not is_named:
            raise InputError(
                f"y has {len(outcome)} columns; multioutput targets are not supported:"
                " pass one column"
            )
        if self._may_look:
            for column in outcome.values():
                _check_classes(column)
        else:  # their types come from the rows, e.g. the length of the longest text
            self._x_form = replace(self._x_form, dtype=None)
            self._y_form = replace(self._y_form, dtype=None)
        extra: dict[str, frames.Column] = {}
        if sensitive_features is not None:
            extra, _ = read_columns(sensitive_features, SENSITIVE, backend)
        for name, times in Counter([*features.columns, *extra, *outcome]).items():
            if times > 1:
                raise ColumnError(
                    f"more than one column {name!r} in X, sensitive_features and y;"
                    " keep or rename one"
                )
        own = {name: features.get_column(name) for name in features.columns}
        return Joined(
            columns=own | extra | outcome,
            outcomes=self._y_form.names,
            protected=self._protected_names(features.columns, list(extra)),
            extra=list(extra),
        )

    @property
    def _may_look(self) -> bool:
        """Whether rows may be looked at before the fit; what is private is declared."""
        return self.privacy is None

    def _open_features(self, X: Any, y: Any) -> nw.DataFrame[Any]:
        """X as a table, checked and recorded the way scikit-learn does it."""
        kind = _kind_of(X)
        table = X
        dtype = None
        if kind != "table":
            # Otherwise one text would make all cells text.
            if kind == "list" and not self._may_look:
                X = np.array(X, dtype=object)
            finite = "allow-nan" if self._may_look else False
            X = check_array(
                X,
                dtype=None,
                ensure_all_finite=finite,
                estimator=self,
            )
            dtype = X.dtype
            table = table_of_array(X)
        features = frames.open_frame(table)
        validate_data(
            self,
            X=X,
            y=y,
            skip_check_array=True,
        )
        self._x_form = InputForm(
            kind,
            tuple(features.columns),
            tuple(features.columns),
            dtype,
            flat=False,
        )
        return features

    def _protected_names(
        self, features: Sequence[str], extra: Sequence[str]
    ) -> list[str]:
        """The protected columns by name; positions in X are looked up."""
        if self.protected is None and self.likely is None and not extra:
            raise InputError(
                "no protected column; name columns of X, e.g. protected='sex' or"
                " protected=0, or pass sensitive_features. In a pipeline they arrive"
                " only with sklearn.set_config(enable_metadata_routing=True) and"
                f" {type(self).__name__}(…).set_{self._fitting}_request("
                "sensitive_features=True)"
            )

        columns: Any = self.protected
        if columns is None:
            columns = extra
        elif isinstance(columns, str) or not isinstance(columns, Sequence):
            columns = [columns]
        for column in columns:
            is_whole = isinstance(column, int | np.integer) and not isinstance(
                column, bool
            )
            if not isinstance(column, str) and not (
                is_whole and -len(features) <= column < len(features)
            ):
                raise ColumnError(
                    "protected holds"
                    f" {column if is_whole else f'a {type(column).__name__}'}; pass"
                    f" names or positions (from 0) of the {len(features)} columns of X;"
                    " values themselves go to fit as sensitive_features"
                )
        return [
            column if isinstance(column, str) else features[column]
            for column in columns
        ]


class FairMaxEnt(OneToOneFeatureMixin, DebiasingEstimator):  # type: ignore[misc]
    """`fairmaxent.debias` for pipelines: draw a fair table, or weigh the rows.

    `fit_resample` gives new rows, `sample_weight_` weights for the rows as they are,
    and `fit_weigh` rows with weights to train on, which works for relabelled outcomes
    too. Tables and series of pandas, polars and pyarrow, arrays and lists come back in
    the form they came in, with the same columns and dtypes; those of a private fit have
    the types that were declared. A step that changes the training rows needs the
    Pipeline of imbalanced-learn.

    Parameters
    ----------
    protected
        The column or columns of X whose groups are compared, by name or position. None:
        the columns that `sensitive_features` brings to `fit`.
    rows
        How many rows `fit_resample` draws; None: the same number as X has.
    **options
        All other options of :func:`fairmaxent.debias`, by the same names. Columns of an
        array are named x0, x1, …, and the outcome has the name of the series y, or
        ``"y"``; a table y has several outcomes. Every column of X is kept, even one
        that looks like an identifier, because X comes back with the columns it came
        with; so there is no `release`.

    Attributes
    ----------
    fit_ : Fit
        What was learned, with its certificate; its table is X, then the sensitive
        features, then y.
    sampling_strategy_ : dict
        How many rows of each class (of the first outcome) `fit_resample` drew.

    Examples
    --------
    >>> import numpy as np
    >>> groups = [0, 0, 0, 1, 1, 1, 1, 1]
    >>> X = np.column_stack([groups * 8, [5, 6, 5, 6, 5, 6, 5, 6] * 8])
    >>> y = np.array([0, 0, 1, 0, 1, 1, 1, 1] * 8)
    >>> X_fair, y_fair = FairMaxEnt(protected=0, random_state=0).fit_resample(X, y)
    >>> [float(y_fair[X_fair[:, 0] == group].mean()) for group in (0, 1)]
    [0.625, 0.625]
    """

    # imbalanced-learn's pipeline asks for fit's wishes too, though it calls only
    # fit_resample; one request should do.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012

    _fitting = "fit_resample"
    _takes_several = True

    @storing_options_of(Request, without=("progress", "keep_columns", "release"))
    def __init__(
        self,
        protected: str | int | Sequence[str | int] | None = None,
        *,
        rows: int | None = None,
    ) -> None:
        self.protected = protected
        self.rows = rows

    def __str__(self) -> str:
        # which scikit-learn's Pipeline says of a step that it refuses
        return f"{self!r}, a sampler: use the Pipeline of imblearn.pipeline"

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
    ) -> "FairMaxEnt":
        """Learn the fair distribution.

        `sensitive_features` are columns, not in X, that join X for the fit: a series, a
        table or an array. They are drawn with the rest but left out of what
        `fit_resample` and `sample` return; ``fit_.sample`` has them. In a pipeline they
        arrive by metadata routing:
        ``FairMaxEnt().set_fit_resample_request(sensitive_features=True)``.
        """
        self._learn(X, y, sensitive_features)
        return self

    def _learn(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
    ) -> Any:
        """Fit, and return the table that was fitted."""
        joined = self._joined(X, y, sensitive_features)
        table = frames.build(joined.columns)
        asked = FairMaxEnt.__init__.options  # type: ignore[attr-defined]
        options = {name: getattr(self, name) for name in asked}
        self.fit_ = debias(
            table,
            joined.outcomes,
            joined.protected,
            keep_columns=list(joined.columns),  # X comes back as it came
            **options,
        )
        return table

    def fit_weigh(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
    ) -> tuple[Any, Any, Reals]:
        """Learn the fair distribution; return X, y and weights to train on.

        A model takes them by ``fit(X, y, sample_weight=weights)``. Rows stay as they
        are; if they are relabelled, each appears once for each outcome that it has a
        weight for.
        """
        table = self._learn(X, y, sensitive_features)
        weighed = self.fit_.weigh(table, weight_name=_WEIGHT)
        return (
            *self._restored(weighed),
            nw.from_native(weighed, eager_only=True).get_column(_WEIGHT).to_numpy(),
        )

    def fit_resample(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
    ) -> tuple[Any, Any]:
        """Learn the fair distribution and draw X and y from it, `rows` long."""
        self.fit(X, y, sensitive_features=sensitive_features)
        rows = self.rows
        if rows is None:
            rows = self.fit_.table.size
        drawn = self.fit_.sample(rows)
        outcomes = nw.from_native(drawn, eager_only=True)[self._y_form.names[0]]
        self.sampling_strategy_ = dict(Counter(outcomes.to_list()))
        return self._restored(drawn)

    def sample(
        self,
        n: int,
        *,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> tuple[Any, Any]:
        """Draw `n` new rows as X and y.

        The options are those of :meth:`fairmaxent.debiasing.Fit.sample`.
        """
        check_is_fitted(self)
        return self._restored(
            self.fit_.sample(
                n,
                given=given,
                random_state=random_state,
                iid=iid,
            )
        )

    def _restored(self, table: Any) -> tuple[Any, Any]:
        rows = nw.from_native(table, eager_only=True)
        return self._x_form.restore(rows), self._y_form.restore(rows)

    @property
    def sample_weight_(self) -> Reals:
        """One weight per row of X, 1 on average.

        Raises `InfeasibleError` if weights alone cannot be fair.
        """
        check_is_fitted(self)
        fitted: Fit = self.fit_
        if fitted.soft is not None:
            raise _NoWeightsError(
                "a relabelled row has a weight for each outcome; fit_weigh(X, y) gives"
                " rows with weights to train on, and fit_.weights() the weights alone"
            )

        try:
            return fitted.weights()
        except InfeasibleError as problem:
            raise _NoWeightsError(str(problem)) from problem

    def __sklearn_tags__(self) -> "_SamplerTags":
        """What scikit-learn and imbalanced-learn may pass to it."""
        tags = super().__sklearn_tags__()
        parts = {part.name: getattr(tags, part.name) for part in fields(Tags)}
        parts |= {
            "estimator_type": "sampler",
            "input_tags": _FrameTags(
                string=True,
                categorical=True,
                allow_nan=True,
            ),
        }
        tags.target_tags.required = True
        return _SamplerTags(**parts)


class _FrameTags(InputTags):  # type: ignore[misc]
    """Input tags with the one that imbalanced-learn adds."""

    dataframe = True


class _SamplerTags(Tags):  # type: ignore[misc]
    """Tags with the one that imbalanced-learn adds.

    It says whether rows are picked from those given. These are new ones.
    """

    sampler_tags = SimpleNamespace(sample_indices=False)


# ---------------------------------------------------------------- the form of X and y


@dataclass(frozen=True, eq=False)
class InputForm:
    """How X or y came in, so that drawn columns go back the same way."""

    kind: _Kind
    names: tuple[str, ...]  # in the table of the fit
    # as the caller has them: pandas also has columns called 0, or not at all
    labels: tuple[Any, ...]
    # of an array; None: not an array, or drawn values keep the type that was declared
    dtype: Any
    flat: bool  # one-dimensional

    def restore(self, drawn: nw.DataFrame[Any]) -> Any:
        """Return these columns of a drawn table as what they came from."""
        if self.kind == "table":
            table = drawn.select(self.names).to_native()
            if self.names == self.labels:
                return table
            return table.set_axis(self.labels, axis=1)

        column = drawn.get_column(self.names[0])
        if self.kind == "series":
            label = self.labels[0]
            if isinstance(label, str):
                return column.alias(label).to_native()
            return column.to_native().rename(label)

        values = (column if self.flat else drawn.select(self.names)).to_numpy()
        if self.dtype is not None:
            values = values.astype(self.dtype)
        if self.kind == "list":
            return values.tolist()

        return values


def read_columns(
    data: Any, default: str, backend: Any
) -> tuple[dict[str, frames.Column], InputForm]:
    """Read y or sensitive features: columns under names of text, and how they came."""
    kind = _kind_of(data)
    dtype = None
    if kind in ("array", "list"):
        dtype = np.asarray(data).dtype
    columns = frames.columns_of(data, backend)
    labels = tuple(column.name for column in columns)
    plain = default if len(columns) == 1 else default + "{}"
    names = tuple(
        label if label and isinstance(label, str) else plain.format(i)
        for i, label in enumerate(labels)
    )
    for column in columns:
        if column.implementation != backend:
            raise InputError(
                f"{default} comes from {column.implementation.value} and X from"
                f" {backend.value}; pass both from one library, or {default} as an"
                " array"
            )

    form = InputForm(
        kind,
        names,
        labels,
        dtype,
        flat=True,
    )
    return dict(zip(names, columns, strict=True)), form


def _kind_of(data: Any) -> _Kind:
    if frames.is_table(data):
        return "table"
    if nw.dependencies.is_into_series(data):
        return "series"
    return "list" if isinstance(data, list) else "array"


def _check_classes(column: frames.Column) -> None:
    """Refuse what scikit-learn does not see as a column of classes."""
    codes, classes = factorize(column)
    if codes.min() < 0:
        raise LevelError(
            "y has missing values; drop those rows, or give them their own class"
        )

    check_classification_targets(column.to_numpy())
    if len(classes) < 2:
        raise LevelError(
            f"y has one class ({classes.to_list()[0]!r}); at least two classes are"
            " needed to compare"
        )
