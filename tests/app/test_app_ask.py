"""What Ask asks for: impossible wishes, public values, privacy; many requests at once,
and work that is overtaken.
"""

import threading

import pytest

from appserver import DOMAIN, OPTIONS, downloaded, opened, refused
from fairmaxent.app.jobs import Jobs, LatestOnly, SupersededError


def test_a_private_fit_spends_its_budget_when_told_and_only_then(client):
    pytest.importorskip("opendp")
    state, _ = opened(client)
    number = state["table"]["number"]
    drafted = client.done("/api/draft", {"table": number, "options": OPTIONS})["text"]
    assert "draft = true" in drafted
    private = {**OPTIONS, "representation_rate": None, "epsilon": 5, "domain": DOMAIN}

    def ask(spend=False, **more):
        return client.post(
            "/api/fit",
            {"table": number, "options": {**private, **more}, "spend": spend},
        )

    refused(ask(), "Spend the budget")
    refused(ask(spend=True, domain=drafted), "draft")
    status, answer = ask(spend=True, representation_rate=None)
    assert status == 200, answer
    said = (
        "Spent on these people so far: ε = {} (δ = {}), in {}; the app keeps count"
        " until it ends."
    )
    assert answer["answer"]["spent"].startswith(
        said.format(5, "1e-09", "1 private fit")
    )
    seen = answer["answer"]["see"]["groups"]
    status, moved = ask(statistical_rate=0.8)  # from what was measured already
    assert status == 200, moved
    assert moved["answer"]["spent"] == answer["answer"]["spent"]
    before, after = (
        [one["rate_before"] for one in groups]
        for groups in (seen, moved["answer"]["see"]["groups"])
    )
    assert before == after
    assert ask(protected=["region"])[0] == 422  # which is another look
    assert ask(epsilon=None)[0] == 200
    assert ask()[0] == 200
    status, again = ask(spend=True, epsilon=1, delta=1e-8)
    assert status == 200
    assert again["answer"]["spent"].startswith(
        said.format(4.83, "1e-08", "2 private fits")
    )
    # no path comes from a browser
    assert ask(spend=True, ledger="/tmp/x.json")[0] == 422
    assert "budget" in ask(spend=True, epsilon=2, budget=5)[1]["error"]
    number = opened(client)[0]["table"]["number"]  # the same file, again
    status, back = ask()
    assert status == 200, back
    assert back["answer"]["see"]["groups"] == seen
    assert "2 private fits" in back["answer"]["spent"]
    assert ask(epsilon=1, delta=1e-8)[0] == 200
    job = client.work("take")
    assert job["state"] == "done", job
    files = {file["what"]: file["name"] for file in job["result"]["files"]}
    assert files["Public values"] == "people-domain.toml"
    bodies = downloaded(client, job["result"]["files"])
    assert bodies["people-domain.toml"][2].decode() == DOMAIN
    for words in ("--epsilon 1", "--delta 1e-08", "--domain people-domain.toml"):
        assert words in again["answer"]["command"]
    assert "read_domain('people-domain.toml')" in again["answer"]["python"]
    assert "read_table('people.csv', declaration=domain)" in again["answer"]["python"]
    assert "Privacy(delta=1e-08)" in again["answer"]["python"]


def test_what_is_impossible_is_said_in_the_words_of_the_page_and_no_older_result_taken_for_it(
    client,
):
    state, _ = opened(client)
    client.fit(state)
    assert client.get("/api/state")[1]["outdated"] is False
    wish = {**OPTIONS, "base_share": -1}
    refused(
        client.post("/api/fit", {"table": state["table"]["number"], "options": wish}),
        "“New combinations” is -1",
    )
    assert client.get("/api/state")[1]["outdated"] is True
    refused(
        client.post("/api/start", {"kind": "take", **client.present()}),
        "what you asked for last",
    )
    client.fit(state)
    assert client.work("take")["state"] == "done"


def test_slow_work_says_that_the_wish_changed_and_is_known_after_a_reload(client):
    state, _ = opened(client)
    client.fit(state)
    job = client.done("/api/start", {"kind": "estimate", **client.present()})
    assert [one["number"] for one in client.get("/api/state")[1]["jobs"]] == [
        job["number"]
    ]
    client.fit(state, statistical_rate=0.9)
    _, job = client.get(f"/api/job/{job['number']}")
    assert job["state"] == "failed"
    assert "changed meanwhile" in job["error"]
    assert client.get("/api/state")[1]["jobs"] == []


def test_a_job_can_be_stopped():
    jobs, started, go, ended = (
        Jobs(hide=""),
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )

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
    assert (job.kind, job.stage, job.share, job.state) == (
        "take",
        "one",
        0.25,
        "running",
    )
    job.stop()
    go.set()
    assert ended.wait(30)
    assert (job.state, job.stage) == ("stopped", "one")
    failed = jobs.start("take", lambda progress: 1 / 0)
    while failed.state == "running":
        pass
    assert "bug in fairmaxent" in failed.error


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


@pytest.mark.more
def test_fifty_requests_at_once_and_a_fit_replaced_200_times(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    answers, lock = [], threading.Lock()

    def ask(number):
        for turn in range(4):
            rate = 0.5 + 0.5 * ((number * 4 + turn) % 50) / 50
            values = {**OPTIONS, "representation_rate": None, "statistical_rate": rate}
            status, answer = client.post(
                "/api/fit", {"table": state["table"]["number"], "options": values}
            )
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
