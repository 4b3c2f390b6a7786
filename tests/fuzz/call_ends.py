"""How a generated call must end, and how many of them are made."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, settings
from soon import soon

from fairmaxent import FairMaxEntError

CALLS = int(os.environ.get("FUZZ_CALLS", "300"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))


def generated(share):
    """Settings of a test that makes this share of the calls."""
    return settings(
        max_examples=round(CALLS * share),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes where a call takes a second
    )


@contextmanager
def ends_well():
    """Let the library refuse a call, in a message that can be read, and soon."""
    problem = ""
    with soon(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except FairMaxEntError as own_error:
            problem = str(own_error)
    assert len(problem) < 5000
