"""What was asked for: the options of a fit, checked at the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real

from fairmaxent.data.roles import GroupsOption, Roles
from fairmaxent.errors import ColumnError, ForbiddenError, InputError, check_choice, did_you_mean
from fairmaxent.fairness.fair_table import check_rate
from fairmaxent.maxent.forbidden import Rule
from fairmaxent.maxent.priors.bases import BaseKind

RateOption = float | Mapping[str, float | None] | None
ForbidOption = Sequence[Mapping[str, object]]


def read_rates(option: RateOption, name: str, roles: Roles, groups: GroupsOption) -> tuple[float | None, ...]:
    """One wanted rate per grouping; None leaves it as it is."""
    groupings = roles.groupings(groups)
    if not isinstance(option, Mapping):
        return tuple(_read_rate(name, option) for _ in groupings)
    if groups == "joint":
        raise InputError(f"{name}: with groups='joint' there is one rate for all intersections; pass a number or None")
    known = roles.names[1:]
    for key in option:
        if key not in known:
            raise ColumnError(f"{name} names {key!r}, which is not protected; {did_you_mean(key, known)}")
    return tuple(_read_rate(f"{name}[{column!r}]", option.get(column)) for column in known)


def _read_rate(name: str, rate: float | None) -> float | None:
    return None if rate is None else check_rate(name, rate, hint="; use None to leave it as it is in the data")


def read_rules(roles: Roles, forbid: ForbidOption | None) -> tuple[Rule, ...]:
    """Turn forbidden combinations of values into rules on the blocks."""
    if not isinstance(forbid, list | tuple | None):
        raise ForbiddenError(f"forbid is {forbid!r}; pass a list of combinations, e.g. [{{'sex': 'Male'}}]")
    domain = roles.domain
    rules = []
    for combination in forbid or ():
        if not isinstance(combination, Mapping):
            raise ForbiddenError(f"forbid holds {combination!r}; name values by column, e.g. {{'sex': 'Male'}}")
        if not combination:
            raise ForbiddenError("an empty combination in forbid would forbid every row; remove it")
        assignment = {
            domain.index(name): domain.attribute(name).exact_level(value) for name, value in combination.items()
        }
        text = ", ".join(f"{name} = {value}" for name, value in combination.items())
        rules.append(Rule.of(roles.blocks, assignment, text))
    return tuple(rules)


def check_share(name: str, share: float) -> float:
    """Refuse a share of the base (C) outside [0, 1]."""
    if not _is_number(share) or not 0 <= share <= 1:
        raise InputError(f"{name} is {share!r}; it lies between 0 (rows only) and 1 (base only)")
    return float(share)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_base(base: str) -> None:
    """Refuse an unknown base."""
    check_choice("base", base, BaseKind)
