"""Take in a real browser: from the example to the download."""

import polars
import pytest

from appserver import answered, asked, enter, running, tab_to

# What each chooses, why, and what is said of its file.
USES = {
    "weigh my rows": (
        {"mode": "weights", "model": None},
        "get a column of weights",
        "every table",
    ),
    "publish rows": (
        {"mode": None, "release": True},
        "counts how many are the same as one of yours",
        "to publish",
    ),
    "train a model": (
        {"mode": None, "release": None},
        "may bring the gap back",
        "to train on",
    ),
}


def test_what_it_is_for_chooses_what_is_made_and_says_why(page, people_app):
    for use, (wanted, why, to) in USES.items():
        page.get_by_role("radio", name=use).check()
        asked(page, **wanted)
        answered(page)
        assert why in page.locator("#why").inner_text()
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        assert to in page.locator("#files li").first.inner_text()
        with page.expect_download() as event:
            page.locator("#files a").first.click()
        made = polars.read_csv(event.value.path())
        assert len(made) == 400
        assert ("fair_weight" in made.columns) is (use == "weigh my rows")
    page.get_by_label("Which model?").select_option("logistic")
    asked(page, model="logistic", mode="weights")
    assert "made for this model" in page.locator("#why").inner_text()
    assert page.get_by_role("radio", name="train a model").is_checked()
    page.get_by_role("radio", name="weigh my rows").check()
    asked(page, model=None, mode="weights")
    assert page.problems == []


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
