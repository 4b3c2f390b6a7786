"""A look at a table: what it holds, whether it is fair, and what is proposed."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.reading import encode_table
from fairmaxent.data.roles import (
    ColumnNames,
    GroupsOption,
    Roles,
    check_roles,
    listed,
    read_columns,
)
from fairmaxent.data.table import Codes, tally
from fairmaxent.fairness.small_groups import SmallestGroupOption
from fairmaxent.inspection.cost import cost
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates, Inspection
from fairmaxent.inspection.hints import column_hints, proxies, role_hints
from fairmaxent.inspection.proposals import (
    Proposal,
    Role,
    propose_favourable,
    propose_outcome,
    propose_protected,
)
from fairmaxent.inspection.verdict import judge
from fairmaxent.metrics.definitions import representation_rate, statistical_rate
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.groups import Comparison, ReferenceOption, levels_of_reference


def inspect(
    frame: Any,
    outcome: str | None = None,
    protected: ColumnNames | None = None,
    *,
    favourable: object = None,
    groups: GroupsOption = "each",
    weight: str | None = None,
    domain: Domain | None = None,
    smallest_group: SmallestGroupOption = None,
    reference: ReferenceOption = None,
    confidence: float = 0.95,
) -> Inspection:
    """Look at a table: columns, groups, rates, proxies, and what to watch out for.

    Changes nothing. The options are those of :func:`fairmaxent.debias`. What is not
    given is proposed, with the reason: the outcome, the protected columns, and which
    outcome is the good one. If nothing stands out, nothing is proposed, and there are
    no rates. `smallest_group` is as in :func:`fairmaxent.check`; with a `reference`,
    groups are compared with that one instead of the largest.

    Proxies are measured by mutual information I(column; protected) / H(protected). From
    both, the average for independent columns is subtracted: (r − 1)(c − 1) / 2N nats
    for r and c levels in N rows.

    >>> import polars
    >>> hired = ["no", "yes", "yes", "no", "yes"] * 20
    >>> table = polars.DataFrame({"sex": ["f", "m"] * 50, "hired": hired})
    >>> look = inspect(table)
    >>> look.outcome, look.favourable, look.protected
    ('hired', ('yes',), ('sex',))
    """
    given = [] if protected is None else read_columns("protected", protected)
    check_roles("" if outcome is None else outcome, given, weight)
    opened = frames.open_frame(frame)
    design = frames.read_weights(opened, weight)
    if design is not None:
        design = frames.in_range(design)
    encoded = encode_table(opened, domain, weight=weight, weights=design)
    domain = encoded.domain
    codes = encoded.codes
    proposals: list[Proposal] = []
    if outcome is None:
        proposals += propose_outcome(domain, given)
    outcome = outcome or next(map(str, _chosen(proposals, "outcome")), None)
    good = favourable
    if outcome is not None and favourable is None:
        proposals += propose_favourable(domain.attribute(outcome))
        good = [*_chosen(proposals, "favourable")] or None
    if not given:
        proposals += propose_protected(domain, outcome, len(opened))
    names = [*given] or [*map(str, _chosen(proposals, "protected"))]

    taken = [outcome, *names] if outcome is not None else names
    identifiers = set(domain.identifiers) - set(taken)
    found = Inspection(
        rows=len(opened),
        outcome=outcome,
        favourable=() if good is None else tuple(listed(good)),
        protected=tuple(names),
        columns=tuple(_summaries(domain, codes, identifiers)),
        notes=domain.without(identifiers).notes,
        proposals=tuple(proposals),
        hints=tuple(column_hints(opened, domain, taken, weight)),
    )
    if outcome is None or not names:
        return found

    roles = Roles.of(domain, outcome, names)
    how: Any = {"weight": weight, "domain": domain, "smallest_group": smallest_group}
    how["reference"] = levels_of_reference(reference, names)
    groupings = _groupings(frame, roles, roles.groupings(groups), good, how, confidence)
    return replace(
        found,
        hints=(*found.hints, *role_hints(roles, codes, design)),
        groupings=tuple(groupings),
        proxies=tuple(proxies(roles, codes, design)),
        empty_cells=tuple(_empty_cells(roles, codes)),
        cost=cost(roles, codes),
    )


def _chosen(proposals: Sequence[Proposal], role: Role) -> Iterator[object]:
    return (
        proposal.value
        for proposal in proposals
        if proposal.role == role and proposal.confidence != "candidate"
    )


def _summaries(
    domain: Domain, codes: Codes, identifiers: Collection[str]
) -> Iterator[ColumnSummary]:
    for attribute, column in zip(domain.attributes, codes.T, strict=True):
        has_gaps = attribute.missing is not None
        missing = 0
        if has_gaps:
            missing = int(np.count_nonzero(column == attribute.missing))
        is_identifier = attribute.name in identifiers
        yield ColumnSummary(
            name=attribute.name,
            kind=attribute.kind,
            levels=attribute.size,
            values=len(attribute.counts) - has_gaps,
            missing=missing,
            shown=() if is_identifier else attribute.labels,
            identifier=is_identifier,
        )


def _groupings(
    frame: Any,
    roles: Roles,
    compared: Sequence[tuple[int, ...]],
    favourable: object,
    how: dict[str, Any],
    confidence: float,
) -> Iterator[GroupingRates]:
    """Both rates of the groups of some columns, and what they say, by grouping."""
    outcome = roles.names[0]
    levels = how["reference"]
    about: Any = {"outcome": outcome, "favourable": favourable}
    for axes in compared:
        columns = [roles.names[axis] for axis in axes]
        own = {name: levels[name] for name in columns if name in levels}
        how = how | {"groups": "joint", "protected": columns, "reference": own}
        shares = representation_rate(frame, confidence=confidence, **how)
        rates = statistical_rate(frame, confidence=confidence, **how, **about)
        (rows,) = Comparison(missing="ignore", **how, **about).grouped(frame)
        table = GroupedTable.of_outcomes(rows, favourable)
        yield GroupingRates(
            name=" × ".join(columns),
            representation=shares,
            statistical=rates,
            verdict=judge(table, shares, outcome, confidence),
        )


def _empty_cells(roles: Roles, codes: Codes) -> Iterator[str]:
    """Combinations of outcome and protected levels that have no row."""
    table = tally(roles.blocks.pool(codes)[:, 0], None, roles.blocks.levels[0])
    for cell in np.argwhere(table.reshape(roles.blocks.shape(0)) == 0):
        yield roles.describe_cell(cell.tolist())
