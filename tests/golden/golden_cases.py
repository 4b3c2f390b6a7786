"""All golden cases by name: every public function that one of these modules defines is a case.

``python tests/golden/golden_cases.py`` runs them and writes golden.json again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FunctionType

sys.path.insert(0, str(Path(__file__).parents[1]))

import golden_commands
import golden_estimator
import golden_fits
import golden_lazy
import golden_methods
import golden_metrics
import golden_options
import golden_relabelling
import golden_storage
from golden_file import GOLDEN, as_json, record

MODULES = (
    *(golden_fits, golden_lazy, golden_options, golden_relabelling, golden_storage),
    *(golden_methods, golden_metrics, golden_estimator, golden_commands),
)
CASES = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if isinstance(function, FunctionType) and function.__module__ == module.__name__ and not name.startswith("_")
}

if __name__ == "__main__":
    from conftest import not_estimated
    from fairmaxent.fit import pipeline

    pipeline.estimated_by_default = not_estimated  # as in all tests that are not about it
    recorded = {name: {key: record(result) for key, result in case().items()} for name, case in CASES.items()}
    GOLDEN.write_text(as_json(recorded), encoding="utf-8")
    print(f"{len(recorded)} cases written to {GOLDEN}")
