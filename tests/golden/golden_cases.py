"""All golden cases by name: every public function that one of these modules defines is a case."""

from __future__ import annotations

from types import FunctionType

import golden_commands
import golden_estimator
import golden_fits
import golden_lazy
import golden_methods
import golden_metrics
import golden_options
import golden_relabelling
import golden_storage

MODULES = (
    *(golden_fits, golden_lazy, golden_options, golden_relabelling, golden_storage),
    *(golden_methods, golden_metrics, golden_estimator, golden_commands),
)


def cases_of(module):
    """Return a module's cases by name, in the order they are written."""
    functions = {name: value for name, value in vars(module).items() if isinstance(value, FunctionType)}
    return {
        name: function
        for name, function in functions.items()
        if function.__module__ == module.__name__ and not name.startswith("_")
    }


CASES = {name: function for module in MODULES for name, function in cases_of(module).items()}
