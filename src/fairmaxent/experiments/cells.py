"""One cell: run it, store its result in a file, and look it up again."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fairmaxent
from fairmaxent.experiments import data as sets
from fairmaxent.experiments.evaluate import measure_classifiers, measure_exactly, measure_rows
from fairmaxent.experiments.methods import learn
from fairmaxent.experiments.plan import RAW, ROWS, Cell
from fairmaxent.files.write import write_whole

Record = dict[str, Any]


def run_cell(cell: Cell) -> Record:
    """Learn from the fold's training rows, then draw, train and measure once for each repetition."""
    data = sets.load(cell.dataset)
    train, test = data.fold(cell.fold)
    began = time.process_time()
    source = learn(cell.method, train, data, cell.protected)
    learned = time.process_time()
    measured = []
    seconds = 0.0
    for repetition in range(cell.repetitions):
        start = time.process_time()
        # "Raw" means the training rows themselves, not a draw from them: in the paper their divergence is 0.
        rows = train if cell.method == RAW else source.sample(ROWS, random_state=_seed(cell, repetition), iid=True)
        seconds += time.process_time() - start
        measured.append(
            measure_rows(rows, data, cell.protected) | measure_classifiers(rows, test, data, cell.protected)
        )
    return {
        "made_with": made_with(),
        "repetitions": measured,
        "exact": measure_exactly(source.distribution, data),
        "seconds": learned - began + seconds / cell.repetitions,  # CPU: learn, and draw once
    }


def save(cell: Cell, record: Record, folder: Path) -> None:
    """Write the file of a cell completely or not at all."""
    write_whole(folder / f"{cell.name}.json", json.dumps(record).encode(), readable=True)


def find(cell: Cell, folder: Path) -> Record | None:
    """Return the stored result of a cell; None if there is none, or it is damaged or from other versions."""
    try:
        record: Record = json.loads((folder / f"{cell.name}.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("made_with") == made_with() else None


@lru_cache(maxsize=1)
def made_with() -> dict[str, str]:
    """The versions that a result depends on, with a fingerprint of this package's code and shipped data."""
    packages = ("fairmaxent", "numpy", "pandas", "scipy", "scikit-learn")
    versions = {"python": platform.python_version()} | {package: version(package) for package in packages}
    fingerprint = hashlib.sha256()
    home = Path(fairmaxent.__file__).parent
    for path in sorted(home.rglob("*")):
        if path.suffix in (".py", ".xz") and path.relative_to(home).parts[0] not in ("cli", "report"):
            fingerprint.update(path.read_bytes())
    return versions | {"fingerprint": fingerprint.hexdigest()[:12]}


def _seed(cell: Cell, repetition: int) -> int:
    """A separate seed for each repetition, independent of what ran before."""
    return int.from_bytes(hashlib.sha256(f"{cell.name}/{repetition}".encode()).digest()[:4], "big")
