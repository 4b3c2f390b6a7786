"""People: the tables of the frontier, and their random splits into people to learn from and people to judge on."""

import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated import census, lending

TEST_SHARE = 0.3
MOST_JUDGED = 10_000

# Data set → protected column. COMPAS is held to the two groups that the published analyses compare: the others are so
# small that a test fold has a handful of them, and a ratio over a handful of people measures nothing.
PROTECTED = {"adult": "sex", "german": "sex", "compas": "race", "census": "sex", "lending": "origin"}
_COMPARED = {"compas": ("African-American", "Caucasian")}
ACS = "acs"  # a survey by race, in integer codes; its file is not part of the package
_SIMULATED = {"census": (census, "income", "high"), "lending": (lending, "repaid", "yes")}
# Both say, one way or the other, what two_year_recid says.
_FEW_CODES = 20
_LEAKING = {"compas": ("is_recid", "is_violent_recid")}


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of one table, and the roles of its columns."""

    train: Any  # pandas frames
    test: Any
    outcome: str
    protected: str
    favourable: object
    seed: int
    sees_group: bool = True  # whether models see the protected column

    @cached_property
    def domain(self) -> Any:
        """The levels that distances are measured in: bins of numbers, learned from the people to learn from."""
        import fairmaxent

        return fairmaxent.Domain.infer(self.train)

    def labels(self, frame: Any) -> NDArray[np.bool_]:
        """Whether each row has the favourable outcome."""
        return (frame[self.outcome] == self.favourable).to_numpy(dtype=bool)

    def groups(self, frame: Any) -> NDArray[np.intp]:
        """The group of each row, by number."""
        known = sorted(self.train[self.protected].unique())
        return np.searchsorted(known, frame[self.protected].to_numpy(dtype=type(known[0])))

    def features(self, frame: Any) -> Any:
        """All columns but the outcome; the protected one is a feature like others, unless it is hidden."""
        return frame.drop(columns=[self.outcome] if self.sees_group else [self.outcome, self.protected])


def split(name: str, number: int, rows: int | None = None) -> Fold:
    """Split a table 70 to 30, each part with the same shares of outcome × group; ``rows``: of a part of it only."""
    from sklearn.model_selection import train_test_split

    frame, cells, roles = _people(name)
    if rows is not None and rows < len(frame):
        frame, _, cells, _ = train_test_split(frame, cells, train_size=rows, random_state=0, stratify=cells)
    train, test = train_test_split(frame, test_size=TEST_SHARE, random_state=number, stratify=cells)
    return Fold(train.reset_index(drop=True), test.reset_index(drop=True), *roles, number)


def few_learn(name: str, number: int, learn: int, *, sees_group: bool) -> Fold:
    """At most so many people to learn from, and of all the others up to `MOST_JUDGED` to judge on."""
    from sklearn.model_selection import train_test_split

    frame, cells, roles = _people(name)
    learn = min(learn, round((1 - TEST_SHARE) * len(frame)))
    judged = min(MOST_JUDGED, len(frame) - learn)
    parts = train_test_split(frame, train_size=learn, test_size=judged, random_state=number, stratify=cells)
    train, test = (part.reset_index(drop=True) for part in parts)
    return Fold(train, test, *roles, number, sees_group)


@cache
def _people(name: str) -> tuple[Any, Any, tuple[str, str, object]]:
    """Return a table, the cell (y, z) of each row as text, and outcome, protected column and favourable outcome."""
    import fairmaxent

    if name == ACS:
        return _survey()
    protected = PROTECTED[name]
    if name in _SIMULATED:
        simulate, outcome, favourable = _SIMULATED[name]
        frame = simulate()
        return frame, frame[outcome] + "/" + frame[protected], (outcome, protected, favourable)
    dataset = fairmaxent.datasets.load(name)
    frame = dataset.frame.drop(columns=list(_LEAKING.get(name, ())))
    if name in _COMPARED:
        frame = frame[frame[protected].isin(_COMPARED[name])]
    cells = frame[dataset.outcome].astype(str) + "/" + frame[protected].astype(str)
    return frame, cells, (dataset.outcome, protected, dataset.favourable)


def survey_path() -> Path:
    """Where the survey would be."""
    return Path(os.environ.get("FAIRMAXENT_DATA", "data")) / "acs_mobility.parquet"


def _survey() -> tuple[Any, Any, tuple[str, str, object]]:
    """The five largest races; columns of few codes are levels, the others numbers."""
    import pandas as pd

    frame = pd.read_parquet(survey_path())
    frame = frame[frame["RAC1P"].isin(frame["RAC1P"].value_counts().index[:5])].reset_index(drop=True)
    frame = frame.assign(**{name: frame[name].astype(str) for name in frame if frame[name].nunique() <= _FEW_CODES})
    return frame, frame["MIG"] + "/" + frame["RAC1P"], ("MIG", "RAC1P", "1")
