"""Slow, silent, sudden clients: the page stays there for others, and nothing of theirs stays."""

import contextlib
import socket
import time

import pytest

from appserver import running

server = pytest.importorskip("fairmaxent.app.server", reason="needs uvicorn and starlette", exc_type=ImportError)


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.5)
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


def test_a_client_that_leaves_in_the_middle_leaves_nothing(client, opened):
    raw = opened(head(client, "/api/upload?name=half.csv") + b"sex,hired\nf,yes\n")
    assert until(lambda: uploads(client))
    raw.close()
    assert until(lambda: not uploads(client))
    assert client.send("GET", "/api/state")[0] == 200
