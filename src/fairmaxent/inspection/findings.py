"""What was seen in a table, as facts and as text.

Columns, groups, rates, proposals and hints; `look` finds them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.data.levels import Notes, cell_text
from fairmaxent.data.table import NameList, Names
from fairmaxent.document import Block, Blocks, Note, Paragraph, Section, Table
from fairmaxent.document.text import sections_text, table_lines
from fairmaxent.document.words import counted, percent
from fairmaxent.errors import Option, Spell, cut, spelled
from fairmaxent.facts.groups import LikelyFacts
from fairmaxent.inspection.hints import NOTABLE, Hint, Proxy
from fairmaxent.inspection.proposals import Proposal, Role
from fairmaxent.inspection.verdict import Verdict
from fairmaxent.metrics.rates import GroupRate, Rate, group_text
from fairmaxent.metrics.rows import Label
from fairmaxent.plain_text import Values, plain_json
from fairmaxent.privacy.model import Worth
from fairmaxent.telling.likely import likely_blocks, likely_headlines

# Equal group sizes are proposed if nobody is set apart, and if rows then count at most
# that many times.
_FEW_TIMES = 5
# how many are shown: verdicts, proxies of each protected column, empty cells,
# strata
_VERDICTS = 3
_PROXIES = 5
_CELLS = 3
_STRATA = 8
# characters of a line, and at least of the levels in it
_WIDTH = 80
_LEVELS = 16
_OUTCOME = ("outcome", "rate", "95% range")  # heads of tables
_TITLES: dict[Role, str] = {
    "outcome": "outcome",
    "favourable": "good outcome",
    "protected": "protected",
}


@dataclass(frozen=True)
class ColumnSummary:
    """One column as it is read."""

    name: str
    kind: str
    levels: int
    values: int
    missing: int
    shown: Names
    identifier: bool


@dataclass(frozen=True)
class GroupingRates:
    """Both rates of a protected column, or of intersections, and what they say."""

    name: str
    representation: Rate
    statistical: Rate
    verdict: Verdict
    # of each stratum with people of several groups, the clearest gap first
    strata: tuple[Rate, ...] = ()

    @property
    def groups(self) -> Iterator[tuple[GroupRate, GroupRate]]:
        """The rate and the share of every group, also of those that are set apart."""
        sizes = (*self.representation.groups, *self.representation.set_apart)
        shares = {group.group: group for group in sizes}
        for group in (*self.statistical.groups, *self.statistical.set_apart):
            yield group, shares[group.group]


@dataclass(frozen=True, repr=False)
class Inspection:
    """What `inspect` saw in a table, and what it proposes; it changes nothing."""

    rows: int
    # named or proposed; None: none was named, and none stands out
    outcome: str | None
    # the good outcomes that were named or are proposed; empty: all are compared
    favourable: Label
    protected: Names
    columns: tuple[ColumnSummary, ...]
    notes: Notes
    proposals: tuple[Proposal, ...]
    hints: tuple[Hint, ...]
    # about groups: nothing if there is no outcome, or no protected column
    groupings: tuple[GroupingRates, ...] = ()
    proxies: tuple[Proxy, ...] = ()
    empty_cells: Notes = ()
    within: Names = ()  # whose strata groups are compared within
    cluster: str | None = None  # the column that says who belongs together
    private: Worth | None = None  # what a private fit would be worth, if that was asked
    likely: LikelyFacts | None = None  # of groups that are probabilities

    @property
    def identifiers(self) -> Names:
        """Columns without a role that look as if they named people or rows.

        `debias` leaves them out.
        """
        return tuple(column.name for column in self.columns if column.identifier)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Whether the table is fair: the columns with the clearest gaps first.

        Columns without anything to say are left out.
        """
        told = [one.verdict for one in self.groupings if str(one.verdict)]
        told.sort(key=lambda verdict: (verdict.gap is None, verdict.most))
        return tuple(told[:_VERDICTS])

    @property
    def representation_rate(self) -> float | dict[str, float | None] | None:
        """The representation rate that does not ruin the data.

        1, or None for groups that should keep their sizes.
        """
        rates: dict[str, float | None] = {}
        for grouping in self.groupings:
            groups = grouping.representation.groups
            times = _FEW_TIMES * len(groups)
            is_small = bool(grouping.verdict.set_apart) or any(
                group.rate * times < 1 for group in groups
            )
            rates[grouping.name] = None if is_small else 1.0
        different = set(rates.values())
        if len(different) > 1:
            return rates
        return different.pop() if different else None

    def proposed(self, role: str) -> tuple[Proposal, ...]:
        """What is proposed for a role, candidates included."""
        return tuple(proposal for proposal in self.proposals if proposal.role == role)

    def role_of(self, name: str) -> str:
        """The role of a column, an empty text if it has none."""
        if name == self.outcome:
            return "outcome"
        return "protected" if name in self.protected else ""

    def to_dict(self, spell: Spell = str) -> Values:
        """Everything as plain values, for JSON.

        ``spell`` writes the options that hints mention.
        """
        groupings = [
            {
                "name": one.name,
                "representation_rate": one.representation,
                "statistical_rate": one.statistical,
                "strata": one.strata,
            }
            for one in self.groupings
        ]
        hints = [
            vars(hint) | {"parts": (), "text": spelled(hint.parts, spell)}
            for hint in self.hints
        ]
        verdicts = [vars(verdict) | {"text": str(verdict)} for verdict in self.verdicts]
        facts = {
            **vars(self),
            "verdicts": verdicts,
            "groupings": groupings,
            "hints": hints,
            "representation_rate": self.representation_rate,
        }
        return plain_json(facts)

    def __repr__(self) -> str:
        return inspection_text(self)


def inspection_text(
    inspection: Inspection, spell: Spell = str, *, notes: Sequence[str] = ()
) -> str:
    """Everything that was seen, with options spelled by ``spell``.

    ``notes`` say how the table was read.
    """
    parts: list[Iterable[Block]] = [map(Paragraph, answers(inspection, spell))]
    parts += [section.blocks for section in inspection_sections(inspection, spell)]
    warned = (*notes, *cautions(inspection, spell))
    parts.append([Note(f"Note: {line}") for line in warned])
    return sections_text(parts)


def answers(inspection: Inspection, spell: Spell) -> list[str]:
    """Whether the table is fair, and what has to be known to say so."""
    told = [verdict.headline or verdict.details for verdict in inspection.verdicts]
    told += likely_headlines(inspection.likely)
    return [*told, *_questions(inspection, spell)] or ["No two groups can be compared."]


def inspection_sections(
    inspection: Inspection, spell: Spell, room: int | None = None
) -> list[Section]:
    """What was seen: groups, then columns, then proposals.

    ``room`` is that of a column's levels (None: as a terminal has).
    """
    seen: list[tuple[str, tuple[Block, ...]]] = []
    likely = tuple(likely_blocks(inspection.likely))
    if likely:
        seen.append(("Groups that nobody wrote down", likely))
    for one in inspection.groupings:
        blocks: tuple[Block, ...] = (_rates(one),)
        if one.strata:
            blocks = (*blocks, *_strata(one, inspection.within))
        if one.verdict.headline and one.verdict.details:  # else they are the answer
            blocks = (*blocks, Paragraph(one.verdict.details))
        seen.append((one.name, blocks))
    if inspection.groupings:
        seen.append(("Columns that predict a group", tuple(_proxies(inspection))))
    if inspection.private is not None:
        blocks = tuple(_private(inspection.private))
        seen.append(("What a private fit would be worth", blocks))
    size = (
        f"{counted(inspection.rows, 'row')},"
        f" {counted(len(inspection.columns), 'column')}"
    )
    seen.append(("All columns", (Paragraph(size), _columns(inspection, room))))
    if inspection.proposals:
        seen.append(("What is proposed", (_proposals(inspection, spell),)))
    return [
        Section(f"part-{number}", title, title, blocks)
        for number, (title, blocks) in enumerate(seen)
    ]


def _private(worth: Worth) -> Iterator[Block]:
    yield Paragraph(
        f"With {worth.promise}, a fit knows how many of a group have an outcome to"
        f" within {worth.count_range:,.0f} rows, with {worth.confidence:.0%}"
        " confidence. This follows from what is declared and the number of rows, and"
        " spends nothing; all else that is said here is exact, and for you alone."
        " Rates are known as below, if groups are equally large and half of each has"
        " the outcome; a group of half the size has twice the range."
    )
    rows = [
        (name, f"± {percent(rate)}", f"± {ratio:.3f}")
        for name, (rate, ratio) in worth.rate_ranges.items()
    ]
    heads = ("groups of", "rate of a group", "ratio of two rates")
    yield Table("Private rates", heads, tuple(rows))
    yield Paragraph(
        f"Counted for each outcome and group: {counted(worth.with_groups, 'column')};"
        f" for each outcome alone: {counted(worth.with_outcome, 'column')}. If that is"
        " too few, use a larger ε, fewer levels or columns, or more rows."
    )


def _columns(inspection: Inspection, room: int | None) -> Table:
    heads = ("column", "kind", "values", "levels", "missing", "role")
    rows = []
    for column in inspection.columns:
        row = (
            cut(cell_text(column.name), 30),
            column.kind,
            cell_text(column.values),
            cell_text(column.levels),
            cell_text(column.missing),
            inspection.role_of(column.name),
        )
        rows.append(row)
    if not room:
        longest = max(map(len, table_lines([*heads[:-1], "protected"], rows)))
        room = max(_WIDTH - 2 - longest, _LEVELS)
    table = []
    for row, column in zip(rows, inspection.columns, strict=True):
        levels = "an identifier?"
        if not column.identifier:
            levels = cell_text(", ".join(column.shown[:100]))
        table.append((*row, cut(levels, room)))
    return Table("Columns", (*heads, "such as"), tuple(table))


def _proposals(inspection: Inspection, spell: Spell) -> Table:
    """What is proposed, with the reason.

    A question mark stands after what nobody should rely on.
    """
    rows = []
    for role, title in _TITLES.items():
        proposals = sorted(
            inspection.proposed(role), key=lambda one: one.confidence == "candidate"
        )
        for proposal in proposals:
            why = proposal.reason
            if proposal.edges is not None:
                bins = Option("bins", {str(proposal.value): list(proposal.edges)})
                why += f": {spell(bins)}"
            if proposal.confidence == "guess":
                why += " (a guess: please check)"
            sure = "" if proposal.confidence == "likely" else "?"
            rows.append((f"{title}{sure}", cut(cell_text(proposal.value), 30), why))
    return Table("Proposals", ("proposed", "which", "why"), tuple(rows))


def _questions(inspection: Inspection, spell: Spell) -> Iterator[str]:
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
        names = [cut(cell_text(level)) for level in levels[:4]]
        if len(levels) > 4:
            names.append("…")
        yield (
            f"Which outcome is the good one ({', '.join(names)})? Choose it with"
            f" {spell(Option('favourable'))}; until then, every outcome is compared."
        )
    if not (inspection.protected or inspection.likely):
        yield (
            "Which groups are compared? No column stands out: choose one with"
            f" {spell(Option('protected'))}."
        )


def _rates(grouping: GroupingRates) -> Block:
    rows = []
    for group, share in grouping.groups:
        row = (
            group_text(group.group),
            cell_text(share.count),
            percent(share.rate),
            *_outcome_cells(group),
        )
        rows.append(row)
    heads = (grouping.name, "rows", "share", *_OUTCOME)
    return Table("Rates", heads, tuple(rows))


def _outcome_cells(group: GroupRate) -> tuple[str, str, str]:
    """What is said about an outcome of a group, below the heads `_OUTCOME`."""
    between = " – ".join(map(percent, group.interval or ()))
    return cell_text(group.outcome), percent(group.rate), between


def _strata(grouping: GroupingRates, within: NameList) -> Blocks:
    """The rates of groups side by side in each stratum; of many, the clearest."""
    names = " × ".join(within)
    rows = []
    for rate in grouping.strata[:_STRATA]:
        for group in rate.groups:
            row = (
                group_text(tuple(level for _, level in group.stratum)),
                group_text(group.group),
                cell_text(group.count),
                *_outcome_cells(group),
            )
            rows.append(row)
    heads = (names, grouping.name, "rows", *_OUTCOME)
    yield Table("Strata", heads, tuple(rows))
    hidden = len(grouping.strata) - _STRATA
    if hidden > 0:
        yield Paragraph(
            f"These are the {_STRATA} strata with the clearest gaps; {hidden:,} more"
            " are not shown."
        )


def _proxies(inspection: Inspection) -> Blocks:
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
    yield Paragraph(
        "0% is no better than chance, 100% is always right: a model can learn the"
        " groups from such columns."
    )


def cautions(inspection: Inspection, spell: Spell) -> Notes:
    """What to watch out for."""
    hints = (spelled(hint.parts, spell) for hint in inspection.hints)
    told = [*inspection.notes, *hints]
    empty = inspection.empty_cells
    if empty:
        unseen = (
            "no row has these combinations, so nothing is known about such people:"
            f" {'; '.join(empty[:_CELLS])}"
        )
        if len(empty) > _CELLS:
            unseen += f" and {len(empty) - _CELLS} more"
        told.append(unseen)
    if inspection.cluster is not None:
        told.append(
            f"ranges allow for people of the same {inspection.cluster!r} being alike"
        )
    elif inspection.groupings:
        told.append(
            "ranges assume that people are independent of each other; if some belong"
            " together (a household, a class, a branch), name the column that says so"
            f" with {spell(Option('cluster'))}"
        )
    return tuple(told)
