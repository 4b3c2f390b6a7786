"""What a result must not be used for; each sentence completes "Do not use this …"."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.fit.share_text import percent
from fairmaxent.report.build import Report
from fairmaxent.report.number_text import short_name

_NAME = 40  # characters of a name


def prohibitions(report: Report) -> Iterator[str]:
    """The uses that this result does not bear, the most dangerous first."""
    yield _as_anonymous(report)
    yield _as_facts(report)
    tiny = [short_name(group.name, _NAME) for group in report.costs.groups if group.beyond_line]
    if tiny:
        others = f" and {len(tiny) - 1} more groups" if len(tiny) > 2 else f" and {tiny[1]}" if len(tiny) == 2 else ""
        yield f"to say anything about {tiny[0]}{others}: too much rests on too few people."
    yield _as_proof(report)
    columns = short_name(", ".join(report.protected), _NAME)
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and only by how often they have "
        "the outcome."
    )


def _as_anonymous(report: Report) -> str:
    if report.promise is not None:
        return "together with another private fit of the same table without adding up what both reveal (ε and δ)."
    if report.copies is None:
        return "as anonymous data, and do not share it more widely than the data: every row is a real one."
    known = report.copies.same_values
    share = report.copies.same_levels if known is None else known
    how = "copies of real ones" if known is not None else "like real ones in every column"
    return f"as anonymous data, and do not share it more widely than the data: {percent(share)} of the rows are {how}."


def _as_facts(report: Report) -> str:
    what = "outcomes were changed" if report.relabelled else "shares and rates were changed"
    return f"for statistics about the real world, or to judge a person: {what} on purpose."


def _as_proof(report: Report) -> str:
    known = report.certificate["estimate"]
    expected = {} if known is None else known["after"]["by_predictions"]
    rates = {name: rate for name, rate in expected.items() if rate is not None}
    test = "test the decisions of your own model on people it has not seen"
    if not rates:
        return f"as proof that a model trained on it is fair: {test}."
    name = min(rates, key=lambda grouping: rates[grouping])
    least = f"expected: {rates[name]:.3f} for {short_name(name, _NAME)}"
    return f"as proof that a model trained on it is fair ({least}): {test}."
