"""Small fits, one for each kind of thing there is to say; each is made once."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from fairmaxent import Domain, Estimate, Likely, Model, Privacy, debias, paper

JOBS = ("clerk", "driver", "nurse")
TOWNS = ("north", "south")


class ByCell:
    """A student that foretells what people with the same texts had, or with the same
    signs of their numbers.
    """

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, table, outcomes, sample_weight=None):
        outcomes = np.asarray(outcomes)
        self.classes_ = np.unique(outcomes)
        weights = np.ones(len(outcomes))
        if sample_weight is not None:
            weights = np.asarray(sample_weight)
        seen = pd.DataFrame({"cell": self._cells(table), "weight": weights})
        for index, level in enumerate(self.classes_):
            seen[index] = weights * (outcomes == level)
        sums = seen.groupby("cell").sum()
        self.overall = np.array(
            [sums[index].sum() for index in range(len(self.classes_))]
        )
        self.overall = self.overall / self.overall.sum()
        counts = sums[[*range(len(self.classes_))]].to_numpy() + self.overall
        self.shares = dict(
            zip(sums.index, counts / counts.sum(axis=1)[:, None], strict=True)
        )
        return self

    def predict_proba(self, table):
        return np.array(
            [self.shares.get(cell, self.overall) for cell in self._cells(table)]
        )

    def predict(self, table):
        return self.classes_[self.predict_proba(table).argmax(axis=1)]

    def _cells(self, table):
        if isinstance(table, pl.DataFrame):
            table = table.to_pandas()
        frame = pd.DataFrame(table).reset_index(drop=True)
        cells = pd.Series([""] * len(frame))
        for name in frame:
            column = frame[name]
            if pd.api.types.is_numeric_dtype(column):
                column = column > 0
            cells += "|" + column.astype(str)
        return cells


def people(rows=400, seed=0):
    """Men are hired more often than women; the job tells a little of the sex."""
    rng = np.random.default_rng([seed, 58])
    is_woman = rng.random(rows) < 0.4
    hired = rng.random(rows) < np.where(is_woman, 0.25, 0.6)
    job = np.where(rng.random(rows) < 0.4, hired.astype(int), rng.integers(0, 3, rows))
    return pd.DataFrame(
        {
            "sex": np.where(is_woman, "f", "m"),
            "hired": np.where(hired, "yes", "no"),
            "job": np.array(JOBS)[job],
            "town": np.where(rng.random(rows) < 0.55, *TOWNS),
        }
    )


@dataclass(frozen=True)
class Asked:
    """A table, what is asked of it, and what is delivered."""

    frame: pd.DataFrame
    outcome: Any = "hired"
    protected: Any = "sex"
    options: dict[str, Any] = field(default_factory=dict)
    mode: str = "rows"
    rows: int | None = None
    how: str = "debias"  # or "lazy", or "paper"

    @property
    def table(self) -> pl.DataFrame:
        """The table as the command reads it."""
        return pl.from_pandas(self.frame)

    def fit(self):
        if self.how == "paper":
            return paper.fit(
                self.table, outcome=self.outcome, protected=self.protected, theta="b"
            )
        table = self.table.lazy() if self.how == "lazy" else self.table
        options = {"random_state": 0} | self.options
        return debias(table, self.outcome, self.protected, **options)


def refuted(rows=700, seed=0):
    """Probabilities of groups that cannot be those of the people beside them."""
    rng = np.random.default_rng([seed, 59])
    profile = rng.integers(0, 6, rows)
    chances = rng.dirichlet([6.0, 3.0], 6)[profile]
    paid = rng.random(rows) < rng.uniform(0.1, 0.9, 6)[profile]
    frame = pd.DataFrame(chances, columns=["p_a", "p_b"])
    frame["hired"] = np.where(paid, "yes", "no")
    frame["age"] = rng.integers(20, 70, rows)
    return frame


def by_names(**options):
    """Groups a and b, known as probabilities."""
    return Likely("race", {"a": "p_a", "b": "p_b"}, **{"told_by": "names"} | options)


def strata():
    """Three branches, one of them with men alone, who are few."""
    frame = people()
    branch = np.array(["lake", "hill", "port"])[np.arange(len(frame)) % 3]
    branch[frame.index[frame["sex"] == "f"][branch[frame["sex"] == "f"] == "port"]] = (
        "hill"
    )
    return frame.assign(branch=branch)


def odd():
    """Missing values, numbers in bins, identifiers, and a rare group."""
    frame = people()
    rng = np.random.default_rng(61)
    frame["race"] = rng.choice(["a", "b"], len(frame), p=[0.4, 0.6])
    frame.loc[rng.choice(len(frame), 30, replace=False), "race"] = None
    frame["pay"] = rng.normal(2000, 300, len(frame)).round(1)
    frame["name"] = [f"person {number:04d}" for number in range(len(frame))]
    return frame


def rare(size=12):
    """A third sex of so few people."""
    frame = people()
    frame.loc[frame.index[:size], "sex"] = "x"
    frame.loc[frame.index[:size], "hired"] = ["yes", "yes", "no"] * (size // 3)
    return frame


def emptied():
    """Nobody has a = 1 and b = 0, so equal sizes of both leave rows without weight."""
    counts = [("no", 0, 0, 96), ("no", 0, 1, 18), ("no", 1, 1, 6)]
    counts += [("yes", 0, 0, 64), ("yes", 0, 1, 12), ("yes", 1, 1, 4)]
    rows = [
        (hired, f"a{a}", f"b{b}") for hired, a, b, times in counts for _ in range(times)
    ]
    frame = pd.DataFrame(rows, columns=["hired", "a", "b"])
    return frame.assign(job=np.array(JOBS)[np.arange(len(frame)) % 3])


def unequal_pay():
    """Pay in whole numbers, less for women."""
    frame = people()
    rng = np.random.default_rng(62)
    frame["grade"] = rng.integers(1, 6, len(frame)) + (frame["sex"] == "m")
    return frame


def hardly_hired(share=0.04):
    """Few have the good outcome, whatever their group."""
    frame = people()
    rng = np.random.default_rng(65)
    hired = np.where(rng.random(len(frame)) < share, "yes", "no")
    return frame.assign(hired=hired)


def without_women_hired():
    """No woman has the good outcome."""
    frame = people()
    return frame.assign(hired=frame["hired"].where(frame["sex"] == "m", "no"))


GOOD = {"favourable": "yes"}
DOMAIN = Domain.declare(
    levels={
        "sex": ["f", "m"],
        "hired": ["no", "yes"],
        "job": [*JOBS],
        "town": [*TOWNS],
    }
)


def private(**options):
    """A private fit of the people, whose noise has a seed."""
    privacy = Privacy(**{"epsilon": 2.0} | options)
    return Asked(people(), options=GOOD | {"privacy": privacy, "domain": DOMAIN})


def few_women():
    """Of two groups, one with fewer than 30 rows."""
    frame = people()
    return frame.drop(frame.index[frame["sex"] == "f"][20:]).reset_index(drop=True)


def aged():
    """People of all ages."""
    frame = people()
    rng = np.random.default_rng(63)
    size = rng.integers(0, 100, len(frame)).astype(str)
    return frame.assign(age=rng.integers(20, 70, len(frame)), size=size)


FITS: dict[str, Asked] = {
    "plain": Asked(people(), options=GOOD),
    "two rows": Asked(people(), options=GOOD, rows=2),
    "weights": Asked(people(), options=GOOD, mode="weights"),
    "top-up": Asked(people(), options=GOOD | {"base_share": 0.0}, mode="top-up"),
    "refuted": Asked(
        refuted(),
        protected=by_names(),
        options=GOOD | {"largest_weight": 3},
    ),
    "small": Asked(rare(9), options=GOOD),
    "grown": Asked(rare(9), options=GOOD | {"representation_rate": 1.0}),
    "limited": Asked(
        people(),
        options=GOOD
        | {"largest_weight": 1.2, "representation_rate": 1.0}
        | {"estimate": Estimate(model=ByCell())},
    ),
    "target missed": Asked(
        people(),
        options=GOOD | {"target": {"sex": {"f": 0.9, "m": 0.1}}, "largest_weight": 1.5},
    ),
    "model of nobody": Asked(
        hardly_hired(), options=GOOD | {"model": Model(ByCell(), threshold=0.6)}
    ),
    "model": Asked(people(), options=GOOD | {"model": Model(ByCell())}),
    "estimated": Asked(people(), options=GOOD | {"estimate": Estimate(model=ByCell())}),
    "relabelled": Asked(
        people(),
        options=GOOD | {"model": Model("logistic", parity="probabilities")},
    ),
    "odd": Asked(
        odd(),
        protected=["sex", "race"],
        options=GOOD | {"forbid": [{"sex": "f", "job": "driver"}]},
    ),
    "strata": Asked(strata(), options=GOOD | {"within": "branch"}),
    "emptied": Asked(
        emptied(),
        protected=["a", "b"],
        options=GOOD | {"representation_rate": 1.0, "statistical_rate": None},
    ),
    "means": Asked(unequal_pay(), outcome="grade", options={"equal_means": True}),
    "filled": Asked(without_women_hired(), options=GOOD | {"base_share": 0.5}),
    "private": private(),
    "weak": private(delta=0.01),
    "bins": Asked(aged(), protected=["sex", "age"], options=GOOD),
    "removed": Asked(
        rare(9), options=GOOD | {"target": {"sex": {"f": 0.5, "m": 0.5, "x": 0}}}
    ),
    "paper": Asked(few_women(), how="paper"),
    "lazy": Asked(aged(), options=GOOD, how="lazy"),
}
