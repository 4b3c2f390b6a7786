"""Wishes at the edge of what floating point can hold: one answer, or an error of the
library's own.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairmaxent import FairMaxEntError, debias
from fairmaxent.errors import RateError, TargetError

DIAGONAL = pd.DataFrame({"y": ["a", "b", "d"] * 100, "z": ["p", "q", "s"] * 100})


def table_of(fit):
    return fit.distribution.root_table


def test_a_level_removed_from_a_table_without_overlap():
    fit = debias(
        DIAGONAL, "y", "z", target={"z": {"p": 0, "q": 0.5, "s": 0.5}}, estimate=None
    )
    np.testing.assert_allclose(table_of(fit).sum(axis=0), [0, 0.5, 0.5], atol=1e-12)
    rates = table_of(fit)[:, 1:] / 0.5
    np.testing.assert_allclose(rates[:, 0], rates[:, 1], atol=1e-9)


@pytest.mark.parametrize("rate", [0.065, 0.8])
def test_a_removed_level_of_intersections(rate):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            name: rng.choice([*levels], 90)
            for name, levels in {"y": "ab", "z": "pqs", "w": "uv"}.items()
        }
    )
    target = {"z": {"p": 0.6, "q": 0.4, "s": 0.0}}
    fit = debias(
        frame,
        "y",
        ["z", "w"],
        groups="joint",
        statistical_rate=rate,
        target=target,
        estimate=None,
    )
    table = table_of(fit)
    np.testing.assert_allclose(table.sum(axis=(0, 2)), [0.6, 0.4, 0.0], atol=1e-9)
    rates = table[:, :2] / table[:, :2].sum(axis=0)
    smallest, largest = rates.min(axis=(1, 2)), rates.max(axis=(1, 2))
    assert (smallest >= rate * largest * (1 - 1e-9)).all()


@pytest.mark.parametrize("option", ["statistical_rate", "representation_rate"])
@pytest.mark.parametrize("rate", [1e-9, 1e-300])
def test_a_rate_or_a_share_of_next_to_nothing_is_refused(option, rate):
    with pytest.raises(RateError, match="next to nothing"):
        debias(DIAGONAL, "y", "z", **{option: rate})
    with pytest.raises(TargetError, match="the smallest is 1e-08"):
        debias(DIAGONAL, "y", "z", target={"z": {"p": 1e-12, "q": 0.5, "s": 0.5}})


@pytest.mark.some(5)
@pytest.mark.parametrize("seed", range(40))
def test_any_wishes_have_one_answer_or_an_own_error(seed):
    rng = np.random.default_rng(seed)
    rows, outcomes, groups = (
        int(number)
        for number in (rng.integers(3, 80), rng.integers(2, 5), rng.integers(2, 5))
    )
    y = rng.integers(0, outcomes, rows)
    z = np.where(
        rng.random(rows) < rng.choice([0, 0.5, 0.95, 1]),
        y % groups,
        rng.integers(0, groups, rows),
    )
    frame = pd.DataFrame(
        {"y": [f"y{level}" for level in y], "z": [f"z{level}" for level in z]}
    )
    frame["w"] = rng.choice(list("uvw"), rows)
    rates = [None, 1.0, 0.8, float(10 ** rng.uniform(-6, 0))]
    column = ["y", "z"][int(rng.integers(2))]
    levels = sorted(set(frame[column]))
    shares = rng.dirichlet(np.full(len(levels), 0.1)) * (rng.random(len(levels)) < 0.7)
    options = {
        "statistical_rate": rates[int(rng.integers(4))],
        "representation_rate": rates[int(rng.integers(4))],
        "groups": ["each", "joint"][int(rng.integers(2))],
        "base_share": float(rng.choice([0, 0.2, 1])),
        "target": (
            {column: dict(zip(levels, shares / shares.sum(), strict=True))}
            if shares.any()
            else None
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            fit = debias(frame, "y", ["z", "w"], estimate=None, **options)
        except FairMaxEntError:
            return
    assert np.isfinite(table_of(fit)).all()
    if options["target"]:
        axis = (1, 2) if column == "y" else (0, 2)
        np.testing.assert_allclose(
            table_of(fit).sum(axis=axis), shares / shares.sum(), atol=1e-8
        )
