"""The result of an evaluation, and its words: verdict, risk, utility, fidelity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.data.levels import cell_text
from fairmaxent.data.table import Names
from fairmaxent.document import Block, Blocks, Note, Paragraph, Table
from fairmaxent.document.text import sections_text
from fairmaxent.document.words import counted
from fairmaxent.errors import cut
from fairmaxent.evaluation import attacks
from fairmaxent.evaluation.quality import Fidelity, Utility
from fairmaxent.metrics.trial import Score
from fairmaxent.plain_text import Values, plain_json

_NAMES = {"inference": "inference, average"}
# Each attack: what it does, and when it succeeds.
ATTACKS = {
    "copies": (
        "copying real rows",
        "a person is in the new rows with all their values, more often than by chance",
    ),
    "near copies": (
        "copying real rows with small changes",
        "a person is in the new rows but for small steps in numbers, more often than by"
        " chance",
    ),
    "singling out": (
        "singling people out",
        "a description made from a new row fits exactly one person",
    ),
    "linkability": (
        "linking two tables about the same people",
        "two halves of a person's columns lead to the same new row",
    ),
    "inference": (
        "guessing a column from the others",
        "a column of a person is guessed from all others",
    ),
    "membership": (
        "telling who was in the real table",
        "a person of the table is nearer to a new row than others are",
    ),
}
# People who are among the new rows, by attack.
_FOUND = {
    "copies": "are in the new rows with all their values",
    "near copies": "have a new row that differs from theirs by small steps in numbers",
}
_WIDTH = 80
_GROUPS = 12  # shown before the rest is counted
_NAMED = 3  # columns that differ most
_SETS = {
    1: "single columns",
    2: "pairs of columns",
    3: "triples of columns",
}
_STATES = {
    "high": "bad",
    "low": "good",
    "uncertain": "short",
}


@dataclass(frozen=True)
class Risks:
    """What the new rows give away; None where an attack could not be tried."""

    copies: attacks.CopiedRows
    near_copies: attacks.FoundPeople | None  # needs control rows, and numbers
    singling_out: attacks.Risk | None
    linkability: attacks.Risk | None
    inference: attacks.Inference | None
    membership: attacks.Membership | None  # needs control rows
    closest_record: attacks.ClosestRecord

    def tried(self) -> dict[str, attacks.Risk]:
        """The attacks that were tried, with their risk; of inference, the average."""
        risks = {
            **{name: who.risk for name, who in self.found().items()},
            "singling out": self.singling_out,
            "linkability": self.linkability,
        }
        if self.inference is not None:
            risks["inference"] = self.inference.average
        if self.membership is not None:
            risks["membership"] = self.membership.risk
        return {name: risk for name, risk in risks.items() if risk is not None}

    def judgements(self) -> dict[str, attacks.Judgement]:
        """What is to be said of each attack that was tried."""
        judged = {name: risk.judged() for name, risk in self.tried().items()}
        judged.update({name: who.judged() for name, who in self.found().items()})
        if self.inference is not None:
            judged["inference"] = self.inference.judged()
        judged.setdefault("membership", "needs control")
        return judged

    def found(self) -> dict[str, attacks.FoundPeople]:
        """The people who are among the new rows, by attack."""
        found = {"copies": self.copies, "near copies": self.near_copies}
        return {name: who for name, who in found.items() if who is not None}

    def judged_as(self, judgement: attacks.Judgement) -> list[str]:
        """The attacks of which this is to be said."""
        judged = self.judgements()
        return [name for name in judged if judged[name] == judgement]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How faithful new rows are, what a model learns of them, what they give away."""

    real_rows: int
    new_rows: int
    control_rows: int
    columns: Names
    left_out: Names  # columns of the real table that the new rows do not have
    confidence: float
    fidelity: Fidelity
    utility: Utility | None  # None: no outcome was named
    risks: Risks

    @property
    def flagged(self) -> Names:
        """The risks that are surely too high: sharing would give people away."""
        return tuple(self.risks.judged_as("high"))

    @property
    def verdict(self) -> str:
        """Whether the rows may be shared, in a few sentences."""
        return " ".join(verdict(self))

    def to_dict(self) -> Values:
        """Everything as plain Python values, for JSON; None for infinite numbers."""
        return {
            "verdict": self.verdict,
            "flagged": list(self.flagged),
            "judgements": self.risks.judgements(),
            **plain_json(self),
        }

    def __repr__(self) -> str:
        return evaluation_text(self)


def verdict(measured: Evaluation) -> Iterator[str]:
    """Whether to share the rows, why, and how sure that is."""
    copies = measured.risks.copies
    overlap = copies.control_overlap
    if overlap is not None and overlap.judged() == "high":
        yield (
            f"{_percent(overlap.rate)} of the control rows are rows of the real table,"
            " so risks are larger than they look: pass rows of other people."
        )
    flagged = measured.flagged
    found = measured.risks.found()
    if flagged:
        above = ""
        if not found.keys() >= set(flagged):
            above = f", with risks above the limit of {100 * attacks.LIMIT:g} %"
        yield (
            "Do not treat these rows as anonymous: they give away people of the real"
            f" table{above}."
        )
    # more than chance explains, be they above the limit or not
    copied = [name for name, who in found.items() if who.risk.low > 0]
    for name in copied:
        yield _copied(name, found[name])
    if flagged:
        for name in flagged:
            if name not in found:
                yield _reason(name, measured)
        for name in found.keys() - set(copied):
            if found[name].judged() == "uncertain":
                yield _counted(name, found[name])
        return
    yield from _unflagged(measured, copied)


def _unflagged(measured: Evaluation, copied: Sequence[str]) -> Iterator[str]:
    """What is known, and what is not, where no risk is above its limit."""
    unsure = [
        name for name in measured.risks.judged_as("uncertain") if name not in copied
    ]
    open_ones = measured.risks.judged_as("needs control")
    if not open_ones:
        which = "other attack" if copied else "attack"
        how = "clearly did" if unsure else "did notably"
        yield (
            f"No {which} {how} better on people of the real table than on other people."
        )
    elif "copies" in unsure:
        yield "It is not clear whether real rows were copied."
    elif not copied:
        yield "No more rows were copied than chance explains."
    if unsure:
        yield (
            f"It is too close to call for {_named(unsure)}; more rows, or more attacks,"
            " make the intervals narrower."
        )
    for name, who in measured.risks.found().items():
        if name in unsure:
            yield _counted(name, who)
    if open_ones:
        yield (
            f"Without control rows, little is known about {_named(open_ones)}. Pass"
            " rows of other people, which were not used to make the new ones."
        )
    yield (
        "This is no guarantee: other attacks may succeed. Only a differentially private"
        " fit guarantees anything."
    )


def _named(names: Sequence[str]) -> str:
    *others, last = (ATTACKS[name][0] for name in names)
    if others:
        return f"{', '.join(others)} and {last}"
    return last


def _counted(attack: str, found: attacks.FoundPeople) -> str:
    """How many people are in the new rows."""
    who = f"{found.people:,} of the {found.risk.attempts:,} people of the real table"
    chance = f"chance explains about {found.by_chance:,.0f}"
    return f"{who} {_FOUND[attack]}; {chance}."


def _copied(attack: str, found: attacks.FoundPeople) -> str:
    """Who was copied, in people, and what the limit says of it."""
    places = {"high": "is above", "low": "is within"}
    place = places.get(found.judged(), "may be above")
    limit = f"That {place} the limit of {found.limit:,.3g} beyond chance."
    return f"{_counted(attack, found)} {limit}"


def _reason(attack: str, measured: Evaluation) -> str:
    """Why the risk of an attack is too high."""
    risks = measured.risks
    risk = risks.tried()[attack]
    if attack == "membership":
        return (
            f"In {_percent(risk.rate)} of pairs, the person of the real table is nearer"
            " to a new row than the other person; 50 % would be chance."
        )
    happens = ATTACKS[attack][1]
    if risks.inference is not None and attack == "inference":
        name = risks.inference.worst
        happens = (
            "somebody who knows all other columns of a person guesses"
            f" {_shown(name, 40)!r} right"
        )
        risk = risks.inference.by_column[name]
    outside = ""
    if risk.control_rate is not None:
        outside = f", and for other people in {_percent(risk.control_rate)}"
    beginning = f"{happens[0].upper()}{happens[1:]}"
    return f"{beginning} in {_percent(risk.rate)} of cases{outside}."


def _percent(share: float) -> str:
    """A share with as many digits as matter."""
    percent = 100 * share
    if percent >= 10 or percent == 0:
        return f"{percent:.0f} %"
    return f"{percent:.1f} %"


def _shown(name: str, most: int) -> str:
    return cut(cell_text(name), most)


def evaluation_text(measured: Evaluation, notes: Sequence[str] = ()) -> str:
    """Everything that was measured; ``notes`` say how the tables were read."""
    sizes = [
        (measured.real_rows, "real row"),
        (measured.new_rows, "new row"),
        (measured.control_rows, "control row"),
    ]
    tables = ", ".join(
        counted(number, noun) if number else f"no {noun}s" for number, noun in sizes
    )
    record = measured.risks.closest_record
    others = ""
    if record.others is not None:
        others = f" (of control rows: {record.others:.3f})"
    distance = (
        "Median distance of a new row to the closest real row:"
        f" {record.new:.3f}{others}. {record.why_not}"
    )
    meaning = (
        "This is how often each attack succeeds; without control rows, the risk is at"
        " most that."
    )
    if measured.control_rows:
        meaning = (
            "A risk of 0 means that an attack succeeds as often on other people (the"
            " control rows), 1 that it always succeeds."
        )
    limits = (
        f"{100 * attacks.LIMIT:g} % (copies: above {100 * attacks.MOST_COPIES:g} %)"
    )
    sections: list[Sequence[Block]] = [
        [Paragraph(measured.verdict)],
        [Paragraph(f"{tables}; {counted(len(measured.columns), 'column')}")],
        [
            risk_table(measured),
            Paragraph(
                f"{meaning} A risk is called high if its whole interval is above"
                f" {limits}."
            ),
        ],
        [Paragraph(distance)],
        *_utility_sections(measured),
        list(_fidelity_blocks(measured)),
        [Note(f"Note: {note}") for note in (*notes, *_notes(measured))],
    ]
    return sections_text(sections, width=_WIDTH)


def risk_table(measured: Evaluation) -> Table:
    """Each attack: its risk with the interval, how often it succeeds, the judgement."""
    risks = measured.risks
    judged = risks.judgements()
    rows: list[tuple[str, ...]] = []
    for name, risk in risks.tried().items():
        rates = ("", "") if name == "membership" else _rates(risk)
        rows.append((_NAMES.get(name, name), *_cells(risk), *rates, judged[name]))
        if name == "inference" and risks.inference is not None:
            column = risks.inference.worst
            worst = risks.inference.by_column[column]
            label = f"  most: {_shown(column, 16)}"
            rows.append((label, *_cells(worst), *_rates(worst), ""))
    heads = (
        "risk" if measured.control_rows else "risk, at most",
        "",
        _sure(measured),
        "succeeds",
        "on others",
        "",
    )
    return Table(
        "Risks",
        heads,
        tuple(rows),
        state=5,
        states=tuple(_STATES.get(row[-1], "") for row in rows),
    )


def _rates(risk: attacks.Risk) -> tuple[str, str]:
    control = ""
    if risk.control_rate is not None:
        control = f"{risk.control_rate:.1%}"
    return f"{risk.rate:.1%}", control


def _cells(score: Score | None) -> tuple[str, str]:
    if score is None:
        return ("–", "")
    return (f"{score.value:.3f}", f"{score.low:.3f} … {score.high:.3f}")


def _sure(measured: Evaluation) -> str:
    return f"{100 * measured.confidence:g} % interval"


def utility_table(measured: Evaluation, utility: Utility) -> Table:
    """How well a model decides that was trained on the new rows, or on the real."""
    models = {"new rows": utility.new, "real rows": utility.real}
    rows = [
        (name, *_cells(model.auc), *_cells(model.accuracy))
        for name, model in models.items()
    ]
    heads = ("trained on", "AUC", _sure(measured), "accuracy", _sure(measured))
    return Table("A model trained on the new rows", heads, tuple(rows))


def _utility_sections(measured: Evaluation) -> Iterator[Sequence[Block]]:
    utility = measured.utility
    if utility is None:
        return
    judged = f"{utility.people:,} {utility.judged_on} rows that it has not seen"
    text = (
        f"How well {utility.model} predicts {cell_text(utility.outcome)!r} of {judged}."
    )
    if utility.auc_lost is not None:
        text += (
            f" The new rows cost {utility.auc_lost.value:.3f} of AUC"
            f" ({_cells(utility.auc_lost)[1]})."
        )
    if utility.judged_on == "real":
        text += (
            " The new rows were made from these people too, so if rows were copied, the"
            " first line is too good."
        )
    yield [utility_table(measured, utility), Paragraph(text)]
    if utility.new.groups:
        yield list(_group_blocks(measured, utility))


def _group_blocks(measured: Evaluation, utility: Utility) -> Blocks:
    groups = utility.new.groups
    title = "accuracy" if groups[0].favourable is None else "favourable"
    rows = []
    for new, real in list(zip(groups, utility.real.groups, strict=True))[:_GROUPS]:
        name = cut(f"{cell_text(new.column)} = {cell_text(new.group)}", 30)
        score = _cells(new.favourable or new.accuracy)
        real_score, _ = _cells(real.favourable or real.accuracy)
        rows.append((name, f"{new.people:,}", *score, real_score))
    heads = ("group", "people", title, _sure(measured), "real rows")
    yield Table("Groups", heads, tuple(rows))
    if len(groups) > _GROUPS:
        yield Paragraph(f"and {len(groups) - _GROUPS:,} more groups")
    for name in utility.real.rates:
        new_rate = _with_range(utility.new.rates[name])
        real_rate = _with_range(utility.real.rates[name])
        yield Paragraph(
            f"Statistical rate of the decisions for {cell_text(name)!r}: {new_rate}"
            f" trained on the new rows, {real_rate} on the real ones."
        )


def _with_range(score: Score | None) -> str:
    if score is None:
        return "not defined"
    return f"{score.value:.2f} ({score.low:.2f} … {score.high:.2f})"


def fidelity_table(measured: Evaluation) -> Table:
    """How much the new rows differ from the real ones."""
    rows = [
        (
            _SETS[one.columns],
            f"{one.sets:,}",
            f"{one.value:.4f}",
            f"{one.by_chance:.4f}",
        )
        for one in measured.fidelity.total_variation
    ]
    heads = ("differences in", "number", "mean", "by chance")
    return Table("Differences from the real rows", heads, tuple(rows))


def _fidelity_blocks(measured: Evaluation) -> Blocks:
    yield fidelity_table(measured)
    by_column = measured.fidelity.by_column
    worst = sorted(by_column, key=lambda name: -by_column[name])[:_NAMED]
    farthest = ", ".join(f"{_shown(name, 24)} {by_column[name]:.3f}" for name in worst)
    yield Paragraph(
        "Share of rows that would have to change (total variation); by chance: the same"
        f" for rows drawn at random from the real table. Farthest apart: {farthest}."
    )


def _notes(measured: Evaluation) -> Iterator[str]:
    if measured.left_out:
        more = " and more" if len(measured.left_out) > 8 else ""
        names = ", ".join(map(repr, measured.left_out[:8]))
        yield f"not compared, because the new rows do not have them: {names}{more}"
    if measured.risks.singling_out is None:
        yield "singling out was not tried: no description fits exactly one new row"
    if measured.risks.inference is None:
        yield "linkability and inference were not tried: they need at least two columns"
