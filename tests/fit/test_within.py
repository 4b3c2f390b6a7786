"""Rates within strata: every stratum exact, kept as large as it was, and closest to the
data by another solver.
"""

from itertools import product

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import fairmaxent
from fairmaxent.fit.groups import changes_by_column
from tables import EQUAL_PROBABILITIES

QUICK, MANY = 8, 1000


def random_table(seed):
    """Rows with one to three strata columns, one or two protected ones, empty cells,
    and what is asked of them.
    """
    rng = np.random.default_rng(seed)
    columns = {
        "y": int(rng.integers(2, 4)),
        "z": int(rng.integers(2, 4)),
        "s": int(rng.integers(2, 6)),
    }
    if rng.random() < 0.3:
        columns["s2"] = 2
    if rng.random() < 0.25:
        columns["z2"] = 2
    cells = np.array(list(product(*(range(size) for size in columns.values()))))
    shares = rng.dirichlet(np.full(len(cells), 0.7))
    shares[rng.random(len(cells)) < 0.15] = 0.0
    codes = np.vstack(
        [
            cells[rng.choice(len(cells), 150, p=shares / shares.sum())],
            _some_of_each(cells, columns),
        ]
    )
    frame = pd.DataFrame(
        {
            name: [f"{name}{code}" for code in codes[:, n]]
            for n, name in enumerate(columns)
        }
    )
    frame["x"] = rng.choice(["p", "q", "r"], len(frame))
    options = {
        "favourable": None if rng.random() < 0.5 else "y1",
        "statistical_rate": float(rng.choice([1.0, 1.0, 0.8])),
        "representation_rate": (
            None if rng.random() < 0.7 else float(rng.choice([1.0, 0.6]))
        ),
        "base_share": float(rng.choice([0.2, 1.0])),
    }
    protected = [name for name in ("z", "z2") if name in columns]
    within = [name for name in ("s", "s2") if name in columns]
    return frame, protected, within, options


def _some_of_each(cells, columns):
    """Rows with each level of outcome and groups in one stratum, so that there is
    something to compare.
    """
    return (
        cells[(cells[:, 2:] == 0).all(axis=1)]
        if len(columns) == 3
        else cells[(cells[:, 3:] == 0).all(axis=1)][:30]
    )


def rates_of(masses, by, level):
    """Share of an outcome in each group: plain sums over the rows of a frame of
    masses.
    """
    total = masses.groupby(by).p.sum()
    with_it = (
        masses[masses.y == level]
        .groupby(by)
        .p.sum()
        .reindex(total.index, fill_value=0.0)
    )
    return (with_it / total)[total > 1e-12]


def check_strata(frame, fit, protected, within, options):
    """Compare the fitted distribution with the data, stratum by stratum, by
    group-bys.
    """
    before = frame.assign(p=1 / len(frame))
    after = pd.DataFrame(fit.distribution.marginal(["y", *protected, *within])).rename(
        columns={"probability": "p"}
    )
    sizes = [masses.groupby(within).p.sum() for masses in (before, after[after.p > 0])]
    pd.testing.assert_series_equal(*sizes, atol=1e-9, rtol=0)
    outcomes = [masses.groupby([*within, "y"]).p.sum() for masses in (before, after)]
    both = pd.concat(outcomes, axis=1).fillna(0.0).to_numpy()
    assert np.abs(both[:, 0] - both[:, 1]).max() < 1e-9
    levels = (
        [options["favourable"]] if options["favourable"] else sorted(frame.y.unique())
    )
    for _, stratum in after.groupby(within):
        rows = before.merge(stratum[within].drop_duplicates(), on=within)
        for column in protected:
            # groups without rows in a stratum are not compared in it
            known = set(rows[column])
            part = stratum[stratum[column].isin(known)]
            for level in levels:
                rates = rates_of(part, column, level)
                if len(rates) and rates.max() > 1e-12:
                    assert (
                        rates.min() / rates.max() >= options["statistical_rate"] - 1e-9
                    )
            shares = part.groupby(column).p.sum()
            if options["representation_rate"] is not None and len(shares) > 1:
                assert (
                    shares.min() / shares.max() >= options["representation_rate"] - 1e-9
                )


def check_problem(seed):
    frame, protected, within, options = random_table(seed)
    fit = fairmaxent.debias(
        frame, "y", protected, within=within, estimate=None, **options
    )
    check_strata(frame, fit, protected, within, options)
    achieved = fit.certificate.achieved
    assert all(
        rate >= options["statistical_rate"] - 1e-9
        for rate in achieved["statistical_rate"].values()
    )


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(QUICK))
def test_every_stratum_has_the_rates_and_keeps_its_size_and_outcomes(seed):
    check_problem(seed)


@pytest.mark.slow
def test_a_thousand_problems_with_empty_cells_are_exact_in_every_stratum():
    for seed in range(QUICK, QUICK + MANY):
        check_problem(seed)


def closest(cells, levels, rate):
    """Each stratum's closest table with the data's shares of outcomes and groups, by a
    general convex solver.
    """
    result = np.zeros_like(cells)
    for stratum in range(cells.shape[2]):
        data = cells[:, :, stratum]
        t = cp.Variable(data.shape, nonneg=True)
        groups = data.sum(axis=0)
        conditions = [
            cp.sum(t, axis=1) == data.sum(axis=1),
            cp.sum(t, axis=0) == groups,
        ]
        for level in levels:
            rates = [
                t[level, group] / groups[group] for group in np.flatnonzero(groups)
            ]
            conditions += [low >= rate * high for low in rates for high in rates]
        cp.Problem(cp.Minimize(cp.sum(cp.kl_div(t, data))), conditions).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        result[:, :, stratum] = t.value
    return result


# than 1e-12, which is tighter than needed
@pytest.mark.some(2)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rate", [1.0, 0.7])
def test_the_table_is_the_closest_one_by_another_solver(seed, rate):
    rng = np.random.default_rng(seed)
    cells = rng.integers(3, 40, (3, 2, 3)).astype(float)
    rows = [
        [f"y{y}", f"z{z}", f"s{s}"]
        for y, z, s in np.ndindex(cells.shape)
        for _ in range(int(cells[y, z, s]))
    ]
    frame = pd.DataFrame(rows, columns=["y", "z", "s"])
    fit = fairmaxent.debias(
        frame,
        "y",
        "z",
        within="s",
        favourable=["y0", "y2"],
        statistical_rate=rate,
        estimate=None,
    )
    expected = closest(cells / cells.sum(), (0, 2), rate)
    assert np.abs(fit.certificate.table - expected).max() < 1e-6


def decisions(rows=1000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "group": rng.choice(["a", "b"], rows, p=[0.7, 0.3]),
            "age": rng.integers(18, 70, rows),
        }
    )
    frame["label"] = np.where(
        rng.random(rows) < 0.3 + 0.3 * (frame.group == "a"), "yes", "no"
    )
    chance = 0.2 + 0.4 * (frame.label == "yes") + 0.2 * (frame.group == "a")
    frame["decision"] = np.where(rng.random(rows) < chance, "taken", "refused")
    return frame


def rates_within(frame, weights, label):
    part = frame.assign(w=weights)[frame.label == label]
    taken = part[part.decision == "taken"].groupby("group").w.sum()
    return taken / part.groupby("group").w.sum()


def test_equal_opportunity_and_equalised_odds_of_recorded_decisions():
    frame = decisions()
    opportunity = fairmaxent.debias(
        frame, "decision", "group", within={"label": "yes"}, estimate=None
    )
    before, after = (
        rates_within(frame, weights, "yes") for weights in (1.0, opportunity.weights())
    )
    assert abs(before["a"] - before["b"]) > 0.1
    assert abs(after["a"] - after["b"]) < 1e-9
    untouched = opportunity.weights()[frame.label == "no"]
    assert np.abs(untouched - 1).max() < 1e-9
    assert list(opportunity.certificate.achieved["statistical_rate"]) == [
        "group within label = yes"
    ]
    odds = fairmaxent.debias(frame, "decision", "group", within="label", estimate=None)
    for label in ("yes", "no"):
        rates = rates_within(frame, odds.weights(), label)
        assert abs(rates["a"] - rates["b"]) < 1e-9


def test_a_stratum_with_one_group_is_named_and_stays_as_it_is():
    frame = decisions()
    frame.loc[frame.index[:40], ["group", "label"]] = ["a", "unknown"]
    fit = fairmaxent.debias(frame, "decision", "group", within="label", estimate=None)
    assert fit.certificate.single_groups == {"group within label": ("label = unknown",)}
    assert any(
        "a single group: label = unknown" in warning
        for warning in fit.certificate.warnings
    )
    assert np.abs(fit.weights()[frame.label == "unknown"] - 1).max() < 1e-9


def test_an_outcome_that_is_forbidden_to_one_group_of_a_stratum_is_no_equal_rate():
    rule = {"decision": "taken", "group": "a", "label": "yes"}
    with pytest.raises(fairmaxent.InfeasibleError, match="label = yes"):
        fairmaxent.debias(
            decisions(),
            "decision",
            "group",
            within="label",
            forbid=[rule],
            estimate=None,
        )


def test_a_report_shows_the_groups_over_all_strata_too_and_then_those_of_each_stratum_side_by_side():
    frame = decisions()
    frame.loc[frame.index[::7], "group"] = frame.loc[frame.index[::11], "decision"] = (
        None
    )
    fit = fairmaxent.debias(
        frame, "decision", "group", favourable="taken", within="label", estimate=None
    )
    rate = fairmaxent.metrics.statistical_rate(
        frame, "decision", "group", favourable="taken"
    )
    shown = changes_by_column(fit)
    for change, group in zip(shown[:2], rate.groups, strict=True):
        ends = change.rate_before_low, change.rate_before_high
        assert (change.group, change.rate_before, *ends) == pytest.approx(
            (*group.group, group.rate, *group.interval)
        )
    assert [change.group for change in shown[3:6]] == [
        "a × no",
        "b × no",
        "missing × no",
    ]
    groups = [
        label.get_text() for label in fit.plot(ax=Figure().subplots()).get_yticklabels()
    ]
    assert groups == ["a × no", "b × no", "a × yes", "b × yes"]


def test_missing_strata_stay_as_they_are_unless_they_are_compared():
    frame = decisions()
    frame.loc[frame.index[::5], "label"] = None
    kept = fairmaxent.debias(frame, "decision", "group", within="label", estimate=None)
    assert np.abs(kept.weights()[frame.label.isna()] - 1).max() < 1e-9
    assert any(
        "'label'" in warning and "missing" in warning
        for warning in kept.certificate.warnings
    )
    compared = fairmaxent.debias(
        frame, "decision", "group", within="label", compare_missing=True, estimate=None
    )
    part = frame.assign(w=compared.weights())[frame.label.isna()]
    taken = (
        part[part.decision == "taken"].groupby("group").w.sum()
        / part.groupby("group").w.sum()
    )
    assert abs(taken["a"] - taken["b"]) < 1e-9


def test_targets_are_about_the_whole_table_while_strata_keep_their_sizes():
    frame = decisions()
    target = {"decision": {"taken": 0.6, "refused": 0.4}, "group": {"a": 0.5, "b": 0.5}}
    fit = fairmaxent.debias(
        frame, "decision", "group", within="label", target=target, estimate=None
    )
    weighed = frame.assign(w=fit.weights() / len(frame))
    assert weighed[weighed.decision == "taken"].w.sum() == pytest.approx(0.6, abs=1e-9)
    assert weighed[weighed.group == "a"].w.sum() == pytest.approx(0.5, abs=1e-9)
    assert weighed[weighed.label == "yes"].w.sum() == pytest.approx(
        (frame.label == "yes").mean(), abs=1e-9
    )
    for label in ("yes", "no"):
        rates = rates_within(frame, fit.weights(), label)
        assert abs(rates["a"] - rates["b"]) < 1e-9
    sized = fairmaxent.debias(
        frame,
        "decision",
        "group",
        within="label",
        target={"label": {"yes": 0.9, "no": 0.1}},
        estimate=None,
    )
    assert sized.weights()[frame.label == "yes"].sum() == pytest.approx(
        0.9 * len(frame), abs=1e-6
    )
    assert sized.certificate.achieved["statistical_rate"][
        "group within label"
    ] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("within", "words"),
    [
        ("group", "which is protected"),
        ("decision", "which is the outcome"),
        ("labels", "did you mean 'label'"),
        (["label", "label"], "twice"),
        ({"label": "maybe"}, "maybe"),
        ({"label": []}, "is empty"),
        ({"label": "lonely"}, "more than one group"),
        (7, "within is 7"),
    ],
)
def test_refusals(within, words):
    frame = decisions(200)
    frame.loc[frame.index[:10], ["group", "label"]] = ["a", "lonely"]
    with pytest.raises(fairmaxent.InputError, match=words):
        fairmaxent.debias(frame, "decision", "group", within=within, estimate=None)


def test_refusals_name_the_stratum():
    frame = decisions()
    frame = frame[
        ~((frame.label == "yes") & (frame.group == "b") & (frame.decision == "taken"))
    ]
    cell = "decision = taken, group = b, label = yes"
    with pytest.raises(
        fairmaxent.InfeasibleError, match=f"within label = yes: .*{cell}"
    ):
        fairmaxent.debias(
            frame, "decision", "group", within="label", base_share=0, estimate=None
        )
    filled = fairmaxent.debias(
        frame, "decision", "group", within="label", estimate=None
    )
    assert filled.certificate.filled_cells == (cell,)
    lonely = frame.assign(label=np.where(frame.group == "a", frame.label, "only"))
    lonely.loc[lonely.index[:50], "label"] = "only"
    target = {"group": {"a": 0.01, "b": 0.99}}
    with pytest.raises(fairmaxent.InfeasibleError, match="target"):
        fairmaxent.debias(
            lonely, "decision", "group", within="label", target=target, estimate=None
        )


def test_relabelling_keeps_people_and_gives_equal_means_within_strata():
    frame = decisions(1500)
    fit = fairmaxent.debias(
        frame,
        "decision",
        "group",
        within="label",
        model=EQUAL_PROBABILITIES,
        estimate=None,
    )
    weights = fit.weights()
    assert np.abs(weights.sum(axis=1) - 1).max() < 1e-9
    taken = fit.domain.attribute("decision").labels.index("taken")
    means = (
        frame.assign(p=weights[:, taken]).groupby(["label", "group"]).p.mean().unstack()
    )
    assert np.abs(means["a"] - means["b"]).max() < 1e-9
    shares = frame.assign(p=weights[:, taken]).groupby("label").p.mean()
    assert (
        np.abs(shares - (frame.decision == "taken").groupby(frame.label).mean()).max()
        < 1e-9
    )


def test_storage_summary_uncertainty_and_intervals(tmp_path):
    frame = decisions(800)
    fit = fairmaxent.debias(
        frame, "decision", "group", favourable="taken", within="label", estimate=None
    )
    fit.save(tmp_path / "fit.fairmaxent")
    again = fairmaxent.load(tmp_path / "fit.fairmaxent")
    assert again.request.within == "label"
    assert again.certificate.measure == fit.certificate.measure
    pd.testing.assert_frame_equal(
        again.sample(50, random_state=1), fit.sample(50, random_state=1)
    )
    summary = fit.summary()
    expected = frame.groupby(["group", "label"]).decision.agg(
        lambda column: (column == "taken").mean()
    )
    for _, row in summary.iterrows():
        group, label = row["group"].split(" × ")
        assert row.rate_before == pytest.approx(expected[group, label], abs=1e-12)
    spans = fit.uncertainty(replicates=60, random_state=0)
    after = spans.after.statistical_rate["group within label"]
    assert after.value == pytest.approx(1, abs=1e-9)
    assert after.low > 0.99
    assert spans.before.statistical_rate["group within label"].value == pytest.approx(
        fit.certificate.before["statistical_rate"]["group within label"], abs=1e-12
    )
    low, high = fit.certificate.interval(5000)["statistical_rate"]["group within label"]
    drawn = fairmaxent.metrics.statistical_rate(
        fit.sample(5000, random_state=3),
        "decision",
        "group",
        favourable="taken",
        within="label",
    )
    assert low - 1e-9 <= drawn.value <= high + 1e-9


def test_scores_of_defendants_have_equal_opportunity_and_odds_exactly():
    """COMPAS: the recorded decision is a high score, the label is whether a new charge
    followed within two years.
    """
    people = fairmaxent.datasets.load("compas").frame.dropna(
        subset=["days_b_screening_arrest"]
    )
    people = people[
        people.race.isin(["African-American", "Caucasian", "Hispanic"])
    ].reset_index(drop=True)
    people = people[
        ["sex", "age_cat", "race", "priors_count", "two_year_recid", "score_text"]
    ]

    def rates(weights, label):
        part = people.assign(w=weights)[people.two_year_recid == label]
        high = part[part.score_text == "High"].groupby("race").w.sum()
        return high / part.groupby("race").w.sum()

    for within, labels in (({"two_year_recid": 1}, [1]), ("two_year_recid", [0, 1])):
        fit = fairmaxent.debias(
            people,
            "score_text",
            "race",
            favourable="High",
            within=within,
            estimate=None,
        )
        for label in labels:
            before, after = rates(1.0, label), rates(fit.weights(), label)
            assert before.max() / before.min() > 1.5
            assert after.max() / after.min() - 1 < 1e-9
        exact = fairmaxent.metrics.statistical_rate(
            fit, "score_text", "race", favourable="High", within=within
        )
        assert exact.value == pytest.approx(1, abs=1e-9)


def test_a_stratum_in_which_nobody_has_an_outcome_is_named():
    """It was a division of nothing by nothing first."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "hired": rng.choice(["yes", "no"], 200),
            "sex": rng.choice(["f", "m"], 200),
            "town": rng.choice(["a", "b"], 200),
        }
    )
    frame.loc[200] = [None, "m", "c"]
    named = r"within town = c: rows without an outcome"
    with pytest.raises(fairmaxent.errors.InfeasibleError, match=named):
        fairmaxent.debias(frame, "hired", "sex", favourable="yes", within="town")
