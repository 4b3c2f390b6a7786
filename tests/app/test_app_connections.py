"""Slow, silent, sudden clients: the page stays there for others, and nothing of theirs stays."""

import asyncio
import contextlib
import socket
import time

import pytest

from appserver import running

server = pytest.importorskip("fairmaxent.app.server", reason="needs uvicorn and starlette", exc_type=ImportError)


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 12)
    with running(tmp_path) as client:
        yield client


@pytest.fixture
def opened(client):
    """Open a connection and send something; all are closed in the end."""
    with contextlib.ExitStack() as stack:

        def open_and_send(sent):
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=20))
            raw.sendall(sent)
            return raw

        yield open_and_send


def head(client, path, *, cookie=None, length=1_000_000):
    host = f"127.0.0.1:{client.port}"
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, f"Cookie: {cookie or client.cookie}", "", ""]).encode()


def is_ended(raw):
    """Whether the server ends a connection, whatever it sends before."""
    try:
        while raw.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def uploads(client):
    return [path for path in client.session.folder.rglob("*") if path.name.startswith("upload-")]


def until(condition):
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_connections_that_ask_for_nothing_are_ended_and_the_page_is_there(client, opened):
    halves = [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST /api/upload HTTP/1.1\r\nX-a: "]
    waiting = [opened(halves[number % 4]) for number in range(60)]
    assert client.send("GET", "/api/state")[0] == 200
    assert all(is_ended(raw) for raw in waiting)


def test_a_body_that_nobody_waits_for_ends_with_the_answer(client, opened):
    raw = opened(head(client, "/api/upload", cookie="x=y"))
    assert b"403" in raw.recv(65_536)

    def is_refused():
        try:
            raw.sendall(b"a")
        except OSError:
            return True
        return False

    assert until(is_refused)


def test_an_upload_may_take_longer_than_a_head(client, opened):
    lines = [b"sex,hired\n", *[b"f,yes\n", b"m,no\n"] * 10]
    raw = opened(head(client, "/api/upload?name=slow.csv", length=sum(map(len, lines))))
    for line in lines:
        raw.sendall(line)
        time.sleep(0.06)
    assert b"200 OK" in raw.recv(65_536)


def test_uploads_that_stop_are_ended_and_leave_nothing(client, opened):
    stopped = [opened(head(client, "/api/upload?name=half.csv") + b"sex,hired\n" * (n % 2)) for n in range(10)]
    assert all(is_ended(raw) for raw in stopped)
    assert until(lambda: not uploads(client))


def test_uploads_that_trickle_give_way_to_others(client, opened, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 60)
    trickling = [opened(head(client, "/api/upload?name=half.csv") + b"sex") for _ in range(12)]
    assert until(lambda: len(uploads(client)) == 12)
    assert client.send("GET", "/api/state")[0] == 200
    assert until(lambda: len(uploads(client)) == 11)
    assert len(trickling) == 12


def test_an_upload_that_the_app_is_slow_to_take_is_not_ended(client, opened, monkeypatch):
    receive = server._receive

    async def slowly(*args):
        await asyncio.sleep(1.5)
        await receive(*args)

    monkeypatch.setattr(server, "_receive", slowly)
    lines = b"sex,hired\n" + b"f,yes\nm,no\n" * 20_000
    raw = opened(head(client, "/api/upload?name=large.csv", length=len(lines)) + lines)
    assert b"200 OK" in raw.recv(65_536)


def test_a_client_that_leaves_in_the_middle_leaves_nothing(client, opened):
    raw = opened(head(client, "/api/upload?name=half.csv") + b"sex,hired\nf,yes\n")
    assert until(lambda: uploads(client))
    raw.close()
    assert until(lambda: not uploads(client))
    assert client.send("GET", "/api/state")[0] == 200
