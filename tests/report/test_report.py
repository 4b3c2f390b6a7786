"""The numbers of a report, against group-by, other libraries, and brute force."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

import fairmaxent
from fairmaxent.report import build_report, refits
from fairmaxent.report.shares import LARGEST_MAP, MOST_LEVELS, _chance, cramers_v
from mixed import TABLES
from reportforms import html_report, markdown_report
from tables import as_table, random_frame, rates_of


@pytest.fixture(scope="module")
def frame():
    return random_frame(np.random.default_rng(4), [2, 3], 2)


@pytest.fixture(scope="module")
def fit(frame):
    return fairmaxent.debias(
        frame,
        "y",
        ["z0", "z1"],
        favourable="o1",
        representation_rate=1.0,
        random_state=5,
    )


@pytest.fixture(scope="module")
def sample(fit):
    return fit.sample(333, random_state=8)


@pytest.fixture(scope="module")
def report(fit, frame, sample):
    return build_report(fit, data=frame, result=sample, trade_off=False)


def plain_frame(rows=400, seed=0):
    """Only a few levels in each column, so that rows repeat."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows, p=[0.3, 0.7])
    frame = pd.DataFrame(
        {
            "sex": sex,
            "y": np.where(
                rng.random(rows) < np.where(sex == "f", 0.2, 0.5), "yes", "no"
            ),
        }
    )
    others = {"x": list("abcde"), "u": [1, 2, 3], "v": list("pqrs")}
    return frame.assign(
        **{name: rng.choice(levels, rows) for name, levels in others.items()}
    )


def test_rates_and_worst_pairs_are_those_of_group_by(report, frame, sample):
    assert [(rate.kind, rate.grouping) for rate in report.rates] == [
        *(("representation_rate", name) for name in ("z0", "z1")),
        *(("statistical_rate", name) for name in ("z0", "z1")),
    ]
    for rate in report.rates:
        place = ["representation_rate", "statistical_rate"].index(rate.kind)
        assert rate.before == pytest.approx(
            rates_of(as_table(frame), [rate.grouping], "y", "o1")[place]
        )
        assert rate.delivered == pytest.approx(
            rates_of(as_table(sample), [rate.grouping], "y", "o1")[place]
        )
        assert rate.wanted == 1.0
        assert rate.achieved == pytest.approx(1.0, abs=1e-7)
        assert rate.met_exactly is True
        assert rate.met is (rate.delivered > 1 - 1e-6)
        assert 0 < rate.interval[0] < rate.interval[1] <= 1
    shares = frame["z1"].value_counts()
    rates = (frame["y"] == "o1").groupby(frame["z1"]).mean()
    by_name = {(rate.kind, rate.grouping): rate.worst_before for rate in report.rates}
    assert (
        by_name["representation_rate", "z1"]
        == f"{shares.idxmin()} against {shares.idxmax()}"
    )
    assert (
        by_name["statistical_rate", "z1"]
        == f"{rates.idxmin()} against {rates.idxmax()}, y = o1"
    )


def test_marginals_are_value_counts_before_and_exact_after(report, fit, frame):
    assert [own.name for own in report.marginals[:3]] == ["y", "z0", "z1"]
    assert [own.role for own in report.marginals] == [
        "outcome",
        "protected",
        "protected",
        "other",
        "other",
        "other",
    ]
    distances = [own.distance for own in report.marginals[3:]]
    assert distances == sorted(distances, reverse=True)
    for own in report.marginals:
        after = fit.distribution.marginal(own.name)["probability"]
        assert [shift.after for shift in own.shifts] == pytest.approx(after.tolist())
        assert own.distance == pytest.approx(
            sum(abs(shift.after - shift.before) for shift in own.shifts) / 2
        )
        if own.name != "x1":  # binned
            before = frame[own.name].astype(str).value_counts(normalize=True)
            assert {shift.label: shift.before for shift in own.shifts} == pytest.approx(
                before.to_dict()
            )


def test_intersections_are_named_and_one_that_nobody_has_is_not_listed():
    frame = plain_frame()
    frame["z"] = np.where(
        frame["sex"] == "f",
        "p",
        frame["x"].map(lambda value: "p" if value < "c" else "q"),
    )
    fit = fairmaxent.debias(
        frame,
        "y",
        ["sex", "z"],
        groups="joint",
        representation_rate=None,
        statistical_rate=0.5,
    )
    report = build_report(fit, trade_off=False)
    yes = [own for own in report.groups if own.outcome == "yes"]
    rates = (
        (frame["y"] == "yes").groupby([frame["sex"], frame["z"]]).agg(["size", "mean"])
    )
    expected = [
        (f"{sex} × {z}", *own)
        for (sex, z), own in zip(rates.index, rates.to_numpy(), strict=True)
    ]
    assert [own.group for own in yes] == ["f", "m", "p", "q", "f × p", "m × p", "m × q"]
    assert [(own.group, own.rows, own.rate_before) for own in yes[4:]] == expected
    assert report.rates[0].met is None


def test_associations_are_cramers_v_by_another_library(report, fit, frame):
    names = report.associations.names
    assert names[:3] == ("y", "z0", "z1")
    for first, second in itertools.combinations(
        [name for name in names if name != "x1"], 2
    ):
        i, j = names.index(first), names.index(second)
        for matrix, table in (
            (report.associations.before, pd.crosstab(frame[first], frame[second])),
            (
                report.associations.after,
                fit.distribution.marginal([first, second]).pivot(
                    index=first, columns=second, values="probability"
                ),
            ),
        ):
            statistic = (
                chi2_contingency(table.to_numpy(), correction=False).statistic
                / table.to_numpy().sum()
            )
            expected = np.sqrt(statistic / (min(table.shape) - 1))
            assert matrix[i][j] == matrix[j][i] == pytest.approx(expected, abs=1e-7)


def test_pairs_are_ranked_by_what_is_more_than_chance():
    """Two columns of nearly unique values look closely related, and less so after the
    fit; that means nothing.
    """
    rng = np.random.default_rng(7)
    rows = 250
    sex = rng.choice(["f", "m"], rows)
    frame = pd.DataFrame(
        {
            "sex": sex,
            "part": rng.integers(0, 50, rows).astype(str),
            "kind": rng.integers(0, 40, rows).astype(str),
            "job": np.where(rng.random(rows) < 0.8, sex, "x"),
            "y": np.where(
                rng.random(rows) < np.where(sex == "f", 0.45, 0.6), "yes", "no"
            ),
        }
    )
    fit = fairmaxent.debias(
        frame, "y", "sex", base="product", base_share=0.7, random_state=0, estimate=None
    )
    report = build_report(fit, trade_off=False)
    known = report.associations
    first, second = known.names.index("part"), known.names.index("kind")
    by_chance = known.before[first][second] - known.after[first][second]
    real = next(
        shift for shift in known.shifts if (shift.first, shift.second) == ("y", "sex")
    )
    # by the plain difference alone it would stand above
    assert by_chance > real.before - real.after
    for shift in known.shifts:
        assert abs(shift.after - shift.before) > shift.chance
    assert not any(
        {shift.first, shift.second} & {"part", "kind"} for shift in known.shifts
    )
    assert "part, kind" not in markdown_report(report)
    assert (
        f"| y, sex | {real.before:.3f} | {real.after:.3f} | {real.chance:.3f} |"
        in markdown_report(report)
    )


SHAPES = [(2, 3, False), (40, 9, False), (60, 60, False), (12, 30, True)]


@pytest.mark.parametrize(("first", "second", "weighted"), SHAPES)
def test_what_chance_makes_of_unrelated_columns_is_simulated(first, second, weighted):
    """The formula against shuffled columns, for many levels and for few rows that count
    often.
    """
    rng = np.random.default_rng(first)
    rows = 500
    a, b = rng.integers(0, first, rows), rng.integers(0, second, rows)
    weights = rng.exponential(size=rows) if weighted else np.ones(rows)
    seen = []
    for _ in range(100):
        table = np.zeros((first, second))
        np.add.at(table, (a, rng.permutation(b)), weights)
        seen.append(cramers_v(table) ** 2)
    frame = pd.DataFrame(
        {
            "y": np.where(a % 2, "yes", "no"),
            "a": a.astype(str),
            "b": b.astype(str),
            "w": weights,
        }
    )
    fit = fairmaxent.debias(
        frame,
        "y",
        "a",
        weight="w",
        statistical_rate=None,
        base_share=0,
        domain=None,
        estimate=None,
        compare_missing=True,
    )
    chance = _chance(fit, [1, 2], fit.distribution_of_data)
    assert np.mean(seen) == pytest.approx(chance[0, 1] ** 2, rel=0.2)


def test_a_pair_that_did_not_change_is_not_among_those_that_changed_most():
    frame = plain_frame()
    fit = fairmaxent.debias(
        frame, "y", "sex", statistical_rate=None, base_share=0, estimate=None
    )
    report = build_report(fit, trade_off=False)
    assert report.associations.shifts == ()
    for text in (markdown_report(report), html_report(report)):
        assert "No pair changed by more than that." in text


def test_copies_by_brute_force():
    frame = plain_frame()
    frame["number"] = np.random.default_rng(2).normal(size=len(frame)).round(1)
    fit = fairmaxent.debias(frame, "y", "sex", base_share=0.3, random_state=1)
    sample = fit.sample(700, random_state=2)
    own = build_report(fit, data=frame, result=sample, trade_off=False).copies
    real, drawn = [
        list(map(tuple, table.to_numpy().tolist())) for table in (frame, sample)
    ]
    assert own.rows == 700
    assert own.same_values == sum(row in real for row in drawn) / 700 > 0
    assert own.same_values_as_one == sum(real.count(row) == 1 for row in drawn) / 700
    assert own.twins_in_data == sum(real.count(row) > 1 for row in real) / len(real) > 0
    known, new = (
        set(map(tuple, fit.domain.encode(table).tolist())) for table in (frame, sample)
    )
    assert len(known & new)
    codes = map(tuple, fit.domain.encode(sample).tolist())
    assert (
        own.same_levels == sum(code in known for code in codes) / 700 > own.same_values
    )


def test_the_expected_share_of_copies_is_the_mass_of_the_rows_there_are():
    frame = plain_frame()
    fit = fairmaxent.debias(frame, "y", "sex", base_share=0.6)
    own = build_report(fit, trade_off=False).copies
    assert own.expected_same_levels == pytest.approx(
        fit.distribution.probability(frame.drop_duplicates()).sum()
    )
    assert (own.same_values, own.same_values_as_one, own.twins_in_data) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize("change", ["rows", "order"])
def test_another_table_is_refused(fit, frame, change):
    other = frame.iloc[:-1] if change == "rows" else frame.iloc[::-1]
    with pytest.raises(
        fairmaxent.InputError, match="pass the table that it was made from"
    ):
        build_report(fit, data=other, trade_off=False)


@pytest.mark.some(1)
@pytest.mark.parametrize("weight", [None, "w"])
def test_trade_off_points_are_fits_of_the_same_table(weight):
    frame = plain_frame()
    frame["number"] = np.random.default_rng(2).normal(size=len(frame))
    if weight:
        frame["w"] = np.random.default_rng(3).uniform(0.5, 2.0, len(frame))
    asked = {"statistical_rate": 0.8, "representation_rate": None, "weight": weight}
    fit = fairmaxent.debias(frame, "y", "sex", **asked)
    found = build_report(fit).trade_off
    assert found.skipped is None
    assert [
        (point.varied, point.value) for point in found.points if point.is_this_fit
    ] == [
        ("base_share", 0.2),
        ("rates", 0.8),
    ]
    for point in found.points:
        options = (
            {"base_share": point.value}
            if point.varied == "base_share"
            else {"statistical_rate": point.value}
        )
        other = fairmaxent.debias(
            frame, "y", "sex", domain=fit.domain, **asked | options
        )
        assert point.distance == pytest.approx(
            other.certificate.distance["from_data"], rel=1e-9
        )
        assert point.effective_rows == pytest.approx(
            other.certificate.effective_rows, rel=1e-9
        )


@pytest.mark.more
def test_rates_by_column_are_varied_where_they_were_asked_for(frame):
    options = {"protected": ["z0", "z1"], "representation_rate": None}
    fit = fairmaxent.debias(
        frame, "y", **options, statistical_rate={"z0": 0.9, "z1": None}
    )
    points = build_report(fit).trade_off.points
    assert [point.value for point in points if point.varied == "rates"] == [
        0.25,
        0.5,
        0.8,
        0.9,
        1.0,
    ]
    least = fairmaxent.debias(
        frame, "y", **options, statistical_rate={"z0": 0.25}, domain=fit.domain
    )
    found = next(
        point for point in points if point.value == 0.25 and point.varied == "rates"
    )
    assert found.distance == pytest.approx(least.certificate.distance["from_data"])


@pytest.mark.more
def test_a_point_that_cannot_be_reached_says_why():
    frame = plain_frame()
    frame.loc[frame["sex"] == "f", "y"] = "no"
    fit = fairmaxent.debias(frame, "y", "sex")
    first = build_report(fit).trade_off.points[0]
    assert (first.value, first.distance, first.effective_rows, first.seen) == (
        0.0,
        None,
        None,
        None,
    )
    assert "y = yes, sex = f" in first.problem


@pytest.mark.parametrize("limit", ["LARGEST_TABLE", "LARGEST_WIDTH"])
def test_a_large_table_has_no_trade_off(fit, monkeypatch, limit):
    monkeypatch.setattr(refits, limit, 5)
    found = build_report(fit).trade_off
    assert found.points == ()
    assert "the table is large" in found.skipped


@pytest.mark.more
def test_the_papers_configurations_have_a_report():
    frame = plain_frame()
    fit = fairmaxent.paper.fit(frame, outcome="y", protected="sex", tau=0.9)
    report = build_report(fit, data=frame)
    assert "paper" in report.trade_off.skipped
    assert "θ^w, τ = 0.9" in report.wishes[-1]
    space = {"frame": frame}
    exec(report.call, space)
    pd.testing.assert_frame_equal(space["rows"], fit.sample(len(frame), random_state=0))


def test_every_wish_is_a_sentence_and_design_weights_count_before():
    asked = {
        "target": {"sex": {"f": 0.6, "m": 0.4}, "u": None},
        "forbid": [{"sex": "m", "x": "a"}],
        "base_share": 0.25,
    }
    rates = {"representation_rate": None, "statistical_rate": 0.75}
    fit = fairmaxent.debias(
        plain_frame(), "y", "sex", favourable="yes", **rates, **asked
    )
    *wishes, last = build_report(fit, trade_off=False).wishes
    assert (
        "The prior has a share of 0.25 from the base 'tree', a model of the same rows"
        " that keeps the strongest" in last
    )
    assert wishes == [
        (
            "y = yes shall be at least 0.75 times as common in each group of sex as in any"
            " other."
        ),
        "Shares of sex: f 0.6, m 0.4.",
        "u keeps the shares that it has in the data.",
        "y keeps the shares that it has in the data.",
        "Never: sex = m, x = a.",
        "Otherwise the result is as close to the data as possible.",
    ]
    frame = plain_frame().assign(
        w=lambda table: np.where(table["sex"] == "f", 3.0, 1.0)
    )
    fit = fairmaxent.debias(frame, "y", "sex", weight="w")
    report = build_report(fit, data=frame, trade_off=False)
    mass = frame.groupby("sex")["w"].sum() / frame["w"].sum()
    assert {own.group: own.share_before for own in report.groups} == pytest.approx(
        mass.to_dict()
    )
    assert "Rows are weighted by the design weights in w." in report.wishes


@pytest.mark.more
def test_a_stored_fit_has_the_same_report(fit, frame, tmp_path):
    fit.save(tmp_path / "fit.fme")
    loaded = fairmaxent.load(tmp_path / "fit.fme")
    found, expected = (
        build_report(own, data=frame, trade_off=False) for own in (loaded, fit)
    )
    assert found.to_dict() == expected.to_dict()


@pytest.mark.more
def test_every_kind_of_column_and_library():
    found = []
    for make in TABLES.values():
        table = make()
        fit = fairmaxent.debias(table, "member", "sex", base="product", random_state=0)
        found.append(build_report(fit, data=table, trade_off=False))
    for report in found:
        assert report.marginals == found[0].marginals
        assert report.associations == found[0].associations
        assert report.copies == found[0].copies


def test_the_map_has_no_columns_of_very_many_levels(tmp_path):
    """A table of each pair would need gigabytes; loading compares each label with its
    value.
    """
    rows = 2 * MOST_LEVELS + 4
    many = {
        name: [f"{name}{row // 2}" for row in range(rows)] for name in ("plan", "shop")
    }
    frame = pd.DataFrame(
        {
            **many,
            "y": ["a", "b", "b", "a"] * (rows // 4),
            "sex": ["f", "m"] * (rows // 2),
        }
    )
    domain = fairmaxent.Domain.infer(frame, max_levels=rows)
    fit = fairmaxent.debias(
        frame,
        "y",
        "sex",
        domain=domain,
        keep_columns=list(many),
        base="product",
        estimate=None,
    )
    fit.save(tmp_path / "fit")
    report = build_report(fairmaxent.load(tmp_path / "fit"), trade_off=False)
    assert report.associations.names == ("y", "sex")
    assert report.associations.left_out == len(many)
    assert "or that have more than 1,000 levels, are left out" in html_report(report)


@pytest.mark.more
def test_the_map_of_a_wide_table_keeps_what_tells_most():
    rng = np.random.default_rng(0)
    frame = plain_frame()
    for number in range(40):
        frame[f"c{number}"] = rng.choice(["0", "1"], len(frame))
    frame["proxy"] = np.where(rng.random(len(frame)) < 0.9, frame["sex"], "m")
    own = build_report(
        fairmaxent.debias(frame, "y", "sex"), trade_off=False
    ).associations
    assert len(own.names) == LARGEST_MAP == len(own.after)
    assert own.left_out == len(frame.columns) - LARGEST_MAP
    assert "proxy" in own.names
