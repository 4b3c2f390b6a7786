"""What the student of a relabelled fit decided about people it had not learned from, in words.

Everything is taken from the ``decisions`` of a certificate as plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Line = tuple[str, str, str, str]  # what, wanted, reached, 95% interval

HEAD = ("Decisions", "Wanted", "Reached", "95% interval")


def how(known: Mapping[str, Any]) -> str:
    """Say which model was tried out, how, and what became of the table's own rate."""
    seeing = ", which does not see the protected columns," if known["blind"] else ""
    means = (
        "The outcomes in the table are equally common in all groups as well, as far as was asked."
        if known["keeps_means"]
        else "For this, the outcomes in the table itself had to stay less equal than the decisions are."
    )
    return (
        f"The outcomes were changed for a model of this kind: {known['student']}{seeing} with decisions at a "
        f"probability of {known['threshold']:g} or more. It was trained on changed outcomes, each time without one of "
        f"{known['folds']} folds, and decided about the people of that fold{_rounds(known['rounds'])}. {means} Another "
        "kind of model may decide differently."
    )


def _rounds(rounds: int) -> str:
    return "" if rounds == 1 else f"; that was done in {rounds} rounds, and the best one was kept"


def lines(known: Mapping[str, Any], favourable: str) -> Iterator[Line]:
    """The rate of each grouping, and the share of each group that was decided for."""
    for rate in known["rates"]:
        wanted = "any" if rate["wanted"] is None else f"{rate['wanted']:.3f}"
        yield f"Statistical rate of {rate['grouping']}, {favourable}", wanted, _number(rate["rate"]), _interval(rate)
    for share in known["shares"]:
        yield f"{share['outcome']}, {share['group']}", "", _number(share["share"]), _interval(share)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(record: Mapping[str, Any]) -> str:
    return "" if record["low"] is None else f"{record['low']:.3f} to {record['high']:.3f}"
