"""The server: what the page can ask for, each request one function of the session."""

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

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from fairmaxent.app.examples import EXAMPLES
from fairmaxent.app.guard import Guard
from fairmaxent.app.refusals import StaleError, SupersededError, TooLargeError
from fairmaxent.errors import FairMaxEntError, InputError
from fairmaxent.progress import Progress

if TYPE_CHECKING:
    from fairmaxent.app.jobs import Job
    from fairmaxent.app.session import Session

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_MOST_JSON = 1 << 20  # bytes of a request
_STALE = "Another table was opened, perhaps in another tab. Reload this page."

Handler = Callable[[Request], Awaitable[Response]]
Answer = Callable[["Session", Request], Awaitable[Response]]


def make_app(starting: Future[Session], *, port: int, most_bytes: int) -> Guard:
    """The whole app behind its guard; it answers before its session has started."""
    return Guard(Starlette(routes=_Routes(starting, most_bytes).all()), port=port)


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
        posts = {"upload": self._upload, "demo": self._demo, "look": self._look, "fit": self._fit}
        posts |= {"read": self._read, "draft": self._draft}
        posts |= {"pin": self._pin, "rename": self._rename, "unpin": self._unpin}
        posts |= {"job": self._start, "stop": self._stop}
        posts |= {"expected": self._expected}
        return [
            Route("/", self._page),
            Route("/static/{name}", self._page),
            Route("/api/first", self._first),
            Route("/api/state", self._safely(self._state)),
            Route("/api/job/{number:int}", self._safely(self._job)),
            Route("/files/{folder:int}/{name}", self._file),
            *(Route(f"/api/{name}", self._safely(post), methods=["POST"]) for name, post in posts.items()),
        ]

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        content = self._static.get(name)
        if content is None:
            return JSONResponse({"error": "There is no such page."}, status_code=404)
        return Response(content, media_type=_TYPES[Path(name).suffix])

    async def _first(self, request: Request) -> Response:
        """What is known at once, while the session is starting."""
        if self._starting.done():
            return await self._safely(self._state)(request)
        return JSONResponse({"table": None, "starting": True, **self._about()})

    async def _state(self, session: Session, request: Request) -> Response:
        return JSONResponse({**session.state(), **self._about()})

    def _about(self) -> dict[str, Any]:
        return {"examples": EXAMPLES, "most_bytes": self._most_bytes}

    # ------------------------------------------------------------ the table

    async def _upload(self, session: Session, request: Request) -> Response:
        """Take a file, in pieces, and refuse it as soon as it is too large."""
        name = request.query_params.get("name", "table")
        target = session.folder / f"upload-{os.urandom(8).hex()}"
        try:
            await _receive(request.stream(), target, self._most_bytes, request.headers.get("content-length"))
            keep = session.set_control if request.query_params.get("as") == "control" else session.open_uploaded
            state = await run_in_threadpool(keep, name, target)
        finally:
            target.unlink(missing_ok=True)
        return JSONResponse({**state, **self._about()})

    async def _read(self, session: Session, request: Request) -> Response:
        """Read the open file in another way."""
        values = await _values(request)
        state = await run_in_threadpool(session.read_again, values.get("table"), _options(values))
        return JSONResponse({**state, **self._about()})

    async def _draft(self, session: Session, request: Request) -> Response:
        """Draft a declared domain, to be edited."""
        values = await _values(request)
        return JSONResponse(await run_in_threadpool(session.draft, values.get("table"), _options(values)))

    async def _demo(self, session: Session, request: Request) -> Response:
        values = await _values(request)
        state = await run_in_threadpool(session.open_demo, str(values.get("name")))
        return JSONResponse({**state, **self._about()})

    async def _look(self, session: Session, request: Request) -> Response:
        values = await _values(request)
        return JSONResponse(
            await run_in_threadpool(session.look, values.get("table"), _options(values)),
        )

    # ------------------------------------------------------------ the fit

    async def _fit(self, session: Session, request: Request) -> Response:
        values = await _values(request)
        number, options = values.get("table"), _options(values)

        def work(progress: Progress) -> dict[str, Any]:
            return session.fit(number, options, progress, spend=values.get("spend") is True)

        return JSONResponse(await asyncio.wrap_future(session.live.submit(work)))

    async def _expected(self, session: Session, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.expected))

    async def _pin(self, session: Session, request: Request) -> Response:
        return JSONResponse(session.pin())

    async def _rename(self, session: Session, request: Request) -> Response:
        values = await _values(request)
        return JSONResponse(session.rename(values.get("number", -1), values.get("name")))

    async def _unpin(self, session: Session, request: Request) -> Response:
        return JSONResponse(session.unpin((await _values(request)).get("number", -1)))

    # ------------------------------------------------------------ slow work and files

    async def _start(self, session: Session, request: Request) -> Response:
        values = await _values(request)
        works: dict[object, Callable[[Progress], dict[str, Any]]] = {
            "estimate": session.estimate,
            "evaluate": partial(session.evaluate, values),
            "rake": partial(session.rake, values),
            "take": session.take,
            "trade-off": session.trade_off,
        }
        kind = values.get("kind")
        if not isinstance(kind, str) or kind not in works:
            raise InputError("there is no such work; reload the page")
        return _shown(session.jobs.start(kind, works[kind]))

    async def _stop(self, session: Session, request: Request) -> Response:
        number = (await _values(request)).get("number")
        job = session.jobs.get(number) if isinstance(number, int) else None
        if job is not None:
            session.jobs.stop(job)
        return _shown(job)

    async def _job(self, session: Session, request: Request) -> Response:
        return _shown(session.jobs.get(request.path_params["number"]))

    async def _file(self, request: Request) -> Response:
        session = await asyncio.wrap_future(self._starting)
        path = session.file(request.path_params["folder"], request.path_params["name"])
        if path is None or not path.is_file():
            return JSONResponse({"error": "That file is no longer there; make it again."}, status_code=404)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    def _safely(self, answer: Answer) -> Handler:
        """Wait for the session, and turn every failure into an answer that the page can show."""

        async def answered(request: Request) -> Response:
            session = await asyncio.wrap_future(self._starting)
            try:
                return await answer(session, request)
            except SupersededError:
                return JSONResponse({"superseded": True})
            except StaleError:
                return JSONResponse({"error": _STALE, "stale": True}, status_code=409)
            except Exception as problem:
                return _failed(problem, hide=str(session.folder))

        return answered


def _shown(job: Job | None) -> Response:
    if job is None:
        return JSONResponse({"error": "That work is no longer known; start it again."}, status_code=404)
    return JSONResponse(job.to_dict())


def _failed(problem: Exception, *, hide: str) -> Response:
    from click import ClickException

    from fairmaxent.app.problem_text import problem_text

    known = isinstance(problem, FairMaxEntError | OSError | MemoryError | ClickException)
    status = 413 if isinstance(problem, TooLargeError) else 422 if known else 500
    text = problem_text(problem, hide=hide)
    return JSONResponse({"error": f"{text[:1].upper()}{text[1:]}"}, status_code=status)


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


async def _values(request: Request) -> dict[str, Any]:
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


def _options(values: dict[str, Any]) -> dict[str, Any]:
    options = values.get("options")
    if not isinstance(options, dict):
        raise InputError("the page sent no options; reload it")
    return options
