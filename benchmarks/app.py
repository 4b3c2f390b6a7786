"""The app in a real Chromium: from the command to the page, and from a slider to new
numbers.

The tables are the census table Adult, drawn to the number of rows, with five of its
columns and with all. Three columns of groups are compared: those that the page guesses,
and the one that it offers. The slider is the one for equal outcomes; each move is timed
from the event to the first change of the numbers. On a busy machine, the CPU time that
the server spends on a move says more than the clock.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.outcome import Bar, Outcome, Table
from fairmaxent import datasets
from fairmaxent.errors import DependencyError
from fairmaxent.report.browser import find_browser

FIVE = ("age", "education", "race", "sex", "income")
ALL = 15
# Seconds to the page, milliseconds in which 95 of 100 moves must be answered, and those
# of CPU that a move may take.
READY, ANSWERED, CPU = 2.0, 60.0, 15.0
COLUMNS = (len(FIVE), ALL)

THREE = "() => document.querySelectorAll('[role=tab]').length === 3"
# the curve, and not only the few points that are there at once
WHOLE = """() => {
  const line = document.querySelector("svg.curve polyline");
  return line !== null && line.points.length > 10;
}"""
MOVE = """(value) => new Promise((resolve) => {
  const slider = document.querySelector("input.handle");
  const answer = document.getElementById("answer");
  const watch = new MutationObserver(() => { watch.disconnect(); resolve(performance.now() - began); });
  watch.observe(answer, { childList: true, characterData: true, attributes: true, subtree: true });
  slider.value = value;
  const began = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: tuple[int, ...]
    moves: int  # of the slider


FULL = Sizes(rows=(50_000, 1_000_000), moves=42)
QUICK = Sizes(rows=(5_000,), moves=12)


@dataclass(frozen=True)
class Seen:
    """What was measured with one table."""

    rows: int
    columns: int
    ready: float  # seconds from the command to the page
    first: float  # and to the first result
    moves: tuple[float, ...]  # milliseconds of each
    cpu: float  # milliseconds that the server spends on a move
    load: float  # of the machine: how many processes wanted to run

    @property
    def late(self) -> float:
        """The 95th percentile of the moves."""
        return float(np.quantile(self.moves, 0.95))

    @property
    def line(self) -> tuple[float, ...]:
        """Everything, for a table."""
        times = self.ready, self.first, float(np.median(self.moves)), self.late
        return self.rows, self.columns, *times, self.cpu, self.load


def measure(sizes: Sizes) -> Outcome:
    """Measure each table; without a browser, say why nothing was measured."""
    seen: list[Seen] = []
    why = ""
    try:
        from playwright.sync_api import sync_playwright

        program = find_browser()
    except DependencyError as problem:
        why = str(problem)
    except ImportError:
        why = "playwright is not installed"
    else:
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=program, args=["--no-sandbox"]
            )
            for rows, columns in itertools.product(sizes.rows, COLUMNS):
                path = table(Path(folder), rows, columns)
                seen.append(_seen(browser, path, rows, columns, sizes.moves))
            browser.close()
    return outcome(seen, sizes, why)


def outcome(seen: list[Seen], sizes: Sizes, why: str) -> Outcome:
    """What was measured, beside what was promised."""
    known = {(one.rows, one.columns): one for one in seen}
    cases = {case: known.get(case) for case in itertools.product(sizes.rows, COLUMNS)}
    return Outcome(
        "The app",
        "Adult in a real Chromium. Page: from the command until it can be used."
        " Result: until the first numbers are there. Move: from an event of the slider"
        f" to new numbers, {sizes.moves} moves. CPU: of the server, for one move. Load:"
        " how many processes wanted to run, on average over a minute; where they are"
        " more than the machine has cores, only the CPU time tells something about the"
        " app.",
        (
            Table(
                "From the command, and from the slider",
                (
                    "rows",
                    "columns",
                    "page s",
                    "result s",
                    "move ms, median",
                    "move ms, 95 %",
                    "CPU ms",
                    "load",
                ),
                tuple(one.line for one in seen),
            ),
        ),
        (
            Bar(
                "Page ready",
                max((one.ready for one in seen), default=None),
                READY,
                "s",
                why=why,
            ),
            *(
                Bar(
                    f"{what}, {columns} columns, {rows:,} rows",
                    one and getattr(one, value),
                    limit,
                    "ms",
                    why=why,
                )
                for (rows, columns), one in cases.items()
                for what, value, limit in (
                    ("Slider: 95 %", "late", ANSWERED),
                    ("CPU of a move", "cpu", CPU),
                )
            ),
        ),
    )


def table(folder: Path, rows: int, columns: int) -> Path:
    """Write the table, as Parquet if it is large, and return its path."""
    adult = datasets.load("adult", library="polars").frame
    frame = adult.select(FIVE) if columns == len(FIVE) else adult
    drawn = frame[np.random.default_rng(0).integers(0, len(frame), rows)]
    path = folder / f"adult-{rows}-{columns}.{'parquet' if rows > 100_000 else 'csv'}"
    drawn.write_parquet(path) if path.suffix == ".parquet" else drawn.write_csv(path)
    return path


def _seen(browser: Any, path: Path, rows: int, columns: int, moves: int) -> Seen:
    """Start the app on a table, and move its slider; the first two moves do not
    count.
    """
    began = time.monotonic()
    command = [sys.executable, "-m", "fairmaxent", "app", str(path), "--no-browser"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[1]
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        ready = time.monotonic() - began
        page.wait_for_selector("#detail .tiles", timeout=300_000)
        first = time.monotonic() - began
        page.locator(".perhaps").first.click()
        page.wait_for_function(THREE, timeout=300_000)
        page.wait_for_function(WHOLE, timeout=300_000)
        slider = page.locator("input.handle")
        least = float(slider.get_attribute("min"))
        step = float(slider.get_attribute("step"))
        steps = np.random.default_rng(1).permutation(round((1 - least) / step))
        spent = _cpu_seconds(process.pid)
        times = [
            page.evaluate(
                MOVE, float(round(least + step * steps[move % len(steps)], 2))
            )
            for move in range(moves)
        ]
        page.wait_for_timeout(1000)  # the hand rests, and what it rests on is asked for
        spent = _cpu_seconds(process.pid) - spent
        page.close()
        return Seen(
            rows,
            columns,
            ready,
            first,
            tuple(times[2:]),
            1000 * spent / moves,
            os.getloadavg()[0],
        )
    finally:
        process.terminate()
        process.wait()


def _cpu_seconds(process: int) -> float:
    """CPU time of a process so far; only Linux tells."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return float("nan")
    words = stat.read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
