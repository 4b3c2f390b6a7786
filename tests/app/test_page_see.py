"""See in a real browser: what is shown, and when it is out of date."""

import re
import shutil
import time
from pathlib import Path

import numpy as np
import polars
import pytest

from appserver import (
    answered,
    asked,
    choose,
    enter,
    lines_of,
    people_file,
    running,
    shot,
    typed,
    unfold,
)

pytestmark = pytest.mark.slow


def test_see_counts_as_it_shows_and_leaves_nobody_out_silently(page, tmp_path):
    rng = np.random.default_rng(9)
    town = np.array([f"town {number}" for number in rng.integers(0, 50, 400)])
    path = people_file(tmp_path / "people.csv", town=town)
    rows = polars.read_csv(path)
    hired = (
        polars.when(polars.int_range(400) % 9 == 0)
        .then(None)
        .otherwise(polars.col("hired"))
    )
    rows.with_columns(hired=hired).write_csv(path)
    with running(tmp_path, data=path) as client:
        enter(page, client)
        answered(page)
        see = page.locator("#detail")
        lede = page.locator("#see .lede").inner_text()
        more, fewer = re.match(
            r"(\d+) more women and (\d+) fewer men would have “yes” in hired\.", lede
        ).groups()
        table = see.get_by_role("region", name="Who gains and who loses")
        cells = lines_of(table)
        for (sex,), part in polars.read_csv(path).group_by("sex"):
            line = "~".join(cells[f"sex = {sex}"])
            count, before, after, change = re.match(
                r"([\d,]+)~(\d+) →.(\d+) \(([+−]\d+)\)", line
            ).groups()
            assert (int(count), int(before)) == (
                len(part),
                (part["hired"] == "yes").sum(),
            )
            assert int(after) - int(before) == int(change.replace("−", "-"))
            assert cells[f"sex = {sex}"][2][0] == ("▲" if sex == "f" else "▼")
            assert change == (f"+{more}" if sex == "f" else f"−{fewer}")
        choose(page, groups=["town"])
        asked(page, protected=["town"])
        answered(page)
        assert (
            see.get_by_role("region", name="Who gains and who loses")
            .locator("tbody tr")
            .count()
            == 50
        )
        assert page.problems == []


def test_expected_copies_are_a_column_once_all_rows_are_fitted(page, people_app):
    def columns():
        unfold(page)
        table = page.get_by_role("region", name="Costs by group")
        heads = table.locator("thead th").all_inner_texts()
        return {
            head: [cells[place] for cells in lines_of(table).values()]
            for place, head in enumerate(heads[1:])
        }

    known = columns()
    shares = ["before", "after"]
    assert list(known) == ["rows", *shares, "effective rows", "largest weight"]
    page.get_by_role("button", name="Make the files").click()
    page.wait_for_selector("#files a")
    answered(page)
    whole = columns()
    copies = whole.pop("most copies")
    assert all(float(one) > 0.5 for one in copies)
    assert whole == known
    assert page.problems == []


def test_an_older_result_is_marked_and_cannot_be_taken(page, people_app):
    page.locator("#more summary", has_text="Wanted shares").click()
    page.get_by_label("Choose the shares of").select_option("sex")
    page.get_by_role("slider", name="Share of sex = f").press("Home")
    page.wait_for_selector("#problem:not([hidden])")
    shot(page, "outdated")
    for _ in range(2):  # also after a reload
        for name in (
            "Make the files",
            "keep to compare",
            "page to send",
            "Estimate what a model will do",
        ):
            assert page.get_by_role("button", name=name).is_disabled()
        assert (
            page.locator("#problem span").inner_text()
            in page.locator("#outdated").inner_text()
        )
        assert page.locator("#command").inner_text() == ""
        page.reload()
        page.wait_for_selector("#problem:not([hidden])")
    page.locator("#take").get_by_label("How many rows").fill("50")
    page.get_by_role("slider", name="Share of sex = f").press("End")
    page.get_by_role("slider", name="Share of sex = f").press("PageDown")
    page.wait_for_selector("#outdated", state="hidden")
    page.locator("#take").get_by_label("How many rows").fill("60")
    # which is also what ends the typing
    page.get_by_role("button", name="Make the files").click()
    page.wait_for_selector("#files a")
    with page.expect_download() as event:
        page.locator("#files a").first.click()
    assert len(polars.read_csv(event.value.path())) == 60


def test_a_slow_fit_is_waited_for_and_an_estimate_outlives_a_reload(
    page, tmp_path, monkeypatch
):
    from fairmaxent.app import session

    # The estimate is the slower one, so that it can be overtaken.
    fit, estimate = session.Session._fit, session.with_estimate
    monkeypatch.setattr(
        session.Session,
        "_fit",
        lambda *args, **more: time.sleep(2) or fit(*args, **more),
    )
    monkeypatch.setattr(
        session,
        "with_estimate",
        lambda *args, **more: time.sleep(6) or estimate(*args, **more),
    )
    with running(tmp_path, data=people_file(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        page.get_by_label("Ask for equal outcomes of sex").uncheck()
        # waits for the fit under way
        page.get_by_role("button", name="Estimate what a model will do").click()
        page.wait_for_selector("#outdated:not([hidden])")
        assert page.get_by_role("button", name="Make the files").is_disabled()
        page.wait_for_selector("#slow progress")
        assert (
            client.get("/api/state")[1]["answer"]["scenario"]["statistical_rate"]
            is None
        )
        page.reload()
        page.wait_for_selector("#slow progress")
        page.wait_for_function(
            "() => detail.innerText.includes('What a model will do')"
        )
        page.get_by_role("button", name="Estimate what a model will do").click()
        page.wait_for_selector("#slow progress")
        page.get_by_label("Ask for equal outcomes of sex").check()
        page.wait_for_function(
            "() => document.getElementById('slow').innerText.includes('changed"
            " meanwhile')"
        )
        assert page.problems == []


FIRST = (".bar", "h1", ".price", "svg.dots", "svg.curve", "input.handle", "svg.strip")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1440, 900), (430, 932)], ids=["desk", "phone"])
def test_the_first_screen_is_complete(page, tmp_path, size, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    with running(tmp_path) as client:
        client.done("/api/demo", {"name": "acs"})  # three columns of groups
        enter(page, client)
        page.wait_for_selector("svg.strip")
        shot(page, f"first-{size[0]}-{scheme}", full_page=False)
        for part in (*FIRST, "#make"):
            box = page.locator(part).first.bounding_box()
            assert box["y"] >= 0, part
            assert box["y"] + box["height"] <= size[1], part
        assert page.locator(".bar").bounding_box()["height"] == 48
        # the price is as large as both sides
        fonts = page.evaluate(
            "() => ['.lede .gain', '.lede .loss', '.lede .price'].map((part) =>"
            " getComputedStyle(document.querySelector(part)).fontSize)"
        )
        assert len(set(fonts)) == 1
        # handle, curve and strip share one axis
        places = page.evaluate(
            """() => ["svg.curve", "svg.strip"].map((part) =>
              document.querySelector(`${part} .here`).getBoundingClientRect())
              .map(({ left, width }) => left + width / 2)"""
        )
        slider = page.locator("input.handle").bounding_box()
        places.append(slider["x"] + slider["width"] - 10)  # at 1
        assert max(places) - min(places) < 1.5


@pytest.mark.parametrize("count", [5, 8])
def test_many_groups_leave_room_for_the_button_on_a_phone(page, tmp_path, count):
    rng = np.random.default_rng(1)
    towns = [f"western isles {number}" for number in range(count)]
    own = rng.integers(0, count, 2000)
    hired = np.where(rng.random(2000) < 0.2 + 0.08 * own, "yes", "no")
    frame = polars.DataFrame({"ethnicity": [towns[one] for one in own], "hired": hired})
    frame.write_csv(tmp_path / "towns.csv")
    page.set_viewport_size({"width": 430, "height": 932})
    with running(tmp_path, data=tmp_path / "towns.csv") as client:
        enter(page, client)
        page.wait_for_selector("svg.strip")
        assert page.locator(".group").count() == count
        box = page.locator("#make").bounding_box()
        assert box["y"] + box["height"] <= 932, box
        assert page.problems == []


CENSUS = Path(__file__).parents[2] / "docs" / "census.csv"


def test_the_page_is_as_in_the_pictures_of_the_documentation(
    page, tmp_path, monkeypatch
):
    page.set_viewport_size({"width": 1440, "height": 900})
    shutil.copy(CENSUS, tmp_path)
    monkeypatch.chdir(tmp_path)
    with running(tmp_path, data=CENSUS.name) as client:
        enter(page, client)
        answered(page)
        choose(page, groups=["sex"])
        asked(page, protected=["sex"], statistical_rate=1)
        page.wait_for_selector("svg.strip")
        check_headline(page, client)
        # what was guessed and is not followed is still offered
        page.get_by_role("button", name="Compare groups of race, too").wait_for()
        picture(page, "app")

        page.get_by_role("button", name="census.csv").click()
        assert "1,679 rows, 8 columns" in page.locator("#about").inner_text()
        picture(page, "app-file")
        page.keyboard.press("Escape")

        slider = page.get_by_role("slider", name="Equal outcomes of sex", exact=True)
        for _ in range(10):
            slider.press("ArrowLeft")
        asked(page, statistical_rate=0.9)
        answered(page)
        rates = check_headline(page, client)
        said = ", ".join(
            f"{called} {100 * rates[sex]:.1f}\u00a0%"
            for sex, called in (("Female", "women"), ("Male", "men"))
        )
        assert slider.get_attribute("aria-valuetext") == f"0.90: {said}"
        picture(page, "app-move")
        page.set_viewport_size({"width": 430, "height": 932})
        page.wait_for_timeout(400)
        picture(page, "app-phone")
        page.set_viewport_size({"width": 1440, "height": 900})
        page.wait_for_timeout(400)

        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        page.get_by_role("button", name="page to send").click()
        page.locator("#sent a").wait_for()
        picture(page, "app-result")
        with page.expect_download() as event:
            page.locator("#sent a").click()
        event.value.save_as(tmp_path / "sent.html")
        sent = page.context.new_page()
        sent.set_viewport_size({"width": 1440, "height": 900})
        sent.goto((tmp_path / "sent.html").as_uri())
        sent.wait_for_selector("svg.strip")
        picture(sent, "app-sent")
        assert page.problems == []


def check_headline(page, client):
    """As many women gain as men lose; returns the rates of both."""
    groups = {
        one["group"]: one
        for one in client.get("/api/state")[1]["answer"]["see"]["groups"]
    }
    women = groups["Female"]
    gained = round(women["with_after"]) - round(women["with_before"])
    said = f"{gained:,} more women and {gained:,} fewer men would have income >50K."
    assert page.locator("#see .lede").inner_text().startswith(said)
    return {sex: one["rate_after"] for sex, one in groups.items()}


def picture(page, name):
    """A picture of the documentation, without the focus of the keyboard."""
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    shot(page, name, full_page=False, colours=256)


def test_a_pin_is_named_and_put_back_whole(page, people_app):
    unfold(page)
    page.get_by_label("Largest weight: on or off").check()
    page.locator("#more").get_by_role("group", name="Compare only within").get_by_label(
        "region"
    ).check()
    typed(page.locator("#take").get_by_label("How many rows"), "120")
    asked(page, largest_weight=10, within={"region": None}, rows=120)
    answered(page)
    page.get_by_role("button", name="keep to compare").click()
    name = page.get_by_label("Name of rate 1 for sex within region, sizes kept")
    name.fill("within <b>regions</b>")
    name.press("Enter")
    page.get_by_role("button", name="Restore within <b>regions</b>").wait_for()
    pinned = people_app.get("/api/state")[1]["pins"][0]["answer"]

    # which can then be no stratum
    choose(page, groups=["sex", "region"])
    page.get_by_label("Largest weight: on or off").uncheck()
    page.locator("#more").get_by_label("Compare missing values").check()
    asked(page, protected=["sex", "region"], largest_weight=None, compare_missing=True)
    answered(page)
    lines = lines_of(page.locator("#pins"))
    assert lines["Equal outcomes: sex within region"][1] == "–"
    assert lines["Compare only within"] == ["region", "–"]
    shot(page, "pins")

    page.get_by_role("button", name="Restore within").click()
    asked(page, **pinned["scenario"])
    answered(page)
    state = people_app.get("/api/state")[1]
    # and nothing that was asked for since
    assert state["options"] == pinned["scenario"]
    assert state["answer"]["see"] == pinned["see"]
    assert page.get_by_label("Largest weight: on or off").is_checked()
    assert page.locator("#take").get_by_label("How many rows").input_value() == "120"
    page.get_by_role("button", name="Remove within").click()
    page.wait_for_selector("#pins table", state="detached")


def test_means_say_how_much_for_whom_and_show_nothing_that_is_not_asked(
    page, people_app
):
    choose(page, outcome="age")
    page.wait_for_function("() => headline.innerText.startsWith('On average, age')")
    see = people_app.get("/api/state")[1]["answer"]["see"]
    changes = {one["group"]: one["after"] - one["before"] for one in see["means"]}
    said = page.locator("#see .lede").inner_text()
    more, less = re.match(
        r"On average, age would be ([\d.]+) (?:more|less) for (?:wo)?men and ([\d.]+) ",
        said,
    ).groups()
    shown = sorted(map(float, (more, less)))
    assert shown == pytest.approx(sorted(map(abs, changes.values())), abs=0.006)
    assert page.locator("svg.arrows text").count() > 4
    assert page.locator("input.handle, svg.curve").count() == 0
    assert page.locator(".gain, .loss").count() == 0  # nobody says what is good
    assert (
        page.get_by_role("region", name="What changes for whom")
        .locator(".up, .down")
        .count()
        == 0
    )
    assert page.problems == []
