"""People: the tables that models learn from, and their random splits into people to
learn from and to judge on.
"""

from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.field_tables import scenarios
from benchmarks.simulated import census, lending

TEST_SHARE = 0.3
MOST_JUDGED = 10_000

ACS = "acs"  # its file is not part of the package
# Of the frontier, but for ACS; the real ones are described in field.toml.
TABLES = "adult", "german", "compas", "census", "lending"
_SIMULATED = {
    "census": (census, "income", "sex", "high"),
    "lending": (lending, "repaid", "origin", "yes"),
}

# outcome, protected column or columns, favourable outcome
Roles = tuple[str, str | list[str], object]


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of one table, and the roles of its columns."""

    train: Any  # pandas frames
    test: Any
    outcome: str
    protected: str | list[str]  # several: their intersections are compared
    favourable: object
    seed: int
    sees_group: bool = True  # whether models see the protected column

    @cached_property
    def domain(self) -> Any:
        """The levels that distances are measured in: bins of numbers, learned from the
        people to learn from.
        """
        import fairmaxent

        return fairmaxent.Domain.infer(self.train)

    def labels(self, frame: Any) -> NDArray[np.bool_]:
        """Whether each row has the favourable outcome."""
        return (frame[self.outcome] == self.favourable).to_numpy(dtype=bool)

    def groups(self, frame: Any) -> NDArray[np.intp]:
        """The group of each row, by number."""
        known = sorted(_joint(self.train, self.protected).unique())
        return np.searchsorted(
            known, _joint(frame, self.protected).to_numpy(dtype=type(known[0]))
        )

    def features(self, frame: Any) -> Any:
        """All columns but the outcome; the protected ones are features like others,
        unless they are hidden.
        """
        return frame.drop(
            columns=(
                [self.outcome]
                if self.sees_group
                else [self.outcome, *_names(self.protected)]
            )
        )


def split(name: str, number: int, rows: int | None = None) -> Fold:
    """Split a table 70 to 30, each part with the same shares of outcome × group;
    ``rows``: of a part of it only.
    """
    from sklearn.model_selection import train_test_split

    frame, cells, roles = people(name)
    if rows is not None and rows < len(frame):
        frame, _, cells, _ = train_test_split(
            frame, cells, train_size=rows, random_state=0, stratify=cells
        )
    train, test = train_test_split(
        frame, test_size=TEST_SHARE, random_state=number, stratify=cells
    )
    return Fold(
        train.reset_index(drop=True), test.reset_index(drop=True), *roles, number
    )


@cache
def few_learn(name: str, number: int, learn: int, *, sees_group: bool) -> Fold:
    """At most so many people to learn from, and of all the others up to `MOST_JUDGED`
    to judge on.
    """
    from sklearn.model_selection import train_test_split

    frame, cells, roles = people(name)
    learn = min(learn, round((1 - TEST_SHARE) * len(frame)))
    judged = min(MOST_JUDGED, len(frame) - learn)
    parts = train_test_split(
        frame, train_size=learn, test_size=judged, random_state=number, stratify=cells
    )
    train, test = (part.reset_index(drop=True) for part in parts)
    return Fold(train, test, *roles, number, sees_group)


@cache
def people(name: str) -> tuple[Any, Any, Roles]:
    """Return a table, the cell (y, z) of each row as text, and the roles of its
    columns.
    """
    if name in _SIMULATED:
        simulate, *roles = _SIMULATED[name]
        frame, (outcome, protected, favourable) = simulate(), roles
    else:
        scenario = scenarios()[name]
        frame, outcome = scenario.read(), scenario.facts["outcome"]
        protected, favourable = scenario.protected, scenario.good
    cells = frame[outcome].astype(str) + "/" + _joint(frame, protected).astype(str)
    return frame, cells, (outcome, protected, favourable)


def _names(protected: str | list[str]) -> list[str]:
    return [protected] if isinstance(protected, str) else protected


def _joint(frame: Any, protected: str | list[str]) -> Any:
    """The protected column, or the levels of several as one text."""
    if isinstance(protected, str):
        return frame[protected]
    return reduce(
        lambda left, right: left + "/" + right,
        (frame[name].astype(str) for name in protected),
    )
