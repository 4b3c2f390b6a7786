"""Declared edges of dates and times: values that are drawn lie in their bins, and models can be loaded."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from fairmaxent import Domain, InputError, debias, load

ROWS = 200
NOON = dt.datetime(2020, 1, 1, 12, 0, 0, 750_000)


def table(moments):
    rng = np.random.default_rng(0)
    chosen = [moments[at] for at in rng.integers(0, len(moments), ROWS)]
    return pl.DataFrame({"y": rng.choice(["no", "yes"], ROWS), "z": rng.choice(["p", "q"], ROWS), "x": chosen})


@pytest.mark.parametrize(
    "edges",
    [
        [NOON, NOON + dt.timedelta(days=1, microseconds=7), NOON + dt.timedelta(days=3)],
        [NOON, NOON + dt.timedelta(microseconds=1), NOON + dt.timedelta(seconds=9)],
        [moment.replace(tzinfo=dt.UTC) for moment in (NOON, NOON + dt.timedelta(seconds=40), dt.datetime.max)],
    ],
)
def test_drawn_moments_lie_in_their_bins_and_models_load(edges, tmp_path):
    frame = table([edges[0], edges[1], edges[1] + dt.timedelta(microseconds=5)])
    declared = Domain.declare(levels={"y": ["no", "yes"], "z": ["p", "q"]}, edges={"x": edges})
    fit = debias(frame, "y", "z", domain=declared, estimate=None, random_state=0)
    attribute = fit.domain.attribute("x")
    for level, (start, stop) in enumerate(zip(attribute.level_starts[:-1], attribute.level_starts[1:], strict=True)):
        inside = attribute.values.to_list()[start:stop]
        assert len(set(inside)) == len(inside) > 0
        assert all(edges[level] <= moment < edges[level + 1] for moment in inside)
    fit.save(tmp_path / "model.fme")
    assert load(tmp_path / "model.fme").certificate.achieved == fit.certificate.achieved


def test_edges_in_nanoseconds_are_moments():
    edges = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[ns]")
    declared = Domain.declare(edges={"x": list(edges)}, levels={"y": ["no", "yes"], "z": ["p", "q"]})
    assert declared.edges["x"] == [dt.datetime(year, 1, 1) for year in (2020, 2021, 2022)]
    frame = table([dt.datetime(2020, 5, 1), dt.datetime(2021, 5, 1)])
    fit = debias(frame, "y", "z", domain=declared, estimate=None, random_state=0)
    levels = fit.domain.encode(frame)[:, 2]
    assert levels.tolist() == [int(moment.year == 2021) for moment in frame["x"]]


@pytest.mark.parametrize(
    "edges",
    [
        [dt.timedelta(0), dt.timedelta(1)],
        [dt.time(8), dt.time(9)],
        [dt.date(2020, 1, 1), dt.datetime(2021, 1, 1)],
        [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1, tzinfo=dt.UTC)],
        [0, dt.date(2021, 1, 1)],
    ],
)
def test_edges_that_make_no_bins_are_refused(edges):
    with pytest.raises(InputError, match="list at least two numbers or dates in ascending order"):
        Domain.declare(edges={"x": edges})
