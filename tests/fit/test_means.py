"""A numeric outcome with equal group means: exact for weights, and closest to the
data.
"""

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent
from tables import EQUAL_PROBABILITIES

PROBLEMS = 6


def salaries(seed, rows=600, *, missing=False):
    rng = np.random.default_rng(seed)
    columns = {"sex": rng.choice(["f", "m"], rows, p=[0.4, 0.6])}
    columns["race"] = rng.choice(["x", "y", "z"], rows, p=[0.6, 0.3, 0.1])
    frame = pd.DataFrame(columns | {"job": rng.choice(["a", "b"], rows)})
    mean = (
        3
        + 0.3 * (frame.sex == "m")
        + 0.2 * (frame.job == "a")
        + 0.1 * (frame.race == "x")
    )
    frame["salary"] = np.round(np.exp(rng.normal(mean, 0.5)), 2)
    if missing:
        frame.loc[rng.random(rows) < 0.1, "salary"] = np.nan
    return frame


def means_of(frame, weights, columns):
    known = frame.salary.notna()
    part = frame.assign(w=weights, v=frame.salary * weights)[known]
    return part.groupby(columns).v.sum() / part.groupby(columns).w.sum()


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_the_means_are_equal_and_groups_keep_their_sizes(seed):
    frame = salaries(seed, missing=seed % 2 == 1)
    protected = ["sex", "race"] if seed % 3 else "sex"
    fit = fairmaxent.debias(frame, "salary", protected, equal_means=True, estimate=None)
    weights = fit.weights()
    for column in [protected] if isinstance(protected, str) else protected:
        before, after = means_of(frame, 1.0, column), means_of(frame, weights, column)
        assert before.max() / before.min() > 1.02
        assert (after.max() - after.min()) / after.mean() < 1e-9
        assert (
            np.abs(
                frame.assign(w=weights).groupby(column).w.sum()
                - frame.groupby(column).size()
            ).max()
            < 1e-6
        )
    known = frame.salary.notna()
    assert np.average(frame.salary[known], weights=weights[known]) == pytest.approx(
        frame.salary.mean(), rel=1e-9
    )


def test_the_distribution_and_drawn_rows_have_them_too():
    frame = salaries(1)
    fit = fairmaxent.debias(frame, "salary", "sex", equal_means=True, estimate=None)
    means = [
        fit.distribution.expectation("salary", given={"sex": sex}) for sex in ("f", "m")
    ]
    # Tilting rows inside a cell of few rows towards the base moves their mean a little:
    # weights alone are exact.
    assert means[0] == pytest.approx(means[1], rel=1e-4)
    drawn = fit.sample(200_000, random_state=0).groupby("sex").salary.mean()
    assert drawn["f"] == pytest.approx(means[0], rel=0.01)
    assert drawn["m"] == pytest.approx(means[0], rel=0.01)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("rate", [None, 0.8])
def test_the_histogram_is_the_closest_one_by_another_solver(rate):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 300), "points": rng.integers(0, 5, 300)}
    )
    frame.loc[frame.sex == "m", "points"] = np.minimum(
        4, frame.points[frame.sex == "m"] + rng.integers(0, 2)
    )
    frame = pd.concat(
        [frame, pd.DataFrame({"sex": ["f", "m"] * 5, "points": np.repeat(range(5), 2)})]
    )
    counts = frame.groupby(["points", "sex"]).size().unstack().to_numpy() / len(frame)
    table = cp.Variable(counts.shape, nonneg=True)
    mean = (counts.sum(axis=1) * np.arange(5)).sum()
    conditions = [
        cp.sum(table, axis=0) == counts.sum(axis=0),
        np.arange(5) @ table == mean * counts.sum(axis=0),
    ]
    if rate is not None:
        rates = [[table[y, z] / counts[:, z].sum() for z in range(2)] for y in range(5)]
        conditions += [
            one >= rate * other for pair in rates for one in pair for other in pair
        ]
    cp.Problem(cp.Minimize(cp.sum(cp.kl_div(table, counts))), conditions).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
    )
    fit = fairmaxent.debias(
        frame, "points", "sex", equal_means=True, statistical_rate=rate, estimate=None
    )
    assert np.abs(fit.certificate.table - table.value).max() < 1e-6


def test_means_within_strata():
    frame = salaries(2, 1500)
    fit = fairmaxent.debias(
        frame, "salary", "sex", equal_means=True, within="job", estimate=None
    )
    means = means_of(frame, fit.weights(), ["job", "sex"]).unstack()
    assert np.abs(means["f"] - means["m"]).max() < 1e-8
    assert means["f"]["a"] != pytest.approx(means["f"]["b"], rel=0.02)


def test_design_weights_count():
    frame = salaries(3).assign(design=np.random.default_rng(0).gamma(2.0, size=600))
    fit = fairmaxent.debias(
        frame, "salary", "sex", equal_means=True, weight="design", estimate=None
    )
    means = means_of(frame, fit.weights(), "sex")
    assert means["f"] == pytest.approx(means["m"], rel=1e-9)


@pytest.mark.more
def test_the_certificate_states_them_and_survives_a_file(tmp_path):
    frame = salaries(4)
    fit = fairmaxent.debias(frame, "salary", "sex", equal_means=True, estimate=None)
    before = means_of(frame, 1.0, "sex")
    stated = {mean.group: (mean.before, mean.after) for mean in fit.certificate.means}
    assert stated["sex = f"][0] == pytest.approx(before["f"], rel=1e-9)
    assert stated["sex = f"][1] == pytest.approx(stated["sex = m"][1], rel=1e-9)
    assert "mean of sex = f" in str(fit.certificate)
    fit.save(tmp_path / "fit.fme")
    again = fairmaxent.load(tmp_path / "fit.fme")
    assert again.certificate.means == fit.certificate.means
    pd.testing.assert_frame_equal(
        again.sample(40, random_state=0), fit.sample(40, random_state=0)
    )
    fit.report(tmp_path / "report.md", data=frame)
    text = (tmp_path / "report.md").read_text()
    assert "The mean of salary is equal in all groups" in text
    for group, (old, new) in stated.items():
        assert f"| mean of {group} | {old:.5g} | {new:.5g} |" in text
    spans = fit.uncertainty(replicates=50, random_state=0)
    assert spans.after.outcomes


def stated_means(fit):
    return {
        mean.group.removeprefix("sex = "): (mean.before, mean.after)
        for mean in fit.certificate.means
    }


def test_a_rule_may_forbid_what_no_row_has_but_not_move_the_numbers_inside_bins():
    frame, rule = salaries(8), {"sex": "m", "job": "b"}
    with pytest.raises(
        fairmaxent.InputError,
        match="cannot be kept together with a rule that rows break",
    ):
        fairmaxent.debias(frame, "salary", "sex", equal_means=True, forbid=[rule])
    kept = frame[(frame.sex == "f") | (frame.job == "a")]
    fit = fairmaxent.debias(
        kept,
        "salary",
        "sex",
        equal_means=True,
        forbid=[rule],
        estimate=None,
        base_share=0.5,
    )
    before, after = means_of(kept, 1.0, "sex"), means_of(kept, fit.weights(), "sex")
    assert after["f"] == pytest.approx(after["m"], rel=1e-9)
    for sex, stated in stated_means(fit).items():
        assert stated == pytest.approx((before[sex], after[sex]), rel=1e-9)
    drawn = fit.sample(20_000, random_state=0)
    assert not ((drawn.sex == "m") & (drawn.job == "b")).any()


def test_a_target_of_another_column_would_move_the_numbers_inside_bins():
    frame, target = salaries(10), {"job": {"a": 0.3, "b": 0.7}}
    with pytest.raises(
        fairmaxent.InputError, match="cannot be kept together with a target of 'job'"
    ):
        fairmaxent.debias(frame, "salary", "sex", equal_means=True, target=target)
    whole = frame.assign(salary=(frame.salary // 20).clip(0, 4))
    fit = fairmaxent.debias(
        whole, "salary", "sex", equal_means=True, target=target, estimate=None
    )
    means = means_of(whole, fit.weights(), "sex")
    assert means["f"] == pytest.approx(means["m"], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"outcome": "job"}, "needs an outcome of numbers"),
        ({"equal_means": "same"}, "equal_means is 'same'"),
        ({"detail": "bins"}, "needs the exact numbers"),
        (
            {"base_share": 1},
            (
                "no row is drawn with those of a real one with base_share=1; use a"
                " lower share"
            ),
        ),
        ({"model": EQUAL_PROBABILITIES}, "means cannot go together with model"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(fairmaxent.InputError, match=words):
        fairmaxent.debias(
            salaries(0),
            **{"outcome": "salary", "protected": "sex", "equal_means": True, **options},
        )


def test_a_lazy_frame_has_no_exact_numbers_but_whole_levels_do():
    frame = salaries(6)
    with pytest.raises(fairmaxent.InputError, match="needs the exact numbers"):
        fairmaxent.debias(
            pl.from_pandas(frame).lazy(), "salary", "sex", equal_means=True
        )
    points = frame.assign(salary=(frame.salary // 20).clip(0, 4))
    fit = fairmaxent.debias(
        pl.from_pandas(points).lazy(), "salary", "sex", equal_means=True, estimate=None
    )
    means = {mean.group: mean.after for mean in fit.certificate.means}
    assert means["sex = f"] == pytest.approx(means["sex = m"], rel=1e-9)
