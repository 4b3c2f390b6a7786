"""Nobody but the app's own page, opened with the token, gets anything from the
server.
"""

import errno
import os
import queue
import re
import socket
import stat
import sys
import time
import urllib.parse
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from appserver import refused, running
from fairmaxent.app import listening, serve
from fairmaxent.app.upload import safe_name
from fairmaxent.cli.group import group

PATHS = ("/", "/static/main.js", "/api/state", "/files/0/adult.csv", "/api/job/1")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("app"), most_bytes=100_000) as client:
        client.done("/api/demo", {"name": "german"})
        yield client


def test_with_the_cookie_everything_is_there_and_answers_are_sent_at_once(client):
    with listening(0) as listener:
        # or asyncio leaves Nagle's algorithm on: 40 ms for each answer
        assert listener.proto == socket.IPPROTO_TCP
    for path in ("/", "/static/main.js", "/api/state", "/files/0/german.csv"):
        assert client.send("GET", path)[0] == 200, path


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "cookie", ["", "fairmaxent-{port}=wrong", "fairmaxent-1={secret}", "{", "=;;="]
)
def test_without_the_right_cookie_nothing_is(client, path, cookie):
    known = cookie.replace("{port}", str(client.port)).replace(
        "{secret}", client.cookie.split("=", 1)[1]
    )
    status, _, body = client.send("GET", path, Cookie=known)
    assert status == 403
    assert b"fairmaxent app" in body
    assert b"german" not in body


ASKED = (
    ("GET", "/api/first"),
    ("GET", "/api/state"),
    ("GET", "/api/job/1"),
    ("GET", "/files/0/german.csv"),
    ("POST", "/api/demo"),
    ("POST", "/api/upload?name=a.csv"),
    ("GET", "/nothing"),
    ("GET", "//api/state"),
)


@pytest.mark.parametrize(("method", "path"), ASKED)
@pytest.mark.parametrize("page", ["", "wrong", "cookie"])
def test_a_cookie_alone_opens_nothing(client, method, path, page, monkeypatch):
    """It goes to every port of this computer, whose servers may replay it; so may it be
    as the secret of the page.
    """
    given = page
    if page == "cookie":
        given = client.cookie.split("=", 1)[1]
    monkeypatch.setattr(client, "page", given)
    status, _, body = client.send(method, path, b"{}" if method == "POST" else None)
    assert status == 403
    assert b"german" not in body


def test_the_secret_of_the_page_is_in_no_cookie_and_opens_nothing_alone(client):
    assert client.page not in client.set_cookie
    for method, path in ASKED:
        body = b"{}" if method == "POST" else None
        assert client.send(method, path, body, Cookie="")[0] == 403


HALVES = {
    "nothing": b"",
    "half a line": b"GET /api/st",
    "half the headers": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "a second one": b"GET / HTTP/1.1\r\nHost: {host}\r\n\r\nGET / HT",
}


@pytest.mark.parametrize("name", HALVES)
def test_half_a_request_is_not_waited_for(client, name, monkeypatch):
    monkeypatch.setattr("fairmaxent.app.server._MOST_SECONDS", 0.3)
    half = HALVES[name].replace(b"{host}", f"127.0.0.1:{client.port}".encode())
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        raw.sendall(half)
        assert ended(raw)
    # the owner is let in all the same
    assert client.send("GET", "/api/state")[0] == 200


def test_a_byte_now_and_then_buys_no_time(client, monkeypatch):
    monkeypatch.setattr("fairmaxent.app.server._MOST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        raw.settimeout(0.05)
        for _ in range(400):
            try:
                raw.sendall(b"G")
                if not raw.recv(100):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("the connection stayed open")


def test_a_file_that_says_that_it_is_too_large_is_refused_before_it_comes(client):
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        lines = [
            "POST /api/upload?name=large.csv HTTP/1.1",
            f"Host: 127.0.0.1:{client.port}",
            f"Origin: http://127.0.0.1:{client.port}",
            f"Cookie: {client.cookie}",
            f"X-Fairmaxent-Page: {client.page}",
            "Content-Length: 10000000000",
        ]
        raw.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = raw.recv(10_000)  # not a byte of the file was sent
    assert b" 422 " in answer.splitlines()[0]
    assert list(client.session.folder.rglob("upload-*")) == []


def test_a_refused_request_is_not_read_to_its_end(client):
    host = f"127.0.0.1:{client.port}"
    head = f"POST /api/upload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 90000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        raw.sendall(head.encode())
        assert ended(raw)


def ended(raw):
    """Whether the server ends the connection."""
    while True:
        try:
            if not raw.recv(10_000):
                return True
        except ConnectionResetError:
            return True


@pytest.mark.parametrize("token", ["", "wrong", "é", "%00", "a" * 10_000])
def test_a_wrong_token_opens_nothing(client, token):
    status, headers, _ = client.send(
        "GET", f"/?token={urllib.parse.quote(token)}", Cookie=""
    )
    assert status == 403
    assert "set-cookie" not in {name.lower() for name in headers}


def test_an_address_lets_one_browser_in_once_at_its_host_only_and_its_cookie_is_strict(
    client,
):
    path = client.address.split(str(client.port), 1)[1]
    assert client.send("HEAD", path, Cookie="")[0] == 403
    status, headers, body = client.send(
        "GET", path, Cookie="", Host=f"localhost:{client.port}"
    )
    assert (status, b"url=/#page=" in body, b'rel="icon" href="data:,"' in body) == (
        200,
        True,
        True,
    )
    page = re.search(rb"#page=(\w+)", body)[1].decode()
    cookie = next(
        value for name, value in headers.items() if name.lower() == "set-cookie"
    ).split(";")[0]
    assert (
        client.send(
            "GET",
            "/api/state",
            Cookie=cookie,
            Host=f"localhost:{client.port}",
            X_Fairmaxent_Page=page,
        )[0]
        == 200
    )
    assert (
        client.send("GET", "/api/state", Cookie=cookie, X_Fairmaxent_Page=page)[0]
        == 403
    )
    assert client.send("GET", path, Cookie="")[0] == 403
    assert "HttpOnly" in client.set_cookie
    assert "SameSite=strict" in client.set_cookie
    # the address may be in a history
    assert client.address.split("token=")[1] not in client.set_cookie


def test_the_browser_is_started_with_a_file_that_only_its_owner_can_read(
    tmp_path, monkeypatch
):
    """The address would stand in the list of processes, which every user of the
    computer sees.
    """
    started, seen, said = queue.Queue(), [], []

    class Server:
        def run(self, sockets):
            page = Path(urllib.parse.urlparse(started.get(timeout=30)).path)
            seen.extend(
                [
                    stat.S_IMODE(page.stat().st_mode),
                    re.search(r"token=([\w-]+)", page.read_text())[1],
                ]
            )

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", started.put)
    monkeypatch.setattr("fairmaxent.app.server.make_server", lambda app: Server())
    serve(None, port=0, browser=True, say=said.append)
    assert seen[0] == 0o600
    assert seen[1] not in said[0]  # which works once, too
    assert list(tmp_path.iterdir()) == []


def test_only_the_table_in_use_is_kept(client):
    client.upload("one.csv", b"sex,hired\nf,yes\nm,no\n")
    client.upload("broken.parquet", b"PAR1")
    kept = {path.name for path in client.session.folder.rglob("*.*")}
    # the second can be read in another way
    assert {"one.csv", "broken.parquet"} <= kept
    client.upload("two.csv", b"sex,hired\nf,yes\nm,no\n")
    assert {path.name for path in client.session.folder.rglob("*.*")} == {"two.csv"}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""],
)
def test_another_host_is_refused(client, host):
    """A name that an attacker lets point to this computer (DNS rebinding)."""
    named = host.replace("{port}", str(client.port))
    for path in (*PATHS, client.address.split(str(client.port), 1)[1]):
        assert client.send("GET", path, Host=named)[0] == 403


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"],
)
def test_a_foreign_origin_is_refused(client, origin):
    named = origin.replace("{port}", str(client.port))
    assert client.send("POST", "/api/pin", b"{}", Origin=named)[0] == 403
    assert client.send("GET", "/api/state", Origin=named)[0] == 403


def test_another_site_cannot_embed_or_call_nor_a_change_come_without_an_origin(client):
    assert (
        client.send("POST", "/api/demo", b'{"name": "german"}', drop=("Origin",))[0]
        == 403
    )
    assert (
        client.send("GET", "/api/state", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    )
    assert (
        client.send("GET", "/files/0/german.csv", **{"Sec-Fetch-Site": "same-site"})[0]
        == 403
    )


@pytest.mark.parametrize("path", ["/", "/api/state", "/nothing", "/files/0/german.csv"])
def test_every_answer_has_the_headers(client, path):
    _, headers, _ = client.send("GET", path)
    lowered = {name.lower(): value for name, value in headers.items()}
    policy = lowered["content-security-policy"]
    wanted = (
        ("default-src 'none'", True),
        ("frame-ancestors 'none'", True),
        ("unsafe", False),
    )
    assert [(words in policy) == there for words, there in wanted] == 3 * [True]
    sent = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    assert sent.items() <= lowered.items()


def test_the_page_has_no_inline_script_or_style(client):
    page = client.send("GET", "/")[2].decode()
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.S) == [""]
    assert "<style" not in page
    assert not re.search(r"\son\w+=|style=", page)
    assert not re.search(r'(src|href)="(https?:)?//', page)
    preloaded = {
        f"{name}.js"
        for name in re.findall(r'"modulepreload" href="/static/(\w+).js"', page)
    }
    static = {
        file.name
        for file in (files("fairmaxent.app") / "static").iterdir()
        if file.name.endswith(".js")
    }
    assert preloaded == static - {"main.js", "sent.js"}


OUTSIDE = [
    "/static/../server.py",
    "/static/%2e%2e%2fserver.py",
    "/static/..%5cserver.py",
    "/files/1/german.csv",
]
OUTSIDE += [
    "/files/0/%2e%2e%2fgerman.csv",
    "/files/0/..%2f..%2fetc%2fpasswd",
    "/files/0//etc/passwd",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out(client, path):
    status, _, body = client.send("GET", path)
    assert status == 404
    assert b"root:" not in body
    assert b"import" not in body


NAMES = [
    "../../evil.csv",
    "..\\evil.csv",
    "/etc/passwd",
    "%00.csv",
    "....",
    "a/b/c.csv",
    "-rf.csv",
]


@pytest.mark.some(3)
@pytest.mark.parametrize("name", NAMES)
def test_an_uploaded_name_stays_in_its_folder(client, name):
    status, state = client.upload(
        urllib.parse.quote(name), b"sex,hired\nf,yes\nm,no\nf,no\nm,yes\n"
    )
    assert status == 200, state
    opened = client.session.opened
    assert opened.path.resolve().is_relative_to(client.session.folder.resolve())
    assert opened.path.name == state["table"]["name"] == safe_name(name)
    assert not set("/\\\0") & set(opened.typed)
    assert not opened.typed.startswith(("-", "."))


def test_a_file_over_the_limit_and_a_full_disk_are_said_and_nothing_stays(
    client, monkeypatch
):
    before = sorted(client.session.folder.rglob("*"))
    refused(
        client.upload("large.csv", b"a,b\n" + b"1,2\n" * 50_000),
        "larger than",
        "fairmaxent app FILE",
    )
    assert sorted(client.session.folder.rglob("*")) == before

    async def full(request, most, refusal):
        yield b"half of it"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fairmaxent.app.server._parts", full)
    refused(client.upload("a.csv", b"a,b\n1,2\n"), "No space left on device")
    assert sorted(client.session.folder.rglob("*")) == before


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b'"x"', b"[" * 100_000, b"\xff", b"x" * 2_000_000),
        # numbers that could not be sent back
        *(b'{"bins": NaN}', b'{"bins": {"age": -Infinity}}', b'{"bins": 1e400}'),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(client, body):
    refused(client.get("/api/fit", "POST", body), "reload")


ROLES = {"outcome": "hired", "protected": ["sex"]}
NONSENSE = (
    *(
        {"base_share": ["0.2"]},
        {"target": {"sex": 3}},
        {"statistical_rate": {"sex": -1}},
        {"progress": "x"},
    ),
    *(
        {"output": "/tmp/x"},
        {"release": True, "domain": "/etc/passwd"},
        {"save": "/tmp/x.fme"},
        {"scheduler": "tcp://127.0.0.1:1"},
        {"report": "/tmp/x.html"},
    ),
    *(
        {"config": "/etc/passwd"},
        {"release": True, "domain": ["x"]},
        {"release": True, "domain": "x ="},
    ),
    *({"protected": {"sex": 1}}, {"protected": ["nothing"]}),
)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "options", [{}, {"outcome": 3}, *(ROLES | options for options in NONSENSE)]
)
def test_options_that_make_no_sense_are_refused(client, options):
    _, state = client.upload(
        "people.csv", b"sex,hired\nf,yes\nm,no\nf,no\nm,yes\n" * 10
    )
    status, answer = client.post(
        "/api/fit", {"table": state["table"]["number"], "options": options}
    )
    assert status == 422
    assert "bug" not in answer["error"]


def test_a_broken_file_and_a_page_with_an_old_table_end_in_a_sentence_without_our_paths(
    client,
):
    status, answer = client.upload("broken.parquet", b"PAR1 this is not one")
    assert status == 422
    assert "broken.parquet" in answer["error"]
    assert str(client.session.folder) not in answer["error"]
    assert client.upload("empty.csv", b"")[0] == 422
    refused(client.post("/api/fit", {"table": -5, "options": {}}), "Reload", status=409)


@pytest.mark.parametrize("path", ["/api/stop", "/api/unpin", "/api/start"])
@pytest.mark.parametrize("value", [[], {}, None, "x", 1.5, [[1]]])
def test_names_and_numbers_of_other_types_are_no_bug(client, path, value):
    status, answer = client.post(path, {"number": value, "kind": value})
    assert status < 500, answer


def test_a_client_that_leaves_in_the_middle_leaves_nothing(client):
    before = sorted(client.session.folder.rglob("*"))
    host = f"127.0.0.1:{client.port}"
    head = (
        f"POST /api/upload?name=half.csv HTTP/1.1\r\nHost: {host}\r\nOrigin:"
        f" http://{host}\r\nContent-Length: 90000"
    )
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        raw.sendall(
            f"{head}\r\nCookie: {client.cookie}\r\nX-Fairmaxent-Page:"
            f" {client.page}\r\n\r\nsex,hired\nf,yes\n".encode()
        )
        while sorted(client.session.folder.rglob("*")) == before:
            time.sleep(0.02)
    end = time.monotonic() + 10
    while sorted(client.session.folder.rglob("*")) != before and time.monotonic() < end:
        time.sleep(0.02)
    assert sorted(client.session.folder.rglob("*")) == before


@pytest.mark.more
def test_without_its_packages_the_command_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "fairmaxent.app.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(group, ["app", "--no-browser"])
    assert (result.exit_code, result.stdout) == (3, "")
    assert "pip install 'fairmaxent[app]'" in result.stderr
