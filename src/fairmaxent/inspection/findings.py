"""A look at a table, and what was seen, as facts and as text: columns, groups, rates,
proposals, hints, and costs.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain, count_text
from fairmaxent.data.levels import cell_text
from fairmaxent.data.reading import encode_table
from fairmaxent.data.roles import GroupsOption, Roles, check_roles, read_columns
from fairmaxent.data.table import Codes, tally
from fairmaxent.document import Block, Note, Paragraph, Section, Table
from fairmaxent.document.text import sections_text, table_lines
from fairmaxent.document.words import counted, percent
from fairmaxent.errors import Option, cut, spelled
from fairmaxent.inspection.hints import (
    NOTABLE,
    Hint,
    Proxy,
    column_hints,
    proxies,
    role_hints,
)
from fairmaxent.inspection.proposals import (
    Proposal,
    Role,
    propose_favourable,
    propose_outcome,
    propose_protected,
)
from fairmaxent.inspection.verdict import Verdict, judge
from fairmaxent.metrics.definitions import representation_rate, statistical_rate
from fairmaxent.metrics.group_rates import GroupedTable, Rate, group_text
from fairmaxent.metrics.groups import Comparison
from fairmaxent.plain_text import plain_json

# Rough cost of a fit on one core: a cell of the table in seconds and bytes, a pair of
# features in both.
_CELL_SECONDS = 3e-7
_PAIR_SECONDS = 2e-6
_CELL_BYTES = 110
_PAIR_BYTES = 32
_DURATIONS = (
    (1, "under a second"),
    (10, "a few seconds"),
    (60, "under a minute"),
    (600, "minutes"),
)
_TOO_LONG = "very long: drop or merge columns with many levels"
_EXACT = 2**53  # larger whole numbers are no longer exact for many readers of JSON


Spelling = Callable[[Option], str]
# equal group sizes are proposed if nobody is set apart, and if rows then count at most
# that many times
_FEW_TIMES = 5
_VERDICTS = 3
_PROXIES = 5  # shown for each protected column
_CELLS = 3
# characters of a line, and at least of the levels in it
_WIDTH = 80
_LEVELS = 16
_TITLES: dict[Role, str] = {
    "outcome": "outcome",
    "favourable": "good outcome",
    "protected": "protected",
}


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
        time = next(
            (words for bound, words in _DURATIONS if self.seconds < bound), _TOO_LONG
        )
        if self.megabytes > 100:
            memory = f"about {self.megabytes:,.0f} MB"
        else:
            memory = "little memory"
        return f"{time}, {memory}"

    @property
    def sentence(self) -> str:
        """Time, memory and size, for those who run the fit."""
        size = (
            f"{counted(self.distinct_rows, 'distinct row')}, {self.features:,} features"
        )
        return (
            f"Cost of a fit: {self.words} ({size}, {count_text(self.domain_size)}"
            " possible rows)."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values; a size with dozens of digits is rounded, and one beyond all
        numbers of JSON is None.
        """
        size = self.domain_size
        if size < _EXACT:
            rounded = size
        else:
            rounded = None
            if size < sys.float_info.max:
                rounded = float(size)
        return {**vars(self), "domain_size": rounded, "words": self.words}


def cost(roles: Roles, codes: Codes) -> Cost:
    """Estimate what fitting these rows takes."""
    distinct = len(roles.compress(codes).codes)
    levels = roles.blocks.levels
    cells = codes.shape[0] * codes.shape[1]
    pairs = sum(levels) ** 2
    seconds = cells * _CELL_SECONDS + pairs * _PAIR_SECONDS
    megabytes = (cells * _CELL_BYTES + pairs * _PAIR_BYTES) / 1e6
    return Cost(distinct, sum(levels), levels[0], roles.domain.size, seconds, megabytes)


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
    """Both rates of one protected column, or of the intersections of all, and what they
    say.
    """

    name: str
    representation: Rate
    statistical: Rate
    verdict: Verdict


@dataclass(frozen=True, repr=False)
class Inspection:
    """What `inspect` saw in a table, and what it proposes; it changes nothing."""

    rows: int
    # the outcome that was named or is proposed; None: none was named, and none stands
    # out
    outcome: str | None
    # the good outcomes that were named or are proposed; empty: all are compared
    favourable: tuple[object, ...]
    protected: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]
    notes: tuple[str, ...]
    proposals: tuple[Proposal, ...]
    hints: tuple[Hint, ...]
    groupings: tuple[GroupingRates, ...]
    proxies: tuple[Proxy, ...]
    empty_cells: tuple[str, ...]
    cost: Cost | None

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns without a role that look as if they named people or rows; `debias`
        leaves them out.
        """
        return tuple(column.name for column in self.columns if column.identifier)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Whether the table is fair: of the columns with something to say, those with
        the clearest gaps first.
        """
        told = [
            grouping.verdict for grouping in self.groupings if str(grouping.verdict)
        ]
        return tuple(
            sorted(told, key=lambda verdict: (verdict.gap is None, verdict.most))[
                :_VERDICTS
            ]
        )

    @property
    def representation_rate(self) -> float | dict[str, float | None] | None:
        """The representation rate that does not ruin the data: 1, or None for groups
        that should keep their sizes.
        """
        rates: dict[str, float | None] = {}
        for grouping in self.groupings:
            groups = grouping.representation.groups
            least = 1 / (_FEW_TIMES * len(groups))
            is_small = bool(grouping.verdict.set_apart) or any(
                group.rate < least for group in groups
            )
            rates[grouping.name] = None if is_small else 1.0
        different = set(rates.values())
        if len(different) > 1:
            return rates
        if different:
            return different.pop()
        return None

    def proposed(self, role: str) -> tuple[Proposal, ...]:
        """What is proposed for a role, candidates included."""
        return tuple(proposal for proposal in self.proposals if proposal.role == role)

    def role_of(self, name: str) -> str:
        """The role of a column, an empty text if it has none."""
        if name == self.outcome:
            return "outcome"
        return "protected" * (name in self.protected)

    def to_dict(self, spell: Spelling = str) -> dict[str, Any]:
        """Everything as plain values, for JSON; ``spell`` writes the options that hints
        mention.
        """
        groupings = [
            {
                "name": one.name,
                "representation_rate": one.representation,
                "statistical_rate": one.statistical,
            }
            for one in self.groupings
        ]
        hints = [
            vars(hint) | {"parts": (), "text": spelled(hint.parts, spell)}
            for hint in self.hints
        ]
        plain: dict[str, Any] = plain_json(
            vars(self)
            | {
                "verdicts": [
                    vars(verdict) | {"text": str(verdict)} for verdict in self.verdicts
                ]
            }
            | {
                "groupings": groupings,
                "hints": hints,
                "cost": None if self.cost is None else self.cost.to_dict(),
            }
            | {"representation_rate": self.representation_rate}
        )
        return plain

    def __repr__(self) -> str:
        return inspection_text(self)


def inspection_text(
    inspection: Inspection, spell: Spelling = str, *, notes: Sequence[str] = ()
) -> str:
    """Everything that was seen, with options spelled by ``spell``; ``notes`` say how
    the table was read.
    """
    answer = map(Paragraph, answers(inspection, spell))
    sections = inspection_sections(inspection, spell)
    if inspection.cost is None:
        takes = []
    else:
        takes = [Paragraph(inspection.cost.sentence)]
    cautious = [
        Note(f"Note: {line}") for line in (*notes, *cautions(inspection, spell))
    ]
    return sections_text(
        [answer, *(section.blocks for section in sections), takes, cautious]
    )


def answers(inspection: Inspection, spell: Spelling) -> list[str]:
    """Whether the table is fair, and what has to be known to say so."""
    told = [verdict.headline or verdict.details for verdict in inspection.verdicts]
    return [*told, *_questions(inspection, spell)] or ["No two groups can be compared."]


def inspection_sections(
    inspection: Inspection, spell: Spelling, room: int | None = None
) -> list[Section]:
    """What was seen: groups, then columns, with ``room`` for their levels (None: as a
    terminal has), then proposals.
    """
    seen: list[tuple[str, tuple[Block, ...]]]
    apart = {
        one.name: [Paragraph(one.verdict.details)] if one.verdict.details else []
        for one in inspection.groupings
    }
    seen = [(one.name, (_rates(one), *apart[one.name])) for one in inspection.groupings]
    if inspection.groupings:
        seen += [("Columns that predict a group", tuple(_proxies(inspection)))]
    size = (
        f"{counted(inspection.rows, 'row')},"
        f" {counted(len(inspection.columns), 'column')}"
    )
    seen.append(("All columns", (Paragraph(size), _columns(inspection, room))))
    if inspection.proposals:
        seen += [("What is proposed", (_proposals(inspection, spell),))]
    return [
        Section(f"part-{number}", title, title, blocks)
        for number, (title, blocks) in enumerate(seen)
    ]


def _columns(inspection: Inspection, room: int | None) -> Table:
    heads = ("column", "kind", "values", "levels", "missing", "role")
    rows = []
    for column in inspection.columns:
        sizes = map(cell_text, (column.values, column.levels, column.missing))
        rows.append(
            (
                cut(cell_text(column.name), 30),
                column.kind,
                *sizes,
                inspection.role_of(column.name),
            )
        )
    room = room or max(
        _WIDTH - 2 - max(map(len, table_lines([*heads[:-1], "protected"], rows))),
        _LEVELS,
    )
    table = []
    for row, column in zip(rows, inspection.columns, strict=True):
        if column.identifier:
            levels = "an identifier?"
        else:
            levels = cell_text(", ".join(column.shown[:100]))
        table.append((*row, cut(levels, room)))
    return Table("Columns", (*heads, "such as"), tuple(table))


def _proposals(inspection: Inspection, spell: Spelling) -> Table:
    """What is proposed, with the reason; a question mark stands after what nobody
    should rely on.
    """
    rows = []
    for role, title in _TITLES.items():
        for proposal in sorted(
            inspection.proposed(role),
            key=lambda proposal: proposal.confidence == "candidate",
        ):
            why = proposal.reason
            if proposal.edges is not None:
                why += f": {spell(Option('bins', {str(proposal.value): list(proposal.edges)}))}"
            if proposal.confidence == "guess":
                why += " (a guess: please check)"
            sure = "" if proposal.confidence == "likely" else "?"
            rows.append((f"{title}{sure}", cut(cell_text(proposal.value), 30), why))
    return Table("Proposals", ("proposed", "which", "why"), tuple(rows))


def _questions(inspection: Inspection, spell: Spelling) -> Iterator[str]:
    if inspection.outcome is None:
        yield (
            "Which column is the outcome? No column stands out: choose it with"
            f" {spell(Option('outcome'))}."
        )
    elif not inspection.favourable:
        levels = next(
            column.shown
            for column in inspection.columns
            if column.name == inspection.outcome
        )
        listed = ", ".join(cut(cell_text(level)) for level in levels[:4]) + (
            ", …" if len(levels) > 4 else ""
        )
        choose = (
            f"Choose it with {spell(Option('favourable'))}; until then, every outcome"
            " is compared."
        )
        yield f"Which outcome is the good one ({listed})? {choose}"
    if not inspection.protected:
        yield (
            "Which groups are compared? No column stands out: choose one with"
            f" {spell(Option('protected'))}."
        )


def _rates(grouping: GroupingRates) -> Block:
    shares = {group.group: group for group in grouping.representation.groups}
    rows = []
    for group in grouping.statistical.groups:
        share = shares[group.group]
        ends = map(percent, group.interval or ())
        cells = (
            cell_text(share.count),
            percent(share.rate),
            cell_text(group.outcome),
            percent(group.rate),
        )
        rows.append((group_text(group.group), *cells, " – ".join(ends)))
    return Table(
        "Rates",
        (grouping.name, "rows", "share", "outcome", "rate", "95% range"),
        tuple(rows),
    )


def _proxies(inspection: Inspection) -> Iterator[Block]:
    rows = []
    for name in inspection.protected:
        notable = [
            proxy
            for proxy in inspection.proxies
            if proxy.protected == name and proxy.strength >= NOTABLE
        ]
        rows += [
            (name, proxy.column, f"{proxy.strength:.0%}")
            for proxy in notable[:_PROXIES]
        ]
    if not rows:
        yield Paragraph("No column predicts a protected column.")
        return
    yield Table("Proxies", ("protected", "predicted by", "how well"), tuple(rows))
    meaning = "0% is no better than chance, 100% is always right"
    yield Paragraph(f"{meaning}: a model can learn the groups from such columns.")


def cautions(inspection: Inspection, spell: Spelling) -> tuple[str, ...]:
    """What to watch out for."""
    hints = (spelled(hint.parts, spell) for hint in inspection.hints)
    empty = inspection.empty_cells
    if len(empty) > _CELLS:
        more = f" and {len(empty) - _CELLS} more"
    else:
        more = ""
    unseen = (
        "no row has these combinations, so nothing is known about such people:"
        f" {'; '.join(empty[:_CELLS])}{more}"
    )
    return *inspection.notes, *hints, *([unseen] if empty else [])


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
    """Look at a table: its columns, groups, rates and proxies, and what to watch out
    for. Changes nothing.

    The options are those of :func:`fairmaxent.debias`. What is not given is proposed,
    with the reason: the outcome, the protected columns, and which outcome is the good
    one. If nothing stands out, nothing is proposed, and there are no rates.

    Proxies are measured by mutual information I(column; protected) / H(protected). From
    both, the average for independent columns is subtracted: (r − 1)(c − 1) / 2N nats
    for r and c levels in N rows.

    >>> import polars
    >>> table = polars.DataFrame({"sex": ["f", "m"] * 50, "hired": ["no", "yes", "yes", "no", "yes"] * 20})
    >>> look = inspect(table)
    >>> look.outcome, look.favourable, look.protected
    ('hired', ('yes',), ('sex',))
    """
    if protected is None:
        given = []
    else:
        given = read_columns("protected", protected)
    check_roles(outcome if outcome is not None else "", given, weight)
    opened = frames.open_frame(frame)
    raw = frames.read_weights(opened, weight)
    design = None
    if raw is not None:
        design = frames.in_range(raw)
    encoded = encode_table(opened, domain, weight=weight, weights=design)
    domain = encoded.domain
    codes = encoded.codes
    if outcome is not None:
        outcomes = ()
    else:
        outcomes = propose_outcome(domain, given)
    outcome = outcome or next(
        (str(value) for value in _chosen(outcomes, "outcome")), None
    )
    if outcome is None or favourable is not None:
        likely = ()
    else:
        likely = propose_favourable(domain.attribute(outcome))
    proposals = (
        *outcomes,
        *likely,
        *(() if given else propose_protected(domain, outcome, len(opened))),
    )
    names = given or [str(value) for value in _chosen(proposals, "protected")]
    if favourable is not None:
        good = favourable
    else:
        good = [*_chosen(proposals, "favourable")] or None
    roles = None
    if outcome is not None and names:
        roles = Roles.of(domain, outcome, names)
    taken = [*([outcome] if outcome is not None else []), *names]
    identifiers = set(domain.identifiers) - set(taken)
    hints = [
        *column_hints(opened, domain, taken, weight),
        *(role_hints(roles, codes, design) if roles else ()),
    ]

    groupings = []
    for axes in () if roles is None else roles.groupings(groups):
        if roles:
            columns = [roles.names[axis] for axis in axes]
        else:
            columns = []
        how: Any = {
            "groups": "joint",
            "weight": weight,
            "domain": domain,
            "confidence": confidence,
        }
        shares = representation_rate(frame, columns, **how)
        rates = statistical_rate(frame, outcome, columns, favourable=good, **how)
        compared = Comparison(
            columns, "joint", weight, "ignore", domain, outcome=outcome, favourable=good
        )
        (rows,) = compared.grouped(frame)
        verdict = judge(
            GroupedTable.of_outcomes(rows, good), shares, str(outcome), confidence
        )
        groupings.append(GroupingRates(" × ".join(columns), shares, rates, verdict))
    summaries = []
    for attribute, column in zip(domain.attributes, codes.T, strict=True):
        if attribute.missing is None:
            missing = 0
        else:
            missing = int(np.count_nonzero(column == attribute.missing))
        sizes = (
            attribute.size,
            len(attribute.counts) - (attribute.missing is not None),
            missing,
        )
        if attribute.name in identifiers:
            shown = ()
        else:
            shown = attribute.labels
        summaries.append(
            ColumnSummary(
                attribute.name,
                attribute.kind,
                *sizes,
                shown,
                attribute.name in identifiers,
            )
        )
    return Inspection(
        rows=len(opened),
        outcome=outcome,
        favourable=(
            ()
            if good is None
            else (
                tuple(good)
                if isinstance(good, list | tuple | set | frozenset)
                else (good,)
            )
        ),
        protected=tuple(names),
        columns=tuple(summaries),
        notes=domain.without(identifiers).notes,
        proposals=proposals,
        hints=tuple(hints),
        groupings=tuple(groupings),
        proxies=tuple(proxies(roles, codes, design)) if roles else (),
        empty_cells=tuple(_empty_cells(roles, codes)) if roles else (),
        cost=cost(roles, codes) if roles else None,
    )


def _chosen(proposals: Sequence[Proposal], role: Role) -> Iterator[object]:
    return (
        proposal.value
        for proposal in proposals
        if proposal.role == role and proposal.confidence != "candidate"
    )


def _empty_cells(roles: Roles, codes: Codes) -> Iterator[str]:
    """Combinations of outcome and protected levels that have no row."""
    table = tally(roles.blocks.pool(codes)[:, 0], None, roles.blocks.levels[0])
    for cell in np.argwhere(table.reshape(roles.blocks.shape(0)) == 0):
        yield roles.describe_cell([int(level) for level in cell])
