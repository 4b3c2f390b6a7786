"""Levels that rest on a few rows are named if raking raises them, and only then."""

from __future__ import annotations

import polars as pl
import pytest

import fairmaxent

SURVEY = pl.DataFrame({"sex": ["F"] * 100 + ["M"] * 97 + ["X"] * 3})


@pytest.mark.parametrize(("share", "warned"), [(0.18, True), (0.016, True), (0.015, False), (0.01, False)])
def test_three_people_are_named_if_their_share_is_raised(share, warned):
    margins = {"sex": {"F": 0.5, "M": 0.5 - share, "X": share}}
    warnings = fairmaxent.rake(SURVEY, margins).certificate.warnings
    assert any("sex = X" in warning and "rests on 3 rows" in warning for warning in warnings) is warned
    assert len(warnings) == warned


def test_the_factor_is_the_one_of_the_shares():
    certificate = fairmaxent.rake(SURVEY, {"sex": {"F": 0.5, "M": 0.32, "X": 0.18}}).certificate
    assert certificate.warnings == (
        "sex = X: 18.0% of the total weight rests on 3 rows, 12 times as much as before. To avoid this, merge the "
        "level with another one, or limit how much weights may change with bounds.",
    )
    assert certificate.warnings[0] in str(certificate)


def test_only_the_worst_are_named_one_by_one():
    frame = pl.DataFrame({"town": [f"t{k}" for k in range(6) for _ in range(k + 1)] + ["large"] * 500})
    wanted = {f"t{k}": 0.1 for k in range(6)} | {"large": 0.4}
    warnings = fairmaxent.rake(frame, {"town": wanted}).certificate.warnings
    assert [warning.split(":")[0] for warning in warnings[:3]] == ["town = t0", "town = t1", "town = t2"]
    assert "a single row" in warnings[0]
    assert warnings[3:] == (
        "3 more levels were raised beyond the same line: fewer than 30 effective rows, or 20 times as much.",
    )
