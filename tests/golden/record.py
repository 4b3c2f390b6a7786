"""Run all golden cases and write golden.json again: ``python tests/golden/record.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from fairmaxent.fit import pipeline
from golden_cases import CASES
from golden_file import GOLDEN, as_json, record

sys.path.insert(0, str(Path(__file__).parents[1]))

from conftest import not_estimated

if __name__ == "__main__":
    pipeline.estimated_by_default = not_estimated  # as in all tests that are not about it
    recorded = {name: {key: record(result) for key, result in case().items()} for name, case in CASES.items()}
    GOLDEN.write_text(as_json(recorded), encoding="utf-8")
    print(f"{len(recorded)} cases written to {GOLDEN}")
