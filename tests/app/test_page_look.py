"""Look in a real browser: files and columns are read as asked."""

import pytest

from appserver import asked, enter, running, unfold

pytestmark = pytest.mark.slow


def test_columns_and_the_file_are_read_as_asked(page, people_app):
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
    assert people_app.get("/api/state")[1]["table"]["reading"] == {"missing": ["", "f"], "skip_last": 100}
    assert page.problems == []


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
