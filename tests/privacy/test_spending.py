"""The ledger over fits: it adds up as an independent accountant does, and nothing is
lost, whatever happens.
"""

import math
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from test_budget import accountant_at

from clifiles import run
from fairmaxent import InputError, Privacy, debias, load
from fairmaxent.errors import StorageError
from fairmaxent.fit import pipeline
from fairmaxent.privacy import spending
from fairmaxent.privacy.budget import epsilon_of
from fairmaxent.privacy.spending import Spending, spent_so_far
from quiet import DOMAIN, Seeded, people
from tables import times


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
    return tmp_path / "people.json"


def fitted(path, frame=None, **privacy):
    frame, promise = (
        people() if frame is None else frame,
        Privacy(ledger=path, **privacy),
    )
    return debias(
        frame, "hired", "sex", privacy=promise, favourable="yes", domain=DOMAIN
    )


def epsilon_by_accountant(runs, delta):
    """The loss of a person with the most rows that any run allows.

    A fit for k rows of a person has noise for a sensitivity of k; K rows change what it
    counts by K, so its noise is K/k times smaller for them than it is meant to be.
    """
    accounting = pytest.importorskip("dp_accounting")
    most = max(run.rows_per_person for run in runs)
    multipliers = [
        math.sqrt(1 / (2 * run.rho)) * run.rows_per_person / most for run in runs
    ]
    total = sum(1 / (2 * multiplier**2) for multiplier in multipliers)
    accountant = accountant_at(total, delta)
    for multiplier in multipliers:
        accountant.compose(accounting.GaussianDpEvent(multiplier))
    return accountant.get_epsilon(delta)


def random_run(rng):
    epsilon, delta = 10 ** rng.uniform((-1, -12), (1, -3))
    rows = int(rng.choice([1, 1, 2, 5]))
    return Privacy(epsilon=epsilon, delta=delta, rows_per_person=rows)


@pytest.mark.more
def test_what_is_spent_and_what_is_left_are_what_an_independent_accountant_says(
    path, monkeypatch
):
    """Up to ten runs with ε, δ and rows per person each, and one more with a budget."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(times(200)):
        runs = [random_run(rng) for _ in range(rng.integers(1, 10))]
        for number, asked in enumerate(runs):
            Spending(path).pay(asked, str(number))
        more = random_run(rng)
        total = epsilon_of(Spending(path).account().rho(), more.delta)
        assert total == pytest.approx(epsilon_by_accountant(runs, more.delta), abs=1e-9)

        before = Spending(path).account().rho(more.rows_per_person)
        budget = epsilon_of(before, more.delta) * rng.uniform(1, 1.5)
        more = replace(more, ledger=path, budget=budget)
        would = epsilon_by_accountant([*runs, more], more.delta)
        if would <= more.budget:
            Spending(path).pay(more, "more")
        else:
            refused += 1
            words = (
                f"would bring it to {would:.3g}, beyond the budget of {more.budget:g}"
            )
            with pytest.raises(InputError, match=re.escape(words)) as problem:
                Spending(path).pay(more, "more")
            for amount in re.findall(r"([\d.]+) is left", str(problem.value)):
                Spending(path).pay(replace(more, epsilon=float(amount)), "the rest")
        assert epsilon_of(Spending(path).account().rho(), more.delta) <= budget + 1e-9
        os.remove(path)
    assert refused > times(40)


def test_a_person_with_five_rows_is_charged_for_fits_that_allowed_one(path):
    """One and one is 1.44 for those with a row each, and 5.64 for one with five."""
    Spending(path).pay(Privacy(epsilon=1.0), "first")
    Spending(path).pay(Privacy(epsilon=1.0), "second")
    assert "ε = 1.44 (δ = 1e-09), in 2" in spent_so_far(path, 1e-9)
    os.remove(path)
    Spending(path).pay(Privacy(epsilon=1.0), "first")
    Spending(path).pay(Privacy(epsilon=1.0, rows_per_person=5), "second")
    assert "ε = 5.64 (δ = 1e-09, for a person with 5 rows)" in spent_so_far(path, 1e-9)


def test_the_ledger_remembers_its_budget_and_only_its_own_command_raises_it(path):
    first = Privacy(epsilon=1.0, ledger=path, budget=1.2)
    Spending(path).pay(first, "first")
    again = Privacy(epsilon=1.0)
    with pytest.raises(InputError, match=r"beyond the budget of 1\.2"):
        Spending(path).pay(again, "again")
    with pytest.raises(InputError, match=r"asks for more.* 'fairmaxent ledger .* 3'"):
        Spending(path).pay(replace(first, budget=3.0), "more")
    # a larger δ is a larger budget, too
    with pytest.raises(InputError, match="asks for more"):
        Spending(path).pay(replace(first, delta=1e-3), "more")
    # a smaller one holds for a call
    with pytest.raises(InputError, match=r"beyond the budget of 0\.9"):
        Spending(path).pay(replace(first, epsilon=0.1, budget=0.9), "less")
    run("ledger", path, "--budget", 3)
    Spending(path).pay(again, "again")
    told = run("ledger", path).output
    assert told.count("budget set") == 2
    assert "ε = 1.44" in told
    assert [budget["epsilon"] for budget in Spending(path).account().budgets] == [
        1.2,
        3.0,
    ]
    run("ledger", path.with_name("no.json"), code=5)


def test_nothing_in_a_ledger_depends_on_the_rows(path, monkeypatch):
    """Whoever has the ledger learns no count from it: two tables leave the same."""
    monkeypatch.setattr(spending, "_now", lambda: "now")
    contents = []
    for frame in (people(), people().head(500)):
        fitted(path, frame, epsilon=1.0)
        contents.append(path.read_bytes())
        os.remove(path)
    assert contents[0] == contents[1]


def test_a_fit_is_written_down_before_its_first_noisy_number(path, monkeypatch):
    class Looking(Seeded):
        def counts(self, table, scale):
            assert len(Spending(path).account().fits) == 1
            return super().counts(table, scale)

    monkeypatch.setattr(pipeline, "OpenDP", lambda: Looking(0))
    fitted(path, epsilon=1.0)
    assert len(Spending(path).account().fits) == 1


def pays(path, times):
    for number in range(times):
        Spending(path).pay(Privacy(epsilon=1.0), f"{os.getpid()} {number}")


def is_killed(path, epsilon):
    """A fit whose process is killed when its first noisy number is drawn."""
    pipeline.OpenDP = lambda: Mock(
        counts=lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    )
    fitted(path, epsilon=epsilon)


def processes(call, number=1):
    """How processes of their own end: one that is forked may wait for a lock of a
    thread that it does not have.
    """
    folders = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", f"import test_spending; test_spending.{call}"]
    started = [
        subprocess.Popen(command, env=os.environ | {"PYTHONPATH": folders})
        for _ in range(number)
    ]
    return [process.wait() for process in started]


@pytest.mark.process
def test_several_processes_at_once_lose_nothing_and_a_killed_run_is_counted(path):
    assert processes(f"pays({str(path)!r}, 15)", 4) == [0] * 4
    assert Spending(path).account().rho() == pytest.approx(
        60 * Privacy(epsilon=1.0).rho
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert processes(f"is_killed({str(path)!r}, 2.0)") == [-signal.SIGKILL]
    assert [paid["epsilon"] for paid in Spending(path).account().fits] == [1.0] * 60 + [
        2.0
    ]
    assert [*path.parent.iterdir()] == [path]


def test_on_windows_a_file_beside_the_ledger_is_the_lock(path, monkeypatch):
    """There is no fcntl, a temporary file goes when it is closed, and what is to be
    replaced must not be open.
    """
    lock, close = path.with_name(f"{path.name}.lock"), os.close

    def windows_close(file):
        is_open = {
            name
            for name in (path, lock)
            if name.exists() and os.path.samestat(os.fstat(file), name.stat())
        }
        close(file)
        for name in is_open:  # were it the ledger, nothing would be left of it
            name.unlink()

    monkeypatch.setattr(spending, "fcntl", None)
    monkeypatch.setattr(os, "close", windows_close)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: Spending(path).pay(Privacy(epsilon=1.0), str(number)),
                range(20),
            )
        )
    assert len(Spending(path).account().fits) == 20
    assert [*path.parent.iterdir()] == [path]
    monkeypatch.setattr(spending, "_ATTEMPTS", 2)
    lock.write_bytes(b"")
    with pytest.raises(StorageError, match="another fit has locked it"):
        pays(path, 1)


def test_what_is_refused_costs_nothing_and_what_is_paid_is_given_back(path):
    fitted(path, epsilon=1.0)
    with pytest.raises(
        InputError,
        match=(
            r"have spent ε = 1, and this one would bring it to 1\.44, beyond the budget"
        ),
    ):
        fitted(path, epsilon=1.0, budget=1.4)
    with pytest.raises(InputError, match="not declared"):
        fitted(
            path,
            people().with_columns(job=people()["job"].replace("c", "d")),
            epsilon=1.0,
        )
    model = str(path.with_suffix(".fme"))
    fit = fitted(Spending(path, command="a command", model=model), epsilon=2.0)
    fit.save(model)
    assert [paid["command"] for paid in Spending(path).account().fits] == [
        None,
        "a command",
    ]
    # a changed table is of the same people
    for again in (people().reverse(), people().head(799)):
        with pytest.raises(
            InputError,
            match=f"paid for already: {model} holds .*another ε = 2, move that file",
        ):
            fitted(path, again, epsilon=2.0)
    fitted(path, epsilon=3.0)
    assert len(Spending(path).account().fits) == 3
    for kept in (
        fit.request.privacy,
        fit.certificate.privacy.privacy,
        load(model).request.privacy,
    ):
        assert (kept.epsilon, kept.ledger, kept.budget) == (2.0, None, None)


def test_a_damaged_ledger_or_a_place_that_cannot_be_written_is_refused_and_stays_as_it_is(
    path,
):
    for place, words in (
        (
            path / "no",
            "written down first, but not in .* another file for it with ledger",
        ),
        (5, "is 5;"),
    ):
        with pytest.raises((StorageError, InputError), match=words):
            fitted(place, epsilon=1.0)
    fitted(path, epsilon=1.0)
    text = path.read_text()
    damages = (
        '"epsilon": -1.0',
        '"epsilon": NaN',
        '"epsilon": "1"',
        '"epsilo": 1.0',
        '"epsilon": 1.0, "more": 1',
    )
    damaged = [text.replace('"epsilon": 1.0', damage) for damage in damages]
    damaged.append(text.replace('"rows_per_person": 1', '"rows_per_person": 0'))
    for content in (
        "",
        "{}",
        "[]",
        text[:300],
        text.replace("ledger 2", "ledger 3"),
        *damaged,
    ):
        path.write_text(content)
        with pytest.raises(
            StorageError,
            match=(
                r"cannot be read, so what was spent is not known .* or name another ledger"
            ),
        ):
            fitted(path, epsilon=1.0)
        assert path.read_text() == content != text
