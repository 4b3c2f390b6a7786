"""The evaluation of drawn rows in a report: what they give away, what a model learns from them, how faithful they are.

Attacks need people who were not in the table: a fifth is set aside as control rows, and the rest is fitted again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.document import Block, Note, Paragraph
from fairmaxent.engines.lazy_frame import open_lazy
from fairmaxent.errors import FairMaxEntError, InputError, Option
from fairmaxent.evaluation.evaluation import evaluate
from fairmaxent.evaluation.result import ATTACKS, Evaluation, fidelity_table, risk_table, utility_table, verdict
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
    if not isinstance(fit.request, Request):
        reason = "the fit is one of the paper's configurations, which have other options"
    elif open_lazy(data) is not None:
        reason = "the table is not in memory; judge the rows with 'fairmaxent evaluate'"
    elif fit.table.size < FEWEST:
        reason = f"the table has {fit.table.size:,} rows, too few to set some aside (at least {FEWEST})"
    else:
        try:
            result = _judged(fit.request, frames.open_frame(data), iid=iid)
        except FairMaxEntError as problem:  # a part of a small table may lack what the whole has
            reason = problem.spelled(spell)
        else:
            return Evaluated(result, tuple(verdict(result)), result.flagged, None)
    return Evaluated(None, (), (), reason)


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


def evaluation_blocks(judged: Evaluated | None) -> Iterator[Block]:
    """What the rows give away, what a model learns from them, and how faithful they are; nothing if nobody asked."""
    if judged is None:
        return
    evaluation = judged.evaluation
    if evaluation is None:
        yield Paragraph(f"The rows were not judged: {judged.skipped or ''}.")
        return
    answer, *reasons = judged.verdict
    yield Note(answer, tuple(reasons))
    yield Paragraph(
        f"{evaluation.control_rows:,} of the rows were set aside, and the fit was made again from the other "
        f"{evaluation.real_rows:,}. As many rows were drawn from it and attacked. A risk of 0 means that an attack "
        "does no better on people in the table than on those set aside, and 1 that it always succeeds."
    )
    risks, about = risk_table(evaluation).titled(), {name: success for name, (_, success) in ATTACKS.items()}
    heads = ("Attack", "Risk", risks.heads[2], "Succeeds", "On those set aside", "Judged", "It succeeds if")
    others = "the same, for the column at the greatest risk"
    rows = tuple((*row, about.get(row[0].partition(",")[0], others)) for row in risks.rows)
    yield replace(risks, heads=heads, rows=rows)
    record = evaluation.risks.closest_record
    yield Paragraph(
        f"Median distance of a new row to the closest real row: {record.new:.3f}; of those set aside: "
        f"{record.others or 0:.3f}. {record.why_not}"
    )
    if evaluation.utility is not None:
        yield Paragraph("The same model trained on the new and on the real rows, judged on the people set aside.")
        yield utility_table(evaluation, evaluation.utility).titled()
    yield Paragraph(
        "The share of rows that would have to change. By chance: the same for rows drawn at random from the real ones. "
        "A fair table differs on purpose, in the outcome and in what goes with it."
    )
    yield fidelity_table(evaluation).titled()
