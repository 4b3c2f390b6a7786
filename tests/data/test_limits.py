"""Limits: what is too large is refused at once, with what to do; what is merely large
is answered.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmaxent import Domain, InputError, debias
from fairmaxent.data import limits
from fairmaxent.data.levels import MAX_LEVELS
from fairmaxent.data.limits import max_memory
from fairmaxent.data.roles import LARGEST_ROOT
from fairmaxent.engines.lazy_frame import MOST_VALUES
from fairmaxent.errors import LimitError
from fairmaxent.fairness.rates import LEAST_RATE
from fairmaxent.fit.top_up import LARGEST_TOP_UP
from fairmaxent.fit.wanted_shares import LEAST_SHARE
from fairmaxent.maxent.features import attribute_features, cell_features
from fairmaxent.maxent.solvers import Newton


def wide(columns, rows=20):
    """A table of many columns: y, z, and numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((rows, columns - 2))).rename(
        columns=lambda number: f"x{number}"
    )
    return frame.assign(y=["a", "b"] * (rows // 2), z=(["p", "q", "q"] * rows)[:rows])


def many_levels(levels, *, twice=False):
    rng = np.random.default_rng(0)
    rows = 2 * levels
    frame = pd.DataFrame({"c": [f"v{row % levels}" for row in range(rows)]})
    frame["y"], frame["z"] = rng.choice(["a", "b"], rows), rng.choice(["p", "q"], rows)
    return (
        frame.assign(d=[f"w{7 * row % levels}" for row in range(rows)])
        if twice
        else frame
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "wrap", [pd.DataFrame, pl.DataFrame, lambda frame: pl.DataFrame(frame).lazy()]
)
def test_too_many_columns_are_refused_at_once(wrap):
    with pytest.raises(LimitError, match=r"5,000 columns.*limit is 2,000; drop"):
        debias(wrap(wide(5_000)), "y", "z")


@pytest.mark.more
def test_many_levels_take_little_memory():
    frame = many_levels(20_000)
    with max_memory("300MB"):
        fit = debias(
            frame,
            "y",
            "z",
            domain=Domain.infer(frame, max_levels=20_000),
            estimate=None,
        )
    assert fit.domain.attribute("c").size == 20_000
    rates = fit.certificate.achieved["statistical_rate"]
    assert rates["z"] == pytest.approx(1, abs=1e-9)


def test_tables_of_two_columns_are_estimated_first(monkeypatch):
    frame = many_levels(3_000, twice=True)
    domain = Domain.infer(frame, max_levels=3_000)
    with (
        max_memory("100MB"),
        pytest.raises(
            LimitError, match=r"depend on each other.*base='product', or raise"
        ),
    ):
        debias(frame, "y", "z", domain=domain)
    debias(frame, "y", "z", domain=domain, base="product", estimate=None)
    monkeypatch.setattr("fairmaxent.maxent.priors.learned_tree.MOST_CELLS", 1_000_000)
    with pytest.raises(LimitError, match="limit is 1,000,000; merge levels"):
        debias(frame, "y", "z", domain=domain)


def test_a_hessian_is_estimated_first():
    frame = many_levels(500)
    fit = debias(
        frame, "y", "z", domain=Domain.infer(frame, max_levels=500), estimate=None
    )
    with max_memory("1MB"), pytest.raises(LimitError, match="Hessian"):
        Newton().solve(fit.optimum.dual)


def test_sparse_features_are_the_dense_ones():
    """Twin: the features of a block as a matrix with one row per level."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {name: rng.integers(0, 4, 200).astype(str) for name in "yzab"}
    ).assign(n=rng.random(200))
    fit = debias(frame, "y", "z", estimate=None)
    blocks, levels = fit.roles.blocks, fit.target
    scores = fit.domain.attribute("n").scores()
    moments = [None, None, None, None, scores]
    for features in (
        cell_features(blocks, moments, levels),
        attribute_features(blocks, moments, levels),
    ):
        matrix = np.zeros((blocks.width, features.count))
        lengths = np.diff(np.append(features.starts, len(features.levels)))
        matrix[features.levels, np.repeat(np.arange(features.count), lengths)] = (
            features.values
        )
        for part, size in list(zip(blocks.slices, blocks.levels, strict=True))[1:3]:
            inside = matrix[part][:, np.abs(matrix[part]).sum(axis=0) > 0]
            expected = np.delete(np.eye(size), np.argmax(levels[part]), axis=1)
            np.testing.assert_array_equal(inside, expected)
        np.testing.assert_allclose(
            features.mean(levels), levels @ matrix, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize(
    "amount",
    ["", "GB", "-1GB", "0", "1XB", 0, -5, float("nan"), float("inf"), "nan", None],
)
def test_strange_amounts_of_memory_are_refused(amount):
    with pytest.raises(InputError, match="must be an amount"), max_memory(amount):
        pass


def test_the_limit_of_memory_is_that_of_the_machine_unless_it_is_set():
    usual = limits.memory_limit()
    assert usual > 1e8
    with max_memory("1GiB"):
        assert limits.memory_limit() == 2**30
        with max_memory(5e8):
            assert limits.memory_limit() == 5e8
        assert limits.memory_limit() == 2**30
    assert limits.memory_limit() == usual


def test_the_page_of_limits_has_the_limits():
    page = (Path(__file__).parents[2] / "docs/reference/limits.md").read_text(
        encoding="utf-8"
    )
    rows = [line for line in page.splitlines() if line.startswith("|")]
    names = [
        "MOST_COLUMNS",
        "MOST_FILE_COLUMNS",
        "MOST_CELLS",
        "LONGEST_CELL",
        "FREELY_INFLATED",
        "MOST_INFLATION",
    ]
    for number in (
        *(getattr(limits, name) for name in names),
        LARGEST_ROOT,
        MAX_LEVELS,
        LARGEST_TOP_UP,
        MOST_VALUES,
    ):
        assert (
            sum(f" {number:,} " in f"{row} ".replace(";", " ") for row in rows) == 1
        ), number
    assert sum("`1e-6`" in row for row in rows) == (LEAST_RATE == 1e-6)
    assert sum("`1e-8`" in row for row in rows) == (LEAST_SHARE == 1e-8)
