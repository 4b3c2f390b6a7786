"""The uses that a result does not bear."""

from collections.abc import Iterator

from fairmaxent.document import Blocks, Listing
from fairmaxent.document.words import short_name
from fairmaxent.facts.fitted import Facts
from fairmaxent.telling.case import Case
from fairmaxent.telling.costs import few_people

_SAME = 1e-9  # shares that differ by less are the same


def not_for(case: Case) -> Blocks:
    """What nobody should do with the output, the most dangerous first."""
    if case.output is not None:
        yield Listing(tuple(_prohibitions(case)))


def _prohibitions(case: Case) -> Iterator[str]:
    facts = case.facts
    if facts.provenance.spends:
        yield (
            "together with another private fit of the same people without adding up"
            " what both reveal (their ρ)."
        )
    else:
        yield (
            "as anonymous data, and do not share it more widely than the data:"
            f" {_why_not_anonymous(case)}."
        )
    changed = _changed(case)
    if changed:
        yield (
            "for statistics about the real world, or to judge a person:"
            f" {changed} on purpose."
        )
    if any(few_people(case)):
        yield (
            "to say anything about the groups in the warning: it rests on too few"
            " people, or too much on one of them."
        )
    yield (
        "as proof that a model trained on it is fair: test the decisions of your own"
        " model on people it has not seen."
    )
    columns = short_name(", ".join(_columns(facts)))
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and"
        f" only by {_compared_by(facts)}."
    )


def _why_not_anonymous(case: Case) -> str:
    assert case.output is not None
    if case.output.mode == "weights" or not case.output.rows:
        return "every row is a real one"
    return "rows may be copies of real ones"


def _changed(case: Case) -> str:
    """What was changed, if anything was."""
    assert case.output is not None
    if case.output.is_relabelled:
        return "outcomes were changed"
    rows = case.output.rows
    if case.output.mode == "top-up":  # whose rates are those of old and new rows
        rows += case.facts.rows
    what: list[str] = []
    if any(_moves(one.share_before, one.share_after, rows) for one in case.groups):
        what.append("shares")
    if any(
        _moves(one.rate_before, one.rate_after, rows * one.share_after)
        for one in case.groups
    ):
        what.append("rates")
    return f"{' and '.join(what)} were changed" if what else ""


def _moves(before: float, after: float, rows: float) -> bool:
    """Whether a share changes by more than whole rows make it: one above, one below."""
    rounding = 2 / rows if rows else 0.0
    return abs(after - before) > _SAME + rounding


def _columns(facts: Facts) -> list[str]:
    measure = facts.measure
    names = [measure.columns_of(name) for name, _ in measure.of_first_outcome]
    return list(dict.fromkeys(names))


def _compared_by(facts: Facts) -> str:
    """By what groups were compared, as far as anything was asked for."""
    ways = []
    sizes = facts.wanted["representation_rate"].values()
    if facts.targets or any(rate is not None for rate in sizes):
        ways.append("how many they are")
    if facts.means:
        ways.append("the mean of their outcome")
    if facts.decisions is not None:
        ways.append("what one model decides for them")
    elif any(rate is not None for rate in facts.wanted["statistical_rate"].values()):
        ways.append("how often they have the outcome")
    return " and ".join(ways) or "how often they have the outcome"
