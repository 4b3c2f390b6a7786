"""How long the app takes from a slider to new numbers in a real Chromium, and from the command to the page.

    python -m benchmarks.app [--rows 50000 1000000] [--moves 40]

The tables are the census table Adult, repeated or cut to the number of rows, with five of its columns and with all. The
slider is the one for equal outcomes; each move is timed from the event to the first change of the numbers. Needs
playwright and a Chromium. On a busy machine, the CPU time that the server spends on a move says more than the clock.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from fairmaxent import datasets
from fairmaxent.report.browser import find_browser

FIVE = ["age", "education", "race", "sex", "income"]

MOVE = """(value) => new Promise((resolve) => {
  const slider = document.querySelector("#ask input[type=range]:enabled");
  const answer = document.getElementById("answer");
  const watch = new MutationObserver(() => { watch.disconnect(); resolve(performance.now() - began); });
  watch.observe(answer, { childList: true });
  slider.value = value;
  const began = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def table(folder: Path, rows: int, columns: int) -> Path:
    """Write the table, as Parquet if it is large, and return its path."""
    adult = datasets.load("adult", library="polars").frame
    frame = adult.select(FIVE) if columns == len(FIVE) else adult
    drawn = frame[np.random.default_rng(0).integers(0, len(frame), rows)]
    path = folder / f"adult-{rows}-{columns}.{'parquet' if rows > 100_000 else 'csv'}"
    drawn.write_parquet(path) if path.suffix == ".parquet" else drawn.write_csv(path)
    return path


def measure(browser: Browser, path: Path, moves: int) -> tuple[float, float, list[float], float]:
    """Seconds to the page and to the first result, milliseconds of each move, and CPU milliseconds of the server."""
    began = time.monotonic()
    command = [sys.executable, "-m", "fairmaxent", "app", str(path), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        address = process.stdout.readline().split()[1]
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        ready = time.monotonic() - began
        page.wait_for_selector("#answer .tiles", timeout=300_000)
        first = time.monotonic() - began
        values = 0.5 + 0.01 * np.random.default_rng(1).permutation(50)
        spent = cpu_seconds(process.pid)
        times = [page.evaluate(MOVE, float(round(values[move % 50], 2))) for move in range(moves)]
        spent = cpu_seconds(process.pid) - spent
        page.close()
        return ready, first, times[2:], 1000 * spent / moves
    finally:
        process.terminate()
        process.wait()


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far; only Linux tells."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return float("nan")
    words = stat.read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print one line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 1_000_000])
    parser.add_argument("--moves", type=int, default=42)
    wanted = parser.parse_args()
    print(f"{'rows':>10}{'columns':>9}{'page, s':>9}{'result, s':>11}{'median, ms':>12}{'95 %, ms':>10}{'CPU, ms':>9}")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for rows in wanted.rows:
            for columns in (len(FIVE), 15):
                ready, first, times, cpu = measure(browser, table(Path(name), rows, columns), wanted.moves)
                middle, late = np.quantile(times, [0.5, 0.95])
                print(
                    f"{rows:>10,}{columns:>9}{ready:>9.1f}{first:>11.1f}{middle:>12.0f}{late:>10.0f}{cpu:>9.0f}",
                    flush=True,
                )
        browser.close()


if __name__ == "__main__":
    main()
