"""Claims of speed and memory in README and docs come out of the results, and there are no others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import pages
from fairmaxent.engines.lazy_values import MOST_VALUES
from fairmaxent.fit.fit import BATCH

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import claims, results

ROOT = pages.DOCS.parent
PAGES = ["README.md", *(f"docs/{page}" for page in pages.PAGES if not page.startswith("decisions/"))]

# A number and a unit of time or memory, or a comparison.
_CLAIM = re.compile(r"\d[\d,.]*\s*(?:×|(?:m?s|seconds?|minutes?|hours?|[kKMGT]B|CPU)\b|times (?:faster|less|the))")


@pytest.fixture(scope="module")
def records():
    return results.load(ROOT / "benchmarks")


@pytest.mark.parametrize("page", claims.PAGES)
def test_a_page_says_what_was_measured(page, records):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert claims.filled(text, records) == text, "run benchmarks/run.py, or benchmarks.claims.fill"
    assert _CLAIM.search(text), "a page of claims without any"


@pytest.mark.parametrize("page", PAGES)
def test_nobody_wrote_a_claim_by_hand(page):
    text = pages.prose_of((ROOT / page).read_text(encoding="utf-8"))
    assert _CLAIM.findall(text) == []


def test_the_sizes_that_claims_name_are_those_that_were_measured(records):
    assert records["outofcore"]["words"].startswith("10,000,000 rows × 14 columns of Parquet")
    assert records["engine"]["words"].startswith("Fit and 10,000 decoded rows from a pandas frame in memory")


def test_the_limits_that_the_page_on_large_tables_names_are_those_of_the_code():
    text = (pages.DOCS / "questions" / "large-tables.md").read_text(encoding="utf-8")
    assert f"{BATCH:,} rows at a time" in text
    assert f"beyond {MOST_VALUES:,}, some stand for all" in text


def test_no_claim_rests_on_a_quick_run(records):
    subjects = {subject for text in claims.CLAIMS.values() for subject in re.findall(r"\{(\w+)\|", text)}
    assert subjects <= set(records)
    assert [subject for subject in subjects if records[subject]["setting"]["quick"]] == []


RECORDS = {
    "speed": {
        "bars": [{"name": "fast", "measured": 0.01234}, {"name": "failed", "measured": None}],
        "tables": [{"columns": ["what", "CPU s", "MB"], "rows": [["fit", 1.5, 1234.5]]}],
    }
}


def test_fields_are_bars_and_cells():
    assert claims.measured("speed|fast", RECORDS) == "0.0123"
    assert claims.measured("speed|fit|MB", RECORDS) == "1,234"
    for missing in ("speed|failed", "speed|fit", "speed|fit|GB", "speed|slow"):
        with pytest.raises(KeyError, match="nothing was measured"):
            claims.measured(missing, RECORDS)


def test_only_what_is_marked_is_written(monkeypatch):
    monkeypatch.setitem(claims.CLAIMS, "speed", "\nIt took {speed|fit|CPU\n  s} seconds.\n")
    before = "a\n\n<!-- measured: speed -->\nold\n<!-- measured: end -->\n\nb {x}\n"
    after = "a\n\n<!-- measured: speed -->\nIt took 1.5 seconds.\n<!-- measured: end -->\n\nb {x}\n"
    assert claims.filled(before, RECORDS) == claims.filled(after, RECORDS) == after
    assert pages.prose_of(after) == "a\n\n\n\nb {x}\n"


def test_running_fills_the_pages_of_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "PAGES", ("page.md",))
    monkeypatch.setitem(claims.CLAIMS, "speed", "{speed|fast}\n")
    path = Path(tmp_path / "page.md")
    path.write_text("<!-- measured: speed -->\n<!-- measured: end -->\n", encoding="utf-8")
    claims.fill(tmp_path, RECORDS)
    assert path.read_text(encoding="utf-8") == "<!-- measured: speed -->\n0.0123\n<!-- measured: end -->\n"
