"""A look at a table before anything is done to it: columns, groups, rates, proxies, and what a fit would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption, Roles, check_roles, read_columns
from fairmaxent.data.table import tally
from fairmaxent.data.weights import effective_rows, in_range, read_weights
from fairmaxent.engines.memory_reading import read_domain
from fairmaxent.fit.problem import compress
from fairmaxent.maxent.logspace import entropy
from fairmaxent.metrics.group_rates import Rate, representation_rate, statistical_rate

# A column that predicts at least this share of a protected one is worth naming.
NOTABLE = 0.01

# Rough cost of a fit on one core: a cell of the table in seconds and bytes, a pair of features in both.
_CELL_SECONDS, _PAIR_SECONDS = 3e-7, 2e-6
_CELL_BYTES, _PAIR_BYTES = 110, 32
# Equal group sizes are proposed if each group has this many rows, and its rows then count at most that many times.
_FEW_ROWS, _FEW_TIMES = 30, 5
_DURATIONS = ((1, "under a second"), (10, "a few seconds"), (60, "under a minute"), (600, "minutes"))
_TOO_LONG = "very long: drop or merge columns with many levels"


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


@dataclass(frozen=True)
class Proxy:
    """How well a column predicts a protected one: 0 is no better than chance, 1 is perfect."""

    column: str
    protected: str
    strength: float


@dataclass(frozen=True)
class Cost:
    """What a fit takes: its size exactly, time and memory roughly."""

    distinct_rows: int
    features: int
    cells: int
    domain_size: int
    seconds: float
    megabytes: float

    @property
    def words(self) -> str:
        """Time and memory in words."""
        time = next((words for bound, words in _DURATIONS if self.seconds < bound), _TOO_LONG)
        memory = f"about {self.megabytes:,.0f} MB" if self.megabytes > 100 else "little memory"
        return f"{time}, {memory}"


@dataclass(frozen=True)
class Inspection:
    """What `inspect` saw in a table; it changes nothing."""

    rows: int
    outcome: str
    protected: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]
    notes: tuple[str, ...]
    groupings: tuple[GroupingRates, ...]
    proxies: tuple[Proxy, ...]
    empty_cells: tuple[str, ...]
    cost: Cost

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns without a role that look as if they named people or rows; `debias` leaves them out."""
        return tuple(column.name for column in self.columns if column.identifier)

    @property
    def bears_equal_groups(self) -> bool:
        """Whether groups of equal size cost little: no group is tiny, and none counts many times over."""
        return all(_bears_equal_groups(grouping.representation) for grouping in self.groupings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        plain = {
            name: [vars(item) for item in value] if name in ("columns", "proxies") else value
            for name, value in vars(self).items()
        }
        groupings = [
            {
                "name": grouping.name,
                "representation_rate": _rate_record(grouping.representation),
                "statistical_rate": _rate_record(grouping.statistical),
            }
            for grouping in self.groupings
        ]
        return {**plain, "groupings": groupings, "cost": {**vars(self.cost), "words": self.cost.words}}


def _bears_equal_groups(shares: Rate) -> bool:
    equal = 1 / len(shares.groups)
    return all(
        group.rate > 0 and equal / group.rate <= _FEW_TIMES and (group.count or 0) >= _FEW_ROWS
        for group in shares.groups
    )


def inspect(
    frame: Any,
    outcome: str,
    protected: str | Sequence[str],
    *,
    favourable: object = None,
    groups: GroupsOption = "each",
    weight: str | None = None,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Inspection:
    """Look at a table; the options are those of :func:`fairmaxent.debias`.

    Proxies are measured by mutual information I(column; protected) / H(protected). From both, the average for
    independent columns is subtracted: (r − 1)(c − 1) / 2N nats for r and c levels in N rows.
    """
    names = read_columns("protected", protected)
    check_roles(outcome, names, weight)
    opened = frames.open_frame(frame)
    raw = read_weights(opened, weight)
    design = None if raw is None else in_range(raw)
    domain, codes = read_domain(opened, domain, weight=weight, weights=design)
    roles = Roles.of(domain, outcome, names)
    compared = [[roles.names[axis] for axis in axes] for axes in roles.groupings(groups)]
    identifiers = set(domain.identifiers) - set(roles.names)

    def rates(columns: list[str]) -> GroupingRates:
        """Both rates of one grouping: of one column, or of the intersections of several."""
        return GroupingRates(
            " × ".join(columns),
            representation_rate(frame, columns, groups="joint", weight=weight, domain=domain, confidence=confidence),
            statistical_rate(
                frame,
                outcome,
                columns,
                favourable=favourable,
                groups="joint",
                weight=weight,
                domain=domain,
                confidence=confidence,
            ),
        )

    return Inspection(
        rows=len(opened),
        outcome=outcome,
        protected=tuple(names),
        columns=tuple(
            _summary(attribute, codes[:, index], identifier=attribute.name in identifiers)
            for index, attribute in enumerate(domain.attributes)
        ),
        notes=domain.notes,
        groupings=tuple(map(rates, compared)),
        proxies=tuple(sorted(_proxies(roles, codes, design), key=lambda proxy: -proxy.strength)),
        empty_cells=tuple(_empty_cells(roles, codes)),
        cost=_cost(roles, codes),
    )


# ---------------------------------------------------------------- columns


def _summary(attribute: Attribute, codes: NDArray[np.integer], *, identifier: bool) -> ColumnSummary:
    missing = 0 if attribute.missing is None else int(np.count_nonzero(codes == attribute.missing))
    values = len(attribute.counts) - (attribute.missing is not None)
    return ColumnSummary(
        name=attribute.name,
        kind=attribute.kind,
        levels=attribute.size,
        values=values,
        missing=missing,
        shown=() if identifier else attribute.labels,
        identifier=identifier,
    )


def _empty_cells(roles: Roles, codes: Codes) -> Iterator[str]:
    """Combinations of outcome and protected levels that have no row."""
    table = tally(roles.blocks.pool(codes)[:, 0], None, roles.blocks.levels[0])
    for cell in np.argwhere(table.reshape(roles.blocks.shape(0)) == 0):
        yield roles.describe_cell([int(level) for level in cell])


# ---------------------------------------------------------------- proxies


def _proxies(roles: Roles, codes: Codes, design: Reals | None) -> Iterator[Proxy]:
    """Every column but the outcome against every protected one."""
    sizes, names = roles.domain.sizes, roles.domain.names
    for group in roles.protected:
        for other in range(len(names)):
            if other not in (group, roles.outcome):
                table = tally(codes[:, group].astype(np.intp) * sizes[other] + codes[:, other], design, 0)
                table = np.append(table, np.zeros(sizes[group] * sizes[other] - len(table)))
                rows = len(codes) if design is None else float(effective_rows(design.sum(), (design**2).sum()))
                strength = predicted_share(table.reshape(sizes[group], sizes[other]), rows)
                yield Proxy(names[other], names[group], strength)


def predicted_share(table: Reals, rows: float) -> float:
    """Share of the entropy of a table's rows that its columns predict, less what chance alone would predict.

    >>> predicted_share(np.array([[50.0, 0.0], [0.0, 50.0]]), 100)
    1.0
    >>> predicted_share(np.array([[25.0, 25.0], [25.0, 25.0]]), 100)
    0.0
    """
    joint = table / table.sum()
    first, second = joint.sum(axis=1), joint.sum(axis=0)
    total = entropy(first)
    chance = (np.count_nonzero(first) - 1) * (np.count_nonzero(second) - 1) / (2 * rows)
    if total <= chance:
        return 0.0
    predicted = total + entropy(second) - entropy(joint.ravel())
    return float(np.clip((predicted - chance) / (total - chance), 0.0, 1.0))


# ---------------------------------------------------------------- cost, and plain records


def _cost(roles: Roles, codes: Codes) -> Cost:
    distinct = len(compress(roles, codes).codes)
    blocks = roles.blocks
    features = sum(blocks.levels)
    cells, pairs = codes.shape[0] * codes.shape[1], features**2
    return Cost(
        distinct_rows=distinct,
        features=features,
        cells=blocks.levels[0],
        domain_size=roles.domain.size,
        seconds=cells * _CELL_SECONDS + pairs * _PAIR_SECONDS,
        megabytes=(cells * _CELL_BYTES + pairs * _PAIR_BYTES) / 1e6,
    )


def _rate_record(rate: Rate) -> dict[str, Any]:
    return {
        "value": rate.value,
        "interval": rate.interval,
        "worst": vars(rate.worst),
        "groups": [vars(group) for group in rate.groups],
    }
