"""A look at a table before anything is done to it: columns, groups, rates, proxies, and what a fit would cost."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption, Roles, check_roles, read_columns
from fairmaxent.data.table import Codes, tally
from fairmaxent.engines.rows import read_domain
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates, Inspection, cost
from fairmaxent.inspection.hints import column_hints, proxies, role_hints
from fairmaxent.inspection.proposals import Proposal, Role, propose_favourable, propose_outcome, propose_protected
from fairmaxent.inspection.verdict import judge
from fairmaxent.metrics.definitions import representation_rate, statistical_rate
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.groups import Comparison


def inspect(
    frame: Any,
    outcome: str | None = None,
    protected: str | Sequence[str] | None = None,
    *,
    favourable: object = None,
    groups: GroupsOption = "each",
    weight: str | None = None,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Inspection:
    """Look at a table: its columns, groups, rates and proxies, and what to watch out for. Changes nothing.

    The options are those of :func:`fairmaxent.debias`. What is not given is proposed, with the reason: the outcome, the
    protected columns, and which outcome is the good one. If nothing stands out, nothing is proposed, and there are no
    rates.

    Proxies are measured by mutual information I(column; protected) / H(protected). From both, the average for
    independent columns is subtracted: (r − 1)(c − 1) / 2N nats for r and c levels in N rows.

    >>> import polars
    >>> table = polars.DataFrame({"sex": ["f", "m"] * 50, "hired": ["no", "yes", "yes", "no", "yes"] * 20})
    >>> look = inspect(table)
    >>> look.outcome, look.favourable, look.protected
    ('hired', ('yes',), ('sex',))
    """
    given = [] if protected is None else read_columns("protected", protected)
    check_roles(outcome if outcome is not None else "", given, weight)
    opened = frames.open_frame(frame)
    raw = frames.read_weights(opened, weight)
    design = None if raw is None else frames.in_range(raw)
    domain, encoded, _ = read_domain(opened, domain, weight=weight, weights=design)
    codes = encoded.codes
    outcomes = () if outcome is not None else propose_outcome(domain, given)
    outcome = outcome or next((str(value) for value in _chosen(outcomes, "outcome")), None)
    likely = () if outcome is None or favourable is not None else propose_favourable(domain.attribute(outcome))
    proposals = (*outcomes, *likely, *(() if given else propose_protected(domain, outcome, len(opened))))
    names = given or [str(value) for value in _chosen(proposals, "protected")]
    good = favourable if favourable is not None else [*_chosen(proposals, "favourable")] or None
    roles = Roles.of(domain, outcome, names) if outcome is not None and names else None
    taken = [*([outcome] if outcome is not None else []), *names]
    identifiers = set(domain.identifiers) - set(taken)
    hints = [*column_hints(opened, domain, taken, weight), *(role_hints(roles, codes, design) if roles else ())]

    groupings = []
    for axes in () if roles is None else roles.groupings(groups):
        columns = [roles.names[axis] for axis in axes] if roles else []
        how: Any = {"groups": "joint", "weight": weight, "domain": domain, "confidence": confidence}
        shares = representation_rate(frame, columns, **how)
        rates = statistical_rate(frame, outcome, columns, favourable=good, **how)
        compared = Comparison(columns, "joint", weight, "ignore", domain, outcome=outcome, favourable=good)
        (rows,) = compared.grouped(frame)
        verdict = judge(GroupedTable.of_outcomes(rows, good), shares, str(outcome), confidence)
        groupings.append(GroupingRates(" × ".join(columns), shares, rates, verdict))
    summaries = []
    for attribute, column in zip(domain.attributes, codes.T, strict=True):
        missing = 0 if attribute.missing is None else int(np.count_nonzero(column == attribute.missing))
        sizes = attribute.size, len(attribute.counts) - (attribute.missing is not None), missing
        shown = () if attribute.name in identifiers else attribute.labels
        summaries.append(ColumnSummary(attribute.name, attribute.kind, *sizes, shown, attribute.name in identifiers))
    return Inspection(
        rows=len(opened),
        outcome=outcome,
        favourable=() if good is None else tuple(good) if isinstance(good, list | tuple | set | frozenset) else (good,),
        protected=tuple(names),
        columns=tuple(summaries),
        notes=domain.without(identifiers).notes,
        proposals=proposals,
        hints=tuple(hints),
        groupings=tuple(groupings),
        proxies=tuple(proxies(roles, codes, design)) if roles else (),
        empty_cells=tuple(_empty_cells(roles, codes)) if roles else (),
        cost=cost(roles, codes) if roles else None,
        library=domain.library,
    )


def _chosen(proposals: Sequence[Proposal], role: Role) -> Iterator[object]:
    return (proposal.value for proposal in proposals if proposal.role == role and proposal.confidence != "candidate")


def _empty_cells(roles: Roles, codes: Codes) -> Iterator[str]:
    """Combinations of outcome and protected levels that have no row."""
    table = tally(roles.blocks.pool(codes)[:, 0], None, roles.blocks.levels[0])
    for cell in np.argwhere(table.reshape(roles.blocks.shape(0)) == 0):
        yield roles.describe_cell([int(level) for level in cell])
