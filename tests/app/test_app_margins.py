"""Weights for known margins, and the judgement of new rows, as the commands make them."""

import shlex

import pytest

import fairmaxent
from appserver import downloaded, opened, people, staff
from fairmaxent.cli.group import group as commands
from fairmaxent.report.refits import evaluated

SEX = {"sex": {"f": 0.51, "m": 0.49}}
REGION = {"region": {"n": 0.2, "s": 0.3, "w": 0.5}}
RAKED = {
    "bounded": ({**SEX, **REGION}, {"bounds": "0.3,3"}),
    "weighted": ({**SEX, "promoted": {"no": 0.4, "yes": 0.6}}, {"weight": "level", "title": "A “t”"}),
    "relaxed": ({**SEX, **REGION}, {"relax": [["sex"]], "bounds": "none,3", "weight_name": "w"}),
    "replicated": (SEX, {"replicates": 3, "random_state": 4}),
}


@pytest.mark.parametrize(
    ("case", "suffix"),
    [
        pytest.param(case, suffix, marks=[] if (case, suffix) == ("weighted", ".csv") else [pytest.mark.slow])
        for case in RAKED
        for suffix in (".csv", ".parquet")
    ],
)
def test_known_margins_are_raked_as_the_command_does(client, case, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state, content = opened(client, f"people{suffix}", staff())
    (tmp_path / f"people{suffix}").write_bytes(content)
    margins, options = RAKED[case]
    sent = [{"column": name, "shares": [[*pair] for pair in shares.items()]} for name, shares in margins.items()]
    job = client.work("rake", table=state["table"]["number"], margins=sent, options=options)
    assert job["state"] == "done", job
    if "relax" not in options:
        reached = {(one["margin"], one["level"]): one["achieved"] for one in job["result"]["levels"]}
        wanted = {(name, level): share for name, shares in margins.items() for level, share in shares.items()}
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


HALVES = {"margins": [{"column": "sex", "shares": [["f", 0.5], ["m", 0.5]]}]}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "at least one column"),
        ({"margins": {"sex": {"f": 1}}}, "at least one column"),
        ({"margins": [{"column": "nothing", "shares": [["f", 1]]}]}, "make no sense"),
        ({"margins": [{"column": ["sex"], "shares": [["f", 1]]}]}, "make no sense"),
        ({"margins": [{"column": "sex", "shares": [["f", "1"]]}]}, "make no sense"),
        ({**HALVES, "options": {"bounds": "1"}}, "two numbers"),
        ({**HALVES, "options": {"output": "/x"}}, "unknown option"),
        ({**HALVES, "options": {"weight": "x"}}, "no column"),
        ({"margins": [{"column": "sex", "shares": [["f", 0.5], ["m", 0.6]]}]}, "add up to 110.0%"),
    ],
)
def test_margins_that_make_no_sense_are_refused(client, values, said):
    state, _ = opened(client)
    job = client.work("rake", table=state["table"]["number"], **values)
    assert job["state"] == "failed"
    assert said in job["error"]
    assert "bug" not in job["error"]


def test_the_new_rows_are_judged_as_in_the_report(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    job = client.work("evaluate")
    assert job["state"] == "done", job
    fit = fairmaxent.debias(people(), "hired", ["sex"], favourable="yes", random_state=0, estimate=None)
    judged = evaluated(fit, people(), mode="rows", iid=False)
    note, *others = job["result"]["blocks"]
    assert [note["lead"], *note["items"]] == list(judged.verdict)
    assert {"Table", "Paragraph"} == {block["kind"] for block in others}
    client.fit(state, representation_rate=None, mode="weights")
    assert "new rows" in client.work("evaluate")["error"]
