"""The certificate of a raking: what the margins are now, and what the weights cost."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from fairmaxent.data.levels import (
    Notes,
    cell_text,
)
from fairmaxent.data.table import (
    FEWEST_ROWS,
    MOST_TIMES,
    Names,
    Reals,
    Table,
    effective_rows,
    tally,
)
from fairmaxent.document.text import table_lines
from fairmaxent.document.words import percent, times
from fairmaxent.errors import Option, Remark, spelled
from fairmaxent.maxent.bounded import Bounds
from fairmaxent.plain_text import Values, visible
from fairmaxent.raking.margins import Crossed, MarginTarget
from fairmaxent.raking.problem import RakingProblem, Survey

Ends = tuple[float, float]  # the smallest and the largest

_SHOWN = 3  # levels warned about one by one; the rest is counted
_TABLE_LEVELS = 60  # that are printed
# how far from a bound, relatively, a factor still counts as being there
_AT_BOUND = 1e-9
_MISSED = 1e-6  # error of a share from which its margin is missed
_HEADS = ("margin", "rows", "before", "wanted", "after", "effective rows")


@dataclass(frozen=True)
class MarginLevel:
    """One level of a margin; shares are of the total weight."""

    level: str
    rows: int
    before: float
    wanted: float
    achieved: float
    # how many equally weighted rows would carry as much information, with the new
    # weights
    effective_rows: float

    @property
    def rests_on_few(self) -> bool:
        """Whether it was raised though it has too few rows, or raised by too much."""
        if not self.before or self.achieved <= self.before * (1 + 1e-6):
            return False
        is_far = self.achieved > MOST_TIMES * self.before
        return is_far or self.effective_rows < FEWEST_ROWS


@dataclass(frozen=True)
class MarginResult(Crossed):
    """What became of one margin."""

    levels: tuple[MarginLevel, ...]

    @property
    def largest_error(self) -> float:
        """The largest difference between an achieved and a wanted share."""
        return max(abs(level.achieved - level.wanted) for level in self.levels)

    @property
    def missed(self) -> bool:
        """Whether a share is another one than wanted."""
        return self.largest_error > _MISSED


@dataclass(frozen=True, repr=False)
class RakingCertificate:
    """What `Raking.certificate` states; printed, it is a table."""

    margins: tuple[MarginResult, ...]
    rows: int
    total: float  # what the weights add up to
    # by what the weights multiply the variance of a mean, by Kish's approximation
    # n·Σw²/(Σw)²
    design_effect: float
    # how many equally weighted rows would carry as much information: rows / design
    # effect
    effective_rows: float
    # the smallest and the largest factor by which the share of a row in the total
    # changed
    factors: Ends
    weights: Ends  # the smallest and the largest weight
    bounds: Ends | None  # the factors that were allowed; None: all
    rows_at_bounds: int  # rows whose factor is a bound, up to rounding
    # why no weights, within the bounds if there are some, meet all margins
    conflict: str | None
    notes: Notes

    @property
    def largest_error(self) -> float:
        """The largest difference between an achieved and a wanted share."""
        return max(margin.largest_error for margin in self.margins)

    @property
    def missed(self) -> Names:
        """The margins that are not what is known, by name."""
        return tuple(margin.name for margin in self.margins if margin.missed)

    @property
    def warnings(self) -> Notes:
        """Levels that were raised though they rest on too few rows, with a way out."""
        return tuple(spelled(warning, str) for warning in self.few_rows())

    def few_rows(self) -> Iterator[Remark]:
        """The warnings, with their options as data, worst first."""
        raised = [
            (margin.name, level)
            for margin in self.margins
            for level in margin.levels
            if level.rests_on_few
        ]
        raised.sort(key=lambda named: named[1].effective_rows)
        for number, (name, level) in enumerate(raised[:_SHOWN]):
            people = "a single row" if level.rows == 1 else f"{level.rows:,} rows"
            raising = (
                f"{name} = {level.level}: {percent(level.achieved)} of the total weight"
                f" rests on {people}, {times(level.achieved / level.before)} times as"
                " much as before."
            )
            if number == 0:  # the way out is said once
                yield (
                    f"{raising} To avoid this, merge the level with another one, or"
                    " let its margin be missed, with ",
                    Option("bounds"),
                    " and ",
                    Option("relax"),
                    ".",
                )
            else:
                yield (raising,)

        more = len(raised) - _SHOWN
        if more > 0:
            which = f"{more:,} more levels were raised"
            if more == 1:
                which = "1 more level was raised"
            yield (
                f"{which} beyond the same line: fewer than {FEWEST_ROWS} effective"
                f" rows, or {MOST_TIMES} times as much.",
            )

    def to_dict(self) -> Values:
        """Everything as plain Python values, for JSON."""
        return asdict(self) | {
            "largest_error": self.largest_error,
            "missed": self.missed,
            "warnings": self.warnings,
        }

    def __repr__(self) -> str:
        return "\n".join(
            [
                *self.table(),
                *self.summary(),
                *map(visible, (*self.warnings, *self.notes)),
            ]
        )

    def table(self) -> list[str]:
        """The margins before and after, one line for each level."""
        rows = [
            (
                f"{margin.name} = {level.level}",
                cell_text(level.rows),
                cell_text(level.before),
                cell_text(level.wanted),
                cell_text(level.achieved),
                cell_text(round(level.effective_rows)),
            )
            for margin in self.margins
            for level in margin.levels
        ]
        lines = [*table_lines(_HEADS, rows[:_TABLE_LEVELS])]
        if len(rows) > _TABLE_LEVELS:
            lines.append(f"and {len(rows) - _TABLE_LEVELS:,} more levels")
        return lines

    def summary(self) -> list[str]:
        """The sentences below the table."""
        error = f"largest error: {self.largest_error:.1e}"
        if self.missed:
            error += f", missed: {', '.join(self.missed)} ({self.conflict})"
        low, high = self.weights
        bounds = ""
        if self.bounds is not None:
            bounds = (
                f" (allowed: {Bounds(*self.bounds).text}; rows at a bound:"
                f" {self.rows_at_bounds:,})"
            )
        return [
            error,
            (
                f"weights from {low:.4g} to {high:.4g}, adding up to"
                f" {self.total:,.10g}; factors from {self.factors[0]:.4g} to"
                f" {self.factors[1]:.4g}{bounds}"
            ),
            (
                f"design effect {self.design_effect:.3f}: the {self.rows:,} rows carry"
                f" as much information as {self.effective_rows:,.0f} equally weighted"
                " ones"
            ),
        ]


def certify(
    problem: RakingProblem,
    survey: Survey,
    factors: Reals,
    total: float,
    *,
    conflict: str | None,
    notes: Notes,
) -> RakingCertificate:
    """Measure the new weights."""
    table = survey.table
    bounds = problem.bounds
    kept = table.counts > 0
    scale = total / table.size
    mass = table.counts * factors
    squares = table.squares * factors**2
    worth = float(effective_rows(mass.sum(), squares.sum()))
    lightest = scale * (survey.lightest * factors)[kept]
    heaviest = scale * (table.largest * factors)[kept]
    at_low = factors <= bounds.low * (1 + _AT_BOUND)
    at_high = factors >= bounds.high * (1 - _AT_BOUND)
    rows_at_bounds = int(table.rows[kept & (at_low | at_high)].sum())
    return RakingCertificate(
        margins=tuple(
            _margin_result(margin, table, mass, squares) for margin in problem.margins
        ),
        rows=table.size,
        total=total,
        design_effect=table.size / worth,
        effective_rows=worth,
        factors=(float(factors[kept].min()), float(factors[kept].max())),
        weights=(float(lightest.min()), float(heaviest.max())),
        bounds=(bounds.low, bounds.high) if bounds.given else None,
        rows_at_bounds=rows_at_bounds if bounds.given else 0,
        conflict=conflict,
        notes=notes,
    )


def _margin_result(
    margin: MarginTarget,
    table: Table,
    mass: Reals,
    squares: Reals,
) -> MarginResult:
    """What became of a margin; the new masses and their squares are those of cells."""
    size = len(margin.wanted)
    rows = tally(margin.cells, table.rows, size)
    before = tally(margin.cells, table.counts, size)
    after = tally(margin.cells, mass, size)
    worth = effective_rows(after, tally(margin.cells, squares, size))
    levels = map(
        MarginLevel,
        margin.labels,
        rows.astype(int).tolist(),
        (before / before.sum()).tolist(),
        margin.wanted.tolist(),
        (after / after.sum()).tolist(),
        np.nan_to_num(worth).tolist(),
    )
    return MarginResult(margin.columns, tuple(levels))
