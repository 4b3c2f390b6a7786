"""The app in a real Chromium, from the file to the download: by keyboard, in light and dark, on a desk and a phone.

axe-core is taken from the file that the environment variable AXE_CORE names, or from the package axe-core-python.
Screenshots are left in the folder that APP_SCREENSHOTS names, if it is set; documentation.png among them is the picture
docs/assets/app.png.
"""

import importlib.util
import os
import re
import time
from pathlib import Path

import numpy as np
import polars
import pytest

from appserver import running
from fairmaxent import DependencyError
from fairmaxent.report import browser as browsers

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
    except DependencyError:
        pytest.skip("the page is tried in Chromium, Chrome or Edge, and none of them is on the PATH")
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


def people(path, rows=400, column="sex", levels=("f", "m"), outcome="hired", good="yes", **more):
    rng = np.random.default_rng(5)
    sex = rng.choice(levels, rows, p=[0.3, 0.7])
    hired = np.where(rng.random(rows) < np.where(sex == levels[0], 0.2, 0.5), good, "no")
    table = {
        column: sex,
        "region": rng.choice(["n", "s", ""], rows),
        "age": rng.integers(18, 60, rows),
        outcome: hired,
        **more,
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


def shot(page, name, *, full_page=True):
    folder = os.environ.get("APP_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=full_page)


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


def asked(page, **wanted):
    """Wait until the server has answered a scenario with these options."""
    end = time.monotonic() + 60
    while True:
        state = page.evaluate("fetch('/api/state').then((answer) => answer.json())")
        scenario = (state["answer"] or {}).get("scenario", {})
        if all(scenario.get(name) == value for name, value in wanted.items()):
            return
        assert time.monotonic() < end, (wanted, scenario)
        page.wait_for_timeout(50)


def unfold(page):
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


@pytest.mark.slow
def test_every_control_asks_what_it_says(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        page.get_by_label("Ask for equal group sizes of sex").uncheck()
        asked(page, representation_rate=None)
        page.get_by_label("Ask for equal group sizes of sex").check()
        asked(page, representation_rate=1)
        page.get_by_label("Limit the largest weight").check()
        asked(page, largest_weight=10)
        page.get_by_label("Limit the largest weight").uncheck()
        unfold(page)
        ask, take = page.locator("#ask"), page.locator("#take")
        ask.get_by_role("group", name="Compare only within").get_by_label("region").check()
        asked(page, within={"region": None})
        ask.get_by_role("group", name="Only where region is").get_by_label("s", exact=True).check()
        asked(page, within={"region": ["s"]})
        ask.get_by_role("group", name="Compare only within").get_by_label("region").uncheck()
        asked(page, within={})
        ask.get_by_role("group", name="More outcomes").get_by_label("region").check()
        ask.get_by_role("group", name="Good outcome of region is").get_by_label("n", exact=True).check()
        asked(page, also={"region": ["n"]})
        ask.get_by_role("group", name="More outcomes").get_by_label("region").uncheck()
        ask.get_by_label("Column 1", exact=True).select_option("sex")
        ask.get_by_label("Level of column 1").select_option("f")
        ask.get_by_label("Column 2", exact=True).select_option("region")
        ask.get_by_label("Level of column 2").select_option("s")
        ask.get_by_role("button", name="Add this combination").click()
        asked(page, forbid=[{"sex": "f", "region": "s"}])
        ask.get_by_role("button", name="Allow sex = f, region = s").click()
        asked(page, forbid=[], also={})
        ask.get_by_label("Compare missing values").check()
        ask.get_by_label("New combinations come from").select_option("product")
        ask.get_by_label("Numbers in new rows").select_option("bins")
        ask.get_by_label("Seed").fill("7")
        ask.get_by_label("Seed").press("Tab")
        asked(page, compare_missing=True, base="product", random_state=7, detail="bins")
        take.get_by_label("How many rows").fill("50")
        take.get_by_label("How many rows").press("Tab")
        take.get_by_label("Draw rows independently").check()
        take.get_by_label("Judge the rows in the report").check()
        take.get_by_label("Author").fill("A. Author")
        take.get_by_label("Author").press("Tab")
        take.get_by_label("Also as PDF").check()
        asked(page, rows=50, iid=True, evaluate=True, author="A. Author", pdf=True)
        take.get_by_label("Also as PDF").uncheck()
        take.get_by_label("What", exact=True).select_option("weights")
        take.get_by_label("Name of the weights").fill("w")
        take.get_by_label("Name of the weights").press("Tab")
        asked(page, mode="weights", weight_name="w", rows=None)
        ask.get_by_label("Design weights").select_option("age")
        asked(page, weight="age")
        ask.get_by_label("Design weights").select_option("")
        page.locator("#look").get_by_label("region", exact=True).check()
        asked(page, protected=["sex", "region"], weight=None)
        page.get_by_label("Compare", exact=True).select_option("joint")
        asked(page, groups="joint")
        page.locator("#look").get_by_label("yes", exact=True).uncheck()
        asked(page, favourable=[])
        answered(page)
        assert page.locator("#problem").is_hidden()
        unfold(page)
        shown = page.locator("#answer").inner_text()
        page.reload()
        answered(page)
        unfold(page)
        assert page.locator("#answer").inner_text() == shown  # nothing is lost
        assert page.get_by_label("Seed").first.input_value() == "7"
        assert page.problems == []


@pytest.mark.slow
def test_columns_and_the_file_are_read_as_asked(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        unfold(page)
        look = page.locator("#look")
        look.get_by_label("Column", exact=True).select_option("age")
        look.get_by_label("Bins of age").fill("18, 30, 60")
        look.get_by_label("Bins of age").press("Tab")
        asked(page, bins={"age": [18, 30, 60]})
        page.wait_for_function("() => document.getElementById('look').innerText.includes('[18, 30)')")
        look.get_by_label("Column", exact=True).select_option("region")
        look.get_by_label("Order of the levels of region").fill("s, n")
        look.get_by_label("Order of the levels of region").press("Tab")
        asked(page, order={"region": ["s", "n"]})
        look.get_by_label("Read region as").select_option("categorical")
        look.get_by_label("Most levels of a column").fill("12")
        look.get_by_label("Most levels of a column").press("Tab")
        asked(page, kinds={"region": "categorical"}, max_levels=12)
        look.get_by_role("button", name="Read the bins of age automatically").click()
        asked(page, bins=None)
        look.get_by_role("button", name="Leave out region").click()
        asked(page, drop=["region"], order=None, kinds=None)
        assert page.locator("#problem").is_hidden()
        assert look.get_by_role("columnheader", name="missing values").count() == 1
        look.get_by_label("Marks of missing values").fill("f")
        look.get_by_label("Rows to leave out at the end").fill("100")
        look.get_by_role("button", name="Read the file again").click()
        page.wait_for_function("() => document.getElementById('look').innerText.includes('300 rows')")
        assert client.get("/api/state")[1]["table"]["reading"] == {"missing": ["", "f"], "skip_last": 100}
        assert page.problems == []


@pytest.mark.slow
def test_what_is_being_typed_outlives_drawing(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        page.locator("#take summary", has_text="The report").click()
        author = page.locator("#take").get_by_label("Author")
        author.press_sequentially("Ada")
        author.evaluate("(field) => { field.dataset.old = 'yes'; }")
        page.locator("#ask").get_by_label("Compare missing values").evaluate("(box) => box.click()")  # draws all again
        page.wait_for_selector("[data-old]", state="detached")
        assert author.input_value() == "Ada"
        page.keyboard.press("Tab")
        asked(page, author="Ada", compare_missing=True)


@pytest.mark.slow
def test_a_file_that_cannot_be_guessed_at_is_read_with_help(page, tmp_path):
    text = "a remark\n" + "f|n|1,5|yes\nm|s|2,5|no\nm|n|3,5|yes\n" * 40 + "sum of all\n"
    with running(tmp_path) as client:
        enter(page, client)
        page.locator("#open input[type=file]").set_input_files(
            {"name": "odd.csv", "mimeType": "text/csv", "buffer": text.encode("utf-16")}
        )
        page.wait_for_selector("#problem:not([hidden])")
        page.locator("#open summary", has_text="How the file is read").click()
        given = {
            "Separator": "|",
            "Encoding": "utf-16",
            "Lines above": "1",
            "Rows to leave": "1",
            "Names of": "a,b,c,d",
        }
        for label, value in given.items():
            page.locator("#open").get_by_label(label).fill(value)
        page.locator("#open").get_by_label("Decimal mark").select_option(",")
        page.get_by_role("button", name="Read the file again").click()
        page.wait_for_function("() => document.getElementById('look').innerText.includes('120 rows, 4 columns')")
        assert page.locator("#problem").is_hidden()


@pytest.mark.slow
def test_shares_are_dragged_and_moved_by_keys(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        page.locator("#ask summary", has_text="Wanted shares").click()
        page.get_by_label("Choose the shares of").select_option("region")
        bar = page.get_by_role("slider", name="Share of region = n")
        bar.wait_for()
        others = page.get_by_role("slider", name="Share of region = s")
        bar.scroll_into_view_if_needed()
        box = bar.bounding_box()
        page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2, steps=5)
        page.mouse.up()
        assert bar.get_attribute("aria-valuenow") == "60"
        levels = {
            one: float(page.get_by_role("slider", name=f"region = {one}").get_attribute("aria-valuenow"))
            for one in "ns"
        }
        missing = float(page.get_by_role("slider", name="region = missing").get_attribute("aria-valuenow"))
        assert sum(levels.values()) + missing == pytest.approx(100)
        target = client.get("/api/state")[1]["options"]["target"]["region"]
        others.focus()
        for key in ("Home", "ArrowRight", "Shift+ArrowUp", "PageUp", "ArrowDown"):
            page.keyboard.press(key)
        assert others.get_attribute("aria-valuetext") == "10.1 %"
        answered(page)
        target = client.get("/api/state")[1]["answer"]["scenario"]["target"]["region"]
        assert target.keys() == {"n", "s", "missing"}
        assert target["s"] == 0.101
        assert sum(target.values()) == pytest.approx(1)
        page.get_by_label("The shares of region are", exact=True).select_option("keep")
        asked(page, target={"region": None})
        page.get_by_role("button", name="Remove the shares of region").click()
        asked(page, target=None)
        page.get_by_label("Choose the shares of").select_option("hired")
        page.get_by_label("The shares of hired are", exact=True).select_option("free")
        asked(page, target={"hired": "free"})
        page.get_by_label("Choose the shares of").select_option("sex")
        asked(page, representation_rate=None)
        assert page.get_by_label("Ask for equal group sizes of sex").is_disabled()
        assert page.locator("#problem").is_hidden()
        assert page.problems == []


@pytest.mark.slow
def test_shares_that_were_set_stay_while_the_others_follow(page, tmp_path):
    branch = np.random.default_rng(6).choice(["a", "b", "c", "d"], 400, p=[0.4, 0.3, 0.2, 0.1])
    with running(tmp_path, data=people(tmp_path / "people.csv", branch=branch)) as client:
        enter(page, client)
        answered(page)
        page.locator("#ask summary", has_text="Wanted shares").click()
        page.get_by_label("Choose the shares of").select_option("branch")

        def field(level):
            return page.get_by_label(f"Share of branch = {level}, in percent")

        def type_in(level, share):
            field(level).fill(str(share))
            field(level).press("Tab")
            values = {one: float(field(one).input_value()) for one in "abcd"}
            assert values[level] == share
            assert sum(values.values()) == pytest.approx(100)
            return values

        type_in("a", 45)
        values = type_in("b", 45)
        assert values["a"] == 45
        assert 0 < values["d"] < values["c"] < 10
        type_in("c", 6)
        assert type_in("d", 4) == {"a": 45, "b": 45, "c": 6, "d": 4}
        assert type_in("d", 5) == {"a": 44, "b": 45, "c": 6, "d": 5}  # all are set: the oldest follows
        asked(page, target={"branch": {"a": 0.44, "b": 0.45, "c": 0.06, "d": 0.05}})
        shot(page, "shares")
        page.get_by_label("Choose the shares of").select_option("sex")
        page.get_by_label("Share of sex = f, in percent").fill("20")
        page.get_by_label("Share of sex = f, in percent").press("Tab")
        # Fewer women: how many get the outcome would look like a loss, so the size of the group is said instead.
        page.locator("#see .lede", has_text="of 80 people instead of").wait_for()
        assert page.problems == []


@pytest.mark.slow
def test_see_counts_as_it_shows_and_leaves_nobody_out_silently(page, tmp_path):
    rng = np.random.default_rng(9)
    town = np.array([f"town {number}" for number in rng.integers(0, 50, 400)])
    path = people(tmp_path / "people.csv", town=town)
    rows = polars.read_csv(path)
    hired = polars.when(polars.int_range(400) % 9 == 0).then(None).otherwise(polars.col("hired"))
    rows.with_columns(hired=hired).write_csv(path)
    with running(tmp_path, data=path) as client:
        enter(page, client)
        answered(page)
        see = page.locator("#see")
        lede = see.locator(".lede").inner_text()
        assert re.search(r"sex = f gains most: [\d.]+.% instead of [\d.]+.% get “yes”", lede)
        assert "sex = m loses most" in lede
        assert re.search(r"get “yes” \(\d+ people instead of \d+\)", lede)
        table = see.get_by_role("region", name="Who gains and who loses")
        cells = {
            row.locator("th").inner_text(): row.locator("td").all_inner_texts()
            for row in table.locator("tbody tr").all()
        }
        known = {
            sex: (len(part), (part["hired"] == "yes").sum()) for (sex,), part in polars.read_csv(path).group_by("sex")
        }
        for sex, (everybody, with_it) in known.items():
            count, before, after, change = re.match(
                r"([\d,]+)~(\d+) →.(\d+) \(([+−]\d+)\)", "~".join(cells[f"sex = {sex}"])
            ).groups()
            assert (int(count), int(before)) == (everybody, with_it)
            assert int(after) - int(before) == int(change.replace("−", "-"))
            assert cells[f"sex = {sex}"][2][0] == ("▲" if sex == "f" else "▼")
        page.wait_for_function("() => document.getElementById('expected').innerText.includes('A file of 400 new rows')")
        ticks = see.locator(".axis").first.locator("text").all_text_contents()
        assert ticks[0] == "0 %"
        assert len(ticks) > 2
        page.locator("#look").get_by_label("sex", exact=True).uncheck()
        page.locator("#look").get_by_label("town", exact=True).check()
        asked(page, protected=["town"])
        page.wait_for_function("() => /\\d+ more groups change less. They are in the table above/.test(see.innerText)")
        assert see.get_by_role("region", name="Who gains and who loses").locator("tbody tr").count() == 50
        page.locator("#look").get_by_label("town", exact=True).uncheck()
        page.locator("#look").get_by_label("sex", exact=True).check()
        asked(page, protected=["sex"])
        page.locator("#look").get_by_label("Outcome").select_option("region")
        asked(page, outcome="region")
        page.locator("#look").get_by_label("Outcome").select_option("hired")
        asked(page, outcome="hired", favourable=["yes"])  # what is guessed is chosen
        assert page.locator("#look").get_by_label("yes", exact=True).is_checked()
        assert page.problems == []


@pytest.mark.slow
def test_an_older_result_is_marked_and_cannot_be_taken(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        page.locator("#ask summary", has_text="Wanted shares").click()
        page.get_by_label("Choose the shares of").select_option("sex")
        page.get_by_role("slider", name="Share of sex = f").press("Home")
        page.wait_for_selector("#problem:not([hidden])")
        shot(page, "outdated")
        for _ in range(2):  # also after a reload
            for name in ("Make the files", "Pin this scenario", "Show the trade-off"):
                assert page.get_by_role("button", name=name).is_disabled()
            assert page.locator("#problem").inner_text() in page.locator("#outdated").inner_text()
            assert page.locator("#command").inner_text() == ""
            page.reload()
            page.wait_for_selector("#problem:not([hidden])")
        page.locator("#take").get_by_label("How many rows").fill("50")
        page.get_by_role("slider", name="Share of sex = f").press("End")
        page.get_by_role("slider", name="Share of sex = f").press("PageDown")
        page.wait_for_selector("#outdated", state="hidden")
        page.locator("#take").get_by_label("How many rows").fill("60")
        page.get_by_role("button", name="Make the files").click()  # which is also what ends the typing
        page.wait_for_selector("#files a")
        with page.expect_download() as event:
            page.locator("#files a").first.click()
        assert len(polars.read_csv(event.value.path())) == 60


@pytest.mark.slow
def test_a_slow_fit_is_waited_for_and_an_estimate_outlives_a_reload(page, tmp_path, monkeypatch):
    from fairmaxent.app import session

    # The estimate is the slower one, so that it can be overtaken.
    fit, estimate = session.Session.fit, session.with_estimate
    monkeypatch.setattr(session.Session, "fit", lambda *args, **more: time.sleep(2) or fit(*args, **more))
    monkeypatch.setattr(session, "with_estimate", lambda *args, **more: time.sleep(6) or estimate(*args, **more))
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        page.get_by_label("Ask for equal outcomes of sex").uncheck()
        page.get_by_role("button", name="Estimate what a model will do").click()  # waits for the fit under way
        page.wait_for_selector("#outdated:not([hidden])")
        assert page.get_by_role("button", name="Make the files").is_disabled()
        page.wait_for_selector("#slow progress")
        assert client.get("/api/state")[1]["answer"]["scenario"]["statistical_rate"] is None
        page.reload()
        page.wait_for_selector("#slow progress")
        page.wait_for_function("() => document.getElementById('answer').innerText.includes('What a model will do')")
        page.get_by_role("button", name="Estimate what a model will do").click()
        page.wait_for_selector("#slow progress")
        page.get_by_label("Ask for equal outcomes of sex").check()
        page.wait_for_function("() => document.getElementById('slow').innerText.includes('changed meanwhile')")
        assert page.problems == []


@pytest.mark.slow
def test_a_private_result_waits_for_its_button(page, tmp_path):
    pytest.importorskip("opendp")
    with running(tmp_path, data=people(tmp_path / "people.csv", rows=2000)) as client:
        enter(page, client)
        answered(page)
        page.locator("#ask summary", has_text="Advanced").click()
        page.get_by_label("Privacy budget ε").fill("8")
        page.get_by_label("Privacy budget ε").press("Tab")
        page.wait_for_selector("#problem:not([hidden])")
        page.get_by_role("button", name="Draft them from this table").click()
        area = page.get_by_label("Public values of every column")
        page.wait_for_function("() => document.querySelector('textarea').value.includes('draft = true')")
        area.fill(area.input_value().replace("draft = true", ""))
        area.press("Tab")
        page.get_by_role("button", name="Spend the budget (ε = 8)").click()
        page.wait_for_function("() => document.getElementById('answer').innerText.includes('privately once')")
        page.locator("#ask input[type=range]:enabled").first.press("ArrowLeft")
        asked(page, statistical_rate=0.99)
        assert page.locator("#problem").is_hidden()
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        assert "Public values" in page.locator("#files").inner_text()
        assert all("422" in problem for problem in page.problems)  # before the button was pressed


@pytest.mark.slow
def test_the_new_rows_are_judged_and_margins_crossed(page, tmp_path):
    path = people(tmp_path / "people.csv", branch=np.tile(["x", "y"], 200))
    with running(tmp_path, data=path) as client:
        enter(page, client)
        answered(page)
        page.locator("summary", has_text="Judge the new rows before sharing").click()
        page.locator("#judge input[type=file]").set_input_files(
            people(tmp_path / "others.csv", branch=["x", "y"] * 200)
        )
        page.wait_for_function("() => document.getElementById('judge').innerText.includes('others.csv: 400 rows')")
        page.get_by_label("Tries of each attack").fill("100")
        page.get_by_role("button", name="Judge the new rows").click()
        page.wait_for_selector("#verdict table")
        command = page.get_by_label("Command that judges the rows").inner_text()
        assert "--control others.csv" in command
        assert "--attacks 100" in command
        page.locator("summary", has_text="Or weight to known margins").click()
        rake = page.locator("#rake")
        rake.get_by_label("with").select_option("branch")
        rake.get_by_role("button", name="Add their combinations").click()
        fields = rake.get_by_label("f, x")
        fields.fill("10")
        rake.get_by_label("f, y").fill("40")
        rake.get_by_label("sex × branch may be missed").check()
        rake.locator("summary", has_text="Advanced").click()
        rake.get_by_label("Replicate weights").fill("2")
        rake.get_by_label("Design weights of the sample").select_option("age")
        rake.get_by_role("button", name="Make the weights").click()
        page.wait_for_selector("#raked table")
        command = page.get_by_label("Command that rakes").inner_text()
        for words in ("--relax sex,branch", "--replicates 2", "--weight age", "--seed 0"):
            assert words in command
        assert "10.0\u00a0%" in page.locator("#raked table").inner_text()
        assert page.problems == []


@pytest.mark.slow
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
        unfold(page)
        page.get_by_label("Choose the shares of").select_option("housing")
        page.get_by_label("Rows to share").check()
        page.get_by_role("slider", name="Share of housing").first.wait_for()
        answered(page)
        unfold(page)
        page.get_by_role("button", name="Show the trade-off").click()
        page.wait_for_selector("#curves svg")
        page.get_by_role("button", name="Judge the new rows").click()
        page.wait_for_selector("#verdict table")
        page.get_by_role("button", name="Add their combinations").click()
        page.get_by_label("The shares of sex are known").check()
        page.get_by_role("button", name="Make the weights").click()
        page.wait_for_selector("#raked table")
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        assert page.locator("#curves svg").count() > 0
        page.set_viewport_size({"width": WIDTHS[width], "height": 800})  # nothing is lost by that
        page.wait_for_timeout(400)
        assert page.locator("#curves svg").count() > 0
        assert page.locator("#verdict table").count() == 1
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


@pytest.mark.slow
def test_ask_and_see_stand_side_by_side_as_in_the_documentation(page, tmp_path):
    with running(tmp_path) as client:
        enter(page, client)
        page.get_by_role("button", name="Income in the US census").click()
        answered(page)
        page.locator("#look").get_by_label("race", exact=True).uncheck()
        page.get_by_label("Ask for equal group sizes of sex").check()
        answered(page)
        page.locator("#ask summary", has_text="Wanted shares").click()
        page.get_by_label("Choose the shares of").select_option("sex")
        page.get_by_role("slider", name="Share of sex = Female").press("PageUp")
        asked(page, representation_rate=None)
        answered(page)
        page.wait_for_function("() => document.getElementById('expected').innerText.includes('new rows')")
        page.evaluate("document.activeElement.blur(); document.getElementById('ask').style.maxHeight = 'none'")
        page.set_viewport_size({"width": 1280, "height": 1290})
        page.evaluate("document.getElementById('live').scrollIntoView()")
        boxes = [page.locator(part).bounding_box() for part in ("#ask", "#see")]
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        assert abs(boxes[0]["y"] - boxes[1]["y"]) < 20
        shot(page, "documentation", full_page=False)
        assert page.problems == []


@pytest.mark.slow
def test_markup_in_names_and_values_is_inert(page, tmp_path):
    evil = "<img src=x onerror=\"document.title='owned'\">"
    levels = ("<script>document.title='owned'</script>", "</td><svg onload=document.title='owned'>")
    table = people(tmp_path / "evil.csv", column=evil, levels=levels, outcome="hired<b>", good=evil)
    with running(tmp_path) as client:
        enter(page, client)
        page.locator("#open input[type=file]").set_input_files(
            {"name": "<img src=x onerror=alert(1)>.csv", "mimeType": "text/csv", "buffer": table.read_bytes()}
        )
        page.wait_for_selector("#look fieldset")
        page.locator("#look").get_by_label("Outcome").select_option("hired<b>")
        page.locator("#look").get_by_label(evil, exact=True).last.check()
        answered(page)
        page.get_by_role("button", name="Pin this scenario").click()
        unfold(page)
        page.wait_for_selector("#pins table")
        assert "owned" not in page.title()
        assert page.locator("img, b, body script").count() == 0
        assert levels[0] in page.locator("#answer").inner_text()
        shot(page, "evil")
        assert page.problems == []


@pytest.mark.slow
def test_a_second_tab_a_broken_file_and_a_stopped_server_are_explained(page, tmp_path):
    with running(tmp_path, data=people(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        second = page.context.new_page()
        second.goto(page.url)
        answered(second)  # the cookie is enough
        second.locator("summary", has_text="Open another table").click()
        second.locator("#open input[type=file]").set_input_files(
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
