"""Row strata: the parts of a sample, or of a marginal, within which groups are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.roles import WithinOption, read_within
from fairmaxent.errors import ColumnError, LevelError, Option
from fairmaxent.fairness.measure import MissingOption
from fairmaxent.metrics.groups import MISSING, Groups, MeasuredRows, code_of, groups_of

StratumLevels = tuple[tuple[str, object], ...]  # column and value


@dataclass(frozen=True, eq=False)
class RowStratum:
    """One stratum: its columns with their values, and its rows."""

    levels: StratumLevels = ()
    rows: Any = ...  # all of them, if nothing is compared within strata

    def of(self, groups: Groups) -> Groups:
        """The groups of its rows; groups that no row of it has are no groups here."""
        group, labels = groups
        if not self.levels:
            return groups
        present, within = np.unique(group[self.rows], return_inverse=True)
        return within, [labels[code] for code in present]


def strata_of(
    rows: MeasuredRows, within: WithinOption, domain: Domain | None, missing: MissingOption
) -> list[RowStratum]:
    """Split rows into the strata that are compared; those of missing values are only if that is asked for."""
    named = read_within(within)
    if not named:
        return [RowStratum()]
    stratum, labels = groups_of(rows.frame, list(named), domain)
    chosen = [
        code for code, label in enumerate(labels) if _is_meant(dict(zip(named, label, strict=True)), named, missing)
    ]
    if not chosen:
        raise LevelError(Option("within"), f" is {within!r}, but no row is in such a stratum; name another level")
    order = np.argsort(stratum, kind="stable")
    starts = np.searchsorted(stratum[order], np.arange(len(labels) + 1))
    parts = [(labels[code], order[starts[code] : starts[code + 1]]) for code in chosen]
    if rows.exact:  # cells of a marginal that have no probability are nobody's
        parts = [(label, part[rows.weights[part] > 0]) for label, part in parts]
    return [RowStratum(tuple(zip(named, label, strict=True)), part) for label, part in parts if len(part)]


def _is_meant(levels: dict[str, object], named: dict[str, object], missing: MissingOption) -> bool:
    """Whether a stratum is one of those that were asked for."""
    for column, level in levels.items():
        values = named[column]
        if values is None:
            if level is MISSING and missing == "ignore":
                return False
        else:
            listed = list(values) if isinstance(values, list | tuple | set | frozenset) else [values]
            if not any(code_of([level], value) == 0 for value in listed):
                return False
    return True


def refuse_roles(within: WithinOption, outcome: Any, protected: Any) -> None:
    """Refuse to compare within the outcome or a protected column."""
    taken = [name for name in (outcome, *protected) if isinstance(name, str)]
    for name in read_within(within):
        if name in taken:
            raise ColumnError(
                Option("within"), f" names {name!r}, which is the outcome or protected; name another column"
            )


def stratum_text(levels: StratumLevels) -> str:
    """A stratum in words, to be put after what is compared; nothing if there is none."""
    return " within " + ", ".join(f"{column} = {value_text(value)}" for column, value in levels) if levels else ""
