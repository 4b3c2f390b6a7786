"""Models: labellers and students.

Labellers predict the probability of each outcome for people they have not learned from.
Students are the models that people train, in the columns and with the labels of their
own table.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, Protocol, get_args

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.frames import has_library
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Codes, Mask, Reals, Table, tally
from fairmaxent.errors import DependencyError, InputError
from fairmaxent.maxent.logspace import log_sum_exp
from fairmaxent.maxent.priors.bases import build_base
from fairmaxent.relabelling.classifier import Classifier, fresh_copy, name_of_model
from fairmaxent.relabelling.people import (
    ORDERED,
    HeldOut,
    Inputs,
    Lesson,
    People,
    root_shape,
    seen_columns,
)
from fairmaxent.relabelling.task import MOST_TRAININGS, Rows

LABEL_FOLDS = 5
# Models by name. The rooted tree is ours; the others are scikit-learn's, boosting with
# its own handling of categories.
ModelName = Literal["tree", "boosting", "logistic"]
TREE, BOOSTING, LOGISTIC = get_args(ModelName)
StudentName = Literal["logistic", "boosting", "decision tree"]
STUDENTS: tuple[str, ...] = get_args(StudentName)

# scikit-learn's boosting accepts at most this many categories in a column; columns with
# more are treated as ordered.
_CATEGORIES = 255

# Few and small trees: of few people, boosting then predicts others better than as
# scikit-learn has it, and costs little.
_CALM: dict[str, Any] = {
    "learning_rate": 0.2,
    "max_iter": 25,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 30,
    "early_stopping": False,
}

_CHUNK = 100_000  # people predicted at a time

Predict = Callable[[Inputs], Reals]  # people -> probability of each outcome


class Labeller(Protocol):
    """Learns from people who have a weight for each outcome."""

    def learn(self, lesson: Lesson) -> Predict:
        """Learn from people and their weights.

        The weights are about 1 per person, so that a penalty is as strong as it would
        be on the rows themselves.
        """


def choose_labeller(
    roles: Roles, model: Any = None, *, blind: bool = False
) -> Labeller:
    """Return the classifier, given or named.

    By default it is boosting if scikit-learn is installed, or else the rooted tree.
    ``blind``: it does not see the protected columns.
    """
    named = isinstance(model, str)
    installed = has_library("sklearn")
    if (named and model == TREE) or (model is None and not installed):
        return TreeLabeller(roles, blind=blind)
    if named and not installed:
        raise DependencyError(
            f"the model {model!r} needs scikit-learn, which is not installed; pip"
            " install scikit-learn"
        )
    if named and model == BOOSTING:
        model = None
    elif named:
        model = _classifier(model)
    return ScikitLabeller(roles, model, blind=blind)


def _classifier(name: str) -> Any:
    """Logistic regression or a decision tree, by name."""
    from sklearn import linear_model, tree

    if name == LOGISTIC:
        return linear_model.LogisticRegression(max_iter=1000)
    # A leaf has 1 % of the rows: a model that decides by a few people decides otherwise
    # about the next ones.
    return tree.DecisionTreeClassifier(min_samples_leaf=0.01, random_state=0)


def check_model(
    option: str, model: Any, names: Sequence[str] = get_args(ModelName)
) -> None:
    """Refuse all but a classifier like scikit-learn's, a name, or None for ours."""
    if model is None or (isinstance(model, str) and model in names):
        return
    if isinstance(model, type) or not (
        hasattr(model, "fit") and hasattr(model, "predict_proba")
    ):
        shown = getattr(model, "__name__", type(model).__name__)
        if isinstance(model, str):
            shown = repr(model)
        raise InputError(
            f"{option} is {shown}, which cannot be fitted to predict probabilities;"
            " pass a classifier with fit and predict_proba, e.g."
            " sklearn.linear_model.LogisticRegression(), or a name: "
            + ", ".join(map(repr, names))
        )


def name_of(labeller: Labeller) -> str:
    """Name the model for reports and messages."""
    if not isinstance(labeller, ScikitLabeller):
        return "rooted tree"
    if labeller.model is None:
        return "gradient boosting"
    return type(labeller.model).__name__


def cross_fit(labeller: Labeller, people: People) -> HeldOut:
    """Predict the outcomes of everybody by a model that has not seen them."""
    records = []
    weights = []
    chances = []
    for held in people.deal(LABEL_FOLDS).T:
        predict = labeller.learn(people.lesson(people.size - held))
        asked = np.flatnonzero(held)
        records.append(asked)
        weights.append((people.weight * held / np.maximum(people.size, 1))[asked])
        chances.append(predict(people.inputs.take(asked)))
    return HeldOut(
        np.concatenate(records),
        np.concatenate(weights),
        np.concatenate(chances),
    )


@dataclass(frozen=True, eq=False)
class TreeLabeller:
    """The rooted tree as a classifier: P(y | x, z) by Bayes' rule.

    It needs no other library, and sees levels only.
    """

    roles: Roles
    blind: bool = False

    def learn(self, lesson: Lesson) -> Predict:
        """Fit the tree to the weighted people."""
        blocks = self.roles.blocks
        outcomes, groups = root_shape(blocks)
        rows = [
            _with_root(lesson.inputs.codes, lesson.inputs.codes[:, 0], y, groups)
            for y in range(outcomes)
        ]
        counts = lesson.weights.T.ravel()
        seen = counts > 0
        merged = Table.compress(np.concatenate(rows)[seen], blocks.levels, counts[seen])
        table = Table(merged.codes, merged.counts, merged.counts, merged.counts)
        root = tally(table.codes[:, 0], table.counts, blocks.levels[0]) + 0.5
        tree = build_base(
            "tree",
            blocks,
            table,
            table,
            root=root / root.sum(),
        )
        shares = root.reshape(outcomes, groups)
        sizes = [
            self.roles.domain.attributes[index].size for index in self.roles.strata
        ]
        strata = math.prod(sizes)  # which are seen, if blind too

        def predict(inputs: Inputs) -> Reals:
            logs = np.full((len(inputs), outcomes), -np.inf)
            for group in range(groups // strata) if self.blind else (None,):
                if group is None:
                    z = inputs.codes[:, 0]
                else:
                    z = group * strata + inputs.codes[:, 0] % strata
                by_outcome = [
                    tree.log_probability(_with_root(inputs.codes, z, y, groups))
                    for y in range(outcomes)
                ]
                logs = np.logaddexp(logs, np.column_stack(by_outcome))

            # For somebody with a level that was never seen, only the group is
            # informative.
            unseen = np.isneginf(logs).all(axis=1)
            summed = shares.reshape(outcomes, -1, strata).sum(axis=1)
            if self.blind:
                alone = np.tile(summed, groups // strata)
            else:
                alone = shares
            logs[unseen] = np.log(alone.T[inputs.codes[unseen, 0]])
            return np.exp(logs - log_sum_exp(logs)[:, None])

        return predict


def _with_root(
    codes: Codes,
    group: NDArray[Any],
    outcome: int,
    groups: int,
) -> Codes:
    """Put the cell (y, z) in front again."""
    rows = codes.copy(order="F")
    rows[:, 0] = group + outcome * groups
    return rows


@dataclass(frozen=True, eq=False)
class ScikitLabeller:
    """A classifier with scikit-learn's interface; gradient boosting if none given."""

    roles: Roles
    model: Any
    blind: bool = False
    calm: bool = False  # boosting for tables of any size, without early stopping

    def learn(self, lesson: Lesson) -> Predict:
        """Fit a fresh copy; people are there once for each outcome that has weight."""
        model = self._fresh()
        person, outcome = np.nonzero(lesson.weights)
        outcomes = lesson.weights.shape[1]
        matrix = self._matrix(lesson.inputs)
        # nobody here has a value, which boosting cannot take
        matrix[:, np.isnan(matrix).all(axis=0)] = 0.0
        # nothing to tell people apart by, or in
        if len(np.unique(outcome)) < 2 or not matrix.shape[1]:
            shares = lesson.weights.sum(axis=0) / lesson.weights.sum()
            return lambda inputs: np.tile(shares, (len(inputs), 1))

        # In single precision: a boosting's rules can turn on the last digit, which
        # differs between kinds of machines.
        weights = lesson.weights[person, outcome].astype(np.float32).astype(float)
        learned = Classifier.trained(model, matrix[person], outcome, weights)
        classes = np.asarray(learned.classes, dtype=int)

        def predict(inputs: Inputs) -> Reals:
            result = np.zeros((len(inputs), outcomes))
            for start in range(0, len(inputs), _CHUNK):
                some = np.arange(start, min(start + _CHUNK, len(inputs)))
                result[np.ix_(some, classes)] = learned.chances(
                    lambda rows: self._matrix(inputs.take(rows)), some
                )
            return result

        return predict

    def _fresh(self) -> Any:
        if self.model is not None:
            return fresh_copy(self.model)

        from sklearn.ensemble import HistGradientBoostingClassifier

        columns = seen_columns(self.roles, blind=self.blind)
        return HistGradientBoostingClassifier(
            categorical_features=[
                column.kind not in ORDERED and column.size <= _CATEGORIES
                for _, column in columns
            ],
            random_state=0,
            **(_CALM if self.calm else {}),
        )

    def _matrix(self, inputs: Inputs) -> Reals:
        return inputs.matrix(blind=self.blind, with_categories=self.model is None)


# ---------------------------------------------------------------- students


@dataclass(frozen=True, eq=False)
class Classroom:
    """The table that a student learns from: what it sees of people, and outcomes."""

    seen: nw.DataFrame[Any]
    labels: tuple[Any, Any]  # of the bad outcome and of the good one, as arrays of one
    model: Any
    numbers: Iterator[int] = field(default_factory=lambda: count(1))  # of trainings

    @classmethod
    def of(
        cls,
        frame: nw.DataFrame[Any],
        outcome: str,
        good: Mask,
        model: Any,
        *,
        hidden: list[str],
        unused: Sequence[str],
    ) -> "Classroom":
        """Hide columns, and make the model of a name, which leaves some unused."""
        if not has_library("sklearn"):
            raise DependencyError(
                "training a model needs scikit-learn; pip install scikit-learn"
            )

        seen = frame.drop([outcome, *hidden])
        if not seen.columns:
            raise InputError(
                "a model needs columns to learn from, and all are hidden; leave some"
                " for it to see"
            )
        seen = readable_by_models(seen)
        column = frame.get_column(outcome).to_numpy()
        bad_label = np.asarray(column[np.argmin(good)])[None]
        good_label = np.asarray(column[np.argmax(good)])[None]
        if isinstance(model, str | None):
            model = _built(model or LOGISTIC, seen.drop(unused, strict=False))
        return cls(seen, (bad_label, good_label), model)

    @property
    def name(self) -> str:
        """The model by its class, a pipeline by that of its last step."""
        return name_of_model(self.model)

    def train(
        self,
        rows: Rows,
        good: Mask,
        weights: Reals,
    ) -> "Trained":
        """Train a fresh copy of the model on rows with the good or the bad outcome."""
        labels = np.concatenate(self.labels)[good.astype(int)]
        learned = Classifier.trained(
            fresh_copy(self.model),
            self.take(rows),
            labels,
            weights,
            training=f"training {next(self.numbers)} of at most {MOST_TRAININGS}",
        )
        (good_label,) = self.labels[1].tolist()
        column = None
        if good_label in learned.classes:
            column = learned.classes.index(good_label)
        return Trained(self, learned, column)

    def take(self, rows: Rows) -> Any:
        """What the model sees of some rows, as a table of the user's library."""
        return self.seen[rows].to_native()


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained student."""

    classroom: Classroom
    learned: Classifier
    column: int | None  # of the good outcome among its classes

    def chances(self, rows: Rows) -> Reals:
        """P(good) of the people in these rows."""
        if self.column is None:
            return np.zeros(len(rows))
        return self.learned.chances(self.classroom.take, rows)[:, self.column]


def readable_by_models(seen: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A table of a library that scikit-learn reads."""
    if seen.implementation.is_pyarrow():
        return nw.from_native(seen.to_pandas(), eager_only=True)
    return seen


def _built(name: str, seen: nw.DataFrame[Any]) -> Any:
    """The model of a name, as a pipeline that prepares the columns it is given."""
    from sklearn import compose, ensemble, impute, pipeline, preprocessing

    kinds = seen.schema.items()
    numbers = [column for column, kind in kinds if kind.is_numeric()]
    dates = [column for column, kind in kinds if kind.is_temporal()]
    texts = [column for column, _ in kinds if column not in (*numbers, *dates)]
    stamps = preprocessing.FunctionTransformer(timestamps)
    known = preprocessing.FunctionTransformer(without_na)
    if name == BOOSTING:
        few = [seen.get_column(column).n_unique() <= _CATEGORIES for column in texts]
        unknown = {
            "handle_unknown": "use_encoded_value",
            "unknown_value": np.nan,
            "encoded_missing_value": np.nan,
        }
        codes = pipeline.make_pipeline(known, preprocessing.OrdinalEncoder(**unknown))
        parts = (codes, texts), (stamps, dates), ("passthrough", numbers)
        categorical = [*few, *[False] * (len(dates) + len(numbers))]
        model: Any = ensemble.HistGradientBoostingClassifier(
            categorical_features=categorical, random_state=0
        )
        return pipeline.make_pipeline(compose.make_column_transformer(*parts), model)

    levels = pipeline.make_pipeline(
        known, preprocessing.OneHotEncoder(handle_unknown="ignore")
    )
    filled = pipeline.make_pipeline(
        impute.SimpleImputer(add_indicator=True), preprocessing.StandardScaler()
    )
    parts = (
        (levels, texts),
        (pipeline.make_pipeline(stamps, filled), dates),
        (filled, numbers),
    )
    return pipeline.make_pipeline(
        compose.make_column_transformer(*parts, sparse_threshold=0.0), _classifier(name)
    )


def without_na(texts: Any) -> Any:
    """Texts whose gaps are None: scikit-learn does not know pandas' NA."""
    if hasattr(texts, "notna"):
        return texts.astype(object).where(texts.notna(), None)
    return texts


def timestamps(dates: Any) -> Reals:
    """Dates as numbers; missing ones are NaN."""
    seconds = np.empty(dates.shape)
    columns = nw.from_native(dates, eager_only=True).iter_columns()
    for number, column in enumerate(columns):
        moments = column.to_numpy().astype("datetime64[s]")
        seconds[:, number] = moments.astype(int)
        seconds[np.isnat(moments), number] = np.nan
    return seconds
