"""A real server of the app on this computer, and requests to it as a browser sends them."""

import contextlib
import http.client
import json
import threading
import time

import pytest

from fairmaxent.files.hidden import HiddenFolder


@contextlib.contextmanager
def running(parent, *, data=None, most_bytes=10_000_000):
    """Start the app in a thread; yields a client that has the cookie."""
    uvicorn = pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    from fairmaxent.app.running import _listening, start_session
    from fairmaxent.app.server import make_app

    with _listening(0) as listener, HiddenFolder(parent) as folder:
        starting = start_session(folder, None if data is None else str(data))
        session = starting.result(60)
        port = listener.getsockname()[1]
        app = make_app(starting, port=port, most_bytes=most_bytes)
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            client = Client(port, app.address, session)
            client.enter()
            yield client
        finally:
            session.stop()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


class Client:
    def __init__(self, port, address, session):
        self.port, self.address, self.session = port, address, session
        self.cookie = None

    def send(self, method, path, body=None, *, drop=(), **headers):
        """One request; returns its status, headers and body. Headers named in `drop` are not sent."""
        host = f"127.0.0.1:{self.port}"
        usual = {"Host": host, "Cookie": self.cookie or ""}
        if method not in ("GET", "HEAD"):
            usual["Origin"] = f"http://{host}"
        sent = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in sent.items():
                if name not in drop:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def enter(self):
        status, headers, _ = self.send("GET", self.address.split(str(self.port), 1)[1])
        assert status == 303
        lowered = {name.lower(): value for name, value in headers.items()}
        self.set_cookie = lowered["set-cookie"]
        self.cookie = self.set_cookie.split(";")[0]

    def get(self, path):
        status, _, body = self.send("GET", path)
        return status, json.loads(body)

    def post(self, path, values):
        status, _, body = self.send("POST", path, json.dumps(values).encode())
        return status, json.loads(body)

    def upload(self, name, content):
        status, _, body = self.send("POST", f"/api/upload?name={name}", content)
        return status, json.loads(body)

    def done(self, path, values):
        status, answer = self.post(path, values)
        assert status == 200, answer
        return answer

    def fit(self, state, **options):
        values = {**state["options"], **options}
        return self.done("/api/fit", {"table": state["table"]["number"], "options": values})["answer"]

    def work(self, kind):
        job = self.done("/api/job", {"kind": kind})
        end = time.monotonic() + 120
        while job["state"] == "running" and time.monotonic() < end:
            time.sleep(0.02)
            _, job = self.get(f"/api/job/{job['number']}")
        return job
