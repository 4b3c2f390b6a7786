"""Steps that belong together: a signal that arrives between them takes effect after the last one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# Those that may make Python raise an exception at any point, such as Ctrl-C.
_RAISING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]

# Held while such steps are going on; a thread that ends the process waits for it.
_BUSY = threading.RLock()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Put off every signal with a handler in Python, and every thread that wants the same, until the steps are done."""
    with _BUSY:
        # Handlers run in the main thread, and only there can they be exchanged.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        late: list[tuple[int, FrameType | None]] = []
        handlers = {number: signal.getsignal(number) for number in _RAISING}
        handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
        for number in handlers:
            signal.signal(number, lambda *now: late.append(now))
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for number, frame in late:
                handler = handlers[number]
                if callable(handler):
                    handler(number, frame)
