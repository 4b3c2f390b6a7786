"""Uncertainty: intervals of the fair table, against simulation and brute force."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from fairmaxent import InfeasibleError, InputError, debias
from fairmaxent.fit.problem import Problem
from tables import EQUAL_PROBABILITIES

SHARES = np.array([[0.30, 0.25, 0.02, 0.10], [0.20, 0.08, 0.01, 0.04]])


def frame_of(counts, rng=None, weights=None):
    """Rows of a table of outcome × group, with a column of weights if each cell has
    one, and a column x.
    """
    outcome, group = (axis.ravel() for axis in np.indices(counts.shape))
    rng = rng or np.random.default_rng(0)
    frame = pd.DataFrame(
        {"y": np.repeat(outcome, counts.ravel()), "z": np.repeat(group, counts.ravel())}
    ).astype(str)
    frame["x"] = rng.choice(["p", "q", "r"], len(frame))
    if weights is not None:
        frame["w"] = np.repeat(weights.ravel(), counts.ravel())
    return frame


def drawn(seed, rows=1000, shares=SHARES):
    rng = np.random.default_rng(seed)
    return frame_of(
        rng.multinomial(rows, shares.ravel() / shares.sum()).reshape(shares.shape), rng
    )


def covered(runs, *, weights=None, rows=1000, **options):
    """How often each interval covers what the same fit of the whole population
    gives.
    """
    cells = SHARES if weights is None else SHARES / weights
    cells = cells / cells.sum()
    options |= {} if weights is None else {"weight": "w"}
    population = debias(
        frame_of(np.round(cells * 10**6).astype(int), weights=weights),
        "y",
        "z",
        **options,
    )
    truth = dict(population.uncertainty(replicates=40).after.lines())
    hits = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        frame = frame_of(
            rng.multinomial(rows, cells.ravel()).reshape(cells.shape), rng, weights
        )
        after = dict(
            debias(frame, "y", "z", **options)
            .uncertainty(random_state=seed)
            .after.lines()
        )
        hits.append(
            [
                after[name].low - 1e-9 <= span.value <= after[name].high + 1e-9
                for name, span in truth.items()
            ]
        )
    return np.mean(hits, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"representation_rate": 0.5, "statistical_rate": 0.8},
        {"weights": np.array([[1.0] * 4, [10.0] * 4])},
    ],
)
def test_intervals_cover(options):
    """400 runs: a share of 95 % has a standard error of 1.1 %; an exact share is always
    covered.
    """
    shares = covered(400, **options)
    assert (shares > 0.92).all()
    inexact = shares[shares < 1]
    assert len(inexact) >= 6
    assert (inexact < 0.985).all()


@pytest.mark.more
def test_intervals_of_the_data_are_the_usual_ones_of_shares():
    """With many rows, the bootstrap of a share is its normal interval."""
    frame = drawn(1, rows=20_000)
    before = debias(frame, "y", "z").uncertainty(replicates=200, random_state=0).before
    for name, span in before.groups.items():
        share = (frame["z"] == name[-1]).mean()
        margin = 1.96 * np.sqrt(share * (1 - share) / len(frame))
        assert span.value == pytest.approx(share)
        assert (span.high - span.low) / 2 == pytest.approx(margin, rel=0.2)


@pytest.mark.more
def test_design_weights_widen_the_intervals_by_what_they_cost():
    """Half of the rows with weight 10: a share has the variance of the Hájek ratio,
    Σw²(1[z] − p)² / (Σw)².
    """
    frame = drawn(2, rows=20_000)
    weight = np.where(np.arange(len(frame)) % 2, 10.0, 1.0)
    before = (
        debias(frame.assign(w=weight), "y", "z", weight="w")
        .uncertainty(replicates=200, random_state=0)
        .before
    )
    for name, span in before.groups.items():
        member = (frame["z"] == name[-1]).to_numpy()
        share = weight @ member / weight.sum()
        error = np.sqrt((weight**2 * (member - share) ** 2).sum()) / weight.sum()
        assert span.value == pytest.approx(share)
        assert (span.high - span.low) / 2 == pytest.approx(1.96 * error, rel=0.2)


@pytest.mark.slow
def test_each_replicate_is_the_whole_fit():
    """The spread of the fair table is that of refitted bootstrap samples of the
    rows.
    """
    frame = drawn(3, rows=1500)
    options = {"statistical_rate": 0.9, "representation_rate": 0.2}
    after = (
        debias(frame, "y", "z", **options)
        .uncertainty(replicates=1000, random_state=0)
        .after.cells
    )
    tables = []
    for seed in range(300):
        again = frame.sample(len(frame), replace=True, random_state=seed)
        tables.append(debias(again, "y", "z", **options).certificate.table.ravel())
    low, high = np.quantile(tables, [0.025, 0.975], axis=0)
    ours = np.array([span.high - span.low for span in after.values()])
    np.testing.assert_allclose(ours, high - low, rtol=0.25)


def test_what_is_asked_for_exactly_has_no_spread():
    fit = debias(
        drawn(4), "y", "z", representation_rate=1.0, target={"y": {"0": 0.6, "1": 0.4}}
    )
    after = fit.uncertainty(replicates=50, random_state=0).after
    for spans in (
        after.groups,
        after.outcomes,
        after.representation_rate,
        after.statistical_rate,
        after.cells,
    ):
        assert all(span.high - span.low < 1e-9 for span in spans.values())


@pytest.mark.more
def test_equal_rates_are_not_called_unequal():
    """The interval of a smallest ratio reaches 1 if the groups are equal, however low
    the smallest one comes out.
    """
    equal = np.outer([0.6, 0.4], [0.3, 0.3, 0.2, 0.2])
    fits = [
        debias(drawn(seed, shares=equal), "y", "z", random_state=0) for seed in range(5)
    ]
    reached = [
        fit.uncertainty(replicates=50).before.statistical_rate["z"].high for fit in fits
    ]
    assert np.mean(np.array(reached) >= 1) >= 0.8


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "options",
    [
        {
            "forbid": [{"y": "1", "x": "p"}, {"z": "2", "y": "0"}],
            "statistical_rate": None,
        },
        {"model": EQUAL_PROBABILITIES},
        {"largest_weight": 1.3, "base_share": 0},
        {"target": {"z": {"0": 0.4, "1": 0.3, "2": 0.1, "3": 0.2}, "y": "free"}},
    ],
)
def test_the_values_are_those_of_the_certificate(options):
    fit = debias(drawn(5), "y", "z", **options)
    result = fit.uncertainty(replicates=40, random_state=1)
    assert result.replicates + result.infeasible == 40
    rates = {
        "representation_rate": result.after.representation_rate,
        "statistical_rate": result.after.statistical_rate,
    }
    for kind, spans in rates.items():
        assert spans["z"].value == pytest.approx(fit.certificate.achieved[kind]["z"])
    cells = [span.value for span in result.after.cells.values()]
    assert sum(cells) == pytest.approx(1)
    for spans in (*vars(result.before).values(), *vars(result.after).values()):
        assert all(0 <= span.low <= span.high <= 1 for span in spans.values())


@pytest.mark.more
def test_an_outcome_that_nobody_has_in_a_group_may_have_been_missed():
    """With nobody among 30, up to about a tenth of the group might have the outcome;
    the estimate stays zero.
    """
    counts = np.array([[300, 30], [200, 0]])
    span = (
        debias(frame_of(counts), "y", "z")
        .uncertainty(replicates=300, random_state=0)
        .before.cells["y = 1, z = 1"]
    )
    assert span.value == 0
    assert span.low < 0.0005
    assert 1.5 / 530 < span.high < 4 / 530


@pytest.mark.more
def test_half_rows_do_not_add_up_in_a_table_of_many_cells():
    """Most cells of 20 × 20 groups have one row or none; the shares of a column's
    groups stay unbiased.
    """
    rng = np.random.default_rng(0)
    first = np.where(rng.random(400) < 0.5, 0, rng.integers(1, 20, 400))
    second = np.where(first == 0, 0, rng.integers(1, 20, 400))
    frame = pd.DataFrame(
        {"y": rng.integers(0, 2, 400), "a": first, "b": second}
    ).astype(str)
    fit = debias(frame, "y", ["a", "b"], statistical_rate=None)
    span = fit.uncertainty(replicates=100, random_state=0).before.groups["a = 0"]
    assert (span.low + span.high) / 2 == pytest.approx(span.value, abs=0.015)


@pytest.mark.more
def test_the_seed_decides(tmp_path):
    fit = debias(drawn(6), "y", "z", random_state=7)
    first = fit.uncertainty(replicates=50)
    assert first == fit.uncertainty(replicates=50, random_state=7)
    assert first != fit.uncertainty(replicates=50, random_state=8)
    assert (
        str(first).splitlines()[-1]
        == "95 % intervals from 50 bootstrap replicates of the fit"
    )
    assert first.to_dict()["after"]["statistical_rate"]["z"].keys() == {
        "value",
        "low",
        "high",
    }
    fit.save(tmp_path / "fit.fme")
    assert fairmaxent.load(tmp_path / "fit.fme").uncertainty(replicates=50) == first


@pytest.mark.more
def test_replicates_without_a_fair_table_are_counted(monkeypatch):
    fit = debias(drawn(8), "y", "z")
    original, calls = Problem.fair_table, []

    def sometimes(self):
        calls.append(self)
        if len(calls) % 10 == 0:
            raise InfeasibleError("none")
        return original(self)

    monkeypatch.setattr(Problem, "fair_table", sometimes)
    result = fit.uncertainty(replicates=50, random_state=0)
    assert (result.replicates, result.infeasible) == (45, 5)
    assert "5 more replicates are left out" in str(result)
    with pytest.raises(InfeasibleError, match="4 of 40 replicates"):
        fit.uncertainty(replicates=40, random_state=0)


def test_what_has_no_intervals_is_refused():
    frame = drawn(10)
    fit = debias(frame, "y", "z", model=EQUAL_PROBABILITIES, estimate=None)
    for options, text in (
        ({"replicates": 10}, "too few"),
        ({"replicates": 0}, "positive whole number"),
        ({"confidence": 1.5}, "between 0 and 1"),
        ({"replicates": 100, "confidence": 0.99}, "use 200 or more"),
    ):
        with pytest.raises(InputError, match=text):
            fit.uncertainty(**options)
    with pytest.raises(InputError, match="paper"):
        fairmaxent.paper.fit(
            frame[frame["z"] < "2"], outcome="y", protected="z", C=0.5
        ).uncertainty()
    with pytest.raises(InputError, match="cannot go together with model"):
        replace(fit, request=replace(fit.request, model="logistic")).uncertainty()
