"""Run all golden cases and write golden.json again: ``python tests/golden/record.py``."""

from __future__ import annotations

from golden_cases import CASES
from golden_file import GOLDEN, as_json, record

if __name__ == "__main__":
    recorded = {name: {key: record(result) for key, result in case().items()} for name, case in CASES.items()}
    GOLDEN.write_text(as_json(recorded), encoding="utf-8")
    print(f"{len(recorded)} cases written to {GOLDEN}")
