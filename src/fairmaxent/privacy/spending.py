"""What private fits of the same people spent together: a ledger in a file.

It outlives each of them.

Only ρ adds up over fits; the sum promises (ε(ρ, δ), δ) for any δ, whatever δ each of
them had. Everything in a file is taken to be about the same people, also if a row was
added to their table: that can only overstate what is known.

A fit is written down before its first noisy number is drawn, so no crash forgets it. A
digest of what was asked recognises a result that is there already. Nothing in the file
depends on any row: a digest of counts would give small counts away.

A fit for at most k rows of a person costs them ρ; one with K rows pays (K/k)²ρ for it.
So all fits are charged for the most rows that any of them allowed.
"""

import contextlib
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from fairmaxent.document.words import counted
from fairmaxent.errors import InputError, Option, StorageError, first_line, unfit
from fairmaxent.files.write import Staging, write_whole
from fairmaxent.privacy.budget import Privacy, epsilon_of

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_ATTEMPTS = 600  # half a minute; a payment takes a few milliseconds
Payment = dict[str, Any]  # with these fields, and those of a budget
_PAID = (
    "when",
    "epsilon",
    "delta",
    "rows_per_person",
    "request",  # a digest of what was asked
    "command",
    "model",  # the file that was to hold the result
)
_ALLOWED = ("when", "epsilon", "delta")
_FORMAT = "fairmaxent ledger 2"
_ABOUT = (
    "Private fits of the same people: their rho adds up. Keep this file; a table of the"
    " same people without it would be paid for as if it were new."
)


@dataclass(frozen=True)
class Account:
    """What a ledger says: what was paid, and the budgets, of which the last holds."""

    fits: tuple[Payment, ...] = ()
    budgets: tuple[Payment, ...] = ()

    def rows_per_person(self, rows: int = 1) -> int:
        """The most rows of one person that any fit allowed, or this one."""
        return max([rows, *(paid["rows_per_person"] for paid in self.fits)])

    def rho(self, rows: int = 1) -> float:
        """What was paid in all, for a person with the most rows."""
        most = self.rows_per_person(rows)
        return math.fsum(
            _promise(paid).rho * (most / paid["rows_per_person"]) ** 2
            for paid in self.fits
        )


@dataclass(frozen=True)
class Spending:
    """The ledger at a path."""

    path: str
    # written down with what is paid
    command: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, privacy: Privacy) -> "Spending | None":
        """The ledger that a fit is to be written in."""
        asked = privacy.ledger
        if not isinstance(asked, cls | str | os.PathLike | None):
            raise unfit("ledger", asked, "pass the path of a file, or None")

        if isinstance(asked, str | os.PathLike):
            return Spending(os.fspath(asked))
        return asked

    def account(self) -> Account:
        """What the file says; a ledger that is not there yet has nothing."""
        if os.path.lexists(self.path):
            return self._read()
        return Account()

    def check(self, privacy: Privacy) -> None:
        """Refuse a fit that is beyond the budget."""
        account = self.account()
        budget = self._budget(account, privacy)
        if budget is None:
            return
        delta = budget["delta"]
        most = account.rows_per_person(privacy.rows_per_person)
        price = (most / privacy.rows_per_person) ** 2
        spent = account.rho(most)
        total = spent + privacy.rho * price
        rho_left = max(0.0, _promise(budget).rho - spent)
        if total - spent <= rho_left:
            return
        affordable = epsilon_of(rho_left / price, privacy.delta)
        left = math.floor(100 * affordable) / 100
        way: tuple[object, ...] = ("nothing is left of ", Option("budget"))
        if left:
            way = (f"{left:g} is left: lower ", Option("epsilon"))
        raise InputError(
            f"the private fits in {self.path} have spent ε ="
            f" {epsilon_of(spent, delta):.3g}, and this one would bring it to"
            f" {epsilon_of(total, delta):.3g}, beyond the budget of"
            f" {budget['epsilon']:g} (δ = {delta:g}{_of_rows(most)}). Nothing was spent"
            " now. Rows and reports from a fit that is paid for spend nothing; for"
            " another fit, ",
            *way,
        )

    def _budget(self, account: Account, privacy: Privacy) -> Payment | None:
        """What all fits together may spend.

        The ledger remembers it. A fit may ask for less, and begins it if there is none.
        """
        asked = None
        if privacy.budget is not None:
            asked = _allowed(privacy.budget, privacy.delta)
        if not account.budgets:
            return asked
        last = account.budgets[-1]
        if asked is None:
            return last
        if _promise(asked).rho > _promise(last).rho:
            raise InputError(
                f"{self.path} has had a budget of ε = {last['epsilon']:g} (δ ="
                f" {last['delta']:g}) since {last['when']}, and ",
                Option("budget"),
                " asks for more. Leave it out; to raise it, which is written down, run"
                f" 'fairmaxent ledger {self.path} --budget {asked['epsilon']:g}'",
            )
        return asked

    def pay(self, privacy: Privacy, request: str) -> None:
        """Write a fit down before it spends anything.

        Refuse what is beyond the budget, or paid for already.
        """
        digest = hashlib.sha256(request.encode()).hexdigest()
        with self._locked():
            account = self._read()
            # a model may have been replaced
            for model, paid in {paid["model"]: paid for paid in account.fits}.items():
                is_same = paid["request"] == digest
                if is_same and model is not None and os.path.exists(model):
                    raise InputError(
                        f"this is paid for already: {model} holds the private fit of"
                        f" the same people with the same options of {paid['when']}."
                        " Rows and reports from it spend nothing. Nothing was spent"
                        " now. If the table has changed, or you want other noise, which"
                        f" spends another ε = {privacy.epsilon:g}, move that file away"
                        " first"
                    )
            self.check(privacy)
            payment = {
                "when": _now(),
                "epsilon": privacy.epsilon,
                "delta": privacy.delta,
                "rows_per_person": privacy.rows_per_person,
                "request": digest,
                "command": self.command,
                "model": self.model,
            }
            budgets = account.budgets
            if privacy.budget is not None and not budgets:
                budgets = (_allowed(privacy.budget, privacy.delta),)
            self._write(Account((*account.fits, payment), budgets))

    def allow(self, budget: Privacy) -> None:
        """Write down what all fits together may spend from now on."""
        with self._locked():
            account = self._read()
            added = _allowed(budget.epsilon, budget.delta)
            self._write(replace(account, budgets=(*account.budgets, added)))

    def lines(self, delta: float) -> Iterator[str]:
        """All that is in the ledger, in words."""
        account = self.account()
        for paid in account.fits:
            rows = _of_rows(paid["rows_per_person"])
            kept = paid["model"] or "no file was named"
            yield (
                f"{paid['when']}  ε = {paid['epsilon']:g} (δ = {paid['delta']:g}{rows})"
                f"  {kept}"
            )
        for budget in account.budgets:
            yield (
                f"{budget['when']}  budget set: ε = {budget['epsilon']:g} (δ ="
                f" {budget['delta']:g})"
            )
        yield spent_so_far(self.path, delta)

    def _read(self) -> Account:
        try:
            with open(self.path, encoding="utf-8") as file:
                record = json.load(file)
            fits = record["fits"]
            budgets = record["budgets"]
            is_sound = (
                record["format"] == _FORMAT
                and all(paid.keys() == set(_PAID) for paid in fits)
                and all(budget.keys() == set(_ALLOWED) for budget in budgets)
                and all(map(_promise, (*fits, *budgets)))  # which refuses odd numbers
            )
            if not is_sound:
                raise ValueError("it states something else than what fits spent")
            return Account(tuple(fits), tuple(budgets))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
            raise StorageError(
                f"the ledger {self.path} cannot be read, so what was spent is not known"
                f" ({first_line(problem)}). It is left as it is: restore it from a"
                " copy, or name another ledger"
            ) from problem

    def _write(self, account: Account) -> None:
        write_whole(self.path, _content(account))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from paying; the ledger is made if there is none."""
        while True:
            try:
                if not os.path.lexists(self.path):
                    with Staging([self.path]) as staging:
                        staging.path_for(self.path).write_bytes(_content(Account()))
                file = _lock(self.path)
            except OSError as problem:
                if isinstance(problem, StorageError) and os.path.exists(self.path):
                    continue  # another process was faster
                raise StorageError(
                    "what private fits spend is written down first, but not in"
                    f" {self.path} ({first_line(problem)}); name another file for it"
                    " with ",
                    Option("ledger"),
                ) from problem
            try:
                # Or else another process has replaced it.
                if fcntl is None or os.path.samestat(
                    os.fstat(file), os.stat(self.path)
                ):
                    yield
                    return
            finally:
                os.close(file)


def _lock(path: str) -> int:
    """Open the ledger alone.

    On Windows, which replaces no open file, a file beside it that goes when it is
    closed.
    """
    if fcntl is not None:
        file = os.open(path, os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    for _ in range(_ATTEMPTS):
        # the second while the file goes
        with contextlib.suppress(FileExistsError, PermissionError):
            return os.open(
                f"{path}.lock",
                os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0),
            )
        time.sleep(0.05)

    raise OSError(
        f"another fit has locked it for half a minute, or the folder of {path}.lock"
        " cannot be written"
    )


def _content(account: Account) -> bytes:
    record = {
        "format": _FORMAT,
        "about": _ABOUT,
        "budgets": account.budgets,
        "fits": account.fits,
    }
    return json.dumps(record, indent=1, ensure_ascii=False).encode()


def _allowed(epsilon: float, delta: float) -> Payment:
    return {"when": _now(), "epsilon": epsilon, "delta": delta}


def _promise(paid: Payment) -> Privacy:
    """What was promised, or allowed."""
    names = ("epsilon", "delta", "rows_per_person")
    return Privacy(**{name: paid[name] for name in names if name in paid})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _of_rows(most: int) -> str:
    """Whose loss it is, if people have several rows."""
    return "" if most == 1 else f", for a person with {most:,} rows"


def spent_so_far(path: str, delta: float) -> str:
    """What all fits in a ledger have spent together, for those who have the table."""
    account = Spending(path).account()
    total = epsilon_of(account.rho(), delta)
    fits = counted(len(account.fits), "private fit")
    rows = _of_rows(account.rows_per_person())
    return (
        f"Spent on these people so far: ε = {total:.3g} (δ = {delta:g}{rows}), in"
        f" {fits}"
    )
