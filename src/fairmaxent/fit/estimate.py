"""Estimate: how a model trained on the result will treat the people in the data.

Fair data do not make every model fair: what matters is whom a model trained on them
decides for in the real population. This is estimated before anybody trains one, by
cross-fitting: people are dealt to folds, the fit is repeated without one fold, a model
learns from its output, and decides about the people of that fold.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator

from fairmaxent.data.reading import Reading
from fairmaxent.data.table import Codes, Indices, Mask, Reals, Table
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.facts.models import ModelEstimate, ModelScores, Range
from fairmaxent.fairness.rates import ByGrouping, Measure
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.models import Estimate
from fairmaxent.fit.request import Request
from fairmaxent.fit.weights import spread_over_rows, with_design
from fairmaxent.metrics.trial import OVERALL, Run, Score, Trial
from fairmaxent.progress import Progress
from fairmaxent.relabelling.labellers import TREE, Labeller, choose_labeller, name_of
from fairmaxent.relabelling.people import Lesson, People

ESTIMATE_FOLDS = 3
MOST_PEOPLE = 50_000  # of a larger table, that many represent all
# up to so many are split into folds more than once, unless models learn slowly
_FEW_PEOPLE = 5_000
# draws of our own: data that were simulated with a plain seed do not share them
_STREAM = 4_201_955
_BY_GROUPING = (
    "by_predictions",
    "by_probabilities",
    "equal_opportunity",
    "equalised_odds",
    "calibration_gap",
)
_THRESHOLD = 0.5  # probability of the good outcome from which a model decides for it


def represented(data: Reading, most: int = MOST_PEOPLE) -> Reading:
    """Everybody or, of more than ``most`` people, that many to represent them.

    They have the same shares of outcomes and groups, and a row each.
    """
    table = data.table.collect()
    rng = np.random.default_rng([_STREAM, 0])
    if table.keeps_rows:
        rows = np.arange(len(table.inverse))
        if len(rows) <= most:
            return data
        order = np.lexsort((rng.permutation(len(rows)), table.codes[table.inverse, 0]))
        return some_rows(data, np.sort(order[_steps(len(rows), most, rng)]))

    # distinct rows are sorted by outcome and group
    people = np.cumsum(np.round(table.rows).astype(np.int64))
    total = int(people[-1])
    steps = np.arange(total)
    if total > most:
        steps = _steps(total, most, rng)
    distinct = np.searchsorted(people, steps, side="right")
    weights = None
    if data.weight_column is not None:
        weights = (table.counts / np.maximum(table.rows, 1.0))[distinct]
    return _one_row_each(replace(data, positions=None), table, distinct, weights)


def some_rows(data: Reading, rows: Indices) -> Reading:
    """The people in these rows of a reading that keeps them."""
    table = data.table.collect()
    if data.positions is not None:
        own = {index: column[rows] for index, column in data.positions.items()}
        data = replace(data, positions=own)
    weights = None
    if data.design is not None:
        weights = data.design[rows]
    return _one_row_each(data, table, table.inverse[rows], weights)


def fold_of_each(people: People, folds: int, *, seed: int) -> Indices:
    """Deal people to folds like cards, at random within each group and outcome."""
    if len(people.size) < 2 * folds:
        raise InputError(
            f"{len(people.size)} rows are too few to learn from in {folds} folds; use ",
            Option("estimate", None),
        )

    # Equal rows are not spread evenly over the folds: a model would then learn from as
    # many of each kind as it is asked about, and seem to know people whom it has not
    # seen.
    shuffled = np.random.default_rng([_STREAM, seed]).permutation(len(people.size))
    order = np.lexsort((shuffled, people.outcome, people.group))
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % folds
    return fold


def _one_row_each(
    data: Reading,
    table: Table,
    distinct: Indices,
    weights: Reals | None,
) -> Reading:
    """The people of these distinct rows, which may repeat."""
    codes = np.asfortranarray(table.codes[distinct])
    return replace(
        data,
        table=Table.compress(codes, data.roles.blocks.levels, weights),
        design=weights,
    )


def _steps(total: int, most: int, rng: Generator) -> Indices:
    """One position from each of ``most`` equal steps."""
    return ((np.arange(most) + rng.random(most)) * (total / most)).astype(np.intp)


# ---------------------------------------------------------------- trying a student out


@dataclass(frozen=True, eq=False)
class Tryout:
    """All that it takes to try a student out on the people of a table."""

    fit: Certified
    data: Reading  # its people, or some of them: everybody has a row
    request: Request
    # soft labels are learned anew: those at hand have seen the fold
    refit: Callable[[Reading, Request], Certified]
    plan: Estimate

    @cached_property
    def student(self) -> Labeller:
        """The model that is tried out."""
        return choose_labeller(
            self.data.roles, self.plan.model, blind=self.plan.hide_protected
        )

    @cached_property
    def people(self) -> People:
        """The people whom it is tried out on."""
        return _people(self.data)

    @property
    def rounds(self) -> int:
        """How often people are split into folds: more than once where it is quick."""
        if len(self.people.size) > _FEW_PEOPLE or self.request.relabelling is not None:
            return 1
        return 3 if self.plan.model == TREE else 2

    def trial(self, lesson: Callable[[Mask, int], Lesson], progress: Progress) -> Trial:
        """Let students decide about people they have not seen.

        A lesson depends on whom it may be about, and a seed.
        """
        people = self.people
        runs = []
        measure = self.fit.certificate.measure
        for number in range(self.rounds):
            fold = fold_of_each(people, ESTIMATE_FOLDS, seed=number)
            chances = np.empty((len(people.size), people.outcomes))
            for held in range(ESTIMATE_FOLDS):
                done = number * ESTIMATE_FOLDS + held  # lessons, also the next seed
                progress("estimate", done / (self.rounds * ESTIMATE_FOLDS))
                asked = np.flatnonzero(fold == held)
                student = self.student.learn(lesson(fold != held, done))
                chances[asked] = student(people.inputs.take(asked))
            runs.append(Run(fold, chances))

        # Of people whose outcome is missing, nobody can say whether a decision about
        # them is right.
        unknown = [level for axis, level in measure.left_out if axis == 0]
        shape = self.data.roles.blocks.shape(0)
        weight = people.weight * ~np.isin(people.outcome, unknown)
        return Trial(
            people.outcome,
            people.group,
            weight,
            runs,
            measure.favourable,
            dict(_groupings(measure, shape)),
            _THRESHOLD,
            strata=math.prod(shape[len(shape) - measure.strata :]),
        )

    def fair_lesson(self, kept: Mask, seed: int) -> Lesson:
        """What a student learns from, made by a fit that never saw some people."""
        try:
            rest = some_rows(self.data, np.flatnonzero(kept))
            fit = self.refit(rest, self.request)
            if self.plan.output == "weights":
                return _weighted_lesson(fit, rest)
            return _drawn_lesson(fit, rest, seed)
        except (InfeasibleError, InputError) as problem:
            raise type(problem)(
                "the estimate fits the table again without some of its rows, and that"
                " failed (",
                problem,
                "); use ",
                Option("estimate", None),
            ) from problem


def _groupings(measure: Measure, shape: tuple[int, ...]) -> Iterator[tuple[str, Codes]]:
    """Each grouping by name, and the group of each combination of levels.

    -1: it is not compared.
    """
    levels = np.unravel_index(np.arange(math.prod(shape[1:])), shape[1:])
    for name, grouping in measure.named_groupings:
        sizes = [shape[axis] for axis in grouping]
        codes = np.ravel_multi_index([levels[axis - 1] for axis in grouping], sizes)
        for axis, level in (*measure.left_out, *measure.outside):
            if axis in grouping:
                codes[levels[axis - 1] == level] = -1
        apart = np.broadcast_to(measure.apart_of(grouping), (shape[0], *sizes))
        too_small = apart[list(measure.favourable)].all(axis=0).ravel()
        codes[too_small[codes] & (codes >= 0)] = -1
        yield name, codes


def estimate_model(tryout: Tryout, progress: Progress) -> ModelEstimate:
    """Estimate how a student of the fit's rows or weights treats people in the data."""
    people = tryout.people

    def part(start: float) -> Progress:
        return lambda stage, share: progress(stage, start + 0.4 * share)

    before = tryout.trial(
        lambda kept, _: people.lesson(kept.astype(np.int64)), part(0.0)
    )
    after = tryout.trial(tryout.fair_lesson, part(0.4))
    progress("estimate", 1.0)
    return ModelEstimate(
        student=name_of(tryout.student),
        output=tryout.plan.output,
        folds=ESTIMATE_FOLDS,
        threshold=_THRESHOLD,
        before=_scores(before),
        after=_scores(after),
        hide_protected=tryout.plan.hide_protected,
        rounds=tryout.rounds,
        people=len(people.size),
        measured_on=round(len(people.size) / ESTIMATE_FOLDS),
    )


def _people(data: Reading) -> People:
    table = data.table.collect()
    return People.of(
        data.roles,
        table,
        table.counts,
        positions=data.positions,
        design=data.design,
    )


def _weighted_lesson(fit: Certified, data: Reading) -> Lesson:
    """The rows with their fair weights, by the outcomes that they get or keep."""
    people = _people(data)
    fair = None
    # A cell that lost its only row to the fold has nothing to weigh; the student learns
    # from the rest.
    if fit.certificate.filled_cells:
        fair = fit.weighted.collect().counts * fit.table.size
    weights = with_design(
        spread_over_rows(fit, fair)[fit.distinct_rows.inverse], fit.design_weights
    )
    if weights.ndim == 1:
        weights = np.eye(people.outcomes)[people.outcome] * weights[:, None]
    return Lesson(people.inputs, weights)


def _drawn_lesson(fit: Certified, data: Reading, seed: int) -> Lesson:
    """As many drawn rows as the table has."""
    roles = fit.roles
    drawn = fit.domain.encode_rows(fit.sample(fit.table.size, random_state=seed))
    table = Table.compress(roles.blocks.pool(drawn.codes), roles.blocks.levels)
    # Models see the numbers of new rows as they see those of people: raw, or as bins.
    positions = None
    if data.positions is not None:
        positions = drawn.positions
    people = People.of(
        roles,
        table,
        table.counts,
        positions=positions,
        design=None,
    )
    return people.lesson(people.size)


def _scores(trial: Trial) -> ModelScores:
    """Take the scores and their ranges; NaN becomes None."""
    expected = trial.expected()

    def span(score: Score) -> Range | None:
        if np.isnan(score.low):
            return None
        return (score.low, score.high)

    def each(quantity: str) -> ByGrouping:
        return {
            name: None if np.isnan(score.value) else score.value
            for name, score in expected[quantity].items()
        }

    return ModelScores(
        accuracy=expected["accuracy"][OVERALL].value,
        auc=expected["auc"][OVERALL].value,
        decided=each("decided")[OVERALL],
        ranges={
            quantity: {name: span(score) for name, score in own.items()}
            for quantity, own in expected.items()
        },
        **{quantity: each(quantity) for quantity in _BY_GROUPING},
    )
