"""The command itself: it listens on this computer only, and leaves nothing behind
however it ends.
"""

import contextlib
import os
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from cliprocesses import start

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

pytestmark = pytest.mark.process


@pytest.fixture
def app(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "people.csv").write_text(
        "sex,hired\n" + "f,yes\nm,no\nf,no\nm,yes\nm,yes\n" * 20, encoding="utf-8"
    )
    own = {"TMPDIR": str(tmp_path / "tmp"), "PYTHONUNBUFFERED": "1"}
    process = start(
        "app", "people.csv", "--no-browser", folder=tmp_path, env={**os.environ, **own}
    )
    try:
        said = process.stdout.readline().decode()
        yield process, said.split()[1], tmp_path / "tmp"
    finally:
        process.kill()
        process.communicate()


def entered(address):
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address, timeout=30) as first:
        page = re.search(rb"#page=(\w+)", first.read())[1].decode()
    opener.addheaders.append(("X-Fairmaxent-Page", page))
    with opener.open(address.split("?")[0], timeout=30) as answer:
        assert answer.status == 200
        return opener, answer.read()


def test_it_prints_an_address_with_a_token_and_a_port_that_is_taken_or_a_missing_file_is_said_in_a_line(
    app, tmp_path
):
    _, address, folder = app
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
    opener, page = entered(address)
    assert b"<main" in page
    with opener.open(address.split("?")[0] + "api/state", timeout=30) as answer:
        assert b'"people.csv"' in answer.read()
    (private,) = folder.iterdir()
    assert private.stat().st_mode & 0o077 == 0
    port = re.search(r":(\d+)/", address)[1]
    for arguments, text in (
        (["--port", port], "leave --port out"),
        (["nothing.csv"], "nothing.csv"),
    ):
        done = start("app", "--no-browser", *arguments, folder=tmp_path)
        _, problems = done.communicate(timeout=60)
        assert done.returncode in (3, 5)
        assert text in problems.decode()
        assert problems.count(b"\n") == 1


@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="only Linux lists its sockets in /proc"
)
def test_nothing_listens_beyond_this_computer(app):
    process, address, _ = app
    entered(address)
    inodes = set()
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
    listening = []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            # listening, or a socket for datagrams
            if words[9] in inodes and words[3] in ("0A", "07"):
                listening.append((name, words[1].split(":")[0]))
    assert listening == [("tcp", socket.inet_aton("127.0.0.1")[::-1].hex().upper())]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left(app, number):
    process, address, folder = app
    opener, _ = entered(address)
    base = address.split("/?")[0]
    request = urllib.request.Request(
        f"{base}/api/upload?name=more.csv", b"a,b\n1,2\n3,4\n", {"Origin": base}
    )
    with opener.open(request, timeout=30) as answer:
        assert answer.status == 200
    assert any(path.name == "more.csv" for path in folder.rglob("*"))
    process.send_signal(number)
    out, problems = process.communicate(timeout=30)
    assert list(folder.iterdir()) == []
    assert problems == b""
    if number == signal.SIGINT:
        assert process.returncode == 0
        assert b"Stopped." in out


def test_what_a_killed_app_left_is_removed_by_the_next(app, tmp_path):
    process, _, folder = app
    process.kill()
    process.communicate()
    assert len(list(folder.iterdir())) == 1
    second = start(
        "app",
        "--no-browser",
        folder=tmp_path,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    second.stdout.readline()
    assert len(list(folder.iterdir())) == 1
    second.terminate()
    second.communicate(timeout=30)
    assert list(folder.iterdir()) == []
