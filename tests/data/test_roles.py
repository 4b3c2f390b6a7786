"""Outcome, protected columns and strata: which columns can be compared group by group."""

import polars as pl
import pytest

from fairmaxent import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.errors import LevelError


def test_numbers_that_cannot_be_told_apart_are_no_groups():
    frame = pl.DataFrame({"hired": ["no", "yes"] * 3, "group": [2**60, 2**60 + 1, 2**61] * 2})
    with pytest.raises(LevelError, match=r"cannot be told apart; read it as categorical with Domain.infer\(kinds=…\)"):
        Roles.of(Domain.infer(frame), "hired", ["group"])
    assert Roles.of(Domain.infer(frame, kinds={"group": "categorical"}), "hired", ["group"]).blocks.shape(0) == (2, 3)
