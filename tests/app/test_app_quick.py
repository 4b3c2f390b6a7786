"""Quick answers: what moves with a slider is made of cells alone, and equals the fit of
all rows.
"""

import re

import numpy as np
import polars
import pytest

from appserver import opened, people, running
from fairmaxent.app.shown import cells_of, is_quick, quick_fit, says_all, seen
from fairmaxent.errors import FairMaxEntError
from fairmaxent.fit.pipeline import fit_read, read_frame
from fairmaxent.fit.request import Request
from fairmaxent.plain_text import plain_json
from fairmaxent.progress import silent

CASES = 200


def random_table(rng):
    """People with gaps, of a few groups, with a second outcome, a number and design
    weights.
    """
    rows = int(rng.integers(60, 900))
    levels = (("sex", "fm"), ("region", "nsw"), ("promoted", "yn"))
    pick = {name: rng.choice([*letters], rows) for name, letters in levels}
    hired = np.where(
        rng.random(rows) < np.where(pick["sex"] == "f", 0.2, 0.5), "yes", "no"
    )
    table = polars.DataFrame(
        {
            **pick,
            "hired": hired,
            "age": rng.integers(18, 60, rows),
            "w": rng.random(rows) + 0.1,
        }
    )
    return table.with_columns(
        region=polars.when(polars.Series(rng.random(rows) > 0.1)).then("region")
    )


def random_request(rng):
    """Wishes about outcome and groups, as a page asks for them."""

    def some(value, other=None):
        return value if rng.random() < 0.4 else other

    rate = round(rng.uniform(0.3, 1.0), 2)
    protected = [["sex"], ["region"], ["sex", "region"]][rng.integers(3)]
    strata = some(["promoted"])
    outcomes = ["hired"]
    if strata is None and some(["promoted"]):
        outcomes.append("promoted")
    return Request(
        outcomes,
        protected,
        favourable=some("yes"),
        statistical_rate=some({name: some(None, rate) for name in protected}, rate),
        representation_rate=some(round(rng.uniform(0.2, 1.0), 2)),
        groups=(
            some("joint", "each") if len(protected) > 1 and strata is None else "each"
        ),
        within=strata,
        compare_missing=some(True, False),
        weight=some("w"),
        largest_weight=some(3.0),
        forbid=some([{"sex": "f", "region": "w"}]) if len(protected) > 1 else None,
        target=some({"hired": "free"}),
        base_share=float(rng.choice([0.0, 0.2, 1.0])),
        random_state=0,
    )


@pytest.mark.more
@pytest.mark.parametrize(
    "start",
    [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(1, 10))],
)
def test_quick_numbers_are_those_of_the_fit(start):
    same = 0
    for case in range(start, CASES, 10):
        rng = np.random.default_rng(case)
        try:
            table, request = random_table(rng), random_request(rng)
            data = read_frame(table, request)
            fit = fit_read(table, data, request.kept(), silent)
        except FairMaxEntError:
            continue
        assert is_quick(request, data)
        quick = quick_fit(cells_of(data), request.kept())
        assert says_all(quick) == says_all(fit)
        if says_all(quick):
            same += 1
            known, whole = (
                plain_json(seen(quick, is_whole=False)),
                plain_json(seen(fit)),
            )
            assert _leaves(known) == pytest.approx(
                _leaves(whole), rel=1e-9, abs=1e-9
            ), case
            assert _told(known) == _told(whole)
    assert same >= 10


def _told(see):
    """What there is to say, without copies: cells know nothing of them."""
    told = {one["key"]: one for one in see["told"]}
    (costs,) = told["group_costs"]["tables"]
    heads = list(costs["heads"])
    assert ("most copies" in heads) == see["is_whole"]
    till = heads.index("largest weight") + 1
    about_copies = {"copies", "few_people", "group_costs"}
    others = {key: one for key, one in told.items() if key not in about_copies}
    return others, [row[:till] for row in costs["rows"]]


def _leaves(value):
    """All numbers inside, and something equal for equal texts; what is not known of
    cells alone is left out.
    """
    if isinstance(value, dict):
        value = [value[name] for name in value.keys() - {"is_whole", "told"}]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value if isinstance(value, int | float) else hash(str(value))]


def copies_told(see):
    """How many percent of new rows are said to be copies; None: nothing is said."""
    for one in see["told"]:
        if one["key"] == "copies":
            return float(re.search(r"About ([\d.]+)%", one["says"][0])[1])
    return None


def test_a_fit_of_all_rows_is_made_when_it_is_needed_and_then_says_how_many_are_copies(
    client, monkeypatch
):
    state, _ = opened(client)
    see = client.fit(state, representation_rate=None)["see"]
    assert copies_told(see) is None
    result = client.work("take")["result"]
    assert copies_told(result["answer"]["see"]) > 50
    assert client.get("/api/state")[1]["answer"] == result["answer"]
    # it is kept
    assert copies_told(client.fit(state, representation_rate=None)["see"]) > 50
    monkeypatch.setattr("fairmaxent.app.session.fit_read", None)
    number, moved = (
        state["table"]["number"],
        {
            **state["options"],
            "representation_rate": None,
            "statistical_rate": 0.9,
        },
    )
    answer = client.done("/api/fit", {"table": number, "options": moved})["answer"]
    assert (answer["scenario"], copies_told(answer["see"])) == (moved, None)
    assert "--statistical-rate 0.9" in answer["command"]
    wrong = {"table": number, "options": {**moved, "statistical_rate": 7}}
    assert "“Equal outcomes” is 7" in client.post("/api/fit", wrong)[1]["error"]


@pytest.mark.more
def test_a_file_that_changed_since_it_was_opened_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "people.csv"
    people().write_csv(path)
    with running(tmp_path, data=path.name) as client:
        state = client.get("/api/state")[1]
        client.fit(state)
        asked = client.present()
        people(500).write_csv(path)
        status, answer = client.post(
            "/api/fit", {"table": asked["table"], "options": asked["scenario"]}
        )
        said = "people.csv has changed since it was opened"  # the name as it is
        assert (status, answer["error"][: len(said)]) == (409, said)
        assert client.work("take")["error"].startswith(said)
        again = client.done("/api/read", {"table": asked["table"], "options": {}})
        assert again["look"]["rows"] == 500
        # of the table before
        assert client.post("/api/start", {"kind": "take", **asked})[0] == 409
        client.fit(again)
        path.unlink()
        assert "is gone since" in client.work("take")["error"]
