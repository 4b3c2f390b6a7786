"""The app for its tests: a real server, requests to it, tables to open, and what to do
with its page in a browser.

axe-core is taken from the file that the environment variable AXE_CORE names, or from
the package axe-core-python. Screenshots are left in the folder that APP_SCREENSHOTS
names, if it is set; those called app.png and app-*.png are the pictures of docs/assets.
"""

import contextlib
import http.client
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import threading
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars
import pytest

from fairmaxent.files.write import private_folder


@contextlib.contextmanager
def running(parent, *, data=None, most_bytes=10_000_000):
    """Start the app in a thread; yields a client that has the cookie."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    from fairmaxent.app import listening, start_session
    from fairmaxent.app.server import make_app, make_server

    with listening(0) as listener, private_folder(parent) as folder:
        starting = start_session(folder, None if data is None else str(data))
        session = starting.result(60)
        port = listener.getsockname()[1]
        app = make_app(starting, port=port, most_bytes=most_bytes)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            client = Client(port, app, session)
            client.enter()
            yield client
        finally:
            session.end()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


class Client:
    def __init__(self, port, app, session):
        self.port, self.app, self.session = port, app, session
        self.cookie = None
        self.page = ""  # the secret of the page

    @property
    def address(self):
        """An address that works once."""
        return self.app.new_address()

    def send(self, method, path, body=None, *, drop=(), **headers):
        """One request; returns its status, headers and body. Headers named in `drop`
        are not sent.
        """
        host = f"127.0.0.1:{self.port}"
        usual = {"Host": host, "Cookie": self.cookie or ""}
        if path.startswith("/files/"):
            path = f"{path}?page={self.page}"
        else:
            usual["X-Fairmaxent-Page"] = self.page
        if method not in ("GET", "HEAD"):
            usual["Origin"] = f"http://{host}"
        sent = {
            **usual,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
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
        address = self.address.split(str(self.port), 1)[1]
        status, headers, body = self.send("GET", address)
        assert status == 200
        self.page = re.search(rb"#page=(\w+)", body)[1].decode()
        lowered = {name.lower(): value for name, value in headers.items()}
        self.set_cookie = lowered["set-cookie"]
        self.cookie = self.set_cookie.split(";")[0]

    def get(self, path, method="GET", body=None):
        status, _, answer = self.send(method, path, body)
        return status, json.loads(answer)

    def post(self, path, values):
        return self.get(path, "POST", json.dumps(values).encode())

    def upload(self, name, content):
        return self.get(f"/api/upload?name={name}", "POST", content)

    def done(self, path, values):
        status, answer = self.post(path, values)
        assert status == 200, answer
        return answer

    def fit(self, state, **options):
        values = {**state["options"], **options}
        return self.done(
            "/api/fit", {"table": state["table"]["number"], "options": values}
        )["answer"]

    def present(self):
        """The table and the scenario that a page which has just been loaded speaks
        of.
        """
        state = self.get("/api/state")[1]
        return {
            "table": state["table"]["number"],
            "scenario": (state["answer"] or {}).get("scenario"),
        }

    def pin(self):
        return self.done("/api/pin", self.present())["pins"]

    def work(self, kind, **values):
        job = self.done("/api/start", {"kind": kind, **self.present(), **values})
        end = time.monotonic() + 120
        while job["state"] == "running" and time.monotonic() < end:
            time.sleep(0.02)
            _, job = self.get(f"/api/job/{job['number']}")
        return job


def refused(answer, *words, status=422):
    """The request was not done, and the answer says why."""
    assert answer[0] == status
    assert [word for word in words if word not in answer[1]["error"]] == []


OPTIONS = {"outcome": "hired", "protected": ["sex"], "favourable": ["yes"]}
DOMAIN = """levels.sex = ["f", "m"]
levels.region = ["n", "s", "w"]
levels.hired = ["no", "yes"]
edges.age = [18, 30, 45, 60]
"""


def people(rows=600, **more):
    rng = np.random.default_rng(3)
    sex, region = (
        rng.choice(["f", "m"], rows, p=[0.4, 0.6]),
        rng.choice(["n", "s", "w"], rows),
    )
    hired = np.where(rng.random(rows) < np.where(sex == "f", 0.2, 0.5), "yes", "no")
    age = rng.integers(18, 60, rows)
    return polars.DataFrame(
        {"sex": sex, "region": region, "age": age, "hired": hired, **more}
    )


def staff(rows=600):
    """The same people with a second outcome and a small number."""
    rng = np.random.default_rng(4)
    return people(rows).with_columns(
        level=polars.Series(rng.integers(1, 4, rows)),
        promoted=polars.Series(rng.choice(["yes", "no"], rows)),
    )


def opened(client, name="people.csv", frame=None):
    """Upload a table; returns the state of the page, and the bytes of the file."""
    frame = people() if frame is None else frame
    content = io.BytesIO()
    (
        frame.write_parquet(content)
        if name.endswith(".parquet")
        else frame.write_csv(content)
    )
    status, state = client.upload(name, content.getvalue())
    assert status == 200, state
    return state, content.getvalue()


def downloaded(client, files):
    """Status, headers and body of each file that was made."""
    return {
        file["name"]: client.send("GET", f"/files/{file['folder']}/{file['name']}")
        for file in files
    }


def axe_core():
    named = os.environ.get("AXE_CORE")
    if named:
        return Path(named).read_text(encoding="utf-8")
    spec = importlib.util.find_spec("axe_core_python")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "axe.min.js").is_file():
            return (Path(folder) / "axe.min.js").read_text(encoding="utf-8")
    pytest.skip(
        "axe-core is not here: pip install axe-core-python, or set AXE_CORE to its"
        " axe.min.js"
    )


def people_file(
    path, rows=400, column="sex", levels=("f", "m"), outcome="hired", good="yes", **more
):
    """Write other people, some of whose regions are missing, to a file."""
    rng = np.random.default_rng(5)
    sex = rng.choice(levels, rows, p=[0.3, 0.7])
    hired = np.where(
        rng.random(rows) < np.where(sex == levels[0], 0.2, 0.5), good, "no"
    )
    region, age = rng.choice(["n", "s", ""], rows), rng.integers(18, 60, rows)
    polars.DataFrame(
        {column: sex, "region": region, "age": age, outcome: hired, **more}
    ).write_csv(path)
    return path


def enter(page, client):
    """Open the address that the command printed."""
    page.goto(client.address)
    page.wait_for_selector("body[data-ready]")
    assert "token" not in page.url
    assert "page=" not in page.url


def answered(page):
    """Wait for the newest result."""
    page.wait_for_selector("#detail .tiles")
    page.wait_for_function(
        "() => document.getElementById('see').getAttribute('aria-busy') !== 'true'"
    )


def drop(page, name, content):
    """Open a file on the page."""
    if page.locator("#open").count() == 0:
        page.locator(".bar > button").last.click()
    page.locator("#open input[type=file]").set_input_files(
        {"name": name, "mimeType": "x/y", "buffer": content}
    )


def lines_of(table):
    """The cells of each line of a table, by its head."""
    rows = table.locator("tbody tr").all()
    return {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in rows
    }


def shot(page, name, *, full_page=True, colours=None):
    """Leave a picture of the page, a smaller one if it has few colours."""
    folder = os.environ.get("APP_SCREENSHOTS")
    if not folder:
        return
    path = f"{folder}/{name}.png"
    page.screenshot(path=path, full_page=full_page)
    if colours is not None:
        image = pytest.importorskip("PIL.Image")
        few = image.open(path).convert("RGB").quantize(colours, dither=0)
        few.save(path, optimize=True)


def tab_to(page, selector, most=80, key="Tab"):
    """Press Tab until the element has the focus."""
    for _ in range(most):
        if page.evaluate(
            "(selector) => document.activeElement.matches(selector)", selector
        ):
            return
        page.keyboard.press(key)
    raise AssertionError(f"Tab does not reach {selector}")


STATE = """() => fetch("/api/state", {
  headers: { "X-Fairmaxent-Page": localStorage.getItem("page") }
}).then((answer) => answer.json())"""


def asked(page, **wanted):
    """Wait until the server has answered a scenario with these options."""
    end = time.monotonic() + 60
    while True:
        state = page.evaluate(STATE)
        scenario = (state["answer"] or {}).get("scenario", {})
        if all(scenario.get(name) == value for name, value in wanted.items()):
            return
        assert time.monotonic() < end, (wanted, scenario)
        page.wait_for_timeout(50)


def typed(field, text):
    """Fill in a field and leave it."""
    field.fill(text)
    field.press("Tab")


@contextlib.contextmanager
def menu(page, name):
    """What a chip of the bar opens: outcome-menu, groups-menu, about or open-menu."""
    part = page.locator(f"#{name}")
    page.locator(f".bar [popovertarget={name}]").wait_for()
    part.evaluate("(menu) => menu.showPopover()")
    page.wait_for_function(
        "(name) => document.getElementById(name).childElementCount > 0", arg=name
    )
    unfold(page)
    yield part
    part.evaluate("(menu) => menu.hidePopover()")


def choose(page, *, outcome=None, good=None, groups=None):
    """Choose the outcome, the good outcomes and the groups, as a hand would."""
    if outcome is not None or good is not None:
        with menu(page, "outcome-menu") as part:
            if outcome is not None:
                # which is looked at, and then guesses the good outcome
                with page.expect_response("**/api/look"):
                    part.get_by_label("Outcome", exact=True).select_option(outcome)
                page.wait_for_timeout(500)
            if good is not None:
                _tick(part, "Good outcome", good)
    if groups is not None:
        with menu(page, "groups-menu") as part:
            _tick(part, "Groups to compare", groups)


def _tick(part, name, wanted):
    """Tick these of a group of boxes, and no others; new ones first."""
    group = part.get_by_role("group", name=name)
    for label in wanted:
        group.get_by_label(label, exact=True).check()
    for label in group.locator("label").all_inner_texts():
        if label not in wanted:
            group.get_by_label(label, exact=True).uncheck()


def look_at_rate(page, name):
    """Show the slider of “Equal outcomes” or of “Equal group sizes”."""
    page.locator("#ask").get_by_role("radio", name=name).check()


def unfold(page):
    page.evaluate(
        "for (const one of document.querySelectorAll('details')) one.open = true"
    )


CUT = """() => {
  const room = document.documentElement.clientWidth + 0.5;
  return [...document.body.querySelectorAll('*')].filter((element) => {
    const box = element.getBoundingClientRect();
    const scrolled = element.closest('.scroll, .skip, .chips, .tabs, .quiet');
    return box.width && !scrolled && (box.right > room || box.left < -0.5);
  }).map((element) => element.outerHTML.slice(0, 120));
}"""


def check(page, name):
    """Nothing is cut, and axe has nothing to say."""
    shot(page, name)
    assert page.evaluate(CUT) == []
    page.evaluate(axe_core())
    result = page.evaluate("axe.run(document)")
    assert len(result["passes"]) > 15
    assert [
        (one["id"], [node["html"] for node in one["nodes"]])
        for one in result["violations"]
    ] == []


# ---------------------------------------------------------------- its JavaScript


NO_PAGE = """
globalThis.BroadcastChannel = class { postMessage() {} };
globalThis.addEventListener = () => {};
"""


def run(folder, script, data=None):
    """Run a module beside those of the page; what it prints as JSON comes back."""
    node = shutil.which("node") or pytest.skip("node is not here to run JavaScript")
    for file in (files("fairmaxent.app") / "static").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "data.json").write_text(json.dumps(data))
    (folder / "run.js").write_text(
        'import { readFileSync } from "node:fs";\n'
        'const data = JSON.parse(readFileSync("data.json"));\n' + script
    )
    done = subprocess.run(
        [node, "run.js"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
