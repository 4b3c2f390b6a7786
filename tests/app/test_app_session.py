"""The way from a table to the files over real requests, and that the command and the Python make the same bytes."""

import json
import shlex
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import polars
import pytest

import fairmaxent
from appserver import running
from fairmaxent.app.jobs import Jobs
from fairmaxent.app.labels import as_labelled
from fairmaxent.app.latest_only import LatestOnly
from fairmaxent.app.refusals import SupersededError
from fairmaxent.app.scenario import Scenario
from fairmaxent.cli.commands.debias import command as debias
from fairmaxent.cli.group import group as commands
from fairmaxent.cli.request_options import REQUEST_NAMES, AskedOptions
from fairmaxent.cli.role_options import RoleOptions
from fairmaxent.report.browser import find_browser

OPTIONS = {"outcome": "hired", "protected": ["sex"], "favourable": ["yes"]}


def people(rows=600, **more):
    rng = np.random.default_rng(3)
    sex, region = rng.choice(["f", "m"], rows, p=[0.4, 0.6]), rng.choice(["n", "s", "w"], rows)
    hired = np.where(rng.random(rows) < np.where(sex == "f", 0.2, 0.5), "yes", "no")
    age = rng.integers(18, 60, rows)
    return polars.DataFrame({"sex": sex, "region": region, "age": age, "hired": hired, **more})


def staff(rows=600):
    """The same people with a second outcome and a small number."""
    rng = np.random.default_rng(4)
    return people(rows).with_columns(
        level=polars.Series(rng.integers(1, 4, rows)), promoted=polars.Series(rng.choice(["yes", "no"], rows))
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("app")) as client:
        yield client


def opened(client, name="people.csv", frame=None):
    frame = people() if frame is None else frame
    import io

    content = io.BytesIO()
    frame.write_parquet(content) if name.endswith(".parquet") else frame.write_csv(content)
    status, state = client.upload(name, content.getvalue())
    assert status == 200, state
    return state, content.getvalue()


def downloaded(client, files):
    return {file["name"]: client.send("GET", f"/files/{file['folder']}/{file['name']}") for file in files}


# ---------------------------------------------------------------- look, ask, see


def test_a_table_is_looked_at_and_roles_are_proposed(client):
    state, _ = opened(client)
    assert (state["options"]["outcome"], state["options"]["protected"]) == ("hired", ["sex"])
    assert state["options"]["favourable"] == ["yes"]
    groups = state["look"]["groupings"][0]["groups"]
    frame = people()
    for group in groups:
        mine = frame.filter(polars.col("sex") == group["group"])
        assert group["rows"] == len(mine)
        assert group["rate"] == pytest.approx((mine["hired"] == "yes").mean())
        assert group["interval"][0] < group["rate"] < group["interval"][1]
    assert client.get("/api/state")[1]["table"] == state["table"]  # a reload finds it


@pytest.mark.parametrize("groups", ["each", "joint"])
def test_missing_values_are_counted_by_group(client, groups):
    frame = people().with_columns(
        age=polars.when(polars.col("sex") == "f").then(None).otherwise(polars.col("age")),
        region=polars.when(polars.int_range(600) % 3 == 0).then(None).otherwise(polars.col("region")),
    )
    state, _ = opened(client, frame=frame)
    values = {**OPTIONS, "protected": ["sex", "region"], "groups": groups}
    look = client.done("/api/look", {"table": state["table"]["number"], "options": values})["look"]
    assert len(look["groupings"]) == (2 if groups == "each" else 1)
    for grouping in look["groupings"]:
        columns = [grouping["name"]] if groups == "each" else ["sex", "region"]
        others = [name for name in frame.columns if name not in columns]
        assert grouping["groups"]
        for group in grouping["groups"]:
            mine = frame.filter(
                *(polars.col(name) == level for name, level in zip(columns, group["group"].split(" × "), strict=True))
            )
            counts = {name: mine[name].null_count() for name in others}
            assert group["missing"]["share"] == pytest.approx(sum(counts.values()) / (len(mine) * len(others)))
            worst = max(counts, key=counts.get)
            if counts[worst]:
                assert group["missing"]["most_in"] == worst
                assert group["missing"]["most"] == pytest.approx(counts[worst] / len(mine))


def test_the_shares_of_every_column_are_known(client):
    state, _ = opened(client)
    columns = {column["name"]: column for column in state["look"]["columns"]}
    counts = people()["region"].value_counts(normalize=True).sort("region")
    assert columns["region"]["shares"] == [[level, pytest.approx(share)] for level, share in counts.iter_rows()]
    assert sum(share for _, share in columns["age"]["shares"]) == pytest.approx(1)
    assert [level for level, _ in columns["age"]["shares"]] == columns["age"]["choices"]


def test_a_file_is_read_as_asked(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = people().iter_rows()
    text = "a remark\n" + "".join(f"{sex}|{region}|{age},5|{hired}\n" for sex, region, age, hired in rows)
    content = (text.replace("|w|", "|??|") + "sum of all\n").encode("utf-16")
    (tmp_path / "odd.csv").write_bytes(content)
    status, state = client.upload("odd.csv", content)
    reading = {
        "delimiter": "|",
        "encoding": "utf-16",
        "decimal": ",",
        "skip_lines": 1,
        "skip_last": 1,
        "missing": ["", "??"],
        "columns": "sex,region,age,hired",
    }
    assert status == 422, state  # it cannot be guessed at, but it is kept
    number = client.get("/api/state")[1]["unread"]["number"]
    state = client.done("/api/read", {"table": number, "options": reading})
    assert state["table"]["reading"] == reading
    assert state["unread"] is None
    columns = {column["name"]: column for column in state["look"]["columns"]}
    assert columns["age"]["kind"] == "numeric"
    assert columns["region"]["missing"] == len(people().filter(polars.col("region") == "w"))
    answer = client.fit(state, **OPTIONS, representation_rate=None)
    body = next(body for _, _, body in downloaded(client, client.work("take")["result"]["files"]).values())
    with pytest.raises(SystemExit) as ended:
        commands.main(shlex.split(answer["command"])[1:], "fairmaxent")
    assert ended.value.code == 0
    assert (tmp_path / "odd-fair.csv").read_bytes() == body
    (tmp_path / "odd-fair.csv").unlink()
    exec(compile(answer["python"], "snippet", "exec"), {})
    assert (tmp_path / "odd-fair.csv").read_bytes() == body


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ({"encoding": "klingon"}, "klingon"),
        ({"delimiter": 3}, "takes"),
        ({"drop": ["sex"]}, "unknown option"),
        ({"input_format": "exe"}, "Format of the file"),
    ],
)
def test_a_file_that_cannot_be_read_so_stays_as_it_was(client, reading, said):
    state, _ = opened(client)
    status, answer = client.post("/api/read", {"table": state["table"]["number"], "options": reading})
    assert status == 422
    assert said in answer["error"]
    assert client.get("/api/state")[1]["table"] == state["table"]


DOMAIN = """
[levels]
sex = ["f", "m"]
region = ["n", "s", "w"]
hired = ["no", "yes"]
[edges]
age = [18, 30, 45, 60]
"""


def test_a_private_fit_spends_its_budget_when_told_and_only_then(client):
    pytest.importorskip("opendp")
    state, _ = opened(client)
    number = state["table"]["number"]
    drafted = client.done("/api/draft", {"table": number, "options": OPTIONS})["text"]
    assert "draft = true" in drafted
    private = {**OPTIONS, "representation_rate": None, "epsilon": 5, "domain": DOMAIN}

    def ask(spend=False, **more):
        return client.post("/api/fit", {"table": number, "options": {**private, **more}, "spend": spend})

    status, answer = ask()
    assert status == 422
    assert "Spend the budget" in answer["error"]
    status, answer = ask(spend=True, domain=drafted)
    assert status == 422
    assert "draft" in answer["error"]
    status, answer = ask(spend=True, representation_rate=None)
    assert status == 200, answer
    assert answer["answer"]["spent"] == ["ε = 5, δ = 1e-09"]
    seen = answer["answer"]["see"]["groups"]
    status, moved = ask(statistical_rate=0.8)  # from what was measured already
    assert status == 200, moved
    assert moved["answer"]["spent"] == ["ε = 5, δ = 1e-09"]
    assert [group["rate_before"] for group in moved["answer"]["see"]["groups"]] == [
        group["rate_before"] for group in seen
    ]
    assert ask(protected=["region"])[0] == 422  # which is another look
    assert ask(epsilon=None)[0] == 200
    assert ask()[0] == 200
    status, again = ask(spend=True, epsilon=1, delta=1e-8)
    assert status == 200
    assert again["answer"]["spent"] == ["ε = 5, δ = 1e-09", "ε = 1, δ = 1e-08"]
    job = client.work("take")
    assert job["state"] == "done", job
    files = {file["what"]: file["name"] for file in job["result"]["files"]}
    assert files["Public values"] == "people-domain.toml"
    bodies = downloaded(client, job["result"]["files"])
    assert bodies["people-domain.toml"][2].decode() == DOMAIN
    for words in ("--epsilon 1", "--delta 1e-08", "--domain people-domain.toml"):
        assert words in again["answer"]["command"]
    assert "read_domain('people-domain.toml')" in again["answer"]["python"]
    assert "Privacy(delta=1e-08)" in again["answer"]["python"]


def test_the_declared_kind_decides_how_a_column_is_read(client):
    """Without the level "none", the regions of the file look like numbers."""
    state, _ = opened(client, frame=people().with_columns(polars.col("region").replace({"n": "1", "s": "2", "w": "3"})))
    declared = DOMAIN.replace('["n", "s", "w"]', '["1", "2", "3", "none"]')
    asked = {**OPTIONS, "protected": ["region"], "representation_rate": None, "share": True, "domain": declared}
    answer = client.fit(state, **asked)
    assert {group["group"] for group in answer["see"]["groups"]} >= {"1", "2", "3"}
    assert "texts=('region',)" in answer["python"]
    job = client.work("take")
    rows = next(file for file in job["result"]["files"] if file["what"] == "New rows")
    taken = polars.read_csv(downloaded(client, [rows])[rows["name"]][2], infer_schema=False)
    assert set(taken["region"]) <= {"1", "2", "3", "none"}


def test_see_shows_what_debias_does(client):
    state, _ = opened(client)
    answer = client.fit(state, statistical_rate=0.9, representation_rate=None)
    fit = fairmaxent.debias(
        people(), "hired", "sex", favourable="yes", statistical_rate=0.9, random_state=0, estimate=None
    )
    see = answer["see"]
    rates = {one["kind"]: one for one in see["rates"]}
    assert rates["statistical_rate"]["after"] == fit.certificate.achieved["statistical_rate"]["sex"]
    assert rates["statistical_rate"]["wanted"] == 0.9
    table = fit.summary()
    for group, row in zip(see["groups"], table.iter_rows(named=True), strict=True):
        assert group["with_after"] == pytest.approx(600 * row["share_after"] * row["rate_after"])
        assert group["with_before"] == pytest.approx(
            len(people().filter(polars.col("sex") == row["group"], polars.col("hired") == "yes"))
        )
    assert see["effective_rows"] == fit.certificate.effective_rows
    assert client.get("/api/state")[1]["answer"] == answer


def test_missing_values_are_no_choice_and_notes_name_the_file_as_it_is_known(client):
    text = "Survey of pay\n\nsex;pay;promoted\n" + "f;1,5;yes\nm;2,5;no\n;3,5;yes\nm;2,0;\nf;2,5;no\nm;1,0;yes\n" * 20
    status, state = client.upload("pay.csv", text.encode())
    assert status == 200, state
    columns = {column["name"]: column for column in state["look"]["columns"]}
    assert columns["sex"]["choices"] == ["f", "m"]
    assert columns["promoted"]["choices"] == ["no", "yes"]
    assert any("the header of pay.csv" in note for note in state["look"]["notes"])
    assert str(client.session.folder) not in json.dumps(state)
    answer = client.fit(state, representation_rate=None)
    assert "--like-input" in answer["command"]
    job = client.work("take")
    report = next(file for file in job["result"]["files"] if file["what"] == "Report")
    _, _, body = client.send("GET", f"/files/{report['folder']}/{report['name']}")
    assert str(client.session.folder).encode() not in body
    target = {"sex": {"f": 0.5, "m": 0.5}}
    assert client.fit(state, representation_rate=None, target=target)["see"]["groups"]


def test_what_is_impossible_is_said_in_the_words_of_the_page(client):
    state, _ = opened(client)
    status, answer = client.post(
        "/api/fit", {"table": state["table"]["number"], "options": {**OPTIONS, "base_share": -1}}
    )
    assert status == 422
    assert "“New combinations” is -1" in answer["error"]


@pytest.mark.parametrize("more", [{}, {"groups": "joint"}], ids=["each", "joint"])
def test_people_are_counted_as_in_the_file(client, more):
    rng = np.random.default_rng(8)
    gaps = polars.Series(rng.random(600) < 0.2)
    frame = people().with_columns(
        hired=polars.when(gaps).then(None).otherwise(polars.col("hired")),
        sex=polars.when(gaps.shift(7, fill_value=False)).then(None).otherwise(polars.col("sex")),
    )
    state, _ = opened(client, frame=frame)
    answer = client.fit(state, **{**OPTIONS, "protected": ["sex", "region"], **more})
    groups = [one for one in answer["see"]["groups"] if "missing" not in one["group"]]
    assert len(groups) > 4
    for one in groups:
        levels = one["group"].split(" × ")
        mine = frame.filter(
            *(polars.any_horizontal(polars.col("sex", "region") == level) for level in levels if level in "fmnsw")
        )
        assert one["people_before"] == pytest.approx(len(mine))
        assert one["with_before"] == pytest.approx((mine["hired"] == "yes").sum())
    made = polars.read_csv(next(iter(downloaded(client, client.work("take")["result"]["files"]).values()))[2])
    for one in groups:
        if one["column"] == "sex":
            assert (made.filter(polars.col("sex") == one["group"])["hired"] == "yes").sum() == pytest.approx(
                one["with_after"], abs=3
            )


def test_an_estimate_lasts_while_only_the_files_change(client):
    state, _ = opened(client)
    client.fit(state, statistical_rate=1)
    known = client.work("estimate")["result"]["answer"]["see"]["estimate"]
    assert client.fit(state, statistical_rate=1, author="A. Author", rows=50)["see"]["estimate"] == known
    assert client.fit(state, statistical_rate=1, mode="top-up")["see"]["estimate"] == known
    assert client.fit(state, statistical_rate=1, mode="weights")["see"]["estimate"] is None  # it was about new rows
    assert client.fit(state, statistical_rate=0.9)["see"]["estimate"] is None


def test_slow_work_says_that_the_wish_changed_and_is_known_after_a_reload(client):
    state, _ = opened(client)
    client.fit(state)
    job = client.done("/api/job", {"kind": "estimate"})
    assert [one["number"] for one in client.get("/api/state")[1]["jobs"]] == [job["number"]]
    client.fit(state, statistical_rate=0.9)
    _, job = client.get(f"/api/job/{job['number']}")
    assert job["state"] == "failed"
    assert "changed meanwhile" in job["error"]
    assert client.get("/api/state")[1]["jobs"] == []


def test_an_identifier_that_is_kept_is_said_to_be(client):
    frame = people().with_columns(person=polars.Series(np.random.default_rng(1).permutation(600) + 10_000))
    state, _ = opened(client, "people.parquet", frame)
    assert any("'person'" in note and "left out" in note for note in state["look"]["notes"])
    asked = {**OPTIONS, "keep": ["person"]}
    notes = client.done("/api/look", {"table": state["table"]["number"], "options": asked})["look"]["notes"]
    assert not any("left out" in note for note in notes)
    assert any("'person'" in note and "people they do not belong to" in note for note in notes)


def test_the_rates_of_new_rows_are_foreseen(client):
    state, _ = opened(client)
    client.fit(state, rows=90)
    values = client.done("/api/expected", {})
    fit = client.session._fitted.fit
    ranges = fit.certificate.interval(90)
    assert values["rows"] == 90
    assert {(one["kind"], one["name"]): tuple(one["range"]) for one in values["rates"]} == {
        (kind, name): span for kind, by in ranges.items() for name, span in by.items()
    }
    made = polars.read_csv(next(iter(downloaded(client, client.work("take")["result"]["files"]).values()))[2])
    rates = made.group_by("sex").agg((polars.col("hired") == "yes").mean())["hired"]
    low, high = ranges["statistical_rate"]["sex"]
    assert low - 1e-9 <= rates.min() / rates.max() <= high + 1e-9
    client.fit(state, mode="weights")
    assert client.done("/api/expected", {})["rates"] == []  # weights have them exactly


def test_relabelling_has_its_price_and_a_model_its_warnings(client):
    state, _ = opened(client, frame=staff().with_columns(twin=polars.col("hired")))
    assert client.fit(state, **OPTIONS)["see"]["changed_people"] == 0
    see = client.fit(state, **{**OPTIONS, "protected": ["sex", "region"]}, relabel="probabilities")["see"]
    assert 10 < see["changed_people"] < 600
    client.fit(state, **OPTIONS, drop=["age", "level", "promoted"])
    see = client.work("estimate")["result"]["answer"]["see"]
    assert see["estimate"]["same_for_all"] == pytest.approx((people()["hired"] == "no").mean())
    assert see["about_models"]
    assert not set(see["about_models"]) & set(see["notes"])


def test_files_are_named_by_what_they_are(client):
    state, _ = opened(client)
    names = []
    for mode in ("rows", "weights", "top-up"):
        answer = client.fit(state, mode=mode)
        names.append(client.work("take")["result"]["files"][0]["name"])
        assert names[-1] in answer["command"]
    assert names == ["people-fair.csv", "people-fair-weights.csv", "people-fair-added.csv"]


def test_group_sizes_are_kept_unless_asked(client):
    frame = people().with_columns(sex=polars.Series(np.tile(["f", "m"], 300)))  # balanced, so nothing speaks against it
    state, _ = opened(client, frame=frame)
    assert "representation_rate" not in state["options"]
    answer = client.fit(state)
    assert {one["kind"]: one["wanted"] for one in answer["see"]["rates"]}["representation_rate"] is None


def test_an_older_result_is_not_taken_for_a_newer_wish(client):
    state, _ = opened(client)
    client.fit(state)
    assert client.get("/api/state")[1]["outdated"] is False
    wish = {**OPTIONS, "base_share": -1}
    assert client.post("/api/fit", {"table": state["table"]["number"], "options": wish})[0] == 422
    assert client.get("/api/state")[1]["outdated"] is True
    job = client.work("take")
    assert job["state"] == "failed"
    assert "what you asked for last" in job["error"]
    client.fit(state)
    assert client.work("take")["state"] == "done"


# ---------------------------------------------------------------- take

CASES = {
    "rows": {},
    "weights": {"mode": "weights"},
    "top-up": {"mode": "top-up", "representation_rate": 1.0},
    "fewer rows": {"rows": 50, "random_state": 7, "base": "product", "base_share": 0.5},
    "relabelled": {"relabel": "probabilities", "threshold": 0.4, "mode": "weights", "blind": True},
    "two columns": {
        "protected": ["sex", "region"],
        "representation_rate": {"sex": 0.9, "region": None},
        "statistical_rate": {"sex": 1.0, "region": 0.8},
        "largest_weight": 4.0,
        "drop": ["age"],
    },
    "joint": {"protected": ["sex", "region"], "groups": "joint", "representation_rate": None},
    "within": {"within": {"region": None}, "representation_rate": None},
    "within some levels": {"within": {"region": ["n", "s"]}, "representation_rate": None},
    "forbidden": {"forbid": [{"sex": "f", "region": "w"}], "representation_rate": None, "keep": []},
    "numbers redrawn": {"detail": "bins", "representation_rate": None},
    "columns read differently": {
        "bins": {"age": [18, 30, 45, 60]},
        "kinds": {"level": "categorical"},
        "order": {"region": ["w", "s", "n"]},
        "max_levels": 30,
        "representation_rate": None,
    },
    "fewer bins": {"bins": 4, "representation_rate": None, "weight": "level"},
    "shares of another column": {
        "target": {"region": {"n": 0.2, "s": 0.3, "w": 0.5}, "hired": None},
        "representation_rate": None,
    },
    "several outcomes": {"also": {"promoted": ["yes"]}, "representation_rate": None, "favourable": ["yes"]},
    "another outcome, all levels": {"also": {"promoted": None}, "representation_rate": None, "favourable": []},
    "equal means": {"outcome": "age", "favourable": [], "equal_means": True, "representation_rate": None},
    "named weights": {"mode": "weights", "weight_name": "w", "weight": "level", "representation_rate": None},
    "judged in the report": {"evaluate": True, "representation_rate": None},
    "public values": {
        "share": True,
        "domain": """levels.sex = ["f", "m"]
levels.region = ["n", "s", "w"]
levels.hired = ["no", "yes"]
levels.promoted = ["no", "yes"]
levels.level = [1, 2, 3]
edges.age = [18, 30, 45, 60]
""",
        "representation_rate": None,
    },
    "shares": {"target": {"sex": {"f": 0.6, "m": 0.4}}, "representation_rate": None, "compare_missing": True},
    "free outcome": {"target": {"hired": "free"}, "representation_rate": 1.0, "iid": True, "rows": 80},
    "filed": {"title": "Pay & “parity”", "author": "A. Author", "purpose": "to see", "representation_rate": None},
    "many at once": {
        "bins": {"age": [18, 30, 45, 60]},
        "kinds": {"level": "categorical"},
        "within": {"region": ["n", "s"]},
        "also": {"promoted": ["yes"]},
        "target": {"level": {"1": 0.2, "2": 0.3, "3": 0.5}},
        "forbid": [{"level": "1", "region": "w"}],
        "detail": "bins",
        "representation_rate": None,
        "purpose": "to see",
    },
    "identifier": {"keep": ["person"], "representation_rate": None},
    "to share": {"share": True, "representation_rate": None},
}


def asked_for(tokens):
    """The request that the command line makes of these words, for the table of these tests."""
    with debias.make_context(
        "debias", list(tokens[2:]), parent=commands.make_context("fairmaxent", [], resilient_parsing=True)
    ) as ctx:
        params = ctx.params
        roles = RoleOptions(*(params[name] for name in ("outcome", "protected", "favourable", "groups", "weight")))
        return AskedOptions({name: params[name] for name in REQUEST_NAMES}).request(roles, None)


# Parquet is read where it is, so what is made from it takes another way; the options are the same.
SCANNED = (
    "rows",
    "weights",
    "top-up",
    "relabelled",
    "to share",
    "columns read differently",
    "fewer bins",
    "public values",
)
QUICK = (("weights", ".csv"), ("two columns", ".csv"), ("many at once", ".csv"), ("rows", ".parquet"))
REPEATED = [(case, ".csv") for case in CASES] + [(case, ".parquet") for case in SCANNED]


@pytest.mark.parametrize(
    ("case", "suffix"),
    [pytest.param(*one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in REPEATED],
)
def test_the_command_and_the_python_repeat_it_byte_for_byte(client, case, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairmaxent.report.trade_off.LARGEST_TABLE", 0)  # the curves are tested elsewhere
    frame = people(person=[f"P{number:05d}" for number in range(600)]) if case == "identifier" else staff()
    state, content = opened(client, f"people{suffix}", frame)
    (tmp_path / f"people{suffix}").write_bytes(content)
    answer = client.fit(state, **{**OPTIONS, **CASES[case]})
    job = client.work("take")
    assert job["state"] == "done", job
    files = {name: body for name, (status, _, body) in downloaded(client, job["result"]["files"]).items()}
    assert [file["what"] for file in job["result"]["files"]][1:3] == ["Model", "Report"]

    tokens = shlex.split(answer["command"])
    scenario = Scenario.from_json(client.get("/api/state")[1]["options"], client.session.opened)
    roles = {"protected": list(scenario.roles.protected), "favourable": scenario.request().favourable}
    assert replace(asked_for(tokens), **roles) == scenario.request()
    for name in ("people-domain.toml",) if "people-domain.toml" in files else ():
        (tmp_path / name).write_bytes(files[name])
    # The reports differ in how they name options, and in nothing else.
    monkeypatch.setattr("fairmaxent.cli.options.as_typed", as_labelled)
    with pytest.raises(SystemExit) as ended:
        commands.main(tokens[1:], "fairmaxent")
    assert ended.value.code == 0
    for name, body in files.items():
        if name.endswith(".html"):
            continue
        assert (tmp_path / name).read_bytes() == body, name
    report = (tmp_path / "people-report.html").read_text(encoding="utf-8")
    assert "named as on the command line" in report
    report = report.replace("named as on the command line", "named as in the app")
    assert report == files["people-report.html"].decode("utf-8")

    table = next(name for name in files if "-fair" in name)
    (tmp_path / table).unlink()
    exec(compile(answer["python"], "snippet", "exec"), {})
    assert (tmp_path / table).read_bytes() == files[table]


def test_a_download_is_never_a_page(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    files = client.work("take")["result"]["files"]
    for status, headers, _ in downloaded(client, files).values():
        lowered = {name.lower(): value for name, value in headers.items()}
        assert status == 200
        assert lowered["content-disposition"].startswith("attachment")
        assert lowered["content-type"] == "application/octet-stream"
    client.fit(state, representation_rate=None, random_state=1)  # files of another scenario are not mixed up
    assert client.get("/api/state")[1]["files"] == []
    assert all(status == 404 for status, _, _ in downloaded(client, files).values())


@pytest.mark.slow
def test_an_estimate_changes_the_command(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None, student="tree")
    job = client.work("estimate")
    assert job["state"] == "done", job
    answer = job["result"]["answer"]
    seen = [line["name"] for line in answer["see"]["estimate"]["lines"]]
    assert seen[0] == "Accuracy"
    assert "rooted tree" in str(answer["see"]["estimate"])
    assert "--student tree" in answer["command"]
    assert "--estimate rows" in answer["command"]
    assert "estimate=fairmaxent.Estimate(student='tree')" in answer["python"]
    assert client.fit(state, representation_rate=None, random_state=2)["see"]["estimate"] is None


def test_the_new_rows_are_judged_as_evaluate_does(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    job = client.work("evaluate")
    assert job["state"] == "done", job
    fit = fairmaxent.debias(people(), "hired", ["sex"], favourable="yes", random_state=0, estimate=None)
    judged = fairmaxent.evaluate(people(), fit.sample(600), outcome="hired", protected=["sex"], favourable="yes")
    assert job["result"]["verdict"] == judged.verdict
    assert len(job["result"]["measures"]) == len(judged.to_frame())
    assert job["result"]["command"].startswith("fairmaxent evaluate people.csv people-fair.csv --outcome hired")
    client.fit(state, representation_rate=None, mode="weights")
    assert "New rows" in client.work("evaluate")["error"]


def test_rows_of_other_people_help_to_judge(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    others = people(900)[600:]
    status, answer = client.upload("others.csv&as=control", others.write_csv().encode())
    assert (status, answer["control"]) == (200, {"name": "others.csv", "rows": 300})
    assert client.get("/api/state")[1]["control"] == answer["control"]
    job = client.work("evaluate", control=True, options={"secrets": "hired", "attacks": 150, "random_state": 3})
    assert job["state"] == "done", job
    fit = fairmaxent.debias(people(), "hired", ["sex"], favourable="yes", random_state=0, estimate=None)
    roles = {"outcome": "hired", "protected": ["sex"], "favourable": "yes"}
    judged = fairmaxent.evaluate(
        people(), fit.sample(600), control=others, secrets=["hired"], attacks=150, random_state=3, **roles
    )
    assert job["result"]["verdict"] == judged.verdict
    assert [one["value"] for one in job["result"]["measures"]] == judged.to_frame()["value"].to_list()
    assert "--control others.csv" in job["result"]["command"]
    assert "--secrets hired" in job["result"]["command"]
    assert client.upload("others.csv&as=control", b"")[0] == 422
    state, _ = opened(client)
    assert state["control"] is None  # another table has other people


@pytest.mark.slow
def test_the_report_is_also_a_pdf(client, tmp_path):
    try:
        find_browser()
    except fairmaxent.DependencyError as problem:
        pytest.skip(str(problem))
    state, _ = opened(client)
    answer = client.fit(state, representation_rate=None, pdf=True)
    assert "--pdf people-report.pdf" in answer["command"]
    job = client.work("take")
    assert job["state"] == "done", job
    _, _, body = downloaded(client, job["result"]["files"])["people-report.pdf"]
    assert body.startswith(b"%PDF")


def test_without_a_browser_there_is_no_pdf(client, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("fairmaxent.report.browser._PATHS", ())
    state, _ = opened(client)
    client.fit(state, representation_rate=None, pdf=True)
    job = client.work("take")
    assert job["state"] == "failed"
    assert "Chrom" in job["error"]


SEX = {("sex",): {("f",): 0.51, ("m",): 0.49}}
CROSSED = {("sex", "region"): {(sex, region): 1 / 6 for sex in "fm" for region in "nsw"}}
RAKED = {
    "bounded": ({**SEX, ("region",): {("n",): 0.2, ("s",): 0.3, ("w",): 0.5}}, {"bounds": "0.3,3"}),
    "crossed": ({**CROSSED, ("promoted",): {("no",): 0.4, ("yes",): 0.6}}, {"weight": "level", "title": "A “t”"}),
    "relaxed": ({**SEX, **CROSSED}, {"relax": [["sex", "region"]], "bounds": "none,3", "weight_name": "w"}),
    "all relaxed": ({**SEX, **CROSSED}, {"relax": ["all"]}),
    "replicated": (SEX, {"replicates": 3, "random_state": 4}),
}


@pytest.mark.parametrize(
    ("case", "suffix"),
    [
        pytest.param(case, suffix, marks=[] if (case, suffix) == ("crossed", ".csv") else [pytest.mark.slow])
        for case in RAKED
        for suffix in (".csv", ".parquet")
    ],
)
def test_known_margins_are_raked_as_the_command_does(client, case, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state, content = opened(client, f"people{suffix}", staff())
    (tmp_path / f"people{suffix}").write_bytes(content)
    margins, options = RAKED[case]
    sent = [
        {"columns": list(names), "shares": [[list(at), share] for at, share in shares.items()]}
        for names, shares in margins.items()
    ]
    job = client.work("rake", table=state["table"]["number"], margins=sent, options=options)
    assert job["state"] == "done", job
    if "relax" not in options:
        reached = {(one["margin"], one["level"]): one["achieved"] for one in job["result"]["levels"]}
        wanted = {
            (" × ".join(names), ", ".join(at)): share
            for names, shares in margins.items()
            for at, share in shares.items()
        }
        assert reached == pytest.approx(wanted, abs=1e-9)
    files = {name: body for name, (_, _, body) in downloaded(client, job["result"]["files"]).items()}
    for name in files:
        if "-margins" in name:
            (tmp_path / name).write_bytes(files[name])
    with pytest.raises(SystemExit) as ended:
        commands.main(shlex.split(job["result"]["command"])[1:], "fairmaxent")
    assert ended.value.code == 0
    for name, body in files.items():
        assert (b"named as in the app" in body) == name.endswith("-report.html")
        body = body.replace(b"named as in the app", b"named as on the command line")
        assert (tmp_path / name).read_bytes() == body, name


HALVES = [[["f"], 0.5], [["m"], 0.5]]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "at least one column"),
        ({"margins": {"sex": {"f": 1}}}, "at least one column"),
        ({"margins": [{"columns": ["nothing"], "shares": [[["f"], 1]]}]}, "make no sense"),
        ({"margins": [{"columns": ["sex"], "shares": [[["f"], "1"]]}]}, "make no sense"),
        ({"margins": [{"columns": ["sex", "region"], "shares": [[["f"], 1]]}]}, "make no sense"),
        ({"margins": [{"columns": ["sex"], "shares": HALVES}], "options": {"bounds": "1"}}, "two numbers"),
        ({"margins": [{"columns": ["sex"], "shares": HALVES}], "options": {"output": "/x"}}, "unknown option"),
        ({"margins": [{"columns": ["sex"], "shares": HALVES}], "options": {"weight": "x"}}, "no column"),
        ({"margins": [{"columns": ["sex"], "shares": [[["f"], 0.5], [["m"], 0.6]]}]}, "add up to 110.0%"),
    ],
)
def test_margins_that_make_no_sense_are_refused(client, values, said):
    state, _ = opened(client)
    job = client.work("rake", table=state["table"]["number"], **values)
    assert job["state"] == "failed"
    assert said in job["error"]
    assert "bug" not in job["error"]


def test_a_trade_off_and_pins(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    points = client.work("trade-off")["result"]["points"]
    assert {point["varied"] for point in points} == {"base_share", "rates"}
    assert sum(point["is_this_fit"] for point in points) >= 1
    for number in range(5):
        client.fit(state, representation_rate=None, random_state=number)
        pins = client.done("/api/pin", {})["pins"]
    assert [pin["answer"]["scenario"]["random_state"] for pin in pins] == [2, 3, 4]
    left = client.done("/api/unpin", {"number": pins[0]["number"]})["pins"]
    assert left == pins[1:] == client.get("/api/state")[1]["pins"]


# ---------------------------------------------------------------- hostile names


def test_markup_stays_text(client):
    name = "<img src=x onerror=alert(1)>"
    frame = (
        people()
        .rename({"sex": name})
        .with_columns(polars.col(name).replace_strict({"f": "<script>alert(1)</script>", "m": "'\"&\u202e"}))
    )
    state, _ = opened(client, "%3Cb%3Ex.csv", frame)
    assert state["table"]["name"] == "_b_x.csv"
    answer = client.fit(state, outcome="hired", protected=[name], favourable=["yes"], representation_rate=None)
    groups = {group["group"] for group in answer["see"]["groups"]}
    assert "<script>alert(1)</script>" in groups  # JSON, which the page writes as text
    _, headers, _ = client.send("GET", "/api/state")
    assert {name.lower(): value for name, value in headers.items()}["content-type"] == "application/json"


def test_a_parquet_file_that_is_damaged_behind_its_footer_is_no_bug(client):
    _, content = opened(client, "people.parquet")
    status, answer = client.upload("damaged.parquet", content[:20] + bytes(20) + content[40:])
    assert status == 422
    assert "could not read or compute the table" in answer["error"]


def test_a_name_that_cannot_be_typed_still_has_its_python(client):
    name = "a\nb"
    state, _ = opened(client, frame=people().rename({"sex": name}))
    answer = client.fit(state, outcome="hired", protected=[name], favourable=["yes"], representation_rate=None)
    assert answer["command"].startswith("#")
    assert repr(name) in answer["python"]


# ---------------------------------------------------------------- many at once


def test_a_newer_fit_replaces_an_older_one():
    live = LatestOnly("test")
    started, go = threading.Event(), threading.Event()

    def slow(progress):
        started.set()
        assert go.wait(30)
        progress("solve", 0.5)
        return "old"

    old = live.submit(slow)
    assert started.wait(30)
    between = [live.submit(lambda progress: "between") for _ in range(200)]
    new = live.submit(lambda progress: "new")
    go.set()
    assert new.result(30) == "new"
    for future in (old, *between):
        with pytest.raises(SupersededError):
            future.result(30)
    live.stop()


def test_a_job_can_be_stopped():
    jobs, started, go, ended = Jobs(hide=""), threading.Event(), threading.Event(), threading.Event()

    def slow(progress):
        progress("one", 0.25)
        started.set()
        go.wait(30)
        try:
            progress("two", 0.5)
        finally:
            ended.set()

    job = jobs.start("take", slow)
    assert started.wait(30)
    assert job.to_dict() | {"number": 1} == {
        "number": 1,
        "kind": "take",
        "stage": "one",
        "share": 0.25,
        "state": "running",
        "result": None,
        "error": None,
    }
    jobs.stop(job)
    go.set()
    assert ended.wait(30)
    assert (job.state, job.stage) == ("stopped", "one")
    failed = jobs.start("take", lambda progress: 1 / 0)
    while failed.state == "running":
        pass
    assert "bug in fairmaxent" in failed.error


def test_fifty_requests_at_once_and_a_fit_replaced_200_times(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    answers, lock = [], threading.Lock()

    def ask(number):
        for turn in range(4):
            rate = 0.5 + 0.5 * ((number * 4 + turn) % 50) / 50
            values = {**OPTIONS, "representation_rate": None, "statistical_rate": rate}
            status, answer = client.post("/api/fit", {"table": state["table"]["number"], "options": values})
            with lock:
                answers.append((status, set(answer)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == 200
    assert {status for status, _ in answers} == {200}
    assert {"answer"} in [keys for _, keys in answers]
    last = client.fit(state, representation_rate=None, statistical_rate=0.77)
    assert last["see"]["rates"][1]["after"] >= 0.77 - 1e-6
    assert threading.active_count() < 80


# ---------------------------------------------------------------- the process


def test_the_command_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from fairmaxent.cli.group import group\n"
        "group.main(['app', '--no-browser'], 'fairmaxent')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 3
    assert "pip install 'fairmaxent[app]'" in done.stderr
    assert json.dumps(done.stdout) == '""'
