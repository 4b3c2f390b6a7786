"""The ledger: every look at the table, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairmaxent.privacy.budget import Privacy, epsilon_of

Mechanism = Literal["discrete Gaussian", "noisy maximum"]


@dataclass(frozen=True)
class Spent:
    """One look at the table: what was measured, with how much noise, and its cost ρ.

    A discrete Gaussian of standard deviation σ on counts of which a person changes one, by one, costs 1/(2σ²). The
    noisy maximum picks a score with probability ∝ e^{score/s}; if a person changes each score by one at most, it costs
    1/(2s²) (bounded range: Cesar and Rogers 2021). ``scale`` is σ or s.
    """

    mechanism: Mechanism
    measured: str
    cells: int
    sensitivity: float
    scale: float

    @property
    def rho(self) -> float:
        """What it cost, in zCDP."""
        return (self.sensitivity / self.scale) ** 2 / 2


@dataclass(frozen=True)
class Ledger:
    """What was promised, and what was spent."""

    privacy: Privacy
    spent: tuple[Spent, ...]
    public: tuple[str, ...]  # what the promise takes to be known to everybody

    UNIT = "one row is one person; tables are neighbours if one has a single row more"

    @property
    def rho(self) -> float:
        """The sum of what was spent, in zCDP."""
        return sum(look.rho for look in self.spent)

    @property
    def epsilon(self) -> float:
        """The ε that was spent, with the δ promised; at most the ε promised."""
        return epsilon_of(self.rho, self.privacy.delta)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON."""
        return {
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "rho": self.privacy.rho,
            "spent_rho": self.rho,
            "unit": self.UNIT,
            "public": list(self.public),
            "spent": [{**vars(look), "rho": look.rho} for look in self.spent],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Ledger:
        """Restore what `to_dict` gave; refuse a ledger that spends more than it promises, or that adds up wrongly."""
        ledger = cls(
            Privacy(epsilon=record["epsilon"], delta=record["delta"]),
            tuple(Spent(**{key: value for key, value in look.items() if key != "rho"}) for look in record["spent"]),
            tuple(record["public"]),
        )
        if ledger.to_dict() != dict(record):
            raise ValueError("the ledger of the privacy budget does not add up")
        if not ledger.spent or ledger.rho > ledger.privacy.rho:
            raise ValueError("the ledger spends more than the privacy budget")
        return ledger
