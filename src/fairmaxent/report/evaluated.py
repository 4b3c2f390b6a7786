"""The evaluation of drawn rows in a report: what they give away, what a model learns from them, how faithful they are.

Attacks need people who were not in the table. So a fifth of the rows is set aside, the fit is made again from the rest,
and the rows drawn from it are judged, with the fifth as control rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.document import Block, Note, Paragraph, Table
from fairmaxent.engines.lazy_frame import open_lazy
from fairmaxent.errors import FairMaxEntError, InputError, Option
from fairmaxent.evaluation.evaluation import Evaluation, evaluate
from fairmaxent.evaluation.text import risk_rows, verdict
from fairmaxent.evaluation.utility import Estimated
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.pipeline import fit_frame
from fairmaxent.fit.request import Request
from fairmaxent.report.delivered import Mode

SET_ASIDE = 0.2
FEWEST = 100  # rows
_STREAM = 20_251_116  # draws of our own: data that were simulated with a plain seed do not share them


@dataclass(frozen=True)
class Evaluated:
    """What was judged, or why nothing was."""

    evaluation: Evaluation | None
    verdict: tuple[str, ...]  # sentences, the answer first
    flagged: tuple[str, ...]
    skipped: str | None


def evaluated(fit: Fit, data: Any, *, mode: Mode, iid: bool, spell: Callable[[Option], str] = str) -> Evaluated:
    """Judge rows that are drawn from a fit as this one's are; ``spell`` spells options in the reason why not."""
    if mode != "rows":
        raise InputError(
            Option("evaluate"), " judges new rows, and none were drawn; leave it out, or use ", Option("mode", "rows")
        )
    if fit.certificate.privacy is not None:
        raise InputError(
            Option("evaluate"),
            " compares with the real rows without noise, so a private report cannot have it; judge the drawn rows "
            "with fairmaxent.evaluate(), and keep the answer to yourself",
        )
    if data is None:
        raise InputError(Option("evaluate"), " needs the table that the fit was made from; pass it as ", Option("data"))
    reason = _cannot(fit, data)
    if reason is not None:
        return Evaluated(None, (), (), reason)
    try:
        result = _judged(fit.request, frames.open_frame(data), iid=iid)
    except FairMaxEntError as problem:  # a part of a small table may lack what the whole has
        return Evaluated(None, (), (), problem.spelled(spell))
    return Evaluated(result, tuple(verdict(result)), result.flagged, None)


def _cannot(fit: Fit, data: Any) -> str | None:
    """Why rows cannot be judged, if they cannot."""
    if not isinstance(fit.request, Request):
        return "the fit is one of the paper's configurations, which have other options"
    if open_lazy(data) is not None:
        return "the table is not in memory; judge the rows with 'fairmaxent evaluate'"
    if fit.table.size < FEWEST:
        return f"the table has {fit.table.size:,} rows, too few to set some aside (at least {FEWEST})"
    return None


def _judged(request: Any, table: nw.DataFrame[Any], *, iid: bool) -> Evaluation:
    order = np.random.default_rng(_STREAM).permutation(len(table))
    aside = round(SET_ASIDE * len(table))
    control, real = table[np.sort(order[:aside])], table[np.sort(order[aside:])]
    fit = fit_frame(real.to_native(), replace(request, estimate=None, progress=None))
    new = frames.open_frame(fit.sample(len(real), iid=iid))
    weight = [] if request.weight is None else [request.weight]
    return evaluate(
        real.drop(weight).to_native(),
        new.drop(weight).to_native(),
        control=control.drop(weight).to_native(),
        outcome=request.outcome,
        protected=request.protected_names,
        favourable=request.favourable,
    )


# ---------------------------------------------------------------- words and tables

_RISKS = {
    "copies": "a new row is a real row, more often than by chance",
    "singling out": "a description made from a new row fits exactly one person",
    "linkability": "two halves of a person's columns lead to the same new row",
    "inference, average": "a column of a person is guessed from all others",
    "membership": "a person of the table is nearer to a new row than others are",
}
_STATES: Mapping[str, str] = {"high": "bad", "low": "good", "uncertain": "short"}


def evaluation_blocks(judged: Evaluated | None) -> Iterator[Block]:
    """What the rows give away, what a model learns from them, and how faithful they are; nothing if nobody asked."""
    if judged is None:
        return
    evaluation = judged.evaluation
    if evaluation is None:
        yield Paragraph(f"The rows were not judged: {judged.skipped or ''}.")
        return
    answer, *reasons = judged.verdict
    yield from (Note(answer, tuple(reasons)), Paragraph(_how(evaluation)), _risk_table(evaluation))
    yield Paragraph(_closest(evaluation))
    if evaluation.utility is not None:
        yield Paragraph("The same model trained on the new and on the real rows, judged on the people set aside.")
        yield _utility_table(evaluation)
    yield Paragraph(
        "The share of rows that would have to change. By chance: the same for rows drawn at random from the real ones. "
        "A fair table differs on purpose, in the outcome and in what goes with it."
    )
    yield _fidelity_table(evaluation)


def _how(evaluation: Evaluation) -> str:
    """How the rows were judged."""
    return (
        f"{evaluation.control_rows:,} of the rows were set aside, and the fit was made again from the other "
        f"{evaluation.real_rows:,}. As many rows were drawn from it and attacked. A risk of 0 means that an attack "
        "does no better on people in the table than on those set aside, and 1 that it always succeeds."
    )


def _risk_table(evaluation: Evaluation) -> Table:
    """Each attack with its risk, the interval, and what is to be said of it."""
    rows, states = [], []
    for name, value, ends, rate, others, judged in risk_rows(evaluation):
        about = _RISKS.get(name, "the same, for the column at the greatest risk")
        rows.append((name.strip(), f"{value:.3f}", ends, rate or "–", others or "–", judged or "–", about))
        states.append(_STATES.get(judged, ""))
    sure = f"{100 * evaluation.confidence:g} % interval"
    heads = ("Attack", "Risk", sure, "Succeeds", "On those set aside", "Judged", "It succeeds if")
    return Table("Risks", heads, tuple(rows), state=5, states=tuple(states))


def _utility_table(evaluation: Evaluation) -> Table:
    """A model trained on the new rows, and on the real ones."""
    sure = f"{100 * evaluation.confidence:g} % interval"
    return Table(
        "A model trained on the new rows",
        ("Trained on", "AUC", sure, "Accuracy", sure),
        tuple(_learned(evaluation)),
    )


def _learned(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    utility = evaluation.utility
    for name, learned in () if utility is None else utility.models.items():
        yield name, *_cells(learned.auc), *_cells(learned.accuracy)


def _cells(estimated: Estimated | None) -> tuple[str, str]:
    if estimated is None:
        return "–", "–"
    return f"{estimated.value:.3f}", f"{estimated.low:.3f} … {estimated.high:.3f}"


def _fidelity_table(evaluation: Evaluation) -> Table:
    """How much the new rows differ from the real ones."""
    names = {1: "single columns", 2: "pairs of columns", 3: "triples of columns"}
    rows = tuple(
        (names[one.columns], f"{one.sets:,}", f"{one.value:.4f}", f"{one.by_chance:.4f}")
        for one in evaluation.fidelity.total_variation
    )
    return Table("Differences from the real rows", ("Differences in", "Number", "Mean", "By chance"), rows)


def _closest(evaluation: Evaluation) -> str:
    """The distance to the closest record, with the reason not to rely on it."""
    record = evaluation.risks.closest_record
    return (
        f"Median distance of a new row to the closest real row: {record.new:.3f}; of those set aside: "
        f"{record.others or 0:.3f}. {record.why_not}"
    )
