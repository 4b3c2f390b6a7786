"""What was delivered is judged as well as the distribution: rows, weights and rows to
add, against group-by.
"""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent
from fairmaxent import debias
from fairmaxent.document.words import percent
from fairmaxent.report import Source, build_report
from fairmaxent.report.delivered import absences, deliver, delivered_rates
from fairmaxent.telling.case import texts_of
from fairmaxent.telling.rates import reached_table, state_of, verdict
from reportforms import html_report, json_report, markdown_report
from tables import EQUAL_PROBABILITIES, as_table, random_frame, rates_of

MET_BY_BOTH = "Rates asked for: 2. Met by the distribution: 2;"


def verdict_of(report):
    return " ".join(texts_of(verdict(report.case)))


@pytest.fixture(scope="module")
def frame():
    return random_frame(np.random.default_rng(4), [2], 2)


@pytest.fixture(scope="module")
def fit(frame):
    return fairmaxent.debias(
        frame, "y", "z0", favourable="o1", representation_rate=1.0, random_state=5
    )


def by_kind(report):
    return {rate.kind: rate for rate in report.rates}


def expected(table):
    table = table if "probability" in table else as_table(table)
    return dict(
        zip(
            ("representation_rate", "statistical_rate"),
            rates_of(table, ["z0"], "y", "o1"),
            strict=True,
        )
    )


def test_many_rows_by_quota_meet_the_rates_but_for_rounding(fit):
    """0.9994 is no failure: nobody can be cut in two."""
    sample = fit.sample(5001, random_state=3)
    report = build_report(fit, result=sample, trade_off=False)
    rates = expected(sample)
    assert all(0.995 < rate < 1 - 1e-6 for rate in rates.values())
    for rate in report.rates:
        assert (rate.met_exactly, rate.met, rate.rounded) == (True, False, True)
        assert rate.gap == pytest.approx(1 - rates[rate.kind])
        assert state_of(rate, report.delivered_name) == (
            "good",
            "✓ met, rounded to whole rows",
        )
    assert verdict_of(report) == f"{MET_BY_BOTH} by the drawn rows: 2."
    assert "fall short" not in markdown_report(report)


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_groups_of_three_columns_are_within_one_row_and_the_report_says_what_that_makes(
    seed,
):
    frame = random_frame(np.random.default_rng(8), [3, 4, 6], 2, rows=1200)
    # a group of ten
    frame.loc[(frame["z2"] == "g5").to_numpy().nonzero()[0][10:], "z2"] = "g0"
    columns = ["z0", "z1", "z2"]
    fit = debias(
        frame,
        "y",
        columns,
        favourable="o1",
        representation_rate={"z0": 1.0},
        base_share=0.1,
    )
    drawn = fit.sample(1200, random_state=seed)
    report = build_report(fit, result=drawn, trade_off=False)
    gaps = []
    for column, rate in zip(
        columns,
        [rate for rate in report.rates if rate.kind == "statistical_rate"],
        strict=True,
    ):
        fair = (
            fit.distribution.marginal([column, "y"])
            .set_index([column, "y"])["probability"]
            .unstack()
            * 1200
        )
        counts = drawn.groupby([column, "y"]).size().unstack()
        assert (abs(counts - fair) < 1).all(axis=None)
        assert (abs(counts.sum(axis=1) - fair.sum(axis=1)) < 1).all()
        reached = rates_of(as_table(drawn), [column], "y", "o1")[1]
        lowest, highest = (
            (fair["o1"] - 1) / (fair.sum(axis=1) + 1),
            (fair["o1"] + 1) / (fair.sum(axis=1) - 1),
        )
        assert lowest.min() / highest.max() <= reached == pytest.approx(rate.delivered)
        assert rate.rounded
        gaps.append(1 - reached)
    asked = [rate for rate in report.rates if rate.met is not None]
    short = sum(gap >= 0.005 for gap in gaps)
    assert short > 0
    assert f"by the drawn rows: {len(asked) - short}." in verdict_of(report)


def test_rows_within_strata_and_of_two_outcomes_are_within_one_row_too():
    frame = random_frame(np.random.default_rng(4), [2, 3], 2)
    for options, sums in (
        (
            {"outcome": "y", "within": "x2"},
            [["z0", "x2"], ["z1", "x2", "y"]],
        ),
        ({"outcome": ["y", "x2"]}, [["z0", "x2"], ["z1", "y"]]),
    ):
        fit = debias(frame, protected=["z0", "z1"], random_state=0, **options)
        drawn = fit.sample(401)
        for columns in sums:
            fair = (
                fit.distribution.marginal(columns).set_index(columns)["probability"]
                * 401
            )
            counts = drawn.groupby(columns).size().reindex(fair.index, fill_value=0)
            assert (abs(counts - fair) < 1).all()


def test_few_rows_by_quota_fall_short_and_that_is_said(fit):
    sample = fit.sample(9, random_state=3)
    report = build_report(fit, result=sample, trade_off=False)
    gap = 1 - min(expected(sample).values())
    assert gap > 0.1
    assert verdict_of(report) == f"{MET_BY_BOTH} by the drawn rows: 0."
    assert {state_of(rate, report.delivered_name)[0] for rate in report.rates} == {
        "short"
    }
    text = markdown_report(report)
    for rate in expected(sample).values():
        assert (
            f"met by the distribution, but the drawn rows are short by {1 - rate:.4f}"
            in text
        )
    assert "✓" not in text


def test_a_small_gap_that_whole_rows_do_not_explain_is_not_called_rounding(fit):
    """Rows that somebody changed may be near the rates, and yet not be the nearest
    whole rows.
    """
    rows = fit.sample(5001, random_state=3)
    changed = pd.concat(
        [rows, rows[(rows["y"] == "o1") & (rows["z0"] == "g0")].head(4)]
    )
    report = build_report(fit, result=changed, trade_off=False)
    assert max(rate.gap for rate in report.rates) < 0.005
    for rate in report.rates:
        short = (
            f"met by the distribution, but the drawn rows are short by {rate.gap:.4f}"
        )
        assert (rate.rounded, state_of(rate, report.delivered_name)) == (
            False,
            ("short", short),
        )
    assert verdict_of(report) == f"{MET_BY_BOTH} by the drawn rows: 0."


def test_rows_that_meet_the_rates_get_one(fit):
    sample = pd.concat(
        [
            fit.sample(50, given={"y": y, "z0": z})
            for y in ("o0", "o1")
            for z in ("g0", "g1")
        ]
    )
    report = build_report(fit, result=sample, trade_off=False)
    assert [rate.met for rate in report.rates] == [True, True]
    assert verdict_of(report) == f"{MET_BY_BOTH} by the drawn rows: 2."
    # on the first page and in the appendix
    assert markdown_report(report).count("✓ met") == 4


def test_a_target_is_met_by_its_shares_not_by_their_ratio(frame):
    shares = {"z0": {"g0": 0.3, "g1": 0.7}}
    fit = fairmaxent.debias(frame, "y", "z0", target=shares, random_state=1)
    exact = by_kind(build_report(fit, result=fit.sample(1000), trade_off=False))[
        "representation_rate"
    ]
    assert (exact.from_target, exact.met) == (True, True)
    shown = build_report(fit, result=fit.sample(1000), trade_off=False).case
    rows = reached_table(shown, [exact]).rows
    assert [row[1] for row in rows] == ["0.4286 (target)"]
    equal = pd.concat([fit.sample(50, given={"z0": group}) for group in ("g0", "g1")])
    other = by_kind(build_report(fit, result=equal, trade_off=False))[
        "representation_rate"
    ]
    assert other.delivered == 1.0 > other.wanted
    assert (other.met_exactly, other.met) == (True, False)
    wishes = build_report(fit, trade_off=False).wishes
    assert "Shares of z0: g0 0.3, g1 0.7." in wishes
    assert not any(
        "equally large" in wish or "times as large" in wish for wish in wishes
    )


def test_weights_are_judged_as_weights_no_row_is_new_and_wrong_ones_are_not_taken_for_fair(
    fit, frame
):
    weights = fit.weights()
    report = build_report(fit, data=frame, mode="weights", trade_off=False)
    rates = expected(frame.assign(probability=weights / weights.sum()))
    for rate in report.rates:
        assert rate.delivered == pytest.approx(rates[rate.kind], abs=1e-9)
        assert (rate.met, rate.interval) == (True, None)
    assert (report.copies, report.new_rows) == (None, 0)
    text = markdown_report(report)
    assert "All rows are real" in text
    assert "Drawn rows" not in text
    assert "Drawn rows" not in html_report(report)
    np.testing.assert_array_equal(run(report.call, frame)["weights"], weights)
    report = build_report(
        fit, result=np.ones(len(frame)), mode="weights", trade_off=False
    )
    for rate in report.rates:
        assert rate.delivered == pytest.approx(rate.before)
        assert rate.met is False
    with pytest.raises(
        fairmaxent.InputError, match="500 rows; pass one weight per row"
    ):
        build_report(fit, result=np.ones(3), mode="weights", trade_off=False)


def test_rows_to_add_are_judged_together_with_the_old_ones(fit, frame):
    added = fit.top_up(random_state=2)
    report = build_report(
        fit, data=frame, result=added, mode="top-up", seed=2, trade_off=False
    )
    rates = expected(pd.concat([frame, added]))
    assert {rate.kind: rate.delivered for rate in report.rates} == pytest.approx(rates)
    assert report.new_rows == report.copies.rows == len(added)
    assert f"{len(added):,} rows to be added to the 500" in report.summary()
    pd.testing.assert_frame_equal(run(report.call, frame)["added"], added)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "both"}, "mode is 'both'"),
        ({"mode": "weights", "iid": True}, "iid cannot go together with weights"),
    ],
)
def test_modes_that_do_not_exist_are_refused(fit, options, says):
    with pytest.raises(fairmaxent.InputError, match=says):
        build_report(fit, trade_off=False, **options)


def test_a_group_without_a_row_has_share_zero_and_an_outcome_without_one_compares_nothing(
    fit,
):
    only = fit.sample(30, given={"z0": "g0"})
    table = report_table(fit, only)
    rates = delivered_rates(fit, table)
    assert rates["representation_rate"] == {"z0": 0.0}
    # one group has nothing to be compared with
    assert rates["statistical_rate"] == {"z0": None}
    assert list(absences(fit, table)) == [
        "no row has z0 = g1: its share is 0, and it has no rate"
    ]
    report = build_report(fit, result=only, trade_off=False)
    assert report.alerts[0].startswith("no row has z0 = g1")
    assert by_kind(report)["statistical_rate"].met is False
    assert "| 0.0000 |" in markdown_report(report)
    only = fit.sample(40, given={"y": "o0"}, random_state=0)
    table = report_table(fit, only)
    assert delivered_rates(fit, table)["statistical_rate"] == {"z0": None}
    assert list(absences(fit, table)) == [
        "no row has y = o1, so groups cannot be compared by it"
    ]
    report = build_report(fit, result=only, trade_off=False)
    assert by_kind(report)["statistical_rate"].delivered is None


def test_a_group_that_was_removed_is_not_missed(frame):
    three = pd.concat([frame, frame.head(40).assign(z0="g2")])
    fit = fairmaxent.debias(
        three, "y", "z0", target={"z0": {"g0": 0.5, "g1": 0.5, "g2": 0.0}}
    )
    report = build_report(fit, result=fit.sample(100, random_state=0), trade_off=False)
    assert by_kind(report)["representation_rate"].delivered == 1.0
    assert not any(warning.startswith("no row has") for warning in report.warnings)


def run(call, frame):
    space = {"frame": frame}
    exec(call, space)
    return space


@pytest.mark.some(1)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_call_repeats_how_columns_were_read_and_rows_were_drawn(frame, library):
    table = frame.assign(id=range(500), w=np.linspace(0.5, 1.5, 500))
    table = table if library == "pandas" else pl.from_pandas(table)
    kept = table.drop(columns="id") if library == "pandas" else table.drop("id")
    options = {
        "bins": {"x1": [-2, 0, 1]},
        "kinds": {"x2": "categorical"},
        "max_levels": 3,
    }
    attributes = kept.drop(columns="w") if library == "pandas" else kept.drop("w")
    domain = fairmaxent.Domain.infer(attributes, weight=kept["w"].to_numpy(), **options)
    fit = fairmaxent.debias(kept, "y", "z0", weight="w", domain=domain)
    sample = fit.sample(77, iid=True, random_state=9)
    source = Source(file="data.csv", dropped=("id",), domain=options)
    report = build_report(
        fit, result=sample, iid=True, seed=9, source=source, trade_off=False
    )
    again = run(report.call, table)["rows"]
    assert again.equals(sample)


def test_missing_values_that_are_not_compared_do_not_lower_a_rate():
    """By a group-by of the delivered rows without them, in the report and on the
    command line alike.
    """
    rng = np.random.default_rng(0)
    sex = rng.choice(["m", "w"], 600, p=[0.85, 0.15])
    hired = np.where(rng.random(600) < np.where(sex == "m", 0.45, 0.2), "yes", "no")
    frame = pd.DataFrame({"sex": sex, "hired": hired, "x": rng.integers(0, 5, 600)})
    frame.loc[::60, "sex"] = None
    frame.loc[7::90, "hired"] = None
    fit = fairmaxent.debias(
        frame, "hired", "sex", favourable="yes", representation_rate=1.0, random_state=1
    )
    for sample in (fit.sample(600), fit.sample(600, iid=True)):
        known = sample.dropna(subset=["sex"])
        sizes = known["sex"].value_counts()
        shares = (
            (known.dropna(subset=["hired"])["hired"] == "yes")
            .groupby(known["sex"])
            .mean()
        )
        expected = {"representation_rate": sizes, "statistical_rate": shares}
        report = build_report(fit, data=frame, result=sample, trade_off=False)
        for rate in report.rates:
            assert rate.delivered == pytest.approx(
                expected[rate.kind].min() / expected[rate.kind].max()
            )
        after = delivered_rates(fit, report_table(fit, sample))
        assert after["statistical_rate"]["sex"] == pytest.approx(
            shares.min() / shares.max()
        )
        assert {one.name: one.rate_after for one in report.groups}[
            "sex = w"
        ] == pytest.approx(shares["w"])


def report_table(fit, sample):
    return deliver(fit, sample, mode="rows", iid=False, seed=None).table


COLUMNS = ["z0", "z1", "y", "x0", "x1", "x2"]


def frame_of(seed: int = 0, rows: int = 500) -> pd.DataFrame:
    """Some rows are equal, so that they share their copies."""
    frame = random_frame(np.random.default_rng(seed), (2, 3), 2, rows)
    frame["x1"] = (frame["x1"] * 20).round()
    return frame


def fitted(frame: pd.DataFrame, **options):
    return debias(
        frame,
        "y",
        ["z0", "z1"],
        favourable="o1",
        representation_rate=1.0,
        random_state=0,
        **options,
    )


def most_copies(
    real: pd.DataFrame, new: pd.DataFrame, columns, group: str
) -> pd.Series:
    """By group: how often a real row comes among the new ones, shared by the real rows
    that are equal.
    """
    copies = (new.value_counts(columns) / real.value_counts(columns)).dropna()
    return copies.groupby(group).max()


@pytest.mark.more
def test_copies_are_counted_in_the_delivered_rows():
    frame = frame_of()
    fit = fitted(frame)
    sample = fit.sample(800)
    costs = build_report(fit, data=frame, result=sample, trade_off=False).costs
    assert costs.counted
    for cost in costs.groups:
        level = cost.name.split(" = ")[1]
        assert cost.most_copies == pytest.approx(
            most_copies(frame, sample, COLUMNS, cost.grouping)[level]
        )
        assert cost.after == pytest.approx((sample[cost.grouping] == level).mean())
        assert cost.before == pytest.approx((frame[cost.grouping] == level).mean())
    (share,) = costs.outcomes
    assert (share.before, share.after) == pytest.approx(
        ((frame["y"] == "o1").mean(), (sample["y"] == "o1").mean())
    )
    cell = dict(part.split(" = ") for part in costs.worst_cell.name.split(", "))
    inside = [
        (table[list(cell)] == pd.Series(cell)).all(axis=1) for table in (frame, sample)
    ]
    worst = most_copies(frame[inside[0]], sample[inside[1]], COLUMNS, "y")
    assert costs.worst_cell.most_copies == pytest.approx(worst[cell["y"]])
    assert costs.worst_cell.after == pytest.approx(inside[1].mean())


@pytest.mark.more
@pytest.mark.parametrize(("seed", "model"), [(1, EQUAL_PROBABILITIES), (2, None)])
def test_a_relabelled_copy_may_have_any_outcome_and_old_rows_count_once_more(
    seed, model
):
    frame = frame_of(seed)
    fit = fitted(frame, model=model)
    new = fit.top_up() if model is None else fit.sample(len(frame))
    mode, rows = ("top-up", pd.concat([frame, new])) if model is None else ("rows", new)
    profile = [column for column in COLUMNS if column != "y" or model is None]
    for cost in build_report(
        fit, data=frame, result=new, mode=mode, trade_off=False
    ).costs.groups:
        level = cost.name.split(" = ")[1]
        assert cost.most_copies == pytest.approx(
            most_copies(frame, rows[COLUMNS], profile, cost.grouping)[level]
        )
        assert cost.after == pytest.approx((rows[cost.grouping] == level).mean())


def test_without_the_data_copies_are_expected_for_as_many_rows_as_were_drawn():
    fit = fitted(frame_of(3))
    report = build_report(fit, result=fit.sample(1500), trade_off=False)
    assert not report.costs.counted
    for cost, expected in zip(
        report.costs.groups, fit.certificate.costs.groups, strict=True
    ):
        assert cost.most_copies == pytest.approx(3 * expected.most_copies)
    assert "Expected copies" in markdown_report(report)


def test_filled_cells_have_the_share_of_the_delivered_rows():
    frame = frame_of(5)
    frame = frame[~((frame["z0"] == "g1") & (frame["y"] == "o1"))]
    fit = debias(frame, "y", "z0", representation_rate=1.0, random_state=0)
    sample = fit.sample(333)
    report = build_report(fit, data=frame, result=sample, trade_off=False)
    share = ((sample["z0"] == "g1") & (sample["y"] == "o1")).mean()
    assert report.costs.filled == pytest.approx(share)
    assert f"{percent(share)} of the result has a combination" in markdown_report(
        report
    )


def few_people(name: str = "Other") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "race": rng.choice(["White", "Black", "Asian"], 3000),
            "age": rng.integers(18, 80, 3000),
        }
    )
    frame["y"] = np.where(rng.random(3000) < 0.3, "yes", "no")
    frame.loc[:2, ["race", "y"]] = [[name, "yes"], [name, "no"], [name, "no"]]
    return frame


def visible(html: str) -> str:
    return re.sub(r"<[^>]+>", " ", html[html.index("<body") :])


def test_a_warning_stands_above_every_answer_and_no_rate_is_met_without_it():
    fit = debias(
        few_people(),
        "y",
        "race",
        favourable="yes",
        representation_rate=1.0,
        random_state=0,
    )
    report = build_report(
        fit, data=few_people(), result=fit.weights(), mode="weights", trade_off=False
    )
    assert report.alerts[0].startswith(
        "race = Other: 25.0% of the result rests on 3 rows (0.1% of the data)"
    )
    assert [rate.met for rate in report.rates] == [True, True]
    assert [rate.costly for rate in report.rates] == [True, True]
    assert verdict_of(report) == (
        f"{MET_BY_BOTH} by the weighted rows: 2. The warning names the cost."
    )
    for text in (visible(html_report(report)), markdown_report(report)):
        parts = (
            "of 100 people with",
            "Read this before you use the result",
            "race = Other: ",
            "What was asked",
            "Met by the",
        )
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        assert not re.search(r"✓ met(?!, but see the warning)", text)
    assert json.loads(json_report(report))["alerts"] == list(report.alerts)
    assert not set(report.alerts) & set(report.warnings)


def test_within_the_line_there_is_no_warning_but_the_costs_are_on_the_first_page():
    frame = frame_of(6, rows=2000)
    fit = debias(
        frame, "y", "z0", favourable="o1", representation_rate=1.0, random_state=0
    )
    report = build_report(fit, result=fit.weights(), mode="weights", trade_off=False)
    assert report.alerts == ()
    assert [state_of(rate, report.delivered_name) for rate in report.rates] == [
        ("good", "✓ met")
    ] * 2
    for text in (visible(html_report(report)), markdown_report(report)):
        assert "this result rests on very few people" not in text
        assert (
            text.index("Met by the distribution")
            < text.index("Effective rows")
            < text.index("Appendix")
        )


@pytest.mark.more
def test_a_relabelled_report_says_on_its_first_page_whose_outcomes_were_changed():
    frame = frame_of(7)
    fit = fitted(frame, model=EQUAL_PROBABILITIES)
    report = build_report(
        fit, data=frame, result=fit.weights(), mode="weights", trade_off=False
    )
    parts = fit.weights() / fit.weights().sum(axis=1, keepdims=True)
    for group in ("g0", "g1"):
        people = (frame["z0"] == group).to_numpy()
        up = parts[people & (frame["y"] == "o0").to_numpy(), 1].sum()
        down = parts[people & (frame["y"] == "o1").to_numpy(), 0].sum()
        (line,) = (
            line for line in report.changed if line.startswith(f"z0 = {group}: ")
        )
        assert f"of {people.sum():,} people, " in line
        assert f"{up:,.0f} from o0 to o1" in line
        assert f"{down:,.0f} from o1 to o0" in line
        for text in (visible(html_report(report)), markdown_report(report)):
            assert text.index(f"Outcomes were changed for {line}") < text.index(
                "Appendix"
            )
            assert text.index(
                "Outcomes were changed for", text.index("Appendix")
            ) < text.rindex(line)
    plain = build_report(fitted(frame), trade_off=False)
    assert plain.changed == ()
    assert "Outcomes were changed" not in html_report(plain)


def test_a_fit_whose_costs_are_not_known_says_so():
    frame = frame_of(8)
    fit = fairmaxent.paper.fit(frame[["z0", "y", "x0"]], outcome="y", protected="z0")
    report = build_report(fit, result=fit.sample(100), trade_off=False)
    assert (report.costs.groups, report.costs.worst_cell) == ((), None)
    assert len(report.costs.outcomes) == 2
    for text in (html_report(report), markdown_report(report)):
        assert "costs each group is not known for this fit" in text
