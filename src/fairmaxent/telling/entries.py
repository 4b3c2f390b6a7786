"""The table of all there is to say about a fit, in reading order.

To say something new of a fit, add an entry: every door shows it, or says where it is.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from fairmaxent.data.levels import Notes
from fairmaxent.document import Block, Blocks, Note, Paragraph, Table
from fairmaxent.document.words import more
from fairmaxent.plain_text import Values
from fairmaxent.telling import costs, likely, models, rates, sharing, table, uses
from fairmaxent.telling.case import Case, Entry, Topic, Weight, texts_of

VERDICT = Weight.VERDICT
WARNING = Weight.WARNING
COST = Weight.COST
FACT = Weight.FACT
METHOD = Weight.METHOD

ENTRIES = (
    Entry("made_for", VERDICT, "model", models.made_for),
    Entry("promise", VERDICT, "privacy", sharing.promise),
    Entry("likely", VERDICT, "likely", likely.likely),
    Entry("few_people", WARNING, "warning", costs.few_people),
    Entry("contradicted", WARNING, "warning", likely.contradicted),
    Entry("missed", WARNING, "warning", rates.missed),
    Entry("absent", WARNING, "warning", rates.absent),
    Entry("decided_badly", WARNING, "warning", models.decided_badly),
    Entry("unfair_models", WARNING, "warning", models.unfair_models),
    Entry("weak_promise", WARNING, "warning", sharing.weak_promise),
    Entry("emptied", WARNING, "warning", table.as_notes(table.emptied)),
    Entry("copies", COST, "copies", sharing.copies),
    Entry("copies_counted", COST, "copies", sharing.copies_counted),
    Entry("changed_outcomes", COST, "costs", costs.changed_outcomes),
    Entry("outcomes", COST, "costs", costs.outcomes),
    Entry("effective_rows", COST, "costs", costs.effective_rows),
    Entry("filled", COST, "costs", costs.filled),
    Entry("group_costs", COST, "costs", costs.group_costs),
    Entry("asked", FACT, "asked", rates.asked),
    Entry("verdict", VERDICT, "reached", rates.verdict),
    Entry("rates", VERDICT, "reached", rates.rates),
    Entry("chance", VERDICT, "reached", rates.chance),
    Entry("set_apart", VERDICT, "reached", rates.set_apart),
    Entry("means", VERDICT, "reached", rates.means),
    Entry("groups", FACT, "groups", rates.groups),
    Entry("decisions", VERDICT, "model", models.decisions),
    Entry("estimate", VERDICT, "model", models.estimate),
    Entry("less_exact", FACT, "model", models.less_exact),
    Entry("not_estimated", COST, "model", models.not_estimated),
    Entry("meaning", METHOD, "privacy", sharing.meaning),
    Entry("not_for", COST, "not-for", uses.not_for),
    Entry("rates_in_detail", METHOD, "reached", rates.rates_in_detail),
    Entry("method", METHOD, "method", costs.method),
    Entry("spending", FACT, "privacy", sharing.spending),
    Entry("small_groups", FACT, "table", rates.small_groups),
    Entry("filled_cells", FACT, "table", table.as_notes(table.filled_cells)),
    Entry("removed_levels", FACT, "table", table.as_notes(table.removed_levels)),
    Entry("left_out", FACT, "table", table.as_notes(table.left_out)),
    Entry("reading", FACT, "table", table.as_notes(table.reading)),
    Entry("redrawn", FACT, "table", table.as_notes(table.redrawn)),
    Entry("binned", FACT, "table", table.as_notes(table.binned)),
    Entry("missing_values", FACT, "table", table.as_notes(table.missing_values)),
    Entry("single_groups", FACT, "table", table.as_notes(table.single_groups)),
    Entry("forbidden", FACT, "table", table.as_notes(table.forbidden)),
)
KEYS = {entry.key: entry for entry in ENTRIES}


def entries_of(
    *,
    least: Weight = METHOD,
    topics: Collection[Topic] | None = None,
) -> Iterator[Entry]:
    """The entries of some weight or more, about some topics."""
    for entry in ENTRIES:
        if entry.weight <= least and (topics is None or entry.topic in topics):
            yield entry


def told(
    case: Case,
    *,
    least: Weight = METHOD,
    topics: Collection[Topic] | None = None,
) -> Blocks:
    """What there is to say; of many remarks, the first ones."""
    for _, block in _shown(case, entries_of(least=least, topics=topics)):
        yield block


def sections_of(
    case: Case,
    *,
    least: Weight = METHOD,
    topics: Collection[Topic] | None = None,
) -> Iterator[list[Block]]:
    """The same, entry by entry; remarks stand together."""
    shown = _shown(case, entries_of(least=least, topics=topics))
    for _, pairs in groupby(shown, key=itemgetter(0)):
        yield [block for _, block in pairs]


def _shown(case: Case, entries: Iterable[Entry]) -> Iterator[tuple[str, Block]]:
    """Each block, with the name of what it stands together with."""
    remarks_said = 0
    for entry in entries:
        for block in said(entry, case):
            if not isinstance(block, Note):
                yield entry.key, block
                continue
            is_warning = entry.weight == WARNING
            remarks_said += not is_warning
            if is_warning or remarks_said <= case.rows:
                yield entry.weight.name, block
    for line in more(remarks_said, case.rows, "note", case.rest):
        yield FACT.name, Paragraph(line)


def said(entry: Entry, case: Case) -> Blocks:
    """What an entry says in a case; a warning says that it is one."""
    kind = "Warning" if entry.weight == WARNING else "Note"
    for block in entry.of(case):
        if isinstance(block, Note):
            yield Note(f"{kind}: {block.lead}", block.items)
        else:
            yield block


def warnings(case: Case) -> Notes:
    """What nobody should miss, as sentences: the warnings first."""
    return (*alerts(case), *remarks(case))


def alerts(case: Case) -> Notes:
    """The warnings alone."""
    return tuple(_notes(case, (entry for entry in ENTRIES if entry.weight == WARNING)))


def remarks(case: Case) -> Notes:
    """What else a careful reader should know."""
    return tuple(_notes(case, (entry for entry in ENTRIES if entry.weight != WARNING)))


def _notes(case: Case, entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        notes = [block for block in entry.of(case) if isinstance(block, Note)]
        yield from texts_of(notes)


def as_values(case: Case) -> Values:
    """Everything that applies, by its key, for programs."""
    values: Values = {}
    for entry in ENTRIES:
        blocks = list(entry.of(case))
        if blocks:
            tables = [block for block in blocks if isinstance(block, Table)]
            values[entry.key] = {
                "weight": entry.weight.name.lower(),
                "topic": entry.topic,
                "says": texts_of(blocks),
                "tables": [
                    {"label": one.label, "heads": one.heads, "rows": one.rows}
                    for one in tables
                ],
            }
    return values
