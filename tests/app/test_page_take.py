"""Take in a real browser: from the example to the download."""

import polars
import pytest

from appserver import answered, enter, running, tab_to


def test_keyboard_alone_leads_from_the_example_to_the_download(page, tmp_path):
    with running(tmp_path) as client:
        enter(page, client)
        tab_to(page, "#open .choices button:nth-of-type(2)")
        page.keyboard.press("Enter")
        answered(page)
        page.reload()
        answered(page)
        tab_to(page, "#make", most=16)  # 15 times Tab from the top
        tab_to(page, "#ask input[type=range]:enabled")
        before = page.locator("#answer").inner_text()
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
        page.wait_for_function(
            "(text) => document.getElementById('answer').innerText !== text", arg=before
        )
        answered(page)
        # drawing again does not take the focus
        assert page.evaluate("document.activeElement.type") == "range"
        tab_to(page, "#make")
        page.keyboard.press("Enter")
        page.wait_for_selector("#files a")
        assert page.evaluate("document.activeElement.closest('#files') !== null")
        with page.expect_download() as event:
            page.keyboard.press("Enter")
        rows = polars.read_csv(event.value.path())
        rates = rows.group_by("sex").agg((polars.col("credit") == "good").mean())[
            "credit"
        ]
        assert rates.min() / rates.max() == pytest.approx(0.9, abs=0.01)
        assert page.problems == []
