"""Fairness against utility: models trained on what each method gives, judged on real
people it never saw.

Two parts: ``models`` that are made to decide equally, beside what people use for that,
and ``tables`` that any model may learn from. Writes frontier.json, frontier.md and
frontier.svg beside this file, or into the folder given. What is there already is kept:
a run measures only what is missing, and what ``--again`` names anew.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import results
from benchmarks.fair_models import METHODS, WISHES, answers, judge_methods
from benchmarks.field_tables import scenarios
from benchmarks.frontier_page import write_page
from benchmarks.judging import judge_splits
from benchmarks.learners import LEARNERS
from benchmarks.people import ACS, TABLES
from benchmarks.process import JobFailedError, fresh
from benchmarks.treatments import TREATMENTS

FILE = "frontier.json"
_KEY = "data", "learner", "wish", "split", "method"  # of a cell of models
_NAMED = "learner", "data", "method"

# one treatment of one split: data, method, split, code, and what was measured or why
# not
Cell = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int | None  # of each table; None: all
    splits: int
    iterations: int  # of a method that trains many models
    seconds: float  # on the clock, that one method may take for all splits of one table


@dataclass(frozen=True)
class ModelSizes:
    """How much is measured of fair models."""

    learn: int  # people of each table to learn from, at most
    splits: int


FULL = Sizes(rows=None, splits=5, iterations=20, seconds=3600)
QUICK = Sizes(rows=1000, splits=2, iterations=3, seconds=300)


def load(
    folder: Path, sizes: Sizes, models: ModelSizes
) -> tuple[list[Cell], list[Cell], dict[str, Any]]:
    """Return the cells of tables and of models measured so far, which must be of these
    sizes, and all that is kept.
    """
    path = folder / FILE
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = record.get("models", {})
    if record and (
        record["sizes"],
        known.get("sizes", {}).get("learn", models.learn),
    ) != (asdict(sizes), models.learn):
        raise SystemExit(
            f"{path} holds results of other sizes; name another folder with --out"
        )
    return list(record.get("cells", ())), list(known.get("cells", ())), record


def keep(
    folder: Path, cells: Sequence[Cell], old: dict[str, Any], sizes: Sizes
) -> dict[str, Any]:
    """Write all cells of known methods, one a line, by table, method and split; return
    the whole record.

    ``old`` is the record so far; the setting is that of the part that was measured
    last.
    """
    tables, methods = list(TABLES), list(TREATMENTS)
    known = [
        cell for cell in cells if cell["data"] in tables and cell["method"] in methods
    ]
    known.sort(
        key=lambda cell: (
            tables.index(cell["data"]),
            methods.index(cell["method"]),
            cell["split"],
        )
    )
    setting = results.setting(quick=sizes == QUICK)
    record = {
        "setting": old.get("setting", setting),
        "sizes": asdict(sizes),
        "models": old["models"],
        "cells": known,
    }
    heads = json.dumps(
        record | {"models": record["models"] | {"cells": []}, "cells": []},
        indent=1,
        ensure_ascii=False,
    )
    between = iter((record["models"]["cells"], known))
    text = re.sub(
        r'"cells": \[\]', lambda _: f'"cells": [\n{cell_lines(next(between))}\n]', heads
    )
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    return record


def cell_lines(cells: Sequence[Cell]) -> str:
    """Cells in JSON, one a line."""
    return ",\n".join(
        json.dumps(cell, ensure_ascii=False, allow_nan=False) for cell in cells
    )


def measure_models(
    tables: Sequence[str],
    done: Sequence[Cell],
    sizes: ModelSizes,
    learners: Sequence[str],
    methods: Sequence[str],
    wishes: Sequence[str] = tuple(WISHES),
    processes: int = 1,
) -> Iterator[list[Cell]]:
    """Measure what is not done, each table and classifier in a process of its own."""
    from reproduction.cells import made_with

    there, code = (
        {tuple(cell[name] for name in _KEY) for cell in done},
        {"code": made_with()["fingerprint"]},
    )

    def run(mark: Cell) -> list[Cell]:
        jobs = [
            job
            for split, wish, method in product(range(sizes.splits), wishes, METHODS)
            if method in methods
            and answers(method, WISHES[wish])
            and (*mark.values(), *(job := (wish, split, method))) not in there
        ]
        if not jobs:
            return []
        print(*mark.values(), len(jobs), flush=True)
        try:
            return [
                mark | code | cell
                for cell in fresh(judge_methods, *mark.values(), sizes.learn, jobs)
            ]
        except JobFailedError as problem:
            return [
                mark | dict(zip(_KEY[2:], job, strict=True)) | {"failed": str(problem)}
                for job in jobs
            ]

    with ThreadPoolExecutor(processes) as pool:
        named = (
            dict(zip(_KEY, place, strict=False))
            for place in product(readable(tables), learners)
        )
        yield from pool.map(run, named)


def readable(tables: Sequence[str]) -> list[str]:
    """The tables that are here; of the others, say why not."""
    lacks = {
        name: scenarios()[name].missing() for name in tables if name in scenarios()
    }
    for name, why in lacks.items():
        if why is not None:
            print(f"{name} is left out: {why}")
    return [name for name in tables if lacks.get(name) is None]


def measure(
    tables: Sequence[str], methods: Sequence[str], done: Sequence[Cell], sizes: Sizes
) -> Iterator[list[Cell]]:
    """Measure what is not done, each method on each table in a process of its own."""
    from reproduction.cells import made_with

    there = {(cell["data"], cell["method"], cell["split"]) for cell in done}
    for table in tables:
        for method in methods:
            splits = [
                number
                for number in range(sizes.splits)
                if (table, method, number) not in there
            ]
            if not splits:
                continue
            print(f"{table}: {method} …", flush=True)
            mark = {"data": table, "method": method, "code": made_with()["fingerprint"]}
            try:
                job = (table, method, splits, sizes.rows, sizes.iterations)
                yield [
                    mark | cell
                    for cell in fresh(judge_splits, *job, seconds=sizes.seconds)
                ]
            except JobFailedError as problem:
                yield [
                    mark | {"split": number, "failed": str(problem)}
                    for number in splits
                ]


def main() -> None:
    """Measure, keep and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--part", choices=("models", "tables"), action="append", help="only this part"
    )
    parser.add_argument(
        "--only",
        choices=(*TABLES, ACS),
        action="append",
        help="this table; may be repeated",
    )
    parser.add_argument(
        "--methods", nargs="+", default=[*METHODS, *TREATMENTS], metavar="METHOD"
    )
    parser.add_argument(
        "--learners",
        choices=LEARNERS,
        nargs="+",
        default=list(LEARNERS),
        metavar="CLASSIFIER",
    )
    parser.add_argument(
        "--again", action="store_true", help="also what is there already"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows and splits")
    parser.add_argument(
        "--learn", type=int, default=6000, help="people to learn from, of models"
    )
    parser.add_argument("--splits", type=int, default=5, help="splits of models")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    parts, sizes = asked.part or ["models", "tables"], QUICK if asked.quick else FULL
    model_sizes = ModelSizes(
        1000 if asked.quick else asked.learn, 2 if asked.quick else asked.splits
    )
    tables = asked.only or [*TABLES, ACS]
    cells, models, old = load(asked.out, sizes, model_sizes)
    # What failed may have been for want of a library or of time.
    cells, models = (
        [cell for cell in part if "failed" not in cell] for part in (cells, models)
    )
    if asked.again and "tables" in parts:
        cells = [
            cell
            for cell in cells
            if not (cell["data"] in tables and cell["method"] in asked.methods)
        ]
    if asked.again and "models" in parts:
        named = asked.learners, tables, asked.methods
        models = [
            cell
            for cell in models
            if any(cell[key] not in own for key, own in zip(_NAMED, named, strict=True))
        ]
    old.setdefault(
        "models",
        {"setting": results.setting(quick=asked.quick), "sizes": asdict(model_sizes)},
    )
    old["models"]["cells"] = models
    if "models" in parts:
        old["models"] |= {
            "setting": results.setting(quick=asked.quick),
            "sizes": asdict(model_sizes),
        }
        for found in measure_models(
            tables, models, model_sizes, asked.learners, asked.methods
        ):
            models += found
            keep(asked.out, cells, old, sizes)
    if "tables" in parts:
        methods = [name for name in TREATMENTS if name in asked.methods]
        for found in measure(
            [name for name in tables if name != ACS], methods, cells, sizes
        ):
            cells += found
            old["setting"] = results.setting(quick=asked.quick)
            keep(asked.out, cells, old, sizes)
    write_page(asked.out, keep(asked.out, cells, old, sizes))


if __name__ == "__main__":
    main()
