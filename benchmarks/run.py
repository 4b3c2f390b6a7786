"""CPU seconds of the engine, one thread, median of five, beside the figures of the authors' code.

Run by ``make bench``; writes benchmarks/results.json and benchmarks/results.md. The data are read from the folder
shared/data beside the checkout.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
os.environ.setdefault("FAIRMAXENT_DATA", str(HERE.parents[1] / "shared" / "data"))
sys.path.insert(0, str(HERE.parent / "tests"))

import fairmaxent
import realdata

# Fit and 10,000 rows by the authors' code, CPU seconds on the same kind of machine, and what we hold ourselves to.
AUTHORS = {"COMPAS small": 2.9, "Adult": 4.9, "COMPAS large": 40.0}
LIMITS = {"COMPAS small": 0.025, "Adult": 0.060, "COMPAS large": 0.120, "Adult, full width": 1.0, "import": 0.25}
REPEATS = 5


def median_cpu(job: Callable[[], Any]) -> float:
    """Median CPU seconds of several runs, after one to warm up."""
    job()
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        job()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def import_cpu() -> float:
    """CPU seconds of a fresh interpreter's ``import fairmaxent``, median of several, bytecode written beforehand."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = "import time; start = time.process_time(); import fairmaxent; print(time.process_time() - start)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
        for _ in range(REPEATS + 1)
    ]
    return statistics.median(runs[1:])


def jobs() -> dict[str, Callable[[], Any]]:
    """What is measured: from a frame in memory to 10,000 decoded rows."""
    small, adult, full = realdata.compas_small(), realdata.adult_small(), realdata.adult()
    large = fairmaxent.datasets.load("compas-large").frame
    moments = fairmaxent.Domain.infer(large, features="moment")
    return {
        "COMPAS small": lambda: fairmaxent.debias(small, "recid", "sex", random_state=0).sample(10_000),
        "Adult": lambda: fairmaxent.debias(adult, "income", "sex", random_state=0).sample(10_000),
        "COMPAS large": lambda: fairmaxent.debias(large, "is_recid", "sex", random_state=0).sample(10_000),
        "Adult, full width": lambda: fairmaxent.debias(full, "income", "sex", random_state=0).sample(10_000),
        "Adult, full width, sex and race": lambda: fairmaxent.debias(full, "income", ["sex", "race"]).sample(10_000),
        "COMPAS small, paper": lambda: fairmaxent.paper.fit(small, outcome="recid", protected="sex").sample(10_000),
        "Adult, paper": lambda: fairmaxent.paper.fit(adult, outcome="income", protected="sex").sample(10_000),
        "COMPAS large, paper": lambda: fairmaxent.paper.fit(
            large, outcome="is_recid", protected="sex", domain=moments
        ).sample(10_000),
    }


def main() -> None:
    """Measure, print and save."""
    measured = {name: median_cpu(job) for name, job in jobs().items()} | {"import": import_cpu()}
    lines = [
        "# Engine: CPU seconds, one thread, median of 5",
        "",
        "Fit and 10,000 decoded rows from a pandas frame in memory; *authors*: their published code.",
        "",
        "| what | CPU s | limit | authors | ratio |",
        "|---|---|---|---|---|",
    ]
    for name, seconds in measured.items():
        authors = AUTHORS.get(name.removesuffix(", paper"))
        limit = f"{LIMITS[name]:.3f}" if name in LIMITS else ""
        ratio = f"{authors / seconds:.0f}×" if authors else ""
        lines.append(f"| {name} | {seconds:.4f} | {limit} | {authors or ''} | {ratio} |")
    libraries = ("numpy", "scipy", "narwhals", "pandas")
    setting = {"python": platform.python_version(), "machine": platform.machine()}
    setting |= {library: version(library) for library in libraries}
    lines += ["", ", ".join(f"{name} {value}" for name, value in setting.items())]
    (HERE / "results.md").write_text("\n".join(lines) + "\n")
    (HERE / "results.json").write_text(json.dumps({"setting": setting, "cpu_seconds": measured}, indent=1) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
