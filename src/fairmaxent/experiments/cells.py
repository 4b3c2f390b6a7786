"""The cells of an experiment, each one method on one fold of a data set: plan, run,
measure, store and find them.
"""

import hashlib
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import fairmaxent
from fairmaxent.files.write import write_whole
from fairmaxent.paper import PriorName, ThetaName

FOLDS = 5
ROWS = 10_000  # drawn in each repetition

DatasetName = Literal["adult-small", "compas-small", "compas-large"]
Block = tuple[DatasetName, str]  # data set and protected column

TABLE_2_BLOCKS: tuple[Block, ...] = (
    ("adult-small", "sex"),
    ("compas-small", "sex"),
    ("compas-small", "race"),
    ("compas-large", "sex"),
    ("compas-large", "race"),
)
CURVE_BLOCKS: tuple[Block, ...] = (
    ("compas-small", "sex"),
    ("adult-small", "sex"),
    ("compas-large", "sex"),
)
SHARES = tuple(tenth / 10 for tenth in range(11))  # C
PRIORS: tuple[PriorName, ...] = ("w", "d")
THETAS: tuple[ThetaName, ...] = ("d", "b", "w")
Reals = NDArray[np.float64]
# Text columns of COMPAS small that have an order.
_ORDER = {
    "age_cat": ["Less than 25", "25 - 45", "Greater than 45"],
    "priors_count": ["0", "1-3", ">3"],
}
# With more points in the domain than this, KL divergence says nothing: nearly all of
# them are unseen.
_LARGEST_ENUMERATED = 100_000
covariance = partial(np.cov, rowvar=False)
# added to the share of every point of the raw data, as in the authors' code
_SMALLEST = 1e-7
Record = dict[str, Any]


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
    """One of the methods of `fairmaxent.baselines`, by name."""

    name: str


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
    """One method on one fold: the unit that is run, stored and, if necessary, run
    again.
    """

    dataset: DatasetName
    protected: str
    method: Method
    fold: int
    repetitions: int

    @property
    def name(self) -> str:
        """A unique name for files and seeds."""
        return f"{self.dataset}-{self.protected}-{self.method.name}-fold_{self.fold}-{self.repetitions}x{ROWS}"

    @property
    def cost(self) -> float:
        """Approximate relative duration, to estimate the time left and to start with
        the longest cells.
        """
        preparation = 20.0 if self.method.name == "calmon" else 2.0
        return (preparation + self.repetitions) * (
            2.0 if self.dataset == "compas-large" else 1.0
        )


@dataclass(frozen=True)
class Plan:
    """How much of the experiment to run: folds and repetitions of Table 2 and of the
    curves over C.
    """

    table_2_folds: Sequence[int]
    table_2_repetitions: int
    curve_folds: Sequence[int]
    curve_repetitions: int

    def table_2(self, blocks: Sequence[Block] = TABLE_2_BLOCKS) -> list[Cell]:
        """Return the cells of Table 2. Calmon's program does not fit the large set, as
        in the paper.
        """
        return [
            Cell(
                dataset,
                protected,
                method,
                fold,
                1 if method == RAW else self.table_2_repetitions,
            )
            for dataset, protected in blocks
            for name, method in TABLE_2_METHODS.items()
            if not (name == "calmon" and dataset == "compas-large")
            for fold in self.table_2_folds
        ]

    def curves(self, blocks: Sequence[Block] = CURVE_BLOCKS) -> list[Cell]:
        """Return the cells of the figures: six combinations of prior and θ over C."""
        return [
            Cell(
                dataset,
                protected,
                MaxEnt(prior, theta, C),
                fold,
                self.curve_repetitions,
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
    """A data set with its text columns as categories, its domain, and the statistics of
    all its rows.
    """

    frame: Any
    outcome: str
    favourable: object
    domain: fairmaxent.Domain

    def fold(self, number: int) -> tuple[Any, Any]:
        """Return training and test rows. As in the authors' code, folds are contiguous;
        the last gets the remainder.
        """
        size = len(self.frame) // FOLDS
        if number == FOLDS - 1:
            stop = len(self.frame)
        else:
            stop = (number + 1) * size
        test = np.zeros(len(self.frame), dtype=bool)
        test[number * size : stop] = True
        return self.frame[~test].reset_index(drop=True), self.frame[test].reset_index(
            drop=True
        )

    def numbers(self, frame: Any) -> Reals:
        """Return every column as numbers: its values, or the positions of its
        categories.
        """
        columns = [frame[name] for name in self.domain.names]
        return (
            np.column_stack(
                [
                    column.cat.codes if column.dtype == "category" else column
                    for column in columns
                ]
            )
            * 1.0
        )

    def split(self, frame: Any) -> tuple[Reals, NDArray[np.bool_]]:
        """Return the features, including the protected column, and whether the outcome
        is favourable.
        """
        outcome = self.domain.index(self.outcome)
        return (
            np.delete(self.numbers(frame), outcome, axis=1),
            (frame[self.outcome] == self.favourable).to_numpy(),
        )

    def probabilities(self, frame: Any, weights: Reals | None = None) -> Reals:
        """Return the share of each point of the domain among the rows."""
        points = np.ravel_multi_index(
            tuple(self.domain.encode(frame).T.astype(np.intp)), self.domain.sizes
        )
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
    """Load a data set once per process. Columns of the large one enter as numbers, as
    in the paper.
    """
    import pandas as pd

    dataset = fairmaxent.datasets.load(name)
    texts = dataset.frame.select_dtypes("string").columns
    kinds = {
        text: (
            pd.CategoricalDtype(_ORDER[text], ordered=True)
            if text in _ORDER
            else "category"
        )
        for text in texts
    }
    frame = dataset.frame.astype(kinds)
    domain = fairmaxent.Domain.infer(
        frame, features="moment" if name == "compas-large" else "indicator"
    )
    return ExperimentData(frame, dataset.outcome, dataset.favourable, domain)


def learn(method: Method, frame: Any, data: ExperimentData, protected: str) -> Any:
    """Learn from training rows; the result of every method has ``sample`` and
    ``distribution``.
    """
    if isinstance(method, Baseline):
        return getattr(fairmaxent.baselines, method.name)(
            frame, data.outcome, protected, domain=data.domain
        )
    roles: Any = {
        "outcome": data.outcome,
        "protected": protected,
        "favourable": data.favourable,
    }
    return fairmaxent.paper.fit(frame, **roles, **vars(method), domain=data.domain)


def measure_rows(rows: Any, data: ExperimentData, protected: str) -> dict[str, float]:
    """Fairness of drawn rows, and their distance from the raw data."""
    rate = fairmaxent.metrics.statistical_rate(
        rows, data.outcome, protected, favourable=data.favourable
    )
    numbers = data.numbers(rows)
    measured = {
        "data_sr": float(rate),
        "data_rr": float(fairmaxent.metrics.representation_rate(rows, protected)),
        "correlation_distance": float(
            ((correlation(numbers) - correlation(data.raw_numbers)) ** 2).sum()
        ),
        "covariance_distance": float(
            ((covariance(numbers) - covariance(data.raw_numbers)) ** 2).sum()
        ),
    }
    if data.domain.size <= _LARGEST_ENUMERATED:
        measured["kl_plugin"] = divergence(
            data.probabilities(rows), data.raw_probabilities
        )
    return measured


def measure_classifiers(
    rows: Any, test: Any, data: ExperimentData, protected: str
) -> dict[str, float]:
    """Train on drawn rows, test on the real rows of the fold. The protected column is a
    feature, as in the paper.
    """
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    features, outcomes = data.split(rows)
    test_features, test_outcomes = data.split(test)
    measured: dict[str, float] = {}
    for name, classifier in (
        ("tree", DecisionTreeClassifier(random_state=0)),
        ("bayes", GaussianNB()),
    ):
        chance = (
            classifier.fit(features, outcomes)
            .predict_proba(test_features)[:, 1]
            .clip(0.0, 1.0)
        )
        predicted = chance > 0.5
        rates = fairmaxent.metrics.statistical_rate
        nobody = not predicted.any()  # then there is no ratio
        measured |= {
            f"{name}_accuracy": float((predicted == test_outcomes).mean()),
            f"{name}_sr_probabilities": float(
                rates(test, chance, protected, favourable=1, as_probability=True)
            ),
            f"{name}_sr_predictions": (
                np.nan
                if nobody
                else float(rates(test, predicted, protected, favourable=True))
            ),
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
    """Learn from the fold's training rows, then draw, train and measure once for each
    repetition.
    """
    data = load(cell.dataset)
    train, test = data.fold(cell.fold)
    began = time.process_time()
    source = learn(cell.method, train, data, cell.protected)
    learned = time.process_time()
    measured = []
    seconds = 0.0
    for repetition in range(cell.repetitions):
        start = time.process_time()
        # A separate seed for each repetition, independent of what ran before.
        seed = int.from_bytes(
            hashlib.sha256(f"{cell.name}/{repetition}".encode()).digest()[:4], "big"
        )
        # "Raw" means the training rows themselves, not a draw from them: in the paper
        # their divergence is 0.
        if cell.method == RAW:
            rows = train
        else:
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
    """Write the file of a cell, which is run unless there is its record, completely or
    not at all.
    """
    content = json.dumps(run_cell(cell) if record is None else record)
    write_whole(folder / f"{cell.name}.json", content.encode(), readable=True)


def find(cell: Cell, folder: Path) -> Record | None:
    """Return the stored result of a cell; None if there is none, or it is damaged or
    from other versions.
    """
    try:
        record: Record = json.loads(
            (folder / f"{cell.name}.json").read_text(encoding="utf-8")
        )
    except (FileNotFoundError, ValueError):
        return None
    return (
        record
        if isinstance(record, dict) and record.get("made_with") == made_with()
        else None
    )


@cache
def made_with() -> dict[str, str]:
    """The versions that a result depends on, with a fingerprint of this package's code
    and shipped data.
    """
    packages = ("fairmaxent", "numpy", "pandas", "scipy", "scikit-learn")
    versions = {"python": platform.python_version()} | {
        package: version(package) for package in packages
    }
    fingerprint = hashlib.sha256()
    home = Path(fairmaxent.__file__).parent
    for path in sorted(home.rglob("*")):
        if path.suffix in (".py", ".toml", ".xz") and path.relative_to(home).parts[
            0
        ] not in ("cli", "report"):
            fingerprint.update(path.read_bytes())
    return versions | {"fingerprint": fingerprint.hexdigest()[:12]}
