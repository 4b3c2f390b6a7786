"""What Look and See show, as plain values: an inspection, and a fit in people.

What moves with a slider comes from a fit of the cells of outcome and groups alone,
which knows all but copies of rows.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fairmaxent.app.page_options import KEPT, as_labelled, page_options
from fairmaxent.app.scenario import COLUMN_NAMES, ROLE_NAMES, OpenedTable
from fairmaxent.cli.inspect import inspected, one_name
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.request import RoleOptions
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.reading import Reading
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table, highest
from fairmaxent.document.words import percent
from fairmaxent.errors import FairMaxEntError, cut, spelled
from fairmaxent.facts.costs import ChangedOutcome, GroupCost
from fairmaxent.facts.groups import GroupChange
from fairmaxent.fairness.rates import group_table
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.pipeline import fit_rows
from fairmaxent.fit.request import Request
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates, Inspection
from fairmaxent.inspection.hints import NOTABLE
from fairmaxent.inspection.proposals import people_words
from fairmaxent.metrics.rates import group_text
from fairmaxent.options.values import TEXTS
from fairmaxent.plain_text import Values, plain_json, visible
from fairmaxent.progress import Progress, silent
from fairmaxent.telling.case import Case
from fairmaxent.telling.entries import as_values
from fairmaxent.telling.models import expected_lines

_LEVELS = 40  # of a column, shown
_PROXIES = 12
# A column that looks like an identifier, by whether it is kept.
_IDENTIFIER = {
    False: (
        "{!r} looks like an identifier, so it is left out of new rows. To keep it,"
        " press “Keep” in its row of the list of all columns below."
    ),
    True: (
        "{!r} looks like an identifier, and is kept as you asked. In new rows, its"
        " values can be repeated, and can stand in the rows of people they do not"
        " belong to. If each must stay with its person, take “your rows with weights”."
    ),
}
_SHOWN = (
    "column",
    "group",
    "outcome",
    "name",
    "about",
    "share_before",
    "share_after",
    "rate_before",
    "rate_after",
    "is_apart",
)
# What is said about a group, and what the people of a table of the same size are called
# who it is about.
_PEOPLE = {
    "share_before": "people_before",
    "share_after": "people_after",
    "having_before": "with_before",
    "having_after": "with_after",
}
_ROWS = 160  # of a table, before the rest is counted
_LEAST = 5  # percent, where a curve begins at least
_STEPS = 45  # of a curve
_SKETCHED = 8  # each of these is a point of its sketch
# summed once, while rates move
_cells: WeakKeyDictionary[Reading, Reading] = WeakKeyDictionary()
# The newest fits of the cells: a hand that rests on a curve asks for one of its points.
_KEPT = 100
_quick: WeakKeyDictionary[Reading, deque[tuple[Request, Certified]]] = (
    WeakKeyDictionary()
)


def look_at(opened: OpenedTable, asked: Values) -> Values:
    """Columns, proposals, groups with rates, proxies, and what to watch out for.

    ``asked`` are the roles, and the ways to read columns, that the page chose.
    """
    frame, roles, domain = looked_at(opened, asked)
    inspection = inspected(frame, roles, domain)
    kept = asked.get(KEPT) or ()
    notes = [*opened.file().notes_spelled(as_labelled), *inspection.notes]
    for hint in inspection.hints:
        if hint.kind == "identifier":
            notes += [_IDENTIFIER[name in kept].format(name) for name in hint.columns]
        else:
            notes.append(spelled(hint.parts, as_labelled))
    if len(frame) < opened.rows:
        notes.insert(
            0,
            f"The rates here are those of {inspection.rows:,} of the {opened.rows:,}"
            " rows; See uses all.",
        )
    outcome = inspection.outcome
    protected = inspection.protected
    if asked:  # then what nobody chose is not taken for granted
        outcome = roles.outcome or None
        protected = roles.protected
    return plain_json(
        {
            "rows": opened.rows,
            "outcome": outcome,
            "protected": protected,
            "favourable": [value_text(level) for level in inspection.favourable],
            "columns": [_column(column, domain) for column in inspection.columns],
            "verdicts": [visible(str(verdict)) for verdict in inspection.verdicts],
            "reasons": [
                vars(one) | {"value": value_text(one.value)}
                for one in inspection.proposals
            ],
            "groupings": [*map(_grouping, inspection.groupings)],
            "proxies": [
                vars(proxy) for proxy in inspection.proxies if proxy.strength >= NOTABLE
            ][:_PROXIES],
            "notes": [visible(note) for note in notes],
            "alike": one_name(inspection),
            "likely": _offered(inspection),
        }
    )


def _offered(inspection: Inspection) -> list[Values]:
    """Columns that look like probabilities of groups, and what asks for these."""
    offered = []
    for hint in inspection.hints:
        if hint.kind == "probabilities":
            text = TEXTS["names"].texts(hint.option.value)[0]
            offered.append({"columns": hint.columns, "asked": text})
    return offered


def looked_at(opened: OpenedTable, asked: Values) -> tuple[Any, RoleOptions, Domain]:
    """The rows that Look shows, the roles of the columns, and their levels."""
    names = (*ROLE_NAMES, *COLUMN_NAMES, "drop")
    given = {name: value for name, value in asked.items() if name in names}
    options = page_options(given, names=names)
    roles = options.record(RoleOptions).checked(opened.file(options.drop), opened.typed)
    levels = opened.levels(options.drop, options.record(DomainOptions), roles.weight)
    return opened.looked_at.drop(list(options.drop)), roles, levels


def _column(column: ColumnSummary, domain: Domain) -> Values:
    """A column; if its levels are few, with their shares and those to choose from."""
    attribute = domain.attribute(column.name)
    levels = ", ".join(map(cut, column.shown[:_LEVELS]))
    more = len(column.shown) - _LEVELS
    if more > 0:
        levels += f", and {more} more"
    choices = column.shown
    if column.missing:  # which stands last, and is no choice
        choices = choices[:-1]
    if len(choices) > _LEVELS:
        choices = ()
    counts = attribute.level_counts()
    shares: list[tuple[str, float]] = []
    if choices and counts.sum():
        of_all = (counts / counts.sum()).tolist()
        shares = list(zip(attribute.labels, of_all, strict=True))
    about = vars(column) | {
        "shown": (),
        "levels": levels,
        "choices": choices,
        "shares": shares,
    }
    if attribute.kind == "numeric" and attribute.edges is not None:
        ends = attribute.values[0], attribute.values[attribute.present - 1]
        middle = attribute.edges[len(attribute.edges) // 2]
        about["range"] = [*map(float, ends)]
        about["middle"] = float(f"{middle:.2g}")  # a round one
    return about


def _grouping(grouping: GroupingRates) -> Values:
    """The groups of a column, or intersections of all, with sizes and rates."""
    groups = []
    for group, size in grouping.groups:
        about = {
            "group": group_text(group.group),
            "outcome": value_text(group.outcome),
            "rows": size.count,
            "share": size.rate,
        }
        groups.append(vars(group) | about)
    return {"name": grouping.name, "groups": groups}


def seen(fit: Certified, *, is_whole: bool = True) -> Values:
    """Numbers to draw, and all there is to say; copies of a whole fit only."""
    certificate = fit.certificate
    case = fit.case(spell=as_labelled, rest="; the saved fit has them all")
    words = _words(fit)
    decisions = certificate.decisions
    model = None
    decided = {}
    if decisions is not None:
        model = {
            "student": decisions.student,
            "is_opportunity": decisions.parity == "opportunity",
            "rates": {rate.grouping: rate.rate for rate in decisions.rates},
        }
        decided = {(one.group, one.outcome): one.share for one in decisions.shares}
    return {
        "rows": fit.table.size,
        "worth": fit.problem.counted.worth,  # effective rows of the data as they are
        "rates": [
            _rate(certificate, kind, name) for kind, name in certificate.rates_shown
        ],
        "groups": [
            {
                **_people(change, fit.table.size),
                "called": words.get(change.name),
                "decided": decided.get((change.name, change.about)),
            }
            for change in case.groups
        ],
        "model": model,  # that the table is made for, and what it would decide
        "means": certificate.means,
        "effective_rows": certificate.effective_rows,
        "is_whole": is_whole,
        **_costs(fit),
        # the groups are drawn
        "told": _told(replace(case, groups=(), rows=_ROWS)),
        "chosen": [*_chosen_shares(fit)],
        "estimate": _estimate(fit),
    }


def _told(case: Case) -> list[Values]:
    """What there is to say, in reading order; how it was computed is in the report."""
    return [
        {"key": key, **said}
        for key, said in as_values(case).items()
        if said["weight"] != "method"
    ]


def _chosen_shares(fit: Certified) -> Iterator[str]:
    """Shares that were asked for, of columns that are neither outcome nor groups."""
    chosen = (fit.request.target or {}).keys() - set(fit.roles.names)
    data = fit.distribution_of_data
    for place, attribute in enumerate(fit.domain.attributes):
        if attribute.name not in chosen:
            continue
        shares = zip(
            attribute.labels,
            data.joint([place]).tolist(),
            fit.distribution.joint([place]).tolist(),
            strict=True,
        )
        moves = [
            f"{level} from {percent(before)} to {percent(after)}"
            for level, before, after in shares
        ]
        yield f"Shares of {attribute.name}: {', '.join(moves)}."


def _rate(certificate: Certificate, kind: str, name: str) -> Values:
    measure = certificate.measure
    return {
        "kind": kind,
        "name": measure.about(kind, name),
        "grouping": name,
        "columns": measure.columns_of(name),
        "wanted": certificate.wanted[kind][name],
        "before": certificate.before[kind][name],
        "after": certificate.achieved[kind][name],
    }


def _words(fit: Certified) -> dict[str, str]:
    """What people of some groups are called, e.g. women, by the names of the groups."""
    return {
        attribute.describe(attribute.labels.index(level)): word
        for attribute in fit.roles.attributes
        for level, word in people_words(attribute.labels[: attribute.missing]).items()
    }


def _people(change: GroupChange, size: int) -> Values:
    """A group, in rates, and in people of a table of this size."""
    shown = {name: getattr(change, name) for name in _SHOWN}
    for share, people in _PEOPLE.items():
        shown[people] = size * getattr(change, share)
    return shown


def _costs(fit: Certified) -> Values:
    """How often the heaviest row counts, and how many people get another outcome."""
    groups: Sequence[GroupCost] = ()
    changed: Sequence[ChangedOutcome] = ()
    if fit.certificate.costs is not None:
        groups = fit.certificate.costs.groups
        changed = fit.certificate.costs.changed
    heaviest = max((group.most_weight for group in groups), default=None)
    if fit.weighed is not None:  # each of its groups has only a part of a person
        heaviest = float(fit.weighed.weights.max())
    return {
        "heaviest": heaviest,
        # Every grouping counts all people who get another outcome.
        "changed_people": sum(
            one.changed for one in changed if one.grouping == changed[0].grouping
        ),
    }


def _estimate(fit: Certified) -> Values | None:
    estimate = fit.certificate.estimate
    if estimate is None:
        return None
    measure = fit.certificate.measure
    outcomes = group_table(measure.with_outcome(fit.problem.data_table, ()), ())
    same_for_all = float(outcomes.max() / outcomes.sum())
    said = ""
    if estimate.after.accuracy < same_for_all:
        said = (
            f"The same answer for all people would be right for {percent(same_for_all)}"
            f" of them, this model for {percent(estimate.after.accuracy)}."
        )
    return {
        "student": estimate.student,
        "output": estimate.output,
        "people": estimate.measured_on,
        "lines": [*expected_lines(estimate)],
        "said": said,
    }


def cells_of(data: Reading) -> Reading:
    """The same people by outcome, groups and strata alone, one row for each cell.

    Fair weights multiply every row of a cell by the same t(y, z) / e(y, z), so shares,
    rates, effective rows and the largest weight are functions of the fair table and of
    a few sums of each cell, however many rows there are.
    """
    if data in _cells:
        return _cells[data]
    roles = data.roles
    levels = roles.blocks.levels
    # The outcome comes first, then these.
    ends = np.cumsum([1, len(roles.protected), len(roles.others), len(roles.strata)])
    protected, others, strata = (
        tuple(range(*part)) for part in pairwise(ends.tolist())
    )
    domain = Domain(roles.attributes, roles.domain.notes, roles.domain.identifiers)
    small = Roles(domain, 0, protected, strata, others)
    rows = data.table.collect()
    counts, people, squares = (
        rows.tables([(0,)], levels, of=of)[0] for of in ("counts", "rows", "squares")
    )
    seen = np.flatnonzero(people)
    peaks = highest(rows.codes[:, 0], rows.largest, levels[0])
    table = Table(
        seen[:, np.newaxis],
        counts[seen],
        people[seen],
        squares[seen],
        peaks=peaks[seen],
    )
    _cells[data] = replace(
        data,
        roles=small,
        table=table,
        design=None,
        positions=None,
    )
    return _cells[data]


def is_quick(request: Request, data: Reading) -> bool:
    """Whether all that is asked for is about the cells, and no outcome changes."""
    mentioned = set(request.target or ())
    for rule in request.forbid or ():
        mentioned |= set(rule)
    binned = request.equal_means and not data.roles.attributes[0].is_value_coded
    slow = (request.model, request.privacy, request.likely)
    return (
        not binned
        and mentioned <= {*data.roles.names}
        and all(plan is None for plan in slow)
    )


def quick_fit(
    cells: Reading, request: Request, progress: Progress = silent
) -> Certified:
    """A fit of the cells, which says nothing about copies of rows."""
    known = _quick.setdefault(cells, deque(maxlen=_KEPT))
    for asked, fit in tuple(known):
        if asked == request:
            return fit
    fit = fit_rows(cells, request, progress)
    costs = fit.certificate.costs
    assert costs is not None
    groups = tuple(replace(group, most_copies=math.nan) for group in costs.groups)
    worst_cell = replace(costs.worst_cell, most_copies=math.nan)
    costs = replace(costs, groups=groups, worst_cell=worst_cell)
    certificate = replace(fit.certificate, costs=costs, copied_share=0.0)
    quick = replace(fit, certificate=certificate)
    known.append((request, quick))
    return quick


def says_all(fit: Certified) -> bool:
    """Whether no cell is filled in, and none left out."""
    return not (fit.certificate.filled_cells or fit.certificate.emptied_cells)


def curve(
    fit: Certified,
    cells: Reading,
    kind: str,
    column: str | None,
    progress: Progress,
    *,
    is_sketch: bool = False,
) -> Values:
    """What each step of a rate does, from where the data are to 1.

    ``column``: the one whose rate moves; None: all that are compared together. A rate
    without a fair table, or one that takes a fit of all rows, has no point.
    """
    request: Any = fit.request
    asked = getattr(request, kind)
    by_column = asked
    if not isinstance(asked, Mapping):
        by_column = dict.fromkeys(request.protected_names, asked)
    measure = fit.certificate.measure
    as_it_is = min(
        rate or 0.0
        for name, rate in fit.certificate.before[kind].items()
        if column in (None, measure.columns_of(name))
    )
    start = max(_LEAST, math.floor(100 * as_it_is))
    step = 1 + (100 - start) // _STEPS
    percents = [*range(100, start - step, -step)][::-1]
    if is_sketch:  # some of the same points, and both ends
        percents = [*percents[:-1:_SKETCHED], 100]
    points = []
    for hundredth in percents:
        value: Any = hundredth / 100
        moved = value if column is None else {**by_column, column: value}
        try:
            quick = quick_fit(cells, replace(request, **{kind: moved}), progress)
        except FairMaxEntError:
            continue
        if says_all(quick):
            points.append({"value": value, "see": seen(quick, is_whole=False)})
    return plain_json({"step": step / 100, "points": points})
