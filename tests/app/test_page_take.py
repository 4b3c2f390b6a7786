"""Take in a real browser: from the example to the download, judged rows, and weights for margins."""

import numpy as np
import polars
import pytest

from appserver import answered, asked, enter, people_file, running, tab_to


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


@pytest.mark.slow
def test_the_new_rows_are_judged_and_margins_crossed(page, tmp_path):
    path = people_file(tmp_path / "people.csv", branch=np.tile(["x", "y"], 200))
    with running(tmp_path, data=path) as client:
        enter(page, client)
        answered(page)
        page.locator("summary", has_text="Judge the new rows before sharing").click()
        page.locator("#judge input[type=file]").set_input_files(
            people_file(tmp_path / "others.csv", branch=["x", "y"] * 200)
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
def test_take_says_what_each_is_for_and_what_was_made_before(page, tmp_path):
    with running(tmp_path, data=people_file(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        choices = page.locator("#take").get_by_label("What", exact=True).locator("option").all_inner_texts()
        assert "to train on" in choices[0]
        assert "sample weights" in choices[1]

        def made(first):
            page.get_by_role("button", name="Make the files").click()
            page.locator("#files a", has_text=first).wait_for()
            return page.locator("#files").inner_text()

        text = made("people-fair.csv")
        assert "New rows, to train on: people-fair.csv" in text
        assert "before" not in text
        page.get_by_label("Ask for equal outcomes of sex").uncheck()
        asked(page, statistical_rate=None)
        answered(page)
        assert "You made other files from this table before, so the names of these end in -2." in made("people-fair-2")
        assert "/people-fair-2.csv --model " in page.locator("#command").inner_text()
        with page.expect_download() as event:
            page.locator("#files a").first.click()
        assert event.value.suggested_filename == "people-fair-2.csv"
        assert page.problems == []
