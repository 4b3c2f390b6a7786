"""Models of others that are broken: none gets a certificate, and each is refused in our
words, with its name and from its own exception.
"""

import threading

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fairmaxent import Estimate, debias
from fairmaxent.errors import InputError
from tables import hiring


class Sound(ClassifierMixin, BaseEstimator):
    """A logistic regression of the numbers; what is broken is changed below."""

    def fit(self, frame, labels, sample_weight=None):
        self.inner = LogisticRegression().fit(
            self.numbers(frame), labels, sample_weight=sample_weight
        )
        self.classes_ = self.inner.classes_
        return self

    def predict_proba(self, frame):
        return self.changed(self.inner.predict_proba(self.numbers(frame)))

    def numbers(self, frame):
        if isinstance(frame, pd.DataFrame):
            return np.column_stack([frame["a"], frame["b"], frame["sex"] == "f"])
        return np.asarray(frame)

    def changed(self, chances):
        return chances


def answering(change):
    """A model whose probabilities are changed."""
    return type("Changed", (Sound,), {"changed": lambda _, chances: change(chances)})()


def with_classes(change):
    """A model whose classes_ are changed after it has learned."""

    def fit(self, *lesson, **weights):
        Sound.fit(self, *lesson, **weights)
        change(self)
        return self

    return type("Changed", (Sound,), {"fit": fit})()


def raising(problem, method="fit", after=0):
    """A model that raises at a call; the calls of all its copies count."""
    calls = []

    def broken(self, *lesson, **weights):
        calls.append(1)
        if len(calls) > after:
            raise problem
        return getattr(Sound, method)(self, *lesson, **weights)

    return type("Raising", (Sound,), {method: broken})()


class Panic(BaseException):
    """As polars has it."""

    __module__ = "pyo3_runtime"


def in_another_thread(problem):
    """A model that trains in a thread of its own, which fails."""

    def fit(self, frame, labels, sample_weight=None):
        thread = threading.Thread(target=Sound.fit, args=(self, None, None))
        thread.start()
        thread.join()
        raise problem

    return type("Threaded", (Sound,), {"fit": fit})()


class Changing(BaseEstimator):
    """Its constructor changes what it is given, which no copy survives."""

    def __init__(self, strength=1):
        self.strength = [strength]

    fit = Sound.fit
    predict_proba = Sound.predict_proba


class Locked:
    """It holds a lock, which cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()

    fit = Sound.fit
    predict_proba = Sound.predict_proba


class Itself:
    """Its copy is itself."""

    def __deepcopy__(self, memo):
        return self

    fit = Sound.fit
    predict_proba = Sound.predict_proba


class Unweighted(Sound):
    def fit(self, frame, labels):
        return super().fit(frame, labels)


class Unfitted(Sound):
    def fit(self, frame, labels, sample_weight=None):
        return Sound().fit(frame, labels, sample_weight)


def sorted_by_chance(chances):
    return chances[np.argsort(chances[:, 1])]


def depends_on_the_others(chances):
    rank = chances[:, 1].argsort().argsort() / len(chances)
    return np.column_stack([1 - rank, rank])


BROKEN = {
    "percentages": (answering(lambda p: 100 * p), "values from .* to "),
    "raw scores": (answering(lambda p: np.log(p / (1 - p))), "values from -"),
    "from -2 to 3": (answering(lambda p: 5 * p - 2), "values from -"),
    "a little negative": (answering(lambda p: p * [1, 1] - 0.3), "values from -"),
    "not a number": (answering(lambda p: p * np.nan), "not finite"),
    "infinite": (answering(lambda p: p / 0.0), "not finite"),
    "three columns": (
        answering(lambda p: np.column_stack([p, 0 * p[:, 0]])),
        r"the shape \(\d+, 3\), not \(\d+, 2\)",
    ),
    "one column": (answering(lambda p: p[:, 1:]), r"the shape \(\d+, 1\)"),
    "one dimension": (answering(lambda p: p[:, 1]), r"the shape \(\d+,\), not"),
    "no dimension": (answering(lambda p: 0.5), r"the shape \(\), not"),
    "three dimensions": (answering(lambda p: p[None]), r"the shape \(1, \d+, 2\)"),
    "transposed": (answering(lambda p: p.T), r"the shape \(2, \d+\), not"),
    "a row too few": (answering(lambda p: p[1:]), r"the shape \(\d+, 2\), not"),
    "a row too many": (answering(lambda p: p[[0, *range(len(p))]]), "the shape"),
    "no rows": (answering(lambda p: p[:0]), r"the shape \(0, 2\), not"),
    "none": (answering(lambda p: None), "returned None"),
    "sparse": (answering(sparse.csr_matrix), "returned a sparse matrix"),
    "texts": (answering(lambda p: p.astype(str) + "x"), "returned no numbers"),
    "ragged": (answering(lambda p: [[1.0], [1.0, 0.0]]), "returned no numbers"),
    "complex": (answering(lambda p: p * 1j), "returned no numbers"),
    "sums of 2": (answering(lambda p: np.ones_like(p)), "a row that sums to 2"),
    "sums of 0": (answering(lambda p: 0 * p), "a row that sums to 0"),
    "sums of 0.98": (answering(lambda p: 0.98 * p), "a row that sums to 0.98"),
    "sorted": (answering(sorted_by_chance), "in another order"),
    "by rank": (answering(depends_on_the_others), "in another order"),
    "no classes": (
        with_classes(lambda model: delattr(model, "classes_")),
        "Changed raised AttributeError: .*classes_.*, in training",
    ),
    "numbered classes": (
        with_classes(lambda model: setattr(model, "classes_", [3, 4])),
        r"Changed has the classes_ \[3, 4\] after training",
    ),
    "one class": (
        with_classes(lambda model: setattr(model, "classes_", model.classes_[:1])),
        "has the classes_ .* after training",
    ),
    "a class twice": (
        with_classes(
            lambda model: setattr(model, "classes_", model.classes_[[0, 1, 1]])
        ),
        "has the classes_ .* after training",
    ),
    "classes in two columns": (
        with_classes(lambda model: setattr(model, "classes_", [[0, 1], [0, 1]])),
        "Changed raised TypeError: unhashable type",
    ),
    "changing": (Changing(), "Changing cannot be copied .*RuntimeError"),
    "locked": (Locked(), "Locked cannot be copied .*cannot pickle"),
    "itself": (Itself(), "the copy of Itself is itself"),
    "unweighted": (Unweighted(), "Unweighted could not be trained .* sample_weight"),
    "unfitted": (Unfitted(), "Unfitted raised AttributeError"),
    "key": (raising(KeyError("a")), "Raising raised KeyError: 'a', in training"),
    "value": (raising(ValueError("odd")), "Raising could not be trained .*odd"),
    "memory": (raising(MemoryError("no")), "raised MemoryError: no, in training"),
    "panic": (raising(Panic("at row 3")), "raised Panic: at row 3, in training"),
    "stop": (raising(StopIteration()), "raised StopIteration: StopIteration, in"),
    "depth": (raising(RecursionError("deep")), "raised RecursionError: deep, in"),
    "predicting": (
        raising(OSError("gone"), "predict_proba"),
        "raised OSError: gone, in training",
    ),
    "thread": (in_another_thread(RuntimeError("died")), "raised RuntimeError: died"),
    "pipeline": (
        make_pipeline(
            FunctionTransformer(lambda frame: frame), raising(KeyError("last"))
        ),
        "Raising raised KeyError: 'last'",
    ),
}


def test_the_sound_one_is_accepted():
    frame = hiring(1, rows=300)
    fit = debias(frame, "hired", "sex", favourable="yes", model=Sound())
    assert fit.certificate.decisions.student == "Sound"


@pytest.mark.some(8)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("door", ["model", "estimate"])
def test_a_broken_model_is_refused_in_our_words(name, door):
    model, message = BROKEN[name]
    frame = hiring(1, rows=200).drop(columns="town")
    options = {"model": model}
    if door == "estimate":
        options = {"estimate": Estimate(output="weights", model=model)}
    with pytest.raises(InputError, match=message) as refused:
        debias(frame, "hired", "sex", favourable="yes", **options)
    raised = refused.value.__cause__
    if " raised " in str(refused.value) and "the estimate" not in str(refused.value):
        assert type(raised).__name__ in str(refused.value)
        assert not isinstance(raised, InputError)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("method", "after", "training"), [("fit", 6, 7), ("predict_proba", 13, 7)]
)
def test_an_exception_says_in_which_training_it_came(method, after, training):
    model = raising(ZeroDivisionError("half way"), method, after)
    with pytest.raises(
        InputError,
        match=(
            "Raising raised ZeroDivisionError: half way, in training"
            f" {training} of at most 25; mend the model"
        ),
    ) as refused:
        debias(hiring(1, rows=200), "hired", "sex", favourable="yes", model=model)
    assert isinstance(refused.value.__cause__, ZeroDivisionError)


def test_the_keyboard_is_nobodys_mistake():
    with pytest.raises(KeyboardInterrupt):
        debias(
            hiring(1, rows=200),
            "hired",
            "sex",
            favourable="yes",
            model=raising(KeyboardInterrupt()),
        )


@pytest.mark.more
def test_a_model_that_changes_the_rows_it_is_given_changes_nobody_elses():
    def scribble(self, frame, labels, sample_weight=None):
        Sound.fit(self, frame, labels, sample_weight)
        frame.loc[:, ["a", "b"]] = 0.0
        labels[:] = labels[0]
        sample_weight[:] = 0.0
        return self

    changing = type("Scribbling", (Sound,), {"fit": scribble})()
    frame = hiring(1, rows=300)
    before = frame.copy()
    options = {"favourable": "yes", "random_state": 0}
    fit = debias(frame, "hired", "sex", model=changing, **options)
    pd.testing.assert_frame_equal(frame, before)
    sound = debias(frame, "hired", "sex", model=Sound(), **options)
    pd.testing.assert_frame_equal(fit.weigh(frame), sound.weigh(frame))


@pytest.mark.more
def test_classes_in_another_order_and_rounded_probabilities_are_understood():
    def turn(model):
        model.classes_ = model.classes_[::-1]

    turned = with_classes(turn)
    type(turned).changed = lambda self, chances: chances[:, ::-1].astype(np.float32)
    frame = hiring(1, rows=300)
    options = {"favourable": "yes", "random_state": 0}
    fit = debias(frame, "hired", "sex", model=turned, **options)
    sound = debias(frame, "hired", "sex", model=Sound(), **options)
    pd.testing.assert_frame_equal(fit.weigh(frame), sound.weigh(frame), atol=1e-4)
