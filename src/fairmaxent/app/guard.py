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
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        known = [
            one
            for one in self._tokens
            if hmac.compare_digest(token.encode(), one.encode())
        ]
        # another host has another one
        cookie = hmac.new(self._secret, host.encode(), "sha256").hexdigest()
        if scope["path"] == "/" and scope["method"] == "GET" and known:
            self._tokens -= {*known}
            answer = HTMLResponse(ONWARD.format("/"))
            answer.set_cookie(
                self._name,
                cookie,
                httponly=True,
                samesite="strict",
                path="/",
            )
            return answer
        if hmac.compare_digest(self._cookie_in(headers).encode(), cookie.encode()):
            return None
        return _no(NO_TOKEN)

    def _cookie_in(self, headers: MutableMapping[str, str]) -> str:
        try:
            known = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except CookieError:
            return ""
        if known is None:
            return ""
        return known.value


def _no(why: str) -> Response:
    return PlainTextResponse(why, status_code=403)
