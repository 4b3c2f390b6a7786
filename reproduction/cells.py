"""The cells of an experiment: plan, run, measure, store and find them.

Each cell is one method on one fold of a data set.
"""

import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fairmaxent
from fairmaxent.files.write import write_whole
from fairmaxent.paper import PriorName, ThetaName
from reproduction import datasets
from reproduction.calmon import calmon
from reproduction.datasets import DatasetName
from reproduction.new_rows import prior

Reals = NDArray[np.float64]
Record = dict[str, Any]  # of a cell, as it is stored
TableBlock = tuple[DatasetName, str]  # of Table 2: data set and protected column

FOLDS = 5
ROWS = 10_000  # drawn in each repetition

TABLE_2_BLOCKS: tuple[TableBlock, ...] = (
    ("adult-small", "sex"),
    ("compas-small", "sex"),
    ("compas-small", "race"),
    ("compas-large", "sex"),
    ("compas-large", "race"),
)
CURVE_BLOCKS: tuple[TableBlock, ...] = (
    ("compas-small", "sex"),
    ("adult-small", "sex"),
    ("compas-large", "sex"),
)
SHARES = tuple(tenth / 10 for tenth in range(11))  # C
PRIORS: tuple[PriorName, ...] = ("w", "d")
THETAS: tuple[ThetaName, ...] = ("d", "b", "w")

# Text columns of COMPAS small that have an order.
_ORDER = {
    "age_cat": ["Less than 25", "25 - 45", "Greater than 45"],
    "priors_count": ["0", "1-3", ">3"],
}
# With more points in the domain than this, KL divergence says nothing: nearly all of
# them are unseen.
_LARGEST_ENUMERATED = 100_000
# added to the share of every point of the raw data, as in the authors' code
_SMALLEST = 1e-7

covariance = partial(np.cov, rowvar=False)


@dataclass(frozen=True)
class MaxEnt:
    """p* for the prior q_C^w or q_C^d and the expectation θ^d, θ^b or θ^w."""

    prior: PriorName
    theta: ThetaName
    C: float

    @property
    def name(self) -> str:
        """A name for files."""
        return f"maxent_q_{self.prior}_theta_{self.theta}_C_{self.C:.1f}"


@dataclass(frozen=True)
class Baseline:
    """A method of other authors, by its name."""

    name: str

    @property
    def call(self) -> Callable[..., Any]:
        """The function: two stand beside this file, the others are public."""
        if self.name == "calmon":
            return calmon
        if self.name == "prior":
            return prior
        method: Callable[..., Any] = getattr(fairmaxent.baselines, self.name)
        return method


Method = MaxEnt | Baseline
RAW = Baseline("raw")

# The columns of Table 2, by the names used in table2.csv.
TABLE_2_METHODS: dict[str, Method] = {
    "raw": RAW,
    "prior": Baseline("prior"),
    "maxent_theta_w": MaxEnt("w", "w", 0.5),
    "maxent_theta_b": MaxEnt("w", "b", 0.5),
    "calmon": Baseline("calmon"),
    "kamiran_calders": Baseline("kamiran_calders"),
    "king_zeng": Baseline("king_zeng"),
}


@dataclass(frozen=True)
class Cell:
    """One method on one fold: what is run, stored and, if necessary, run again."""

    dataset: DatasetName
    protected: str
    method: Method
    fold: int
    repetitions: int

    @property
    def name(self) -> str:
        """A unique name for files and seeds."""
        method_on_data = f"{self.dataset}-{self.protected}-{self.method.name}"
        return f"{method_on_data}-fold_{self.fold}-{self.repetitions}x{ROWS}"

    def seed(self, repetition: int) -> int:
        """A seed for each repetition, independent of what ran before."""
        digest = hashlib.sha256(f"{self.name}/{repetition}".encode()).digest()
        return int.from_bytes(digest[:4], "big")

    @property
    def cost(self) -> float:
        """About how long it takes, beside others: the longest cells start first."""
        preparation = 20.0 if self.method.name == "calmon" else 2.0
        repetition = 2.0 if self.dataset == "compas-large" else 1.0
        return (preparation + self.repetitions) * repetition


@dataclass(frozen=True)
class Plan:
    """How much to run: folds and repetitions of Table 2 and of the curves over C."""

    table_2_folds: Sequence[int]
    table_2_repetitions: int
    curve_folds: Sequence[int]
    curve_repetitions: int

    def table_2(self, blocks: Sequence[TableBlock] = TABLE_2_BLOCKS) -> list[Cell]:
        """Return the cells of Table 2.

        Calmon's program does not fit the large set, as in the paper.
        """
        return [
            Cell(
                dataset=dataset,
                protected=protected,
                method=method,
                fold=fold,
                # the raw data are not drawn
                repetitions=1 if method == RAW else self.table_2_repetitions,
            )
            for dataset, protected in blocks
            for name, method in TABLE_2_METHODS.items()
            if not (name == "calmon" and dataset == "compas-large")
            for fold in self.table_2_folds
        ]

    def curves(self, blocks: Sequence[TableBlock] = CURVE_BLOCKS) -> list[Cell]:
        """Return the cells of the figures: six combinations of prior and θ over C."""
        return [
            Cell(
                dataset=dataset,
                protected=protected,
                method=MaxEnt(prior, theta, C),
                fold=fold,
                repetitions=self.curve_repetitions,
            )
            for dataset, protected in blocks
            for prior in PRIORS
            for theta in THETAS
            for C in SHARES
            for fold in self.curve_folds
        ]


# The paper uses five folds and 100 repetitions. The curves are smooth with far fewer.
FULL = Plan(range(FOLDS), 100, range(FOLDS), 20)
QUICK = Plan(range(FOLDS), 3, range(1), 2)


@dataclass(frozen=True, eq=False)
class ExperimentData:
    """A data set with categories instead of texts, its domain, and its statistics."""

    frame: Any
    outcome: str
    favourable: object
    domain: fairmaxent.Domain

    def fold(self, number: int) -> tuple[Any, Any]:
        """Return training and test rows.

        As in the authors' code, folds are contiguous; the last gets the remainder.
        """
        size = len(self.frame) // FOLDS
        is_last = number == FOLDS - 1
        stop = len(self.frame) if is_last else (number + 1) * size
        is_tested = np.zeros(len(self.frame), dtype=bool)
        is_tested[number * size : stop] = True
        train = self.frame[~is_tested].reset_index(drop=True)
        test = self.frame[is_tested].reset_index(drop=True)
        return train, test

    def numbers(self, frame: Any) -> Reals:
        """Return columns as numbers: their values, or positions of their categories."""
        columns = []
        for name in self.domain.names:
            column = frame[name]
            is_text = column.dtype == "category"
            columns.append(column.cat.codes if is_text else column)
        return np.column_stack(columns) * 1.0

    def split(self, frame: Any) -> tuple[Reals, NDArray[np.bool_]]:
        """Return the features, and whether the outcome is favourable.

        The protected column is one of the features.
        """
        outcome = self.domain.index(self.outcome)
        features = np.delete(self.numbers(frame), outcome, axis=1)
        is_favourable = (frame[self.outcome] == self.favourable).to_numpy()
        return features, is_favourable

    def probabilities(self, frame: Any, weights: Reals | None = None) -> Reals:
        """Return the share of each point of the domain among the rows."""
        codes = self.domain.encode(frame).T.astype(np.intp)
        points = np.ravel_multi_index(tuple(codes), self.domain.sizes)
        counts = np.bincount(points, weights, minlength=self.domain.size)
        return np.asarray(counts / counts.sum())

    @cached_property
    def raw_probabilities(self) -> Reals:
        """The share of each point among all rows."""
        return self.probabilities(self.frame)

    @cached_property
    def raw_numbers(self) -> Reals:
        """All rows as numbers."""
        return self.numbers(self.frame)


def correlation(numbers: Reals) -> Reals:
    """Pearson correlations of columns; a constant column has correlation 0 with all."""
    covariances = covariance(numbers)
    deviation = np.sqrt(np.diag(covariances))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.asarray(covariances * np.outer(scale, scale))


@cache
def load(name: DatasetName) -> ExperimentData:
    """Load a data set once per process.

    Columns of the large one enter as numbers, as in the paper.
    """
    import pandas as pd

    dataset = datasets.load(name)
    texts = dataset.frame.select_dtypes("string").columns
    kinds: dict[str, Any] = dict.fromkeys(texts, "category")
    for text in kinds:
        if text in _ORDER:
            kinds[text] = pd.CategoricalDtype(_ORDER[text], ordered=True)
    frame = dataset.frame.astype(kinds)
    features: Any = "moment" if name == "compas-large" else "indicator"
    return ExperimentData(
        frame=frame,
        outcome=dataset.outcome,
        favourable=dataset.favourable,
        domain=fairmaxent.Domain.infer(frame, features=features),
    )


def learn(method: Method, frame: Any, data: ExperimentData, protected: str) -> Any:
    """Learn from training rows: every result has ``sample`` and ``distribution``."""
    if isinstance(method, Baseline):
        return method.call(frame, data.outcome, protected, domain=data.domain)
    return fairmaxent.paper.fit(
        frame,
        outcome=data.outcome,
        protected=protected,
        favourable=data.favourable,
        prior=method.prior,
        theta=method.theta,
        C=method.C,
        domain=data.domain,
    )


def measure_rows(rows: Any, data: ExperimentData, protected: str) -> dict[str, float]:
    """Fairness of drawn rows, and their distance from the raw data."""
    rate = fairmaxent.metrics.statistical_rate(
        rows, data.outcome, protected, favourable=data.favourable
    )
    numbers = data.numbers(rows)
    correlations = correlation(numbers) - correlation(data.raw_numbers)
    covariances = covariance(numbers) - covariance(data.raw_numbers)
    measured = {
        "data_sr": float(rate),
        "data_rr": float(fairmaxent.metrics.representation_rate(rows, protected)),
        "correlation_distance": float((correlations**2).sum()),
        "covariance_distance": float((covariances**2).sum()),
    }
    if data.domain.size <= _LARGEST_ENUMERATED:
        shares = data.probabilities(rows)
        measured["kl_plugin"] = divergence(shares, data.raw_probabilities)
    return measured


def measure_classifiers(
    rows: Any, test: Any, data: ExperimentData, protected: str
) -> dict[str, float]:
    """Train on drawn rows, test on the real rows of the fold.

    The protected column is a feature, as in the paper.
    """
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    features, outcomes = data.split(rows)
    test_features, test_outcomes = data.split(test)
    classifiers = {
        "tree": DecisionTreeClassifier(random_state=0),
        "bayes": GaussianNB(),
    }
    statistical_rate = fairmaxent.metrics.statistical_rate
    measured: dict[str, float] = {}
    for name, classifier in classifiers.items():
        classifier.fit(features, outcomes)
        chance = classifier.predict_proba(test_features)[:, 1].clip(0.0, 1.0)
        of_probabilities = statistical_rate(
            test, chance, protected, favourable=1, as_probability=True
        )
        predicted = chance > 0.5
        of_predictions = np.nan  # there is no ratio if nobody has the outcome
        if predicted.any():
            of_predictions = float(
                statistical_rate(test, predicted, protected, favourable=True)
            )
        measured |= {
            f"{name}_accuracy": float((predicted == test_outcomes).mean()),
            f"{name}_sr_probabilities": float(of_probabilities),
            f"{name}_sr_predictions": of_predictions,
        }
    return measured


def divergence(probabilities: Reals, raw: Reals) -> float:
    """KL(p ‖ raw + 1e-7), with the second argument normalised again."""
    seen = probabilities > 0
    reference = raw + _SMALLEST
    return float(
        probabilities[seen] @ np.log(probabilities[seen] / reference[seen])
        + np.log(reference.sum())
    )


def run_cell(cell: Cell) -> Record:
    """Learn from the fold's training rows; draw, train and measure repeatedly."""
    data = load(cell.dataset)
    train, test = data.fold(cell.fold)
    began = time.process_time()
    source = learn(cell.method, train, data, cell.protected)
    learned = time.process_time()
    measured = []
    seconds = 0.0
    for repetition in range(cell.repetitions):
        start = time.process_time()
        if cell.method == RAW:
            # The training rows themselves, not a draw from them: in the paper their
            # divergence is 0.
            rows = train
        else:
            seed = cell.seed(repetition)
            rows = source.sample(ROWS, random_state=seed, iid=True)
        seconds += time.process_time() - start
        of_rows = measure_rows(rows, data, cell.protected)
        measured.append(of_rows | measure_classifiers(rows, test, data, cell.protected))
    exact = {}
    # from the distribution itself, without drawing rows
    if data.domain.size <= _LARGEST_ENUMERATED:
        points = source.distribution.marginal(data.domain.names)
        probabilities = data.probabilities(points, points["probability"].to_numpy())
        exact["kl_exact"] = divergence(probabilities, data.raw_probabilities)
    return {
        "made_with": made_with(),
        "repetitions": measured,
        "exact": exact,
        # CPU: learn, and draw once
        "seconds": learned - began + seconds / cell.repetitions,
    }


def save(cell: Cell, folder: Path, record: Record | None = None) -> None:
    """Write the file of a cell, completely or not at all; without a record, run it."""
    if record is None:
        record = run_cell(cell)
    content = json.dumps(record)
    write_whole(folder / f"{cell.name}.json", content.encode(), readable=True)


def find(cell: Cell, folder: Path) -> Record | None:
    """Return the stored result of a cell; None if it is missing, damaged or old."""
    path = folder / f"{cell.name}.json"
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if isinstance(record, dict) and record.get("made_with") == made_with():
        return record
    return None


@cache
def made_with() -> dict[str, str]:
    """The versions that a result depends on, with a fingerprint of code and data."""
    packages = ("fairmaxent", "numpy", "pandas", "scipy", "scikit-learn")
    versions = {package: version(package) for package in packages}
    fingerprint = hashlib.sha256()
    package = Path(fairmaxent.__file__).parent
    here = Path(__file__).parent
    for path in [*sorted(package.rglob("*")), *sorted(here.glob("*"))]:
        shows_only = path.is_relative_to(package / "cli") or path.is_relative_to(
            package / "report"
        )
        if path.suffix in (".py", ".toml", ".xz") and not shows_only:
            fingerprint.update(path.read_bytes())
    return {
        "python": platform.python_version(),
        **versions,
        "fingerprint": fingerprint.hexdigest()[:12],
    }
