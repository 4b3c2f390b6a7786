"""Connections that wait: whoever opens one and then sends nothing, or very slowly, must not keep the page from others.

Every connection takes a file descriptor, of which a process has about a thousand, and uvicorn lets a client take as
long as it likes to ask for something. A browser asks at once.
"""

from __future__ import annotations

import asyncio

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from fairmaxent.app.guard import Guard

PATIENCE = 10.0  # seconds until a connection must have sent the head of a request, and then more of its body
MOST_CONNECTIONS = 128  # a browser has six
_BACKLOG = 64  # connections that are accepted at once, before any can be ended
_LAST_SECONDS = 2  # for answers under way when the app is stopped


def make_server(app: Guard) -> uvicorn.Server:
    """The server of the page, which says nothing about itself."""
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        backlog=_BACKLOG,
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_LAST_SECONDS,
    )
    return uvicorn.Server(config)


class ImpatientProtocol(H11Protocol):
    """Ends connections that wait too long and, if there are too many, one of those that wait."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._begin_to_wait()
        if len(self.connections) > MOST_CONNECTIONS:
            others = (one for one in self.connections if isinstance(one, ImpatientProtocol) and one is not self)
            next((one for one in others if one.is_waiting), self).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Begin to wait for more, if this was a part of a body; a head has to arrive in time as a whole."""
        super().data_received(data)
        if self._is_in_body:
            self._begin_to_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._begin_to_wait()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether the next request has not arrived, or not all of it; after an answer, its rest is nothing new."""
        return self.cycle is None or self.cycle.response_complete or self._is_in_body

    @property
    def _is_in_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    def _begin_to_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(PATIENCE, self._end_if_waiting)

    def _end_if_waiting(self) -> None:
        if self.flow.read_paused:  # it is the app that does not read on
            self._begin_to_wait()
        elif self.is_waiting:
            self.transport.abort()
