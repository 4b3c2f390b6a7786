"""What makes hundreds of calls quick, and the same each time."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from fairmaxent.fairness import likely
from fairmaxent.fit import certificate, estimate, pipeline, student
from fairmaxent.relabelling import classifier, closed_loop, labellers, rule
from people import Quick
from quiet import Seeded


def quick_teacher(roles, model, *, blind, calm):
    """What foretells outcomes while a table is made for a model."""
    return labellers.ScikitLabeller(roles, Quick(), blind=blind, calm=calm)


@contextmanager
def quickened() -> Iterator[None]:
    """Searches and estimates of one round, a quick teacher, and noise with a seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
        patch.setattr(certificate, "_DRAWS", 40)
        patch.setattr(likely, "_DRAWS", 40)
        patch.setattr(estimate, "_FEW_PEOPLE", 0)
        patch.setattr(estimate, "ESTIMATE_FOLDS", 2)
        patch.setattr(closed_loop, "_ROUNDS", 1)
        patch.setattr(rule, "_LEVELS", 5)
        patch.setattr(classifier, "_alone", lambda model: nullcontext())
        patch.setattr(student, "ScikitLabeller", quick_teacher)
        yield
