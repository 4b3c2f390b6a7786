"""Combinations of values that are forbidden."""

from collections.abc import Mapping, Sequence

from fairmaxent import errors
from fairmaxent.data.roles import Roles
from fairmaxent.errors import Option, shown
from fairmaxent.maxent.forbidden import Rule

ForbidOption = Sequence[Mapping[str, object]]


def check_rules(forbid: object) -> None:
    """Refuse what is no list of combinations."""
    if forbid is None:
        return
    if not isinstance(forbid, list | tuple) or not all(
        isinstance(rule, Mapping) and rule for rule in forbid
    ):
        raise errors.ForbiddenError(
            Option("forbid"),
            f" is {shown(forbid)}; pass a list of combinations, none of them empty,"
            " e.g. [{'sex': 'Male'}]",
        )


def read_rules(roles: Roles, forbid: ForbidOption | None) -> tuple[Rule, ...]:
    """Turn forbidden combinations of values into rules on the blocks."""
    rules = []
    domain = roles.domain
    for combination in forbid or ():
        levels = {
            domain.index(name): domain.attribute(name).exact_level(value)
            for name, value in combination.items()
        }
        rules.append(Rule.of(roles.blocks, levels, rule_text(combination)))
    return tuple(rules)


def rule_text(rule: Mapping[str, object]) -> str:
    """Write a forbidden combination."""
    return ", ".join(f"{name} = {value}" for name, value in rule.items())
