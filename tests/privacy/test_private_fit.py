"""Private fits: exact rates, nothing but noisy numbers in whatever leaves, and reasons
for what is refused.
"""

import io
import json
import re
import sys
import traceback
import zipfile
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import polars
import pytest

import fairmaxent
from fairmaxent import (
    Domain,
    FairMaxEntError,
    InfeasibleError,
    InputError,
    Privacy,
    debias,
    load,
)
from fairmaxent.errors import DependencyError, LevelError, StorageError
from fairmaxent.fit import pipeline
from fairmaxent.privacy import measurements as mechanisms
from quiet import DOMAIN, Deaf, Recording, Seeded, Silence, people
from tables import EQUAL_PROBABILITIES

ONE = Privacy(epsilon=1.0)


@pytest.fixture
def noise(monkeypatch):
    """Seeded noise, so that results do not vary, and opendp is not needed; call it for
    other noise.
    """

    def use(make):
        monkeypatch.setattr(pipeline, "OpenDP", make)

    use(lambda: Seeded(0))
    return use


def private(frame=None, **options):
    given = {"outcome": "hired", "privacy": ONE, "domain": DOMAIN, "random_state": 0}
    table = people() if frame is None else frame
    return debias(table, protected="sex", **(given | options))


def test_rates_are_exact_although_counts_are_noisy(noise):
    fit = private(representation_rate=1.0, statistical_rate=0.9, favourable="yes")
    achieved = fit.certificate.achieved
    assert achieved["representation_rate"]["sex"] == pytest.approx(1.0, abs=1e-9)
    assert achieved["statistical_rate"]["sex"] >= 0.9 - 1e-9
    table = fit.distribution.marginal(["sex", "hired"])
    by = {(sex, hired): p for sex, hired, p in table.rows()}
    rate = {sex: by[sex, "yes"] / (by[sex, "yes"] + by[sex, "no"]) for sex in "fm"}
    assert min(rate.values()) / max(rate.values()) == pytest.approx(0.9, abs=1e-9)
    rows = fit.sample(1000)
    assert rows["sex"].value_counts()["count"].to_list() == [500, 500]
    # intervals would leave out the noise
    assert fit.summary()["rate_before_low"].is_nan().all()


def test_the_report_says_by_how_much_one_person_can_change_each_look(noise, tmp_path):
    fit = private(privacy=Privacy(epsilon=4.0, rows_per_person=3), estimate=None)
    fit.report(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    table = text.split("| Sensitivity |")[1].split("Sum, of")[0]
    rows = [line.split("|") for line in table.splitlines()[2:] if line.count("|") == 7]
    assert [row[4].strip() for row in rows] == ["3"] * len(
        fit.certificate.privacy.spent
    )


@pytest.mark.some(2)
@pytest.mark.parametrize("largest_hub", [0, 32])
@pytest.mark.parametrize(("column", "level"), [("sex", "f"), ("town", "x")])
def test_targets_and_prohibitions_hold_too(
    noise, monkeypatch, largest_hub, column, level
):
    monkeypatch.setattr(mechanisms, "_LARGEST_HUB", largest_hub)
    wanted = {
        "target": {"job": {"a": 0.5, "b": 0.25, "c": 0.25}},
        "forbid": [{column: level, "job": "c"}],
    }
    # with less, a hub is not looked for
    fit = private(**wanted, privacy=Privacy(epsilon=2.0))
    assert bool(fit.distribution.prior.hub) == bool(largest_hub)
    jobs = dict(fit.distribution.marginal("job").rows())
    assert jobs == pytest.approx({"a": 0.5, "b": 0.25, "c": 0.25}, abs=1e-9)
    assert not len(
        fit.sample(2000).filter(polars.col(column) == level, polars.col("job") == "c")
    )


def test_drawn_rows_have_the_shares_of_the_model_up_to_a_few_rows(noise):
    fit, off = private(), {}
    for iid in (False, True):
        rows = fit.sample(100_000, iid=iid)
        shares = (
            (dict(fit.distribution.marginal(name).rows()), rows[name].to_list())
            for name in ("job", "town")
        )
        off[iid] = max(
            abs(drawn.count(level) / 100_000 - p)
            for model, drawn in shares
            for level, p in model.items()
        )
    assert off[False] < 3e-4 < off[True]


def test_with_much_budget_it_is_the_fit_without_noise(noise):
    """p(job | hired, sex) is that of the data, and only the table of outcome and groups
    is made fair.
    """
    noise(Silence)
    frame = people(4000)
    fit = private(frame, privacy=Privacy(epsilon=1e5))
    fair = {
        (hired, sex): p
        for hired, sex, p in fit.distribution.marginal(["hired", "sex"]).rows()
    }
    cells = {
        (hired, sex): n for hired, sex, n in frame.group_by("hired", "sex").len().rows()
    }
    jobs = {
        tuple(key): n for *key, n in frame.group_by("hired", "sex", "job").len().rows()
    }
    for hired, sex, job, p in fit.distribution.marginal(["hired", "sex", "job"]).rows():
        assert p == pytest.approx(
            fair[hired, sex] * jobs[hired, sex, job] / cells[hired, sex], abs=1e-6
        )


def test_noise_is_different_each_time_whatever_the_seed():
    pytest.importorskip("opendp", reason="opendp is not installed")
    first, second = private(), private()
    assert first.certificate.before != second.certificate.before
    assert first.sample(5).equals(first.sample(5))  # the seed is that of draws


@pytest.mark.parametrize(
    "make",
    [lambda t: t, lambda t: t.to_pandas(), lambda t: t.to_arrow(), lambda t: t.lazy()],
)
def test_every_library_and_lazy_frames(noise, make):
    frame = make(people())
    fit = private(frame)
    rows = fit.sample(50)
    kind = polars.DataFrame if isinstance(frame, polars.LazyFrame) else type(frame)
    assert isinstance(rows, kind)
    drawn = nw.from_native(rows, eager_only=True)
    assert drawn.columns == people().columns
    assert 0 <= drawn["age"].min() <= drawn["age"].max() <= 120


def everything_from(fit, folder):
    """All that can leave: the model file, certificate, reports and printed forms."""
    fit.save(folder / "fit.fme")
    for form in ("html", "md", "json"):
        fit.report(folder / f"report.{form}")
    with zipfile.ZipFile(folder / "fit.fme") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    texts = {
        form: (folder / f"report.{form}").read_bytes()
        for form in ("html", "md", "json")
    }
    said = {
        "certificate": str(fit.certificate),
        "dict": json.dumps(fit.certificate.to_dict()),
        "repr": repr(fit),
    }
    said |= {
        "notebook": fit._repr_html_(),
        "summary": str(fit.summary()),
        "rows": str(fit.sample(20).rows()),
    }
    return parts | texts | {name: text.encode() for name, text in said.items()}


def test_whatever_leaves_is_made_of_the_answers_of_the_mechanisms_only(noise, tmp_path):
    """If the noise were deaf to the rows, two different tables could not be told apart
    by anything that leaves.
    """
    noise(Deaf)
    leaving = []
    other = people(123, seed=9).with_columns(
        sex=polars.lit("m"), job=polars.lit("c"), town=polars.lit("x")
    )
    for number, frame in enumerate((people(), other)):
        (tmp_path / str(number)).mkdir()
        leaving.append(everything_from(private(frame), tmp_path / str(number)))
    first, second = leaving
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name


def marked(seed):
    """A table whose exact counts and values are large, odd and rare, so that they would
    be recognised anywhere.
    """
    rng = np.random.default_rng(seed)
    rows = [29_989, 34_981, 41_983, 10_007, 13, 1][: 4 + seed % 3]
    cells = [
        ("no", "f"),
        ("yes", "m"),
        ("no", "m"),
        ("yes", "f"),
        ("no", "f"),
        ("yes", "m"),
    ]
    frames = [
        polars.DataFrame(
            {
                "hired": [hired] * count,
                "sex": [sex] * count,
                "job": rng.choice(["a", "b", "c"], count, p=[0.2, 0.3, 0.5]),
                "town": [None] * (count // 7) + ["x"] * (count - count // 7),
                "age": rng.uniform(10, 90, count),
            }
        )
        for (hired, sex), count in zip(cells, rows, strict=False)
    ]
    return polars.concat(frames)


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_exact_count_and_no_value_of_a_row_is_in_anything_that_leaves(
    noise, tmp_path, seed
):
    """Searched number by number: whole counts, shares as floats, and the digits of
    every raw value.
    """
    frame = marked(seed)
    parts = everything_from(private(frame), tmp_path)
    numbers, text = [], b""
    for name, content in parts.items():
        if name.endswith(".npy"):
            numbers.append(
                np.load(io.BytesIO(content), allow_pickle=False)
                .astype(float, casting="unsafe")
                .ravel()
            )
        else:
            text += content
    words = text.decode()
    numbers.append(
        np.array(
            [
                float(x.replace(",", ""))
                for x in re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?", words)
            ]
        )
    )
    known = np.unique(np.concatenate(numbers))
    groups = [
        ["hired"],
        ["sex"],
        ["hired", "sex"],
        ["job"],
        ["hired", "sex", "job"],
        ["town"],
        [],
    ]
    counts = [len(frame)] + [
        c for by in groups[:-1] for c in frame.group_by(by).len()["len"].to_list()
    ]
    for count in counts:
        if count > 1000:  # small ones are numbers of columns and bins, too
            assert not np.isclose(known, count, rtol=0, atol=0.25).any(), count
            share = count / len(frame)
            assert (
                share == 1 or not np.isclose(known, share, rtol=1e-9, atol=0).any()
            ), count
    assert not np.isin(frame["age"].to_numpy(), known).any()
    assert not any(f"{age:.6f}" in words for age in frame["age"].head(2000).to_list())


@pytest.mark.more
def test_the_search_would_find_them_in_a_fit_without_noise(noise, tmp_path):
    """The test above can fail: without noise, the counts are there."""
    noise(Silence)
    frame = marked(0)
    parts = everything_from(private(frame), tmp_path)
    for count in (len(frame), *frame.group_by("sex").len()["len"].to_list()):
        assert f"{count:,}".encode() in parts["md"]


def test_a_model_file_says_that_it_is_private_and_with_what(noise, tmp_path):
    fit = private(privacy=Privacy(epsilon=0.7, delta=1e-8))
    fit.save(tmp_path / "fit.fme")
    loaded = load(tmp_path / "fit.fme")
    assert loaded.request.privacy == Privacy(epsilon=0.7, delta=1e-8)
    assert loaded.certificate.privacy == fit.certificate.privacy
    assert loaded.sample(20).equals(fit.sample(20))
    text = str(fairmaxent.verify(tmp_path / "fit.fme"))
    assert "it holds no row of the data" in text
    assert "private with ε = 0.7, δ = 1e-08" in text


def test_a_forged_promise_is_refused(noise, tmp_path):
    fit = private()
    assert fit.certificate.to_dict()["privacy"]["epsilon"] == 1.0
    ledger = fit.certificate.privacy
    dear = replace(ledger.spent[0], scale=ledger.spent[0].scale / 100)
    less = (
        replace(ledger, privacy=Privacy(epsilon=0.1)),
        replace(ledger, spent=()),
        replace(ledger, spent=(dear,)),
    )
    for forged in (None, *less, replace(ledger, privacy=Privacy(rows_per_person=2))):
        request = replace(fit.request, privacy=(forged or ledger).privacy)
        other = replace(
            fit, request=request, certificate=replace(fit.certificate, privacy=forged)
        )
        other.save(tmp_path / "forged.fme")
        with pytest.raises(StorageError, match=r"privacy budget|damaged"):
            load(tmp_path / "forged.fme")


def test_certificate_and_overview_say_what_was_spent(noise):
    fit = private()
    text = str(fit.certificate)
    assert text.startswith("Private with ε = 1, δ = 1e-09: ")
    assert "noisy estimates" in text
    assert "another private fit of the same people" in text
    assert "fit.weigh" not in repr(fit)
    assert "Private with ε = 1" in repr(fit)
    ledger = fit.certificate.privacy
    assert ledger.rho <= ledger.privacy.rho
    assert fit.certificate.to_dict()["privacy"]["spent"][0]["measured"] == "hired × sex"
    for delta, warned in ((0.01, True), (1e-9, False)):
        warnings = " ".join(private(privacy=Privacy(delta=delta)).certificate.warnings)
        assert ("is not below 1 divided by the number of rows" in warnings) == warned


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("domain", None, "needs a declared domain"),
        ("domain", Domain.infer(people()), "needs a declared domain"),
        ("domain", Domain.infer(people()).draft(), "is a draft made from your table"),
        ("weight", "age", "would need more noise than the others"),
        ("detail", "rows", "no row's exact values are kept"),
        ("base", "uniform", "measures what its tree needs"),
        ("base_share", 0.5, "come from its model"),
        ("estimate", "weights", "there are no weights; use estimate='rows'"),
        (
            "estimate",
            fairmaxent.Estimate(output="weights"),
            "there are no weights; use estimate='rows'",
        ),
        ("privacy", 1.0, r"pass fairmaxent.Privacy\(epsilon=1\)"),
        ("frame", people().with_columns(extra=1), "column 'extra' is not declared"),
        (
            "frame",
            people().drop("age"),
            "'age' is declared, but the table has no such column",
        ),
    ],
)
def test_refused_options_say_why(noise, option, value, why):
    with pytest.raises(InputError, match=why):
        private(**{option: value})


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda fit: fit.weights(), r"weights\(\) cannot go together with privacy"),
        (
            lambda fit: fit.weigh(people()),
            r"weights\(\) cannot go together with privacy",
        ),
        (lambda fit: fit.top_up(), r"top_up\(\) cannot go together with privacy"),
        (
            lambda fit: fit.uncertainty(),
            r"uncertainty\(\) cannot go together with privacy",
        ),
        (
            lambda fit: fit.report("report.md", data=people()),
            "data cannot go together with privacy",
        ),
        (
            lambda fit: fit.report("report.json", evaluate=True),
            "evaluate cannot go together with privacy",
        ),
    ],
)
def test_what_needs_the_rows_is_refused(noise, tmp_path, monkeypatch, ask, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=why):
        ask(private())


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "make",
    [lambda t: t, lambda t: t.to_pandas(), lambda t: t.to_arrow(), lambda t: t.lazy()],
)
@pytest.mark.parametrize(
    ("name", "kind"), [("job", polars.String), ("age", polars.Float64)]
)
@pytest.mark.parametrize("value", ["pilot", None])
def test_an_error_about_a_value_does_not_show_it(noise, make, name, kind, value):
    column = polars.lit(value, kind if value is None else polars.String).alias(name)
    with pytest.raises(
        LevelError, match=f"column '{name}' has a value that was not declared"
    ) as caught:
        private(make(people().with_columns(column)))
    assert "do not pass it on" in str(caught.value)
    assert "pilot" not in "".join(traceback.format_exception(caught.value)).replace(
        '"pilot"', ""
    )
    assert (
        "that every value in the table is declared"
        in private().certificate.to_dict()["privacy"]["public"]
    )


def test_an_error_of_an_engine_does_not_show_a_value(noise):
    ages = (
        polars.when(polars.col("age") < 30)
        .then(polars.lit("pilot"))
        .otherwise(polars.lit("31"))
    )
    lazy = people().lazy().with_columns(age=ages.cast(polars.Float64))
    with pytest.raises(StorageError, match="pilot"):
        debias(lazy, "hired", "sex", estimate=None)
    with pytest.raises(StorageError, match="could not be read or computed") as caught:
        private(lazy)
    assert "pilot" not in "".join(traceback.format_exception(caught.value)).replace(
        '"pilot"', ""
    )


@pytest.mark.parametrize(
    "options",
    [
        {"favourable": "maybe"},
        {"target": {"job": {"z": 1.0}}},
        {"target": {"jobs": {"a": 1.0}}},
        {"forbid": [{"job": "z"}]},
        {"representation_rate": {"job": 0.5}},
        {"within": {"town": "z"}},
        {"equal_means": True},
        {"model": EQUAL_PROBABILITIES},
        {"outcome": ["hired", "job"], "estimate": "rows"},
    ],
)
def test_a_request_that_makes_no_sense_costs_nothing(noise, monkeypatch, options):
    noise(Recording)
    monkeypatch.setattr(Recording, "tables", [])
    with pytest.raises(InputError) as caught:
        private(**options)
    assert "has spent" not in str(caught.value)
    assert not Recording.tables


def test_what_fails_after_the_noise_says_that_the_budget_is_spent(noise):
    forbid = [{"sex": "f", "hired": "yes"}, {"sex": "f", "hired": "no"}]
    with pytest.raises(
        FairMaxEntError, match="this attempt has spent ε = 1, δ = 1e-09 all the same"
    ):
        private(forbid=forbid)


def test_the_mean_of_bins_is_refused_with_the_reason(noise):
    with pytest.raises(InputError, match="nobody knows the mean of a bin") as caught:
        debias(people(), "age", "sex", equal_means=True, privacy=ONE, domain=DOMAIN)
    assert "detail" not in str(caught.value)


def test_the_library_of_the_noise_is_named_if_it_is_missing(monkeypatch):
    for name in ("opendp", "opendp.domains"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DependencyError, match=r"pip install 'fairmaxent\[private\]'"):
        mechanisms.OpenDP()


@pytest.mark.parametrize("kind", [polars.Float64, polars.String])
def test_numbers_beyond_the_edges_count_in_the_outermost_bins(noise, kind):
    noise(Silence)
    ages = polars.when(polars.col("age") > 50).then(500.0).otherwise(-3.0)
    frame = people(4000).with_columns(age=ages.cast(kind))
    shares = private(frame).distribution.marginal("age")
    assert shares["age"].to_list() == ["< 18", "[18, 40)", "[40, 65)", "≥ 65"]
    assert shares["probability"][0] + shares["probability"][3] == pytest.approx(
        1, abs=1e-3
    )


@pytest.mark.more
def test_noise_that_hides_the_groups_is_said_so(noise):
    reasons = set()
    for seed in range(40):
        noise(lambda seed=seed: Seeded(seed))
        try:
            assert (
                len(
                    private(
                        people(8), privacy=Privacy(epsilon=0.05), statistical_rate=None
                    ).sample(10)
                )
                == 10
            )
        except InfeasibleError as problem:
            reasons.add(str(problem))
    expected = {
        f"the noise of ε = 0.05 hides which levels of '{name}' there are"
        for name in ("hired", "sex")
    }
    assert {reason.partition("; ")[0] for reason in reasons} == expected


@pytest.mark.more
def test_ranges_are_those_of_the_noise(noise):
    exact, inside = (
        people()
        .pivot("sex", index="hired", values="age", aggregate_function="len")
        .sort("hired"),
        [],
    )
    for seed in range(30):
        noise(lambda seed=seed: Seeded(seed))
        fit = private()
        off = np.abs(
            fit.problem.data_table * fit.table.size - exact.select("f", "m").to_numpy()
        )
        cell, rows = fit.certificate.privacy.count_ranges
        # whole rows are drawn
        inside += [*(off <= cell + 1).ravel(), abs(fit.table.size - 800) <= rows + 1]
    assert 0.9 < np.mean(inside) < 1
    assert (
        f"by up to {cell:.0f}, and that of all rows by up to {rows:.0f}, with 95%"
        in str(fit.certificate)
    )
    # which would leave out the noise
    assert fit.summary()["rate_before_low"].is_nan().all()


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("declared", "columns"),
    [
        (
            {"levels": [1, 2, 3, 4]},
            [[1, 2, 3, 4], [None, 2.0, 3.0, 4.0], np.array([1, 2, 3, 4], np.uint8)],
        ),
        ({"levels": [True, False]}, [[True, False] * 2, [True, None] * 2, [None] * 4]),
        (
            {"edges": [0, 20, 40, 80]},
            [[1, 22, 30, 40], [1.0, 22.0, 33.5, 40.0], [None] * 4],
        ),
    ],
)
@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, polars.DataFrame, lambda rows: polars.DataFrame(rows).to_arrow()],
)
def test_types_do_not_show_what_the_rows_hold(noise, make, declared, columns):
    """One gap, or one 33.5 among whole numbers, would turn a column into floats."""
    noise(Deaf)
    (how, said), drawn = next(iter(declared.items())), []
    for x in columns:
        frame = make({"y": [0, 1] * 2, "z": ["a", "b", "b", "a"], "x": x})
        options = {"levels": {"y": [0, 1], "z": ["a", "b"]}, "missing": ["x"]}
        options[how] = options.get(how, {}) | {"x": said}
        fit = debias(
            frame,
            "y",
            "z",
            privacy=ONE,
            domain=Domain.declare(**options),
            random_state=0,
            estimate=None,
        )
        rows = nw.from_native(fit.sample(30), eager_only=True)
        drawn.append((str(rows.schema), str(rows.rows())))
    assert len(set(drawn)) == 1


@pytest.mark.parametrize("as_list", [False, True])
def test_the_estimator_returns_declared_types(noise, as_list):
    """Types of arrays come from the rows: the longest text, or a gap among whole
    numbers.
    """
    estimator = pytest.importorskip("fairmaxent.estimator")
    noise(Deaf)
    X = np.array([[k % 2, k % 3] for k in range(90)])
    gap = np.where(np.arange(180).reshape(90, 2) == 1, np.nan, X)
    y, long, same = (
        np.array(["n", "p"] * 45),
        np.array(["perhaps", "p"] * 45),
        np.array(["n"] * 90),
    )
    levels = {"x0": [0, 1], "x1": [0, 1, 2], "y": ["n", "p", "perhaps"]}
    declared, drawn = Domain.declare(levels=levels, missing=["x1"]), []
    for rows, classes in ((X, y), (gap, y), (X, long), (X, same)):
        model = estimator.FairMaxEnt(
            0, privacy=ONE, domain=declared, rows=200, random_state=0, estimate=None
        )
        given = (rows.tolist(), classes.tolist()) if as_list else (rows, classes)
        drawn.append([np.asarray(part) for part in model.fit_resample(*given)])
    assert len({str((a.dtype, a.tolist(), b.dtype, b.tolist())) for a, b in drawn}) == 1
    assert set(drawn[0][1]) == {"n", "p", "perhaps"}
    assert np.isnan(drawn[0][0]).any()


class Losing(Silence):
    """Hides all men who were hired, as noise may."""

    def counts(self, table, scale):
        kept = table.copy()
        if len(kept) == 4:  # outcome × sex
            kept[3] = 0.0
        return kept


def test_what_noise_took_away_is_not_said_of_the_data(noise, tmp_path):
    noise(Losing)
    fit = private(favourable="yes")
    warnings = " ".join(fit.certificate.warnings)
    assert "no row that was fitted has hired = yes, sex = m" in warnings
    fit.report(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "nobody in the data" not in text
    assert "a group that is hardly larger is mostly noise" in text
