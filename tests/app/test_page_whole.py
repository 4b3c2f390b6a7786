"""The whole page in a real browser: for everybody, on a desk and a phone, with hostile
names, and when things break.
"""

import errno
import os
import time
from unittest.mock import Mock

import numpy as np
import polars
import pytest

import fairmaxent
from appserver import (
    answered,
    asked,
    check,
    choose,
    drop,
    enter,
    menu,
    people_file,
    running,
    shot,
    unfold,
)

pytestmark = pytest.mark.slow

WIDTHS = {"desk": 1440, "tablet": 1024, "narrow": 768, "phone": 430}


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
        page.wait_for_selector("svg.strip")
        check(page, f"first-{width}-{'dark' if dark else 'light'}")
        for name in ("about", "outcome-menu", "groups-menu", "open-menu"):
            with menu(page, name):
                check(page, f"{name}-{width}-{'dark' if dark else 'light'}")
        page.get_by_role("button", name="keep to compare").click()
        page.get_by_label("Ask for equal outcomes of sex").uncheck()
        answered(page)
        unfold(page)
        page.get_by_label("Choose the shares of").select_option("housing")
        page.get_by_label("Rows to share").check()
        page.get_by_role("slider", name="Share of housing").first.wait_for()
        answered(page)
        unfold(page)
        page.get_by_label("Ask for equal outcomes of sex").check()
        page.wait_for_selector("svg.strip")
        page.get_by_role("button", name="Make the files").click()
        page.wait_for_selector("#files a")
        # nothing is lost by that
        page.set_viewport_size({"width": WIDTHS[width], "height": 800})
        page.wait_for_timeout(400)
        assert page.locator("svg.curve").count() > 0
        check(page, f"all-{width}-{'dark' if dark else 'light'}")


def test_markup_in_names_and_values_is_inert(page, tmp_path):
    evil = "<img src=x onerror=\"document.title='owned'\">"
    levels = (
        "<script>document.title='owned'</script>",
        "</td><svg onload=document.title='owned'>",
    )
    table = people_file(
        tmp_path / "evil.csv", column=evil, levels=levels, outcome="hired<b>", good=evil
    )
    with running(tmp_path) as client:
        enter(page, client)
        drop(page, "<img src=x onerror=alert(1)>.csv", table.read_bytes())
        choose(page, outcome="hired<b>", good=[evil], groups=[evil])
        answered(page)
        page.get_by_role("button", name="keep to compare").click()
        unfold(page)
        page.wait_for_selector("#pins table")
        assert "owned" not in page.title()
        assert page.locator("img, b, body script").count() == 0
        assert levels[0] in page.locator("#detail").inner_text()
        shot(page, "evil")
        assert page.problems == []


def test_columns_may_be_called_like_parts_of_every_object(page, tmp_path):
    levels = np.random.default_rng(7).choice(
        ["constructor", "toString", "__proto__"], 400
    )
    table = people_file(
        tmp_path / "people.csv",
        column="constructor",
        toString=levels,
        __proto__=levels[::-1],
    )
    with running(tmp_path, data=table) as client:
        enter(page, client)
        choose(page, outcome="hired", groups=["constructor"])
        answered(page)
        unfold(page)
        page.locator("#more").get_by_role(
            "group", name="Compare only within"
        ).get_by_label("toString").check()
        asked(page, within={"toString": None})
        page.get_by_label("Choose the shares of").select_option("__proto__")
        for _ in range(2):  # also when the page has not chosen the column itself
            page.get_by_role("slider", name="Share of __proto__ = __proto__").press(
                "ArrowRight"
            )
            answered(page)
            page.reload()
            answered(page)
        state = client.get("/api/state")[1]
        assert {
            name: set(shares) for name, shares in state["options"]["target"].items()
        } == {"__proto__": set(levels)}
        assert state["outdated"] is False
        with menu(page, "about") as look:
            look.get_by_label("Column", exact=True).select_option("toString")
            unfold(page)
            assert (
                look.get_by_label("Name of toString = constructor").input_value()
                == "constructor"
            )
            look.get_by_label("Name of toString = __proto__").fill("toString")
            with page.expect_response("**/api/read"):
                look.get_by_role("button", name="Rename the levels of toString").click()
        assert client.get("/api/state")[1]["table"]["reading"]["levels"] == {
            "toString": {"__proto__": "toString"}
        }
        assert page.problems == []


def test_a_second_tab_a_broken_file_and_a_stopped_server_are_explained(page, tmp_path):
    with running(tmp_path, data=people_file(tmp_path / "people.csv")) as client:
        enter(page, client)
        answered(page)
        second = page.context.new_page()
        second.goto(page.url)
        answered(second)  # pages of one browser share their secret
        drop(second, "broken.parquet", b"PAR1 this is none")
        second.wait_for_selector("#problem:not([hidden])")
        assert "broken.parquet" in second.locator("#problem").inner_text()
        second.get_by_role("button", name="Open another").click()
        second.get_by_role("button", name="Credit in Germany").click()
        second.wait_for_function("() => document.title.startsWith('Credit')")
        # which the other tab has told it
        page.wait_for_function("() => document.title.startsWith('Credit')")
        answered(page)
        second.wait_for_selector("svg.strip")
        page.wait_for_selector("svg.strip")
        before = page.locator("#see .lede").inner_text()
        page.get_by_role("slider", name="Equal outcomes of sex", exact=True).press(
            "PageDown"
        )
        rate = float(
            page.get_by_role(
                "slider", name="Equal outcomes of sex", exact=True
            ).input_value()
        )
        second.wait_for_function(
            "(rate) => document.querySelector('#ask [type=range]').value == rate",
            arg=rate,
        )
        page.locator("#see .lede", has_not_text=before).wait_for()
        second.locator(
            "#see .lede", has_text=page.locator("#see .lede").inner_text()
        ).wait_for()
    page.get_by_label("Ask for equal outcomes of sex").uncheck()
    page.wait_for_selector("#problem:not([hidden])")
    assert "no longer running" in page.locator("#problem").inner_text()


def test_a_page_to_send_works_without_a_server_and_has_the_numbers_of_the_certificate(
    page, tmp_path
):
    table = people_file(tmp_path / "people.csv")
    with running(tmp_path, data=table) as client:
        enter(page, client)
        answered(page)
        page.get_by_role("button", name="keep to compare").click()
        page.get_by_label("Equal outcomes of sex, as a number").fill("0.83")
        page.get_by_label("Equal outcomes of sex, as a number").press("Enter")
        asked(page, statistical_rate=0.83)
        page.get_by_role("button", name="page to send").click()
        with page.expect_download() as event:
            page.locator("#sent a").click()
        event.value.save_as(tmp_path / "sent.html")
    sent = page.context.new_page()
    sent.goto((tmp_path / "sent.html").as_uri())
    assert sent.locator("h2").all_inner_texts() == [
        "rate 1 for sex, sizes kept",
        "rate 0.83 for sex, sizes kept",
    ]
    for number, rate in enumerate((1, 0.83)):
        wish = {"favourable": "yes", "statistical_rate": rate, "estimate": None}
        fit = fairmaxent.debias(polars.read_csv(table), "hired", "sex", **wish)
        part = sent.locator("section").nth(number)
        shown = [
            float(row.locator("td").last.inner_text()[:-2])
            for row in part.locator("tbody tr").all()
        ]
        assert shown == pytest.approx(
            [100 * one for one in fit.summary()["rate_after"]], abs=0.051
        )
        assert (
            f"400 rows count like {fit.certificate.effective_rows:.0f}:"
            in part.inner_text()
        )
    before = sent.locator(".lede").first.inner_text()
    sent.locator("input[type=range]").first.press("Home")
    assert sent.locator(".lede").first.inner_text() != before
    check(sent, "sent")


def test_a_changed_or_deleted_file_stopped_work_and_a_full_disk_are_said_on_a_phone(
    page, tmp_path, monkeypatch
):
    page.set_viewport_size({"width": 430, "height": 900})
    table = people_file(tmp_path / "people.csv")
    with running(tmp_path, data=table) as client:
        enter(page, client)
        answered(page)
        page.goto("about:blank")
        page.go_back()
        answered(page)

        def pressed(name, text):
            page.get_by_role("button", name=name).click()
            page.locator("#problem, #making", has_text=text).first.wait_for()

        take = "fairmaxent.app.session.take"
        with monkeypatch.context() as patch:
            patch.setattr(
                take,
                lambda fitted, _, progress: [
                    time.sleep(0.1) or progress("", 0) for _ in range(99)
                ],
            )
            page.get_by_role("button", name="Make the files").click()
            pressed("Stop", "Stopped.")
            patch.setattr(
                take, Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            )
            pressed("Make the files", "No space left on device. Check the free space")
        people_file(table, rows=300)
        pressed("Make the files", "people.csv has changed since it was opened")
        page.get_by_role("button", name="Read the file again").first.click()
        page.locator(".bar", has_text="300 rows").wait_for()
        answered(page)
        table.unlink()
        pressed("Make the files", "people.csv is gone since it was opened")
        assert client.get("/api/state")[1]["files"] == []
