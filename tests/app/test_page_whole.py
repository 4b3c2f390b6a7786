"""The whole page in a real browser: for everybody, on a desk and a phone, with hostile names, and when things break."""

import numpy as np
import pytest

from appserver import answered, asked, check, enter, people_file, running, shot, unfold

pytestmark = pytest.mark.slow

WIDTHS = {"desk": 1280, "phone": 430}


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
        page.get_by_label("The shares of sex are known").check()
        page.get_by_role("button", name="Make the weights").click()
        page.wait_for_selector("#raked table")
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        assert page.locator("#curves svg").count() > 0
        page.set_viewport_size({"width": WIDTHS[width], "height": 800})  # nothing is lost by that
        page.wait_for_timeout(400)
        assert page.locator("#curves svg").count() > 0
        assert page.locator("#verdict table").count() > 0
        check(page, f"all-{width}-{'dark' if dark else 'light'}")


def test_markup_in_names_and_values_is_inert(page, tmp_path):
    evil = "<img src=x onerror=\"document.title='owned'\">"
    levels = ("<script>document.title='owned'</script>", "</td><svg onload=document.title='owned'>")
    table = people_file(tmp_path / "evil.csv", column=evil, levels=levels, outcome="hired<b>", good=evil)
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


def test_a_second_tab_a_broken_file_and_a_stopped_server_are_explained(page, tmp_path):
    with running(tmp_path, data=people_file(tmp_path / "people.csv")) as client:
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


def test_columns_may_be_called_like_parts_of_every_object(page, tmp_path):
    levels = np.random.default_rng(7).choice(["constructor", "toString", "__proto__"], 400)
    table = people_file(tmp_path / "people.csv", column="constructor", toString=levels, __proto__=levels[::-1])
    with running(tmp_path, data=table) as client:
        enter(page, client)
        page.wait_for_selector("#look fieldset")
        page.locator("#look").get_by_label("Outcome").select_option("hired")
        page.locator("#look").get_by_role("group", name="Groups to compare").get_by_label("constructor").check()
        answered(page)
        unfold(page)
        page.locator("#ask").get_by_role("group", name="Compare only within").get_by_label("toString").check()
        asked(page, within={"toString": None})
        page.get_by_label("Choose the shares of").select_option("__proto__")
        page.get_by_role("slider", name="Share of __proto__ = __proto__").press("ArrowRight")
        page.wait_for_function("() => document.getElementById('see').getAttribute('aria-busy') !== 'true'")
        state = client.get("/api/state")[1]
        assert list(state["options"]["target"]) == ["__proto__"]
        assert state["options"]["target"]["__proto__"].keys() == {"constructor", "toString", "__proto__"}
        assert state["outdated"] is False
        assert page.locator("#problem").is_hidden()
        assert page.problems == []
