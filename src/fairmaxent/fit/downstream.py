"""Downstream: how a model trained on the result will treat the people in the data.

Fair data do not make every model fair: what matters is whom a model trained on them decides for in the real population.
This is estimated before anybody trains one, by cross-fitting: profiles are dealt to folds, the fit is repeated without
one fold, a model learns from its output, and decides about the people of that fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.draws import quota
from fairmaxent.data.table import Table
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.outlook import Downstream, Outlook, Remedy
from fairmaxent.fit.request import OutputOption, Relabel, Request
from fairmaxent.fit.weighing import support_weights
from fairmaxent.metrics.scorecard import Judgement, judge
from fairmaxent.relabelling.inputs import Inputs
from fairmaxent.relabelling.labellers import Labeller, name_of
from fairmaxent.relabelling.people import Lesson, People
from fairmaxent.relabelling.profiles import Profiles, root_shape

FOLDS = 3

# The same fit on other rows. It learns soft labels anew, because those at hand have seen the fold left out.
Refit = Callable[[Table], Fit]


@dataclass(frozen=True, eq=False)
class _People:
    """Everybody in the data, by outcome and group."""

    truth: NDArray[np.intp]
    group: NDArray[np.intp]
    weights: Reals


def foresee(
    fit: Fit,
    request: Request,
    refit: Refit,
    student: Labeller,
    *,
    output: OutputOption,
    folds: int = FOLDS,
    progress: Callable[[str, float], None],
) -> Downstream:
    """Estimate how a student that learns from the fit's rows or weights treats the people in the data."""
    # Distinct rows, whose people can be in several folds.
    table = replace(fit.table.collect(), places=None)
    people = People.of(fit.roles, table, table.counts, positions=None, design=None)
    before, after = [], []
    dealt = people.deal(folds)
    for number, held in enumerate(dealt.T):
        progress("downstream", number / folds)
        asked = people.inputs.take(np.flatnonzero(held))
        before.append(student.learn(people.lesson(people.size - held))(asked))
        lesson = _lesson_without(held / people.size, fit, refit, output, seed=number)
        after.append(student.learn(lesson)(asked))
    progress("downstream", 1.0)
    record = np.concatenate([np.flatnonzero(held) for held in dealt.T])
    weight = np.concatenate([(people.weight * held / people.size)[held > 0] for held in dealt.T])
    judged = _People(people.outcome[record], people.group[record], weight)
    return Downstream(
        student=name_of(student),
        output=output,
        folds=folds,
        threshold=request.threshold,
        remedy=_remedy(request.relabelling, output),
        before=_outlook(fit, judged, np.concatenate(before), request.threshold),
        after=_outlook(fit, judged, np.concatenate(after), request.threshold),
    )


def _lesson_without(held: Reals, fit: Fit, refit: Refit, output: OutputOption, *, seed: int) -> Lesson:
    """What a student learns from, made by a fit that never saw some people; ``held`` is their share of each row."""
    try:
        return _lesson(refit(_rows(fit.table.collect(), 1 - held)), output, seed=seed)
    except (InfeasibleError, InputError) as problem:
        raise type(problem)(
            "the estimate fits the table again without some of its rows, and that failed (",
            problem,
            "); leave ",
            Option("estimate"),
            " out",
        ) from problem


def _remedy(plan: Relabel | None, output: OutputOption) -> Remedy:
    """Name the next thing to try."""
    if plan is None:
        return "relabel"
    if plan.parity == "probabilities":
        return "predictions"
    return "weights" if output == "rows" else "none"


def _rows(table: Table, kept: Reals) -> Table:
    """A share of each distinct row."""
    some = kept > 0
    counts, rows, squares = ((column * kept)[some] for column in (table.counts, table.rows, table.squares))
    return Table(table.codes[some], counts, rows, squares)


def _lesson(fit: Fit, output: OutputOption, *, seed: int) -> Lesson:
    """What a student learns from: the weighted rows, or the same number of drawn rows."""
    blocks = fit.roles.blocks
    if output == "weights":
        rows = fit.weighted.collect()
        # A cell that lost its only row to the fold has nothing to weigh; the student learns from the rest.
        weights = rows.counts * fit.table.size if fit.certificate.filled_cells else support_weights(fit)
        return _as_lesson(fit, rows, weights)
    rng = np.random.default_rng(seed)
    roots = fit.distribution.root_table.ravel()
    cells = np.repeat(np.arange(len(roots)), quota(roots, fit.table.size))
    drawn: Codes = fit.distribution.tilted.draw(cells, rng, spread=True).codes.astype(fit.distinct_rows.codes.dtype)
    table = Table.compress(drawn, blocks.levels)
    return _as_lesson(fit, table, table.counts)


def _as_lesson(fit: Fit, rows: Table, weights: Reals) -> Lesson:
    profiles = Profiles.of(rows, fit.roles.blocks, weights)
    return Lesson(Inputs.of(fit.roles, profiles.codes, None), profiles.counts)


def _outlook(fit: Fit, people: _People, chances: Reals, threshold: float) -> Outlook:
    """Judge the probabilities for each grouping."""
    measure, shape = fit.certificate.measure, fit.roles.blocks.shape(0)
    _, groups = root_shape(fit.roles.blocks)
    levels = np.unravel_index(np.arange(groups), shape[1:])
    judgements: dict[str, Judgement] = {}
    for name, grouping in zip(measure.names, measure.groupings, strict=True):
        sizes = [shape[axis] for axis in grouping]
        group_of = np.ravel_multi_index([levels[axis - 1] for axis in grouping], sizes)
        judgements[name] = judge(
            people.truth,
            chances,
            group_of[people.group],
            people.weights,
            favourable=measure.favourable,
            group_count=int(np.prod(sizes)),
            threshold=threshold,
        )
    first = next(iter(judgements.values()))

    def each(take: Callable[[Judgement], float]) -> dict[str, float | None]:
        values = {name: take(judgement) for name, judgement in judgements.items()}
        return {name: None if np.isnan(value) else value for name, value in values.items()}

    return Outlook(
        accuracy=first.accuracy,
        auc=first.auc,
        by_predictions=each(lambda judgement: judgement.rate_by_predictions),
        by_probabilities=each(lambda judgement: judgement.rate_by_probabilities),
        equal_opportunity=each(lambda judgement: judgement.equal_opportunity),
        equalised_odds=each(lambda judgement: judgement.equalised_odds),
        calibration_gap=each(lambda judgement: judgement.calibration_gap),
    )
