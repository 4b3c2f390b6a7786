"""The page's colours, headings, labels and print rules, read from its style and markup without a browser."""

import re
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from fairmaxent.document.words import percent
from fairmaxent.report import build_report
from fairmaxent.report.writer import html_report

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
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(first, second):
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_wcag():
    assert contrast(rgb("#000000"), rgb("#ffffff")) == pytest.approx(21)
    assert contrast(rgb("#777777"), rgb("#ffffff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme):
    colours = THEMES[theme]
    for text in ("ink", "soft", "good", "bad", "after"):
        for ground in ("page", "card"):
            assert contrast(rgb(colours[text]), rgb(colours[ground])) >= TEXT, (text, ground)
    assert contrast(rgb(colours["ink"]), rgb(colours["note"])) >= TEXT


@pytest.mark.parametrize("theme", THEMES)
def test_bars_and_edges_can_be_seen(theme):
    colours = THEMES[theme]
    for mark in ("before", "after", "edge", "note-edge"):
        for ground in ("page", "card"):
            assert contrast(rgb(colours[mark]), rgb(colours[ground])) >= GRAPHICS, (mark, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_numbers_in_the_heat_map_can_be_read_in_every_cell(theme):
    colours = THEMES[theme]
    ink, page, after = (rgb(colours[name]) for name in ("ink", "page", "after"))
    for strength in np.linspace(0, 1, 101):
        part = strength * float(colours["strongest"])
        cell = [part * over + (1 - part) * under for over, under in zip(after, page, strict=True)]
        assert contrast(ink, cell) >= TEXT, strength
    assert "fill-opacity: calc(var(--strength) * var(--strongest))" in CSS
    assert not re.search(r"svg text\.", CSS)  # all of it has the colour that is tried here


# ---------------------------------------------------------------- markup


@pytest.fixture(scope="module")
def page():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 400, p=[0.3, 0.7]), "x": rng.choice(list("abc"), 400)})
    frame["hired"] = np.where(rng.random(400) < np.where(frame["sex"] == "f", 0.2, 0.5), "yes", "no")
    fit = fairmaxent.debias(frame, "hired", "sex", favourable="yes", representation_rate=1.0, random_state=0)
    return html_report(build_report(fit, data=frame))


def test_a_sixteenth_looks_the_same_everywhere():
    frame = pd.DataFrame({"sex": ["f"] * 2 + ["m"] * 30, "y": ["a", "b"] * 16, "x": list("pqrs") * 8})
    fit = fairmaxent.debias(pd.concat([frame] * 20), "y", "sex", favourable="a", random_state=0)
    shown = set(re.findall(r"\b6\.[23]%", html_report(build_report(fit, mode="weights", trade_off=False))))
    assert percent(1 / 16) == "6.3%"
    assert shown == {"6.3%"}


def test_headings_descend_one_level_at_a_time(page):
    levels = [int(level) for level in re.findall(r"<h([1-6])\b", page)]
    assert levels[0] == levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert max(levels) == 4


def test_tables_have_labels_and_heads_have_scopes(page):
    assert all('aria-label="' in tag for tag in re.findall(r"<table[^>]*>", page))
    assert all(re.search('scope="(col|row)"', tag) for tag in re.findall(r"<th\b[^>]*>", page))
    cells = re.findall(r'<td role="cell"[^>]*>', page)  # on a phone, each number has its head beside it
    assert cells
    assert all(re.search('data-label="."', re.sub(r'="[^"]+"', '="."', cell)) for cell in cells)
