"""A look at a table: what it holds, whether it is fair, and what is proposed."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import distinct_values
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain, EncodedTable
from fairmaxent.data.likely import Likely
from fairmaxent.data.reading import encode_table
from fairmaxent.data.roles import (
    Protected,
    Roles,
    check_roles,
    listed,
    read_protected,
    read_within,
)
from fairmaxent.data.table import Codes, NameList, Reals, tally
from fairmaxent.fairness.compare import Compare, Compared
from fairmaxent.fit.pipeline import likely_rates
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates, Inspection
from fairmaxent.inspection.hints import column_hints, proxies, role_hints
from fairmaxent.inspection.proposals import (
    Proposal,
    Role,
    propose_favourable,
    propose_outcome,
    propose_protected,
)
from fairmaxent.inspection.verdict import Verdict, clarity, judge
from fairmaxent.metrics.group_rates import GroupedTable, worst_rate
from fairmaxent.metrics.groups import Comparison
from fairmaxent.options import adding_options_of
from fairmaxent.options.refusals import MISSING, Refused, refuse_pairs
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.model import Worth
from fairmaxent.privacy.refusals import check_private, checked_declaration

_REFUSED = (
    Refused(
        "cluster",
        "within",
        "the ratio over all strata together assumes that people are independent",
    ),
    Refused("weight", "privacy", "a private fit has no design weights"),
    *(
        Refused("privacy", role, "a private fit proposes nothing", beside=MISSING)
        for role in ("outcome", "protected")
    ),
    Refused("privacy", "likely", "a private fit has no groups that are only likely"),
    *Compare.REFUSED,
    Refused("reference", "likely", "its lowest rate is compared with its highest"),
)


@adding_options_of(Compare, without=("compare_missing",))
def inspect(
    frame: Any,
    outcome: str | None = None,
    protected: Protected | None = None,
    *,
    favourable: object = None,
    confidence: float = 0.95,
    privacy: Privacy | None = None,
    **compared: Unpack[Compared],
) -> Inspection:
    """Look at a table: columns, groups, rates, proxies, and what to watch out for.

    Changes nothing. The options are those of :func:`fairmaxent.debias`. What is not
    given is proposed, with the reason: the outcome, the protected columns, and which
    outcome is the good one. If nothing stands out, nothing is proposed, and there are
    no rates. Groups are compared with the largest, unless a `reference` is named.

    With `within`, the answer is the ratio over all strata together (Mantel and
    Haenszel). However many columns and groups are compared, in a fair table something
    is called unlikely to be chance with probability 1 − `confidence` at most (Holm
    1979).

    With `privacy`, a declared `domain` and both roles, it says how far off a private
    fit would be. This is known from what is declared and the number of rows, and spends
    nothing.

    Of groups that are probabilities (:class:`fairmaxent.Likely`), it says what rates
    are expected, whether the data contradict what is assumed, and bounds.

    Proxies are measured by mutual information I(column; protected) / H(protected). From
    both, the average for independent columns is subtracted: (r − 1)(c − 1) / 2N nats
    for r and c levels in N rows.

    >>> import polars
    >>> hired = ["no", "yes", "yes", "no", "yes"] * 20
    >>> table = polars.DataFrame({"sex": ["f", "m"] * 50, "hired": hired})
    >>> look = inspect(table)
    >>> look.outcome, look.favourable, look.protected
    ('hired', ('yes',), ('sex',))

    Parameters
    ----------
    """
    given, likely = read_protected(protected or (), compared.get("likely"))
    _check_foreseen(privacy, compared.get("domain"))
    asked = {"outcome": outcome, "protected": protected, "privacy": privacy}
    refuse_pairs(_REFUSED, {**compared, **asked, "likely": likely})
    compare = Compare(given, favourable=favourable, **compared)
    check_roles("" if outcome is None else outcome, given, compare.weight)
    opened, domain, given, likely = _with_known(frame, compare.domain, given, likely)
    own = [] if likely is None else [likely.name, *likely.used]
    strata = tuple(read_within(compare.within))
    others = own + _existing(opened, [*strata, compare.cluster])
    design = _design(opened, compare.weight)
    encoded = encode_table(opened, domain, weight=compare.weight, weights=design)
    declared = None if domain is None else opened
    domain = encoded.domain
    known = (outcome, favourable, given or own, others)
    proposals = _proposals(domain, len(opened), *known)
    outcome = outcome or next(map(str, _chosen(proposals, "outcome")), None)
    good = _favourable(favourable, proposals)
    names = given or [*map(str, _chosen(proposals, "protected"))]
    taken = [name for name in (outcome, *names) if name is not None]
    identifiers = {*domain.identifiers} - {*taken}
    found = Inspection(
        rows=len(opened),
        outcome=outcome,
        favourable=() if good is None else tuple(listed(good)),
        protected=tuple(names),
        columns=tuple(_summaries(encoded, identifiers, declared)),
        notes=domain.without(identifiers).notes,
        proposals=tuple(proposals),
        hints=tuple(column_hints(opened, domain, [*taken, *own], compare.weight)),
        within=strata,
        cluster=compare.cluster,
    )
    if outcome is None or not (names or likely):
        return found
    compare = replace(
        compare, protected=names, likely=likely, favourable=good, domain=domain
    )
    if likely:
        found = replace(found, likely=likely_rates(opened, outcome, compare))
    if not names:
        return found
    roles = Roles.of(domain, outcome, names)
    comparison = Comparison(replace(compare, likely=None), outcome)
    found = replace(found, groupings=_groupings(opened, comparison, confidence))
    worth = _worth(roles, strata, privacy, found.rows, confidence)
    return _with_roles(replace(found, private=worth), roles, encoded.codes, design)


def _with_known(
    frame: Any,
    domain: Domain | Declaration | None,
    given: list[str],
    likely: Likely | None,
) -> tuple[frames.Frame, Domain | Declaration | None, list[str], Likely | None]:
    """The table, its domain and what is protected; groups that are certain a column."""
    opened = frames.open_frame(frame)
    if likely is None or not likely.are_known(likely.read(opened).shares):
        return opened, domain, given, likely
    known = opened.with_columns(likely.known).drop(likely.columns.values())
    others = domain and domain.without(likely.columns.values())
    return known, likely.described(others, known), [*given, likely.name], None


def _existing(frame: frames.Frame, names: Sequence[str | None]) -> list[str]:
    """Those that are named, or the error that says which columns there are."""
    named = [name for name in names if name is not None]
    for name in named:
        frames.column(frame, name)
    return named


def _with_roles(
    found: Inspection, roles: Roles, codes: Codes, design: Reals | None
) -> Inspection:
    """The same with what there is to say about these roles."""
    return replace(
        found,
        hints=(*found.hints, *role_hints(roles, codes, design)),
        proxies=tuple(proxies(roles, codes, design)),
        empty_cells=tuple(_empty_cells(roles, codes)),
    )


def _check_foreseen(privacy: Privacy | None, domain: object) -> None:
    """Refuse what is no promise, and a domain that no private fit can have."""
    if privacy is not None:
        check_private(privacy, release=False)
        checked_declaration(domain)


def _worth(
    roles: Roles,
    strata: Sequence[str],
    privacy: Privacy | None,
    rows: int,
    confidence: float,
) -> Worth | None:
    if privacy is None:
        return None
    measured = replace(roles, strata=tuple(map(roles.domain.index, strata)))
    return Worth.of(measured, privacy, rows, confidence)


def _proposals(
    domain: Domain,
    rows: int,
    outcome: str | None,
    favourable: object,
    given: NameList,
    others: NameList,
) -> list[Proposal]:
    """Propose what is not given; the ``others`` have another role."""
    proposals: list[Proposal] = []
    if outcome is None:
        proposals += propose_outcome(domain, [*given, *others])
        outcome = next(map(str, _chosen(proposals, "outcome")), None)
    if outcome is not None and favourable is None:
        proposals += propose_favourable(domain.attribute(outcome))
    if not given:
        proposals += propose_protected(domain, outcome, rows, others)
    return proposals


def _design(frame: frames.Frame, weight: str | None) -> Reals | None:
    """The weights of rows; None: they count the same."""
    design = frames.read_weights(frame, weight)
    if design is None:
        return None
    return frames.in_range(design)


def _chosen(proposals: Sequence[Proposal], role: Role) -> Iterator[object]:
    return (
        proposal.value
        for proposal in proposals
        if proposal.role == role and proposal.confidence != "candidate"
    )


def _favourable(named: object, proposals: Sequence[Proposal]) -> object:
    """The favourable outcome: what is named, or else what is proposed, if anything."""
    if named is None:
        return [*_chosen(proposals, "favourable")] or None
    return named


def _summaries(
    encoded: EncodedTable, identifiers: Collection[str], declared: frames.Frame | None
) -> Iterator[ColumnSummary]:
    pairs = zip(encoded.domain.attributes, encoded.codes.T, strict=True)
    for attribute, column in pairs:
        values = attribute.present
        if declared is not None:
            found = distinct_values(declared.get_column(attribute.name))
            values = len(found.values)
        missing = int(np.count_nonzero(column == attribute.missing))  # None: no code
        is_identifier = attribute.name in identifiers
        yield ColumnSummary(
            name=attribute.name,
            kind=attribute.kind,
            levels=attribute.size,
            values=values,
            missing=missing,
            shown=() if is_identifier else attribute.labels,
            identifier=is_identifier,
        )


def _groupings(
    frame: Any, comparison: Comparison, confidence: float
) -> tuple[GroupingRates, ...]:
    """The rates of each grouping, and verdicts that hold together."""
    compare = comparison.compare
    favourable = compare.favourable
    measured = []
    judges: list[Callable[[float], Verdict]] = []
    everybody = Comparison(replace(compare, within=None)).share_tables(frame)
    for rows, sizes in zip(comparison.grouped(frame), everybody, strict=True):
        rows.refuse_absent(favourable)
        table = GroupedTable.of_outcomes(rows, favourable)
        shares = worst_rate([sizes], confidence)
        tables: list[GroupedTable] = []
        if compare.within is not None:
            parts = rows.parts()
            tables = [GroupedTable.of_outcomes(one, favourable) for one in parts]
        strata = [worst_rate([one], confidence) for one in tables if one.compared > 1]
        found = partial(
            GroupingRates,
            name=" × ".join(rows.columns),
            representation=shares,
            statistical=worst_rate([table], confidence),
            strata=tuple(sorted(strata, key=clarity)),
        )
        measured.append(found)
        judges.append(partial(judge, table, shares, comparison.outcome, strata=tables))
    verdicts = judged_together(judges, confidence)
    return tuple(
        rates(verdict=verdict)
        for rates, verdict in zip(measured, verdicts, strict=True)
    )


def judged_together(
    judges: Sequence[Callable[[float], Verdict]], confidence: float
) -> list[Verdict]:
    """Judge several columns so that all that is said holds together (Holm 1979).

    Each of m columns is judged with the confidence 1 − α / m. Then those with a clear
    gap are settled, and the others are judged as if they were all that there are, until
    none is settled any more. Each interval has the confidence that its column was
    judged with, so it agrees with what is said about chance.
    """
    verdicts: dict[int, Verdict] = {}
    left = list(range(len(judges)))
    while left:
        sure = 1 - (1 - confidence) / len(left)
        verdicts |= {number: judges[number](sure) for number in left}
        unclear = [
            number
            for number in left
            if verdicts[number].gap is not None and verdicts[number].most == 1
        ]
        if len(unclear) == len(left):
            break
        left = unclear
    return [verdicts[number] for number in range(len(judges))]


def _empty_cells(roles: Roles, codes: Codes) -> Iterator[str]:
    """Combinations of outcome and protected levels that have no row."""
    table = tally(roles.blocks.pool(codes)[:, 0], None, roles.blocks.levels[0])
    for cell in np.argwhere(table.reshape(roles.blocks.shape(0)) == 0):
        yield roles.describe_cell(cell.tolist())
