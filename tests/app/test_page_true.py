"""What the page says is true in a real browser: of the columns that were added, of the
table that is open, on the page to send, and where nothing changes.
"""

import json
import re
import threading

import numpy as np
import polars
import pytest

from appserver import (
    answered,
    asked,
    check,
    choose,
    enter,
    lines_of,
    menu,
    people_file,
    running,
    typed,
    unfold,
)

pytestmark = pytest.mark.slow


def test_wishes_belong_to_columns_and_what_is_asked_of_a_new_one_is_said(
    page, tmp_path
):
    town = np.random.default_rng(2).choice(["east", "west"], 400)
    path = people_file(tmp_path / "people.csv", town=town)
    with running(tmp_path, data=path) as client:
        enter(page, client)
        choose(page, groups=["sex", "region"])
        asked(page, protected=["sex", "region"], statistical_rate=1)
        page.get_by_role("tab", name="region").click()
        page.get_by_label("Ask for equal outcomes of region").uncheck()
        asked(page, statistical_rate={"sex": 1, "region": None})
        page.get_by_role("tab", name="sex").click()
        typed(page.get_by_label("Equal outcomes of sex, as a number"), "0.83")
        asked(page, statistical_rate={"sex": 0.83, "region": None})
        choose(page, groups=["sex", "region", "town"])
        asked(page, statistical_rate={"sex": 0.83, "region": None, "town": 1})
        assert page.locator("#notice").inner_text() == (
            "town is compared, too; you ask for equal outcomes of 1.00 there. The other"
            " wishes stay as they were."
        )
        # and they come back from a comparison of intersections
        for how, rate in (
            ("joint", 0.83),
            ("each", {"sex": 0.83, "region": None, "town": 1}),
        ):
            with menu(page, "groups-menu") as part:
                part.get_by_label("Compare", exact=True).select_option(how)
                asked(page, groups=how, statistical_rate=rate)
        assert page.problems == []


def test_a_page_to_send_is_about_what_is_asked_and_about_the_table_that_is_open(
    page, tmp_path
):
    with running(tmp_path, data=people_file(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)

        def send():
            page.get_by_role("button", name="page to send").click()
            page.locator("#sent a").wait_for()
            return page.locator("#sent a").get_attribute("download")

        assert send() == "people-scenarios.html"
        slider = page.get_by_role("slider", name="Equal outcomes of sex")
        slider.press("ArrowLeft")
        page.locator("#sent a").wait_for(state="detached")  # it was of another scenario
        asked(page, statistical_rate=float(slider.input_value()))
        answered(page)
        send()
        page.get_by_role("button", name="Open another").click()
        page.get_by_role("button", name="Credit in Germany").click()
        page.locator("#sent a").wait_for(state="detached")
        answered(page)
        assert send() == "german-scenarios.html"
        assert page.problems == []


def test_what_is_taken_while_the_file_is_read_again_says_why_it_was_stopped(
    page, tmp_path, monkeypatch
):
    path = people_file(tmp_path / "people.csv", levels=("1", "2"))
    begun, renamed = threading.Event(), threading.Event()

    def take(fitted, folder, progress):
        begun.set()
        renamed.wait(30)
        progress("drawing", 0.5)

    monkeypatch.setattr("fairmaxent.app.session.take", take)
    with running(tmp_path, data=path) as client:
        enter(page, client)
        answered(page)
        page.get_by_role("button", name="Make the files").click()
        assert begun.wait(30)
        with menu(page, "groups-menu") as part:
            part.get_by_label("Name of sex = 1").fill("women")
            part.get_by_role("button", name="Rename the levels of sex").click()
        page.locator("#problem, #making", has_text="changed meanwhile").first.wait_for()
        assert "Stopped." not in page.locator("main").inner_text()
        renamed.set()


DROPPED = """(name) => {
  const data = new DataTransfer();
  data.items.add(new File(["sex,hired\\nf,yes\\nf,no\\nm,yes\\nm,yes\\n".repeat(30)
    .replaceAll("\\nsex,hired", "")], name));
  const drop = new DragEvent("drop",
    { dataTransfer: data, bubbles: true, cancelable: true });
  return document.querySelector("footer").dispatchEvent(drop);
}"""


def test_a_file_can_be_dropped_anywhere(page, people_app):
    went_on = page.evaluate(DROPPED, "dropped.csv")
    assert went_on is False  # the browser does not leave for the file
    page.locator(".bar", has_text="dropped.csv").wait_for()
    assert page.url.startswith("http://127.0.0.1")


def test_a_number_that_nobody_has_changes_nothing_and_says_so(page, people_app):
    choose(page, outcome="age")
    page.wait_for_function("() => headline.innerText.startsWith('On average')")
    before = page.locator("#answer").inner_text()
    with menu(page, "outcome-menu") as part:
        typed(part.get_by_label("Good from, of age"), "1e9")
        page.locator("#problem", has_text="Nobody has at least 1000000000").wait_for()
        typed(part.get_by_label("Good from, of age"), "18")
        page.locator("#problem", has_text="Everybody has at least 18").wait_for()
        assert page.locator("#answer").inner_text() == before
        typed(part.get_by_label("Good from, of age"), "40")
        page.locator("#headline", has_text="would have age ≥ 40").wait_for()
    assert people_app.get("/api/state")[1]["options"]["bins"]["age"][1] == 40


def test_where_nothing_changes_the_page_says_why(page, people_app):
    field = page.get_by_label("Equal outcomes of sex, as a number")
    own = people_app.get("/api/state")[1]["answer"]["see"]["rates"][1]["before"]
    typed(field, "0.2")
    page.locator(
        "h1",
        has_text="As many people of each group of sex have “yes” in hired as before: your"
        f" data are at {own:.2f} already, and 0.20 is asked for. It costs none of your"
        " data.",
    ).wait_for()
    said = f"Your data are at {own:.2f} already, so this asks for nothing more."
    assert page.locator("#meaning").inner_text() == said
    # the handle stands where the data are
    slider = page.get_by_role("slider", name="Equal outcomes of sex", exact=True)
    assert float(slider.input_value()) == pytest.approx(own, abs=0.02)
    page.get_by_label("Ask for equal outcomes of sex").uncheck()
    page.locator("h1", has_text="no equal outcomes are asked for").wait_for()
    assert slider.is_disabled()


RAW = "[\\u0000-\\u0008\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff]"
SHOWN_RAW = f"""() => {{
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {{
    if (/{RAW}/.test(walker.currentNode.data)) found.push(walker.currentNode.data);
  }}
  return found;
}}"""


@pytest.mark.parametrize("width", [1440, 430])
def test_long_names_and_marks_that_steer_stay_in_their_place(page, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    column, level = "group " + "x" * 300, "\u202egnihton " + "y" * 300
    path = people_file(tmp_path / "people.csv", column=column, levels=(level, "m"))
    with running(tmp_path, data=path) as client:
        enter(page, client)
        choose(page, outcome="hired", good=["yes"], groups=[column])
        answered(page)
        page.wait_for_selector("svg.strip")
        unfold(page)
        wide = "() => [document.documentElement.scrollWidth, innerWidth]"
        scrolled, room = page.evaluate(wide)
        assert scrolled <= room
        assert page.evaluate(SHOWN_RAW) == []
        assert "\\u202egnihton" in page.locator("#detail").inner_text()
        for name in ("about", "groups-menu"):
            with menu(page, name) as part:
                assert page.evaluate(SHOWN_RAW) == []
                box = part.bounding_box()
                assert box["x"] + box["width"] <= width
                assert part.evaluate("(menu) => menu.scrollWidth <= menu.clientWidth")
        assert page.problems == []


# ---------------------------------------------------------------- the page to send

ROWS = 500


def staff_file(path):
    """People with three columns of groups, two outcomes and a number."""
    rng = np.random.default_rng(12)
    sex, region = rng.choice(["f", "m"], ROWS), rng.choice(["n", "s", "w"], ROWS)
    level = rng.choice(["low", "high"], ROWS)
    hired = rng.random(ROWS) < np.where(sex == "f", 0.3, 0.5) + 0.1 * (region == "n")
    polars.DataFrame(
        {
            "sex": sex,
            "region": region,
            "level": level,
            "promoted": rng.choice(["yes", "no"], ROWS),
            "age": rng.integers(18, 60, ROWS),
            "pay": rng.normal(50, 9, ROWS).round(1) + 4 * (sex == "m"),
            "hired": np.where(hired, "yes", "no"),
        }
    ).write_csv(path)
    return path


def random_scenario(rng, number):
    """Roles and wishes; one in four asks for equal means, one in four has a model."""
    columns = ["sex", "region", "level"]
    protected = columns[: int(rng.integers(1, 4))]
    options = {
        "outcome": "hired",
        "protected": protected,
        "favourable": ["yes"],
        "representation_rate": None,
        "random_state": number,
    }
    if number % 4 == 1:
        return {
            **options,
            "outcome": "pay",
            "favourable": [],
            "equal_means": True,
            "bins": {"pay": 8},
        }
    rates = {name: round(float(rng.uniform(0.9, 1)), 2) for name in protected}
    options["statistical_rate"] = rates if rng.random() < 0.6 else 1
    if number % 4 == 2:
        return {**options, "model": "logistic", "mode": "weights"}
    if rng.random() < 0.4:
        options["representation_rate"] = round(float(rng.uniform(0.7, 1)), 2)
    if number % 4 == 3:
        options["further_outcomes"] = {"promoted": ["yes"]}
    elif rng.random() < 0.4 and len(protected) > 1:
        options["groups"] = "joint"
        options["statistical_rate"] = 0.95
    return options


def reported(folder, answer, monkeypatch):
    """The report of a scenario as JSON, made by the Python that the page prints."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    names = {}
    exec(answer["python"], names)  # as the page promises that it runs
    # of the rows with their weights, which are the fit; drawn rows differ by rounding
    names["fit"].report(folder / "report.json", mode="weights")
    return json.loads((folder / "report.json").read_text())


def number_of(text):
    """The numbers in a cell."""
    plain = text.replace(",", "").replace("−", "-").replace("\u00a0", " ")
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", plain)]


def check_scenario(part, see, report):
    """Every number of a scenario on the page to send is that of the report."""
    certificate = report["certificate"]
    rows, left = certificate["rows"], certificate["effective_rows"]
    told = part.locator(".told").inner_text().replace(",", "")
    assert f"{rows} rows" in told
    assert f"count like {left:.0f}" in told
    cost = 100 * (1 - left / rows)
    said = re.search(r"([\d.]+)\u00a0% of your data", told)
    if said is None:
        assert cost < 0.005
    else:
        assert float(said[1]) == pytest.approx(cost, abs=0.51 if cost > 9.9 else 0.051)
    if certificate["means"]:
        check_means(part, certificate["means"])
        return
    for kind in ("before", "achieved"):
        for name, rate in certificate[kind]["statistical_rate"].items():
            numbers = part.locator("h4", has_text=name).first.inner_text()
            at = 0 if kind == "before" else 1
            shown = number_of(numbers.split(name, 1)[1])[at]
            assert shown == pytest.approx(rate, abs=0.0051)
    if certificate["decisions"]:
        check_decisions(told, certificate["decisions"])
    known = {
        (one["column"], one["group"], one["outcome"]): one for one in report["groups"]
    }
    compared = [
        known[one["column"], one["group"], one["outcome"]] for one in see["groups"]
    ]
    check_groups(part, compared, rows)


def check_decisions(told, decisions):
    """What the model would decide for the groups of the first column."""
    (first, *_) = decisions["rates"]
    shares = [
        100 * one["share"]
        for one in decisions["shares"]
        if one["grouping"] == first["grouping"]
    ]
    said = told[told.index("The model would give") :].split(";")[0].split(". It")[0]
    ends = [min(shares), max(shares)]
    assert sorted(number_of(said)) == pytest.approx(ends, abs=0.051)


def check_means(part, means):
    lines = [
        line
        for table in part.get_by_role("region", name=re.compile("^Means, by")).all()
        for line in lines_of(table).values()
    ]
    assert len(lines) == len(means)
    for line, mean in zip(lines, means, strict=True):
        shown = [number_of(cell)[0] for cell in line]
        assert shown == pytest.approx([mean["before"], mean["after"]], abs=0.051)


def check_groups(part, groups, rows):
    """People and rates before and after, of every column."""
    tables = part.get_by_role("region", name=re.compile("^People who have")).all()
    lines = [line for table in tables for line in lines_of(table).values()]
    assert len(lines) == len(groups)
    for line, known in zip(lines, groups, strict=True):
        sizes, having, change, before, after = map(number_of, line)
        assert before[0] == pytest.approx(100 * known["rate_before"], abs=0.051)
        assert after[0] == pytest.approx(100 * known["rate_after"], abs=0.051)
        size = [rows * known["share_before"], rows * known["share_after"]]
        assert sizes[0] == pytest.approx(size[0], abs=1.01)
        assert sizes[-1] == pytest.approx(size[1], abs=1.01)
        with_it = [size[0] * known["rate_before"], size[1] * known["rate_after"]]
        assert having == pytest.approx(with_it, abs=1.01)
        assert change[0] == having[1] - having[0]


@pytest.mark.parametrize("start", [0, 4, 8])
def test_a_page_to_send_has_every_number_of_the_report(
    page, tmp_path, monkeypatch, start
):
    table = staff_file(tmp_path / "staff.csv")
    with running(tmp_path, data=table) as client:
        state = client.get("/api/state")[1]
        answers = []
        for number in range(start, start + 4):
            scenario = random_scenario(np.random.default_rng(number), number)
            values = {"table": state["table"]["number"], "options": scenario}
            answers.append(client.done("/api/fit", values)["answer"])
            if number < start + 3:
                client.pin()
        enter(page, client)
        answered(page)
        page.get_by_role("button", name="page to send").click()
        with page.expect_download() as event:
            page.locator("#sent a").click()
        event.value.save_as(tmp_path / "sent.html")
    sent = page.context.new_page()
    problems = []
    sent.on("pageerror", lambda problem: problems.append(str(problem)))
    sent.goto((tmp_path / "sent.html").as_uri())
    parts = sent.locator("main section").all()
    assert len(parts) == 4
    for number, (part, answer) in enumerate(zip(parts, answers, strict=True)):
        report = reported(tmp_path / str(number), answer, monkeypatch)
        check_scenario(part, answer["see"], report)
        words = part.inner_text()
        assert answer["command"].replace("\n", " ") in words.replace("\n", " ")
        if answer["see"]["means"] or answer["scenario"].get("model"):
            assert part.locator("input.handle").count() == 0
            assert "No slider here, because" in words  # and it is said why
        else:
            columns = {one["columns"] for one in answer["see"]["rates"]}
            assert part.locator("input.handle").count() >= len(columns)
    assert "staff.csv" in sent.title()
    assert re.search(r"written on \d{4}-\d\d-\d\d by fairmaxent \d", words_of(sent))
    sliders = sent.locator("input.handle")
    if sliders.count():
        before = words_of(sent)
        sliders.first.press("Home")
        assert words_of(sent) != before
        sent.get_by_role("button", name="Put it back").click()
        assert words_of(sent) == before
    for width in (1440, 430):
        sent.set_viewport_size({"width": width, "height": 900})
        sent.wait_for_timeout(300)
        check(sent, f"sent-{start}-{width}")
    assert problems == []


def words_of(page):
    """All that a page says."""
    return page.locator("main").inner_text()
