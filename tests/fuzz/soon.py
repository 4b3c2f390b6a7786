"""A limit of time for what is fuzzed, so that a loop without end is found instead of waited for."""

from __future__ import annotations

import signal
from contextlib import contextmanager

SECONDS = 20  # that this process may compute


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
