"""What may be shared, as text: copies of real rows, and what a private fit promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairmaxent.errors import Option
from fairmaxent.fit.cost_remarks import Remark
from fairmaxent.fit.facts import Facts
from fairmaxent.fit.share_text import percent
from fairmaxent.privacy.budget import Ledger


@dataclass(frozen=True)
class Copies:
    """What drawn rows that come from a real one are, and what that means for who shares them."""

    are: str
    mean: str


_EXACT = Copies("rows of the data", "sharing them means sharing real people")
_REDRAWN = Copies(
    "rows of the data but for their numbers, which are redrawn within bins",
    "sharing them can still give real people away",
)


def copies_of(*, redrawn: bool) -> Copies:
    """The words for copies, with their exact numbers or with others from the same bins."""
    return _REDRAWN if redrawn else _EXACT


def copies_line(facts: Facts) -> Remark:
    """How many drawn rows are copies of real rows; nothing if none is copied on purpose."""
    if not facts.copied_share:
        return ()
    copies = copies_of(redrawn=facts.redrawn is not None)
    return (
        f"copies: about {percent(facts.copied_share)} of drawn rows are {copies.are}, and {copies.mean}; "
        "for rows to share, use ",
        Option("release", value=True),
    )


def promise(ledger: Ledger) -> str:
    """What a private fit promises, in a sentence."""
    return (
        f"private with {ledger.privacy}: whatever anybody learns from this result, they would almost as likely have "
        "learned it without the row of any one person"
    )


def privacy_lines(ledger: Ledger) -> Iterator[str]:
    """What a private fit promises, and what its numbers are."""
    yield promise(ledger)
    yield (
        f"{len(ledger.spent)} looks at the table spent ρ = {ledger.rho:.6g} of {ledger.privacy.rho:.6g}; counts, and "
        "all numbers before, are noisy estimates, and the achieved rates are exact"
    )


def privacy_remarks(facts: Facts) -> Iterator[Remark]:
    """What a reader of a private result should know."""
    ledger = facts.privacy
    if ledger is None:
        return
    yield ("a second private fit of the same table reveals as much again: the ε and the δ of both add up",)
    if ledger.privacy.delta * facts.rows >= 1:
        yield (
            f"δ = {ledger.privacy.delta:g} is not below 1 divided by the number of rows (about {facts.rows:,}), so the "
            "promise may fail for somebody; choose a smaller ",
            Option("delta"),
        )
