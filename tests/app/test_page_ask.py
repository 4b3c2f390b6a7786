"""Look and Ask in a real browser: every control asks for what it says, by hand, by keys
and by typing.
"""

import re

import numpy as np
import pytest

from appserver import (
    answered,
    asked,
    choose,
    drop,
    enter,
    look_at_rate,
    menu,
    people_file,
    running,
    typed,
    unfold,
)

pytestmark = pytest.mark.slow


def test_every_control_asks_what_it_says(page, people_app):
    unfold(page)
    look_at_rate(page, "Equal group sizes")
    page.get_by_label("Ask for equal group sizes of sex").check()
    asked(page, representation_rate=1)
    page.get_by_label("Largest weight: on or off").check()
    asked(page, largest_weight=10)
    page.get_by_label("Largest weight: on or off").uncheck()
    ask, take = page.locator("#more"), page.locator("#take")
    ask.get_by_role("group", name="Compare only within").get_by_label("region").check()
    asked(page, within={"region": None})
    ask.get_by_role("group", name="Only where region is").get_by_label(
        "s", exact=True
    ).check()
    asked(page, within={"region": ["s"]})
    ask.get_by_role("group", name="Compare only within").get_by_label(
        "region"
    ).uncheck()
    asked(page, within={})
    ask.get_by_role("group", name="More outcomes").get_by_label("region").check()
    ask.get_by_role("group", name="Good outcome of region is").get_by_label(
        "n", exact=True
    ).check()
    asked(page, further_outcomes={"region": ["n"]})
    ask.get_by_role("group", name="More outcomes").get_by_label("region").uncheck()
    typed(
        ask.get_by_label("Impossible combinations"),
        "sex = f, region = s; sex=m,region=n",
    )
    asked(page, forbid=[{"sex": "f", "region": "s"}, {"sex": "m", "region": "n"}])
    typed(ask.get_by_label("Impossible combinations"), "")
    asked(page, forbid=None, further_outcomes={})
    ask.get_by_label("Compare missing values").check()
    ask.get_by_label("New combinations come from").select_option("product")
    ask.get_by_label("Numbers in new rows").select_option("bins")
    typed(ask.get_by_label("Seed"), "7")
    asked(page, compare_missing=True, base="product", random_state=7, detail="bins")
    typed(take.get_by_label("How many rows"), "50")
    take.get_by_label("Draw rows independently").check()
    take.get_by_label("Judge the rows in the report").check()
    typed(take.get_by_label("Author"), "A. Author")
    asked(page, rows=50, iid=True, evaluate=True, author="A. Author")
    take.get_by_label("What to take").select_option("weights")
    typed(take.get_by_label("Name of the weights"), "w")
    asked(page, mode="weights", weight_name="w")
    ask.get_by_label("Design weights").select_option("age")
    asked(page, weight="age")
    ask.get_by_label("Design weights").select_option("")
    choose(page, groups=["sex", "region"])
    asked(page, protected=["sex", "region"], weight=None)
    with menu(page, "groups-menu") as part:
        part.get_by_label("Compare", exact=True).select_option("joint")
        asked(page, groups="joint")
    choose(page, good=[])
    asked(page, favourable=[])
    answered(page)
    assert page.locator("#problem").is_hidden()
    unfold(page)
    shown = page.locator("#detail").inner_text()
    page.reload()
    answered(page)
    unfold(page)
    assert page.locator("#detail").inner_text() == shown  # nothing is lost
    assert page.get_by_label("Seed").first.input_value() == "7"
    assert page.problems == []


def test_shares_are_dragged_and_moved_by_keys(page, people_app):
    page.locator("#more summary", has_text="Wanted shares").click()
    page.get_by_label("Choose the shares of").select_option("region")
    bar = page.get_by_role("slider", name="Share of region = n")
    bar.wait_for()
    others = page.get_by_role("slider", name="Share of region = s")
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(
        box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2, steps=5
    )
    page.mouse.up()
    assert float(bar.input_value()) == pytest.approx(60, abs=2)
    fields = [
        page.get_by_label(f"Share of region = {one}, in percent")
        for one in ("n", "s", "missing")
    ]
    assert sum(float(field.input_value()) for field in fields) == pytest.approx(100)
    others.focus()
    for key in ("Home", "ArrowRight", "ArrowUp", "PageUp", "ArrowDown"):
        page.keyboard.press(key)
    assert others.input_value() == "11"
    answered(page)
    target = people_app.get("/api/state")[1]["answer"]["scenario"]["target"]["region"]
    assert target.keys() == {"n", "s", "missing"}
    assert target["s"] == 0.11
    assert sum(target.values()) == pytest.approx(1)
    page.get_by_label("The shares of region are", exact=True).select_option("keep")
    asked(page, target={"region": None})
    page.get_by_role("button", name="Remove the shares of region").click()
    asked(page, target=None)
    page.get_by_label("Choose the shares of").select_option("hired")
    page.get_by_label("The shares of hired are", exact=True).select_option("free")
    asked(page, target={"hired": "free"})
    page.get_by_label("Choose the shares of").select_option("sex")
    page.get_by_role("slider", name="Share of sex = f").press("ArrowRight")
    look_at_rate(page, "Equal group sizes")
    page.locator("#ask", has_text="The shares of sex are chosen").wait_for()
    assert page.locator("#problem").is_hidden()
    assert page.problems == []


def test_what_is_being_typed_outlives_drawing(page, people_app):
    page.locator("#take summary", has_text="The report").click()
    author = page.locator("#take").get_by_label("Author")
    author.press_sequentially("Ada")
    # draws all again
    page.locator("#more").get_by_label("Compare missing values").evaluate(
        "(box) => box.click()"
    )
    asked(page, compare_missing=True, author=None)
    assert author.input_value() == "Ada"
    author.press_sequentially(" L.")
    page.keyboard.press("Tab")
    asked(page, author="Ada L.", compare_missing=True)


def test_shares_that_were_set_stay_while_the_others_follow(page, tmp_path):
    branch = np.random.default_rng(6).choice(
        ["a", "b", "c", "d"], 400, p=[0.4, 0.3, 0.2, 0.1]
    )
    with running(
        tmp_path, data=people_file(tmp_path / "people.csv", branch=branch)
    ) as client:
        enter(page, client)
        answered(page)
        page.locator("#more summary", has_text="Wanted shares").click()
        page.get_by_label("Choose the shares of").select_option("branch")

        def type_in(level, share):
            fields = {
                one: page.get_by_label(f"Share of branch = {one}, in percent")
                for one in "abcd"
            }
            typed(fields[level], str(share))
            values = {one: float(field.input_value()) for one, field in fields.items()}
            assert values[level] == share
            assert sum(values.values()) == pytest.approx(100)
            return values

        type_in("a", 45)
        values = type_in("b", 45)
        assert 0 < values["d"] < values["c"] < 10 < values["a"] == 45
        type_in("c", 6)
        assert type_in("d", 4) == {"a": 45, "b": 45, "c": 6, "d": 4}
        # all are set: the oldest follows
        assert type_in("d", 5) == {"a": 44, "b": 45, "c": 6, "d": 5}
        asked(page, target={"branch": {"a": 0.44, "b": 0.45, "c": 0.06, "d": 0.05}})
        page.get_by_label("Choose the shares of").select_option("sex")
        page.get_by_role("slider", name="Share of sex = f").press("PageDown")
        # Fewer women: how many get the outcome would look like a loss, so their rate is
        # said instead.
        page.locator(
            "#see .lede", has_text=re.compile(r"% of women instead of .*%")
        ).wait_for()
        assert page.problems == []


def test_a_private_result_waits_for_its_button(page, tmp_path):
    pytest.importorskip("opendp")
    with running(
        tmp_path, data=people_file(tmp_path / "people.csv", rows=2000)
    ) as client:
        enter(page, client)
        answered(page)
        page.locator("#more summary", has_text="Advanced").click()
        typed(page.get_by_label("Privacy budget ε"), "8")
        page.wait_for_selector("#problem:not([hidden])")
        page.get_by_role("button", name="Draft them from this table").click()
        area = page.get_by_label("Public values of every column")
        page.wait_for_function(
            "() => document.querySelector('textarea').value.includes('draft = true')"
        )
        typed(area, area.input_value().replace("draft = true", ""))
        page.get_by_role("button", name="Spend the budget (ε = 8)").click()
        page.wait_for_function(
            "() => document.getElementById('detail').innerText.includes('in 1 private"
            " fit; ')"
        )
        assert (tmp_path / "people.csv.ledger.json").exists()
        page.locator("#ask input[type=range]:enabled").first.press("ArrowLeft")
        asked(page, statistical_rate=0.99)
        assert page.locator("#problem").is_hidden()
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        assert "Public values" in page.locator("#files").inner_text()
        # before the button was pressed
        assert all("422" in problem for problem in page.problems)


def test_columns_and_the_file_are_read_as_asked(page, people_app):
    with menu(page, "about") as look:
        look.get_by_label("Column", exact=True).select_option("age")
        typed(look.get_by_label("Bins of age"), "18, 30, 60")
        asked(page, bins={"age": [18, 30, 60]})
        page.wait_for_function(
            "() => document.getElementById('look').innerText.includes('[18, 30)')"
        )
        look.get_by_label("Column", exact=True).select_option("region")
        typed(look.get_by_label("Order of the levels of region"), "s, n")
        asked(page, order={"region": ["s", "n"]})
        look.get_by_label("Read region as").select_option("categorical")
        typed(look.get_by_label("Most levels of a column"), "12")
        asked(page, kinds={"region": "categorical"}, max_levels=12)
        look.get_by_role("button", name="Read the bins of age automatically").click()
        asked(page, bins=None)
        look.get_by_role("button", name="Leave out region").click()
        asked(page, drop=["region"], order=None, kinds=None)
        assert page.locator("#problem").is_hidden()
        assert look.get_by_role("columnheader", name="rows (share)").count() == 1
        look.get_by_label("Marks of missing values").fill("n")
        look.get_by_label("Rows to leave out at the end").fill("100")
        look.get_by_role("button", name="Read the file again").click()
    page.locator(".bar", has_text="300 rows").wait_for()
    answered(page)
    assert people_app.get("/api/state")[1]["table"]["reading"] == {
        "missing_text": ["", "n"],
        "skip_last": 100,
    }
    assert page.problems == []


def test_levels_that_are_written_in_two_ways_are_made_one(page, tmp_path):
    lines = ["f,Sí", "f,no", "m,Sí", "m,sí", "m,NO", "m,no", "f,no"] * 20
    data = tmp_path / "staff.csv"
    data.write_text("\n".join(["sex,Ascenso", *lines]), encoding="utf-8")
    with running(tmp_path, data=data) as client:
        enter(page, client)
        button = page.get_by_role("button", name="Make the levels of Ascenso one")
        assert button.inner_text() == "Make them one"
        said = "Perhaps the same in Ascenso: “NO” and “no”; “sí” and “Sí”."
        assert said in page.locator("main").inner_text()
        button.click()
        button.wait_for(state="detached")
        state = client.get("/api/state")[1]
        assert state["table"]["reading"]["levels"] == {
            "Ascenso": {"sí": "Sí", "NO": "no"}
        }
        assert "“sí”" not in page.locator("main").inner_text()
    assert page.problems == []


def test_a_file_that_cannot_be_guessed_at_is_read_with_help(page, tmp_path):
    text = "a remark\n" + "f|n|1,5|yes\nm|s|2,5|no\nm|n|3,5|yes\n" * 40 + "sum of all\n"
    with running(tmp_path) as client:
        enter(page, client)
        drop(page, "odd.csv", text.encode("utf-16"))
        page.wait_for_selector("#problem:not([hidden])")
        part = page.locator("#unread")
        given = {
            "Separator": "|",
            "Encoding": "utf-16",
            "Lines above": "1",
            "Rows to leave": "1",
        }
        for label, value in {**given, "Names of": "a,b,c,d"}.items():
            part.get_by_label(label).fill(value)
        part.get_by_label("Decimal mark").select_option(",")
        part.get_by_role("button", name="Read the file again").click()
        page.locator(".bar", has_text="120 rows").wait_for()
        with menu(page, "about") as look:
            assert "120 rows, 4 columns" in look.inner_text()
        assert page.locator("#problem").is_hidden()
