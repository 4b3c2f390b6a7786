"""Downstream: how a model trained on the result will treat the people in the data.

Fair data do not make every model fair: what matters is whom a model trained on them decides for in the real population.
This is estimated before anybody trains one, by cross-fitting: profiles are dealt to folds, the fit is repeated without
one fold, a model learns from its output, and decides about the people of that fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.draws import cells_of
from fairmaxent.data.table import Table
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.outlook import Downstream, Outlook, Remedy
from fairmaxent.fit.request import OutputOption, Relabel, Request
from fairmaxent.fit.weighing import support_weights
from fairmaxent.metrics.scorecard import Judgement, judge
from fairmaxent.relabelling.labellers import Labeller, deal, name_of
from fairmaxent.relabelling.profiles import Profiles, root_shape

FOLDS = 3

# The same fit on other rows. It learns soft labels anew, because those at hand have seen the fold left out.
Refit = Callable[[Table], Fit]


@dataclass(frozen=True, eq=False)
class _People:
    """Everybody in the data, by profile and outcome."""

    truth: NDArray[np.intp]
    group: NDArray[np.intp]
    weights: Reals
    profile: NDArray[np.intp]


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
    blocks = fit.roles.blocks
    table = fit.table.collect()
    profiles = Profiles.per_row(table, blocks, table.counts)
    fold = deal(profiles, folds)
    before, after = np.empty_like(profiles.counts), np.empty_like(profiles.counts)
    for number in range(folds):
        progress("downstream", number / folds)
        held = fold == number
        before[held] = student.learn(profiles.codes[~held], profiles.counts[~held])(profiles.codes[held])
        lesson = _lesson_without(held, fit, profiles, refit, output, seed=number)
        after[held] = student.learn(lesson.codes, lesson.counts)(profiles.codes[held])
    progress("downstream", 1.0)
    people = _everybody(profiles)
    return Downstream(
        student=name_of(student),
        output=output,
        folds=folds,
        threshold=request.threshold,
        remedy=_remedy(request.relabelling, output),
        before=_outlook(fit, people, before, request.threshold),
        after=_outlook(fit, people, after, request.threshold),
    )


def _lesson_without(
    held: NDArray[np.bool_], fit: Fit, profiles: Profiles, refit: Refit, output: OutputOption, *, seed: int
) -> Profiles:
    """What a student learns from, made by a fit that never saw some profiles."""
    try:
        return _lesson(refit(_rows(fit.table.collect(), ~held[profiles.profile_of_row])), output, seed=seed)
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


def _rows(table: Table, kept: NDArray[np.bool_]) -> Table:
    """Some of the distinct rows."""
    return Table(table.codes[kept], table.counts[kept], table.rows[kept], table.squares[kept])


def _lesson(fit: Fit, output: OutputOption, *, seed: int) -> Profiles:
    """What a student learns from: the weighted rows, or the same number of drawn rows."""
    blocks = fit.roles.blocks
    if output == "weights":
        rows = fit.weighted.collect()
        # A cell that lost its only row to the fold has nothing to weigh; the student learns from the rest.
        weights = rows.counts * fit.table.size if fit.certificate.filled_cells else support_weights(fit)
        return Profiles.of(rows, blocks, weights)
    rng = np.random.default_rng(seed)
    cells = cells_of(fit.distribution.root_table, fit.table.size, rng, independent=False)
    drawn: Codes = fit.distribution.tilted.draw(cells, rng, spread=True).codes.astype(fit.distinct_rows.codes.dtype)
    table = Table.compress(drawn, blocks.levels)
    return Profiles.of(table, blocks, table.counts)


def _everybody(profiles: Profiles) -> _People:
    profile, truth = np.nonzero(profiles.counts)
    return _People(truth, profiles.groups[profile], profiles.counts[profile, truth], profile)


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
            chances[people.profile],
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
