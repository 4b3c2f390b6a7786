"""Results: what all subjects measured, kept in one file; a run of some subjects
replaces only theirs.
"""

import datetime
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.outcome import Outcome

FILE = "results.json"
LIBRARIES = (
    "fairmaxent",
    "numpy",
    "scipy",
    "narwhals",
    "pandas",
    "polars",
    "duckdb",
    "scikit-learn",
    "imbalanced-learn",
    "aif360",
    "cvxpy",
    "dask",
    "distributed",
    "fairlearn",
    "oxonfair",
)


def setting(*, quick: bool) -> dict[str, str | bool]:
    """Say what a subject was measured with."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    machine = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores,"
        f" {memory:.0f} GB, shared"
    )
    return {
        "quick": quick,
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine,
        "python": platform.python_version(),
    } | {library: _version(library) for library in LIBRARIES}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def load(folder: Path) -> dict[str, Any]:
    """Return the records of all subjects measured so far."""
    path = folder / FILE
    return dict(json.loads(path.read_text())) if path.exists() else {}


def keep(
    folder: Path, subject: str, outcome: Outcome, *, quick: bool
) -> dict[str, Any]:
    """Put a subject's outcome in the place of its last one."""
    records = load(folder) | {
        subject: {"setting": setting(quick=quick)} | outcome.record()
    }
    (folder / FILE).write_text(
        json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )
    return load(folder)
