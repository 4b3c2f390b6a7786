"""The server: what the page can ask for, each request one function of the session, and connections that may not wait.

Every connection takes a file descriptor, of which a process has about a thousand, and uvicorn lets a client take as
long as it likes to ask for something. A browser asks at once.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from fairmaxent.app.guard import Guard
from fairmaxent.app.refusals import GoneError, StaleError, SupersededError, TooLargeError, problem_text, status_of
from fairmaxent.errors import InputError
from fairmaxent.progress import Progress

if TYPE_CHECKING:
    from fairmaxent.app.jobs import Job
    from fairmaxent.app.session import Session

# The example tables of the page, by their names in `fairmaxent.datasets`.
EXAMPLES = {
    "adult": "Income in the US census of 1994",
    "german": "Credit in Germany",
    "compas": "Reoffending in Florida",
}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_MOST_JSON = 1 << 20  # bytes of a request
_STALE = "Another table was opened, perhaps in another tab. Reload this page."

Values = dict[str, Any]
Answer = Callable[["Session", Request], Awaitable[Values]]


def make_app(starting: Future[Session], *, port: int, most_bytes: int) -> Guard:
    """The whole app behind its guard; it answers before its session has started."""
    return Guard(Starlette(routes=_Routes(starting, most_bytes).all()), port=port)


# ---------------------------------------------------------------- requests


class _Routes:
    """The requests that the page makes."""

    def __init__(self, starting: Future[Session], most_bytes: int) -> None:
        self._starting = starting
        self._most_bytes = most_bytes
        # All of them are read at the start, so that no name from a browser is ever looked up in a folder.
        folder = files("fairmaxent.app") / "static"
        self._static = {file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in _TYPES}

    def all(self) -> list[Route]:
        """Every path, with its method."""
        gets = {"state": _state, "job/{number:int}": _job}
        posts = {"upload": self._upload, "fit": _fit} | {name: partial(_posted, post) for name, post in _POSTS.items()}
        return [
            Route("/", self._page),
            Route("/static/{name}", self._page),
            Route("/files/{folder:int}/{name}", self._file),
            Route("/api/first", self._first),
            *(Route(f"/api/{path}", partial(self._answered, get)) for path, get in gets.items()),
            *(Route(f"/api/{path}", partial(self._answered, post), methods=["POST"]) for path, post in posts.items()),
        ]

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        content = self._static.get(name)
        if content is None:
            return JSONResponse({"error": "There is no such page."}, status_code=404)
        return Response(content, media_type=_TYPES[Path(name).suffix])

    async def _file(self, request: Request) -> Response:
        session = await asyncio.wrap_future(self._starting)
        path = session.file(request.path_params["folder"], request.path_params["name"])
        if path is None or not path.is_file():
            return JSONResponse({"error": "That file is no longer there; make it again."}, status_code=404)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def _first(self, request: Request) -> Response:
        """What the page begins with, even while the session is starting."""
        state = self._starting.result().state() if self._starting.done() else {"table": None, "starting": True}
        return JSONResponse({**state, "examples": EXAMPLES, "most_bytes": self._most_bytes})

    async def _answered(self, answer: Answer, request: Request) -> Response:
        """Wait for the session, and turn every failure into an answer that the page can show."""
        session = await asyncio.wrap_future(self._starting)
        try:
            return JSONResponse(await answer(session, request))
        except SupersededError:
            return JSONResponse({"superseded": True})
        except StaleError:
            return JSONResponse({"error": _STALE, "stale": True}, status_code=409)
        except Exception as problem:
            text = problem_text(problem, hide=str(session.folder))
            return JSONResponse({"error": f"{text[:1].upper()}{text[1:]}"}, status_code=status_of(problem))

    async def _upload(self, session: Session, request: Request) -> Values:
        """Take a file, in pieces, and refuse it as soon as it is too large."""
        name = request.query_params.get("name", "table")
        target = session.folder / f"upload-{os.urandom(8).hex()}"
        try:
            await _receive(request.stream(), target, self._most_bytes, request.headers.get("content-length"))
            keep = session.set_control if request.query_params.get("as") == "control" else session.open_uploaded
            return await run_in_threadpool(keep, name, target)
        finally:
            target.unlink(missing_ok=True)


async def _state(session: Session, request: Request) -> Values:
    return session.state()


async def _job(session: Session, request: Request) -> Values:
    return _job_of(session, request.path_params["number"]).to_dict()


async def _fit(session: Session, request: Request) -> Values:
    """Fit the newest wish, in the thread of the live fits."""
    values = await _values(request)
    work = partial(session.fit, values.get("table"), _options(values), spend=values.get("spend") is True)
    return await asyncio.wrap_future(session.live.submit(work))


async def _posted(post: Callable[[Session, Values], Values], session: Session, request: Request) -> Values:
    return await run_in_threadpool(post, session, await _values(request))


def _demo(session: Session, values: Values) -> Values:
    name = str(values.get("name"))
    if name not in EXAMPLES:
        raise InputError("there is no such example; reload the page")
    return session.open_demo(name, EXAMPLES[name])


def _start(session: Session, values: Values) -> Values:
    """Begin slow work."""
    works: dict[object, Callable[[Progress], Values]] = {
        "estimate": session.estimate,
        "evaluate": partial(session.evaluate, values),
        "rake": partial(session.rake, values),
        "take": session.take,
        "trade-off": session.trade_off,
    }
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in works:
        raise InputError("there is no such work; reload the page")
    return session.jobs.start(kind, works[kind]).to_dict()


def _stop(session: Session, values: Values) -> Values:
    job = _job_of(session, values.get("number"))
    job.stop()
    return job.to_dict()


def _job_of(session: Session, number: object) -> Job:
    job = session.jobs.get(number)
    if job is None:
        raise GoneError("that work is no longer known; start it again")
    return job


# What the page posts, and what is done with it in a thread.
_POSTS: dict[str, Callable[[Session, Values], Values]] = {
    "demo": _demo,
    "read": lambda session, values: session.read_again(values.get("table"), _options(values)),
    "draft": lambda session, values: session.draft(values.get("table"), _options(values)),
    "look": lambda session, values: session.look(values.get("table"), _options(values)),
    "expected": lambda session, values: session.expected(),
    "pin": lambda session, values: session.pin(),
    "rename": lambda session, values: session.rename(values.get("number"), values.get("name")),
    "unpin": lambda session, values: session.unpin(values.get("number")),
    "job": _start,
    "stop": _stop,
}


async def _receive(parts: AsyncIterator[bytes], target: Path, most: int, announced: str | None) -> None:
    """Write a body to a file that nobody else can read."""
    size = int(announced) if announced is not None and announced.isdigit() else 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        written = 0
        if size <= most:
            async for part in parts:
                written += len(part)
                if written > most:
                    break
                file.write(part)
    if max(size, written) > most:
        from fairmaxent.data.limits import memory_text

        raise TooLargeError(
            f"the file is larger than {memory_text(most)}, the most that the page takes; start the app with the file "
            "instead: fairmaxent app FILE"
        )


async def _values(request: Request) -> Values:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_JSON:
            raise TooLargeError("the page sent too much; reload it")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError("the page sent something that cannot be read; reload it")
    return values


def _options(values: Values) -> Values:
    options = values.get("options")
    if not isinstance(options, dict):
        raise InputError("the page sent no options; reload it")
    return options


# ---------------------------------------------------------------- connections

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
