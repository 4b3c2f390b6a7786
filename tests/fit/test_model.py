"""A table that is made for a model: what the model then decides about people whom
nobody has seen.
"""

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.pipeline import Pipeline as SamplingPipeline
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fairmaxent import Domain, Model, debias, load, progress
from fairmaxent.errors import InputError
from fairmaxent.fit.pipeline import refit
from fairmaxent.relabelling import closed_loop
from tables import hiring


def fitted(frame, model, **options):
    return debias(
        frame, "hired", "sex", favourable="yes", model=model, random_state=0, **options
    )


def decided(fit, people, threshold=0.5):
    """Whom the trained model decides for."""
    model = fit.model()
    seen = (
        people[list(model.feature_names_in_)]
        if hasattr(model, "feature_names_in_")
        else people
    )
    return model.predict_proba(seen)[:, list(model.classes_).index("yes")] > threshold


def rate(chosen, people):
    shares = pd.Series(chosen).groupby(people["sex"].to_numpy()).mean()
    return shares.min() / shares.max()


def own_pipeline(kind=Pipeline):
    columns = make_column_transformer(
        (OneHotEncoder(), ["sex", "town"]), (StandardScaler(), ["a", "b"])
    )
    return kind([("columns", columns), ("last", LogisticRegression())])


def by_heart():
    """A tree that knows everybody it learned from: what it decides about them says
    nothing of others.
    """
    texts = (OneHotEncoder(), make_column_selector(dtype_exclude="number"))
    columns = make_column_transformer(texts, remainder="passthrough")
    return make_pipeline(
        columns, DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
    )


class Boosted:
    """A classifier of another library: it takes a frame, and knows nothing of
    scikit-learn.
    """

    n_jobs = None

    def fit(self, frame, labels, sample_weight=None):
        self.inner = DecisionTreeClassifier(min_samples_leaf=40, random_state=0)
        self.inner.fit(self._numbers(frame), labels, sample_weight=sample_weight)
        self.classes_ = self.inner.classes_
        return self

    def predict_proba(self, frame):
        self.used = self.n_jobs
        return self.inner.predict_proba(self._numbers(frame))

    def _numbers(self, frame):
        return np.column_stack([frame["a"], frame["b"], frame["sex"] == "f"])


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("logistic", 0.89),
        (Model("logistic", hide_protected=True), 0.94),
        (Model("logistic", threshold=0.7), 0.87),
        ("decision tree", 0.9),
        (Model(own_pipeline(), parity="decisions"), 0.89),
        (own_pipeline(SamplingPipeline), 0.89),
        (Boosted(), 0.87),
        (by_heart(), 0.8),
    ],
    ids=[
        "logistic",
        "blind",
        "threshold",
        "tree",
        "pipeline",
        "sampling pipeline",
        "another library",
        "by heart",
    ],
)
def test_the_trained_model_decides_equally_about_people_it_has_not_seen(model, least):
    frame, people = hiring(0), hiring(1, rows=30_000)
    plan = model if isinstance(model, Model) else Model(model)
    fit = fitted(frame, model)
    found, reached = (
        fit.certificate.decisions,
        rate(decided(fit, people, plan.threshold), people),
    )
    raw = clone(fit.model(), safe=False)
    hidden = ["hired", "sex"] if plan.hide_protected else ["hired"]
    raw.fit(frame.drop(columns=hidden), frame["hired"])
    before = raw.predict_proba(people.drop(columns=hidden))[:, 1] > plan.threshold
    assert rate(before, people) < 0.6 < least < reached
    (expected,) = found.rates
    assert expected.low <= reached <= expected.high
    assert found.hide_protected is plan.hide_protected
    assert found.trainings <= 25
    assert abs(found.decided - decided(fit, people, plan.threshold).mean()) < 0.05
    assert abs(found.decided - before.mean()) < 0.06  # as many as before


@pytest.mark.more
def test_equal_opportunity_is_about_those_with_the_good_outcome():
    frame, people = hiring(2), hiring(3, rows=30_000)
    fit = fitted(frame, Model("logistic", parity="opportunity"))
    chosen, good = decided(fit, people), (people["hired"] == "yes").to_numpy()
    assert rate(chosen[good], people[good]) > 0.88
    assert rate(chosen, people) < 0.8  # which is something else
    assert "people of the data whose outcome is good" in str(fit.certificate)
    assert "may be too favourable" not in str(fit.certificate)
    known = fitted(frame, Model(by_heart(), parity="opportunity")).certificate
    # boosting learned from the people who are compared
    assert known.decisions.way == "soft"
    assert "may be too favourable" in str(known)


@pytest.mark.more
def test_the_model_learned_from_the_weighed_table_with_its_own_columns_and_labels(
    tmp_path,
):
    frame = hiring(4, rows=800).assign(
        note=[f"about {number}" for number in range(800)]
    )
    for table in (frame, pl.from_pandas(frame)):
        fit = fitted(table, "logistic")
        weighed = fit.weigh(table)
        weights, labels = (
            np.asarray(weighed[name]) for name in ("fair_weight", "hired")
        )
        seen = weighed[[name for name in frame if name != "hired"]]
        again = clone(fit.model()).fit(
            seen, labels, logisticregression__sample_weight=weights
        )
        np.testing.assert_allclose(
            again.predict_proba(seen), fit.model().predict_proba(seen), atol=1e-6
        )
        assert set(fit.model().classes_) == {"yes", "no"}
        drawn = fit.sample(1000, random_state=0)
        table_rate = rate(
            np.asarray(drawn["hired"]) == "yes",
            pd.DataFrame({"sex": np.asarray(drawn["sex"])}),
        )
        assert table_rate == pytest.approx(
            fit.certificate.achieved["statistical_rate"]["sex"], abs=0.01
        )
        assert len(fit.top_up()) > 0
    fit.save(tmp_path / "fit")
    back = load(tmp_path / "fit")
    assert str(back.certificate) == str(fit.certificate)
    with pytest.raises(
        InputError,
        match=(
            r"no model was trained for this fit.*model='logistic'.*file does not"
            r" hold it"
        ),
    ):
        back.model()
    again = refit(back, replace(back.request, base_share=0.0))
    np.testing.assert_allclose(again.weights(), fit.weights(), atol=1e-6)
    with pytest.raises(InputError, match="model has to be trained again for that"):
        refit(back, replace(back.request, statistical_rate=0.8))


@pytest.mark.more
def test_the_certificate_says_first_for_which_model_and_that_the_table_is_not_at_parity():
    known = fitted(hiring(5), Model("logistic", hide_protected=True)).certificate
    first, second, *_ = str(known).splitlines()
    assert (
        "made for a model: LogisticRegression that does not see the protected columns;"
        " leave them out" in first
    )
    least, most = sorted(known.decisions.shares, key=lambda share: share.taught)
    assert (
        f"most common for {most.group} ({most.taught:.1%}), least for {least.group}"
        f" ({least.taught:.1%})" in second
    )
    # of the table; that of decisions is wanted
    assert known.wanted["statistical_rate"]["sex"] is None
    assert "sees the protected columns; it needs them to decide" in str(
        fitted(hiring(5), "logistic").certificate
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1000, 4000])
@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("parity", ["decisions", "opportunity"])
def test_what_is_expected_is_what_other_people_show(parity, sees, rows):
    people, runs = hiring(99, rows=60_000), []
    compared = np.full(len(people), True)
    if parity == "opportunity":
        compared = (people["hired"] == "yes").to_numpy()
    plan = Model("logistic", parity=parity, hide_protected=not sees)
    for seed in range(50):
        fit = fitted(hiring([seed, 7], rows=rows), plan)
        (known,) = fit.certificate.decisions.rates
        reached = rate(decided(fit, people)[compared], people[compared])
        runs.append((known.rate, reached, known.low <= reached <= known.high))
    expected, reached, covered = np.mean(runs, axis=0)
    allowed = {"decisions": 0.01, "opportunity": 0.015}[parity]
    assert expected == pytest.approx(reached, abs=allowed)
    assert covered >= 0.92


@pytest.mark.more
@pytest.mark.parametrize("threshold", [0.5, 0.1])  # few are decided for, or nearly all
def test_groups_of_few_people_are_named_and_not_promised(threshold):
    frame = hiring(6, groups=("f", "m", "x"), shares=[0.495, 0.495, 0.01])
    fit = fitted(frame, Model("logistic", threshold=threshold))
    assert fit.certificate.decisions.unsure == ("sex = x",)
    assert any(
        "too few people to promise anything" in line and "sex = x" in line
        for line in fit.certificate.warnings
    )
    people = hiring(7, rows=30_000)
    assert rate(decided(fit, people, threshold), people) > 0.92


@pytest.mark.more
@pytest.mark.parametrize("others", [40, 300])
def test_a_group_that_cannot_be_taught_stops_nobody_and_is_not_forgotten(others):
    frame = pd.concat(
        [hiring(5, 1000), hiring(6, others).assign(sex="x", hired="no")],
        ignore_index=True,
    )
    fit = fitted(frame, "logistic")
    shares = {one.group: one.share for one in fit.certificate.decisions.shares}
    assert (
        abs(shares["sex = f"] - shares["sex = m"])
        < 0.03
        < 0.3
        < shares["sex = f"] - shares["sex = x"]
    )
    assert fit.certificate.decisions.unsure == (("sex = x",) if others == 40 else ())
    assert (fit.certificate.decisions.rates[0].rate < 0.1) == (others == 300)


@pytest.mark.more
def test_people_of_an_unknown_group_do_not_steer():
    known, unknown, people = (
        hiring(seed, rows, ("f", "m", "x"))
        for seed, rows in ((3, 1200), (30, 150), (9, 30_000))
    )
    unknown = unknown.assign(sex=None, hired=["yes", *["no"] * 149], a=unknown["a"] - 4)
    fit = fitted(
        pd.concat([known, unknown], ignore_index=True),
        Model("logistic", hide_protected=True),
    )
    assert rate(decided(fit, people), people) > 0.85
    assert len(fit.certificate.decisions.shares) == 3


@pytest.mark.more
def test_chance_is_not_chased():
    """Groups that differ in nothing: what is seen of a difference is chance, so the
    table stays nearly as it is.
    """
    frame = hiring(8).assign(
        sex=lambda frame: np.where(np.arange(len(frame)) % 2, "f", "m")
    )
    assert np.abs(fitted(frame, "logistic").certificate.decisions.offsets).max() < 0.1


@pytest.mark.more
@pytest.mark.parametrize("model", ["logistic", "boosting"])
def test_gaps_of_pandas_can_be_learned_from(model):
    frame = hiring(17, rows=600)
    frame["hired"] = (
        (frame["hired"] == "yes").astype(object).where(np.arange(600) % 20 > 0, None)
    )
    frame["town"] = frame["town"].astype("string").mask(np.arange(600) % 7 == 0)
    fit = debias(frame, "hired", "sex", favourable=True, model=model, random_state=0)
    assert set(fit.model().classes_) == {True, False}


@pytest.mark.more
def test_missing_values_are_not_compared_unless_asked_for():
    frame = hiring(18, rows=600)
    frame.loc[::9, "sex"] = None
    frame.loc[::11, "hired"] = None
    for missing, groups in ((False, 2), (True, 3)):
        people = frame.dropna(subset="hired") if missing else frame
        assert (
            len(
                fitted(
                    people, "logistic", compare_missing=missing
                ).certificate.decisions.shares
            )
            == groups
        )


@pytest.mark.more
@pytest.mark.parametrize("farthest", [0.0, 3.0], ids=["left alone", "moved"])
def test_people_keep_their_outcome_as_far_as_their_profile_allows(
    farthest, monkeypatch
):
    """The group is hidden, several people share a profile (`a` is in bins), and the
    outcome of some is unknown.
    """
    monkeypatch.setattr(closed_loop, "_FARTHEST", farthest)
    frame = hiring(0, rows=500).drop(columns="b")
    frame.loc[::9, "hired"] = None
    fit = fitted(frame, Model("logistic", hide_protected=True), base_share=0.0)
    profile = fit.domain.encode(frame)[:, :-1].dot([1, 10, 1000])
    weighed = fit.weigh(
        frame.assign(profile=profile, old=frame["hired"].fillna("unknown"))
    )
    moved = weighed[weighed["hired"].fillna("unknown") != weighed["old"]]
    assert (
        (len(moved) > 0)
        == (farthest > 0)
        == ("Outcomes were changed" in str(fit.certificate))
    )
    assert set(moved["old"]) | set(moved["hired"]) <= {"yes", "no"}
    # no two people swap theirs
    assert (moved.groupby("profile")["old"].nunique() == 1).all()
    changes = {
        (one.group[6:], one.old, one.new): one.changed
        for one in fit.certificate.costs.changed
    }
    real = {names: changed for names, changed in changes.items() if changed > 1e-6}
    assert real == pytest.approx(
        moved.groupby(["sex", "old", "hired"])["fair_weight"].sum().to_dict()
    )
    if not farthest:
        pd.testing.assert_frame_equal(fit.weigh(frame), frame.assign(fair_weight=1.0))
    # nobody gets the number of somebody else
    for rows in (fit.sample(400), fit.top_up()):
        assert len(rows.merge(frame.drop(columns="hired"))) == len(rows)
    good = weighed[weighed["hired"] == "yes"]
    mean = fit.distribution.expectation("a", given={"hired": "yes"})
    assert mean == pytest.approx(np.average(good["a"], weights=good["fair_weight"]))


@pytest.mark.more
def test_where_nobody_is_decided_for_equal_decisions_say_nothing():
    fit = fitted(hiring(19, rows=400), Model("logistic", threshold=0.999))
    assert fit.certificate.decisions.rates[0].vacuous
    (warning,) = [line for line in fit.certificate.warnings if "say nothing" in line]
    assert "decides for hired = yes for nobody" in warning


@pytest.mark.more
def test_progress_names_every_stage():
    calls = []
    fitted(hiring(20, rows=300), "logistic", progress=lambda *call: calls.append(call))
    assert list(dict.fromkeys(stage for stage, _ in calls)) == [
        "read",
        "count",
        "train",
        "base",
        "solve",
    ]
    shares = [share for stage, share in calls if stage == "train"]
    assert shares == sorted(shares)
    source = Path(progress.__file__).parent
    # whose stages say it themselves
    wings = [path for path in source.rglob("*.py") if path.parent.name != "app"]
    told = [
        re.findall(r'(?:progress\(|\(progress, )"([\w-]+)"', path.read_text("utf-8"))
        for path in wings
    ]
    assert set(chain(*told)) == set(progress.STEPS)


@pytest.mark.more
def test_a_lower_rate_is_met_and_no_more():
    people, fit = (
        hiring(10, rows=30_000),
        fitted(hiring(9), "logistic", statistical_rate=0.7),
    )
    assert 0.6 < rate(decided(fit, people), people) < 0.8


@pytest.mark.more
def test_as_many_may_be_decided_for_as_makes_it_most_accurate():
    people, right = hiring(12, rows=30_000), {}
    for choice in ("keep", "best"):
        fit = fitted(
            hiring(11, rows=3000), Model("logistic", threshold=0.8, decided=choice)
        )
        chosen = decided(fit, people, 0.8)
        right[choice] = (chosen == (people["hired"] == "yes")).mean()
        assert rate(chosen, people) > 0.9
    assert right["best"] > right["keep"] + 0.01


@pytest.mark.more
@pytest.mark.parametrize("asked", [None, 3])
def test_a_student_uses_one_thread_unless_told_otherwise(asked, monkeypatch):
    monkeypatch.setattr(Boosted, "n_jobs", asked)
    student = fitted(hiring(1, 300), Boosted()).model()
    assert (student.used, student.n_jobs) == (asked or 1, asked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model": "forest"},
            (
                "model is 'forest', which cannot be fitted.*'logistic', 'boosting',"
                " 'decision tree'"
            ),
        ),
        (
            {"model": LogisticRegression},
            "model is LogisticRegression, which cannot be fitted",
        ),
        (
            {"model": LogisticRegression()},
            "LogisticRegression could not be trained on the columns of the table",
        ),
        (
            {"favourable": None},
            "needs to know which outcome is good; name one with favourable",
        ),
        ({"estimate": "rows"}, "estimate cannot go together with model"),
        ({"largest_weight": 3.0}, "largest_weight cannot go together with model"),
        ({"target": {"town": None}}, "target cannot go together with model"),
        (
            {"forbid": [{"town": "in", "hired": "yes"}]},
            "forbid cannot go together with model",
        ),
        (
            {
                "model": Model("logistic", hide_protected=True),
                "frame": ["sex", "hired"],
            },
            "all are hidden",
        ),
        ({"lazy": True}, "model needs the table in memory"),
    ],
)
def test_refusals(options, message):
    asked = {"favourable": "yes", "model": "logistic", **options}
    frame = hiring(16, rows=300)[asked.pop("frame", ["sex", "a", "town", "hired"])]
    with pytest.raises(InputError, match=message):
        debias(
            pl.from_pandas(frame).lazy() if asked.pop("lazy", False) else frame,
            "hired",
            "sex",
            **asked,
        )


def test_an_outcome_in_ranges_is_refused():
    domain = Domain.infer(frame := hiring(4, rows=300), bins={"a": [-9.0, 0.0, 9.0]})
    with pytest.raises(
        InputError, match="needs an outcome of two values, not of ranges of numbers"
    ):
        debias(
            frame,
            "a",
            "sex",
            favourable=domain.attribute("a").labels[1],
            domain=domain,
            model="logistic",
        )


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"parity": "error"}, "parity is 'error'"),
        (
            {"parity": "equalized odds"},
            (
                "cannot be reached: they ask for two rates, .* one threshold .*"
                " 'opportunity'"
            ),
        ),
        ({"threshold": 1.0}, "threshold is 1.0; .* a probability between 0 and 1"),
        ({"hide_protected": 1}, "hide_protected is 1; it must be True or False"),
        ({"decided": "all"}, "decided is 'all'"),
    ],
)
def test_a_model_that_cannot_be_meant_is_refused(plan, message):
    with pytest.raises(InputError, match=message):
        Model("logistic", **plan)


@pytest.mark.more
@pytest.mark.parametrize(
    ("plan", "way"),
    [
        (Model(LogisticRegression(), hide_protected=True), "soft"),
        (
            Model(DecisionTreeClassifier(min_samples_leaf=150, random_state=0)),
            "tilt",
        ),
    ],
)
def test_the_table_deals_to_people_of_one_profile_what_the_search_dealt(plan, way):
    """Many have the same bins, and numbers of their own."""
    frame = hiring(4, rows=800)[["sex", "a", "b", "hired"]]
    fit = fitted(frame := frame.assign(sex=(frame["sex"] == "m") * 1), plan)
    assert fit.certificate.decisions.way == way
    seen, weighed = list(fit.model().feature_names_in_), fit.weigh(frame)
    again = clone(fit.model()).fit(
        weighed[seen], weighed["hired"], sample_weight=weighed["fair_weight"]
    )
    np.testing.assert_allclose(
        again.predict_proba(frame[seen]),
        fit.model().predict_proba(frame[seen]),
        atol=1e-6,
    )
