"""What was delivered is judged as well as the distribution: rows, weights and rows to add, against group-by."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent
from fairmaxent.cli.result import measure
from fairmaxent.report import Source, build_report
from fairmaxent.report.delivered import absences, delivered_rates, rows_table
from fairmaxent.report.writer import html_report, markdown_report
from tables import as_table, random_frame, rates_of


@pytest.fixture(scope="module")
def frame():
    return random_frame(np.random.default_rng(4), [2], 2)


@pytest.fixture(scope="module")
def fit(frame):
    return fairmaxent.debias(frame, "y", "z0", favourable="o1", representation_rate=1.0, random_state=5)


def by_kind(report):
    return {rate.kind: rate for rate in report.rates}


def expected(table):
    return dict(
        zip(["representation_rate", "statistical_rate"], rates_of(as_table(table), ["z0"], "y", "o1"), strict=True)
    )


# ---------------------------------------------------------------- judged by what was delivered


def test_many_rows_by_quota_meet_the_rates_but_for_rounding(fit):
    """0.9994 is no failure: nobody can be cut in two."""
    sample = fit.sample(5001, random_state=3)
    report = build_report(fit, delivered=sample, trade_off=False)
    rates = expected(sample)
    assert all(0.995 < rate < 1 - 1e-6 for rate in rates.values())
    for rate in report.rates:
        assert (rate.met_exactly, rate.met, rate.rounded) == (True, False, True)
        assert rate.gap == pytest.approx(1 - rates[rate.kind])
        assert report.state(rate) == ("good", "✓ met, rounded to whole rows")
    within = f"to within {1 - min(rates.values()):.4f} by the drawn rows, because a row cannot be split."
    assert report.verdict() == f"Both rates asked for are met: exactly by the distribution, and {within}"
    assert "fall short" not in markdown_report(report)


def test_few_rows_by_quota_fall_short_and_that_is_said(fit):
    sample = fit.sample(9, random_state=3)
    report = build_report(fit, delivered=sample, trade_off=False)
    gap = 1 - min(expected(sample).values())
    assert gap > 0.1
    assert f"but the drawn rows fall short by up to {gap:.4f}, because a row cannot be split." in report.verdict()
    assert {report.state(rate)[0] for rate in report.rates} == {"short"}
    text = markdown_report(report)
    for rate in expected(sample).values():
        assert f"met by the distribution, but these rows are short by {1 - rate:.4f}" in text
    assert "✓" not in text


def test_a_small_gap_that_whole_rows_do_not_explain_is_not_called_rounding(fit):
    """Rows that somebody changed may be near the rates, and yet not be the nearest whole rows."""
    rows = fit.sample(5001, random_state=3)
    changed = pd.concat([rows, rows[(rows["y"] == "o1") & (rows["z0"] == "g0")].head(4)])
    report = build_report(fit, delivered=changed, trade_off=False)
    assert max(rate.gap for rate in report.rates) < 0.005
    for rate in report.rates:
        assert not rate.rounded
        assert report.state(rate) == (
            "short",
            f"met by the distribution, but these rows are short by {rate.gap:.4f}",
        )
    assert "cannot be split" not in report.verdict()


def test_rows_that_meet_the_rates_get_one(fit):
    sample = pd.concat([fit.sample(50, given={"y": y, "z0": z}) for y in ("o0", "o1") for z in ("g0", "g1")])
    report = build_report(fit, delivered=sample, trade_off=False)
    assert [rate.met for rate in report.rates] == [True, True]
    assert report.verdict() == "Both rates asked for are met."
    assert markdown_report(report).count("✓ met") == 4  # on the first page and in the appendix


def test_a_target_is_met_by_its_shares_not_by_their_ratio(frame):
    shares = {"z0": {"g0": 0.3, "g1": 0.7}}
    fit = fairmaxent.debias(frame, "y", "z0", target=shares, random_state=1)
    exact = by_kind(build_report(fit, delivered=fit.sample(1000), trade_off=False))["representation_rate"]
    assert (exact.from_target, exact.met) == (True, True)
    assert exact.wanted_text == "0.4286 (target)"
    equal = pd.concat([fit.sample(50, given={"z0": group}) for group in ("g0", "g1")])
    other = by_kind(build_report(fit, delivered=equal, trade_off=False))["representation_rate"]
    assert other.delivered == 1.0 > other.wanted
    assert (other.met_exactly, other.met) == (True, False)
    wishes = build_report(fit, trade_off=False).wishes
    assert "Shares of z0: g0 0.3, g1 0.7." in wishes
    assert not any("equally large" in wish or "times as large" in wish for wish in wishes)


# ---------------------------------------------------------------- modes


def test_weights_are_judged_as_weights_and_no_row_is_new(fit, frame):
    weights = fit.weights()
    report = build_report(fit, data=frame, mode="weights", trade_off=False)
    table = frame.assign(probability=weights / weights.sum())
    rates = dict(zip(("representation_rate", "statistical_rate"), rates_of(table, ["z0"], "y", "o1"), strict=True))
    for rate in report.rates:
        assert rate.delivered == pytest.approx(rates[rate.kind], abs=1e-9)
        assert (rate.met, rate.interval) == (True, None)
    assert (report.copies, report.new_rows) == (None, 0)
    text = markdown_report(report)
    assert "All rows are real" in text
    assert "Drawn rows" not in text
    assert "Drawn rows" not in html_report(report)
    np.testing.assert_array_equal(run(report.call, frame)["weights"], weights)


def test_wrong_weights_are_not_taken_for_fair(fit, frame):
    report = build_report(fit, delivered=np.ones(len(frame)), mode="weights", trade_off=False)
    for rate in report.rates:
        assert rate.delivered == pytest.approx(rate.before)
        assert rate.met is False
    with pytest.raises(fairmaxent.InputError, match="500 rows; pass one weight per row"):
        build_report(fit, delivered=np.ones(3), mode="weights", trade_off=False)


def test_rows_to_add_are_judged_together_with_the_old_ones(fit, frame):
    added = fit.top_up(random_state=2)
    report = build_report(fit, data=frame, delivered=added, mode="top-up", seed=2, trade_off=False)
    rates = expected(pd.concat([frame, added]))
    assert {rate.kind: rate.delivered for rate in report.rates} == pytest.approx(rates)
    assert report.new_rows == report.copies.rows == len(added)
    assert f"{len(added):,} rows to be added to the 500" in report.summary()
    pd.testing.assert_frame_equal(run(report.call, frame)["added"], added)


def test_a_fair_table_needs_no_row_added():
    table = pd.DataFrame({"sex": ["f", "m"] * 40, "y": ["no", "no", "yes", "yes"] * 20})
    fit = fairmaxent.debias(table, "y", "sex", representation_rate=1.0)
    report = build_report(fit, mode="top-up", trade_off=False)
    assert (report.new_rows, report.copies) == (0, None)
    assert [rate.met for rate in report.rates] == [True, True]
    assert "none had to be added" in markdown_report(report)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"mode": "both"}, "mode is 'both'"), ({"mode": "weights", "iid": True}, "iid is for mode 'rows'")],
)
def test_modes_that_do_not_exist_are_refused(fit, options, says):
    with pytest.raises(fairmaxent.InputError, match=says):
        build_report(fit, trade_off=False, **options)


# ---------------------------------------------------------------- what is not there


def test_a_group_without_a_row_has_share_zero(fit):
    only = fit.sample(30, given={"z0": "g0"})
    table = rows_table(fit, fit.roles.blocks.pool(fit.domain.encode(only)))
    rates = delivered_rates(fit, table)
    assert rates["representation_rate"] == {"z0": 0.0}
    assert rates["statistical_rate"] == {"z0": None}  # one group has nothing to be compared with
    assert list(absences(fit, table)) == ["no row has z0 = g1: its share is 0, and it has no rate"]
    report = build_report(fit, delivered=only, trade_off=False)
    assert report.warnings[0].startswith("no row has z0 = g1")
    assert by_kind(report)["statistical_rate"].met is False
    assert "| 0.0000 |" in markdown_report(report)


def test_an_outcome_without_a_row_compares_nothing(fit):
    only = fit.sample(40, given={"y": "o0"}, random_state=0)
    table = rows_table(fit, fit.roles.blocks.pool(fit.domain.encode(only)))
    assert delivered_rates(fit, table)["statistical_rate"] == {"z0": None}
    assert list(absences(fit, table)) == ["no row has y = o1, so groups cannot be compared by it"]
    report = build_report(fit, delivered=only, trade_off=False)
    assert by_kind(report)["statistical_rate"].delivered is None


def test_a_group_that_was_removed_is_not_missed(frame):
    three = pd.concat([frame, frame.head(40).assign(z0="g2")])
    fit = fairmaxent.debias(three, "y", "z0", target={"z0": {"g0": 0.5, "g1": 0.5, "g2": 0.0}})
    report = build_report(fit, delivered=fit.sample(100, random_state=0), trade_off=False)
    assert by_kind(report)["representation_rate"].delivered == 1.0
    assert not any(warning.startswith("no row has") for warning in report.warnings)


# ---------------------------------------------------------------- repeating it


def run(call, frame):
    space = {"frame": frame}
    exec(call, space)
    return space


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_call_repeats_how_columns_were_read_and_rows_were_drawn(frame, library):
    table = frame.assign(id=range(500), w=np.linspace(0.5, 1.5, 500))
    table = table if library == "pandas" else pl.from_pandas(table)
    kept = table.drop(columns="id") if library == "pandas" else table.drop("id")
    options = {"bins": {"x1": [-2, 0, 1]}, "kinds": {"x2": "categorical"}, "max_levels": 3}
    attributes = kept.drop(columns="w") if library == "pandas" else kept.drop("w")
    domain = fairmaxent.Domain.infer(attributes, weight=kept["w"].to_numpy(), **options)
    fit = fairmaxent.debias(kept, "y", "z0", weight="w", domain=domain)
    sample = fit.sample(77, iid=True, random_state=9)
    source = Source(file="data.csv", dropped=("id",), domain=options)
    report = build_report(fit, delivered=sample, iid=True, seed=9, source=source, trade_off=False)
    again = run(report.call, table)["rows"]
    assert again.equals(sample)


def test_rows_of_an_unknown_seed_are_called_so(fit):
    report = build_report(fit, delivered=fit.sample(10, random_state=77), trade_off=False)
    assert report.seed is None
    assert "# drawn with a seed that is not known here" in report.call


# ---------------------------------------------------------------- words for readers


def test_groups_say_how_many_rows_they_stand_on(fit, frame):
    report = build_report(fit, trade_off=False)
    counts = frame["z0"].value_counts()
    assert {shift.label: shift.rows for shift in report.groupings[0].shifts} == counts.to_dict()
    yes = frame[frame["y"] == "o1"]["z0"].value_counts()
    assert {shift.label: shift.rows for shift in report.groupings[1].shifts} == yes.to_dict()
    for text in (markdown_report(report), html_report(report)):
        assert str(counts["g0"]) in text


def test_a_rate_is_guaranteed_only_where_one_was_asked_for(frame):
    asked, not_asked = (
        build_report(fairmaxent.debias(frame, "y", "z0", statistical_rate=rate), trade_off=False)
        for rate in (0.9, None)
    )
    assert "Guaranteed statistical rate" in markdown_report(asked)
    assert "Guaranteed statistical rate" not in markdown_report(not_asked)
    assert "ICML 2020" in markdown_report(asked)


def test_missing_values_that_are_not_compared_do_not_lower_a_rate():
    """By a group-by of the delivered rows without them, in the report and on the command line alike."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["m", "w"], 600, p=[0.85, 0.15])
    hired = np.where(rng.random(600) < np.where(sex == "m", 0.45, 0.2), "yes", "no")
    frame = pd.DataFrame({"sex": sex, "hired": hired, "x": rng.integers(0, 5, 600)})
    frame.loc[::60, "sex"] = None
    frame.loc[7::90, "hired"] = None
    fit = fairmaxent.debias(frame, "hired", "sex", favourable="yes", representation_rate=1.0, random_state=1)
    for sample in (fit.sample(600), fit.sample(600, iid=True)):
        known = sample.dropna(subset=["sex"])
        sizes = known["sex"].value_counts()
        shares = (known.dropna(subset=["hired"])["hired"] == "yes").groupby(known["sex"]).mean()
        expected = {"representation_rate": sizes, "statistical_rate": shares}
        report = build_report(fit, data=frame, delivered=sample, trade_off=False)
        for rate in report.rates:
            assert rate.delivered == pytest.approx(expected[rate.kind].min() / expected[rate.kind].max())
        after = measure(fit, report_table(fit, sample))
        assert after.rates["statistical_rate"]["sex"] == pytest.approx(shares.min() / shares.max())
        assert {one.group: one.after for one in report.counting.outcomes}["sex = w"] == pytest.approx(shares["w"])


def report_table(fit, sample):
    return rows_table(fit, fit.roles.blocks.pool(fit.domain.encode(sample)))
