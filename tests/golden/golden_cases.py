"""All golden cases by name: every public function that one of these modules defines is
a case.

``python tests/golden/golden_cases.py`` runs them and writes golden.json again.
"""

import hashlib
import json
import math
import sys
from pathlib import Path
from types import FunctionType

for folder in Path(__file__).parents[1:3]:  # the tests, and the repository
    sys.path.insert(0, str(folder))

import numpy as np

import golden_commands
import golden_fits
import golden_methods
import golden_options

MODULES = (golden_fits, golden_options, golden_methods, golden_commands)
CASES = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if isinstance(function, FunctionType)
    and function.__module__ == module.__name__
    and not name.startswith("_")
}

GOLDEN = Path(__file__).with_name("golden.json")
RTOL, ATOL = 1e-9, 1e-11
SPREAD = 40  # evenly spaced values of an array, from which those to keep are taken
VALUES = 6  # values kept from an array
LINES = 2  # lines kept from a text
HEX_DIGITS = 16  # kept from a text's SHA-256
DIGITS = 12  # significant digits kept from a float, more than RTOL needs


def record(result):
    """Return what is kept from a result: a text's digest and first lines, some values
    of an array, or plain values.
    """
    if isinstance(result, str):
        digest = hashlib.sha256(result.encode()).hexdigest()[:HEX_DIGITS]
        return {
            "kind": "text",
            "sha256": digest,
            "lines": result.count("\n"),
            "head": result.splitlines()[:LINES],
        }
    if isinstance(result, np.ndarray):
        values = result.ravel()
        kept = {"sum": math.fsum(values), "values": values[kept_positions(len(values))]}
        return {"kind": "array", "shape": list(result.shape)} | plain(kept)
    return {"kind": "plain", "value": plain(result)}


def kept_positions(count):
    """Return the positions of the values kept from an array: at most six, evenly
    spaced.
    """
    spread = np.linspace(0, count - 1, min(count, SPREAD)).round().astype(int)
    return spread[:: math.ceil(len(spread) / VALUES)]


def plain(value):
    """Return values as JSON gives them back, floats shortened; a float that is not
    finite becomes a text.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else repr(value)
    return value


def as_json(recorded):
    """Return recorded cases as JSON with one line for each result, so that a change is
    one line of a diff.
    """
    blocks = []
    for name, results in recorded.items():
        lines = (
            f"  {json.dumps(key)}: {json.dumps(kept, ensure_ascii=False)}"
            for key, kept in results.items()
        )
        blocks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def differences(recorded, current, where):
    """Describe every difference between two trees of plain values; floats may differ by
    rounding.
    """
    if isinstance(recorded, dict) and isinstance(current, dict):
        for key in [*recorded, *(key for key in current if key not in recorded)]:
            if key not in current:
                yield f"{where}, {key}: was recorded, but is missing now"
            elif key not in recorded:
                yield f"{where}, {key}: was not recorded, but is there now"
            else:
                yield from differences(recorded[key], current[key], f"{where}, {key}")
    elif (
        isinstance(recorded, list)
        and isinstance(current, list)
        and len(recorded) == len(current)
    ):
        for i, (before, after) in enumerate(zip(recorded, current, strict=True)):
            yield from differences(before, after, f"{where}[{i}]")
    elif not same(recorded, current):
        yield f"{where}: was {recorded!r}, is {current!r}"


def same(recorded, current):
    """Say whether two values are equal, or are floats that differ by no more than
    rounding.
    """
    if type(recorded) is not type(current):
        return False
    if isinstance(recorded, float):
        return math.isclose(
            recorded, current, rel_tol=0.0, abs_tol=ATOL + RTOL * abs(recorded)
        )
    return recorded == current


if __name__ == "__main__":
    recorded = {
        name: {key: record(result) for key, result in case().items()}
        for name, case in CASES.items()
    }
    GOLDEN.write_text(as_json(recorded), encoding="utf-8")
    print(f"{len(recorded)} cases written to {GOLDEN}")
