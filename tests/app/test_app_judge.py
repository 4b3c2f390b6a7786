"""Judging the new rows before they are shared, as the command does."""

import fairmaxent
from appserver import opened, people


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
