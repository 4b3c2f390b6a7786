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

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from fairmaxent.app.guard import Guard
from fairmaxent.app.jobs import EXAMPLES, StaleError, SupersededError, explained
from fairmaxent.errors import InputError

if TYPE_CHECKING:
    from fairmaxent.app.session import Session

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_MOST_JSON = 1 << 20  # bytes of a request

Values = dict[str, Any]
Act = Callable[["Session", Values], Values]
Taken = Callable[["Session", Request], Awaitable[Values]]  # what a request brings


def make_app(starting: Future[Session], *, port: int, most_bytes: int) -> Guard:
    """The whole app behind its guard; it answers before its session has started."""
    # All files are read at the start, so that no name from a browser is ever looked up in a folder.
    folder = files("fairmaxent.app") / "static"
    static = {file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in _TYPES}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in static:
            return JSONResponse({"error": "There is no such page."}, status_code=404)
        return Response(static[name], media_type=_TYPES[Path(name).suffix])

    async def file(request: Request) -> Response:
        session = await asyncio.wrap_future(starting)
        try:
            path = session.file(request.path_params["folder"], request.path_params["name"])
        except StaleError as problem:
            return JSONResponse({"error": str(problem)}, status_code=409)
        if path is None or not path.is_file():
            return JSONResponse({"error": "That file is no longer there; make it again."}, status_code=404)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def first(request: Request) -> Response:
        """What the page begins with, even while the session is starting."""
        state = starting.result().state() if starting.done() else {"table": None, "starting": True}
        return JSONResponse({**state, "examples": EXAMPLES, "most_bytes": most_bytes})

    async def answered(taken: Taken, act: Act, request: Request) -> Response:
        """Wait for the session, and turn every failure into an answer that the page can show."""
        session = await asyncio.wrap_future(starting)
        try:
            return JSONResponse(await run_in_threadpool(act, session, await taken(session, request)))
        except SupersededError:
            return JSONResponse({"superseded": True})
        except Exception as problem:
            text, status = explained(problem, hide=str(session.folder))
            return JSONResponse({"error": text}, status_code=status)

    def post(path: str, taken: Taken, act: Act) -> Route:
        return Route(f"/api/{path}", partial(answered, taken, act), methods=["POST"])

    routes = [
        Route("/", page),
        Route("/static/{name}", page),
        Route("/files/{folder:int}/{name}", file),
        Route("/api/first", first),
        *(Route(f"/api/{path}", partial(answered, _in_path, act)) for path, act in _GETS.items()),
        *(post(path, _in_json, act) for path, act in _POSTS.items()),
        post("upload", partial(_in_file, most_bytes), lambda session, values: session.open_uploaded(**values)),
    ]
    return Guard(Starlette(routes=routes), port=port)


# ---------------------------------------------------------------- what a request brings


async def _in_path(session: Session, request: Request) -> Values:
    return request.path_params


async def _in_json(session: Session, request: Request) -> Values:
    body = [part async for part in _parts(request, _MOST_JSON, "the page sent too much; reload it")]
    try:
        values = json.loads(b"".join(body))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError("the page sent something that cannot be read; reload it")
    return values


async def _in_file(most_bytes: int, session: Session, request: Request) -> Values:
    """Take a file, in pieces, and refuse it as soon as it is too large."""
    from fairmaxent.data.limits import memory_text

    target = session.folder / f"upload-{os.urandom(8).hex()}"
    refusal = (
        f"the file is larger than {memory_text(most_bytes)}, the most that the page takes; start the app with the file "
        "instead: fairmaxent app FILE"
    )
    try:
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            async for part in _parts(request, most_bytes, refusal):
                file.write(part)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return {"name": request.query_params.get("name", "table"), "uploaded": target}


async def _parts(request: Request, most: int, refusal: str) -> AsyncIterator[bytes]:
    """The body of a request in pieces, up to a limit."""
    received = 0
    async for part in request.stream():
        received += len(part)
        if received > most:
            raise InputError(refusal)
        yield part


# ---------------------------------------------------------------- what is done with it


def _options(values: Values) -> Values:
    options = values.get("options")
    if not isinstance(options, dict):
        raise InputError("the page sent no options; reload it")
    return options


def _start(session: Session, values: Values) -> Values:
    """Begin slow work."""
    works = {"estimate": session.estimate, "evaluate": session.evaluate, "rake": session.rake, "take": session.take}
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in works:
        raise InputError("there is no such work; reload the page")
    session.current_table(values.get("table")) if kind == "rake" else session.current(values)
    return vars(session.jobs.start(kind, partial(works[kind], values)))


def _fit(session: Session, values: Values) -> Values:
    """Fit the newest wish, in the thread of the live fits."""
    spend, moving = (values.get(name) is True for name in ("spend", "moving"))
    work = partial(session.fit, values.get("table"), _options(values), spend=spend, moving=moving)
    return session.live.submit(work).result()


# What the page gets, what it posts, and what is done with it, in a thread.
_GETS: dict[str, Act] = {
    "state": lambda session, values: session.state(),
    "job/{number:int}": lambda session, values: vars(session.jobs.get(values["number"])),
}
_POSTS: dict[str, Act] = {
    "demo": lambda session, values: session.open_demo(str(values.get("name"))),
    "fit": _fit,
    "read": lambda session, values: session.read_again(values.get("table"), _options(values)),
    "draft": lambda session, values: session.draft(values.get("table"), _options(values)),
    "look": lambda session, values: session.look(values.get("table"), _options(values)),
    "curve": lambda session, values: session.curves.submit(partial(session.curve, values)).result(),
    "pin": lambda session, values: session.pin(values),
    "rename": lambda session, values: session.rename(values.get("number"), values.get("name")),
    "unpin": lambda session, values: session.unpin(values.get("number")),
    "job": _start,
    "stop": lambda session, values: vars(session.jobs.get(values.get("number")).stop()),
}


def make_server(app: Guard) -> uvicorn.Server:
    """The server of the page, which says nothing about itself."""
    config = uvicorn.Config(
        app,
        http="h11",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
