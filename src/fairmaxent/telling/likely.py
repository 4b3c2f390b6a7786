"""Groups that nobody wrote down: what is assumed, expected, and contradicted."""

from collections.abc import Iterator

from fairmaxent.data.likely import TOLD_BY, Reliability
from fairmaxent.document import Blocks, Note, Paragraph, Table
from fairmaxent.document.words import capital, three_digits
from fairmaxent.facts.groups import NEARLY, LikelyFacts, LikelyRate
from fairmaxent.fairness.likely import REFUTED
from fairmaxent.telling.case import Case


def likely_headlines(facts: LikelyFacts | None) -> Iterator[str]:
    """How fair the groups are by what is assumed, unless the data contradict it."""
    if facts is None:
        return
    verdict = _verdict(facts)
    for rate in facts.before:
        yield (
            f"The statistical rate of {rate.grouping} is about {rate.expected:.2f}"
            f"{_between(rate.interval)} for {facts.people} if what is assumed of"
            f" {facts.name} is true;"
            f" {verdict[0].lower()}{verdict[1:]}"
        )


def likely(case: Case) -> Blocks:
    """What is known of groups that are probabilities, and what is expected of them."""
    if case.facts.likely is not None:
        yield from likely_blocks(case.facts.likely)


def contradicted(case: Case) -> Blocks:
    """What the data refute, with what is expected and possible all the same."""
    facts = case.facts.likely
    if facts is None or not is_refuted(facts):
        return
    rates = facts.after or facts.before
    when = "after" if facts.after else "before"
    lead = f"what is assumed of {facts.name} does not hold. {_verdict(facts)}"
    if not facts.is_told:
        lead = f"no rate by {facts.name} can be learned. {_verdict(facts)}"
    yield Note(
        lead,
        tuple(
            f"The statistical rate of {rate.grouping} {when} is expected to be"
            f" {_expected(rate)}, and is"
            f" {_bounds(rate)} whatever is assumed."
            for rate in rates
        ),
    )


def likely_blocks(facts: LikelyFacts | None) -> Blocks:
    """What is assumed, what known groups say, both rates, and how many are needed."""
    if facts is None:
        return
    known = known_for_certain(facts)
    yield Paragraph(
        f"{capital(known)}. Assumed: {TOLD_BY[facts.told_by]}. {_verdict(facts)}"
    )
    if facts.reliability is not None:
        yield from _reliability_blocks(facts.reliability)
    for rates in zip(*filter(None, (facts.before, facts.after)), strict=True):
        rows = [
            (
                f"if {told_by} tell the group",
                *(three_digits(getattr(one, told_by)) for one in rates),
            )
            for told_by in TOLD_BY
        ]
        rows += [
            (f"expected by the true groups of {facts.people}", *map(_expected, rates)),
            ("whatever is assumed", *map(_bounds, rates)),
        ]
        heads = (f"statistical rate of {rates[0].grouping}", "before", "after")
        yield Table("Rates by the true groups", heads[: 1 + len(rates)], tuple(rows))
    if facts.needed is not None:
        yield Paragraph(
            f"About {facts.needed:,} people like these would be needed for an expected"
            f" rate that is nearly ({NEARLY:g} times) what was asked for."
        )


def known_for_certain(facts: LikelyFacts) -> str:
    """Of how many people the group is known, in a sentence."""
    if facts.reliability is None:
        return f"nobody's {facts.name} is known for certain"
    known = sum(facts.reliability.observed)
    return f"the {facts.name} of {known:,} people alone is known for certain"


def _reliability_blocks(found: Reliability) -> Blocks:
    """Whether the probabilities agree with the groups that are known."""
    yield Paragraph(
        f"The group of {sum(found.observed):,} people is known. That it is as far from"
        f" the probabilities by chance has p = {found.chance:.2g}."
    )
    rows = [
        (group, f"{expected:,.0f}", f"{observed:,}")
        for group, expected, observed in zip(
            found.groups, found.expected, found.observed, strict=True
        )
    ]
    yield Table(
        "Groups that are known",
        ("people of", "by the probabilities", "in truth"),
        tuple(rows),
    )


def is_refuted(facts: LikelyFacts) -> bool:
    """Whether the data contradict what is assumed, or can tell nothing at all."""
    if not facts.is_told or _known_groups_refute(facts):
        return True
    tested = facts.told_by == "names" and facts.contradiction is not None
    return tested and (facts.contradiction or 0.0) < REFUTED


def _known_groups_refute(facts: LikelyFacts) -> bool:
    return facts.reliability is not None and facts.reliability.chance < REFUTED


def _verdict(facts: LikelyFacts) -> str:
    """Whether the data contradict what is assumed."""
    if not facts.is_told:
        return (
            "But the probabilities are the same for everybody, so they tell nothing"
            f" about anybody's {facts.name}, and no rate by it can be learned."
        )
    if _known_groups_refute(facts):
        return (
            "But the groups that are known contradict the probabilities: look whether"
            " columns are swapped, or correct them (recalibrated)."
        )
    if facts.told_by == "columns":
        return "Nothing in the data can contradict that."
    if facts.contradiction is None:
        return "There is too little in the data to contradict that."
    if facts.contradiction >= REFUTED:
        return f"The data do not contradict that (p = {facts.contradiction:.2g})."
    return (
        f"The data contradict that (p = {facts.contradiction:.2g}): rates by the true"
        " groups may be others: compare within the strata of a column that says it (an"
        " income band, a region), or if the probabilities were predicted from columns,"
        " say so."
    )


def _expected(rate: LikelyRate) -> str:
    return f"{rate.expected:.3f}{_between(rate.interval)}"


def _bounds(rate: LikelyRate) -> str:
    return _between(rate.bounds).strip(" ()")


def _between(ends: tuple[float, float]) -> str:
    return f" ({ends[0]:.3f} to {ends[1]:.3f})"
