"""The guard at the door: only this computer and address, and only who was let in."""

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"x-frame-options": b"DENY",
}
_SAFE = ("GET", "HEAD")
# Cookies go to every port of this computer, so others may know them: what is about the
# table takes the page's own secret, which it keeps and sends in this header, or, to
# save a file, in the address.
_PAGE_HEADER = "x-fairmaxent-page"
_OF_EVERYBODY = ("/static/",)  # which the package holds
_OWN_SITES = (None, "same-origin", "none")
NO_TOKEN = (
    "The address that 'fairmaxent app' prints works once. Go to where it is open, or"
    " start the app again.\n"
)
# Otherwise a browser that is slow to go on asks the app for an icon.
_NO_ICON = '<link rel="icon" href="data:,">'
# A browser sends a strict cookie only where the app's own page leads, so the next step
# is a page, and no redirection.
ONWARD = (
    f'<!doctype html>{_NO_ICON}<meta http-equiv="refresh" content="0;url={{0}}"><a'
    ' href="{0}">fairmaxent</a>'
)


class Guard:
    """Checks every request before the app sees it, and adds safe headers to answers."""

    def __init__(self, app: Application, *, port: int) -> None:
        self._app = app
        self._port = port
        self._tokens: set[str] = set()
        self._secret = secrets.token_bytes(32)
        # cookies know no ports, and two apps may run at once
        self._name = f"fairmaxent-{port}"
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    def new_address(self) -> str:
        """An address that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(token)
        return f"http://127.0.0.1:{self._port}/?token={token}"

    async def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        if refused is None:
            answer: Application = self._app
        else:
            answer = refused

        async def safely(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [
                    (name, value)
                    for name, value in message.get("headers", [])
                    if name not in HEADERS
                ]
                message = {**message, "headers": [*given, *HEADERS.items()]}
            await send(message)

        await answer(scope, receive, safely)

    def _refused(self, scope: Scope) -> Response | None:
        """The answer to a request that may not pass; None: it may."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        host = headers.get("host")
        origin = headers.get("origin")
        if host not in self._hosts:
            return _no("This address is not the app's.\n")
        if origin is not None and origin != f"http://{host}":
            return _no("Another site may not use the app.\n")
        if headers.get("sec-fetch-site") not in _OWN_SITES and scope["path"] != "/":
            return _no("Another site may not use the app.\n")
        if scope["method"] not in _SAFE and origin is None:
            return _no(
                "A request that changes something must come from the app's page.\n"
            )
        query = parse_qs(scope["query_string"].decode("latin-1"))
        token = query.get("token", [""])[0]
        known = [one for one in self._tokens if _is_same(token, one)]
        cookie = self._derived("cookie", host)
        page = self._derived("page", host)
        if scope["path"] == "/" and scope["method"] == "GET" and known:
            self._tokens -= {*known}
            # behind a #, it is sent to nobody
            answer = HTMLResponse(ONWARD.format(f"/#page={page}"))
            answer.set_cookie(
                self._name,
                cookie,
                httponly=True,
                samesite="strict",
                path="/",
            )
            return answer
        if not _is_same(self._cookie_in(headers), cookie):
            return _no(NO_TOKEN)
        path = scope["path"]
        if path == "/" or path.startswith(_OF_EVERYBODY):
            return None
        given = headers.get(_PAGE_HEADER, "")
        if path.startswith("/files/"):
            given = query.get("page", [""])[0]
        if _is_same(given, page):
            return None
        return _no(NO_TOKEN)

    def _derived(self, what: str, host: str) -> str:
        """A secret for one use; another host has another one."""
        return hmac.new(self._secret, f"{what} {host}".encode(), "sha256").hexdigest()

    def _cookie_in(self, headers: MutableMapping[str, str]) -> str:
        try:
            known = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except CookieError:
            return ""
        if known is None:
            return ""
        return known.value


def _is_same(given: str, secret: str) -> bool:
    """Compare in a time that says nothing."""
    return hmac.compare_digest(given.encode(), secret.encode())


def _no(why: str) -> Response:
    """Refuse, and do not wait for what else would come."""
    return PlainTextResponse(why, status_code=403, headers={"connection": "close"})
