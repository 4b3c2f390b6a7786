"""Groups before and after: their shares and rates as numbers, as a frame and as a picture."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.table import Reals
from fairmaxent.errors import DependencyError, check_choice, cut
from fairmaxent.fairness.rates import Grouping, Rates, group_shares, group_table, outcome_axis, outcome_rates
from fairmaxent.fit.solved import Solved
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.intervals import check_confidence, share_interval
from fairmaxent.plain_text import visible

_KINDS: dict[type, Any] = {str: nw.String, int: nw.Int64, float: nw.Float64}


@dataclass(frozen=True)
class GroupChange:
    """One group and one outcome; a number that does not exist is NaN, e.g. the rate of a group without rows."""

    column: str  # the grouping: a protected column, or several if their intersections are compared
    group: str
    outcome: str
    rows: int  # of the group, in the data
    share_before: float
    share_after: float
    weight_factor: float  # share after over share before: how much the average row of the group counts
    rate_before: float
    rate_before_low: float  # the interval of the rate in the data; NaN if the group is not compared
    rate_before_high: float
    rate_after: float


def group_changes(fit: Solved, *, confidence: float = 0.95) -> tuple[GroupChange, ...]:
    """Compare every group that the data or the fair distribution has, for each outcome that is compared."""
    check_confidence(confidence)
    measure, cells = fit.problem.measure, fit.problem.cells
    tables = [cells(), cells("squares"), cells("rows")]
    groupings = zip(measure.groupings, measure.names, strict=True)
    return tuple(change for axes, name in groupings for change in _changes(fit, tables, axes, name, confidence))


def _changes(fit: Solved, tables: list[Reals], axes: Grouping, name: str, confidence: float) -> Iterator[GroupChange]:
    """The groups of one grouping; ``tables`` have the weights, squared weights and numbers of rows in the data."""
    fair, measure = fit.distribution.root_table, fit.problem.measure
    before, after = group_shares(tables[0], axes), group_shares(fair, axes)
    rates, fair_rates = (outcome_rates(measure.with_outcome(table, axes), axes) for table in (tables[0], fair))
    people = group_table(tables[2], axes).sum(axis=0)
    low, high = _intervals(fit, tables, axes, confidence)
    for group in map(tuple, np.argwhere((people > 0) | (after > 0))):
        for level in measure.favourable_of(axes):
            yield GroupChange(
                column=name,
                group=group_label(fit, axes, group),
                outcome=fit.roles.attributes[outcome_axis(axes)].labels[level],
                rows=int(people[group]),
                share_before=float(before[group]),
                share_after=float(after[group]),
                weight_factor=float(after[group] / before[group]) if before[group] > 0 else np.nan,
                rate_before=float(rates[level][group]),
                rate_before_low=float(low[level][group]),
                rate_before_high=float(high[level][group]),
                rate_after=float(fair_rates[level][group]),
            )


def _intervals(fit: Solved, tables: list[Reals], axes: Grouping, confidence: float) -> Reals:
    """Both ends of the interval of each rate in the data, by outcome and group; NaN for groups that are not compared.

    A private fit has none: the noise in its counts is no part of such intervals, which would be far too short.
    """
    compared = [group_table(fit.problem.measure.outcomes_compared(table, axes), axes) for table in tables]
    weight, squares, rows = (table.reshape(len(table), -1) for table in compared)
    ends = np.full((2, *weight.shape), np.nan)
    if fit.request.privacy is None:
        seen = weight.sum(axis=0) > 0
        counts = WeightSums(weight, squares, np.where(weight > 0, rows, 0.0)).outcomes_against_others()
        ends[:, :, seen] = share_interval(counts[:, seen], confidence)
    return ends.reshape(2, *compared[0].shape)


def group_label(fit: Solved, axes: Grouping, group: tuple[int, ...]) -> str:
    """Name a group of a grouping by its levels."""
    return " × ".join(fit.roles.attributes[axis].labels[level] for axis, level in zip(axes, group, strict=True))


def summary_frame(fit: Solved, changes: tuple[GroupChange, ...]) -> Any:
    """The changes as a frame of the library that the data came in, one row each."""
    backend = fit.domain.attributes[0].values.implementation
    columns = {}
    for name, kind in GroupChange.__annotations__.items():
        column = nw.new_series(name, [getattr(change, name) for change in changes], _KINDS[kind], backend=backend)
        columns[name] = column.fill_nan(None) if kind is float else column
    return frames.build(columns)


# ---------------------------------------------------------------- a picture

Plotted = Literal["rates", "shares"]

MOST_LINES = 40
_LABEL = 40  # characters
_SEEN = 0.01  # a change that an arrow can show
# The colours of the report.
_BEFORE, _AFTER, _BAND, _SOFT = "#8a94a3", "#1f5fa8", "#1f5fa8", "#5a6472"

# Names come from data: a dollar sign in them is no formula, and a backslash no TeX.
_PLAIN = {"parse_math": False, "usetex": False}


class _Line(NamedTuple):
    """One group: what was there, with its interval if there is one, and what is there now."""

    label: str
    before: float
    interval: tuple[float, float]
    after: float

    @property
    def change(self) -> float:
        return abs(self.after - self.before) if math.isfinite(self.before - self.after) else math.inf


# Groups that are compared with each other, and the rate asked for: smallest over largest value.
_Panel = tuple[float | None, list[_Line]]


def draw_groups(fit: Solved, wanted: Rates, changes: Sequence[GroupChange], what: Plotted, ax: Any) -> Any:
    """Draw on ``ax``, or on a new figure; return the axes."""
    check_choice("what", what, Plotted)
    panels = _rate_panels(fit, wanted, changes) if what == "rates" else _share_panels(fit, wanted, changes)
    sizes = sorted((line.change for _, lines in panels for line in lines), reverse=True)
    least = sizes[MOST_LINES] if len(sizes) > MOST_LINES else -1.0
    panels = [(rate, [line for line in lines if line.change > least]) for rate, lines in panels]
    count = sum(len(lines) for _, lines in panels)
    axes = _new_axes(count) if ax is None else ax
    _draw(axes, [panel for panel in panels if panel[1]])
    more = f" ({len(sizes) - count} groups with smaller changes are not shown)" if count < len(sizes) else ""
    axes.set_title(_title(fit, what) + more, fontsize="medium", **_PLAIN)
    return axes


def _new_axes(lines: int) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise DependencyError("fit.plot() needs matplotlib, which is not installed; pip install matplotlib") from error
    return pyplot.subplots(figsize=(7.0, 1.5 + 0.4 * lines), layout="constrained")[1]


def _rate_panels(fit: Solved, wanted: Rates, changes: Sequence[GroupChange]) -> list[_Panel]:
    several = len({change.outcome for change in changes}) > 1
    panels: dict[tuple[str, str], list[_Line]] = {}
    for change in changes:
        label = f"{change.group}: {change.outcome}" if several else change.group
        interval = (change.rate_before_low, change.rate_before_high)
        line = _Line(label, change.rate_before, interval, change.rate_after)
        panels.setdefault((change.column, change.outcome), []).append(line)
    order = sorted(panels, key=lambda panel: (fit.problem.measure.names.index(panel[0]), panel[1]))
    return [(wanted["statistical_rate"][column], panels[column, outcome]) for column, outcome in order]


def _share_panels(fit: Solved, wanted: Rates, changes: Sequence[GroupChange]) -> list[_Panel]:
    panels: dict[str, dict[str, _Line]] = {}
    for change in changes:
        line = _Line(change.group, change.share_before, (math.nan, math.nan), change.share_after)
        panels.setdefault(change.column, {})[change.group] = line
    # Of shares that were named one by one, a band would say something else.
    rates = {**wanted["representation_rate"], **dict.fromkeys(fit.request.target or ())}
    return [(rates[column], list(lines.values())) for column, lines in panels.items()]


def _title(fit: Solved, what: Plotted) -> str:
    if what == "shares":
        return "Share of each group"
    outcome, favourable = fit.roles.attributes[0], fit.problem.measure.favourable
    name = cut(", ".join(fit.roles.outcome_names), _LABEL)
    if fit.roles.others:
        return visible(f"How often each group has each of {name}")
    if len(favourable) > 1:
        return visible(f"How often each group has each {name}")
    return visible(f"How often each group has {name} = {cut(outcome.labels[favourable[0]], _LABEL)}")


def _draw(ax: Any, panels: Sequence[_Panel]) -> None:
    """Lines from top to bottom, with a little room between panels."""
    ticks: dict[float, str] = {}
    height = 0.0
    legend: dict[str, Any] = {}
    for wanted, lines in panels:
        top = height - 0.45
        for line in lines:
            legend |= _draw_line(ax, line, height)
            ticks[height] = visible(cut(line.label, _LABEL))
            height += 1
        largest = max((line.after for line in lines if math.isfinite(line.after)), default=None)
        if wanted is not None and largest is not None:
            band, span = (wanted * largest, largest), [top, height - 0.55]
            legend["asked for"] = ax.fill_betweenx(span, *band, color=_BAND, alpha=0.14, linewidth=0, zorder=0)
            if band[0] == band[1]:  # equal groups: a band without width would not be seen
                style = {"color": _BAND, "alpha": 0.35, "linewidth": 4, "solid_capstyle": "butt", "zorder": 0}
                (legend["asked for"],) = ax.plot([largest] * 2, span, **style)
        height += 0.4
    ax.set_yticks(list(ticks), list(ticks.values()), **_PLAIN)
    ax.set_ylim(height - 0.6, -0.8)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#dcdfe4", linewidth=0.6, zorder=-1)
    ax.set_axisbelow(True)
    below = {"loc": "upper left", "bbox_to_anchor": (0, 0), "borderaxespad": 2.5}  # below the numbers of the axis
    ax.legend(legend.values(), legend.keys(), ncols=4, frameon=False, fontsize="small", **below)


def _draw_line(ax: Any, line: _Line, height: float) -> dict[str, Any]:
    """One group: a grey ring with its interval, an arrow, and a blue dot."""
    drawn = {}
    if math.isfinite(line.before):
        (drawn["before"],) = ax.plot(line.before, height, "o", color=_BEFORE, markersize=7, zorder=3)
    if all(map(math.isfinite, line.interval)):
        (drawn["95 % interval before"],) = ax.plot(line.interval, [height] * 2, color=_BEFORE, linewidth=2, zorder=2)
    if _SEEN < line.change < math.inf:
        arrow = {"arrowstyle": "->", "color": _SOFT, "linewidth": 1, "shrinkA": 4, "shrinkB": 4}
        ax.annotate("", (line.after, height - 0.18), (line.before, height - 0.18), arrowprops=arrow)
    if math.isfinite(line.after):
        (drawn["after"],) = ax.plot(line.after, height, "D", color=_AFTER, markersize=7, zorder=4)
    return drawn
