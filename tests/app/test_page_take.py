"""Take in a real browser: from the example to the download, judged rows, and weights for margins."""

import polars
import pytest

from appserver import answered, enter, running, tab_to


def test_keyboard_alone_leads_from_the_example_to_the_download(page, tmp_path):
    with running(tmp_path) as client:
        enter(page, client)
        tab_to(page, ".examples button:nth-of-type(2)")
        page.keyboard.press("Enter")
        answered(page)
        page.reload()
        answered(page)
        tab_to(page, "#make", most=16)  # 15 times Tab from the top
        tab_to(page, "#ask input[type=range]:enabled")
        before = page.locator("#answer").inner_text()
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
        page.wait_for_function("(text) => document.getElementById('answer').innerText !== text", arg=before)
        answered(page)
        assert page.evaluate("document.activeElement.type") == "range"  # drawing again does not take the focus
        tab_to(page, "#make", key="Shift+Tab")
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
def test_the_new_rows_are_judged_and_margins_raked(page, people_app):
    page.locator("summary", has_text="Judge the new rows before sharing").click()
    page.get_by_role("button", name="Judge the new rows").click()
    page.wait_for_selector("#verdict:has(.notes) table >> nth=0")
    page.locator("summary", has_text="Or weight to known margins").click()
    rake = page.locator("#rake")
    rake.get_by_label("The shares of sex are known").check()
    rake.get_by_label("f", exact=True).fill("10")
    rake.get_by_label("m", exact=True).fill("90")
    rake.get_by_label("sex may be missed").check()
    rake.locator("summary", has_text="Advanced").click()
    rake.get_by_label("Replicate weights").fill("2")
    rake.get_by_label("Design weights of the sample").select_option("age")
    rake.get_by_role("button", name="Make the weights").click()
    page.wait_for_selector("#raked table")
    command = page.get_by_label("Command that rakes").inner_text()
    assert [words in command for words in ("--relax sex", "--replicates 2", "--weight age", "--seed 0")] == 4 * [True]
    assert "10.0\u00a0%" in page.locator("#raked table").inner_text()
    assert page.problems == []
