"""The server: what the page can ask for, each request one function of the session."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

import fairmaxent
from fairmaxent.app.guard import Guard
from fairmaxent.app.jobs import EXAMPLES, StaleError, SupersededError, explained
from fairmaxent.errors import InputError
from fairmaxent.plain_text import Values

if TYPE_CHECKING:
    from fairmaxent.app.session import Session

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_FIXED = {"examples": EXAMPLES, "version": fairmaxent.__version__}
_MOST_JSON = 1 << 20  # bytes of a request
_MOST_SECONDS = 10.0  # until a connection has said what it asks for

# What the page posts: each is what the session does, in a thread, and is called so.
_POSTS = (
    "demo",
    "read",
    "look",
    "draft",
    "fit",
    "curve",
    "pin",
    "rename",
    "unpin",
    "start",
    "stop",
)
_QUEUED = ("fit", "curve")  # which have a thread of their own already

Taken = Callable[["Session", Request], Awaitable[Values]]  # what a request brings


def make_app(starting: Future[Session], *, port: int, most_bytes: int) -> Guard:
    """The whole app behind its guard; it answers before its session has started."""
    static = _static_files()

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in static:
            return _refused("There is no such page.", 404)
        return Response(static[name], media_type=_TYPES[Path(name).suffix])

    async def file(request: Request) -> Response:
        return _file(await asyncio.wrap_future(starting), **request.path_params)

    async def first(request: Request) -> Response:
        """What the page begins with, even while the session is starting."""
        if starting.done():
            state = starting.result().state({})
        else:
            state = {"table": None, "starting": True}
        return JSONResponse({**state, "most_bytes": most_bytes, **_FIXED})

    async def answered(taken: Taken, act: str, request: Request) -> Response:
        """Wait for the session, and make every failure an answer for the page."""
        session = await asyncio.wrap_future(starting)
        try:
            values = await taken(session, request)
            work = getattr(session, act)
            if act in _QUEUED:
                answer = await asyncio.wrap_future(work(values))
            else:
                answer = await run_in_threadpool(work, values)
            return JSONResponse(answer)
        except SupersededError:
            return JSONResponse({"superseded": True})
        except Exception as problem:
            return _refused(*explained(problem, hide=str(session.folder)))

    def route(path: str, taken: Taken, act: str, *methods: str) -> Route:
        return Route(f"/api/{path}", partial(answered, taken, act), methods=methods)

    routes = [
        Route("/", page),
        Route("/static/{name}", page),
        Route("/files/{folder:int}/{name}", file),
        Route("/api/first", first),
        route("state", _in_path, "state", "GET"),
        route("job/{number:int}", _in_path, "job", "GET"),
        *(route(name, _in_json, name, "POST") for name in _POSTS),
        route("upload", partial(_in_file, most_bytes), "open_uploaded", "POST"),
    ]
    return Guard(Starlette(routes=routes), port=port)


def _static_files() -> dict[str, bytes]:
    """The files of the page, all read at the start.

    No name from a browser is ever looked up in a folder.
    """
    folder = files("fairmaxent.app") / "static"
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if Path(file.name).suffix in _TYPES
    }


def _refused(why: str, status: int) -> Response:
    return JSONResponse({"error": why}, status_code=status)


def _file(session: Session, folder: int, name: str) -> Response:
    """A file that was made, to be saved and never shown."""
    try:
        path = session.file(folder, name)
    except StaleError as problem:
        return _refused(str(problem), 409)
    if path is None or not path.is_file():
        return _refused("That file is no longer there; make it again.", 404)
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


async def _in_path(session: Session, request: Request) -> Values:
    return request.path_params


async def _in_json(session: Session, request: Request) -> Values:
    refusal = "the page sent too much; reload it"
    body = b""
    async for part in _parts(request, _MOST_JSON, refusal):
        body += part
    try:
        values = json.loads(body, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError("the page sent something that cannot be read; reload it")
    return values


def _finite(text: str) -> float:
    """A number that can be sent back to the page."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


async def _in_file(most_bytes: int, session: Session, request: Request) -> Values:
    """Take a file, in pieces, and refuse it as soon as it is too large."""
    from fairmaxent.data.limits import memory_text

    target = session.folder / f"upload-{os.urandom(8).hex()}"
    refusal = (
        f"the file is larger than {memory_text(most_bytes)}, the most that the page"
        " takes; start the app with the file instead: fairmaxent app FILE"
    )
    try:
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(new, "wb") as file:
            async for part in _parts(request, most_bytes, refusal):
                file.write(part)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return {"name": request.query_params.get("name", "table"), "uploaded": target}


async def _parts(request: Request, most: int, refusal: str) -> AsyncIterator[bytes]:
    """The body of a request in pieces, up to a limit; its head may say at once."""
    if int(request.headers.get("content-length", 0)) > most:
        raise InputError(refusal)
    received = 0
    async for part in request.stream():
        received += len(part)
        if received > most:
            raise InputError(refusal)
        yield part


class Door(H11Protocol):
    """A connection, which ends if its request does not come in time.

    Otherwise those that ask for half of something would take all that there are.
    """

    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Wait on, or not, if this was the end of what is asked for."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _expect(self) -> None:
        # A byte now and then buys no time.
        if self.late is None:
            self.late = self.loop.call_later(_MOST_SECONDS, self.transport.close)

    def _wait_no_more(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None


def make_server(app: Guard) -> uvicorn.Server:
    """The server of the page, which says nothing about itself."""
    config = uvicorn.Config(
        app,
        http=Door,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=2,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    return uvicorn.Server(config)
