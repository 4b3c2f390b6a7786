"""Several outcome columns, each with its own rates, exact together."""

from itertools import product

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent
from tables import EQUAL_PROBABILITIES

QUICK, MANY = 5, 200


def random_people(seed):
    rng = np.random.default_rng(seed)
    rows = 250
    groups = ["a", "b", "c"][: int(rng.integers(2, 4))]
    frame = pd.DataFrame(
        {"z": rng.choice(groups, rows), "x": rng.choice(["p", "q"], rows)}
    )
    first = rng.random(rows) < 0.3 + 0.3 * (frame.z == "a")
    frame["hired"] = np.where(first, "yes", "no")
    levels = ["low", "mid", "high"][: int(rng.integers(2, 4))]
    frame["grade"] = [
        levels[min(len(levels) - 1, int(rng.integers(0, 3) + hired) // 2)]
        for hired in first
    ]
    return frame[
        ~(
            (frame.z == "b")
            & (frame.grade == "low")
            & (frame.hired == "yes")
            & (rng.random(rows) < 0.8)
        )
    ]


def enumerated(fit, columns):
    """The probability of every point of the domain, one by one."""
    values = [attribute.values.to_list() for attribute in fit.domain.attributes]
    points = pd.DataFrame(list(product(*values)), columns=list(fit.domain.names))
    return points.assign(p=fit.distribution.probability(points))[[*columns, "p"]]


def worst_ratio(points, outcome, group):
    sizes = points.groupby(group).p.sum()
    rates = points.groupby([outcome, group]).p.sum().unstack(fill_value=0.0) / sizes
    return (rates.min(axis=1) / rates.max(axis=1)).min()


def check_problem(seed):
    frame = random_people(seed)
    fit = fairmaxent.debias(frame, ["hired", "grade"], "z", estimate=None)
    points = enumerated(fit, ["hired", "grade", "z"])
    assert points.p.sum() == pytest.approx(1, abs=1e-9)
    for outcome in ("hired", "grade"):
        assert worst_ratio(points, outcome, "z") == pytest.approx(1, abs=1e-9)
        assert (
            np.abs(
                points.groupby(outcome).p.sum()
                - frame[outcome].value_counts(normalize=True)
            ).max()
            < 1e-9
        )
    achieved = fit.certificate.achieved["statistical_rate"]
    assert achieved == {
        "hired by z": pytest.approx(1, abs=1e-9),
        "grade by z": pytest.approx(1, abs=1e-9),
    }
    assert (
        np.abs(points.groupby("z").p.sum() - frame.z.value_counts(normalize=True)).max()
        < 1e-9
    )


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(QUICK))
def test_both_outcomes_are_exact_together(seed):
    check_problem(seed)


@pytest.mark.slow
def test_two_hundred_problems_are_exact():
    for seed in range(QUICK, QUICK + MANY):
        check_problem(seed)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("rates", [(1.0, 1.0), (None, 0.7)])
def test_the_table_is_the_closest_one_by_another_solver(rates):
    # hired, z, grade
    counts = np.random.default_rng(1).integers(5, 40, (2, 2, 3)).astype(float)
    rows = [
        [f"h{h}", f"z{z}", f"g{g}"]
        for h, z, g in np.ndindex(counts.shape)
        for _ in range(int(counts[h, z, g]))
    ]
    frame = pd.DataFrame(rows, columns=["hired", "z", "grade"])
    fit = fairmaxent.debias(
        frame,
        ["hired", "grade"],
        "z",
        statistical_rate=dict(zip(("hired", "grade"), rates, strict=True)),
        estimate=None,
    )
    data = counts / counts.sum()
    table, cells = cp.Variable(data.size, nonneg=True), np.argwhere(np.ones(data.shape))
    sizes = data.sum(axis=(0, 2))
    conditions = []
    for axis in range(3):
        for level in range(data.shape[axis]):
            inside = (cells[:, axis] == level).astype(float)
            conditions.append(inside @ table == inside @ data.ravel())
    for axis, rate in zip((0, 2), rates, strict=True):
        for level in range(data.shape[axis]):
            both = [
                ((cells[:, axis] == level) & (cells[:, 1] == z)).astype(float)
                @ table
                / sizes[z]
                for z in range(2)
            ]
            conditions += (
                []
                if rate is None
                else [one >= rate * other for one in both for other in both]
            )
    cp.Problem(cp.Minimize(cp.sum(cp.kl_div(table, data.ravel()))), conditions).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
    )
    assert np.abs(fit.certificate.table.ravel() - table.value).max() < 1e-6


def test_favourable_levels_targets_and_strata_by_outcome():
    frame = random_people(4)
    favourable = {"hired": "yes", "grade": "low"}
    fit = fairmaxent.debias(
        frame, ["hired", "grade"], "z", favourable=favourable, within="x", estimate=None
    )
    weighed = frame.assign(p=fit.weights())
    for outcome, level in favourable.items():
        for _, part in weighed.groupby("x"):
            sizes = part.groupby("z").p.sum()
            rates = part[part[outcome] == level].groupby("z").p.sum() / sizes
            assert rates.min() / rates.max() == pytest.approx(1, abs=1e-9)
    target = {
        "grade": {level: 1 / frame.grade.nunique() for level in frame.grade.unique()}
    }
    moved = fairmaxent.debias(
        frame, ["hired", "grade"], "z", target=target, estimate=None
    )
    shares = frame.assign(p=moved.weights() / len(frame)).groupby("grade").p.sum()
    assert np.abs(shares - 1 / frame.grade.nunique()).max() < 1e-9
    free = fairmaxent.debias(
        frame, ["hired", "grade"], "z", target={"grade": "free"}, estimate=None
    )
    assert free.certificate.achieved["statistical_rate"]["grade by z"] == pytest.approx(
        1, abs=1e-9
    )


@pytest.mark.more
def test_files_reports_summaries_and_other_libraries(tmp_path):
    frame = random_people(5)
    fit = fairmaxent.debias(
        frame,
        ["hired", "grade"],
        "z",
        favourable={"hired": "yes", "grade": "low"},
        estimate=None,
    )
    text = str(fit.certificate)
    assert "statistical rate of hired by z" in text
    assert "statistical rate of grade by z" in text
    assert "outcome grade = low" in text
    assert "hired, grade" in repr(fit)
    assert "estimate=" not in repr(fit)  # it is for a single outcome
    fit.save(tmp_path / "fit.fme")
    again = fairmaxent.load(tmp_path / "fit.fme")
    assert again.certificate.measure == fit.certificate.measure
    assert again.certificate.to_dict() == fit.certificate.to_dict()
    assert again.summary().equals(fit.summary())
    summary = fit.summary()
    before = frame.groupby("z").grade.agg(lambda column: (column == "low").mean())
    rows = summary[
        (summary.column == "grade by z") & (summary.outcome == "low")
    ].set_index("group")
    assert np.abs(rows.rate_before - before).max() < 1e-12
    fit.report(tmp_path / "report.md", data=frame)
    report = (tmp_path / "report.md").read_text()
    assert "grade = low shall be equally common in all groups of z." in report
    assert "grade keeps the shares that it has in the data." in report
    spans = fit.uncertainty(replicates=50, random_state=0)
    assert spans.after.statistical_rate["grade by z"].value == pytest.approx(
        1, abs=1e-9
    )
    assert "grade = low" in spans.before.outcomes
    low, high = fit.certificate.interval(2000)["statistical_rate"]["grade by z"]
    assert 0.9 < low <= high <= 1
    lazy = fairmaxent.debias(
        pl.from_pandas(frame).lazy(), ["hired", "grade"], "z", estimate=None
    )
    eager = fairmaxent.debias(frame, ["hired", "grade"], "z", estimate=None)
    assert np.abs(lazy.certificate.table - eager.certificate.table).max() < 1e-12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"outcome": ["hired", "hired"]}, "named twice"),
        ({"outcome": ["hired", "z"]}, "both the outcome and protected"),
        ({"outcome": []}, "outcome"),
        ({"within": "grade"}, "which is the outcome"),
        ({"favourable": {"grades": "low"}}, "did you mean 'grade'"),
        ({"statistical_rate": {"hired": 1.0, "z": 0.5}}, "not an outcome"),
        ({"model": EQUAL_PROBABILITIES}, "outcome cannot go together with model"),
        ({"estimate": "weights"}, "single outcome"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(fairmaxent.InputError, match=words):
        fairmaxent.debias(
            random_people(0),
            **{"outcome": ["hired", "grade"], "protected": "z", **options},
        )
