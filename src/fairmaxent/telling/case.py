"""A case: a fit, and what was delivered of it; and the form of what is said of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from fairmaxent.data.levels import Notes
from fairmaxent.document import Block, Blocks, Heading, Listing, Note, Paragraph, Table
from fairmaxent.errors import Remark, Spell, spelled
from fairmaxent.facts.costs import GroupCost
from fairmaxent.facts.fitted import Facts
from fairmaxent.facts.groups import GroupChange
from fairmaxent.facts.output import DeliveredCosts, Mode, Output

Topic = Literal[
    "asked", "warning", "likely", "privacy", "costs", "reached", "model", "copies",
    "groups", "table", "not-for", "method",
]  # fmt: skip


class Weight(IntEnum):
    """How much a reader needs it: doors with little room take the first ones."""

    VERDICT = 0
    WARNING = 1
    COST = 2
    FACT = 3
    METHOD = 4


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is told of, and how the door spells options."""

    facts: Facts
    output: Output | None = None  # None: nothing was delivered, or nobody asks
    # of which it could be estimated what a model will do; None: nobody is to be told
    estimable: Mode | None = None
    groups: tuple[GroupChange, ...] = ()  # as they were delivered, or would be
    wishes: Notes = ()  # what was asked for, a sentence each
    spell: Spell = str
    rest: str = ""  # where the door shows what it has no room for
    rows: int = 12  # of a table, before the rest is counted

    @property
    def costs(self) -> DeliveredCosts:
        """What the output costs; if there is none, the fair distribution."""
        if self.output is not None:
            return self.output.costs
        return expected_costs(self.facts)

    def text_of(self, remark: Remark) -> str:
        """Join texts and options to one text, as the door's users type them."""
        return spelled(remark, self.spell)

    def notes(self, remarks: Iterable[Remark]) -> Blocks:
        """Remarks that nobody should miss."""
        for remark in remarks:
            yield Note(self.text_of(remark))


@dataclass(frozen=True)
class Entry:
    """One thing there is to say about a fit."""

    key: str  # its name in JSON, in papers.toml and in tests
    weight: Weight
    topic: Topic
    of: Callable[[Case], Iterable[Block]]  # no block: it does not apply


def expected_costs(facts: Facts) -> DeliveredCosts:
    """The costs of the fair distribution itself."""
    groups: tuple[GroupCost, ...] = ()
    worst_cell = None
    if facts.costs is not None:
        groups = facts.costs.groups
        worst_cell = facts.costs.worst_cell
    return DeliveredCosts(
        outcomes=facts.outcomes_compared,
        groups=groups,
        worst_cell=worst_cell,
        filled=sum(facts.filled_shares),
        counted=False,
    )


def texts_of(blocks: Iterable[Block]) -> list[str]:
    """The sentences of some blocks, without their tables."""
    texts: list[str] = []
    for block in blocks:
        match block:
            case Heading(text) | Paragraph(text):
                texts.append(text)
            case Note(lead, items):
                texts.append(" ".join([lead, *items]))
            case Listing(items):
                texts += items
            case Table():
                pass
    return texts
