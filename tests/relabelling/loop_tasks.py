"""Small tasks for the closed loop, with everybody in hand."""

import numpy as np

from fairmaxent.relabelling.closed_loop import Attempt, State
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
        "factor": np.ones(group.max() + 1),
        "threshold": 0.5,
        "sees_group": True,
        "train": None,
        "foretell": None,
        "fair_shares": None,
    }
    return Task(**usual | fields)


def groups_of(*sizes, **fields):
    """Groups of these sizes; in each, every other person has the good outcome."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    good = np.concatenate([np.arange(size) % 2 == 0 for size in sizes])
    return task_of(good, group, **fields)


def attempt_of(shares, offsets=(1.0, -1.0), scores=(), student=None):
    return Attempt(
        offsets=np.array(offsets, dtype=float),
        scores=np.array(scores, dtype=float),
        shares=np.array(shares, dtype=float),
        student=student,
    )


def state_of(*attempts, wanted=(0.5, 0.5), gaps=((0.0, 0.0), (0.0, 0.0)), **fields):
    usual = {"likely": None, "slopes": None, "current": attempts[-1]}
    return State(
        wanted=np.array(wanted),
        attempts=attempts,
        unseen_gaps=tuple(np.array(gap) for gap in gaps),
        **usual | fields,
    )
