"""The cells of an experiment: each is one method on one fold of a data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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
CURVE_BLOCKS: tuple[Block, ...] = (("compas-small", "sex"), ("adult-small", "sex"), ("compas-large", "sex"))
SHARES = tuple(tenth / 10 for tenth in range(11))  # C


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
PRIORS: tuple[PriorName, ...] = ("w", "d")
THETAS: tuple[ThetaName, ...] = ("d", "b", "w")


@dataclass(frozen=True)
class Cell:
    """One method on one fold: the unit that is run, stored and, if necessary, run again."""

    dataset: DatasetName
    protected: str
    method: Method
    fold: int
    repetitions: int

    @property
    def block(self) -> Block:
        """The data set and its protected column."""
        return self.dataset, self.protected

    @property
    def name(self) -> str:
        """A unique name for files and seeds."""
        return f"{self.dataset}-{self.protected}-{self.method.name}-fold_{self.fold}-{self.repetitions}x{ROWS}"

    @property
    def cost(self) -> float:
        """Approximate relative duration, to estimate the time left and to start with the longest cells."""
        preparation = 20.0 if self.method.name == "calmon" else 2.0
        return (preparation + self.repetitions) * (2.0 if self.dataset == "compas-large" else 1.0)


@dataclass(frozen=True)
class Plan:
    """How much of the experiment to run: folds and repetitions of Table 2 and of the curves over C."""

    table_2_folds: Sequence[int]
    table_2_repetitions: int
    curve_folds: Sequence[int]
    curve_repetitions: int

    def table_2(self, blocks: Sequence[Block] = TABLE_2_BLOCKS) -> list[Cell]:
        """Return the cells of Table 2. Calmon's program does not fit the large set, as in the paper."""
        return [
            Cell(dataset, protected, method, fold, 1 if method == RAW else self.table_2_repetitions)
            for dataset, protected in blocks
            for name, method in TABLE_2_METHODS.items()
            if not (name == "calmon" and dataset == "compas-large")
            for fold in self.table_2_folds
        ]

    def curves(self, blocks: Sequence[Block] = CURVE_BLOCKS) -> list[Cell]:
        """Return the cells of the figures: six combinations of prior and θ over C."""
        return [
            Cell(dataset, protected, MaxEnt(prior, theta, C), fold, self.curve_repetitions)
            for dataset, protected in blocks
            for prior in PRIORS
            for theta in THETAS
            for C in SHARES
            for fold in self.curve_folds
        ]


# The paper uses five folds and 100 repetitions. The curves are smooth with far fewer.
FULL = Plan(range(FOLDS), 100, range(FOLDS), 20)
QUICK = Plan(range(FOLDS), 3, range(1), 2)
