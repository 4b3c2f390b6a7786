"""What an evaluation measured, and its words: may the new rows be shared?

The verdict gives the answer first, in plain sentences. The text has 80 columns: the verdict, then risk, utility and
fidelity, each with how sure it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.data.text_table import cell_text, text_table
from fairmaxent.document.words import counted
from fairmaxent.errors import cut
from fairmaxent.evaluation.attacks import LIMIT, MOST_COPIES, CopiedRows, Inference, Judgement, Membership, Risk
from fairmaxent.evaluation.fidelity import Fidelity
from fairmaxent.evaluation.nearest import ClosestRecord
from fairmaxent.evaluation.utility import Estimated, GroupScores, Utility


@dataclass(frozen=True)
class Risks:
    """What the new rows give away; None where an attack could not be tried."""

    copies: CopiedRows
    singling_out: Risk | None
    linkability: Risk | None
    inference: Inference | None
    membership: Membership | None
    """Needs control rows."""
    closest_record: ClosestRecord

    def tried(self) -> dict[str, Risk]:
        """The attacks that were tried on people one by one, with their risk; of inference, the average."""
        average = None if self.inference is None else self.inference.average
        risks = {"singling out": self.singling_out, "linkability": self.linkability, "inference": average}
        return {"copies": self.copies.risk} | {name: risk for name, risk in risks.items() if risk is not None}

    def judgements(self) -> dict[str, Judgement]:
        """What is to be said of each attack that was tried."""
        limits = {"copies": MOST_COPIES}
        judged = {name: risk.judged(limits.get(name, LIMIT)) for name, risk in self.tried().items()}
        if self.inference is not None:
            judged["inference"] = self.inference.judged(LIMIT)
        return judged | {"membership": "needs control" if self.membership is None else self.membership.judged(LIMIT)}


@dataclass(frozen=True)
class Measurements:
    """Everything that was measured of new rows."""

    real_rows: int
    new_rows: int
    control_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    """Columns of the real table that the new rows do not have."""
    confidence: float
    fidelity: Fidelity
    utility: Utility | None
    """None: no outcome was named."""
    risks: Risks
    library: str

    @property
    def flagged(self) -> tuple[str, ...]:
        """The risks that are surely too high: sharing the rows would give people away."""
        return tuple(name for name, judged in self.risks.judgements().items() if judged == "high")


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
            yield ATTACKS[name][1](measured)
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
            f"It is too close to call for {_named(unsure)}; more rows, or more attacks, make the intervals narrower."
        )
    if open_ones:
        yield (
            f"Without control rows, little is known about {_named(open_ones)}. Pass rows "
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


def _named(attacks: Sequence[str]) -> str:
    things = [ATTACKS[name][0] for name in attacks]
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


# Each attack: what it does, and why its risk is too high.
ATTACKS: dict[str, tuple[str, Callable[[Measurements], str]]] = {
    "copies": ("copying real rows", _copies),
    "singling out": ("singling people out", _singling_out),
    "linkability": ("linking two tables about the same people", _linkability),
    "inference": ("guessing a column from the others", _inference),
    "membership": ("telling who was in the real table", _membership),
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


_WIDTH = 80
_GROUPS = 12  # shown before the rest is counted
_SETS = {1: "single columns", 2: "pairs of columns", 3: "triples of columns"}

RiskRow = tuple[str, float, str, str, str, str]


def evaluation_text(measured: Measurements, notes: Sequence[str] = ()) -> str:
    """Everything that was measured; ``notes`` say how the tables were read."""
    parts = [
        _wrapped(" ".join(verdict(measured))),
        _sizes(measured),
        _risk_part(measured),
        *_utility_part(measured.utility, measured.confidence),
        _fidelity_part(measured),
        "\n".join(_wrapped(f"Note: {note}", indent="  ") for note in (*notes, *_notes(measured))),
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(cell_text(text), _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _sizes(measured: Measurements) -> str:
    control = f", {counted(measured.control_rows, 'control row')}" if measured.control_rows else ", no control rows"
    compared = counted(len(measured.columns), "column")
    return f"{counted(measured.real_rows, 'real row')}, {counted(measured.new_rows, 'new row')}{control}; {compared}"


# ---------------------------------------------------------------- risk


def risk_rows(measured: Measurements) -> Iterator[RiskRow]:
    """Each attack: its risk, the interval, how often it succeeded, and what is to be said of it."""
    risks, judged = measured.risks, measured.risks.judgements()
    rows: list[tuple[str, Risk, str]] = [(name, risk, judged[name]) for name, risk in risks.tried().items()]
    if risks.inference is not None:
        worst = risks.inference.worst
        rows[-1] = "inference, average", *rows[-1][1:]
        rows.append((f"  most: {cut(cell_text(worst), 16)}", risks.inference.by_column[worst], ""))
    for name, risk, judgement in rows:
        others = "" if risk.control_rate is None else f"{risk.control_rate:.1%}"
        yield name, risk.value, _ends((risk.low, risk.high)), f"{risk.rate:.1%}", others, judgement
    if risks.membership is not None:
        value, *ends = risks.membership.advantage
        yield "membership", value, _ends(ends), "", "", judged["membership"]


def _ends(ends: Sequence[float]) -> str:
    return f"{ends[0]:.3f} … {ends[1]:.3f}"


def _risk_part(measured: Measurements) -> str:
    bound = "" if measured.control_rows else ", at most"
    head = [f"risk{bound}", "", f"{100 * measured.confidence:g} % interval", "succeeds", "on others", ""]
    rows = [[name, f"{value:.3f}", *rest] for name, value, *rest in risk_rows(measured)]
    closest = measured.risks.closest_record
    others = "" if closest.others is None else f" (of control rows: {closest.others:.3f})"
    return "\n".join(
        [
            text_table(head, rows),
            _wrapped(_how_to_read_risk(measured)),
            "",
            _wrapped(
                f"Median distance of a new row to the closest real row: {closest.new:.3f}{others}. {closest.why_not}"
            ),
        ]
    )


def _how_to_read_risk(measured: Measurements) -> str:
    limits = f"{100 * LIMIT:g} % (copies: above {100 * MOST_COPIES:g} %)"
    limit = f"A risk is called high if its whole interval is above {limits}."
    if not measured.control_rows:
        return f"This is how often each attack succeeds; without control rows, the risk is at most that. {limit}"
    return (
        "A risk of 0 means that an attack succeeds as often on other people (the control rows), 1 that it always "
        f"succeeds. {limit}"
    )


# ---------------------------------------------------------------- utility


def _utility_part(utility: Utility | None, confidence: float) -> Iterator[str]:
    if utility is None:
        return
    sure = f"{100 * confidence:g} % interval"
    rows = [[name, *_cells(model.auc), *_cells(model.accuracy)] for name, model in utility.models.items()]
    about = "control rows" if utility.judged_on == "control" else "real rows"
    yield "\n".join(
        [
            text_table(["trained on", "AUC", sure, "accuracy", sure], rows),
            _wrapped(_how_to_read_utility(utility, about)),
        ]
    )
    if utility.new.groups:
        yield _group_table(utility, sure)


def _how_to_read_utility(utility: Utility, about: str) -> str:
    text = (
        f"How well {utility.model} predicts {cell_text(utility.outcome)!r} of {utility.people:,} {about} that it has "
        "not seen."
    )
    if utility.auc_lost is not None:
        lost = utility.auc_lost
        text += f" The new rows cost {lost.value:.3f} of AUC ({_ends((lost.low, lost.high))})."
    if utility.judged_on == "real":
        text += " The new rows were made from these people too, so if rows were copied, the first line is too good."
    return text


def _group_table(utility: Utility, sure: str) -> str:
    pairs = list(zip(utility.new.groups, utility.real.groups, strict=True))
    given = utility.new.groups[0].favourable is not None

    def cells(new: GroupScores, real: GroupScores) -> list[object]:
        one, other = (new.favourable, real.favourable) if given else (new.accuracy, real.accuracy)
        name = cut(f"{cell_text(new.column)} = {cell_text(new.group)}", 30)
        return [name, new.people, *_cells(one), _cells(other)[0]]

    title = "favourable" if given else "accuracy"
    table = text_table(["group", "people", title, sure, "real rows"], [cells(*pair) for pair in pairs[:_GROUPS]])
    more = [f"and {len(pairs) - _GROUPS:,} more groups"] if len(pairs) > _GROUPS else []
    rates = [
        _wrapped(
            f"Statistical rate of the decisions for {cell_text(name)!r}: {_rate(utility.new.rates[name])} trained on "
            f"the new rows, {_rate(rate)} on the real ones."
        )
        for name, rate in utility.real.rates.items()
    ]
    return "\n".join([table, *more, *rates])


def _cells(estimated: Estimated | None) -> tuple[str, str]:
    if estimated is None:
        return "–", ""
    return f"{estimated.value:.3f}", _ends((estimated.low, estimated.high))


def _rate(estimated: Estimated | None) -> str:
    if estimated is None:
        return "not defined"
    return f"{estimated.value:.2f} ({estimated.low:.2f} … {estimated.high:.2f})"


# ---------------------------------------------------------------- fidelity


def _fidelity_part(measured: Measurements) -> str:
    fidelity = measured.fidelity
    rows = [[_SETS[one.columns], one.sets, one.value, one.by_chance] for one in fidelity.total_variation]
    farthest = ", ".join(f"{cut(cell_text(name), 24)} {apart:.3f}" for name, apart in fidelity.farthest)
    lines = [
        text_table(["differences in", "number", "mean", "by chance"], rows),
        _wrapped(
            "Share of rows that would have to change (total variation); by chance: the same for rows drawn at random "
            f"from the real table. Farthest apart: {farthest}."
        ),
    ]
    quality = fidelity.quality
    if quality.score is not None:
        trends = "" if quality.trends is None else f", pair trends {quality.trends:.3f}"
        shapes = "" if quality.shapes is None else f"column shapes {quality.shapes:.3f}{trends}; "
        lines.append(_wrapped(f"Quality as SDMetrics defines it: {quality.score:.3f} ({shapes}1 is best)."))
    return "\n".join(lines)


# ---------------------------------------------------------------- notes


def _notes(measured: Measurements) -> Iterator[str]:
    if measured.left_out:
        yield (
            f"not compared, because the new rows do not have them: {', '.join(map(repr, measured.left_out[:8]))}"
            f"{' and more' if len(measured.left_out) > 8 else ''}"
        )
    risks = measured.risks
    if risks.singling_out is None:
        yield "singling out was not tried: no description fits exactly one new row"
    if risks.inference is None:
        yield "linkability and inference were not tried: they need at least two columns"
    lone = risks.copies.lone_values
    if lone:
        names = ", ".join(f"{cut(cell_text(name), 24)!r} ({count:,})" for name, count in list(lone.items())[:5])
        yield f"some values in the new rows belong to only one person of the real table: {names}"
