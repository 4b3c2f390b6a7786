"""What Look shows: the table as it was read, its groups and shares."""

import json

import numpy as np
import polars
import pytest

from appserver import OPTIONS, downloaded, opened, people, refused, staff
from fairmaxent import inspect
from fairmaxent.files.formats import FORMATS


def test_a_table_is_looked_at_and_roles_are_proposed(client):
    state, _ = opened(client)
    assert (state["options"]["outcome"], state["options"]["protected"]) == (
        "hired",
        ["sex"],
    )
    assert state["options"]["favourable"] == ["yes"]
    groups = state["look"]["groupings"][0]["groups"]
    frame = people()
    for group in groups:
        mine = frame.filter(polars.col("sex") == group["group"])
        assert group["rows"] == len(mine)
        assert group["rate"] == pytest.approx((mine["hired"] == "yes").mean())
        assert group["interval"][0] < group["rate"] < group["interval"][1]
    assert (
        state["look"]["verdicts"]
        == [*map(str, inspect(frame, "hired", "sex", favourable="yes").verdicts)]
        != []
    )
    assert client.get("/api/state")[1]["table"] == state["table"]  # a reload finds it


def test_a_file_is_read_as_asked(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = people().iter_rows()
    text = "a remark\n" + "".join(
        f"{sex}|{region}|{age},5|{hired}\n" for sex, region, age, hired in rows
    )
    content = (text.replace("|w|", "|??|") + "sum of all\n").encode("utf-16")
    (tmp_path / "odd.csv").write_bytes(content)
    status, state = client.upload("odd.csv", content)
    reading = {
        "delimiter": "|",
        "encoding": "utf-16",
        "decimal": ",",
        "skip_lines": 1,
        "skip_last": 1,
    }
    reading |= {"missing_text": ["", "??"], "columns": "sex,region,age,hired"}
    assert status == 422, state  # it cannot be guessed at, but it is kept
    number = client.get("/api/state")[1]["unread"]["number"]
    state = client.done("/api/read", {"table": number, "options": reading})
    assert state["table"]["reading"] == reading
    assert state["unread"] is None
    columns = {column["name"]: column for column in state["look"]["columns"]}
    assert columns["age"]["kind"] == "numeric"
    assert columns["region"]["missing"] == len(
        people().filter(polars.col("region") == "w")
    )
    answer = client.fit(state, **OPTIONS, representation_rate=None)
    body = next(
        body
        for _, _, body in downloaded(
            client, client.work("take")["result"]["files"]
        ).values()
    )
    exec(compile(answer["python"], "snippet", "exec"), {})
    assert (tmp_path / "odd-fair.csv").read_bytes() == body


@pytest.mark.more
def test_roles_stay_when_levels_get_names_and_an_example_speaks_of_sex_first(client):
    state, _ = opened(client, frame=staff())
    roles = {
        "outcome": "promoted",
        "protected": ["region", "sex"],
        "favourable": ["no"],
    }
    client.done("/api/look", {"table": state["table"]["number"], "options": roles})
    for word in ("stays", "waits"):
        levels = {"promoted": {"no": word}, "region": {"n": "north"}}
        asked = {"table": client.present()["table"], "options": {"levels": levels}}
        assert client.done("/api/read", asked)["options"] == {
            **roles,
            "favourable": [word],
        }
    asked = {
        "table": client.present()["table"],
        "options": {"columns": "a,b,c,d,e,f", "skip_lines": 1},
    }
    # which the table no longer has
    assert client.done("/api/read", asked)["options"]["outcome"] != "promoted"
    assert client.done("/api/demo", {"name": "acs"})["options"]["protected"] == [
        "sex",
        "race",
        "disability",
    ]


def written_twice():
    """Promotions written by two hands: Sí and sí, NO and no."""
    rng = np.random.default_rng(3)
    sex = rng.choice(["Hombre", "Mujer", "mujer "], 300, p=[0.6, 0.3, 0.1])
    good = rng.random(300) < np.where(sex == "Hombre", 0.5, 0.3)
    hand = rng.random(300) < 0.8
    words = np.where(good, np.where(hand, "Sí", "sí"), np.where(hand, "no", "NO"))
    return polars.DataFrame({"Sexo": sex, "Ascenso": words})


@pytest.mark.more
def test_levels_that_are_written_in_two_ways_can_be_made_one(client):
    frame = written_twice()
    state, _ = opened(client, frame=frame)
    alike = state["look"]["alike"]
    assert alike == {
        "Ascenso": {"sí": "Sí", "NO": "no"},
        "Sexo": {"mujer": "Mujer"},
    }
    for column in alike:  # as the button of each column asks
        given = client.get("/api/state")[1]["table"]["reading"].get("levels", {})
        levels = {**given, column: alike[column]}
        asked = {"table": client.present()["table"], "options": {"levels": levels}}
        client.done("/api/read", asked)
    state = client.get("/api/state")[1]
    assert state["look"]["alike"] == {}
    assert state["options"]["favourable"] == ["Sí"]
    by_hand = frame.to_pandas().apply(lambda cells: cells.str.strip().str.lower())
    shares = {
        name: dict(column["shares"])
        for column in state["look"]["columns"]
        if (name := column["name"]) in alike
    }
    for name, of_levels in shares.items():
        counted = by_hand[name].value_counts(normalize=True)
        assert {level.lower(): share for level, share in of_levels.items()} == (
            pytest.approx(counted.to_dict())
        )


def test_the_page_names_every_format_that_is_read(client):
    state = client.get("/api/state")[1]
    for format in FORMATS.values():
        assert format.title in state["formats"]
        read = {*format.suffixes, *format.only_read}
        assert read <= set(state["suffixes"].split(","))


UNREADABLE = [
    ({"encoding": "klingon"}, "klingon"),
    ({"delimiter": 3}, "takes"),
    ({"drop": ["sex"]}, "unknown option"),
]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("reading", "said"), [*UNREADABLE, ({"input_format": "exe"}, "Format of the file")]
)
def test_a_file_that_cannot_be_read_so_stays_as_it_was(client, reading, said):
    state, _ = opened(client)
    refused(
        client.post(
            "/api/read", {"table": state["table"]["number"], "options": reading}
        ),
        said,
    )
    assert client.get("/api/state")[1]["table"] == state["table"]


def test_missing_values_are_no_choice_and_notes_name_the_file_as_it_is_known(client):
    text = (
        "Survey of pay\n\nsex;pay;promoted\n"
        + "f;1,5;yes\nm;2,5;no\n;3,5;yes\nm;2,0;\nf;2,5;no\nm;1,0;yes\n" * 20
    )
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


@pytest.mark.more
def test_an_identifier_that_is_kept_is_said_to_be(client):
    frame = people().with_columns(
        person=polars.Series(np.random.default_rng(1).permutation(600) + 10_000)
    )
    state, _ = opened(client, "people.parquet", frame)
    assert any(
        "'person'" in note and "left out" in note for note in state["look"]["notes"]
    )
    asked = {**OPTIONS, "keep_columns": ["person"]}
    notes = client.done(
        "/api/look", {"table": state["table"]["number"], "options": asked}
    )["look"]["notes"]
    assert not any("left out" in note for note in notes)
    assert any(
        "'person'" in note and "people they do not belong to" in note for note in notes
    )
