"""How a generated call must end, and soon, so that a loop without end is found instead of waited for."""

from __future__ import annotations

import os
import signal
import warnings
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, settings

from fairmaxent import FairMaxEntError

CALLS = int(os.environ.get("FUZZ_CALLS", "150"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
SECONDS = 20  # that this process may compute


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
def soon():
    """Raise an error in whatever takes longer."""

    def stop(*_):
        raise AssertionError(f"it took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


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
