"""Golden cases: small calls of all public parts give the rows and numbers that were
recorded in golden.json.

Rows and other texts must be the same, and floats equal except for rounding. A failure
means that the same call with the same seed no longer gives the same result. If you
meant to change it, record the results again and check the diff, which has one line for
each result that changed:

    python tests/golden/golden_cases.py

The results were recorded with the versions in constraints.txt.
"""

import json

import pytest

from golden_cases import CASES, GOLDEN, differences, record

pytest.importorskip(
    "pyarrow", reason="pyarrow, which turns polars into pandas frames, is not installed"
)

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))
SHOWN = 20  # differences shown for each case


def test_the_same_cases():
    assert sorted(RECORDED) == sorted(CASES)


# Each tries models out dozens of times.
SLOW = (
    "cli_equal_probabilities",
    "equal_probabilities_three_outcomes",
    "estimate_rows",
    "save_and_load_relabelled",
)


@pytest.mark.some(8)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
        for name in CASES
    ],
)
def test_golden(name):
    current = {key: record(result) for key, result in CASES[name]().items()}
    different = list(differences(RECORDED[name], current, name))
    if different:
        pytest.fail(
            f"{len(different)} difference(s):\n" + "\n".join(different[:SHOWN]),
            pytrace=False,
        )
