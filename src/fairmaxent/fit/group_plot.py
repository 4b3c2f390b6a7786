"""Group plot: each group's rate or share before and after, and the band that was asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from fairmaxent.errors import DependencyError, check_choice, cut
from fairmaxent.fit.group_changes import GroupChange
from fairmaxent.fit.learned import Learned
from fairmaxent.plain_text import visible

Plotted = Literal["rates", "shares"]

MOST_LINES = 40
_LABEL = 40  # characters
_SEEN = 0.01  # a change that an arrow can show
# The colours of the report.
_BEFORE, _AFTER, _BAND, _SOFT = "#8a94a3", "#1f5fa8", "#1f5fa8", "#5a6472"

# Names come from data: a dollar sign in them is no formula, and a backslash no TeX.
_PLAIN = {"parse_math": False, "usetex": False}


@dataclass(frozen=True)
class _Line:
    """One group: what was there, with its interval if there is one, and what is there now."""

    label: str
    before: float
    interval: tuple[float, float]
    after: float

    @property
    def change(self) -> float:
        return abs(self.after - self.before) if math.isfinite(self.before - self.after) else math.inf


@dataclass(frozen=True)
class _Panel:
    """Groups that are compared with each other, and the rate asked for: smallest over largest value."""

    wanted: float | None
    lines: tuple[_Line, ...]

    def band(self) -> tuple[float, float] | None:
        """From the lowest value allowed to the largest; None if nothing was asked for."""
        values = [line.after for line in self.lines if math.isfinite(line.after)]
        return None if self.wanted is None or not values else (self.wanted * max(values), max(values))


def draw_groups(fit: Learned, changes: Sequence[GroupChange], what: Plotted, ax: Any) -> Any:
    """Draw on ``ax``, or on a new figure; return the axes."""
    check_choice("what", what, Plotted)
    panels = list(_rate_panels(fit, changes) if what == "rates" else _share_panels(fit, changes))
    shown = _largest_changes(panels)
    count = sum(len(panel.lines) for panel in shown)
    axes = _new_axes(count) if ax is None else ax
    _draw(axes, shown)
    left_out = sum(len(panel.lines) for panel in panels) - count
    title = _title(fit, what) + (f" ({left_out} groups with smaller changes are not shown)" if left_out else "")
    axes.set_title(title, fontsize="medium", **_PLAIN)
    return axes


def _new_axes(lines: int) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise DependencyError("fit.plot() needs matplotlib, which is not installed; pip install matplotlib") from error
    return pyplot.subplots(figsize=(7.0, 1.5 + 0.4 * lines), layout="constrained")[1]


# ---------------------------------------------------------------- what is drawn


def _rate_panels(fit: Learned, changes: Sequence[GroupChange]) -> Iterator[_Panel]:
    several = len({change.outcome for change in changes}) > 1
    wanted = fit.certificate.wanted["statistical_rate"]
    ordered = sorted(changes, key=lambda change: (fit.certificate.measure.names.index(change.column), change.outcome))
    for (column, outcome), panel in groupby(ordered, key=lambda change: (change.column, change.outcome)):
        yield _Panel(
            wanted[column],
            tuple(
                _Line(
                    f"{change.group}: {outcome}" if several else change.group,
                    change.rate_before,
                    (change.rate_before_low, change.rate_before_high),
                    change.rate_after,
                )
                for change in panel
            ),
        )


def _share_panels(fit: Learned, changes: Sequence[GroupChange]) -> Iterator[_Panel]:
    wanted, named = fit.certificate.wanted["representation_rate"], fit.request.target or {}
    for column, panel in groupby(changes, key=lambda change: change.column):
        # Of shares that were named one by one, a band would say something else.
        lines = {
            change.group: _Line(change.group, change.share_before, (math.nan, math.nan), change.share_after)
            for change in panel
        }
        yield _Panel(None if column in named else wanted[column], tuple(lines.values()))


def _largest_changes(panels: Sequence[_Panel]) -> list[_Panel]:
    """At most so many lines, those of the largest changes; panels without any of them are left out."""
    changes = sorted((line.change for panel in panels for line in panel.lines), reverse=True)
    if len(changes) <= MOST_LINES:
        return list(panels)
    least = changes[MOST_LINES]
    kept = [_Panel(panel.wanted, tuple(line for line in panel.lines if line.change > least)) for panel in panels]
    return [panel for panel in kept if panel.lines]


def _title(fit: Learned, what: Plotted) -> str:
    if what == "shares":
        return "Share of each group"
    outcome, favourable = fit.roles.attributes[0], fit.certificate.measure.favourable
    if fit.roles.others:
        return visible(f"How often each group has each of {cut(', '.join(fit.roles.outcome_names), _LABEL)}")
    if len(favourable) > 1:
        return visible(f"How often each group has each {cut(outcome.name, _LABEL)}")
    return visible(
        f"How often each group has {cut(outcome.name, _LABEL)} = {cut(outcome.labels[favourable[0]], _LABEL)}"
    )


# ---------------------------------------------------------------- drawing


def _draw(ax: Any, panels: Sequence[_Panel]) -> None:
    """Lines from top to bottom, with a little room between panels."""
    heights, labels, height = [], [], 0.0
    legend: dict[str, Any] = {}
    for panel in panels:
        top = height - 0.45
        for line in panel.lines:
            legend |= _draw_line(ax, line, height)
            heights.append(height)
            labels.append(visible(cut(line.label, _LABEL)))
            height += 1
        band = panel.band()
        if band is not None:
            height_range = [top, height - 0.55]
            legend["asked for"] = ax.fill_betweenx(height_range, *band, color=_BAND, alpha=0.14, linewidth=0, zorder=0)
            if band[0] == band[1]:  # equal groups: a band without width would not be seen
                ax.plot(
                    [band[0]] * 2, height_range, color=_BAND, alpha=0.35, linewidth=4, solid_capstyle="butt", zorder=0
                )
                legend["asked for"] = ax.lines[-1]
        height += 0.4
    ax.set_yticks(heights, labels, **_PLAIN)
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
