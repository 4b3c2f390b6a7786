"""Weights for known margins, as the command makes them."""

import shlex

import pytest

from appserver import downloaded, opened, staff
from fairmaxent.cli.group import group as commands

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


def test_other_margins_make_other_files(client):
    state, _ = opened(client, frame=staff())
    every = set()
    for share, crossed in ((0.4, 1), (0.5, 2), (0.4, 1)):
        sent = [{"columns": ["sex"], "shares": [[["f"], share], [["m"], 1 - share]]}]
        for column, levels in (("region", "nsw"), ("promoted", ("no", "yes")))[:crossed]:
            cells = [[[sex, level], 1 / (2 * len(levels))] for sex in "fm" for level in levels]
            sent.append({"columns": ["sex", column], "shares": cells})
        job = client.work("rake", table=state["table"]["number"], margins=sent, options={"relax": ["all"]})
        assert job["state"] == "done", job
        names = [file["name"] for file in job["result"]["files"]]
        assert len(set(names)) == len(names) == 3 + crossed
        assert all(name in job["result"]["command"] for name in names)
        assert not every & set(names) or every >= set(names)
        every |= set(names)
    assert len(every) == 4 + 5


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
