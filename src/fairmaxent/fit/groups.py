"""Groups before and after: shares and rates as numbers, a frame and a picture."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.table import Axes, Codes, Indices, Mask, Names, Reals, ratio
from fairmaxent.errors import check_choice, cut
from fairmaxent.facts.groups import Gap, GroupChange
from fairmaxent.facts.models import Decisions
from fairmaxent.fairness.likely import ends_of
from fairmaxent.fairness.rates import (
    Grouping,
    Measure,
    group_shares,
    group_table,
    outcome_axis,
    outcome_rates,
    smallest_over_largest,
)
from fairmaxent.fit.solved import Solved
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.intervals import (
    Compared,
    check_confidence,
    ratio_ends,
    share_interval,
    widened,
)
from fairmaxent.plain_text import visible

_KINDS: dict[Any, Any] = {
    str: nw.String,
    int: nw.Int64,
    float: nw.Float64,
}
Plotted = Literal["rates", "shares"]
_RATES = attrgetter("rate_before", "rate_after", "rate_before_low", "rate_before_high")
MOST_LINES = 40  # of a picture
_LONGEST_LABEL = 40
_LONGEST_TITLE = 100
# the colours of the report
_BEFORE = "#8a94a3"
_AFTER = "#1f5fa8"
_MARKS = {"before": ("o", _BEFORE), "after": ("D", _AFTER)}
# names come from data: a dollar sign is no formula, a backslash no TeX
_PLAIN = {"parse_math": False, "usetex": False}
Changes = Sequence[GroupChange]


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
    if fit.provenance.is_noisy:
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


def gaps(fit: Solved, confidence: float = 0.95) -> tuple[Gap, ...]:
    """The clearest gap of each grouping, of people who are compared as they are.

    Noisy counts say nothing of chance; of likely groups, more is said elsewhere.
    """
    measure = fit.problem.judged
    is_known = fit.weighed is None and not fit.provenance.is_noisy
    if not is_known or measure.strata:
        return ()
    found = [
        _clearest_gap(fit, measure, axes, confidence)
        for _, axes in measure.named_groupings
    ]
    return tuple(gap for gap in found if gap is not None)


def _clearest_gap(
    fit: Solved, measure: Measure, axes: Grouping, confidence: float
) -> Gap | None:
    """Compare the largest group with each other one that is large enough."""
    sums = [
        group_table(measure.outcomes_compared(fit.problem.cells(of), axes), axes)
        for of in ("counts", "squares", "rows")
    ]
    weight, squares, people = (part.reshape(len(part), -1) for part in sums)
    rates = ratio(weight, weight.sum(axis=0), np.nan)
    apart = np.broadcast_to(measure.apart_of(axes), sums[0].shape)
    is_large = (rates >= 0) & ~apart.reshape(rates.shape)
    levels = measure.favourable_of(axes)
    pairs = _pairs_to_compare(weight.sum(axis=0), is_large, levels)
    if not len(pairs):
        return None
    compared = float(len(pairs))
    if len(levels) == 2 == len(weight):
        compared /= 2  # the rates of the second outcome follow from those of the first
    sure = 1 - (1 - confidence) / compared
    parts = (part.astype(float).tobytes() for part in (weight, squares, people))
    low, high = _ratio_ends(*parts, len(weight), pairs.tobytes(), sure)
    ratios = smallest_over_largest(rates[pairs[:, :1], pairs[:, 1:]])
    clearest = np.lexsort((ratios, np.minimum(high, 1.0)))[0]
    level, *both = pairs[clearest].tolist()
    lowest, highest = sorted(both, key=lambda group: rates[level, group])
    outcome = fit.roles.attributes[outcome_axis(axes)]
    names = [_levels(fit, axes, sums[0].shape[1:], one) for one in (lowest, highest)]
    value = float(ratios[clearest])
    ends = widened((low[clearest], high[clearest]), value)
    return Gap(
        columns=tuple(fit.roles.attributes[axis].name for axis in axes),
        lowest=names[0],
        highest=names[1],
        outcome=(outcome.name, outcome.labels[level]),
        ratio=value,
        interval=ends,
    )


@lru_cache(64)  # many fits of the same rows have the same
def _ratio_ends(
    weights: bytes,
    squares: bytes,
    rows: bytes,
    outcomes: int,
    pairs: bytes,
    confidence: float,
) -> tuple[Reals, Reals]:
    """Both ends of the ratios of the rates of pairs of groups."""
    sums = (
        np.frombuffer(part).reshape(outcomes, -1) for part in (weights, squares, rows)
    )
    compared = np.frombuffer(pairs, dtype=int).reshape(-1, 3)
    cells = compared[:, :1], compared[:, 1:]
    counts = WeightSums(*sums).against_others()
    return ratio_ends([Compared(counts[cells])], confidence)


def _pairs_to_compare(sizes: Reals, is_large: Mask, levels: Iterable[int]) -> Codes:
    """For each outcome, each other group beside the largest one."""
    order = np.argsort(-sizes, kind="stable").tolist()
    pairs = []
    for level in levels:
        large = [group for group in order if is_large[level, group]]
        pairs += [(level, other, large[0]) for other in large[1:]]
    return np.array(pairs, dtype=int).reshape(-1, 3)


def _levels(fit: Solved, axes: Grouping, shape: Axes, group: int) -> Names:
    """The levels of a group, by its number among all of a grouping."""
    return tuple(
        fit.roles.attributes[axis].labels[int(level)]
        for axis, level in zip(axes, np.unravel_index(group, shape), strict=True)
    )


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


@dataclass(frozen=True, eq=False)
class _Picture:
    """What is drawn: a line for each group, with a mark for each kind of number."""

    title: str
    names: tuple[str, ...]  # of the lines
    marks: dict[str, Reals]
    moved: Reals  # how much each line changes: of many, those that do most are drawn
    interval: str = ""  # what it is called; none: there is none
    ends: tuple[Reals, Reals] | None = None  # of the intervals


def draw_groups(
    fit: Solved,
    changes: Changes,
    decisions: Decisions | None,
    what: Plotted,
    ax: Any,
) -> Any:
    """Draw on ``ax``, or on a new figure, and return the axes.

    Of many groups, those that change most are drawn.
    """
    check_choice("what", what, Plotted)
    if what == "rates" and decisions is not None:
        picture = _picture_of_decisions(fit, changes, decisions)
    elif what == "rates":
        picture = _picture_of_rates(fit, changes)
    else:
        picture = _picture_of_shares(changes, decisions)
    moved = np.nan_to_num(picture.moved, nan=np.inf)
    shown = np.sort(np.argsort(-moved, kind="stable")[:MOST_LINES])
    axes = ax
    if ax is None:
        frames.load_library("matplotlib")  # or the error that says what to install
        from matplotlib import pyplot

        size = (7.0, 1.5 + 0.4 * len(shown))
        _, axes = pyplot.subplots(figsize=size, layout="constrained")
    _draw_numbers(axes, picture, shown)
    labels = [visible(cut(picture.names[index], _LONGEST_LABEL)) for index in shown]
    axes.set_yticks(np.arange(len(shown)), labels, **_PLAIN)
    title = visible(cut(picture.title, _LONGEST_TITLE))
    more = len(moved) - len(shown)
    if more:
        title += f" ({more} groups with smaller changes are not shown)"
    axes.set_title(title, fontsize="medium", **_PLAIN)
    return axes


def _picture_of_shares(changes: Changes, decisions: Decisions | None) -> _Picture:
    """How large each group is, before and in the fair table."""
    groups = {(change.column, change.group): change for change in changes}
    before = np.array([change.share_before for change in groups.values()])
    after = np.array([change.share_after for change in groups.values()])
    title = "Share of each group"
    if decisions is not None:
        title += f" in the table that {decisions.student} learns from"
    return _Picture(
        title=title,
        names=tuple(group for _, group in groups),
        marks={"before": before, "after": after},
        moved=np.abs(after - before),
    )


def _picture_of_rates(fit: Solved, changes: Changes) -> _Picture:
    """How often each group has the outcome, before and in the fair table."""
    # Who is not compared has no interval, and is not drawn.
    compared = [
        change
        for change in changes
        if fit.provenance.is_noisy
        or np.isnan(change.rate_before)
        or change.rate_before_low >= 0
    ]
    numbers = np.array([_RATES(change) for change in compared]).reshape(-1, 4)
    before, after, low, high = numbers.T
    return _Picture(
        title=f"How often each group has {_outcomes(fit, compared)}",
        names=_names_of(compared),
        marks={"before": before, "after": after},
        moved=np.abs(after - before),
        interval="95 % interval before",
        ends=(low, high),
    )


def _picture_of_decisions(
    fit: Solved, changes: Changes, decisions: Decisions
) -> _Picture:
    """How often a model is expected to decide for each group.

    What it is taught is no decision, and is not drawn.
    """
    by_name = {(change.name, change.about): change for change in changes}
    decided = [by_name[one.group, one.outcome] for one in decisions.shares]
    share, low, high, taught = np.array(
        [(one.share, one.low, one.high, one.taught) for one in decisions.shares]
    ).T
    outcome = _outcomes(fit, decided)
    title = f"How often {decisions.student} is expected to decide for {outcome}"
    if decisions.parity == "opportunity":
        title += ", among people whose outcome is good"
    return _Picture(
        title=title,
        names=_names_of(decided),
        marks={"expected decisions": share},
        moved=np.abs(share - taught),
        interval="95 % interval",
        ends=(low, high),
    )


def _outcomes(fit: Solved, changes: Changes) -> str:
    """The outcome that they are about, or each of several."""
    abouts = {change.about for change in changes}
    if len(abouts) == 1:
        return abouts.pop()
    return f"each of {', '.join(fit.roles.outcome_names)}"


def _names_of(changes: Changes) -> tuple[str, ...]:
    """The group of each line, with the outcome if there are several."""
    if len({change.about for change in changes}) == 1:
        return tuple(change.group for change in changes)
    return tuple(f"{change.group}: {change.outcome}" for change in changes)


def _draw_numbers(axes: Any, picture: _Picture, shown: Indices) -> None:
    """Draw a line below the other, with the look of the report."""
    heights = np.arange(len(shown))
    for name, values in picture.marks.items():
        marker, colour = _MARKS.get(name, ("D", _AFTER))
        axes.plot(values[shown], heights, marker, color=colour, label=name)
    if picture.ends is not None:
        low, high = picture.ends
        colour = _MARKS["before"][1] if "before" in picture.marks else _AFTER
        axes.hlines(
            heights, low[shown], high[shown], color=colour, label=picture.interval
        )
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
