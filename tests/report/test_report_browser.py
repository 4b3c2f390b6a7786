"""Six reports in a browser: axe finds nothing, a phone and a sheet of paper cut
nothing, the first page is one page.

axe-core is taken from where `appserver` finds it.
"""

import html
import json
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from appserver import axe_core
from browsers import find_browser, print_page
from fairmaxent import Estimate
from fairmaxent.fit import certificate
from fairmaxent.report import Source, build_report
from fairmaxent.report.first_page import first_page
from fairmaxent.report.source import WrittenFile
from reportforms import html_report

pytestmark = [pytest.mark.process, pytest.mark.slow]
TABLES = ("two groups", "five groups", "for a model", "weights", "long names", "German")
PAPERS = {"A4": (210, 297), "letter": (215.9, 279.4)}  # millimetres
MARGIN = 13  # at each side, in the page's style
PIXELS = 96 / 25.4


def people(
    groups, shares, rows=1500, column="sex", outcome="hired", levels=("yes", "no")
):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {column: rng.choice(groups, rows, p=shares), "age": rng.integers(18, 60, rows)}
    )
    for number in range(6):
        frame[f"question_{number}"] = rng.choice(list("abcd"), rows)
    good = rng.random(rows) < np.where(frame[column] == groups[0], 0.25, 0.5)
    return frame.assign(**{outcome: np.where(good, *levels)})


def long_names():
    long = "a_rather_long_name_of_a_column_as_surveys_have_them_"
    levels = [
        f"group {number} of all the people who answered the question"
        for number in range(7)
    ]
    shares = [0.4, 0.3, 0.2, 0.08, 0.01, 0.006, 0.004]
    answers = ("accepted after a second interview", "not accepted")
    frame = people(
        levels, shares, column=f"{long}region", outcome=f"{long}outcome", levels=answers
    )
    frame[f"{long}religion"] = np.random.default_rng(2).choice(
        levels, len(frame), p=shares
    )
    return frame, (f"{long}outcome", [f"{long}region", f"{long}religion"], answers[0])


def german():
    """Three protected columns with compound words, and twelve joint groups."""
    answers, outcome = (
        (
            "Eingestellt",
            "Vorstellungsgespräch abgelehnt",
        ),
        "Bewerbungsergebnis",
    )
    columns = {
        "Geschlecht": ["weibliche Beschäftigte", "männliche Beschäftigte"],
        "Altersgruppe": ["unter dreißig", "dreißig bis fünfzig", "über fünfzig"],
        "Staatsangehörigkeit": ["Unionsbürgerschaft", "ungeklärt"],
    }
    frame = people(
        columns["Geschlecht"],
        [0.4, 0.6],
        column="Geschlecht",
        outcome=outcome,
        levels=answers,
    )
    for number, name in enumerate(list(columns)[1:]):
        frame[name] = np.random.default_rng(number).choice(columns[name], len(frame))
    return frame, outcome, list(columns), answers[0]


@pytest.fixture(scope="module")
def reports():
    source = Source(
        file="people.csv",
        sha256="3f" * 32,
        written=(WrittenFile("Fair table", "fair.csv", "ab" * 32),),
    )
    estimate = Estimate(output="rows", model="tree")

    def built(
        frame,
        outcome="hired",
        protected="sex",
        favourable="yes",
        mode="rows",
        filed=None,
        **options,
    ):
        fit = fairmaxent.debias(
            frame, outcome, protected, favourable=favourable, random_state=0, **options
        )
        # one report has them
        curves = {"trade_off": mode == "weights"}
        return build_report(
            fit, data=frame, mode=mode, source=source, **curves, **(filed or {})
        )

    long, roles = long_names()
    filed = {
        "title": "A long title " * 20,
        "author": "An author " * 20,
        "purpose": "A long purpose. " * 40,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "_DRAWS", 40)
        two = people(["f", "m"], [0.3, 0.7])
        five = people(["a", "b", "c", "d", "tiny"], [0.3, 0.3, 0.2, 0.19, 0.01])
        return {
            "two groups": built(two, representation_rate=1.0, estimate=estimate),
            "five groups": built(five, representation_rate=1.0, estimate=estimate),
            "for a model": built(two, mode="weights", model="logistic"),
            "weights": built(two, mode="weights", estimate=None),
            "German": built(*german(), groups="joint", estimate=estimate),
            "long names": built(
                long, *roles, representation_rate=1.0, estimate=estimate, filed=filed
            ),
        }


def dom(page, *, dark=False):
    """The document after its scripts have run."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "page.html"
        source.write_text(page, encoding="utf-8")
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={name}/profile",
        ]
        options += [
            "--window-size=1300,1000",
            "--virtual-time-budget=120000",
            "--dump-dom",
        ]
        options += ["--blink-settings=preferredColorScheme=0"] if dark else []
        done = subprocess.run(
            [find_browser(), *options, source.as_uri()],
            capture_output=True,
            timeout=300,
            check=False,
        )
    return done.stdout.decode()


def measured(page, width, script, *, dark=False):
    """What a script in the page gives to `done`, in a frame as wide as the device."""
    inside = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    done = (
        "const done = result => { parent.document.getElementById('result').textContent"
        " = JSON.stringify(result) };"
    )
    inside = inside.replace("</body>", f"<script>{done}\n{script}</script></body>")
    frame = (
        f'<iframe style="width:{width}px;height:9000px;border:0"'
        f' srcdoc="{html.escape(inside)}"></iframe>'
    )
    found = re.search(
        r'<pre id="result">(.+?)</pre>',
        dom(f'<!DOCTYPE html><pre id="result"></pre>{frame}', dark=dark),
    )
    assert found, "the script gave no result"
    return json.loads(html.unescape(found[1]))


RUN_AXE = """
axe.run(document).then(result => done({
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
  width: innerWidth,
  passes: result.passes.length,
  violations: result.violations.map(one => [one.id, one.nodes.map(node => node.html + ' ' + node.failureSummary)]),
}))
"""


@pytest.mark.parametrize("width", [1200, 430])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", TABLES)
def test_axe_finds_nothing(reports, name, dark, width):
    result = measured(
        html_report(reports[name]), width, f"{axe_core()};{RUN_AXE}", dark=dark
    )
    assert (result["dark"], result["width"]) == (dark, width)
    assert result["passes"] > 15
    assert result["violations"] == []


def test_axe_would_find_something(reports):
    broken = html_report(reports["weights"]).replace(
        "--soft: #55606e", "--soft: #bbbbbb"
    )
    violations = measured(broken, 1200, f"{axe_core()};{RUN_AXE}")["violations"]
    assert [name for name, _ in violations] == ["color-contrast"]


CUT = """
const room = document.documentElement.clientWidth + 0.5, cut = [];
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect();
  if (element.closest('.grid thead') && !PAPER && box.width <= 1) continue;
  if (box.width && (box.right > room || box.left < -0.5)) cut.push([element.outerHTML.slice(0, 100), box.right]);
}
done({ cut: cut, width: document.documentElement.scrollWidth, room: room });
"""


def on_sheet(report, sheet):
    """A page as a phone or a sheet of paper has it, and its width."""
    page = html_report(report)
    if sheet not in PAPERS:
        return page, {"phone": 430, "screen": 1440}[sheet]
    printed = page.replace("@media print", "@media all").replace(
        "@media screen", "@media not all"
    )
    return printed, int((PAPERS[sheet][0] - 2 * MARGIN) * PIXELS)


@pytest.mark.parametrize("sheet", ["phone", *PAPERS])
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_cut(reports, name, sheet):
    page, width = on_sheet(reports[name], sheet)
    result = measured(
        page, width, CUT.replace("PAPER", "false" if sheet == "phone" else "true")
    )
    assert result["cut"] == []
    assert result["width"] <= width


BROKEN = """
const broken = [], range = document.createRange();
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const whole = /(?<![\\p{L}\\d])\\p{L}{2,40}(?![\\p{L}\\d])/gu;
while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(whole)) {
  range.setStart(texts.currentNode, word.index);
  range.setEnd(texts.currentNode, word.index + word[0].length);
  const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
  if (lines.size > 1 && !texts.currentNode.parentElement.closest("pre, script, svg, .grid thead")) broken.push(word[0]);
}
done(broken);
"""


@pytest.mark.parametrize("sheet", ["screen", "phone", "A4"])
def test_no_word_is_broken_or_cut(reports, sheet):
    page, width = on_sheet(reports["German"], sheet)
    assert measured(page, width, BROKEN) == []
    assert "…" not in page
    assert measured(page, 150, BROKEN) != []  # it would be seen


def printed_on(paper, page):
    """A page for sheets of this size."""
    return page.replace("</style>", f"@page {{ size: {paper}; }}\n</style>", 1)


def pages(content):
    return len(re.findall(rb"/Type\s*/Page\b", content))


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("name", TABLES)
def test_the_first_page_is_one_sheet_of_paper(reports, name, paper, tmp_path):
    page = printed_on(paper, html_report(reports[name]))
    first = re.sub(
        r'<div class="appendix">.*</main>.*</footer>', "</main>", page, flags=re.S
    )
    assert "Files and versions" in first
    assert "Trade-off" not in first
    assert pages(print_page(first, tmp_path)) == 1
    assert (first_page(reports[name]).print_size == 1) == (
        name in ("two groups", "for a model", "weights")
    )


def test_what_a_browser_prints_is_tagged_for_screen_readers(reports, tmp_path):
    content = print_page(printed_on("A4", html_report(reports["weights"])), tmp_path)
    assert content.startswith(b"%PDF-")
    assert b"/StructTreeRoot" in content
