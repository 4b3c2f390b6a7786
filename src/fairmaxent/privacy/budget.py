"""The budget: how much a result may reveal about one person, and what was spent of it.

One row is one person. Two tables are neighbours if one has a single row more than the
other. A mechanism M is (ε, δ)-private if P(M(D) in E) ≤ e^ε·P(M(D') in E) + δ for all
neighbours D, D' and all events E, and ρ-zCDP if the Rényi divergence of order α between
M(D) and M(D') is at most ρα for all α > 1. Only ρ adds up simply over mechanisms, so it
is what is spent; ε and δ are what is promised.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from fairmaxent.data.declaration import UndeclaredOption
from fairmaxent.errors import check_choice, checked_number
from fairmaxent.options import documented, option
from fairmaxent.options.refusals import MISSING, Refused, refuse

# Beyond these, neither number protects anybody, or floating point no longer tells
# budgets apart.
LARGEST_EPSILON = 1e6
_SMALLEST_EPSILON = 1e-6
_LARGEST_DELTA = 0.1
_SMALLEST_DELTA = 1e-300
_MOST_ROWS = 1_000_000  # of one person
Mechanism = Literal["discrete Gaussian", "noisy maximum"]


@documented
@dataclass(frozen=True, kw_only=True)
class Privacy:
    """How much the result may reveal about any one person: differential privacy.

    Whatever anybody learns from the result, they would almost as likely have learned it
    without the person's row: at most e^ε times less likely, except with probability δ.
    The noise has no seed, because anyone who knew it could take the noise away.
    """

    REFUSED = (
        Refused("budget", "ledger", "it is about all fits together", beside=MISSING),
    )

    epsilon: float = option(
        1.0,
        text="number",
        label="Privacy budget ε",
        help=(
            "Make the fit private: the result reveals at most ε about any one person"
            " (differential privacy). 1 is a strong promise. Needs --domain."
        ),
        page_help=(
            "Make the fit private: the result reveals at most ε about any one person"
            " (differential privacy). 1 is a strong promise. Below this field you then"
            " say which values every column can have."
        ),
        doc=(
            "ε: the smaller, the more private, and the noisier. Up to 1 is a strong"
            " promise; above 10, hardly any."
        ),
    )
    delta: float = option(
        1e-9,
        text="number",
        label="Privacy slack δ",
        help=(
            "With --epsilon: the chance that its promise does not hold; 1e-9 by"
            " default."
        ),
        doc=(
            "δ: the chance that the promise does not hold; it should be far below 1"
            " divided by the number of rows."
        ),
    )
    undeclared: UndeclaredOption = option(
        "refuse",
        choices=get_args(UndeclaredOption),
        label="Values that were not declared",
        help=(
            "With --epsilon: refuse a table with a value that --domain does not declare"
            " (which tells you about its rows, outside the promise), drop such rows, or"
            " take such values as missing where a column can be."
        ),
        doc=(
            'What becomes of a value that was not declared: "refuse" stops, which says'
            ' something about the rows that the promise does not cover. "drop" leaves'
            ' its row out; "missing" does so only if the value cannot be missing.'
        ),
    )
    rows_per_person: int = option(
        1,
        text="whole",
        least=1,
        label="Rows per person, at most",
        help=(
            "With --epsilon: how many rows of the table can be about one person, at"
            " most; 1 by default. With k rows, there is k times as much noise."
        ),
        doc=(
            "k: how many rows can be about one person, at most. The promise is for all"
            " of them together, so there is k times as much noise. Nothing checks it: a"
            " person with more rows is protected less."
        ),
    )
    # For the call alone: a fit does not keep them.
    ledger: Any = option(
        None,
        compare=False,
        repr=False,
        text="target",
        help=(
            "With --epsilon: the file that adds up what all private fits of the same"
            " people spend; by default beside the table (census.csv.ledger.json)."
        ),
        doc=(
            "A file that adds up what all private fits of the same people spend; None:"
            " nothing is written down."
        ),
    )
    budget: float | None = option(
        None,
        compare=False,
        repr=False,
        text="number",
        label="Budget ε of all fits together",
        help=(
            "With --epsilon: refuse a fit if all fits in the ledger would then have"
            " spent more than this ε together."
        ),
    )

    def __post_init__(self) -> None:
        epsilon = _checked_epsilon("epsilon", self.epsilon)
        delta = checked_number(
            "delta",
            self.delta,
            f"be a small positive number, e.g. 1e-9, between {_SMALLEST_DELTA:g} and"
            f" {_LARGEST_DELTA:g}",
            lambda delta: _SMALLEST_DELTA <= delta <= _LARGEST_DELTA,
        )
        check_choice("undeclared", self.undeclared, UndeclaredOption)
        rows = checked_number(
            "rows_per_person",
            self.rows_per_person,
            f"be a whole number of rows, from 1 to {_MOST_ROWS:,}",
            lambda rows: 1 <= rows <= _MOST_ROWS and rows == int(rows),
        )
        object.__setattr__(self, "rows_per_person", int(rows))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        if self.budget is not None:
            _checked_epsilon("budget", self.budget)
        refuse(self)

    @cached_property
    def rho(self) -> float:
        """ρ: the zCDP budget whose promise is (ε, δ)."""
        return rho_of(self.epsilon, self.delta)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"


def _checked_epsilon(name: str, value: float) -> float:
    return checked_number(
        name,
        value,
        f"be a positive number, e.g. 1, between {_SMALLEST_EPSILON:g} and"
        f" {LARGEST_EPSILON:g}",
        lambda epsilon: _SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON,
    )


def epsilon_of(rho: float, delta: float) -> float:
    """The ε that ρ-zCDP promises with this δ.

    ε(ρ, δ) = min over α > 1 of ρα + log(1 − 1/α) − log(δα)/(α − 1) (Canonne, Kamath and
    Steinke 2020, Proposition 12). The derivative is zero where ρ = log(1/(δα))/(α −
    1)², which falls in α, so the best α is found by halving.
    """
    best = _halved(delta, lambda t: _rho_at(t, delta) > rho)
    return max(0.0, _epsilon_at(best, rho, delta))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ whose promise is (ε, δ), a trifle rounded down: ε(ρ, δ) ≤ ε.

    At its best α, ε = ρ·(2α − 1) + log(1 − 1/α) with ρ = log(1/(δα))/(α − 1)²: both are
    functions of α alone, and ε falls in α, so α is found by halving.
    """
    best = _halved(delta, lambda t: _epsilon_at(t, _rho_at(t, delta), delta) > epsilon)
    return _rho_at(best, delta) * (1 - 1e-12)


def _halved(delta: float, is_above: Callable[[float], bool]) -> float:
    """The t = log(α − 1) from which on something that falls is not above its aim.

    The best α are between 1 and 1/δ.
    """
    low = math.log(1e-9)
    high = math.log(1 / delta - 1)
    for _ in range(200):
        middle = (low + high) / 2
        if is_above(middle):
            low = middle
        else:
            high = middle
    return high


def _rho_at(t: float, delta: float) -> float:
    """log(1/(δα))/(α − 1)²: the ρ for which this order is the best."""
    beyond = math.exp(t)
    return max(0.0, -math.log(delta) - math.log1p(beyond)) / beyond**2


def _epsilon_at(t: float, rho: float, delta: float) -> float:
    """ρα + log(1 − 1/α) − log(δα)/(α − 1)."""
    beyond = math.exp(t)
    order = 1 + beyond
    return (
        rho * order + t - math.log(order) - (math.log(delta) + math.log(order)) / beyond
    )


@dataclass(frozen=True)
class Spent:
    """One look at the table: what was measured, with how much noise, and its cost ρ.

    A discrete Gaussian of standard deviation σ on counts that a person changes by Δ at
    most (L2) costs Δ²/(2σ²). The noisy maximum picks a score with probability ∝
    e^{score/s}; if a person changes each score by Δ at most, it costs Δ²/(2s²) (bounded
    range: Cesar and Rogers 2021). ``scale`` is σ or s, and ``sensitivity`` Δ.
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
    """What one fit promised, and what it spent; `privacy.spending` adds up fits."""

    privacy: Privacy
    spent: tuple[Spent, ...]
    public: tuple[str, ...]  # what the promise takes to be known to everybody

    @property
    def unit(self) -> str:
        """Whom the promise is about."""
        if self.privacy.rows_per_person == 1:
            return (
                "one row is one person; tables are neighbours if one has a single row"
                " more"
            )
        return (
            f"at most {self.privacy.rows_per_person:,} rows are one person; tables are"
            " neighbours if one has all rows of a single person more"
        )

    @property
    def rho(self) -> float:
        """The sum of what was spent, in zCDP."""
        return sum(look.rho for look in self.spent)

    @property
    def epsilon(self) -> float:
        """The ε that was spent, with the δ promised; at most the ε promised."""
        return epsilon_of(self.rho, self.privacy.delta)

    @property
    def count_ranges(self) -> tuple[float, float]:
        """How far from the truth counts are at most, with 95% confidence.

        These are the count of an outcome in a group, and that of all rows. The root has
        been counted alone, with variance σ², and maybe with each column, in sums of k
        cells, with kσ².
        """
        root, *others = self.spent
        # each column was counted alone, too
        with_root = {f"{root.measured} × {look.measured}" for look in others}
        looks = [look for look in others if look.measured in with_root]
        precision = sum(
            root.cells / (look.cells * look.scale**2) for look in (root, *looks)
        )
        return 1.96 / math.sqrt(precision), 1.96 * math.sqrt(root.cells / precision)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON."""
        return {
            "count_ranges": self.count_ranges,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "rho": self.privacy.rho,
            "spent_rho": self.rho,
            "unit": self.unit,
            "public": list(self.public),
            "spent": [{**vars(look), "rho": look.rho} for look in self.spent],
        }
