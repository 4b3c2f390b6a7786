"""The fitted distribution: the sampler is the model."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import realdata
from fairmaxent import paper
from fairmaxent.data.limits import max_memory
from fairmaxent.debiasing import debias
from fairmaxent.errors import EvidenceError, InputError, LimitError

MANY = 100_000


def mixed_frame(seed: int = 0, rows: int = 3000) -> pd.DataFrame:
    """Two protected columns, three outcomes, and five other columns that hang
    together.
    """
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows, p=[0.3, 0.7])
    race = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    skill = rng.normal(size=rows) + (sex == "M") * 0.4 - (race == "c") * 0.3
    columns = {"sex": sex, "race": race}
    columns["y"] = np.digitize(skill + rng.normal(size=rows), [-0.5, 1.0])
    columns["degree"] = np.digitize(skill, [-1, 0, 1]).astype(str)
    columns["age"] = np.round(40 + 10 * rng.normal(size=rows) + 3 * skill).astype(int)
    columns["hours"] = np.where(
        rng.random(rows) < 0.6, 40.0, 40 + 8 * rng.normal(size=rows)
    )
    columns["city"] = rng.choice(list("uvwxyz"), rows)
    return pd.DataFrame(
        columns | {"union": rng.random(rows) < 0.2 + 0.1 * (race == "b")}
    )


@pytest.fixture(scope="module")
def fit():
    return debias(mixed_frame(), "y", ["sex", "race"], base_share=0.5)


def test_more_rows_than_memory_holds_are_refused_with_a_way_out(fit):
    with max_memory("1MB"):
        assert len(fit.sample(1000)) == 1000
        for draw in (fit.sample, fit.distribution.sample):
            with pytest.raises(
                LimitError, match=r"drawing 50,000 rows.*sample_batches"
            ):
                draw(50_000)


def pairwise_p_values(distribution, drawn_codes, given=()) -> list[float]:
    """Chi-square of every pair of columns against the exact pairwise table."""
    domain = distribution.domain
    free = [name for name in domain.names if name not in given]
    result = []
    for first, second in itertools.combinations(free, 2):
        exact = distribution.marginal([first, second])["probability"].to_numpy()
        i, j = domain.index(first), domain.index(second)
        cells = drawn_codes[:, i].astype(np.intp) * domain.sizes[j] + drawn_codes[:, j]
        seen = np.bincount(cells, minlength=len(exact))
        assert not seen[exact == 0].any()
        expected = exact * len(drawn_codes)
        kept = expected >= 5
        rest_seen, rest_expected = seen[~kept].sum(), expected[~kept].sum()
        statistic = ((seen[kept] - expected[kept]) ** 2 / expected[kept]).sum()
        if rest_expected >= 5:
            statistic += (rest_seen - rest_expected) ** 2 / rest_expected
        result.append(
            float(chi2.sf(statistic, max(1, kept.sum() - 1 + (rest_expected >= 5))))
        )
    return result


@pytest.mark.some(1)
@pytest.mark.parametrize("iid", [False, True], ids=["quota", "iid"])
def test_many_rows_match_all_exact_pairwise_tables(fit, iid):
    drawn = fit.sample(MANY, random_state=1, iid=iid)
    p_values = pairwise_p_values(fit.distribution, fit.domain.encode(drawn))
    assert len(p_values) == 28
    assert min(p_values) > 1e-4
    if iid:  # independent draws: the p-values themselves look uniform
        assert 0.2 < np.mean(p_values) < 0.8


@pytest.mark.parametrize(
    "iid",
    [
        pytest.param(False, id="quota"),
        pytest.param(True, id="iid", marks=pytest.mark.slow),
    ],
)
def test_many_rows_given_evidence_match_the_conditional_tables(fit, iid):
    given = {"sex": "F", "city": ["u", "v"], "union": True}
    drawn = fit.sample(MANY, given=given, random_state=2, iid=iid)
    assert set(drawn["sex"]) == {"F"}
    assert set(drawn["city"]) == {"u", "v"}
    assert drawn["union"].all()
    conditional = fit.distribution.condition(given)
    assert (
        min(pairwise_p_values(conditional, fit.domain.encode(drawn), ("sex", "union")))
        > 1e-4
    )


def test_an_event_of_probability_1e_9_is_drawn_exactly():
    """Twelve columns of the uniform base, eight of them fixed: rejection would need a
    thousand million tries.
    """
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {f"x{i}": rng.choice(list("abcdefghijkl"), 400) for i in range(10)}
    )
    frame["z"], frame["y"] = rng.choice(["p", "q"], 400), rng.choice(["no", "yes"], 400)
    fit = debias(frame, "y", "z", base="uniform", base_share=0.5)
    given = {f"x{i}": "c" for i in range(8)}
    row = pd.DataFrame([{**given, "x8": "a", "x9": "b", "z": "p", "y": "no"}])
    log_evidence = (
        fit.distribution.condition(given).tilted.log_partition
        - fit.distribution.tilted.log_partition
    )
    assert np.exp(log_evidence) < 1e-8
    drawn = fit.sample(100_000, given=given, random_state=4, iid=True)
    assert (drawn[list(given)] == "c").all().all()
    conditional = fit.distribution.condition(given)
    assert min(pairwise_p_values(conditional, fit.domain.encode(drawn), given)) > 1e-4
    ratio = conditional.probability(row) / fit.distribution.probability(row)
    assert np.log(ratio[0]) == pytest.approx(-log_evidence, abs=1e-9)


def test_quota_is_within_one_row_of_the_exact_table(fit):
    drawn = fit.sample(1237, random_state=0)
    exact = fit.distribution.marginal(["y", "sex", "race"]).set_index(
        ["y", "sex", "race"]
    )["probability"]
    counts = (
        drawn.groupby(["y", "sex", "race"]).size().reindex(exact.index, fill_value=0)
    )
    assert (abs(counts - 1237 * exact) < 1).all()
    assert len(drawn) == 1237


def test_probability_sums_to_one_over_a_small_domain():
    frame = mixed_frame(5)[["sex", "race", "y", "degree", "union"]]
    fit = debias(frame, "y", ["sex", "race"])
    domain = fit.domain
    grid = np.indices(domain.sizes).reshape(len(domain.sizes), -1).T
    everything = domain.decode(grid, rng=np.random.default_rng(0))
    probability = fit.distribution.probability(everything)
    assert probability.sum() == pytest.approx(1, abs=1e-12)
    table = fit.distribution.marginal(list(domain.names))
    np.testing.assert_allclose(table["probability"], probability, atol=1e-14)
    for size in (1, 2):
        for names in itertools.permutations(domain.names, size):
            own = (
                everything.assign(probability=probability)
                .groupby(list(names), observed=True)["probability"]
                .sum()
            )
            shown = fit.distribution.marginal(list(names)).set_index(list(names))[
                "probability"
            ]
            np.testing.assert_allclose(
                own.to_numpy(), shown.reindex(own.index).to_numpy(), atol=1e-12
            )


def test_condition_is_bayes_and_stacks(fit):
    distribution = fit.distribution
    both = distribution.marginal(["degree", "city"]).set_index(["degree", "city"])[
        "probability"
    ]
    given = distribution.marginal("degree", given={"city": "w"}).set_index("degree")[
        "probability"
    ]
    np.testing.assert_allclose(
        given, both.xs("w", level="city") / both.xs("w", level="city").sum(), atol=1e-12
    )
    once = distribution.condition({"city": "w", "sex": "M"})
    twice = distribution.condition({"city": "w"}).condition({"sex": "M"})
    np.testing.assert_allclose(once.tilted.levels, twice.tilted.levels, atol=1e-14)
    with pytest.raises(EvidenceError, match="probability zero"):
        distribution.condition({"city": "w"}).condition({"city": "x"})


def test_expectation_is_the_mean_of_drawn_rows(fit):
    drawn = fit.sample(50_000, random_state=3, iid=True)
    for name in ("age", "hours", "union"):
        exact = fit.distribution.expectation(name)
        error = drawn[name].std() / np.sqrt(len(drawn))
        assert exact == pytest.approx(drawn[name].mean(), abs=5 * error)
    given = fit.distribution.expectation("age", given={"y": 2})
    assert given > fit.distribution.expectation("age", given={"y": 0})


@pytest.mark.more
@pytest.mark.parametrize("n", [60, 1000])
def test_intervals_of_quota_draws_hold_their_rates(fit, n):
    intervals = fit.certificate.interval(n)
    wide = fit.certificate.interval(n, iid=True)
    inside = dict.fromkeys(intervals, 0)
    for seed in range(30):
        drawn = fit.sample(n, random_state=seed)
        table, groups = (
            pd.crosstab(drawn["sex"], drawn["y"], normalize="index"),
            drawn["sex"].value_counts(),
        )
        rates = {"representation_rate": groups.min() / groups.max()}
        rates["statistical_rate"] = (table.min() / table.max()).min()
        for kind, rate in rates.items():
            low, high = intervals[kind]["sex"]
            inside[kind] += low - 1e-12 <= rate <= high + 1e-12
    for kind, number in inside.items():
        assert number >= 25, kind  # 28 or 29 are expected
        (low, high), (lower, higher) = intervals[kind]["sex"], wide[kind]["sex"]
        assert high - low < (higher - lower) / 2, kind


def test_intervals_are_as_wide_as_the_confidence_asks(fit):
    """Quantiles of rates that are drawn and counted here, from the fair table alone."""
    table = fit.distribution.marginal(["y", "sex", "race"])["probability"].to_numpy()
    drawn = (
        np.random.default_rng(12)
        .multinomial(800, table / table.sum(), size=6000)
        .reshape(-1, 3, 2, 3)
    )
    by_sex = drawn.sum(axis=3)
    rates = by_sex / by_sex.sum(axis=1, keepdims=True)
    expected = {
        "representation_rate": (
            by_sex.sum(axis=1).min(axis=1) / by_sex.sum(axis=1).max(axis=1)
        ),
        "statistical_rate": (rates.min(axis=2) / rates.max(axis=2)).min(axis=1),
    }
    for kind, values in expected.items():
        found = {
            level: fit.certificate.interval(800, iid=True, confidence=level)[kind][
                "sex"
            ]
            for level in (0.4, 0.7, 0.9)
        }
        for level, interval in found.items():
            wanted = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
            np.testing.assert_allclose(interval, wanted, atol=0.012)
        lows, highs = zip(*found.values(), strict=True)
        assert lows[0] - lows[2] > 0.03
        assert sorted(lows, reverse=True) == list(lows)
        assert sorted(highs) == list(highs)
    assert fit.certificate.interval(800, iid=True) == fit.certificate.interval(
        800, iid=True, confidence=0.95
    )


@pytest.mark.parametrize("confidence", [1.0, "0.9"])
def test_a_confidence_that_is_no_share_is_refused(fit, confidence):
    with pytest.raises(InputError, match=r"confidence is .*between 0 and 1"):
        fit.certificate.interval(100, confidence=confidence)


@pytest.mark.more
def test_real_data_sampler_of_the_papers_configuration():
    frame = realdata.compas_small()
    fit = paper.fit(frame, outcome="recid", protected="race")
    drawn = fit.sample(100_000, random_state=1, iid=True)
    assert min(pairwise_p_values(fit.distribution, fit.domain.encode(drawn))) > 1e-4
