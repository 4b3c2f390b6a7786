"""The app in a real Chromium, from the file to the download: by keyboard, in light and dark, on a desk and a phone.

axe-core is taken from the file that the environment variable AXE_CORE names, or from the package axe-core-python.
Screenshots are left in the folder that APP_SCREENSHOTS names, if it is set.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import polars
import pytest

from appserver import running
from fairmaxent import DependencyError
from fairmaxent.report import browser as browsers

pytestmark = pytest.mark.slow
WIDTHS = {"desk": 1280, "phone": 430}


def axe_core():
    named = os.environ.get("AXE_CORE")
    if named:
        return Path(named).read_text(encoding="utf-8")
    spec = importlib.util.find_spec("axe_core_python")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "axe.min.js").is_file():
            return (Path(folder) / "axe.min.js").read_text(encoding="utf-8")
    pytest.skip("axe-core is not here: pip install axe-core-python, or set AXE_CORE to its axe.min.js")


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    try:
        path = browsers.find_browser()
    except DependencyError as problem:
        pytest.skip(str(problem))
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.problems = []
    page.foreign = []
    page.on("pageerror", lambda problem: page.problems.append(str(problem)))
    page.on("console", lambda message: message.type == "error" and page.problems.append(message.text))
    page.on("request", lambda asked: asked.url.startswith("http://127.0.0.1:") or page.foreign.append(asked.url))
    page.set_default_timeout(60_000)
    yield page
    assert page.foreign == [] or all(url.startswith("data:") for url in page.foreign)
    context.close()


def people(path, rows=400, column="sex", levels=("f", "m"), outcome="hired", good="yes"):
    rng = np.random.default_rng(5)
    sex = rng.choice(levels, rows, p=[0.3, 0.7])
    hired = np.where(rng.random(rows) < np.where(sex == levels[0], 0.2, 0.5), good, "no")
    table = {
        column: sex,
        "region": rng.choice(["n", "s", ""], rows),
        "age": rng.integers(18, 60, rows),
        outcome: hired,
    }
    polars.DataFrame(table).write_csv(path)
    return path


def enter(page, client):
    page.goto(client.address)
    page.wait_for_selector("body[data-ready]")
    assert "token" not in page.url


def answered(page):
    page.wait_for_selector("#answer .tiles")
    page.wait_for_function("() => document.getElementById('see').getAttribute('aria-busy') !== 'true'")


def shot(page, name):
    folder = os.environ.get("APP_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def tab_to(page, selector, most=80):
    """Press Tab until the element has the focus."""
    for _ in range(most):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def test_keyboard_alone_leads_from_the_example_to_the_download(page, tmp_path):
    with running(tmp_path) as client:
        enter(page, client)
        tab_to(page, ".examples button:nth-of-type(2)")
        page.keyboard.press("Enter")
        answered(page)
        tab_to(page, "#ask input[type=range]:enabled")
        before = page.locator("#answer").inner_text()
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
        page.wait_for_function("(text) => document.getElementById('answer').innerText !== text", arg=before)
        answered(page)
        assert page.evaluate("document.activeElement.type") == "range"  # drawing again does not take the focus
        tab_to(page, "#make", most=300)
        page.keyboard.press("Enter")
        page.wait_for_selector("#files a")
        assert page.evaluate("document.activeElement.closest('#files') !== null")
        with page.expect_download() as event:
            page.keyboard.press("Enter")
        rows = polars.read_csv(event.value.path())
        rates = rows.group_by("sex").agg((polars.col("credit") == "good").mean())["credit"]
        assert rates.min() / rates.max() == pytest.approx(0.9, abs=0.01)
        assert page.problems == []


def test_every_control_asks_what_it_says(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)

        def scenario(**wanted):
            page.wait_for_function(
                "(wanted) => fetch('/api/state').then((answer) => answer.json()).then((state) => state.answer && "
                "Object.entries(wanted).every(([name, value]) => "
                "JSON.stringify(state.answer.scenario[name]) === JSON.stringify(value)))",
                arg=wanted,
            )

        page.get_by_label("Ask for equal group sizes of sex").uncheck()
        scenario(representation_rate=None)
        page.get_by_label("Ask for equal group sizes of sex").check()
        scenario(representation_rate=1)
        page.get_by_label("Limit the largest weight").check()
        scenario(largest_weight=10)
        page.get_by_label("Limit the largest weight").uncheck()
        page.get_by_text("Wanted shares").click()
        page.get_by_label("Choose them instead of equal sizes").check()
        scenario(representation_rate=None, target={"sex": {"f": 0.3, "m": 0.7}})
        page.get_by_label("Choose them instead of equal sizes").uncheck()
        scenario(target=None)
        page.locator("#ask summary", has_text="More").click()
        page.locator("#ask").get_by_label("region").check()
        scenario(within=["region"])
        page.locator("#ask").get_by_label("region").uncheck()
        scenario(within=[])
        page.get_by_label("Compare missing values").check()
        page.get_by_label("New combinations come from").select_option("product")
        page.get_by_label("Seed").fill("7")
        page.get_by_label("Seed").press("Tab")
        scenario(compare_missing=True, base="product", seed=7)
        page.get_by_label("What", exact=True).select_option("weights")
        scenario(mode="weights")
        page.locator("#look").get_by_label("region", exact=True).check()
        scenario(protected=["sex", "region"])
        page.get_by_label("Compare", exact=True).select_option("joint")
        scenario(groups="joint")
        page.locator("#look").get_by_label("yes", exact=True).uncheck()
        scenario(favourable=[])
        answered(page)
        assert page.locator("#problem").is_hidden()
        shown = page.locator("#answer").inner_text()
        page.reload()
        answered(page)
        assert page.locator("#answer").inner_text() == shown  # nothing is lost
        assert page.get_by_label("Seed").input_value() == "7"
        assert page.problems == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_and_nothing_is_cut(page, tmp_path, width, dark):
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    with running(tmp_path, data=None) as client:
        enter(page, client)
        check(page, f"open-{width}-{'dark' if dark else 'light'}")
        page.get_by_role("button", name="Credit in Germany").click()
        answered(page)
        page.get_by_role("button", name="Pin this scenario").click()
        page.get_by_label("Ask for equal outcomes of sex").uncheck()
        answered(page)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        page.get_by_role("button", name="Show the trade-off").click()
        page.wait_for_selector("#curves svg")
        page.get_by_role("button", name="Judge the new rows").click()
        page.wait_for_selector("#verdict table")
        page.get_by_label("The shares of sex are known").check()
        page.get_by_role("button", name="Make the weights").click()
        page.wait_for_selector("#raked table")
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        check(page, f"all-{width}-{'dark' if dark else 'light'}")


CUT = """() => {
  const room = document.documentElement.clientWidth + 0.5;
  return [...document.body.querySelectorAll('*')].filter((element) => {
    const box = element.getBoundingClientRect();
    const scrolled = element.closest('.scroll') || element.closest('.skip');
    return box.width && !scrolled && (box.right > room || box.left < -0.5);
  }).map((element) => element.outerHTML.slice(0, 120));
}"""


def check(page, name):
    shot(page, name)
    assert page.evaluate(CUT) == []
    page.evaluate(axe_core())
    result = page.evaluate("axe.run(document)")
    assert len(result["passes"]) > 15
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in result["violations"]] == []


def test_markup_in_names_and_values_is_inert(page, tmp_path):
    evil = "<img src=x onerror=\"document.title='owned'\">"
    levels = ("<script>document.title='owned'</script>", "</td><svg onload=document.title='owned'>")
    table = people(tmp_path / "evil.csv", column=evil, levels=levels, outcome="hired<b>", good=evil)
    with running(tmp_path) as client:
        enter(page, client)
        page.locator("input[type=file]").set_input_files(
            {"name": "<img src=x onerror=alert(1)>.csv", "mimeType": "text/csv", "buffer": table.read_bytes()}
        )
        page.wait_for_selector("#look fieldset")
        page.locator("#look").get_by_label("Outcome").select_option("hired<b>")
        page.locator("#look").get_by_label(evil, exact=True).last.check()
        answered(page)
        page.get_by_role("button", name="Pin this scenario").click()
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        page.wait_for_selector("#pins table")
        assert "owned" not in page.title()
        assert page.locator("img, b, body script").count() == 0
        assert levels[0] in page.locator("#answer").inner_text()
        shot(page, "evil")
        assert page.problems == []


def test_a_second_tab_a_broken_file_and_a_stopped_server_are_explained(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        second = page.context.new_page()
        second.goto(page.url)
        answered(second)  # the cookie is enough
        second.locator("summary", has_text="Open another table").click()
        second.locator("input[type=file]").set_input_files(
            {"name": "broken.parquet", "mimeType": "x/y", "buffer": b"PAR1 this is none"}
        )
        second.wait_for_selector("#problem:not([hidden])")
        assert "broken.parquet" in second.locator("#problem").inner_text()
        second.get_by_role("button", name="Credit in Germany").click()
        second.wait_for_function("() => document.title.startsWith('Credit')")
        page.get_by_label("Ask for equal outcomes of sex").uncheck()
        page.wait_for_selector("#problem:not([hidden])")
        assert "Reload this page" in page.locator("#problem").inner_text()
        page.reload()
        answered(page)
        assert page.title().startswith("Credit")
    page.get_by_label("Ask for equal outcomes of sex").uncheck()
    page.wait_for_selector("#problem:not([hidden])")
    assert "no longer running" in page.locator("#problem").inner_text()
