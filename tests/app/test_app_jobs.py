"""Many requests at once, and slow work that is stopped or overtaken."""

import threading

import pytest

from appserver import OPTIONS, opened
from fairmaxent.app.jobs import Jobs, LatestOnly, SupersededError


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
    assert (job.kind, job.stage, job.share, job.state) == ("take", "one", 0.25, "running")
    job.stop()
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
