"""fairmaxent and other methods on one table, by cross-validation.

Rates are those of the data that they make, and of a classifier trained on them.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent import baselines
from fairmaxent.baselines.models import OXONFAIR, TRAINED, CodedFold
from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain, bound
from fairmaxent.data.roles import Roles, listed
from fairmaxent.data.table import Codes, Indices, Mask, Reals
from fairmaxent.errors import FairMaxEntError, LevelError
from fairmaxent.fairness.compare import Compared
from fairmaxent.fairness.rates import Measure
from fairmaxent.fit.models import Model
from fairmaxent.fit.pipeline import fit_frame
from fairmaxent.fit.request import Request
from fairmaxent.metrics.definitions import representation_rate, statistical_rate
from fairmaxent.metrics.intervals import Interval
from fairmaxent.metrics.rates import Rate
from fairmaxent.plain_text import Values
from fairmaxent.progress import Progress, silent

ClassifierName = Literal["tree", "logistic"]
Training = tuple[Any, Reals | None]  # rows to train on, and their weights
Method = Callable[[Any, Request, int], Training]
RAW = "raw"
PARTS = 10  # of a fold, each left out once to see how sure a number is

_WEIGHT = "\0weight"  # no column of a user's is called so

_EQUAL_PROBABILITIES = Model("boosting", parity="probabilities")

_BASELINES: Mapping[str, Callable[..., Any]] = {
    RAW: baselines.raw,
    "Kamiran-Calders": baselines.kamiran_calders,
    "King-Zeng": baselines.king_zeng,
    "massaging": baselines.massaging,
}


@dataclass(frozen=True)
class Scores:
    """Means over the folds of one method, and of decisions about everybody.

    The classifier that decides about a fold has not seen it. Without scikit-learn there
    is none, and no rate of its decisions if it gives nobody the outcome.
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
    decided: float | None = None
    """The share of people whom it gives the favourable outcome."""

    def right(self, *, by_truth: bool) -> float:
        """How often decisions are right."""
        accuracy = self.true_accuracy if by_truth else self.accuracy
        return accuracy or 0.0


@dataclass(frozen=True)
class TriedMethod:
    """A method with its scores, or the reason why it refused this table."""

    method: str
    scores: Scores | None
    refused: FairMaxEntError | None
    # the rate of its decisions, and how often they are right, without each part of the
    # people: 2 × folds × parts of a fold
    without: Reals | None = None


@dataclass(frozen=True, eq=False)
class _Fold:
    """What a method made without the rows of a fold, and what was decided on these."""

    representation_rate: float
    statistical_rate: float
    seconds: float
    tested: Indices  # positions of the rows
    decided: Codes | None  # by a classifier; None without scikit-learn


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Cross-validation on one table: each fold's rows are tested on as they are."""

    frame: frames.Frame
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

    @cached_property
    def domain(self) -> Domain:
        """How all methods read the columns."""
        return bound(
            self.request.domain or Domain.infer(self.frame.to_native()), self.frame
        )

    @property
    def seen(self) -> tuple[Attribute, ...]:
        """The columns that a classifier sees: all but the outcome."""
        return tuple(
            column
            for column in self.domain.attributes
            if column.name != self.request.outcome_name
        )

    def run(self, progress: Progress = silent) -> Iterator[TriedMethod]:
        """Try one method after the other; ``progress`` gets each name beforehand."""
        # what is wrong with the question is no method's refusal
        self._rates(self.frame.to_native(), None)
        tried = methods(self._model())
        for number, (name, method) in enumerate(tried.items()):
            progress(name, number / len(tried))
            try:
                folds = [self._fold(method, fold) for fold in range(self.folds)]
            except FairMaxEntError as problem:
                yield TriedMethod(name, scores=None, refused=problem)
                continue
            yield self._judged(name, folds)

    def _model(self) -> Model | None:
        """The classifier, taking the table's columns; None without scikit-learn."""
        if not frames.has_library("sklearn"):
            return None
        from sklearn.preprocessing import FunctionTransformer

        encoder = FunctionTransformer(Domain(self.seen, ()).encode)
        classifier = _classifier(self.classifier)
        classifier.steps.insert(0, ("levels", encoder))
        return Model(classifier)

    def _fold(self, method: Method | str, fold: int) -> _Fold:
        is_tested = self._part_of_row % self.folds == fold
        tested = np.flatnonzero(is_tested)
        test = self.frame[tested].to_native()
        train = self.frame[np.flatnonzero(~is_tested)].to_native()
        decided = None
        began = time.process_time()
        if isinstance(method, str):
            decided = TRAINED[method](self._coded(train, test, fold))
            rates = self._rates(train, None)
            return _Fold(*rates, time.process_time() - began, tested, decided)
        rows, weights = method(train, self.request, self.seed + fold)
        seconds = time.process_time() - began
        if frames.has_library("sklearn"):
            own = self._coded(rows, test, fold)
            own.classifier.fit(own.columns, own.outcomes, **{own.weight_name: weights})
            decided = np.asarray(own.classifier.predict(own.others), dtype=int)
        return _Fold(*self._rates(rows, weights), seconds, tested, decided)

    def _coded(
        self,
        train: Any,
        test: Any,
        fold: int,
    ) -> CodedFold:
        outcome = self.domain.index(self.request.outcome_name)
        names = [column.name for column in self.seen]
        codes = self.domain.encode(train)
        return CodedFold(
            classifier=_classifier(self.classifier),
            columns=np.delete(codes, outcome, axis=1),
            outcomes=codes[:, outcome],
            others=np.delete(self.domain.encode(test), outcome, axis=1),
            protected=tuple(names.index(name) for name in self.request.protected_names),
            sizes=tuple(column.size for column in self.seen),
            seed=self.seed + fold,
        )

    def _judged(self, name: str, folds: Sequence[_Fold]) -> TriedMethod:
        """Join the folds.

        Decisions are counted over all of them, so that one without any is no gap.
        """
        means = {
            name: float(np.mean([getattr(fold, name) for fold in folds]))
            for name in ("representation_rate", "statistical_rate", "seconds")
        }
        scores = Scores(
            **means,
            accuracy=None,
            predicted_rate=None,
            predicted_interval=None,
        )
        decided = np.full(len(self.frame), -1)
        for fold in folds:
            if fold.decided is None:
                return TriedMethod(name, scores, None)
            decided[fold.tested] = fold.decided
        outcome = self.domain.index(self.request.outcome_name)
        recorded = self.domain.encode(self.frame.to_native())[:, outcome]
        scores = replace(
            scores,
            accuracy=float((decided == recorded).mean()),
            decided=self._share_favoured(decided),
        )
        right = decided == recorded
        is_known = np.ones(len(right), dtype=bool)
        if self.truth is not None:
            right = decided == self.truth
            is_known = self.truth >= 0
            scores = replace(scores, true_accuracy=float(right[is_known].mean()))
        # A name of its own, or the domain's levels of the outcome would be looked up
        # once more.
        column = self.domain.attribute(self.request.outcome_name).column_of(decided)
        try:
            rate = self._statistical_rate(
                self.frame.to_native(), column.alias("\0predicted").to_native(), None
            )
        except LevelError:  # nobody is given the outcome: there is no ratio to take
            return TriedMethod(name, scores, None)
        scores = replace(
            scores, predicted_rate=float(rate), predicted_interval=rate.interval
        )
        without = np.empty((2, self.folds, PARTS))
        for part in range(self.folds * PARTS):
            others = self._part_of_row != part
            place = (part % self.folds, part // self.folds)
            without[0][place] = self._rate_among(decided, others)
            without[1][place] = right[others & is_known].mean()
        return TriedMethod(name, scores, None, without)

    def _share_favoured(self, decided: Codes) -> float | None:
        """The share of people with the favourable outcome, if one was named."""
        if self.request.favourable is None:
            return None
        outcome = self.domain.attribute(self.request.outcome_name)
        favourable = [outcome.level(one) for one in listed(self.request.favourable)]
        return float(np.isin(decided, favourable).mean())

    @cached_property
    def _part_of_row(self) -> Codes:
        """The part of a fold that a row is in; part p is of fold p modulo `folds`."""
        rng = np.random.default_rng(self.seed)
        return rng.permutation(len(self.frame)) % (self.folds * PARTS)

    @cached_property
    def _roles(self) -> Roles:
        return Roles.of(
            self.domain,
            self.request.outcome_name,
            self.request.protected_names,
            within=self.request.within_names,
        )

    @cached_property
    def _measure(self) -> Measure:
        """The rates of decisions, as `_statistical_rate` has them, of counts."""
        return Measure.of(
            self._roles,
            groups=self.request.groups,
            favourable=self.request.favourable,
            compare_missing=False,
            within=self.request.within,
        )

    @cached_property
    def _cells(self) -> Codes:
        """Everybody's levels of the columns that are compared; the outcome is first."""
        return self.domain.encode(self.frame.to_native())[:, self._roles.root]

    def _rate_among(self, decided: Codes, counted: Mask) -> float:
        """The statistical rate of decisions about some people."""
        cells = self._cells[counted]
        cells[:, 0] = decided[counted]
        sizes = [column.size for column in self._roles.attributes]
        flat = np.ravel_multi_index(tuple(cells.T.astype(np.intp)), sizes)
        table = np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes)
        rates = self._measure.rates(table.astype(float))["statistical_rate"]
        return float(np.fmin.reduce(np.array([*rates.values()], dtype=float)))

    def _rates(self, rows: Any, weights: Any) -> Interval:
        """Both rates of what a method made."""
        names = self.request.protected_names
        sizes = representation_rate(rows, names, **self._compared(weights))
        rate = self._statistical_rate(rows, self.request.outcome_name, weights)
        return float(sizes), float(rate)

    def _statistical_rate(self, rows: Any, outcome: Any, weights: Any) -> Rate:
        return statistical_rate(
            rows,
            outcome,
            self.request.protected_names,
            favourable=self.request.favourable,
            **self._compared(weights),
        )

    def _compared(self, weights: Any) -> Compared:
        """As `_measure` compares: every group counts, whatever a method made of it."""
        return {
            "groups": self.request.groups,
            "within": self.request.within,
            "domain": self.domain,
            "weight": weights,
            "smallest_group": 0,
        }


def python_name(method: str) -> str:
    """Where Python has another method."""
    if method in TRAINED:
        library = "oxonfair" if method == OXONFAIR else "fairlearn"
        return f"{library}'s {method}"
    function = _BASELINES[method].__name__
    return f"fairmaxent.baselines.{function}(frame, outcome, protected)"


def methods(model: Model | None = None) -> dict[str, Method | str]:
    """Every method, fairmaxent's first, and those that train models by their names.

    The table of one is made for ``model``.
    """
    ours: Values = {
        "fairmaxent, rows": _rows,
        "fairmaxent, weights": _weights,
        "relabel, probabilities": partial(_weights, model=_EQUAL_PROBABILITIES),
        "model": partial(_weights, model=model),
    }
    ours |= {name: _baseline(call) for name, call in _BASELINES.items()}
    return ours | {name: name for name in TRAINED}


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
    weighed = nw.from_native(fit.weigh(train, weight_name=_WEIGHT), eager_only=True)
    return weighed.drop(_WEIGHT).to_native(), weighed.get_column(_WEIGHT).to_numpy()


def _baseline(call: Callable[..., Any]) -> Method:
    """Another method: the rows with its weights, which need no seed."""

    def training(train: Any, request: Request, seed: int) -> Training:
        result = call(
            train,
            request.outcome_name,
            request.protected_names,
            domain=request.domain,
        )
        return result.data.frame.to_native(), result.weights()

    return training


def _classifier(name: ClassifierName) -> Any:
    """A classifier of level codes.

    A tree takes them as ordered numbers, as most do who use one.
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
