"""How a generated call must end, and how many of them are made."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, settings

from fairmaxent import FairMaxEntError

CALLS = int(os.environ.get("FUZZ_CALLS", "300"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
SECONDS = 20


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
    began, problem = time.process_time(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except FairMaxEntError as own_error:
            problem = str(own_error)
    assert len(problem) < 5000
    assert time.process_time() - began < SECONDS
