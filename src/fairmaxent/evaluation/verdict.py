"""The verdict on new rows: may they be shared? In plain sentences, the answer first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairmaxent.data.text_table import cell_text
from fairmaxent.errors import cut
from fairmaxent.evaluation.measurements import Measurements
from fairmaxent.evaluation.success import Risk

ATTACKS = {
    "copies": "copying real rows",
    "singling out": "singling people out",
    "linkability": "linking two tables about the same people",
    "inference": "guessing a column from the others",
    "membership": "telling who was in the real table",
}


def verdict(measured: Measurements) -> Iterator[str]:
    """Whether to share the rows, why, and how sure that is."""
    judged = measured.risks.judgements()
    unsure = [name for name, one in judged.items() if one == "uncertain"]
    open_ones = [name for name, one in judged.items() if one == "needs control"]
    overlap = measured.risks.copies.control_overlap
    if overlap is not None and overlap.judged() == "high":
        yield (
            f"{_percent(overlap.rate)} of the control rows are rows of the real table, so risks are larger than they "
            "look: pass rows of other people."
        )
    if measured.flagged:
        yield "Do not treat these rows as anonymous: they give away people of the real table."
        for name in measured.flagged:
            yield _REASONS[name](measured)
        lone = measured.risks.copies.lone_values
        if lone and "copies" not in measured.flagged:
            name = max(lone, key=lambda name: lone[name])
            shown = cut(cell_text(name), 40)
            yield (
                f"Rare values may be the cause: {lone[name]:,} values of {shown!r} in the new rows belong to only one "
                "person of the real table."
            )
        return
    yield _not_flagged(unsure, open_ones)
    if unsure:
        yield (
            f"It is too close to call for {_listed([ATTACKS[name] for name in unsure])}; more rows, or more attacks, "
            "make the intervals narrower."
        )
    if open_ones:
        yield (
            f"Without control rows, little is known about {_listed([ATTACKS[name] for name in open_ones])}. Pass rows "
            "of other people, which were not used to make the new ones."
        )
    yield "This is no guarantee: other attacks may succeed. Only a differentially private fit guarantees anything."


def _not_flagged(unsure: Sequence[str], open_ones: Sequence[str]) -> str:
    if open_ones:
        return (
            "It is not clear whether real rows were copied."
            if "copies" in unsure
            else "No more rows were copied than chance explains."
        )
    if unsure:
        return "No attack clearly did better on people of the real table than on other people."
    return "No attack did notably better on people of the real table than on other people."


def _listed(things: Sequence[str]) -> str:
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}"


# ---------------------------------------------------------------- why a risk is too high


def _copies(measured: Measurements) -> str:
    copies = measured.risks.copies
    share = _percent(copies.risk.rate)
    return (
        f"{copies.copies:,} of the {measured.new_rows:,} new rows are copies of a real row ({share}); "
        f"by chance it would be about {_percent(copies.by_chance)}."
    )


def _singling_out(measured: Measurements) -> str:
    return (
        "Descriptions that fit exactly one new row also fit exactly one real person "
        f"{_against(measured.risks.singling_out)}."
    )


def _linkability(measured: Measurements) -> str:
    return f"Two halves of a person's columns lead to the same new row {_against(measured.risks.linkability)}."


def _inference(measured: Measurements) -> str:
    inference = measured.risks.inference
    assert inference is not None
    name = inference.worst
    return (
        f"Somebody who knows all other columns of a person guesses {cut(cell_text(name), 40)!r} right "
        f"{_against(inference.by_column[name])}."
    )


def _membership(measured: Measurements) -> str:
    membership = measured.risks.membership
    assert membership is not None
    return (
        f"In {_percent(membership.auc)} of pairs, the person of the real table is nearer to a new row than the other "
        "person; 50 % would be chance."
    )


_REASONS: dict[str, Callable[[Measurements], str]] = {
    "copies": _copies,
    "singling out": _singling_out,
    "linkability": _linkability,
    "inference": _inference,
    "membership": _membership,
}


def _against(risk: Risk | None) -> str:
    assert risk is not None
    outside = "" if risk.control_rate is None else f", and for other people in {_percent(risk.control_rate)}"
    return f"in {_percent(risk.rate)} of cases{outside}"


def _percent(share: float) -> str:
    """A share with as many digits as matter.

    >>> _percent(0.617), _percent(0.0312), _percent(0.0)
    ('62 %', '3.1 %', '0 %')
    """
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"
