"""Inference: somebody who knows all columns of a person but one learns that one from the new rows.

As anonymeter does it: the secret is guessed from the new row that is nearest in the other columns. A number counts as
guessed if it is within 5 % of the guess, anything else if it is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.roles import read_columns
from fairmaxent.errors import ColumnError
from fairmaxent.evaluation.nearest import Nearest, Rows
from fairmaxent.evaluation.pooled import Pooled, PooledColumn
from fairmaxent.evaluation.success import Judgement, Risk, SuccessRate

TOLERANCE = 0.05
MOST_SECRETS = 40  # columns that are guessed if nobody says which


@dataclass(frozen=True)
class Inference:
    """How well each column can be guessed from the others."""

    average: Risk
    """Over all columns that were guessed."""
    by_column: dict[str, Risk]
    surely: dict[str, float]
    """The least risk of each column, if the intervals of all columns are to hold together."""

    @property
    def worst(self) -> str:
        """The column at the greatest risk, as far as that is sure."""
        return max(self.by_column, key=lambda name: (self.by_column[name].low, self.by_column[name].value))

    def judged(self, limit: float) -> Judgement:
        """High if one column surely is, otherwise as the average is."""
        one_is = self.average.control_rate is not None and max(self.surely.values()) > limit
        return "high" if one_is else self.average.judged(limit)


def inference(
    pooled: Pooled,
    secrets: Sequence[int],
    candidates: Rows,
    attacked: Sequence[tuple[Rows, Nearest]],
    *,
    confidence: float,
) -> Inference:
    """Guess each secret; ``attacked`` are the real people, then those of the control, and what is nearest to them."""
    columns = [pooled.columns[index] for index in secrets]
    right = [
        np.column_stack(
            [_is_right(column, people, candidates[near.by_others[:, at]]) for at, column in enumerate(columns)]
        )
        for people, near in attacked
    ]
    together = 1 - (1 - confidence) / len(columns)
    rates = [_average(one, confidence) for one in right]
    return Inference(
        average=Risk.beyond(rates[0], rates[1] if len(rates) > 1 else None, len(right[0])),
        by_column={column.name: _risk(right, at, confidence) for at, column in enumerate(columns)},
        surely={column.name: _risk(right, at, together).low for at, column in enumerate(columns)},
    )


def _risk(right: Sequence[NDArray[np.bool_]], at: int, confidence: float) -> Risk:
    (successes, attempts), *control = ((int(one[:, at].sum()), len(one)) for one in right)
    return Risk.of(successes, attempts, control[0] if control else None, confidence=confidence)


def _average(right: NDArray[np.bool_], confidence: float) -> SuccessRate:
    """The share of guesses that are right; the columns of one person go together, so that people are what varies."""
    from scipy.special import stdtrit  # slow to import

    by_person, people = right.mean(axis=1), len(right)
    least = SuccessRate.of(0, people, confidence).error  # a few people may be the same by chance
    if people == 1:
        return SuccessRate(float(by_person.mean()), 1.0)
    error = stdtrit(people - 1, (1 + confidence) / 2) * math.sqrt(by_person.var(ddof=1) / people)
    return SuccessRate(float(by_person.mean()), max(float(error), least))


def _is_right(column: PooledColumn, people: Rows, guessed: Rows) -> NDArray[np.bool_]:
    same = column.codes[people] == column.codes[guessed]
    if column.numbers is None:
        return np.asarray(same)
    truth, guess = column.numbers[people], column.numbers[guessed]
    return np.asarray(same | (np.abs(truth - guess) <= TOLERANCE * np.abs(guess)))  # no comparison with NaN is true


def read_secrets(pooled: Pooled, given: str | Sequence[str] | None) -> tuple[int, ...]:
    """The columns to guess, by position: by default all, or the first of very many; none if there is only one."""
    if len(pooled.columns) == 1:
        return ()
    if given is None:
        return tuple(range(len(pooled.columns)))[:MOST_SECRETS]
    names = read_columns("secrets", given)
    if not names:
        raise ColumnError("secrets is empty; name a column, or leave it out for every column")
    for name in names:
        pooled.column(name)
    return tuple(pooled.names.index(name) for name in names)
