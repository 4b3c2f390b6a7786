"""Fairness against utility: models trained on what each method gives, judged on real people it never saw.

Writes frontier.json, frontier.md and frontier.svg beside this file, or into the folder given. What is there already is
kept: a run measures only what is missing, and what ``--again`` names anew.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import results
from benchmarks.frontier_page import write_page
from benchmarks.judging import judge_splits
from benchmarks.people import PROTECTED
from benchmarks.process import JobFailedError, fresh
from benchmarks.treatments import TREATMENTS

FILE = "frontier.json"

Cell = dict[str, Any]  # one treatment of one split: data, method, split, code, and what was measured or why not


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int | None  # of each table; None: all
    splits: int
    iterations: int  # of a method that trains many models
    seconds: float  # on the clock, that one method may take for all splits of one table


FULL = Sizes(rows=None, splits=5, iterations=20, seconds=3600)
QUICK = Sizes(rows=1000, splits=2, iterations=3, seconds=300)


def load(folder: Path, sizes: Sizes) -> list[Cell]:
    """Return the cells measured so far, which must be of these sizes."""
    path = folder / FILE
    if not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["sizes"] != asdict(sizes):
        raise SystemExit(f"{path} holds results of other sizes, {record['sizes']}; name another folder with --out")
    return list(record["cells"])


def keep(folder: Path, cells: Sequence[Cell], sizes: Sizes) -> dict[str, Any]:
    """Write all cells of known methods, one a line, by table, method and split; return the whole record."""
    tables, methods = list(PROTECTED), list(TREATMENTS)
    known = [cell for cell in cells if cell["data"] in tables and cell["method"] in methods]
    known.sort(key=lambda cell: (tables.index(cell["data"]), methods.index(cell["method"]), cell["split"]))
    record = {"setting": results.setting(quick=sizes == QUICK), "sizes": asdict(sizes), "cells": known}
    lines = ",\n".join(json.dumps(cell, ensure_ascii=False, allow_nan=False) for cell in known)
    head = json.dumps(record | {"cells": []}, indent=1, ensure_ascii=False).removesuffix("[]\n}")
    (folder / FILE).write_text(f"{head}[\n{lines}\n]}}\n", encoding="utf-8")
    return record


def measure(tables: Sequence[str], methods: Sequence[str], done: Sequence[Cell], sizes: Sizes) -> Iterator[list[Cell]]:
    """Measure what is not done, each method on each table in a process of its own."""
    from fairmaxent.experiments.cells import made_with

    there = {(cell["data"], cell["method"], cell["split"]) for cell in done}
    for table in tables:
        for method in methods:
            splits = [number for number in range(sizes.splits) if (table, method, number) not in there]
            if not splits:
                continue
            print(f"{table}: {method} …", flush=True)
            mark = {"data": table, "method": method, "code": made_with()["fingerprint"]}
            try:
                job = (table, method, splits, sizes.rows, sizes.iterations)
                yield [mark | cell for cell in fresh(judge_splits, *job, seconds=sizes.seconds)]
            except JobFailedError as problem:
                yield [mark | {"split": number, "failed": str(problem)} for number in splits]


def main() -> None:
    """Measure, keep and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PROTECTED, action="append", help="this table; may be repeated")
    parser.add_argument("--methods", choices=TREATMENTS, nargs="+", default=list(TREATMENTS), metavar="METHOD")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--quick", action="store_true", help="fewer rows and splits")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    sizes, tables = QUICK if asked.quick else FULL, asked.only or list(PROTECTED)
    cells = load(asked.out, sizes)
    if asked.again:
        cells = [cell for cell in cells if not (cell["data"] in tables and cell["method"] in asked.methods)]
    # What failed may have been for want of a library or of time.
    cells = [cell for cell in cells if "failed" not in cell]
    for found in measure(tables, asked.methods, cells, sizes):
        cells += found
        keep(asked.out, cells, sizes)
    write_page(asked.out, keep(asked.out, cells, sizes))


if __name__ == "__main__":
    main()
