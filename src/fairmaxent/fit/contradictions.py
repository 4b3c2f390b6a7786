"""When options of one fit contradict each other, where that depends on their values."""

from collections.abc import Mapping
from typing import Any

from fairmaxent.data.declaration import Declaration


def below_one(share: float) -> bool:
    """Any but 1."""
    return share != 1


def weights(estimate: Any) -> bool:
    """An estimate of a model that learns from weights."""
    return bool(getattr(estimate, "output", estimate) == "weights")


def classifier(estimator: object) -> bool:
    """A classifier of yours."""
    return not isinstance(estimator, str)


def has_training(request: Any) -> bool:
    """Unless its probabilities are made equal, not its decisions."""
    return request.training is not None


def same_groups(request: Any) -> str | bool:
    """For the same column, or all columns whose intersections are compared.

    Otherwise the rate holds within each level of a column that has shares.
    """
    target = request.target
    if request.groups == "joint":
        return {*request.protected_names} <= {*target}
    rates = request.representation_rate
    for column in request.protected_names:
        rate = rates.get(column) if isinstance(rates, Mapping) else rates
        if column in target and rate is not None:
            return column
    return False


def without_role(request: Any) -> str | None:
    """For a column that is no outcome and compares nothing."""
    roles = request.role_names
    return next((name for name in request.target if name not in roles), None)


def by_column(name: str, request: Any) -> bool:
    """By column."""
    rates = getattr(request, name)
    outcomes = [request.outcome, *getattr(request, "also_names", ())]
    return isinstance(rates, Mapping) and rates.keys().isdisjoint(outcomes)


def outcome_in_bins(request: Any) -> bool:
    """If the outcome is declared by the edges of bins."""
    domain = request.domain
    return isinstance(domain, Declaration) and request.outcome in domain.edges
