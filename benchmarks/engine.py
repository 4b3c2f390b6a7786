"""End to end on the paper's data: CPU seconds beside the figures of the authors'
code.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.meter import repeated
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.process import ROOT, environment, fresh

# Fit and 10,000 rows by the authors' code, in CPU seconds on the same kind of machine,
# and how often ours must fit in.
AUTHORS = {
    "COMPAS small": (2.9, 100.0),
    "Adult": (4.9, 70.0),
    "COMPAS large": (40.0, 330.0),
}
LIMITS = {
    "COMPAS small": 0.025,
    "Adult": 0.060,
    "COMPAS large": 0.120,
    "Adult, full width": 0.25,
    "import": 0.25,
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int  # drawn
    repeats: int
    cases: tuple[str, ...]


CASES = (
    "COMPAS small",
    "Adult",
    "COMPAS large",
    "Adult, full width",
    "Adult, full width, sex and race",
    "COMPAS small, paper",
    "Adult, paper",
    "COMPAS large, paper",
)
WEIGHTED = "Adult, full width"
FULL = Sizes(rows=10_000, repeats=5, cases=CASES)
QUICK = Sizes(
    rows=10_000, repeats=2, cases=("COMPAS small", "Adult", "Adult, full width")
)

_DATA = {
    "COMPAS small": "compas-small",
    "Adult": "adult-small",
    "COMPAS large": "compas-large",
    "Adult, full width": "adult",
}


def measure(sizes: Sizes) -> Outcome:
    """Measure each case in a process of its own."""
    seconds = {
        case: fresh(case_cpu, case, sizes.rows, sizes.repeats) for case in sizes.cases
    }
    seconds["import"] = import_cpu(sizes.repeats)
    rows = []
    for name, cpu in seconds.items():
        authors, _ = AUTHORS.get(name.removesuffix(", paper"), (None, None))
        rows.append(
            (name, cpu, LIMITS.get(name), authors, authors / cpu if authors else None)
        )
    bars = [
        Bar(f"{name}: CPU", seconds[name], LIMITS[name], "s")
        for name in LIMITS
        if name in seconds
    ]
    bars += [
        Bar(
            f"{name}: times less CPU than the authors' code",
            authors / seconds[name],
            times,
            "×",
            at_least=True,
        )
        for name, (authors, times) in AUTHORS.items()
        if name in seconds
    ]
    tables = [
        Table(
            "", ("what", "CPU s", "limit s", "authors s", "authors / ours"), tuple(rows)
        )
    ]
    if WEIGHTED in sizes.cases:
        ours, theirs = fresh(weights_cpu, WEIGHTED, sizes.repeats)
        tables.append(
            Table(
                "",
                ("weights of", "CPU s", "Kamiran–Calders s", "times"),
                ((WEIGHTED, ours, theirs, ours / theirs),),
            )
        )
        bars.append(
            Bar(
                f"{WEIGHTED}: weights, times the CPU of Kamiran–Calders",
                ours / theirs,
                4.0,
                "×",
            )
        )
    return Outcome(
        "End to end",
        f"Fit and {sizes.rows:,} decoded rows from a pandas frame in memory; authors:"
        " their published code.",
        tuple(tables),
        tuple(bars),
    )


def weights_cpu(case: str, repeats: int) -> tuple[float, float]:
    """CPU seconds of the weights of a case, and of those of Kamiran and Calders, in one
    process.
    """
    import fairmaxent

    data = fairmaxent.datasets.load(_DATA[case])
    methods = (fairmaxent.debias, fairmaxent.baselines.kamiran_calders)
    jobs = [
        lambda method=method: method(data.frame, data.outcome, "sex").weights()
        for method in methods
    ]
    # In turns, so that both have the same neighbours on a busy machine.
    runs = [[repeated(job, 1)[0].cpu for job in jobs] for _ in range(repeats)]
    ours, theirs = (statistics.median(cpu) for cpu in zip(*runs, strict=True))
    return ours, theirs


def case_cpu(case: str, rows: int, repeats: int) -> float:
    """CPU seconds of one case."""
    cost, _ = repeated(_job(case, rows), repeats)
    return cost.cpu


def _job(case: str, rows: int) -> Callable[[], Any]:
    """Build what is measured: from a frame in memory to decoded rows."""
    import fairmaxent
    from reproduction import datasets

    by_paper, both = case.endswith(", paper"), case.endswith(", sex and race")
    name = _DATA[case.removesuffix(", paper").removesuffix(", sex and race")]
    load = fairmaxent.datasets.load if name == "adult" else datasets.load
    data = load(name)
    frame, outcome = data.frame, data.outcome
    if not by_paper:
        protected = ["sex", "race"] if both else "sex"
        return lambda: fairmaxent.debias(
            frame, outcome, protected, random_state=0
        ).sample(rows)
    # The paper's COMPAS large is too wide for indicators: its columns enter by their
    # means.
    domain = (
        fairmaxent.Domain.infer(frame, features="moment")
        if name == "compas-large"
        else None
    )
    return lambda: fairmaxent.paper.fit(
        frame, outcome=outcome, protected="sex", domain=domain
    ).sample(rows)


def import_cpu(repeats: int) -> float:
    """CPU seconds until ``fairmaxent.debias`` can be called in a fresh interpreter,
    bytecode written beforehand.
    """
    variables = {
        name: value
        for name, value in environment().items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    code = (
        "import time; start = time.process_time(); from fairmaxent import debias;"
        " print(time.process_time() - start)"
    )
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(
            command, env=variables, cwd=ROOT, capture_output=True, check=True
        )
        for _ in range(repeats + 1)
    ]
    return statistics.median(float(run.stdout) for run in runs[1:])
