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

from fairmaxent import InputError, Privacy, debias, load
from fairmaxent.errors import StorageError
from fairmaxent.fit import pipeline
from fairmaxent.privacy import spending
from fairmaxent.privacy.budget import epsilon_of
from fairmaxent.privacy.spending import Spending
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
    accounting, accountant = (
        pytest.importorskip("dp_accounting"),
        accountant_at(sum(run.rho for run in runs), delta),
    )
    for run in runs:
        accountant.compose(accounting.GaussianDpEvent(math.sqrt(1 / (2 * run.rho))))
    return accountant.get_epsilon(delta)


def test_what_is_spent_and_what_is_left_are_what_an_independent_accountant_says(
    path, monkeypatch
):
    """Up to ten runs with an ε and a δ each, and one more with a budget, at its own
    δ.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(times(200)):
        each = 10 ** rng.uniform((-1, -12), (1, -3), (rng.integers(2, 11), 2))
        *runs, more = (Privacy(epsilon=epsilon, delta=delta) for epsilon, delta in each)
        for number, run in enumerate(runs):
            Spending(path).pay(run, b"", str(number))
        total = epsilon_of(Spending(path).rho, more.delta)
        assert total == pytest.approx(epsilon_by_accountant(runs, more.delta), abs=1e-9)
        more = replace(more, ledger=path, budget=total * rng.uniform(1, 1.5))
        would = epsilon_by_accountant([*runs, more], more.delta)
        if would <= more.budget:
            Spending(path).pay(more, b"", "more")
        else:
            refused += 1
            words = (
                f"would bring it to {would:.3g}, beyond the budget of {more.budget:g}"
            )
            with pytest.raises(InputError, match=re.escape(words)) as problem:
                Spending(path).pay(more, b"", "more")
            for amount in re.findall(r"([\d.]+) is left", str(problem.value)):
                Spending(path).pay(
                    replace(more, epsilon=float(amount)), b"", "the rest"
                )
        assert epsilon_of(Spending(path).rho, more.delta) <= more.budget + 1e-9
        os.remove(path)
    assert refused > times(40)


def pays(path, times):
    for number in range(times):
        Spending(path).pay(Privacy(epsilon=1.0), b"", f"{os.getpid()} {number}")


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
    assert Spending(path).rho == pytest.approx(60 * Privacy(epsilon=1.0).rho)
    assert path.stat().st_mode & 0o777 == 0o600
    assert processes(f"is_killed({str(path)!r}, 2.0)") == [-signal.SIGKILL]
    assert [paid["epsilon"] for paid in Spending(path).payments()] == [1.0] * 60 + [2.0]
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
                lambda number: Spending(path).pay(
                    Privacy(epsilon=1.0), b"", str(number)
                ),
                range(20),
            )
        )
    assert len(Spending(path).payments()) == 20
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
    assert [paid["command"] for paid in Spending(path).payments()] == [
        None,
        "a command",
    ]
    with pytest.raises(
        InputError,
        match=f"paid for already: {model} holds .*spends another ε = 2, move that file",
    ):
        fitted(path, people().reverse(), epsilon=2.0)
    # which is another table, of the same people
    fitted(path, people().head(799), epsilon=2.0)
    fitted(path, epsilon=3.0)
    assert len(Spending(path).payments()) == 4
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
        '"rho": -1.0',
        '"rho": NaN',
        '"rho": "1"',
        '"rh": 1.0',
        '"rho": 1.0, "more": 1',
    )
    damaged = [re.sub(r'"rho": [\d.]+', damage, text) for damage in damages]
    for content in (
        "",
        "{}",
        "[]",
        text[:300],
        text.replace("ledger 1", "ledger 2"),
        *damaged,
    ):
        path.write_text(content)
        with pytest.raises(
            StorageError,
            match=(
                r"cannot be read, so what was spent is not known .* restore it from a"
            ),
        ):
            fitted(path, epsilon=1.0)
        assert path.read_text() == content != text
