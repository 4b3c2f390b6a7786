"""Groups before and after: shares and rates as numbers, a frame and a picture."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.table import Reals, ratio
from fairmaxent.errors import check_choice, cut
from fairmaxent.fairness.likely import ends_of
from fairmaxent.fairness.rates import (
    Grouping,
    Measure,
    group_shares,
    group_table,
    outcome_axis,
    outcome_rates,
)
from fairmaxent.fit.solved import Solved
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.intervals import check_confidence, share_interval
from fairmaxent.plain_text import visible

_KINDS: dict[Any, Any] = {
    str: nw.String,
    int: nw.Int64,
    float: nw.Float64,
}
Plotted = Literal["rates", "shares"]
# before and after, and the interval before, if it has one
_DRAWN = {
    "rates": attrgetter(
        "rate_before", "rate_after", "rate_before_low", "rate_before_high"
    ),
    "shares": attrgetter("share_before", "share_after"),
}
MOST_LINES = 40  # of a picture
_LONGEST_LABEL = 40
_LONGEST_TITLE = 100
# the colours of the report
_BEFORE = "#8a94a3"
_AFTER = "#1f5fa8"
# names come from data: a dollar sign is no formula, a backslash no TeX
_PLAIN = {"parse_math": False, "usetex": False}
Changes = Sequence["GroupChange"]


@dataclass(frozen=True)
class GroupChange:
    """One group and one outcome.

    A number that does not exist is NaN, e.g. the rate of a group without rows.
    """

    # the grouping: a protected column, or several if their intersections are compared
    column: str
    group: str
    outcome: str
    rows: int  # of the group, in the data
    share_before: float
    share_after: float
    # share after over share before: how much the average row of the group counts
    weight_factor: float
    rate_before: float
    # the interval of the rate in the data; NaN if the group is not compared
    rate_before_low: float
    rate_before_high: float
    rate_after: float
    # The rest is no part of a summary.
    name: str = field(repr=False)  # of the group, with its columns
    about: str = field(repr=False)  # the outcome, with its column
    # the share of all rows that are in the group and have the outcome
    having_before: float = field(repr=False)
    having_after: float = field(repr=False)
    # too small to decide anything: it is listed beside the others
    is_apart: bool = field(repr=False)
    # in which it is compared, if that is within strata
    stratum: str = field(repr=False)


def group_changes(
    fit: Solved,
    after: Reals | None = None,
    *,
    confidence: float = 0.95,
    measure: Measure | None = None,
) -> tuple[GroupChange, ...]:
    """Compare every group of the data or the fair distribution, for each outcome.

    ``after`` is the table of outcome and protected columns that was delivered, by
    default the fair one, and ``measure`` says which groups are compared, by default
    those of the fit.
    """
    check_confidence(confidence)
    measure = measure or fit.problem.judged
    cells = fit.problem.cells
    tables = [cells(), cells("squares"), cells("rows")]
    fair = fit.root_table
    changes = []
    both = tables[0], fair if after is None else after
    for name, axes in measure.named_groupings:
        outcome = fit.roles.attributes[outcome_axis(axes)]
        people = group_table(tables[2], axes).sum(axis=0)
        share, new_share = (group_shares(table, axes) for table in both)
        rates, new_rates = (
            outcome_rates(measure.with_outcome(table, axes), axes) for table in both
        )
        having, now_having = (group_table(table / table.sum(), axes) for table in both)
        low, high = _intervals(fit, measure, tables, axes, confidence)
        apart = np.broadcast_to(measure.apart_of(axes), rates.shape)
        factor = ratio(new_share, share, np.nan)
        seen = np.argwhere(
            (people > 0) | (new_share > 0) | (group_shares(fair, axes) > 0)
        ).tolist()
        # groups of a stratum side by side
        of_stratum = slice(len(axes) - measure.strata, None)
        seen.sort(key=itemgetter(of_stratum))
        changes += [
            GroupChange(
                column=name,
                group=group_label(fit, axes, group),
                outcome=outcome.labels[level],
                rows=round(people[group]),
                share_before=float(share[group]),
                share_after=float(new_share[group]),
                weight_factor=float(factor[group]),
                rate_before=float(rates[level][group]),
                rate_before_low=float(low[level][group]),
                rate_before_high=float(high[level][group]),
                rate_after=float(new_rates[level][group]),
                name=fit.roles.describe_group(axes, group),
                about=outcome.describe(level),
                having_before=float(having[level][group]),
                having_after=float(now_having[level][group]),
                is_apart=bool(apart[level][group] and people[group]),
                stratum=group_label(fit, axes[of_stratum], group[of_stratum]),
            )
            for group in map(tuple, seen)
            for level in measure.favourable_of(axes)
        ]
    return tuple(changes)


def changes_by_column(
    fit: Solved, after: Reals | None = None
) -> tuple[GroupChange, ...]:
    """The same, and first each protected column alone, if it is not compared so."""
    measure = fit.problem.measure
    alone = fit.roles.groupings("each")
    axes = len(fit.roles.attributes)
    compared = group_changes(fit, after)
    names = tuple(map(fit.roles.grouping_name, alone))
    if set(alone) <= set(measure.groupings):
        return compared
    own = Measure(
        alone,
        names,
        measure.favourable,
        measure.left_out,
        axes=axes,
    )
    own = fit.problem.with_small_groups(own)
    return (*group_changes(fit, after, measure=own), *compared)


def _intervals(
    fit: Solved,
    measure: Measure,
    tables: list[Reals],
    axes: Grouping,
    confidence: float,
) -> Reals:
    """Both ends of the interval of each rate in the data, by outcome and group.

    NaN where groups are not compared.
    """
    compared = [measure.having(table, axes) for table in tables]
    shape = (2, *compared[0].shape)
    if fit.weighed is not None and fit.weighed.split.axis in axes:
        drawn = fit.weighed.like_these(measure, axes)
        rates = ratio(drawn, drawn.sum(axis=1, keepdims=True))
        is_there = compared[0].sum(axis=0) > 0
        return np.where(is_there, ends_of(rates, confidence), np.nan)

    # the noise in its counts is no part of them: they would be far too short
    if fit.request.privacy is not None:
        return np.full(shape, np.nan)

    sums = (table.astype(float).tobytes() for table in compared)
    return _ends(*sums, len(compared[0]), confidence).reshape(shape)


@lru_cache(64)  # many fits of the same rows have the same
def _ends(
    weights: bytes,
    squares: bytes,
    rows: bytes,
    outcomes: int,
    confidence: float,
) -> Reals:
    weight = np.frombuffer(weights).reshape(outcomes, -1)
    square = np.frombuffer(squares).reshape(outcomes, -1)
    people = np.frombuffer(rows).reshape(outcomes, -1)
    ends = np.full((2, *weight.shape), np.nan)
    seen = weight.sum(axis=0) > 0
    counts = WeightSums(
        weight, square, np.where(weight > 0, people, 0.0)
    ).against_others()
    ends[:, :, seen] = share_interval(counts[:, seen], confidence)
    return ends


def group_label(fit: Solved, axes: Grouping, group: tuple[int, ...]) -> str:
    """Name a group of a grouping by its levels."""
    return " × ".join(
        fit.roles.attributes[axis].labels[level]
        for axis, level in zip(axes, group, strict=True)
    )


def summary_frame(fit: Solved, changes: Changes) -> Any:
    """The changes as a frame of the library that the data came in, one row each."""
    backend = fit.domain.attributes[0].values.implementation
    columns = {}
    for part in fields(GroupChange):
        if not part.repr:
            continue
        column = nw.new_series(
            part.name,
            [getattr(change, part.name) for change in changes],
            _KINDS[part.type],
            backend=backend,
        )
        if part.type is float:
            column = column.fill_nan(None)
        columns[part.name] = column
    return frames.build(columns)


def draw_groups(
    fit: Solved,
    changes: Changes,
    what: Plotted,
    ax: Any,
) -> Any:
    """Draw on ``ax``, or on a new figure, and return the axes.

    Of many groups, those that change most are drawn.
    """
    check_choice("what", what, Plotted)
    title, lines = _lines(fit, changes, what)
    numbers = np.array([_DRAWN[what](change) for change in lines.values()])
    moved = np.nan_to_num(np.abs(numbers[:, 1] - numbers[:, 0]), nan=np.inf)
    shown = np.sort(np.argsort(-moved, kind="stable")[:MOST_LINES])
    axes = ax
    if ax is None:
        frames.load_library("matplotlib")  # or the error that says what to install
        from matplotlib import pyplot

        size = (7.0, 1.5 + 0.4 * len(shown))
        _, axes = pyplot.subplots(figsize=size, layout="constrained")
    _draw_numbers(axes, numbers[shown])
    names = [label for _, label in lines]
    labels = [visible(cut(names[index], _LONGEST_LABEL)) for index in shown]
    axes.set_yticks(np.arange(len(shown)), labels, **_PLAIN)
    title = visible(cut(title, _LONGEST_TITLE))
    more = len(moved) - len(shown)
    if more:
        title += f" ({more} groups with smaller changes are not shown)"
    axes.set_title(title, fontsize="medium", **_PLAIN)
    return axes


def _lines(
    fit: Solved, changes: Changes, what: Plotted
) -> tuple[str, dict[tuple[str, str], GroupChange]]:
    """The title, and a line for each group, by its columns and its label."""
    if what == "shares":
        groups = {(change.column, change.group): change for change in changes}
        return "Share of each group", groups
    # Who is not compared has no interval, and is not drawn.
    compared = [
        change
        for change in changes
        if fit.request.privacy is not None
        or np.isnan(change.rate_before)
        or change.rate_before_low >= 0
    ]
    abouts = {change.about for change in compared}
    if len(abouts) == 1:
        lines = {(change.column, change.group): change for change in compared}
        return f"How often each group has {abouts.pop()}", lines
    lines = {
        (change.column, f"{change.group}: {change.outcome}"): change
        for change in compared
    }
    return (
        f"How often each group has each of {', '.join(fit.roles.outcome_names)}",
        lines,
    )


def _draw_numbers(axes: Any, numbers: Reals) -> None:
    """Draw a line below the other, with the look of the report."""
    heights = np.arange(len(numbers))
    before, after, *interval = numbers.T
    axes.plot(before, heights, "o", color=_BEFORE, label="before")
    axes.plot(after, heights, "D", color=_AFTER, label="after")
    if interval:
        axes.hlines(heights, *interval, color=_BEFORE, label="95 % interval before")
    axes.set(ylim=(len(heights) - 0.4, -0.6), xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#dcdfe4", zorder=-1)
    axes.legend(
        ncols=3,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        borderaxespad=2.5,
    )
