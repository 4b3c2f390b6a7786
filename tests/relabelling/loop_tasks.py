"""Small tasks for the closed loop, with everybody in hand."""

import numpy as np

from fairmaxent.relabelling.closed_loop import Attempt, State
from fairmaxent.relabelling.rule import Known
from fairmaxent.relabelling.task import Task


def task_of(good, group, **fields):
    """People with these outcomes and groups, who count 1 each and have no profile."""
    good = np.array(good, dtype=bool)
    group = np.array(group, dtype=np.intp)
    usual = {
        "good": good,
        "group": group,
        "profile": np.arange(len(good)),
        "weight": np.ones(len(good)),
        "compared": np.ones(len(good), dtype=bool),
        "of_good": False,
        "factor": np.ones(group.max() + 1),
        "threshold": 0.5,
        "sees_group": True,
        "train": None,
        "advise": None,
        "fair_shares": lambda shares: np.full(len(shares), shares.mean()),
    }
    return Task(**usual | fields)


def groups_of(*sizes, **fields):
    """Groups of these sizes; in each, every other person has the good outcome."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    good = np.concatenate([np.arange(size) % 2 == 0 for size in sizes])
    return task_of(good, group, **fields)


def known_by(task, chances=0.5, moves=None, *, is_own=True, shares=None):
    """What is known of the people of a task; of their groups everything."""
    if moves is None:
        moves = np.eye(task.groups)[task.group]
    if shares is None:
        shares = np.full(task.groups, 0.5)
    return Known(
        chances=np.broadcast_to(np.array(chances, dtype=float), len(task.good)),
        moves=np.array(moves, dtype=float),
        is_own=is_own,
        shares=np.array(shares, dtype=float),
        trainings=2.0,
    )


def attempt_of(shares, offsets=(1.0, -1.0), chances=(), student=None):
    return Attempt(
        offsets=np.array(offsets, dtype=float),
        chances=np.array(chances, dtype=float),
        shares=np.array(shares, dtype=float),
        student=student,
    )


def state_of(*attempts, wanted=(0.5, 0.5), gaps=((0.0, 0.0),), **fields):
    usual = {"known": None, "offsets": np.zeros(len(wanted)), "trainings": 5.0}
    return State(
        wanted=np.array(wanted),
        attempts=attempts,
        unseen_gaps=tuple(np.array(gap) for gap in gaps),
        **usual | fields,
    )
