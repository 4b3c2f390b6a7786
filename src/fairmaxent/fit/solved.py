"""What was solved: the record behind every output, weights, and rows to add."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import read_weights
from fairmaxent.data.likely import Chances
from fairmaxent.data.quotas import Sums, held_counts
from fairmaxent.data.roles import Roles, check_weight_name
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Counted,
    Indices,
    Names,
    Reals,
    match_rows,
    ratio,
    tally,
)
from fairmaxent.distribution import Distribution
from fairmaxent.engines.lazy_counts import Coding, join_weights, weigh_by_part
from fairmaxent.engines.lazy_frame import Lazy, check_column, names_of
from fairmaxent.engines.rows import row_prior
from fairmaxent.errors import (
    InfeasibleError,
    InputError,
    Option,
    WeightError,
)
from fairmaxent.fit.likely import Weighed
from fairmaxent.fit.option_values import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.target import asked_of_rows
from fairmaxent.maxent.forbidden import Rules, break_any
from fairmaxent.maxent.optimum import Optimum, maximise_entropy
from fairmaxent.maxent.priors.mixture import rows_of
from fairmaxent.privacy.provenance import Provenance

_NOTHING = 1e-9  # a part of a row that is the solver's
_MODE_ROWS = Option("mode", "rows")
LARGEST_TOP_UP = 10_000_000  # more rows are not added to anybody's table
# totals that are tried one after the other; nearly always the first one will do
_MOST_TRIALS = 10_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solved:
    """What was asked for, the data in codes, and the solution."""

    request: Request | PaperRequest  # what was asked for
    columns: Names  # columns of the input, in order
    problem: Problem  # of the data, before relabelling
    # the rows that the prior stands on, counting by their fair weights w: the same, or
    # relabelled
    weighted: Counted
    # π(y | x, z) of the profiles, where outcomes were relabelled
    soft: Reals | None = None
    labels: Reals | None = None  # g(y | x, z): how their outcomes were split
    # the trained model that the table was made for; a file does not hold it
    student: Any = None
    target: Reals  # wanted probability of each level
    optimum: Optimum
    distribution: Distribution  # p* over the whole domain
    design_weights: Reals | None = None  # one per input row, scaled
    weight_column: frames.Column | None = None  # a one of the weight column's kind
    weight_scale: float = 1.0  # the average of the raw ones, which they are divided by

    @property
    def weighed(self) -> Weighed | None:
        """People whose groups are probabilities, with weights; None: they are known."""
        return self.problem.weighed

    @property
    def roles(self) -> Roles:
        """Outcome and protected columns, and what they are compared in."""
        return self.problem.roles

    @property
    def table(self) -> Counted:
        """Distinct rows as block codes."""
        return self.problem.table

    @property
    def recorded(self) -> Roles:
        """The roles of columns that the table has, without groups that are likely."""
        return self.roles if self.weighed is None else self.weighed.split.recorded

    @property
    def chances(self) -> Chances | None:
        """The probabilities of groups that nobody knows; None: they are known."""
        return None if self.weighed is None else self.weighed.split.chances

    @property
    def domain(self) -> Domain:
        """The columns as they were learned."""
        return self.distribution.domain

    @property
    def blocks(self) -> Blocks:
        """Those of the distinct rows, which have no groups that are probabilities."""
        return self.distribution.blocks

    @property
    def root_table(self) -> Reals:
        """The exact table of outcome and groups, which sums to 1."""
        if self.weighed is not None:
            return self.weighed.table
        return self.distribution.root_table

    def cells_of(self, codes: Codes) -> Reals:
        """How many of some drawn rows are in each cell of that table."""
        if self.weighed is not None:
            table = self.table.collect()
            rows = match_rows(table.codes, codes, self.blocks.levels)
            return self.weighed.drawn(tally(rows, None, len(table.codes)))
        cells = tally(codes[:, 0], None, self.blocks.levels[0])
        return cells.reshape(self.root_table.shape)

    @property
    def has_chances(self) -> bool:
        """Whether its table tells groups by probabilities, certain ones or not."""
        return self.request.likely is not None

    def with_groups(self, frame: Any) -> Any:
        """A table with the column of groups that its probabilities, all certain, are.

        New rows have that column.
        """
        likely = self.request.likely
        if likely is None or likely.name not in self.domain.names:
            return frame
        if likely.name in frame.collect_schema().names():
            return frame
        return frame.with_columns(likely.known)

    def encoded(self, frame: Any) -> Codes:
        """Rows as block codes."""
        opened = self.with_groups(frames.open_frame(frame))
        return self.blocks.pool(self.domain.encode(opened))

    @property
    def filled(self) -> list[tuple[int, ...]]:
        """Cells that should have a share, but that no row has."""
        if isinstance(self.request, PaperRequest):
            return []  # these have none
        blocks = self.blocks
        (rows,) = self.weighted.tables([(0,)], blocks.levels)
        empty = (self.target[blocks.slices[0]] > 0) & (rows <= 0)
        cells = np.argwhere(empty.reshape(blocks.shape(0)))
        return [tuple(cell) for cell in cells.tolist()]

    @property
    def provenance(self) -> Provenance:
        """What may be shown of its rows; no noise was measured yet."""
        return Provenance.asked(self.request.privacy)

    @property
    def contents(self) -> str:
        """Which rows a saved fit has: the end of a sentence "it holds …"."""
        size = f"{self.table.size:,}"
        if not self.provenance.has_real_rows:
            return (
                f"no row of the data, but {size} drawn from noisy counts; it is private"
                f" with {self.request.privacy}"
            )

        positions = self.distribution.positions or {}
        exact = [repr(self.domain.names[index]) for index in sorted(positions)]
        how = "as levels"
        if exact:
            how = f"with the exact values of {', '.join(exact)}"
        if len(exact) > 4:
            named = ", ".join(exact[:3])
            how = f"with the exact values of {named} and {len(exact) - 3} more columns"
        rows = f"the distinct rows among {size}"
        if self.table.keeps_rows:
            rows = f"all {size} rows"
        return f"{rows}, {how}; protect it like the table itself"


def spread_over_rows(fit: Solved, fair: Reals | None = None) -> Reals:
    """Weight of one input row of each distinct row, before its design weight.

    It is by outcome if rows are relabelled. ``fair`` are the weights of the prior's
    rows, by default those of the fair distribution on these rows.
    """
    if fair is None:
        fair = _fair_weights(fit)
    if fit.soft is None:
        counts = fit.table.collect().counts
        # rows of design weight zero stay at zero
        return fair / np.where(counts > 0, counts, 1.0)

    parts = fit.problem.profiles.by_row(fair)
    return np.where(parts > _NOTHING * parts.sum(axis=1, keepdims=True), parts, 0.0)


def _fair_weights(fit: Solved) -> Reals:
    _refuse_filled_cells(fit)
    rows = fit.weighted.collect()
    # If nothing is asked of columns outside the fair table, the weights w meet the
    # target θ^w as they are.
    asked = set(fit.request.target or ())
    if isinstance(fit.request, Request) and asked <= set(fit.roles.names):
        return fit.table.size * rows.counts / rows.total
    alone = rows_alone(fit).density.log_probability(rows.codes)
    return fit.table.size * np.exp(alone)


def weigh_rows(
    fit: Solved,
    weights: Reals,
    frame: nw.DataFrame[Any],
    name: str,
) -> Any:
    """Add a column of weights to rows in memory, in any order.

    Relabelled rows are there once for each outcome that has one.
    """
    check_weight_name(name, frame.columns)
    outcome = fit.roles.names[0]
    if fit.soft is not None and not fit.roles.attributes[0].is_value_coded:
        raise InputError(
            f"outcome {outcome!r} consists of bins, so a relabelled row has no value to"
            " show; turn it into levels before the fit, or use ",
            _MODE_ROWS,
        )

    raw = read_weights(frame, fit.request.weight)
    by_row = with_design(
        _own_weights(fit, weights, frame),
        None if raw is None else raw / fit.weight_scale,
    )
    like = frame.get_column(outcome)
    if fit.soft is None:
        return frame.with_columns(frames.number_column(name, by_row, like)).to_native()

    parts = []
    for level in range(by_row.shape[1]):
        kept = np.flatnonzero(by_row[:, level] > 0)
        column = fit.domain.attribute(outcome).column_of(np.full(len(kept), level))
        parts.append(
            frame[kept].with_columns(
                column, frames.number_column(name, by_row[kept, level], like)
            )
        )
    return nw.concat(parts).to_native()


def _own_weights(fit: Solved, weights: Reals, frame: nw.DataFrame[Any]) -> Reals:
    """The weights of rows before their design weights.

    They are those of the distinct rows, unless groups are probabilities: then each row
    has its own.
    """
    if fit.weighed is not None:
        return fit.weighed.weigh(frame, fit.domain)
    codes = fit.encoded(frame)
    distinct_row = match_rows(fit.table.collect().codes, codes, fit.blocks.levels)
    if (distinct_row < 0).any():
        row = int(np.argmax(distinct_row < 0))
        raise InputError(
            f"row {row} was not in the fitted table; pass that table, with its rows in"
            " any order"
        )
    return weights[distinct_row]


def weigh_lazily(
    fit: Solved,
    weights: Reals | None,
    lazy: Lazy,
    name: str,
) -> Any:
    """Join a lazy frame with the weights of its distinct rows, inside its engine."""
    if fit.soft is not None:
        raise InputError(
            "a relabelled fit weighs tables in memory only, because each row appears"
            " there once per outcome; pass the collected table, or use ",
            _MODE_ROWS,
        )

    for column in fit.columns:
        check_column(lazy, column)
    check_weight_name(name, names_of(lazy))
    weight = fit.request.weight
    scale = fit.weight_scale
    # the distinct rows are on workers
    if weights is None and not lazy.implementation.is_dask():
        raise InputError(
            "the rows of this fit stay on a Dask cluster; pass the Dask frame that was"
            " fitted, or for another kind of frame use fit.collect().weigh(frame)"
        )
    if weights is None or lazy.implementation.is_spark_like():
        of_levels = partial(
            level_weights,
            blocks=fit.blocks,
            log_levels=_log_levels(fit),
            rules=fit.problem.rules,
        )
        if weights is None or _agree(fit, of_levels, weights):
            coding = Coding.of(fit.domain, fit.blocks, weight, taken=())
            return weigh_by_part(lazy, coding, of_levels, scale=scale, name=name)
    return join_weights(
        lazy,
        fit.domain,
        fit.blocks,
        fit.table.collect(),
        weights,
        weight=weight,
        scale=scale,
        name=name,
    )


def _log_levels(fit: Solved) -> Reals:
    """Logarithms of the weights of levels, whose product is the weight of a row.

    For w(α)/n_α is a factor that depends on its cell.
    """
    blocks = fit.roles.blocks
    _refuse_filled_cells(fit)
    alone = rows_alone(fit)
    (fair,) = fit.weighted.tables([(0,)], blocks.levels)
    (old,) = fit.problem.counted.tables([(0,)], blocks.levels)
    factor = ratio(fit.table.size * fair, old)
    log_levels = alone.potentials.copy()
    with np.errstate(divide="ignore"):
        log_levels[blocks.slices[0]] += np.log(factor) - alone.tilted.log_partition
    return log_levels


def level_weights(
    codes: Codes, blocks: Blocks, log_levels: Reals, rules: Rules
) -> Reals:
    """The product of the weights of each row's levels; 0 if it breaks a rule."""
    scores = np.zeros(len(codes))
    for column, part in zip(codes.T, blocks.split(log_levels), strict=True):
        scores += part[column]
    return np.where(break_any(rules, codes), 0.0, np.exp(scores))


def _agree(fit: Solved, of_levels: Callable[[Codes], Reals], weights: Reals) -> bool:
    """Whether the products are the weights: not if the solution gives up some rows."""
    rows = fit.table.collect()
    counts = rows.counts > 0  # rows of design weight zero stay at zero anyway
    return np.allclose(of_levels(rows.codes)[counts], weights[counts])


def with_design(weights: Reals, design: Reals | None) -> Reals:
    """Multiply the weights of rows, or by outcome, by their scaled design weights."""
    if design is None:
        return weights
    return (weights.T * design).T


def _refuse_filled_cells(fit: Solved) -> None:
    """Weights cannot fill cells that no row is in."""
    for cell in fit.filled:
        group = fit.roles.describe_group(tuple(range(1, len(cell))), cell[1:])
        raise InfeasibleError(
            "weights cannot reach the fair table:"
            f" {fit.roles.describe_cell(cell)} needs a share, but has no rows to weigh."
            " Use ",
            _MODE_ROWS,
            " or ",
            Option("mode", "top-up"),
            f", ask for lower rates, merge {group} with another group by naming both"
            " alike in ",
            Option("levels"),
            ", or set small groups apart with ",
            Option("smallest_group", "2%"),
            ".",
        )


def rows_alone(fit: Solved) -> Distribution:
    """The fair distribution on the rows alone (C = 0)."""
    prior = fit.optimum.dual.prior
    rows = rows_of(prior) or row_prior(fit.distribution.blocks, fit.weighted)
    if rows is prior:  # C = 0 already
        return fit.distribution

    features = fit.optimum.dual.features
    target = fit.target
    if isinstance(fit.request, Request):
        features, target = asked_of_rows(fit.problem, fit.weighted, fit.target)
    try:
        optimum = maximise_entropy(
            rows,
            features,
            target,
            describe=fit.roles.describe_level,
        )
    except InfeasibleError as problem:
        raise InfeasibleError(
            "weights alone cannot meet the target: ",
            problem,
            " For this fit use ",
            _MODE_ROWS,
            " or ",
            Option("mode", "top-up"),
            ".",
        ) from problem
    return Distribution.of(fit.domain, optimum)


def missing_rows(fit: Solved, sums: Sums) -> Indices:
    """How many rows each cell lacks, at the smallest total of which none has too many.

    Sums are held if possible.
    """
    fair = fit.root_table.ravel()
    old = fit.problem.cells().ravel()
    instead = _MODE_ROWS, " or ", Option("mode", "weights")
    surplus = np.flatnonzero((old > 0) & (fair <= 0))
    if len(surplus):  # adding other rows does not remove these
        cell = np.unravel_index(int(surplus[0]), fit.root_table.shape)
        name = fit.roles.describe_cell([int(level) for level in cell])
        state = "must have no share"
        if not fit.problem.allowed[cell]:
            state = "is forbidden"
        raise InfeasibleError(
            f"adding rows cannot meet the fair table: {name} {state}, but has rows."
            " Remove them first, or use ",
            *instead,
            ".",
        )

    average = old.sum() / fit.table.size * fit.weight_scale
    if not 0.2 <= average <= 5:
        raise WeightError(
            f"each added row has weight 1, but the design weights are {average:.3g} on"
            " average; scale them to an average of about 1 before fitting"
        )

    present = old * fit.weight_scale
    fullest = np.max((present - 1) / np.where(fair > 0, fair, np.inf))
    more = int(max(0.0, np.ceil(fullest - present.sum() - _NOTHING)))
    trials = _MOST_TRIALS if more <= LARGEST_TOP_UP else 0
    for added in range(more, more + trials):
        lacking = fair * (present.sum() + added) - present
        counts = fair_counts(lacking, added)
        if counts is not None:
            shaped = lacking.reshape(fit.root_table.shape)
            held = held_counts(counts, shaped, np.zeros_like(counts), sums)
            return held.astype(np.intp)

    raise InfeasibleError(
        f"meeting the fair table takes at least {more:,} more rows (the limit is"
        f" {LARGEST_TOP_UP:,}), because a group must become far rarer than it is. Use ",
        *instead,
        ", or change the target.",
    )


def fair_counts(lacking: Reals, total: int) -> Reals | None:
    """Whole numbers within one of what cells lack that add up to ``total``.

    A cell that has too much lacks less than nothing. None: there are no such numbers.
    Rows that are left over go to the largest remainders, the same way each time. At the
    smallest total, some cells are full with the rows that they have, so no rounding is
    without bias here, and this one is closest to the fair table.

    >>> fair_counts(np.array([-0.5, 2.5]), 2)
    array([0., 2.])
    """
    wanted = np.round(lacking, 9)  # 2.4999999999999996 is meant to be 2.5
    counts = np.maximum(np.floor(wanted), 0.0)
    most = np.ceil(wanted)
    short = total - int(counts.sum())
    open_cells = np.flatnonzero(counts < most)
    if (counts > most).any() or not 0 <= short <= len(open_cells):
        return None

    largest = open_cells[
        np.argsort((counts - wanted)[open_cells], kind="stable")[:short]
    ]
    counts[largest] += 1
    return counts
