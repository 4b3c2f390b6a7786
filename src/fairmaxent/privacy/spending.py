"""What private fits of the same people spent together: a ledger in a file.

It outlives each of them.

Only ρ adds up over fits; the sum promises (ε(ρ, δ), δ) for any δ, whatever δ each of
them had. Everything in a file is taken to be about the same people, also if a row was
added to their table: that can only overstate what is known.

A fit is written down before its first noisy number is drawn, so no crash forgets it.
Digests of the table and of what was asked recognise a result that is there already.
Their key stands in the same file, so they say nothing beside other digests; but whoever
has the file, and all rows but one, could try that one out. It is as secret as the
table.
"""

import contextlib
import hmac
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fairmaxent.errors import InputError, Option, StorageError, first_line, unfit
from fairmaxent.files.write import Staging, write_whole
from fairmaxent.privacy.budget import Privacy, epsilon_of, rho_of

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_ATTEMPTS = 600  # half a minute; a payment takes a few milliseconds
# with these fields: digests of table and request, and the file that was to hold the
# result
Payment = dict[str, Any]
_FIELDS = ("when", "epsilon", "delta", "rho", "table", "request", "command", "model")
_FORMAT = "fairmaxent ledger 1"
_ABOUT = (
    "Private fits of the same people: their rho adds up. Keep this file, and keep it as"
    " secret as the table."
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

    def payments(self) -> list[Payment]:
        """What was paid; a ledger that is not there yet has nothing."""
        if os.path.lexists(self.path):
            return self._read()[1]
        return []

    @property
    def rho(self) -> float:
        """The sum of what was paid."""
        return math.fsum(paid["rho"] for paid in self.payments())

    def check(self, privacy: Privacy) -> None:
        """Refuse a fit that is beyond the budget."""
        spent = self.rho
        delta = privacy.delta
        budget = privacy.budget
        if budget is None or spent + privacy.rho <= rho_of(budget, delta):
            return
        rho_left = max(0.0, rho_of(budget, delta) - spent)
        left = math.floor(100 * epsilon_of(rho_left, delta)) / 100
        way: tuple[object, ...] = ("nothing is left of ", Option("budget"))
        if left:
            way = (f"{left:g} is left: lower ", Option("epsilon"))
        raise InputError(
            f"the private fits in {self.path} have spent ε ="
            f" {epsilon_of(spent, delta):.3g}, and this one would bring it to"
            f" {epsilon_of(spent + privacy.rho, delta):.3g}, beyond the budget of"
            f" {budget:g} (δ = {delta:g}). Nothing was spent now. Rows and reports from"
            " a model that is paid for spend nothing; for another fit, ",
            *way,
        )

    def pay(
        self,
        privacy: Privacy,
        table: bytes,
        request: str,
    ) -> None:
        """Write a fit down before it spends anything.

        Refuse what is beyond the budget, or paid for already.
        """
        with self._locked():
            key, payments = self._read()
            of_table = hmac.digest(key, table, "sha256").hex()
            of_request = hmac.digest(key, request.encode(), "sha256").hex()
            # a model may have been replaced
            for model, paid in {paid["model"]: paid for paid in payments}.items():
                is_same = (paid["table"], paid["request"]) == (of_table, of_request)
                if is_same and model is not None and os.path.exists(model):
                    raise InputError(
                        f"this is paid for already: {model} holds the private fit of"
                        f" the same table with the same options of {paid['when']}. Rows"
                        " and reports from it spend nothing. Nothing was spent now. If"
                        " you want other noise, which spends another ε ="
                        f" {privacy.epsilon:g}, move that file away first"
                    )
            self.check(privacy)
            payments.append(
                {
                    "when": datetime.now(UTC).isoformat(timespec="seconds"),
                    "epsilon": privacy.epsilon,
                    "delta": privacy.delta,
                    "rho": privacy.rho,
                    "table": of_table,
                    "request": of_request,
                    "command": self.command,
                    "model": self.model,
                }
            )
            write_whole(self.path, _content(key, payments))

    def _read(self) -> tuple[bytes, list[Payment]]:
        try:
            with open(self.path, encoding="utf-8") as file:
                record = json.load(file)
            rhos = [
                paid["rho"] for paid in record["fits"] if set(_FIELDS) == paid.keys()
            ]
            sound = all(isinstance(rho, float) and 0 < rho < math.inf for rho in rhos)
            if (
                record["format"] != _FORMAT
                or not sound
                or len(rhos) < len(record["fits"])
            ):
                raise ValueError("it states something else than what fits spent")
            return bytes.fromhex(record["key"]), record["fits"]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
            raise StorageError(
                f"the ledger {self.path} cannot be read, so what was spent is not known"
                f" ({first_line(problem)}). It is left as it is: restore it from a"
                " copy, or name another one with ",
                Option("ledger"),
            ) from problem

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from paying; the ledger is made if there is none."""
        while True:
            try:
                if not os.path.lexists(self.path):
                    with Staging([self.path]) as staging:
                        staging.path_for(self.path).write_bytes(
                            _content(os.urandom(32), [])
                        )
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


def _content(key: bytes, payments: list[Payment]) -> bytes:
    record = {
        "format": _FORMAT,
        "about": _ABOUT,
        "key": key.hex(),
        "fits": payments,
    }
    return json.dumps(record, indent=1, ensure_ascii=False).encode()


def spent_so_far(path: str, delta: float) -> str:
    """What all fits in a ledger have spent together, for those who have the table."""
    total = epsilon_of(Spending(path).rho, delta)
    count = len(Spending(path).payments())
    fits = "1 private fit" if count == 1 else f"{count:,} private fits"
    return f"Spent on these people so far: ε = {total:.3g} (δ = {delta:g}), in {fits}"


class PaidNoise:
    """Noise that is paid for before its first number is drawn."""

    def __init__(self, noise: Any, pay: Callable[[], None]) -> None:
        self._noise = noise
        self._pay = pay
        self._is_paid = False

    def __getattr__(self, name: str) -> Any:
        if not self._is_paid:
            self._pay()
            self._is_paid = True
        return getattr(self._noise, name)
