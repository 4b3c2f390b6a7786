"""What a fit promises, and what it reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

from fairmaxent.data.draws import check_count, quota
from fairmaxent.data.roles import GroupsOption, Roles
from fairmaxent.data.table import Reals
from fairmaxent.errors import InputError
from fairmaxent.fairness.rates import rates_of_many, representation_rate, statistical_rate

ByGrouping = dict[str, float | None]
Rates = dict[str, ByGrouping]
Intervals = dict[str, dict[str, tuple[float, float]]]

SMALL_GROUP = 30
FEW_ROWS = 0.25  # share of the rows that the fair weights should be worth
_LINES = 12  # warnings shown before the rest is counted
_DRAWS = 2000
_DOWNSTREAM_SLACK = 0.1  # how far below the wanted rate a model may be expected to stay without a warning


@dataclass(frozen=True)
class Measure:
    """How the rates of a table are taken: which groupings, which outcomes."""

    groupings: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    favourable: tuple[int, ...]

    @classmethod
    def of(cls, roles: Roles, *, groups: GroupsOption = "each", favourable: object = None) -> Measure:
        """Take the rates of the given columns as the user asked."""
        groupings = roles.groupings(groups)
        return cls(groupings, tuple(map(roles.grouping_name, groupings)), roles.favourable_levels(favourable))

    def rates(self, table: Reals) -> Rates:
        """Both rates of a table, by grouping."""
        return {
            "representation_rate": self._each(lambda grouping: representation_rate(table, grouping)),
            "statistical_rate": self._each(lambda grouping: statistical_rate(table, grouping, self.favourable)),
        }

    def _each(self, rate: Callable[[tuple[int, ...]], float]) -> dict[str, float | None]:
        return {name: float(rate(grouping)) for name, grouping in zip(self.names, self.groupings, strict=True)}


@dataclass(frozen=True)
class Outlook:
    """How a model does on the people of the data; what compares groups is by grouping, None where nothing can be."""

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    equalised_odds: ByGrouping  # worst ratio of true positive rates or of false positive rates
    calibration_gap: ByGrouping  # largest difference of what happened over what was promised


@dataclass(frozen=True)
class Downstream:
    """What a student, a model trained on the result, is expected to do, beside one trained on the data as they are.

    Estimated by cross-fitting: it decides about people whose rows neither it nor the fit has seen.
    """

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    threshold: float  # of the favourable outcome's probability, from which it decides for it
    remedy: str  # what to try where it is not fair enough
    before: Outlook
    after: Outlook


@dataclass(frozen=True, eq=False)
class Certificate:
    """Rates wanted, before and achieved, and how good the solution is.

    The achieved rates are exact: they are taken from the fitted distribution, not from drawn rows.
    """

    wanted: Rates
    before: Rates
    achieved: Rates
    bound: float  # Theorem 4.5: the statistical rate is at least this, whatever the solver did to single cells
    delta: float  # δ of Theorem 4.5
    dual: float  # h(λ*) = −KL(p*‖q)
    iterations: int
    residual: float  # max |E[φ] − θ|
    method: str
    status: str
    multiplier_norm: float  # ‖λ*‖₂
    multiplier_bound: float | None  # Lemma 4.2; None where its assumptions do not hold
    distance: dict[str, float]  # "to_prior": KL(p*‖q); "from_data": KL(data‖p*)
    effective_rows: float  # how many equally weighted rows the fair weights are worth
    small_groups: tuple[str, ...]
    filled_cells: tuple[str, ...]
    removed_levels: tuple[str, ...]
    notes: tuple[str, ...]
    measure: Measure
    table: Reals  # p*(y, z)
    downstream: Downstream | None = None  # None: it was not asked for

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything a careful reader should know, as sentences."""
        return (
            *(f"small group: {group}" for group in self.small_groups),
            *(f"empty cell filled by the base: {cell}" for cell in self.filled_cells),
            *(f"level removed: {level}" for level in self.removed_levels),
            *self.notes,
            *self._unfair_downstream(),
        )

    def _unfair_downstream(self) -> list[str]:
        """Say where a model is expected to stay less fair than the data are."""
        if self.downstream is None:
            return []
        found = []
        for name, rate in self.downstream.after.by_predictions.items():
            wanted = self.wanted["statistical_rate"][name]
            if wanted is not None and rate is not None and rate < wanted - _DOWNSTREAM_SLACK:
                found.append(
                    f"the data are fair, but a model trained on them is expected to decide for groups of {name} at a "
                    f"rate of {rate:.2f} (wanted {wanted:.2f}): {self.downstream.remedy}"
                )
        return found

    def interval(self, n: int, *, iid: bool = False, confidence: float = 0.95) -> Intervals:
        """Where the rates of ``n`` sampled rows will fall.

        Rows drawn by quota have one table and so one value; independent draws are simulated from the exact table with
        a fixed seed. Being a minimum over pairs, the rate of independent draws lies below the exact one.
        """
        count = check_count(n)
        if not isinstance(confidence, float) or not 0 < confidence < 1:
            raise InputError(f"confidence is {confidence!r}; it lies between 0 and 1")
        shares = self.table.ravel() / self.table.sum()
        if iid:
            tables = np.random.default_rng(0).multinomial(count, shares, size=_DRAWS)
        else:
            tables = quota(shares, count)[None, :]
        stack = tables.reshape(-1, *self.table.shape).astype(float)
        found: Intervals = {"representation_rate": {}, "statistical_rate": {}}
        for name, grouping in zip(self.measure.names, self.measure.groupings, strict=True):
            rates = rates_of_many(stack, self.table, grouping, self.measure.favourable)
            for kind, drawn in zip(found, rates, strict=True):
                low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
                found[kind][name] = (float(low), float(high))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON."""
        skipped = ("measure", "table")
        return {key: _plain(value) for key, value in vars(self).items() if key not in skipped}

    def _downstream_lines(self, width: int) -> list[str]:
        if self.downstream is None:
            return []
        known = self.downstream
        lines = [f"expected of {known.student} trained on the {known.output}:"]
        rows: list[tuple[str, float | None, float | None]] = [
            ("accuracy", known.before.accuracy, known.after.accuracy),
            ("AUC", known.before.auc, known.after.auc),
        ]
        for kind in ("by_predictions", "by_probabilities"):
            rows += [
                (f"rate {kind.replace('_', ' ')} of {name}", rate, getattr(known.after, kind)[name])
                for name, rate in getattr(known.before, kind).items()
            ]
        return lines + [
            f"{'  ' + name:<{width}}{'':>10}{_shown(before):>10}{_shown(after):>10}" for name, before, after in rows
        ]

    def __str__(self) -> str:
        labels = [f"{kind} of {name}" for kind, names in self.wanted.items() for name in names]
        width = max(36, *(len(label) + 2 for label in labels))
        lines = [f"{'':<{width}}{'wanted':>10}{'before':>10}{'achieved':>10}"]
        for kind, names in self.wanted.items():
            for name, wanted in names.items():
                shown = "any" if wanted is None else f"{wanted:.4f}"
                before, achieved = self.before[kind][name], self.achieved[kind][name]
                lines.append(f"{kind + ' of ' + name:<{width}}{shown:>10}{before:>10.4f}{achieved:>10.4f}")
        lines += self._downstream_lines(width)
        lines.append(
            f"{self.method}: {self.iterations} iterations, residual {self.residual:.1e}; "
            f"distance to prior {self.distance['to_prior']:.4f}, from data {self.distance['from_data']:.4f}"
        )
        hidden = len(self.warnings) - _LINES
        return "\n".join([*lines, *self.warnings[:_LINES], *([f"and {hidden} more warnings"] if hidden > 0 else [])])


def theorem_4_5(tau: float, *, base_mass: float, delta: float) -> float:
    """τ' = τ − δ(1 + τ)/(m + δ), where q(y, z) ≥ m in every cell; m = C/4 for the uniform base on two by two cells.

    With m = C/4 this is the paper's τ − 4δ(1 + τ)/(C + 4δ).
    """
    if delta == 0:
        return tau
    return max(0.0, tau - delta * (1 + tau) / (base_mass + delta))


def lemma_4_2(log_floor: float, shares: list[Reals]) -> float:
    """‖λ*‖₂ ≤ L_q/η, with L_q = log 1/min q and η the distance of θ to the boundary of the features' hull.

    The indicators of one alphabet, less the reference, fill a simplex; its faces are θ_i away, and the one opposite
    the origin θ_reference/√(number of indicators).
    """
    radius = np.inf
    for share in shares:
        ordered = np.sort(share[share > 0])
        if len(ordered) > 1:
            radius = min(radius, ordered[0], ordered[-1] / np.sqrt(len(ordered) - 1))
    return float(-log_floor / radius)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
