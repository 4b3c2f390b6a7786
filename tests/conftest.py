"""Fixtures that several test files use."""

import gc
import importlib.util
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# Two processes share two cores: the threads of one would only wait for those of the
# other. Set before numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

import tables
from browsers import find_browser
from fairmaxent.fit import certificate
from mixed import TABLES

# So that reports are the same whenever they are written; set here, so that subprocesses
# have it, too.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1780000000")
# Fixtures that start processes: a browser, workers, Java, the documentation's builder.
STARTING = {"chromium", "cluster", "spark", "site"}
# Folders whose tests try models out, and files that compare numbers with those shown or
# recorded.
TRYING = {"app", "cli", "evaluation", "fit", "fuzz", "relabelling", "report", "tests"}
EXACT = {"test_docs.py"}
TESTS = Path(__file__).parent
TESTPATHS = ["tests", "src", "README.md"]


def pytest_configure(config):
    """Random tests repeat less where slow ones are left out."""
    tables.SHARE = 0.25 if "not slow" in config.option.markexpr else 1.0
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker == "gw1" and config.args == TESTPATHS:
        config.args = backwards(config)


def backwards(config):
    """All files of tests, the last first.

    To read one for the first time takes long. Two workers that begin at both ends do
    that with half of them each, and find what the other has made of the rest.
    """
    # all of them, as any module may have a doctest
    modules = [path for path in TESTS.rglob("*.py") if path.name != "conftest.py"]
    files = [*modules, *map(Path, TESTPATHS[1:])]
    read = [path for path in files if not pytest_ignore_collect(path, config)]
    return [str(path) for path in sorted(read, reverse=True)]


def pytest_ignore_collect(collection_path, config):
    """Do not read a file of which nothing is run: that costs more than many tests."""
    if collection_path.suffix != ".py":
        return None
    asked = config.option.markexpr
    text = collection_path.read_text(encoding="utf-8")
    whole = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", text, re.MULTILINE)
    if whole is not None and f"not {whole[1]}" in asked:
        return True
    if asked.startswith("more ") and not re.search(r"mark\.(more|some)\b", text):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests that use one of these fixtures, and the cases beyond some."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0])  # in all workers
    cases = defaultdict(list)
    for item in items:
        if STARTING & set(getattr(item, "fixturenames", ())):
            item.add_marker("process")
        is_slow = item.get_closest_marker("slow") is not None
        if item.get_closest_marker("some") is not None and not is_slow:
            cases[item.parent.nodeid, item.originalname].append(item)
    for alike in cases.values():
        (count,) = alike[0].get_closest_marker("some").args
        quick = tables.spread(count, len(alike))
        for place, item in enumerate(alike):
            if place not in quick:
                item.add_marker("more")


def pytest_collection_finish():
    """Thousands of tests stay until the end: nobody looks for garbage in them."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Say how many blocks of the documentation ran, and what that took."""
    run = [
        value
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", ())
        if name == "page"
    ]
    if not run:
        return
    blocks = sum(count for _, count, _ in run)
    seconds = sum(spent for _, _, spent in run)
    page, _, longest = max(run, key=lambda one: one[2])
    terminalreporter.write_line(
        f"documentation: {blocks} blocks of {len(run)} pages ran and printed what is"
        f" shown, in {seconds:.0f} CPU seconds (most: {page}, {longest:.0f})"
    )


@pytest.fixture(autouse=True)
def _in_this_process(request, monkeypatch):
    """A test that starts an interpreter is marked, so that `make test` stays quick."""
    if request.node.get_closest_marker("process") is None:
        start = subprocess.Popen.__init__

        def checked(self, command, *args, **options):
            assert sys.executable not in map(str, command), (
                "a test that starts a process is marked `process`"
            )
            start(self, command, *args, **options)

        monkeypatch.setattr(subprocess.Popen, "__init__", checked)


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]()


@pytest.fixture(scope="module", autouse=True)
def _quick_models(request):
    """Models that are tried out are small, where no test is about it.

    Gradient boosting, our choice of a model, has a fifth of its trees then.
    """
    if request.path.name in EXACT or request.path.parent.name not in TRYING:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("sklearn") is not None:
            from sklearn.ensemble import HistGradientBoostingClassifier

            patch.setitem(
                HistGradientBoostingClassifier.__init__.__kwdefaults__, "max_iter", 20
            )
        yield


@pytest.fixture(scope="module", autouse=True)
def _quick_reports(request):
    """Simulating intervals and fitting curves takes most of the time of a report; other
    tests are about both.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name in ("cli", "report"):
            patch.setattr(certificate, "_DRAWS", 40)
        if request.path.parent.name == "cli":
            patch.setattr("fairmaxent.report.refits.LARGEST_TABLE", 0)
        yield


@pytest.fixture(autouse=True)
def _app_in_this_process(request, monkeypatch):
    """Tests of the app that start no process read uploads in their own, and draw no
    curves but where they matter.
    """
    if (
        request.path.parent.name != "app"
        or request.node.get_closest_marker("process") is not None
    ):
        return
    upload = pytest.importorskip(
        "fairmaxent.app.upload", reason="the app needs starlette"
    )
    monkeypatch.setattr(upload, "_asked_of_child", upload.read_or_refused)
    monkeypatch.setattr(upload, "warm_up", lambda: None)
    if "trade_off" not in request.node.name:
        monkeypatch.setattr("fairmaxent.report.refits.LARGEST_TABLE", 0)


@pytest.fixture
def put(tmp_path):
    """Write content to a file and return its path."""

    def put(content, name="table.csv"):
        (tmp_path / name).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        return tmp_path / name

    return put


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to be in, with a small biased table in data.csv."""
    from clifiles import biased_table

    monkeypatch.chdir(tmp_path)
    biased_table().write_csv("data.csv")
    return tmp_path


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The app, running while a file of tests does."""
    from appserver import running

    with running(tmp_path_factory.mktemp("app")) as client:
        yield client


@pytest.fixture(scope="module")
def chromium():
    """A real browser."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    path = find_browser()
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(chromium):
    """An empty tab; what goes wrong on its page, and what it asks of other hosts, is
    collected.
    """
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, accept_downloads=True
    )
    page = context.new_page()
    page.problems = []
    page.foreign = []
    page.on("pageerror", lambda problem: page.problems.append(str(problem)))
    page.on(
        "console",
        lambda message: message.type == "error" and page.problems.append(message.text),
    )
    page.on(
        "request",
        lambda asked: (
            asked.url.startswith("http://127.0.0.1:") or page.foreign.append(asked.url)
        ),
    )
    page.set_default_timeout(60_000)
    yield page
    assert page.foreign == [] or all(url.startswith("data:") for url in page.foreign)
    context.close()


@pytest.fixture
def people_app(page, tmp_path):
    """The page with a table of people, and its first result."""
    from appserver import answered, enter, people_file, running

    with running(tmp_path, data=people_file(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        yield client
