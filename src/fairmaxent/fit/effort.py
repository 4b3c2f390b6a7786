"""Effort: how many people and rounds an estimate takes, and how many seconds that is expected to take.

The work is training models: the student twice in each fold, and in a relabelled fit the labeller and the looped student
as well. What one training takes was measured for gradient boosting on tables of 500 to 30,000 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairmaxent.data.frames import has_library
from fairmaxent.fit.request import Request
from fairmaxent.relabelling.labellers import TREE

FOLDS = 3

SECONDS = 10.0  # an estimate that nobody asked for takes at most this long, as far as can be expected
_CHEAP = 5.0  # seconds within which people are split into folds again
_ROUNDS = 3  # of splitting people into folds, at most
MOST_PEOPLE = 50_000  # of a larger table, that many represent all
_FEWEST_PEOPLE = 2_000  # of a larger table, fewer represent too little

_TRAINING = 0.25  # seconds of one training, whatever the table
_PER_CELL = 2e-6  # seconds for each row and column
_FIT = 0.1  # seconds of one fit, whatever the table
_FAST = 0.1  # of that takes the rooted tree

# Trainings in a fit, besides the student's own.
_LABELLING = 5
_LOOP = 20


@dataclass(frozen=True)
class Effort:
    """How much work is put into an estimate."""

    people: int  # that it is made from
    judged: int = FOLDS  # folds that are decided about, of `FOLDS`
    rounds: int = 1


def effort_asked_for(table_size: int, columns: int, outcomes: int, request: Request, student: Any) -> Effort:
    """The effort for an estimate that somebody asked for: everybody, and more rounds if they are cheap."""
    people = min(table_size, MOST_PEOPLE)
    seconds = _seconds(Effort(people), columns, outcomes, request, student)
    return Effort(people, rounds=max(1, min(_ROUNDS, int(_CHEAP / seconds))))


def effort_by_default(table_size: int, columns: int, outcomes: int, request: Request) -> Effort | None:
    """The largest effort that is expected to take less than `SECONDS`; None: there is none that says enough.

    Fewer people are taken first, and if those are too few, only one of the folds is decided about.
    """
    asked = effort_asked_for(table_size, columns, outcomes, request, None)
    for judged in (FOLDS, 1):
        for people in _halved(asked.people, at_least=min(table_size, _FEWEST_PEOPLE)):
            rounds = asked.rounds if judged == FOLDS and people == asked.people else 1
            effort = Effort(people, judged, rounds)
            if _seconds(effort, columns, outcomes, request, None) <= SECONDS:
                return effort
    return None


def _halved(people: int, *, at_least: int) -> list[int]:
    """The number of people, and fewer and fewer of them."""
    result = [people]
    while result[-1] > at_least:
        result.append(max(at_least, round(result[-1] * 0.7)))
    return result


def _seconds(effort: Effort, columns: int, outcomes: int, request: Request, student: Any) -> float:
    """What an estimate is expected to take."""
    learned = effort.people * (FOLDS - 1) / FOLDS
    one = (_TRAINING + _PER_CELL * learned * columns) * (outcomes if outcomes > 2 else 1)
    plan = request.relabelling
    trainings = 2 * _relative(student)
    if plan is not None:
        trainings += _LABELLING * _relative(plan.labeller)
    if plan is not None and plan.parity == "predictions":
        trainings += _LOOP * _relative(getattr(plan, "student", None))
    return effort.rounds * effort.judged * (trainings * one + _FIT + one / 4)


def _relative(model: Any) -> float:
    """How long one training takes, relative to gradient boosting; other classifiers of the user's count as that."""
    return _FAST if model == TREE or (model is None and not has_library("sklearn")) else 1.0
