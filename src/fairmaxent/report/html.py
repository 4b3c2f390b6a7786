"""The report as one HTML file: no script, no network, every name and value from the data escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fairmaxent.errors import DependencyError
from fairmaxent.fit.share_text import percent
from fairmaxent.plain_text import isolated
from fairmaxent.report import decisions, evaluated, model_estimate, number_text, sentences, svg, tables
from fairmaxent.report.build import Report
from fairmaxent.report.first_page import first_page, left_out_alerts
from fairmaxent.report.shares import Grouping, Marginal, Shift
from fairmaxent.report.text_table import TextTable
from fairmaxent.report.trade_off import TradeOffPoint

if TYPE_CHECKING:
    from jinja2 import Environment

SHOWN_COLUMNS = 40
SHOWN_LEVELS = 16
SHOWN_GROUPS = 24
SHOWN_WARNINGS = 30
_TYPED = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


@dataclass(frozen=True)
class Bars:
    """A table of shares with bars: what is shown, and what had no room."""

    name: str
    about: str
    rows: tuple[Shift, ...]
    hidden: int
    rest: Shift | None
    longest: float  # the share that fills the width

    @property
    def counted(self) -> bool:
        """Whether the rows behind each share are known."""
        return all(row.rows is not None for row in self.rows)


@dataclass(frozen=True)
class Picture:
    """A drawing and its heading."""

    heading: str
    svg: Any


def to_html(report: Report, *, paper: str | None = None) -> str:
    """Render the report; without a size of paper, it is printed on whatever there is."""
    environment = _environment()
    here = files("fairmaxent.report")
    template = environment.from_string(here.joinpath("report.html").read_text(encoding="utf-8"))
    return template.render(
        report=report,
        first=first_page(report),
        alerts=left_out_alerts(report),
        words=sentences,
        tables=tables,
        number_text=number_text,
        student=model_estimate,
        decisions=decisions,
        evaluated=evaluated,
        style=_trusted(_style(here.joinpath("report.css").read_text(encoding="utf-8"), paper)),
        groups=[_group_bars(grouping) for grouping in report.groupings],
        columns=[_column_bars(column) for column in report.marginals[:SHOWN_COLUMNS]],
        others=_columns_table(report.marginals[SHOWN_COLUMNS:]),
        shown_warnings=SHOWN_WARNINGS,
        maps=_maps(report),
        curves=_curves(report),
    )


def _style(css: str, paper: str | None) -> str:
    return css if paper is None else f"{css}@page {{ size: {paper}; }}\n"


def _environment() -> Environment:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as problem:
        raise DependencyError(
            "an HTML report needs jinja2, which is not installed; pip install jinja2, or write .md or .json instead"
        ) from problem
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters["percent"] = percent
    environment.filters["unbroken"] = _unbroken
    return environment


def _shown(value: Any) -> Any:
    """Let no text from the data hide letters, or move those beside it; our markup is left as it is."""
    return isolated(value) if type(value) is str else value


def _unbroken(text: str) -> Any:
    """Keep typed options on one line, which a browser would break after their dashes; for text, not for attributes."""
    from markupsafe import escape

    return _trusted(_TYPED.sub(r'<span class="option">\g<0></span>', str(escape(isolated(text)))))


def _trusted(text: str) -> Any:
    """Mark markup that the report made itself, so that it is not escaped again."""
    from markupsafe import Markup

    return Markup(text)


def _column_bars(column: Marginal) -> Bars:
    role = "" if column.role == "other" else f"{column.role}, "
    about = f"{role}{column.kind}, {len(column.shifts)} levels, distance {percent(column.distance)}"
    return _bars(column.name, about, column.shifts, SHOWN_LEVELS, shares=True)


def _columns_table(columns: Sequence[Marginal]) -> TextTable:
    rows = tuple((column.name, column.kind, f"{len(column.shifts)}", percent(column.distance)) for column in columns)
    label = number_text.more(len(columns), "column")
    return TextTable(label, ("Column", "Kind", "Levels", "Distance"), rows, words=(1,))


def _group_bars(grouping: Grouping) -> Bars:
    if grouping.outcome is None:
        return _bars(f"Size of the groups of {grouping.name}", "share of the rows", grouping.shifts, SHOWN_GROUPS)
    name = f"{grouping.column} = {grouping.outcome}, by {grouping.name}"
    return _bars(name, "share of each group that has this outcome", grouping.shifts, SHOWN_GROUPS)


def _bars(name: str, about: str, shifts: Sequence[Shift], room: int, *, shares: bool = False) -> Bars:
    """Keep the largest levels, in their order; if they are shares of the rows, the others add up to a rest."""
    sizes = [max(shift.before or 0.0, shift.after or 0.0) for shift in shifts]
    kept = sorted(sorted(range(len(shifts)), key=lambda index: -sizes[index])[:room])
    hidden = [shift for index, shift in enumerate(shifts) if index not in kept]
    rest = _rest(hidden) if hidden and shares else None
    return Bars(name, about, tuple(shifts[index] for index in kept), len(hidden), rest, max(sizes) or 1.0)


def _rest(hidden: Sequence[Shift]) -> Shift:
    before, after = sum(shift.before or 0.0 for shift in hidden), sum(shift.after or 0.0 for shift in hidden)
    return Shift(number_text.more(len(hidden), "level"), before, after)


def _maps(report: Report) -> list[Picture]:
    pairs = report.associations
    sides = (("Before", pairs.before, "in the data"), ("After", pairs.after, "after the fit"))
    titles = [f"Cramér's V of each pair of columns, {where}" for _, _, where in sides]
    return [
        Picture(heading, _trusted(svg.heat_map(pairs.names, matrix, title=title)))
        for (heading, matrix, _), title in zip(sides, titles, strict=True)
    ]


def _curves(report: Report) -> list[Picture]:
    curves = []
    for varied, across in sentences.varied(report).items():
        points = [point for point in report.trade_off.points if point.varied == varied and point.problem is None]
        curves.append(_curve(points, "Distance from the data", across, [point.distance for point in points]))
        if varied == "base_share":
            shares = [None if point.seen is None else 100 * point.seen for point in points]
            curves.append(_curve(points, "Seen combinations", across, shares, unit=" %"))
        else:
            curves.append(_curve(points, "Effective rows", across, [point.effective_rows for point in points]))
    return [curve for curve in curves if curve is not None]


def _curve(
    points: Sequence[TradeOffPoint], heading: str, across: str, values: Sequence[float | None], *, unit: str = ""
) -> Picture | None:
    """Draw a curve, or none where fewer than two points have a value."""
    drawn = [(point.value, value) for point, value in zip(points, values, strict=True) if value is not None]
    if len(drawn) < 2:
        return None
    this_fit = next((point.value for point in points if point.is_this_fit), None)
    title = f"{heading} over {across}"
    return Picture(title, _trusted(svg.curve(drawn, this_fit, title=title, across=across, unit=unit)))
