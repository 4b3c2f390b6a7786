"""Rates before and after, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairmaxent.cli.options import RoleOptions
from fairmaxent.cli.show import text_table
from fairmaxent.domain import Domain
from fairmaxent.errors import LevelError
from fairmaxent.levels import value_text
from fairmaxent.metrics import Rate, representation_rate, statistical_rate


@dataclass(frozen=True)
class Measured:
    """Both rates of each grouping; None where a rate has nothing to compare."""

    representation: Mapping[str, Rate]
    statistical: Mapping[str, Rate | None]

    def groups(self, outcome: str) -> dict[tuple[str, str], float]:
        """Each group's share and rates, by group and by what is measured."""
        found = {}
        for rate in (*self.representation.values(), *self.statistical.values()):
            for own in rate.groups if rate else ():
                group = ", ".join(
                    f"{column} = {value_text(value)}" for column, value in zip(own.columns, own.group, strict=True)
                )
                found[group, "share" if own.outcome is None else f"{outcome} = {value_text(own.outcome)}"] = own.rate
        return found

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """The rates as plain numbers."""
        return {
            "representation_rate": {name: rate.value for name, rate in self.representation.items()},
            "statistical_rate": {name: None if rate is None else rate.value for name, rate in self.statistical.items()},
        }


def measure(data: Any, roles: RoleOptions, domain: Domain, *, weight: Any = None) -> Measured:
    """Take the rates of a frame, or the exact ones of a fit."""
    groupings = [roles.protected] if roles.groups == "joint" else [[name] for name in roles.protected]
    representation: dict[str, Rate] = {}
    statistical: dict[str, Rate | None] = {}
    for columns in groupings:
        name = " × ".join(columns)
        representation[name] = representation_rate(data, columns, groups="joint", weight=weight, domain=domain)
        try:
            statistical[name] = statistical_rate(
                data, roles.outcome, columns, favourable=roles.favoured, groups="joint", weight=weight, domain=domain
            )
        except LevelError:  # a handful of rows may hold no favourable outcome
            statistical[name] = None
    return Measured(representation, statistical)


def rates_table(wanted: Mapping[str, Mapping[str, float | None]], before: Measured, after: Measured) -> str:
    """The rates wanted, before and after."""
    old, new = before.to_dict(), after.to_dict()
    rows = [
        [f"{kind.replace('_', ' ')} of {name}", "any" if rate is None else f"{rate:.4f}", old[kind][name], own]
        for kind, names in wanted.items()
        for name, rate in names.items()
        for own in [new[kind][name]]
    ]
    return text_table(["", "wanted", "before", "after"], rows)


def groups_table(before: Measured, after: Measured, outcome: str) -> str:
    """Each group's share and rates, before and after."""
    old, new = before.groups(outcome), after.groups(outcome)
    rows = [[*key, old.get(key), new.get(key)] for key in {**old, **new}]
    return text_table(["group", "", "before", "after"], rows)
