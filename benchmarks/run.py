"""The one command: measure, keep the results, write the page.

Run by ``make bench``; writes results.json, results.md and pictures of the growth curves
beside this file, and what README and docs say of them; or only the former, into the
folder given. Each subject can be measured alone: the results of the others stay.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import (
    alternatives,
    app,
    claims,
    cluster,
    coverage,
    engine,
    evaluation,
    foresight,
    growth,
    large,
    million,
    outofcore,
    raking,
    results,
    stages,
    wide,
)
from benchmarks.page import show, write_page

# A subject is a module with FULL and QUICK sizes and measure(sizes).
SUBJECTS: Mapping[str, ModuleType] = {
    "engine": engine,
    "stages": stages,
    "alternatives": alternatives,
    "million": million,
    "growth": growth,
    "wide": wide,
    "outofcore": outofcore,
    "large": large,
    "raking": raking,
    "evaluation": evaluation,
    "cluster": cluster,
    "foresight": foresight,
    "coverage": coverage,
    "app": app,
}


def main() -> None:
    """Measure the subjects asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        choices=SUBJECTS,
        action="append",
        help="measure this subject; may be repeated",
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes, fewer repeats"
    )
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)  # before hours of work, not after
    for name in asked.only or SUBJECTS:
        print(f"{name} …", flush=True)
        subject = SUBJECTS[name]
        outcome = subject.measure(subject.QUICK if asked.quick else subject.FULL)
        records = results.keep(asked.out, name, outcome, quick=asked.quick)
        write_page(asked.out, records, list(SUBJECTS))
        if asked.out == HERE and not asked.quick:
            claims.fill(HERE.parent, records)
        for bar in outcome.bars:
            verdict = "met" if bar.met else "MISSED"
            print(
                f"  {verdict}: {bar.name}, {show(bar.measured)} {bar.unit}, bar"
                f" {show(bar.limit)} {bar.why}"
            )


if __name__ == "__main__":
    main()
