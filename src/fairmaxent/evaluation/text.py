"""An evaluation as text in 80 columns: the verdict, then risk, utility and fidelity, each with how sure it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from fairmaxent.data.text_table import cell_text, text_table
from fairmaxent.document.words import counted
from fairmaxent.errors import cut
from fairmaxent.evaluation.copied_rows import LIMIT as MOST_COPIES
from fairmaxent.evaluation.measurements import Measurements
from fairmaxent.evaluation.success import LIMIT
from fairmaxent.evaluation.utility import Estimated, GroupScores, Utility
from fairmaxent.evaluation.verdict import verdict

_WIDTH = 80
_GROUPS = 12  # shown before the rest is counted
_SETS = {1: "single columns", 2: "pairs of columns", 3: "triples of columns"}

RiskRow = tuple[str, float | None, str, str, str, str]


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
    tried = {"copies": risks.copies.risk, "singling out": risks.singling_out, "linkability": risks.linkability}
    for name, risk in tried.items():
        if risk is not None:
            yield _risk_row(name, risk.value, (risk.low, risk.high), risk.rate, risk.control_rate, judged[name])
    if risks.inference is not None:
        average, worst = risks.inference.average, risks.inference.by_column[risks.inference.worst]
        for name, risk, said in (
            ("inference, average", average, judged["inference"]),
            (f"  most: {cut(cell_text(risks.inference.worst), 16)}", worst, ""),
        ):
            yield _risk_row(name, risk.value, (risk.low, risk.high), risk.rate, risk.control_rate, said)
    if risks.membership is not None:
        value, *ends = risks.membership.advantage
        yield "membership", value, _ends(ends), "", "", judged["membership"]


def _risk_row(
    name: str, value: float, ends: tuple[float, float], rate: float, control: float | None, said: str
) -> RiskRow:
    return name, value, _ends(ends), f"{rate:.1%}", "" if control is None else f"{control:.1%}", said


def _ends(ends: Sequence[float]) -> str:
    return f"{ends[0]:.3f} … {ends[1]:.3f}"


def _risk_part(measured: Measurements) -> str:
    bound = "" if measured.control_rows else ", at most"
    head = [f"risk{bound}", "", f"{100 * measured.confidence:g} % interval", "succeeds", "on others", ""]
    rows = [[name, "" if value is None else f"{value:.3f}", *rest] for name, value, *rest in risk_rows(measured)]
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
    rows = []
    for name, learned in (("new rows", utility.new), ("real rows", utility.real)):
        rows.append([name, *_cells(learned.auc), *_cells(learned.accuracy)])
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
