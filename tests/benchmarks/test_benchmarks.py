"""The benchmarks on tiny sizes: what they measure is real, and what they write says it."""

from __future__ import annotations

import doctest
import importlib.util
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.floor import tilted_means
from benchmarks.outcome import Bar, Curve, Outcome, Table, ratio
from benchmarks.process import JobFailedError, environment, fresh
from benchmarks.tables import OUTCOME, PROTECTED, correlated_codes, fair_frame

from benchmarks import (
    alternatives,
    app,
    cluster,
    coverage,
    engine,
    evaluation,
    growth,
    meter,
    methods,
    million,
    outofcore,
    page,
    raking,
    results,
    run,
    stages,
    wide,
)
from fairmaxent import DependencyError

# ---------------------------------------------------------------- the meter


def test_the_meter_counts_work_and_not_waiting():
    with meter.reading() as waiting:
        time.sleep(0.2)
    with meter.reading() as working:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
    assert waiting.wall >= 0.2 > 0.1 > waiting.cpu
    assert working.cpu >= 0.05


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks begin anew only where /proc says so")
def test_the_peak_is_that_of_the_block():
    with meter.reading() as before:
        pass
    with meter.reading() as large:
        np.ones(10_000_000)  # 80 MB, freed at once
    with meter.reading() as after:
        pass
    assert 75 < large.peak - before.peak < 100
    assert after.peak < large.peak - 70


def test_short_jobs_are_repeated_and_long_ones_are_not(monkeypatch):
    calls = []
    cost, result = meter.repeated(lambda: calls.append(1) or len(calls), repeats=3)
    assert result == len(calls) == 13  # the first, and four times three of nearly nothing
    assert cost.cpu < 0.1
    monkeypatch.setattr(meter, "SHORT", -1.0)
    calls.clear()
    meter.repeated(lambda: calls.append(1))
    assert len(calls) == 1


# ---------------------------------------------------------------- fresh processes


def test_a_job_runs_in_a_process_of_its_own():
    assert fresh(math.factorial, 5) == 120
    assert fresh(print, "seen on stderr, no part of the result") is None


def test_a_job_that_fails_says_why_in_one_line():
    with pytest.raises(JobFailedError, match=r"^ValueError: factorial\(\) not defined for negative values$"):
        fresh(math.factorial, -1)
    with pytest.raises(JobFailedError, match=r"^over 0 s$"):
        fresh(time.sleep, 60, seconds=0.3)


def test_a_job_that_wants_too_much_memory_is_ended():
    with pytest.raises(JobFailedError, match="MemoryError"):
        fresh(np.zeros, 10**11)


# ---------------------------------------------------------------- what is measured


def test_the_floor_is_a_softmax_and_its_means():
    rng = np.random.default_rng(3)
    codes, levels = correlated_codes(50, 3, 4), [4, 4, 4]
    log_weights, potentials = rng.normal(size=50), [rng.normal(size=4) for _ in levels]
    indicators = np.hstack([np.eye(4)[column] for column in codes.T])
    shares = np.exp(log_weights + indicators @ np.concatenate(potentials))
    expected = shares @ indicators / shares.sum()
    np.testing.assert_allclose(np.concatenate(tilted_means(codes, levels, log_weights, potentials)), expected)


def test_made_up_columns_depend_on_each_other_and_the_outcome_on_the_group():
    frame = fair_frame(4000, 6, 5)
    assert frame.shape == (4000, 6)
    assert frame["x1"].n_unique() == 5
    strongest = max(abs(np.corrcoef(frame["x1"], frame[name])[0, 1]) for name in ("x2", "x3", "x4"))
    assert strongest > 0.2
    rates = [frame.filter(frame[PROTECTED] == group)[OUTCOME].mean() for group in (0, 1)]
    assert rates[1] - rates[0] > 0.2


def test_a_solve_reaches_the_target_of_another_tilt():
    outcome = million.measure(million.Sizes(rows=2000, attributes=6, levels=4))
    measured = dict(outcome.tables[0].rows)
    assert measured["features"] == 18
    assert 1000 < measured["distinct rows"] <= 2000
    assert measured["iterations"] > 0
    bars = {bar.name: bar for bar in outcome.bars}
    assert bars["max |gradient|"].met
    assert bars["Peak memory of the solve"].limit == pytest.approx(200 + 3 * 6 * measured["distinct rows"] / 1e6)
    assert bars["Whole solve"].measured > 1


@pytest.mark.slow
def test_a_killed_worker_changes_the_clock_and_not_the_result():
    pytest.importorskip("distributed", reason="distributed is not installed")
    outcome = cluster.measure(cluster.Sizes(shapes=((600, 4, 2),), levels=3, seconds=300))
    assert [bar.met for bar in outcome.bars] == [True, True]
    measured = dict(zip(outcome.tables[0].columns, outcome.tables[0].rows[0], strict=True))
    assert measured["iterations"] >= 3
    assert measured["iteration on workers s"] > 0


def test_rows_of_a_million_are_distinct():
    codes = million.distinct_codes(500, 5, 4)
    assert len(np.unique(codes, axis=0)) == len(codes) <= 500
    assert codes.flags.f_contiguous


def test_the_steps_of_the_pipeline_are_all_clocked():
    (table,) = stages.measure(stages.Sizes(rows=1000, repeats=1)).tables
    seconds = {stage: cpu for stage, cpu, _ in table.rows}
    assert [stage for stage, _, _ in stages.STEPS if not seconds[stage] > 0] == []
    whole = seconds.pop("whole")
    assert sum(seconds.values()) == pytest.approx(whole)
    assert seconds["between the stages"] < 0.5 * whole


def test_end_to_end_holds_each_case_against_the_authors():
    outcome = engine.measure(engine.Sizes(rows=100, repeats=1, cases=("COMPAS small",)))
    rows = {name: rest for name, *rest in outcome.tables[0].rows}
    assert set(rows) == {"COMPAS small", "import"}
    cpu, _, authors, times = rows["COMPAS small"]
    assert authors == 2.9
    assert times == pytest.approx(2.9 / cpu)
    assert {bar.name: bar.limit for bar in outcome.bars} == {
        "COMPAS small: CPU": 0.025,
        "import: CPU": 0.25,
        "COMPAS small: times less CPU than the authors' code": 100.0,
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", engine.CASES)
def test_every_case_runs(case):
    if case.startswith("COMPAS large") and not (Path(environment()["FAIRMAXENT_DATA"]) / "compas-scores.csv").exists():
        pytest.skip("needs compas-scores.csv in the folder shared/data beside the checkout")
    assert fresh(engine.case_cpu, case, 10, 1) > 0


@pytest.mark.slow
def test_growth_is_measured_point_by_point():
    sweep = growth.Sweep("rows", ((200, 4, 3), (400, 4, 3)), 200, 400, most=99.0)
    outcome = growth.measure(growth.Sizes((sweep,), seconds=60))
    assert [row[:3] for row in outcome.tables[0].rows] == list(sweep.shapes)
    whole, fit, sample = outcome.curves
    assert [size for size, _ in whole.points] == [200, 400]
    for (_, both), (_, first), (_, second) in zip(whole.points, fit.points, sample.points, strict=True):
        assert both == pytest.approx(first + second)
    assert outcome.bars[0].met
    assert outcome.bars[0].measured == whole.exponent


def test_a_point_that_does_not_end_is_a_missed_bar():
    sweep = growth.Sweep("rows", ((200, 4, 3),), 200, 400, most=99.0)
    (bar,) = growth.measure(growth.Sizes((sweep,), seconds=0.01)).bars
    assert (bar.measured, bar.met, bar.why) == (None, False, "over 0 s")


@pytest.mark.slow
def test_wide_tables_have_the_features_they_are_said_to_have():
    outcome = wide.measure(wide.Sizes(shapes=((300, 6, 21),), seconds=60))
    (row,) = outcome.tables[0].rows
    assert row[:4] == (300, 6, 21, 4 * 20 + 3)
    assert all(bar.met for bar in outcome.bars)


@pytest.mark.slow
def test_a_table_out_of_core_stands_beside_the_group_by_of_two_engines():
    outcome = outofcore.measure(outofcore.Sizes(rows=3000, part=2000))
    rows = {name: rest for name, *rest in outcome.tables[0].rows}
    assert "3,000 rows × 14 columns" in outcome.words
    assert rows["group-by of polars"][0] == rows["group-by of DuckDB"][0] <= 3000
    assert 1000 < rows["whole fit"][0] <= rows["group-by of polars"][0]  # numbers count by their bin
    assert rows["whole command"][0] == rows["whole fit"][0] > rows["whole command, few distinct rows"][0]
    assert rows["whole command"][-1] > rows["whole command"][-2] > 10
    bars = {bar.name: bar for bar in outcome.bars}
    ratio_of_cpu = rows["whole fit"][1] / rows["group-by of polars"][1]
    assert bars["Whole fit, in group-bys of polars"].measured == pytest.approx(ratio_of_cpu)
    assert bars["Address space of the whole command"].met


def test_a_command_that_does_not_end_is_a_missed_bar(tmp_path):
    with pytest.raises(JobFailedError):
        fresh(outofcore.command, str(tmp_path), str(tmp_path / "fair.parquet"), 300.0)
    (peak, addresses) = outofcore._command_bars({}, "whole command: ended with status 3")
    assert (peak.met, addresses.met, addresses.why) == (False, False, "whole command: ended with status 3")


@pytest.mark.slow
def test_raking_stands_beside_other_libraries_and_a_group_by(monkeypatch):
    monkeypatch.delenv(raking.PEERS_PYTHON, raising=False)
    outcome = raking.measure(raking.Sizes(rows=30_000, part=20_000, seconds=60))
    libraries, out_of_core = outcome.tables
    rows = {name: rest for name, *rest in libraries.rows}
    assert "five margins with 36 levels" in outcome.words
    assert rows[raking.OURS][2] == ""
    if importlib.util.find_spec("svy") is None:
        assert rows["svy"][0] is None
        assert "No module named 'svy'" in rows["svy"][2]
    bars = {bar.name: bar for bar in outcome.bars}
    assert bars["Adult: largest error"].met
    cpu = dict(out_of_core.rows)
    times = cpu["raking"] / cpu["group-by of polars"]
    assert bars["Raking out of core, in group-bys of polars"].measured == pytest.approx(times)


@pytest.mark.slow
def test_evaluation_flags_copies_and_stands_beside_other_libraries(monkeypatch):
    monkeypatch.delenv(evaluation.PEERS_PYTHON, raising=False)
    monkeypatch.setattr(evaluation, "TABLES", {"adult": evaluation.TABLES["adult"]})
    outcome = evaluation.measure(evaluation.Sizes(rows=600, seconds=60))
    costs, verdicts = outcome.tables
    rows = {name: rest for name, *rest in costs.rows}
    assert rows[evaluation.OURS][2] == ""
    if importlib.util.find_spec("anonymeter") is None:
        assert "No module named 'anonymeter'" in rows["anonymeter's three attacks"][2]
    flagged = {made: found for _, made, found, *_ in verdicts.rows}
    assert "copies" in flagged["default"]
    assert flagged["base_share=1"] == ""
    bars = {bar.name: bar for bar in outcome.bars}
    assert bars["Adult: risks flagged in default rows"].met
    assert bars["Adult: risks flagged with 5 % copies"].met


# ---------------------------------------------------------------- alternatives


@pytest.mark.slow
def test_methods_stand_side_by_side_with_ratios(monkeypatch):
    monkeypatch.delenv(alternatives.MBI_PYTHON, raising=False)
    names = (alternatives.FLOOR, alternatives.OURS, alternatives.MBI)
    sizes = alternatives.Sizes(rows=500, full_width=False, methods=names, growing=(), seconds=60)
    table = alternatives._compare("Adult", ["income", "sex", "race"], sizes)
    rows = {name: rest for name, *rest in table.rows}
    assert tuple(rows) == names
    _, cpu, times, passes, peak, failed = rows[alternatives.OURS]
    assert times == 1
    assert passes == pytest.approx(cpu / rows[alternatives.FLOOR][1])
    assert peak > 10
    assert failed == ""
    if importlib.util.find_spec("mbi") is None:
        assert rows[alternatives.MBI][1] is None
        assert rows[alternatives.MBI][-1].startswith("not installed: ModuleNotFoundError")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_reweighing_of_aif360_and_ours_are_the_same_job():
    pytest.importorskip("aif360", reason="AIF360 is not installed: make engines")
    frame = alternatives.adult(["income", "sex", "race"], 1000)
    theirs = methods.aif360_reweighing(frame)().instance_weights
    np.testing.assert_allclose(theirs, methods.own_reweighing(frame)(), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_mapping_of_aif360_is_learned():
    pytest.importorskip("aif360", reason="AIF360 is not installed: make engines")
    pytest.importorskip("cvxpy")
    learned = methods.aif360_mapping(alternatives.adult(["income", "sex", "race"], 1000))()
    np.testing.assert_allclose(learned.OpT.dfP.sum(axis=1), 1.0, atol=1e-6)
    assert np.ptp(learned.OpT.dfPyhgD.to_numpy()[:, 0]) <= 0.05 + 1e-6


@pytest.mark.parametrize("name", ["imbalanced-learn RandomOverSampler", "imbalanced-learn SMOTENC"])
def test_over_sampling_makes_outcome_and_group_equally_large(name):
    pytest.importorskip("imblearn")
    frame = alternatives.adult(["income", "sex", "race", "age"], 400)
    _, classes = methods.METHODS[name][0](frame)()
    _, counts = np.unique(classes, return_counts=True)
    assert len(counts) == 4
    assert len(set(counts)) == 1


# ---------------------------------------------------------------- what is kept and shown


def test_an_exponent_is_the_slope_between_two_sizes():
    points = tuple((float(size), 3e-6 * size**1.5) for size in (10, 100, 1000, 10_000))
    curve = Curve("rows", "fit", ((1.0, 50.0), *points, (1e6, 1e-9)), 10, 10_000)
    assert curve.exponent == pytest.approx(1.5)
    assert Curve("rows", "fit", points[:1], 10, 10_000).exponent is None


def test_bars_are_met_at_their_limit_and_missed_without_a_measurement():
    assert Bar("a", 2.0, 2.0).met
    assert not Bar("a", 2.1, 2.0).met
    assert Bar("a", 2.1, 2.0, at_least=True).met
    assert not Bar("a", None, 2.0, at_least=True).met
    assert ratio(None, 2.0) is None
    assert ratio(3.0, 2.0) == 1.5


def outcome_with(cpu: float) -> Outcome:
    return Outcome(
        "Subject",
        "How.",
        (Table("One", ("what", "CPU s", ""), (("a|b", cpu, ""), ("c", None, ""))),),
        (Bar("fast", cpu, 1.0, "s"), Bar("ends", None, 1.0, "s", why="over 9 s")),
        (Curve("rows", "fit", ((10.0, cpu), (100.0, 10 * cpu)), 10, 100),),
    )


def test_outcomes_survive_json():
    outcome = outcome_with(0.5)
    record = json.loads(json.dumps(outcome.record()))
    assert Outcome.of(record) == outcome
    assert [bar["met"] for bar in record["bars"]] == [True, False]
    assert record["curves"][0]["exponent"] == pytest.approx(1.0)


def test_a_run_replaces_its_own_subject_only(tmp_path):
    results.keep(tmp_path, "first", outcome_with(0.5), quick=False)
    results.keep(tmp_path, "second", outcome_with(0.25), quick=True)
    records = results.keep(tmp_path, "first", outcome_with(2.0), quick=False)
    assert records == results.load(tmp_path)
    assert {name: record["bars"][0]["measured"] for name, record in records.items()} == {"first": 2.0, "second": 0.25}
    assert records["second"]["setting"]["numpy"] == np.__version__


def test_the_page_shows_bars_tables_and_curves(tmp_path):
    results.keep(tmp_path, "first", outcome_with(2.0), quick=False)
    records = results.keep(tmp_path, "second", outcome_with(0.25), quick=True)
    page.write_page(tmp_path, records, ["second", "first"])
    lines = (tmp_path / "results.md").read_text().splitlines()
    for line in (
        "| second | fast | 0.25 s | ≤ 1 s | yes, in a quick run |",
        "| first | fast | 2 s | ≤ 1 s | **no** |",
        "| first | ends | over 9 s | ≤ 1 s | **no** |",
        r"| a\|b | 2 |",
        "| rows | fit | 10 | 100 | 1 |",
        "![Subject](first.svg)",
    ):
        assert line in lines
    drawn = (tmp_path / "first.svg").read_bytes()
    assert b"<svg" in drawn
    page.write_page(tmp_path, records, ["second", "first"])
    assert (tmp_path / "first.svg").read_bytes() == drawn


def test_the_command_measures_what_is_asked_and_writes_where_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(million, "QUICK", million.Sizes(rows=500, attributes=4, levels=3))
    monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "--only", "million", "--out", str(tmp_path)])
    run.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json", "results.md"]
    assert list(results.load(tmp_path)) == ["million"]
    assert "met: max |gradient|" in capsys.readouterr().out


@pytest.mark.slow
def test_coverage_has_a_line_for_every_metric_size_and_weight():
    outcome = coverage.measure(coverage.Sizes(runs=20, rows=(10,), rates=(0.1,)))
    (table,) = outcome.tables
    assert len(table.rows) == len(coverage.SIMULATIONS) * len(coverage.WEIGHTS)
    assert [bar.at_least for bar in outcome.bars] == [True, False, False]
    line = dict(zip(table.columns, table.rows[0], strict=True))
    assert (line["metric"], line["rows"], line["weights"], line["lowest"]) == ("statistical rate", 10, "1:1", None)
    assert 0.5 < line["lowest, few rows"] <= line["highest, few rows"] <= 1
    assert 0 < line["width, few rows"] <= 1


def test_the_app_without_a_browser_says_why_nothing_was_measured(monkeypatch):
    monkeypatch.setattr(app, "find_browser", lambda: (_ for _ in ()).throw(DependencyError("no Chromium is here")))
    pytest.importorskip("playwright")
    outcome = app.measure(app.QUICK)
    assert {bar.why for bar in outcome.bars} == {"no Chromium is here"}
    assert not any(bar.met for bar in outcome.bars)
    assert outcome.tables[0].rows == ()


def test_the_app_is_measured_by_its_late_moves():
    seen = app.Seen(5_000, 5, ready=1.5, first=2.0, moves=(*[100.0] * 90, *[400.0] * 10), cpu=9.0)
    bars = app.outcome([seen], app.QUICK, "").bars
    assert [(bar.measured, bar.met) for bar in bars] == [(1.5, True), (400.0, False), (None, False)]


def test_numbers_are_shown_in_three_digits():
    assert doctest.testmod(page) == (0, 1)


def test_every_subject_has_two_sizes():
    for subject in run.SUBJECTS.values():
        assert isinstance(subject.FULL, subject.Sizes)
        assert isinstance(subject.QUICK, subject.Sizes)
