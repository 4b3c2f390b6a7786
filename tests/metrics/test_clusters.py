"""metrics/effective_counts.py: people who are not independent, against variances written
out, and simulation.
"""

import re
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.special import betaincinv
from scipy.stats import norm, t

import fairmaxent
from clifiles import run
from fairmaxent import check, inspect
from fairmaxent.fairness.compare import Compare
from fairmaxent.metrics import representation_rate, statistical_rate
from fairmaxent.metrics.effective_counts import effects_of, student_deviate
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.groups import Comparison
from fairmaxent.metrics.intervals import ratio_ends


def draw(rng, design, clusters=30, alike=0.1, rates=(0.3, 0.5), size=10):
    """Clusters whose own rates are beta-distributed, both groups' by one quantile.

    Or where one group has much in a cluster, the other has little: "opposite".
    """
    cluster = np.repeat(np.arange(clusters), size)
    if design == "within":  # each cluster has one group
        group = cluster % 2
    elif design in ("across", "opposite"):
        group = np.tile(np.arange(size) % 2, clusters)
    else:
        shares = np.repeat(rng.beta(1, 1, clusters), size)
        group = (rng.random(len(cluster)) < shares).astype(int)
    quantile = rng.random(clusters)
    total = 1 / alike - 1
    quantiles = [quantile, quantile]
    if design == "opposite":
        quantiles = [quantile, 1 - quantile]
    own = np.stack(
        [
            betaincinv(p * total, (1 - p) * total, among)
            for p, among in zip(rates, quantiles, strict=True)
        ]
    )
    good = rng.random(len(cluster)) < own[group, cluster]
    return pl.DataFrame({"household": cluster, "sex": group, "hired": good})


def rate(frame, **options):
    return statistical_rate(frame, "hired", "sex", favourable=True, **options)


def table_of(frame, weight=None, protected="sex"):
    compare = Compare(
        protected,
        groups="joint",
        weight=weight,
        favourable=True,
        cluster="household",
    )
    (rows,) = Comparison(compare, "hired").grouped(frame)
    return GroupedTable.of_outcomes(rows, True)


@pytest.mark.parametrize("design", ["within", "across", "mixed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_variances_are_those_written_out(design, weighted):
    """Of a rate: residuals over each cluster, squared, G / (G − 1)."""
    rng = np.random.default_rng(1)
    frame = draw(rng, design, alike=0.3).with_columns(
        w=pl.Series(rng.uniform(0.5, 2, 300))
    )
    table = table_of(frame, "w" if weighted else None)
    people = frame.to_pandas()
    people["weight"] = people["w"] if weighted else 1.0
    for group, own in people.groupby("sex"):
        p = np.average(own["hired"], weights=own["weight"])
        moves = own["weight"] * (own["hired"] - p) / own["weight"].sum()
        sums = moves.groupby(own["household"]).sum()
        alone = p * (1 - p) / table.effective.sizes[0, group]
        expected = (sums**2).sum() * len(sums) / (len(sums) - 1) / alone
        assert table.dependence.effects[0, group] == pytest.approx(max(expected, 1))
        assert table.dependence.freedom[0, group] <= len(sums) - 1


@pytest.mark.parametrize("design", ["within", "across", "opposite"])
def test_groups_tell_less_about_their_ratio_where_they_are_opposite(design):
    """By the variance of the difference of their log rates, written out."""
    frame = draw(np.random.default_rng(15), design, clusters=200, alike=0.5)
    table = table_of(frame)
    people = frame.to_pandas()
    rates = people.groupby("sex")["hired"].transform("mean")
    sizes = people.groupby("sex")["hired"].transform("size")
    people["move"] = (people["hired"] - rates) / (sizes * rates)
    moves = people.pivot_table(
        index="household", columns="sex", values="move", aggfunc="sum", fill_value=0
    )
    together = ((moves[0] - moves[1]) ** 2).sum() / (moves**2).sum().sum()
    assert table.dependence.opposed[0, 0, 1] == pytest.approx(max(together, 1.0))
    assert (together > 1.3) == (design == "opposite")
    groups = np.arange(2)
    counts = table.known(0.95)[0, groups]
    less = table.compare(0, groups, 0.95).counts
    factor = table.dependence.opposed[0, 0, 1]
    np.testing.assert_allclose(less.positives * factor, counts.positives)
    np.testing.assert_allclose(less.rates, counts.rates)


@pytest.mark.parametrize("design", ["within", "across", "mixed"])
def test_variances_of_shares_are_those_written_out(design):
    frame = draw(np.random.default_rng(14), design)
    (rows,) = Comparison(Compare("sex", cluster="household")).grouped(frame)
    table = GroupedTable.of_shares(rows)
    people = frame.to_pandas()
    for group, share in enumerate(table.rates[0]):
        moves = ((people["sex"] == group) - share) / len(people)
        sums = moves.groupby(people["household"]).sum()
        alone = share * (1 - share) / len(people)
        expected = (sums**2).sum() * 30 / 29 / alone
        assert table.dependence.effects[0, group] == pytest.approx(max(expected, 1))


@pytest.mark.parametrize("freedom", [2, 9, 29, 200])
def test_deviates_are_those_of_student(freedom):
    for probability in (0.9, 0.975, 0.999):
        student = t.ppf(probability, freedom)
        normal = norm.ppf(probability)
        # of few clusters somewhat longer intervals
        assert student_deviate(normal, np.array([freedom]))[0] == pytest.approx(
            student, rel=0.25 if freedom < 9 else 0.004
        )


def test_a_few_clusters_that_make_up_a_variance_leave_few_degrees():
    def freedom(sums):
        _, (degrees,) = effects_of(sums, np.zeros(40, dtype=int), np.ones(1))
        return degrees

    assert freedom(np.tile([1.0, -1.0], 20)) == 39
    assert freedom(np.append(np.full(39, 0.01), 3.0)) < 3


def test_people_alone_in_their_cluster_are_independent():
    frame = draw(np.random.default_rng(2), "mixed", clusters=400, size=1)
    alone = rate(frame)
    clustered = rate(frame, cluster="household")
    assert clustered.value == alone.value
    assert clustered.interval == pytest.approx(alone.interval, abs=0.006)
    for one, other in zip(clustered.groups, alone.groups, strict=True):
        assert one.interval == pytest.approx(other.interval, abs=0.006)


def test_copies_of_people_tell_nothing_new():
    """Each person four times, in a cluster: the intervals are those of the people."""
    frame = draw(np.random.default_rng(3), "within", clusters=200, size=1)
    copies = pl.concat([frame] * 4)
    assert rate(copies, cluster="household").interval == pytest.approx(
        rate(frame).interval, abs=0.02
    )
    shares = representation_rate(copies, "sex", cluster="household")
    assert shares.interval == pytest.approx(
        representation_rate(frame, "sex").interval, abs=0.02
    )
    means = copies.with_columns(chance=pl.col("hired") * 0.5 + 0.2)
    how = {"as_probability": True, "cluster": "household"}
    few = statistical_rate(
        means.head(200), "chance", "sex", favourable=True, as_probability=True
    )
    many = statistical_rate(means, "chance", "sex", favourable=True, **how)
    assert many.interval == pytest.approx(few.interval, abs=0.02)


@pytest.mark.some(1)
@pytest.mark.parametrize("design", ["within", "across", "mixed"])
def test_nobody_tells_more_for_being_in_a_cluster(design):
    rng = np.random.default_rng(4)
    for _ in range(5):
        frame = draw(rng, design)
        with_it = rate(frame, cluster="household")
        assert with_it.interval[0] <= rate(frame).interval[0] + 1e-9
        shares = representation_rate(frame, "sex", cluster="household")
        without = representation_rate(frame, "sex")
        assert shares.interval[0] <= without.interval[0] + 1e-9
        assert (table_of(frame).dependence.effects >= 1).all()


def test_nobody_has_the_outcome_in_a_group():
    frame = draw(np.random.default_rng(5), "within").with_columns(
        hired=pl.col("hired") & (pl.col("sex") == 0)
    )
    found = rate(frame, cluster="household")
    assert found.value == 0
    assert found.interval[0] == 0
    assert rate(frame).interval[1] < found.interval[1] < 1


def test_a_group_of_one_cluster_says_nothing():
    frame = draw(np.random.default_rng(6), "within").with_columns(
        sex=pl.when(pl.col("household") == 3).then(2).otherwise(pl.col("sex"))
    )
    found = rate(frame, cluster="household", smallest_group=0)
    low, high = found.groups[2].interval
    assert low < 0.001
    assert high > 0.999


def test_probabilities_that_are_all_0_or_1_have_clusters_too():
    frame = draw(np.random.default_rng(13), "within", alike=0.3)
    sure = frame.with_columns(chance=pl.col("hired").cast(float))
    found = statistical_rate(
        sure, "chance", "sex", favourable=1, as_probability=True, cluster="household"
    )
    assert found.interval == pytest.approx(rate(frame, cluster="household").interval)


def test_check_counts_clusters_wherever_the_rows_are():
    rng = np.random.default_rng(7)
    frame = draw(rng, "mixed").with_columns(w=pl.Series(rng.uniform(0.5, 2, 300)))
    how = {"favourable": True, "statistical_rate": 0.8, "confident": True}
    for weight in (None, "w"):
        wanted = rate(
            frame, cluster="household", weight=weight, confidence=1 - 0.8 * 0.05
        )
        for table in (frame, frame.to_pandas(), frame.lazy()):
            found = check(
                table, "hired", "sex", cluster="household", weight=weight, **how
            )
            (one,) = found.findings
            assert one.rate.interval == pytest.approx(wanted.interval)
            assert "same 'household' being alike" in str(found)
    plain = check(frame, "hired", "sex", **how)
    assert "Intervals assume that people are independent of each other." in str(plain)


def test_more_clusters_are_needed_for_an_answer_if_people_are_alike():
    frame = draw(np.random.default_rng(8), "within", clusters=60, alike=0.3)
    how = {"favourable": True, "statistical_rate": 0.65, "confident": True}
    alone = check(frame, "hired", "sex", **how).findings[0]
    alike = check(frame, "hired", "sex", cluster="household", **how).findings[0]
    assert alone.needed
    assert max(alike.needed.values()) > 2 * max(alone.needed.values())


def test_inspect_takes_clusters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = draw(np.random.default_rng(9), "within", clusters=60).with_columns(
        pl.col("sex").replace_strict({0: "f", 1: "m"}),
    )
    widths = []
    for cluster in (None, "household"):
        found = inspect(frame, "hired", "sex", favourable=True, cluster=cluster)
        low, high = found.verdicts[0].gap.interval
        widths.append(high - low)
    assert widths[1] > 1.1 * widths[0]
    frame.write_csv("t.csv")
    shown = run(
        "inspect", "t.csv", "--protected", "sex", "--cluster", "household"
    ).stdout
    assert "ranges allow for people of the same 'household' being alike" in shown
    plain = run("inspect", "t.csv", "--protected", "sex").stdout
    assert re.search("ranges assume that people are independent .* --cluster", plain)


def test_the_ratio_over_strata_takes_no_clusters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = draw(np.random.default_rng(10), "mixed")
    frame = frame.with_columns(region=pl.col("household") % 3)
    how = {"within": "region", "cluster": "household"}
    said = "cluster cannot go together with within: .* leave one of them out"
    with pytest.raises(fairmaxent.InputError, match=said):
        inspect(frame, "hired", "sex", **how)
    frame.write_csv("t.csv")
    typed = ("--within", "region", "--cluster", "household")
    result = run("inspect", "t.csv", "--protected", "sex", *typed, code=None)
    assert result.exit_code in (2, 3)
    assert "--cluster cannot go together with --within" in result.stderr


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("sex", "named twice"),
        ("hired", "named twice"),
        ("w", "named twice"),
        ("few", "has 9 different values; of fewer than 10 clusters"),
        ("gaps", "missing values; give everybody"),
        ("none", "no column 'none'"),
        (["household"], "is a list; name a column"),
    ],
)
def test_what_cannot_be_a_cluster(cluster, said):
    frame = draw(np.random.default_rng(11), "mixed").with_columns(
        few=pl.col("household") % 9,
        gaps=pl.when(pl.col("household") > 3).then(pl.col("household")),
        w=pl.lit(1.0),
    )
    with pytest.raises(fairmaxent.errors.FairMaxEntError, match=said):
        rate(frame, cluster=cluster, weight="w")


def test_exact_rates_have_no_clusters():
    frame = draw(np.random.default_rng(12), "mixed")
    fit = fairmaxent.debias(frame, "hired", "sex", favourable=True, estimate=None)
    with pytest.raises(fairmaxent.InputError, match="leave out cluster"):
        rate(fit, cluster="household")


def covered(seed, cell, runs):
    """How often the interval of the ratio holds it.

    Samples are drawn as one: they differ in their clusters, and in their groups.
    """
    design, clusters, alike, rates = cell
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(runs // 100):
        frame = draw(rng, design, 100 * clusters, alike, rates)
        frame = frame.with_columns(sample=pl.col("household") // clusters)
        table = table_of(frame, protected=["sample", "sex"])
        pairs = np.arange(len(table.rows.labels)).reshape(-1, 2)
        assert [table.rows.labels[group] for group in pairs[7]] == [(7, 0), (7, 1)]
        outcome = np.zeros((len(pairs), 1), dtype=int)
        low, high = ratio_ends([table.compare(outcome, pairs, 0.95)], 0.95)
        truth = min(rates) / max(rates)
        held += ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).sum()
    return held / runs


CELLS = list(
    product(
        ("within", "across", "mixed", "opposite"),
        (30, 60),
        (0.05, 0.1),
        ((0.1, 0.1), (0.1, 0.2), (0.3, 0.3), (0.3, 0.5), (0.5, 0.5)),
    )
)


@pytest.mark.more
@pytest.mark.parametrize("design", ["within", "across", "mixed"])
def test_intervals_cover(design):
    """Without clusters, 85 % of those within."""
    share = covered(1, (design, 30, 0.1, (0.3, 0.5)), 400)
    assert share >= 0.92


def test_intervals_cover_where_groups_are_opposite():
    """84 % of them, as if groups shared no clusters."""
    assert covered(3, ("opposite", 60, 0.4, (0.3, 0.5)), 400) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_intervals_cover_at_least_93_in_100(cell):
    assert covered(20, cell, 2000) >= 0.93
