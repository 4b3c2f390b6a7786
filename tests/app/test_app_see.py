"""What See shows: the same as debias, in people, with what it costs, and scenarios to
compare.
"""

import numpy as np
import polars
import pytest

import fairmaxent
from appserver import OPTIONS, downloaded, opened, people, refused, staff
from fairmaxent.app import shown

RELABELLED = {"model": "logistic", "parity": "probabilities"}


def test_see_shows_what_debias_does(client):
    state, _ = opened(client)
    answer = client.fit(state, statistical_rate=0.9, representation_rate=None)
    asked = {
        "favourable": "yes",
        "statistical_rate": 0.9,
        "random_state": 0,
        "estimate": None,
    }
    fit = fairmaxent.debias(people(), "hired", "sex", **asked)
    see = answer["see"]
    rates = {one["kind"]: one for one in see["rates"]}
    assert rates["statistical_rate"]["after"] == pytest.approx(
        fit.certificate.achieved["statistical_rate"]["sex"]
    )
    assert rates["statistical_rate"]["wanted"] == 0.9
    table = fit.summary()
    for group, row in zip(see["groups"], table.iter_rows(named=True), strict=True):
        assert group["with_after"] == pytest.approx(
            600 * row["share_after"] * row["rate_after"]
        )
        mine = people().filter(
            polars.col("sex") == row["group"], polars.col("hired") == "yes"
        )
        assert group["with_before"] == pytest.approx(len(mine))
    assert see["effective_rows"] == pytest.approx(
        fit.certificate.effective_rows, rel=1e-9
    )
    assert client.get("/api/state")[1]["answer"] == answer


@pytest.mark.some(1)
@pytest.mark.parametrize("more", [{}, {"groups": "joint"}], ids=["each", "joint"])
def test_people_are_counted_as_in_the_file(client, more):
    rng = np.random.default_rng(8)
    gaps = polars.Series(rng.random(600) < 0.2)
    frame = people().with_columns(
        hired=polars.when(gaps).then(None).otherwise(polars.col("hired")),
        sex=polars.when(gaps.shift(7, fill_value=False))
        .then(None)
        .otherwise(polars.col("sex")),
    )
    state, _ = opened(client, frame=frame)
    answer = client.fit(state, **{**OPTIONS, "protected": ["sex", "region"], **more})
    groups = [one for one in answer["see"]["groups"] if "missing" not in one["group"]]
    assert len(groups) > 4
    for one in groups:
        levels = one["group"].split(" × ")
        columns = polars.col("sex", "region")
        mine = frame.filter(
            *(
                polars.any_horizontal(columns == level)
                for level in levels
                if level in "fmnsw"
            )
        )
        assert one["people_before"] == pytest.approx(len(mine))
        assert one["with_before"] == pytest.approx((mine["hired"] == "yes").sum())
    made = polars.read_csv(
        next(iter(downloaded(client, client.work("take")["result"]["files"]).values()))[
            2
        ]
    )
    for one in groups:
        if one["column"] == "sex":
            mine = made.filter(polars.col("sex") == one["group"])
            assert (mine["hired"] == "yes").sum() == pytest.approx(
                one["with_after"], abs=3
            )


@pytest.mark.more
def test_an_estimate_lasts_while_only_the_files_change(client):
    state, _ = opened(client)
    client.fit(state, statistical_rate=1)
    known = client.work("estimate")["result"]["answer"]["see"]["estimate"]
    assert (
        client.fit(state, statistical_rate=1, author="A. Author", rows=50)["see"][
            "estimate"
        ]
        == known
    )
    assert (
        client.fit(state, statistical_rate=1, mode="top-up")["see"]["estimate"] == known
    )
    answer = client.fit(state, statistical_rate=1, mode="weights")
    assert answer["see"]["estimate"] is None  # it was about new rows
    weighted = client.work("estimate")["result"]["answer"]
    assert weighted["see"]["estimate"]["output"] == "weights"
    assert "--estimate weights" in weighted["command"]
    back = client.fit(state, statistical_rate=1)
    assert back["see"]["estimate"] == known
    assert "--estimate rows" in back["command"]
    assert client.fit(state, statistical_rate=0.9)["see"]["estimate"] is None


@pytest.mark.more
def test_relabelling_has_its_price_and_a_model_its_warnings(client):
    state, _ = opened(client, frame=staff().with_columns(twin=polars.col("hired")))
    assert client.fit(state, **OPTIONS)["see"]["changed_people"] == 0
    see = client.fit(
        state, **{**OPTIONS, "protected": ["sex", "region"]}, **RELABELLED
    )["see"]
    assert 10 < see["changed_people"] < 600
    client.fit(state, **OPTIONS, drop=["age", "level", "promoted"])
    see = client.work("estimate")["result"]["answer"]["see"]
    told = {one["key"]: one for one in see["told"]}
    assert told["unfair_models"]["weight"] == "warning"
    assert told["estimate"]["tables"]


@pytest.mark.more
def test_what_a_model_would_decide_is_told_of_each_group(client):
    state, _ = opened(client)
    assert client.fit(state, **OPTIONS)["see"]["model"] is None
    see = client.fit(state, **OPTIONS, model="logistic", mode="weights")["see"]
    decisions = client.session._fitted.bare.certificate.decisions
    assert {(one["name"], one["about"]): one["decided"] for one in see["groups"]} == {
        (one.group, one.outcome): one.share for one in decisions.shares
    }
    assert see["model"]["student"] == decisions.student
    assert see["model"]["rates"] == {one.grouping: one.rate for one in decisions.rates}


@pytest.mark.more
@pytest.mark.parametrize(
    "wished", [{"sex": 0.9, "region": 0.77}, 1], ids=["each its own", "one for all"]
)
def test_a_curve_has_what_the_page_shows_at_each_rate(client, wished):
    state, _ = opened(client)
    both = {"protected": ["sex", "region"], "favourable": ["yes"]}
    see = client.fit(state, **both, statistical_rate=wished)["see"]
    rates = {one["columns"]: one for one in see["rates"] if "stat" in one["kind"]}
    for column, other in (("region", "sex"), ("sex", "region")):
        asked = {**client.present(), "kind": "statistical_rate", "column": column}
        curve = client.done("/api/curve", asked)["curve"]
        points = curve["points"]
        values = [point["value"] for point in points]
        own = rates[column]["before"]
        # from where the data are to 1, in whole steps
        step = round(values[1] - values[0], 2)
        assert own - step - 0.01 < values[0] <= own
        assert values[-1] == 1
        assert np.diff(values) == pytest.approx(step)
        assert curve["step"] == step
        assert len(values) <= 47
        sketch = client.done("/api/curve", {**asked, "sketch": True})["curve"]["points"]
        # a few of the same points, so that nothing jumps when the others come
        sketched = [point["value"] for point in sketch]
        assert len(sketch) <= 8
        assert {*sketched} <= {*values}
        assert [sketched[0], sketched[-1]] == [values[0], values[-1]]
        for point in (points[0], points[len(points) // 2], points[-1]):
            # the other column keeps its wish
            kept = wished[other] if isinstance(wished, dict) else wished
            moved = {column: point["value"], other: kept}
            shown._quick.clear()  # or it would be the same fit
            there = client.fit(state, **both, statistical_rate=moved)["see"]
            assert point["see"] == there
        client.fit(state, **both, statistical_rate=wished)
    asked = {**client.present(), "kind": "statistical_rate", "column": "region"}
    client.fit(state, statistical_rate=0.5)
    # something else was asked for since
    assert client.done("/api/curve", asked) == {"superseded": True}
    assert (
        client.post("/api/curve", {**client.present(), "kind": "base_share"})[0] == 422
    )
    client.fit(state, **RELABELLED)
    assert (
        "all rows"
        in client.done("/api/curve", {**client.present(), "kind": "statistical_rate"})[
            "skipped"
        ]
    )


@pytest.mark.more
def test_a_hand_that_rests_on_a_curve_needs_no_other_fit(client, monkeypatch):
    state, _ = opened(client)
    both = {"protected": ["sex", "region"], "favourable": ["yes"]}
    client.fit(state, **both, statistical_rate=1)
    asked = {**client.present(), "kind": "statistical_rate", "column": "sex"}
    points = client.done("/api/curve", asked)["curve"]["points"]
    monkeypatch.setattr(shown, "fit_rows", None)
    for point in points[::5]:
        rates = {"sex": point["value"], "region": 1}
        see = client.fit(state, **both, statistical_rate=rates)["see"]
        assert see == point["see"]
        wanted = {one["wanted"] for one in see["rates"] if one["columns"] == "sex"}
        assert point["value"] in wanted


def test_pins_have_names_and_none_is_lost(client):
    state, _ = opened(client)
    for number in range(3):
        client.fit(state, representation_rate=None, random_state=number)
        pins = client.pin()
    assert [pin["answer"]["scenario"]["random_state"] for pin in pins] == [0, 1, 2]
    assert [pin["name"] for pin in pins] == ["Pin 1", "Pin 2", "Pin 3"]
    refused(client.post("/api/pin", client.present()), "remove one")
    middle = pins[1]["number"]
    renamed = client.done(
        "/api/rename", {"number": middle, "name": "  fair \u202e<b>pay</b> " + "x" * 99}
    )["pins"]
    assert renamed[1]["name"].startswith("fair ")
    assert "\u202e" not in renamed[1]["name"]
    assert len(renamed[1]["name"]) == 60
    for nothing in ("  ", None, 7):
        assert (
            client.done("/api/rename", {"number": middle, "name": nothing})["pins"]
            == renamed
        )
    left = client.done("/api/unpin", {"number": pins[0]["number"]})["pins"]
    assert left == renamed[1:] == client.get("/api/state")[1]["pins"]
    assert client.pin()[-1]["name"] == "Pin 4"  # and no other one that was called so
    assert opened(client)[0]["pins"] == []


@pytest.mark.more
def test_a_pinned_scenario_is_put_back_with_its_estimate_and_without_another_fit(
    client, monkeypatch
):
    state, _ = opened(client)
    client.fit(state, statistical_rate=0.9, base_share=0.1)
    client.pin()
    result = client.work("estimate")["result"]
    pin = result["pins"][0]
    # what is found out later belongs to it, too
    assert pin["answer"]["see"] == result["answer"]["see"]
    client.fit(state, statistical_rate=0.7, protected=["region"], within={"sex": None})
    monkeypatch.setattr("fairmaxent.app.session.fit_read", None)
    values = {"table": state["table"]["number"], "options": pin["answer"]["scenario"]}
    answer = client.done("/api/fit", values)["answer"]
    for name in ("scenario", "see", "command", "python"):
        assert answer[name] == pin["answer"][name]
