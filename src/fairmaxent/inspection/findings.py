"""What was seen in a table: its columns, groups and rates, what is proposed, and what to watch out for."""

from __future__ import annotations

from dataclasses import dataclass

from fairmaxent.inspection.cost import Cost
from fairmaxent.inspection.hints import TINY, Hint
from fairmaxent.inspection.proposals import Proposal, Role
from fairmaxent.inspection.proxies import Proxy
from fairmaxent.metrics.group_rates import Rate

# Equal group sizes are proposed if no group is tiny, and its rows then count at most that many times.
_FEW_TIMES = 5


@dataclass(frozen=True)
class ColumnSummary:
    """One column as it is read."""

    name: str
    kind: str
    levels: int
    values: int
    missing: int
    shown: tuple[str, ...]
    identifier: bool


@dataclass(frozen=True)
class GroupingRates:
    """Both rates of one protected column, or of the intersections of all."""

    name: str
    representation: Rate
    statistical: Rate

    @property
    def bears_equal_groups(self) -> bool:
        """Whether groups of equal size cost little: no group is tiny, and none counts many times over."""
        equal = 1 / len(self.representation.groups)
        return all(
            group.rate > 0 and equal / group.rate <= _FEW_TIMES and (group.count or 0) >= TINY
            for group in self.representation.groups
        )


@dataclass(frozen=True)
class Findings:
    """What was seen in a table, and what is proposed."""

    rows: int
    outcome: str | None
    """The outcome that was named or is proposed; None: none was named, and none stands out."""
    favourable: tuple[object, ...]
    """The good outcomes that were named or are proposed; empty: every outcome is compared."""
    protected: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]
    notes: tuple[str, ...]
    proposals: tuple[Proposal, ...]
    hints: tuple[Hint, ...]
    groupings: tuple[GroupingRates, ...]
    proxies: tuple[Proxy, ...]
    empty_cells: tuple[str, ...]
    cost: Cost | None
    library: str

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns without a role that look as if they named people or rows; `debias` leaves them out."""
        return tuple(column.name for column in self.columns if column.identifier)

    @property
    def representation_rate(self) -> float | dict[str, float | None] | None:
        """The representation rate that does not ruin the data: 1, or None for groups that should keep their sizes."""
        rates = {group.name: 1.0 if group.bears_equal_groups else None for group in self.groupings}
        different = set(rates.values())
        return rates if len(different) > 1 else different.pop() if different else None

    def proposed(self, role: Role) -> tuple[Proposal, ...]:
        """What is proposed for a role, candidates included."""
        return tuple(proposal for proposal in self.proposals if proposal.role == role)

    def role_of(self, name: str) -> str:
        """The role of a column, an empty text if it has none."""
        return "outcome" if name == self.outcome else "protected" * (name in self.protected)
