"""fairmaxent and other methods on one table: rates of the data they make, and of a
classifier trained on them.
"""

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent import baselines
from fairmaxent.baselines.models import FAIRLEARN, Lesson
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.table import Codes
from fairmaxent.errors import FairMaxEntError, LevelError
from fairmaxent.fit.option_values import Model
from fairmaxent.fit.pipeline import fit_frame
from fairmaxent.fit.request import Request
from fairmaxent.metrics.definitions import representation_rate, statistical_rate
from fairmaxent.metrics.group_rates import Rate
from fairmaxent.metrics.intervals import Interval
from fairmaxent.progress import Progress, silent

ClassifierName = Literal["tree", "logistic"]
Training = tuple[Any, NDArray[np.float64] | None]  # rows to train on, and their weights
Method = Callable[[Any, Request, int], Training]
RAW = "raw"

_WEIGHT = "\0weight"  # no column of a user's is called so

_EQUAL_PROBABILITIES = Model("boosting", parity="probabilities")

_BASELINES: Mapping[str, Callable[..., Any]] = {
    RAW: baselines.raw,
    "Kamiran-Calders": baselines.kamiran_calders,
    "King-Zeng": baselines.king_zeng,
    "massaging": baselines.massaging,
    "Calmon et al.": baselines.calmon,
}
# Of a fold: what a method made without its rows (both rates, and the seconds), and the
# positions of these rows with what a classifier then decided about them, which is None
# without scikit-learn.
_Fold = tuple[tuple[float, float, float], NDArray[np.intp], Codes | None]


@dataclass(frozen=True)
class Scores:
    """Means over the folds of one method, and the decisions of classifiers about
    everybody, each about a fold.

    Without scikit-learn there is no classifier, and no rate of its decisions if it
    gives nobody the outcome.
    """

    representation_rate: float
    statistical_rate: float
    accuracy: float | None
    predicted_rate: float | None
    predicted_interval: Interval | None
    """Where the rate of the decisions lies among all such people, with 95 %
    confidence.
    """
    seconds: float
    true_accuracy: float | None = None
    """Against what really happened, where that is known."""


@dataclass(frozen=True)
class Compared:
    """A method with its scores, or the reason why it refused this table."""

    method: str
    scores: Scores | None
    refused: FairMaxEntError | None


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Cross-validation on one table: each fold's rows are tested on as they are."""

    frame: nw.DataFrame[Any]
    # what fairmaxent is asked for, with the domain that all methods share
    request: Request
    folds: int
    classifier: ClassifierName
    # the level of the outcome that was true of each row; -1: not known
    truth: Codes | None = None

    @property
    def seed(self) -> int:
        """Of folds and draws."""
        return self.request.random_state or 0

    @property
    def domain(self) -> Domain:
        """How all methods read the columns."""
        return bound(
            self.request.domain or Domain.infer(self.frame.to_native()), self.frame
        )

    def run(self, progress: Progress = silent) -> Iterator[Compared]:
        """Try one method after the other; ``progress`` is called with the name of each
        before it begins.
        """
        # what is wrong with the question is no method's refusal
        self._rates(self.frame.to_native(), None)
        tried = methods(self._model())
        for number, (name, method) in enumerate(tried.items()):
            progress(name, number / len(tried))
            try:
                folds = [self._fold(method, fold) for fold in range(self.folds)]
            except FairMaxEntError as problem:
                yield Compared(name, None, problem)
                continue
            yield Compared(name, self._scores(folds), None)

    def _model(self) -> Model | None:
        """The classifier as one that takes the columns of the table; None without
        scikit-learn.
        """
        if not importlib.util.find_spec("sklearn"):
            return None
        from sklearn.preprocessing import FunctionTransformer

        seen = tuple(
            column
            for column in self.domain.attributes
            if column.name != self.request.outcome
        )
        classifier = _classifier(self.classifier)
        classifier.steps.insert(
            0, ("levels", FunctionTransformer(Domain(seen, ()).encode))
        )
        return Model(classifier)

    def _fold(self, method: Method | str, fold: int) -> _Fold:
        fold_of_row = (
            np.random.default_rng(self.seed).permutation(len(self.frame)) % self.folds
        )
        tested = np.flatnonzero(fold_of_row == fold)
        train, test = (
            self.frame[rows].to_native()
            for rows in (np.flatnonzero(fold_of_row != fold), tested)
        )
        began = time.process_time()
        if isinstance(method, str):
            decided = FAIRLEARN[method](self._lesson(train, test, fold))
            return (
                (*self._rates(train, None), time.process_time() - began),
                tested,
                decided,
            )
        rows, weights = method(train, self.request, self.seed + fold)
        seconds = time.process_time() - began
        predicted = None
        if importlib.util.find_spec("sklearn"):
            own = self._lesson(rows, test, fold)
            last = f"{own.classifier.steps[-1][0]}__sample_weight"
            own.classifier.fit(own.columns, own.outcomes, **{last: weights})
            predicted = np.asarray(own.classifier.predict(own.others), dtype=np.intp)
        return (*self._rates(rows, weights), seconds), tested, predicted

    def _lesson(self, train: Any, test: Any, fold: int) -> Lesson:
        outcome = self.domain.index(self.request.outcome)
        names, sizes = (
            tuple(np.delete(own, outcome))
            for own in (self.domain.names, self.domain.sizes)
        )
        protected = tuple(names.index(name) for name in self.request.protected_names)
        codes, others = (self.domain.encode(part) for part in (train, test))
        seen = (
            np.delete(codes, outcome, axis=1),
            codes[:, outcome],
            np.delete(others, outcome, axis=1),
        )
        return Lesson(
            _classifier(self.classifier), *seen, protected, sizes, self.seed + fold
        )

    def _scores(self, folds: Sequence[_Fold]) -> Scores:
        """Join the folds; decisions are counted over all of them, so that one without
        any is no gap.
        """
        representation, statistical, seconds = (
            float(np.mean(values))
            for values in zip(*(f[0] for f in folds), strict=True)
        )
        accuracy = None
        rate = None
        true = None
        decided = np.empty(len(self.frame), dtype=np.intp)
        for _, tested, predicted in folds:
            if predicted is None:
                decided[tested] = -1
            else:
                decided[tested] = predicted
        if (decided >= 0).all():
            outcome = self.request.outcome
            table = self.frame.to_native()
            accuracy = float(
                (
                    decided == self.domain.encode(table)[:, self.domain.index(outcome)]
                ).mean()
            )
            if self.truth is not None:
                true = float((decided == self.truth)[self.truth >= 0].mean())
            # A name of its own, or the domain's levels of the outcome would be looked
            # up once more.
            column = (
                self.domain.attribute(outcome)
                .column_of(decided)
                .alias("\0predicted")
                .to_native()
            )
            # nobody is given the favourable outcome: there is no ratio to take
            with contextlib.suppress(LevelError):
                rate = self._statistical_rate(table, column, None)
        if rate is None:
            value = None
            interval = None
        else:
            value = float(rate)
            interval = rate.interval
        return Scores(
            representation, statistical, accuracy, value, interval, seconds, true
        )

    def _rates(self, rows: Any, weights: Any) -> tuple[float, float]:
        """Both rates of what a method made."""
        how: Mapping[str, Any] = {
            "groups": self.request.groups,
            "within": self.request.within,
            "domain": self.domain,
        }
        representation = representation_rate(
            rows, self.request.protected_names, **how, weight=weights
        )
        return float(representation), float(
            self._statistical_rate(rows, self.request.outcome, weights)
        )

    def _statistical_rate(self, rows: Any, outcome: Any, weights: Any) -> Rate:
        asked = self.request
        how: Mapping[str, Any] = {
            "favourable": asked.favourable,
            "groups": asked.groups,
            "within": asked.within,
        }
        return statistical_rate(
            rows,
            outcome,
            asked.protected_names,
            **how,
            domain=self.domain,
            weight=weights,
        )


def python_name(method: str) -> str:
    """Where Python has another method."""
    if method in FAIRLEARN:
        return f"fairlearn's {method}"
    return (
        f"fairmaxent.baselines.{getattr(_BASELINES[method], '__name__', method)}(frame,"
        " outcome, protected)"
    )


def methods(model: Model | None = None) -> dict[str, Method | str]:
    """Every method, fairmaxent's first, and fairlearn's by their names; the table of
    one is made for ``model``.
    """
    ours: dict[str, Any] = {
        "fairmaxent, rows": _rows,
        "fairmaxent, weights": _weights,
        "relabel, probabilities": partial(_weights, model=_EQUAL_PROBABILITIES),
        "model": partial(_weights, model=model),
    }
    ours |= {name: _baseline(call) for name, call in _BASELINES.items()}
    return ours | {name: name for name in FAIRLEARN}


def _rows(train: Any, request: Request, seed: int) -> Training:
    """The same number of new rows."""
    return fit_frame(train, request).sample(len(train), random_state=seed), None


def _weights(
    train: Any,
    request: Request,
    seed: int,
    *,
    model: Model | None = None,
) -> Training:
    """The rows with weights, which need no seed."""
    fit = fit_frame(train, replace(request, model=model))
    weighed = nw.from_native(fit.weigh(train, name=_WEIGHT), eager_only=True)
    return weighed.drop(_WEIGHT).to_native(), weighed.get_column(_WEIGHT).to_numpy()


def _baseline(call: Callable[..., Any]) -> Method:
    """Another method: the rows with its weights or, if it has none, the same number of
    rows that it makes.
    """

    def training(train: Any, request: Request, seed: int) -> Training:
        result = call(
            train, request.outcome, request.protected_names, domain=request.domain
        )
        if isinstance(result, baselines.WeightedRows):
            return result.data.frame.to_native(), result.weights()
        return result.sample(len(train), random_state=seed), None

    return training


def _classifier(name: ClassifierName) -> Any:
    """A classifier of level codes: a tree takes them as ordered numbers, as most do who
    use one.
    """
    from sklearn.pipeline import make_pipeline

    if name == "tree":
        from sklearn.tree import DecisionTreeClassifier

        return make_pipeline(
            DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
        )
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    return make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000)
    )
