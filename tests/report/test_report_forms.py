"""The forms of a report show the same numbers, escaped, whole, and the same each time;
the page can be read.
"""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from fairmaxent.document.words import percent
from fairmaxent.report import (
    Source,
    build_report,
    shares,
    write_inspection_report,
    write_raking_report,
    write_report,
)
from fairmaxent.report.first_page import first_page
from reportforms import html_report, json_report, markdown_report

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
PIPE = "a|b `c` *d* [e](f) $g$ {{ 7 * 7 }}"
VOID = {"meta", "col", "link", "br", "img", "hr", "input"}


def hostile_frame(rows=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({SCRIPT: rng.choice([IMAGE, "b & c"], rows, p=[0.3, 0.7])})
    frame[PIPE], frame["line\nbreak"] = (
        rng.choice(["yes", "</td><b>no"], rows),
        rng.choice(list("abc"), rows),
    )
    return frame.assign(number=rng.normal(size=rows))


@pytest.fixture(scope="module")
def fit():
    return fairmaxent.debias(
        hostile_frame(), PIPE, SCRIPT, statistical_rate=0.9, random_state=3
    )


@pytest.fixture(scope="module")
def report(fit):
    source = Source(
        command=f"fairmaxent debias '{SCRIPT}'", file=f"{IMAGE}.csv", sha256="ab" * 32
    )
    return build_report(fit, data=hostile_frame(), source=source)


class Page(HTMLParser):
    """Reads a page strictly: every tag is closed by its own, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.cells: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in ("td", "th", "h4"):
            self.cells.append(data)

    def values(self, name):
        return [value for _, own, value in self.attributes if own == name]


@pytest.fixture(scope="module")
def page(report):
    return Page(html_report(report))


def test_names_and_values_are_text(page, report):
    assert page.tags["script"] == page.tags["img"] == 0
    shown = "".join(page.text)
    for raw in (SCRIPT, IMAGE, PIPE, "</td><b>no", "b & c"):
        assert raw in shown
    assert "b" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_the_page_asks_for_nothing_outside(page, report):
    assert not {"src", "srcset", "action", "data", "poster"} & {
        name for _, name, _ in page.attributes
    }
    targets = page.values("href")
    assert targets
    assert all(target.startswith("#") for target in targets)
    assert {target[1:] for target in targets} <= set(page.values("id"))
    text = html_report(report)
    assert not re.search(r"https?:|url\(|@import|javascript:", text)
    assert "default-src 'none'" in text


def test_the_page_is_accessible(page):
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    assert set(page.values("aria-labelledby")) <= set(ids)
    assert ("html", "lang", "en") in page.attributes
    assert page.tags["main"] == page.tags["h1"] == 1
    assert page.tags["svg"] == page.values("class").count("old")
    assert all(page.values("aria-label"))
    scopes = [
        value for tag, name, value in page.attributes if tag == "th" and name == "scope"
    ]
    assert len(scopes) == page.tags["th"]
    assert set(scopes) == {"col", "row"}


def test_the_page_shows_the_numbers(page, report):
    cells = Counter(page.cells)
    for column in report.marginals:
        assert column.name in cells
        for shift in column.shifts:
            assert shift.label in cells
            assert percent(shift.before) in cells
            assert percent(shift.after) in cells
    for rate in report.rates:
        assert f"{rate.before:.4f}" in cells
        assert rate.worst_before in cells
    for point in report.trade_off.points:
        assert f"{point.distance:.4f}" in cells
    assert report.call in page.text
    assert report.source.command in page.text
    (record,) = first_page(report).first_page[-1].blocks
    assert set(record.items) <= set(page.text)


def test_bars_are_as_long_as_the_shares(report):
    own = report.marginals[0]
    longest = max(max(shift.before, shift.after) for shift in own.shifts)
    widths = re.findall(
        r'class="bar(?: new)?" style="width:([\d.]+)%"', html_report(report)
    )
    expected = [
        100 * share / longest
        for shift in own.shifts
        for share in (shift.before, shift.after)
    ]
    assert [float(width) for width in widths[: len(expected)]] == pytest.approx(
        expected, abs=0.06
    )


def test_every_group_is_drawn_on_a_scale(page, report):
    classes = Counter(
        value
        for tag, name, value in page.attributes
        if tag in ("rect", "circle") and name == "class"
    )
    # the first page shows one of two outcomes
    marks = len(report.groups) * 3 // 2
    assert classes == {"old": marks, "new": marks}


def test_markdown_has_the_same_numbers_and_no_markup_of_the_data(report):
    text = markdown_report(report)
    assert "<" not in text.replace(report.call.replace("\n", "\n    "), "").replace(
        report.source.command, ""
    )
    rows = [
        re.split(r"(?<!\\) \| ", line.strip("| "))
        for line in text.splitlines()
        if line.startswith("|")
    ]
    for column in report.marginals:
        for shift in column.shifts:
            assert [percent(shift.before), percent(shift.after)] in [
                row[1:3] for row in rows
            ]
    for rate in report.rates:
        assert [
            f"{rate.before:.4f}",
            f"{rate.delivered:.4f}",
            f"{rate.achieved:.4f}",
        ] in [row[1:4] for row in rows]
    for point in report.trade_off.points:
        assert f"{point.distance:.4f}" in [row[1] for row in rows]
    heads = [row for row, below in pairwise(rows) if set(below) == {"---"}]
    assert len(heads) > len(report.marginals)
    assert "line break" in text


def test_json_holds_everything(report):
    written = json.loads(json_report(report))
    assert next(iter(written)) == "first_page"
    assert written.pop("first_page")["title"] == first_page(report).title
    assert written == report.to_dict()
    assert set(report.to_dict()) == {*vars(report), "told"} - {"case"}
    assert (
        report.to_dict()["marginals"][0]["shifts"][0]["before"]
        == report.marginals[0].shifts[0].before
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_the_same_arguments_give_the_same_bytes(fit, tmp_path, suffix):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    for path in (first, second):
        write_report(fit, path, data=hostile_frame(), trade_off=False)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


@pytest.mark.parametrize(
    "write", [write_report, write_raking_report, write_inspection_report]
)
@pytest.mark.parametrize("path", ["report.docx", "report", 7])
def test_a_path_of_no_known_form_is_refused_before_any_work(write, path):
    with pytest.raises(fairmaxent.errors.StorageError, match=r"\.html|report\.html"):
        write(None, path)


@pytest.mark.parametrize(
    "write", [write_report, write_raking_report, write_inspection_report]
)
def test_a_pdf_is_refused_with_the_way_to_one(write):
    expected = r"not written as PDF; write an \.html one, which prints well"
    with pytest.raises(fairmaxent.errors.StorageError, match=expected):
        write(None, "report.PDF")


def test_a_place_that_cannot_be_written_is_refused_and_a_command_of_bytes_that_are_no_text_shown(
    fit, tmp_path
):
    with pytest.raises(fairmaxent.errors.StorageError, match="cannot write"):
        write_report(fit, tmp_path / "none" / "report.json", trade_off=False)
    assert list(tmp_path.iterdir()) == []
    source = Source(command="fairmaxent debias \udcff.csv")
    write_report(fit, tmp_path / "report.md", source=source, trade_off=False)
    assert r"    fairmaxent debias \udcff.csv" in (tmp_path / "report.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.more
def test_a_wide_table_and_long_columns_are_cut():
    rng = np.random.default_rng(1)
    rows = 300
    frame = pd.DataFrame(
        {
            "y": rng.choice(["0", "1"], rows),
            "z": rng.choice([f"g{i:02}" for i in range(35)], rows),
        }
    )
    for number in range(shares._COLUMNS + 10):
        levels = {0: 26, 1: shares._LEVELS + 1}.get(number, 3)
        frame[f"c{number}"] = rng.choice(
            list("abcdefghijklmnopqrstuvwxyz")[:levels], rows
        )
    fit = fairmaxent.debias(
        frame, "y", "z", statistical_rate=None, representation_rate=0.5, base="product"
    )
    report = build_report(fit, trade_off=False)
    page = Page(html_report(report))
    cards = page.values("class").count("card")
    assert (cards, page.values("class").count("card marked")) == (
        shares._COLUMNS,
        1 + 2,
    )
    assert set(frame.columns) <= set(page.cells)
    assert f"{26 - shares._LEVELS} more levels" in page.cells
    assert "1 more level" not in page.cells  # it takes no more room than to say so
    assert f"{35 - shares._GROUPS} more groups in the JSON report" in "".join(page.text)
    # all of the groups are small; the worst three are named
    assert len(report.alerts) == 4
    assert report.alerts[-1].startswith(
        "32 more groups rest on fewer than 30 effective rows"
    )
    assert f"{35 - 12} more groups in the JSON report" in "".join(page.text)
    assert len(json.loads(json_report(report))["costs"]["groups"]) == 35
    assert len(json.loads(json_report(report))["marginals"]) == len(frame.columns)


CSS = files("fairmaxent.document").joinpath("page.css").read_text(encoding="utf-8")
TEXT, GRAPHICS = 4.5, 3.0  # WCAG 2.2 AA: 1.4.3 and 1.4.11


def rules(start):
    """The variables of the `:root` after a text."""
    block = re.search(r":root \{(.*?)\}", CSS[CSS.index(start) :], flags=re.S)[1]
    return dict(re.findall(r"--([\w-]+): ([^;]+);", block))


LIGHT = rules(":root")
THEMES = {
    "light": LIGHT,
    "dark": LIGHT | rules("prefers-color-scheme: dark"),
    "print": LIGHT | rules("@media print"),
}


def rgb(colour):
    return [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]


def luminance(colour):
    """Relative luminance as WCAG defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(first, second):
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_wcag():
    assert contrast(rgb("#000000"), rgb("#ffffff")) == pytest.approx(21)
    assert contrast(rgb("#777777"), rgb("#ffffff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_text_bars_and_edges_can_be_seen(theme):
    colours = THEMES[theme]
    marks = dict.fromkeys(("before", "edge", "note-edge"), GRAPHICS)
    for name, least in (
        marks | dict.fromkeys(("ink", "soft", "good", "bad", "after"), TEXT)
    ).items():
        for ground in ("page", "card"):
            assert contrast(rgb(colours[name]), rgb(colours[ground])) >= least, (
                name,
                ground,
            )
    assert contrast(rgb(colours["ink"]), rgb(colours["note"])) >= TEXT


def test_a_sixteenth_looks_the_same_everywhere():
    frame = pd.DataFrame(
        {"sex": ["f"] * 2 + ["m"] * 30, "y": ["a", "b"] * 16, "x": list("pqrs") * 8}
    )
    fit = fairmaxent.debias(
        pd.concat([frame] * 20), "y", "sex", favourable="a", random_state=0
    )
    shown = set(
        re.findall(
            r"\b6\.[23]%",
            html_report(build_report(fit, mode="weights", trade_off=False)),
        )
    )
    assert percent(1 / 16) == "6.3%"
    assert shown == {"6.3%"}


def test_headings_descend_one_level_at_a_time_and_tables_have_labels_and_cells_their_heads(
    report,
):
    page = html_report(report)
    levels = [int(level) for level in re.findall(r"<h([1-6])\b", page)]
    assert levels[0] == levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert max(levels) == 4
    assert all('aria-label="' in tag for tag in re.findall(r"<table[^>]*>", page))
    # on a phone, each number has its head beside it
    cells = re.findall(r'<td role="cell"[^>]*>', page)
    assert cells
    assert all(
        re.search('data-label="."', re.sub(r'="[^"]+"', '="."', cell)) for cell in cells
    )
