"""Uncertainty: how different the fair table might be with another sample of people.

The fair table t(y, z) depends on the data only through the table e(y, z) of outcome and
groups, so that a replicate of the fit is a replicate of this small table, made fair in
the same way. The mass of a cell with total weight Σw and squared weights Σw² becomes
θ·Gamma(k + 1/2), with k = (Σw)²/Σw² effective rows and θ = Σw²/Σw: the Bayesian
bootstrap (Rubin, 1981) of the cells, with the variance that design weights leave. The
half row is Jeffreys' prior, without which intervals of small cells would be too short,
and cells would vanish from replicates. A cell without rows has θ of its outcome.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.random import Generator

from fairmaxent.data.draws import check_count
from fairmaxent.data.table import Mask, Reals, Table, effective_rows, ratio, tally
from fairmaxent.engines.rows import in_memory
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fairness.rates import (
    Grouping,
    Measure,
    by_stratum,
    group_shares,
    group_table,
)
from fairmaxent.fit.paper_request import PaperRequest
from fairmaxent.fit.problem import HALF_A_ROW, Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.maxent.forbidden import break_any
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.plain_text import Values, visible

_PAIRED = 20  # groups of lowest, and of highest rates, whose ratios are looked at


@dataclass(frozen=True)
class Span:
    """A number, and the interval that it lies in with the confidence asked for."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True)
class TableSpans:
    """Intervals of a table of outcome and groups, and of what is computed from it."""

    cells: dict[str, Span]  # the share of each combination of outcome and groups
    outcomes: dict[str, Span]  # the share of each outcome
    groups: dict[str, Span]  # the share of each group
    # by protected column, or by columns if they are compared jointly
    representation_rate: dict[str, Span]
    statistical_rate: dict[str, Span]

    def lines(self) -> Iterator[tuple[str, Span]]:
        """Everything with its name, the cells last."""
        yield from self.outcomes.items()
        yield from self.groups.items()
        for name, span in self.representation_rate.items():
            yield f"representation rate of {name}", span
        for name, span in self.statistical_rate.items():
            yield f"statistical rate of {name}", span
        yield from self.cells.items()


@dataclass(frozen=True)
class Uncertainty:
    """Intervals of the data's table and of the fair table.

    It is what :meth:`fairmaxent.debiasing.Fit.uncertainty` returns.
    """

    before: TableSpans  # of the data
    after: TableSpans  # of the fair distribution
    confidence: float
    replicates: int  # that the intervals are made from
    infeasible: int  # further replicates for which no fair table exists

    def to_dict(self) -> Values:
        """Everything as plain Python values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        after = dict(self.after.lines())
        width = max(map(len, after)) + 2
        lines = [f"{'':<{width}}{'before':<28}after"]
        for name, before in self.before.lines():
            lines.append(f"{name:<{width}}{before!s:<28}{after[name]}")
        lines.append(
            f"{100 * self.confidence:g} % intervals from {self.replicates:,} bootstrap"
            " replicates of the fit"
        )
        if self.infeasible:
            lines.append(
                f"{self.infeasible:,} more replicates are left out, because no fair"
                " table exists for them"
            )
        return visible("\n".join(lines))


def measure_uncertainty(
    fit: Solved,
    *,
    replicates: int,
    confidence: float,
    rng: Generator,
) -> Uncertainty:
    """Make many tables like the data's, make each of them fair, and take quantiles."""
    _check_request(fit.request)
    check_confidence(confidence)
    count = check_count(replicates)
    fewest = int(np.ceil(2 / (1 - confidence)))
    if count < fewest:
        raise InputError(
            Option("replicates", replicates),
            f" is too few for a confidence of {confidence}; use {fewest} or more, 200"
            " is usual",
        )
    problem = fit.problem
    cells = _cells(problem)
    before = [problem.data_table]
    after = [fit.root_table]
    for masses in _replicated_masses(cells, problem, count, rng):
        replicate = replace(problem, table=replace(cells, counts=masses))
        try:
            fair = replicate.fair_table()
        except InfeasibleError:
            continue
        after.append(fair.table)
        before.append(replicate.data_table)

    feasible = len(after) - 1
    if feasible < fewest:
        raise InfeasibleError(
            f"no fair table exists for {count - feasible:,} of {count:,} replicates,"
            " too many for intervals; ask for lower rates, or merge small groups"
        )

    tail = (1 - confidence) / 2
    # the same cells in both, as they are read side by side
    seen = np.any([*before, *after], axis=0)
    return Uncertainty(
        before=_spans(problem, np.stack(before), seen, tail),
        after=_spans(problem, np.stack(after), seen, tail),
        confidence=confidence,
        replicates=feasible,
        infeasible=count - feasible,
    )


def _check_request(request: Request | PaperRequest) -> None:
    """Refuse fits whose table cannot be made again from other rows."""
    if not isinstance(request, Request):
        raise InputError(
            "uncertainty() is available for fits made by debias(), not for the paper's"
            " own configurations"
        )


def _cells(problem: Problem) -> Table:
    """A distinct row for each cell of outcome and groups, and its forbidden rows."""
    blocks = problem.blocks
    if not problem.rules:  # then the other columns do not matter
        counts = problem.cells().ravel()
        people = problem.cells("rows").ravel()
        squares = problem.cells("squares").ravel()
        # There is one too for each outcome that nobody has in a group: somebody might
        # have had it.
        by_outcome = counts.reshape(blocks.shape(0)[0], -1)
        present = np.flatnonzero(
            np.broadcast_to(by_outcome.any(axis=0), by_outcome.shape)
        )
        codes = np.zeros((len(present), len(blocks.levels)), dtype=np.intp)
        codes[:, 0] = present
        return Table(codes, counts[present], people[present], squares[present])

    table = in_memory(problem.table)
    keys = table.codes[:, 0].astype(np.intp) * 2 + break_any(problem.rules, table.codes)
    _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
    count = len(first)
    return Table(
        table.codes[first],
        tally(cell, table.counts, count),
        tally(cell, table.rows, count),
        tally(cell, table.squares, count),
    )


def _replicated_masses(
    cells: Table,
    problem: Problem,
    count: int,
    rng: Generator,
) -> Iterator[Reals]:
    """Masses of the cells in each replicate."""
    outcome = cells.codes[:, 0] // (
        problem.blocks.levels[0] // problem.blocks.shape(0)[0]
    )
    rows = np.nan_to_num(effective_rows(cells.counts, cells.squares))
    # Every cell has half a row more than in the data, but all together at most a
    # quarter of √N, the order of a count's standard error: with very many cells, half
    # rows would add up.
    more = min(HALF_A_ROW, np.sqrt(rows.sum()) / (4 * len(rows)))
    totals = tally(outcome, cells.counts, 0)
    squares = tally(outcome, cells.squares, 0)
    usual = ratio(squares, totals)
    scale = np.divide(  # θ, and in a cell without rows the one of its outcome
        cells.squares,
        cells.counts,
        out=usual[outcome],
        where=cells.counts > 0,
    )
    for _ in range(count):
        yield scale * rng.gamma(rows + more)


def _spans(
    problem: Problem,
    tables: Reals,
    seen: Mask,
    tail: float,
) -> TableSpans:
    """Intervals of a table, of whose cells those ``seen`` are shown.

    It is given with its replicates behind it along the first axis.
    """
    roles = problem.roles
    measure = problem.judged

    def span(values: Reals) -> Span:
        low, high = _quantiles(values, tail)
        return Span(float(values[0]), float(low), float(high))

    outcomes = {}
    for axis in (0, *roles.other_axes):
        shares = np.stack(
            [group_table(np.swapaxes(table, 0, axis), ()) for table in tables]
        )
        for level, label in enumerate(roles.attributes[axis].labels):
            outcomes[f"{roles.names[axis]} = {label}"] = span(shares[:, level])

    groups = {}
    representation = {}
    statistical = {}
    for name, axes in measure.named_groupings:
        shares = np.stack([group_shares(table, axes) for table in tables])
        for group in np.ndindex(shares.shape[1:]):
            groups[roles.describe_group(axes, group)] = span(shares[(..., *group)])
        representation[name] = _smallest_ratio(
            _compared_shares(measure, axes, tables), tail
        )
        statistical[name] = _smallest_ratio(
            _compared_rates(measure, axes, tables), tail
        )

    cells = {
        roles.describe_cell(cell): span(tables[(..., *cell)])
        for cell in np.ndindex(seen.shape)
        if seen[cell]
    }
    return TableSpans(cells, outcomes, groups, representation, statistical)


def _compared_shares(measure: Measure, axes: Grouping, tables: Reals) -> list[Reals]:
    """The shares of groups (tables × groups) that are compared in each stratum."""
    shares = np.stack(
        [
            by_stratum(measure.shares_compared(table, axes), measure.strata)
            for table in tables
        ]
    )
    return [shares[:, stratum, kept] for stratum, kept in enumerate(shares[0] > 0)]


def _compared_rates(measure: Measure, axes: Grouping, tables: Reals) -> list[Reals]:
    """The rates of groups (tables × groups) by outcome and stratum."""
    rates = np.stack(
        [
            by_stratum(measure.rates_compared(table, axes), measure.strata, first=1)
            for table in tables
        ]
    )
    known = np.all(np.isfinite(rates), axis=0)
    return [
        rates[:, outcome, stratum, kept]
        for outcome in measure.favourable_of(axes)
        for stratum, kept in enumerate(known[outcome])
    ]


def _quantiles(values: Reals, tail: float) -> Reals:
    """Of what comes after the first of the values."""
    return np.quantile(
        values[1:],
        [tail, 1 - tail],
        axis=0,
        method="weibull",
    )


def _smallest_ratio(comparisons: list[Reals], tail: float) -> Span:
    """Interval of the smallest ratio between groups: the smallest ends of all pairs.

    The pair that looks worst is partly the unluckiest one, so quantiles of the smallest
    ratio itself would be too low. Of many groups, those of the lowest and the highest
    rates are compared.
    """
    value = 1.0
    low = 1.0
    high = 1.0
    for rates in comparisons:
        order = np.argsort(rates[0])
        few = rates[:, order[:_PAIRED], None]
        many = rates[:, None, order[-_PAIRED:]]
        different = order[:_PAIRED, None] != order[None, -_PAIRED:]
        ratios = np.divide(
            few,
            many,
            out=np.ones((len(rates), *different.shape)),
            where=many > 0,
        )[:, different]
        if ratios.size:
            lows, highs = _quantiles(ratios, tail)
            value = min(value, ratios[0].min())
            low = min(low, lows.min())
            high = min(high, highs.min())
    return Span(float(value), float(min(low, value)), float(max(high, value)))
