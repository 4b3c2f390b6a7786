"""identifiers.py: which columns name a row instead of describing it."""

import pandas as pd
import pytest

from fairmaxent.data.domain import Domain
from fairmaxent.data.identifiers import looks_like_identifier

ROWS = 200


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([f"p{row}" for row in range(ROWS)], True),
        (list(range(ROWS)), True),
        ([f"p{row % 181}" for row in range(ROWS)], True),
        ([f"p{row % 180}" for row in range(ROWS)], False),  # 90 % of the rows, and not more
        ([row / 7 for row in range(ROWS)], False),  # a measurement
        ([f"p{row % 60}" for row in range(60)], False),  # few values
        ([*(f"p{row}" for row in range(100)), *[None] * 100], True),  # all that have one
    ],
)
def test_identifiers_differ_in_nearly_every_row_that_has_a_value(values, expected):
    frame = pd.DataFrame({"x": values})
    domain = Domain.infer(frame)
    assert looks_like_identifier(domain.attributes[0], int(frame["x"].notna().sum())) is expected
    assert any("identifier" in note for note in domain.notes) is expected
