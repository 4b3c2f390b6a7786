"""When options of one fit contradict each other, where that depends on their values."""

from collections.abc import Mapping
from typing import Any

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.roles import read_columns
from fairmaxent.fairness.small_groups import SmallGroups


def below_one(share: float) -> bool:
    """Any but 1."""
    return share != 1


def above_zero(share: float) -> bool:
    """Any but 0."""
    return share != 0


def weights(estimate: Any) -> bool:
    """An estimate of a model that learns from weights."""
    return bool(getattr(estimate, "output", estimate) == "weights")


def classifier(estimator: object) -> bool:
    """A classifier of yours."""
    return not isinstance(estimator, str)


def sets_apart(size: Any) -> bool:
    """Any but 0."""
    return SmallGroups.of(size).are_chosen


def has_training(request: Any) -> bool:
    """Unless its probabilities are made equal, not its decisions."""
    return request.training is not None


def without_rate(request: Any) -> bool:
    """Unless there is a rate, or its probabilities are made equal."""
    return has_training(request) and request.statistical_rate is None


def same_groups(request: Any) -> str | None:
    """For the same column, or all columns whose intersections are compared.

    Otherwise the rate holds within each level of a column that has shares.
    """
    rates = request.representation_rate
    if not isinstance(rates, Mapping):
        rates = dict.fromkeys(request.protected_names, rates)
    twice = [name for name in request.target if rates.get(name) is not None]
    if request.groups == "joint" and len(twice) < len(request.protected_names):
        return None
    return next(iter(twice), None)


def of_groups(request: Any) -> str | None:
    """For a protected column."""
    names = request.protected_names
    return next((name for name in names if name in request.target), None)


def without_role(request: Any) -> str | None:
    """For a column that is no outcome and compares nothing."""
    roles = request.role_names
    return next((name for name in request.target if name not in roles), None)


def by_column(name: str, request: Any) -> bool:
    """By column."""
    rates = getattr(request, name)
    columns = read_columns("protected", request.protected)
    return isinstance(rates, Mapping) and not rates.keys().isdisjoint(columns)


def outcome_in_bins(request: Any) -> bool:
    """If the outcome is declared by the edges of bins."""
    domain = request.domain
    return isinstance(domain, Declaration) and request.outcome_name in domain.edges


def several_outcomes(request: Any) -> bool:
    """If there are several."""
    return len(request.outcome_names) > 1
