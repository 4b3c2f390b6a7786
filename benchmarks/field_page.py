"""The page of the field: where we lose first, then methods in short, exact rates, the
tables, and every cell.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.fair_models import GRADIENT, ITERATIONS, OURS
from benchmarks.fair_models_page import (
    WANTED,
    Means,
    Places,
    dominating,
    grouped,
    reaches,
)
from benchmarks.field_tables import Scenario, scenarios
from benchmarks.outcome import Cell, Table
from benchmarks.page import table_lines
from benchmarks.people import MOST_JUDGED

PAGE = "field.md"
RAW, CHEAP = (
    "raw",
    (
        "massaging",
        "kamiran-calders",
        "CorrelationRemover",
        "ThresholdOptimizer",
        "OxonFair",
    ),
)
_MUCH = 0.02  # accuracy
# how far weights and drawn rows may be off and still count as exact
_TINY, _ONE_ROW = 1e-9, 1.0

_COVERED = """\
- **FairGround** calls a table with the columns whose groups are compared a scenario, and has many of them. So do we: a
  table is measured by one column, and by intersections of several. Its own tables are downloaded, so only Adult, German
  credit, COMPAS and the ACS mobility task are the same here. It offers to reduce groups to majority and minority; we
  compare all of those that field.toml names.
- **ABCFair** has three formats of groups: two groups of one column, intersections, and each of several columns at the
  same time. Models are measured on the first two; the third (`groups="each"`) only as rates of tables. Of its seven
  notions, equal decisions are measured here and equal opportunity in [frontier.md](frontier.md); the other five are not
  what this library makes. It trains neural networks and draws curves over strengths of fairness; we take classifiers at
  their defaults and ask for full equality. Labels without bias (its SchoolPerformance) are not here."""


def write_page(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the page from what was measured."""
    means = grouped(record["cells"])
    lines = [
        "# The field's yardsticks",
        "",
        (
            "Written by `python benchmarks/field.py`. Tables that other packages ship,"
            " each described in [field.toml](field.toml), to which a table can be added"
            " with one section."
        ),
        "",
        "## Where we lose",
        "",
        *_again(record),
        *_losses(record, means),
        "## Methods in short",
        "",
        *_words(record),
        "",
        *(
            line
            for wish in dict.fromkeys(key[0] for key in means)
            for line in _summary(wish, means)
        ),
        "## Exact rates",
        "",
        *_exact(record["exact"]),
        "## The tables",
        "",
        *_tables(record["exact"]),
        "## What others' yardsticks ask for",
        "",
        *_COVERED.splitlines(),
        "",
        "## Every cell",
        "",
        *(
            line
            for wish in dict.fromkeys(key[0] for key in means)
            for line in _cells(wish, means)
        ),
        _setting(record),
    ]
    (folder / PAGE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def missed(ours: Means) -> bool:
    """Whether the rate is further below what an exactly fair model would measure than
    one standard error of that.
    """
    return ours["rate"] < ours["fair"] - ours["error"]


def _again(record: Mapping[str, Any]) -> list[str]:
    """What our models do with later code, beside what they did in the same splits."""
    later = [cell for cell in record.get("again", ()) if "failed" not in cell]
    if not later:
        return []
    known = {_place(cell): cell for cell in later}
    others = [cell for cell in record["cells"] if cell["method"] != OURS]
    before = [cell for cell in record["cells"] if _place(cell) in known]
    told = []
    for own in (later, before):
        places = {_place(cell)[:3] for cell in own}
        beside = [cell for cell in others if _place(cell)[:3] in places]
        found = list(grouped([*own, *beside]).values())
        ours = [methods[OURS] for methods in found]
        told.append(
            f"another method is more accurate by 0.005 and fairer by 0.01 in"
            f" {sum(bool(dominating(methods)) for methods in found)} of {len(found)}"
            f" cells, the rate is missed by more than a standard error in"
            f" {sum(map(missed, ours))}, its mean is"
            f" {fmean(one['rate'] for one in ours):.3f} and that of accuracy"
            f" {fmean(one['accuracy'] for one in ours):.3f}"
        )
    codes = ", ".join(dict.fromkeys(cell["code"] for cell in later))
    tables = ", ".join(dict.fromkeys(cell["data"] for cell in later))
    return [
        (
            "What follows was measured before the search for a fair model was made"
            f" anew. Our models were measured again on {tables} (code {codes}):"
            f" {told[0]}. Before, there: {told[1]}."
        ),
        "",
    ]


def _place(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where one of our cells belongs; of other methods, no place of ours."""
    return cell["data"], cell["learner"], cell["wish"], cell["split"], cell["method"]


def _losses(record: Mapping[str, Any], means: Places) -> list[str]:
    beaten, plainer, short, costly = [], [], [], []
    for (wish, table, learner), methods in means.items():
        ours, place = methods[OURS], (table, learner, wish)
        better = dominating(methods)
        beaten += [
            (*place, *_pair(ours), name, *_pair(methods[name])) for name in better
        ]
        alike = [
            name
            for name, own in methods.items()
            if name not in better and _as_fair(own, ours)
        ]
        plainer += [
            (*place, *_pair(ours), name, *_pair(methods[name])) for name in alike
        ]
        if missed(ours):
            raw = methods[RAW]["rate"] if RAW in methods else None
            short.append(
                (*place, raw and f"{raw:.3f}", _with_error(ours, "rate"), _fair(ours))
            )
        if GRADIENT in methods and ours["seconds"] > methods[GRADIENT]["seconds"]:
            costly.append(
                (
                    *place,
                    *(round(methods[name]["seconds"], 2) for name in (OURS, GRADIENT)),
                )
            )
    where, count = ("table", "classifier", "model"), len(means)
    beside = (*where, "our accuracy", "our rate", "method", "its accuracy", "its rate")
    tables = [
        Table(
            "Another method is more accurate by 0.005 and fairer by 0.01:"
            f" {_of(beaten, count)}",
            beside,
            tuple(beaten),
        ),
        Table(
            f"Another method is as fair, within 0.01, and more accurate by {_MUCH}:"
            f" {_of(plainer, count)}",
            beside,
            tuple(plainer),
        ),
        Table(
            f"The rate is missed by more than a standard error: {_of(short, count)}",
            (*where, "rate before", "our rate", "an exactly fair model"),
            tuple(short),
        ),
        Table(
            f"More CPU than {GRADIENT}: {_of(costly, count)}",
            (*where, "our CPU s", "its CPU s"),
            tuple(costly),
        ),
    ]
    lines = [
        line
        for table in tables
        for line in (
            f"### {table.title}",
            "",
            *(table_lines(table) if table.rows else []),
        )
    ]
    lines += [_more_than_cheap(means), ""]
    inexact = [
        cell for cell in record["exact"] if "failed" not in cell and not _is_exact(cell)
    ]
    asked = sum("failed" not in cell for cell in record["exact"])
    lines += [
        (
            f"Rates of tables that were asked for and not reached: {len(inexact)} of"
            f" {asked} (see below)."
        ),
        "",
    ]
    return lines + _unmeasured(record)


def _as_fair(own: Means, ours: Means) -> bool:
    return (
        own["rate"] > ours["rate"] - 0.01 and own["accuracy"] > ours["accuracy"] + _MUCH
    )


def _of(rows: Sequence[Any], count: int) -> str:
    return f"{len({row[:3] for row in rows})} of {count} cells"


def _more_than_cheap(means: Places) -> str:
    """What methods that train once or twice cost less."""
    ratios = {
        name: [
            own[OURS]["seconds"] / own[name]["seconds"]
            for own in means.values()
            if name in own
        ]
        for name in CHEAP
    }
    shown = ", ".join(
        f"{median(own):.0f} times that of {name}" for name, own in ratios.items() if own
    )
    return (
        "Methods that train once or twice always cost less: in the median, our CPU is"
        f" {shown}."
    )


def _unmeasured(record: Mapping[str, Any]) -> list[str]:
    cells = [*record["exact"], *record["cells"]]
    failed = {
        f"{cell['data']}, {cell.get('method', 'exact rates')}: {cell['failed']}"
        for cell in cells
        if "failed" in cell
    }
    nobody: dict[str, set[str]] = {}
    for cell in record["cells"]:
        if cell.get("rate", 0.0) is None:
            nobody.setdefault(
                f"{cell['data']}, {cell['learner']}, {cell['wish']}", set()
            ).add(cell["method"])
    lines = [f"- failed: {text}" for text in sorted(failed)]
    lines += [
        f"- {place}: no rate in a split in which nobody gets a good decision, from"
        f" {', '.join(sorted(own))}"
        for place, own in nobody.items()
    ]
    left = [
        name for name in scenarios() if name not in {cell["data"] for cell in cells}
    ]
    lines += [f"- left out, because its table is not here: {name}" for name in left]
    return ["### Not measured", "", *lines, ""] if lines else []


def _words(record: Mapping[str, Any]) -> list[str]:
    sizes = record["sizes"]
    return [
        f"At most {sizes['learn']:,} people of each table to learn from, drawn at"
        f" random, and up to {MOST_JUDGED:,} of the others to judge on; random splits:"
        f" {sizes['splits']}. ± is the standard error over the splits, which share"
        " people, so that it is rather too small. Rate: the smallest over the largest"
        " group's share of good decisions. An exactly fair model: what it would"
        " measure among these people (groups dealt anew), ± its standard deviation, by"
        f" which a rate may be below {WANTED} and still count as having reached it."
        f" `{OURS}` is `fairmaxent.Model`, `{RAW}` the classifier as it is; {GRADIENT}"
        f" (at most {ITERATIONS} iterations), ThresholdOptimizer and CorrelationRemover"
        " are fairlearn's. The first two of those decide at random among several"
        " rules, and their AUC is that of the chances; the last two must know the"
        " group of the people whom they decide about, so that they are not among the"
        " models that do not see it. OxonFair finds thresholds on a third of the people,"
        " whom its model does not learn from; of a hidden group, a second model guesses."
        " CPU s: from the table to decisions, one thread."
    ]


def _summary(wish: str, means: Places) -> list[str]:
    own = [methods for key, methods in means.items() if key[0] == wish]
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys(name for methods in own for name in methods):
        found = [
            (methods[name], methods.get(RAW, methods[name]))
            for methods in own
            if name in methods
        ]
        lost = [
            [raw[what] - one[what] for one, raw in found]
            for what in ("accuracy", "auc")
        ]
        fair = (
            fmean(not missed(one) for one, _ in found),
            fmean(reaches(one) for one, _ in found),
        )
        rates, seconds = (
            [one[what] for one, _ in found] for what in ("rate", "seconds")
        )
        shown = (
            *(f"{fmean(one):.3f}" for one in lost),
            f"{fmean(rates):.3f}",
            f"{min(rates):.3f}",
            *(f"{one:.0%}" for one in fair),
        )
        rows.append((name, len(found), *shown, round(median(seconds), 2)))
    shares = "not missed", f"{WANTED} reached"
    columns = (
        "method",
        "cells",
        "accuracy lost",
        "AUC lost",
        "rate, mean",
        "rate, lowest",
        *shares,
        "CPU s",
    )
    return [f"### The model {wish}", "", *table_lines(Table("", columns, tuple(rows)))]


def _is_exact(cell: Mapping[str, Any]) -> bool:
    return cell["short"] < _TINY and cell["rows off"] < _ONE_ROW


def _exact(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    rows: list[tuple[Cell, ...]] = []
    found = [cell for cell in cells if "failed" not in cell]
    for data, groups in dict.fromkeys((cell["data"], cell["groups"]) for cell in found):
        own = [
            cell for cell in found if (cell["data"], cell["groups"]) == (data, groups)
        ]
        worst = (
            max(cell[what] for cell in own) for what in ("short", "rows off", "seconds")
        )
        compared = scenarios()[data].groups
        how = (
            f"{' × '.join(compared)}"
            if groups == "joint"
            else f"{', '.join(compared)}, each"
        )
        rows.append((data, own[0]["rows"], how, f"{own[0]['before']:.3f}", *worst))
    asked = list(dict.fromkeys(tuple(cell["asked"].items()) for cell in found))
    shown = "; ".join(
        " and ".join(f"{name} {rate:g}" for name, rate in one if rate is not None)
        for one in asked
    )
    columns = (
        "table",
        "people",
        "groups",
        "rate before",
        "short of the rate, at most",
        "rows off, at most",
        "CPU s, at most",
    )
    return [
        (
            f"Asked of each whole table: {shown.replace('_', ' ')}. Short: how far the"
            " weights' rates are below what was asked. Rows off: among 10,000 drawn"
            " rows, the largest difference from the exact number of an outcome in a"
            " group. CPU s: from the frame to weights."
        ),
        "",
        *table_lines(Table("", columns, tuple(rows))),
    ]


def _tables(exact: Sequence[Mapping[str, Any]]) -> list[str]:
    people = {cell["data"]: cell.get("rows") for cell in exact}
    first: dict[str, Scenario] = {
        scenario.table: scenario for scenario in reversed(scenarios().values())
    }
    rows = [
        (
            name,
            people.get(name),
            own.facts["about"],
            own.facts["from"],
            own.facts["source"],
            own.facts["terms"],
        )
        for name, own in reversed(first.items())
    ]
    return table_lines(
        Table(
            "",
            ("table", "people", "good outcome", "from", "source", "terms"),
            tuple(rows),
        )
    )


def _cells(wish: str, means: Places) -> list[str]:
    rows: list[tuple[Cell, ...]] = []
    for (asked, table, learner), methods in means.items():
        for name, own in methods.items() if asked == wish else ():
            shown = tuple(
                _with_error(own, what) for what in ("accuracy", "auc", "rate")
            )
            rows.append(
                (
                    table,
                    learner,
                    name,
                    *shown,
                    _fair(own),
                    f"{own['decided']:.3f}",
                    round(own["seconds"], 2),
                )
            )
    columns = (
        "table",
        "classifier",
        "method",
        "accuracy",
        "AUC",
        "rate",
        "an exactly fair model",
        "decided for",
        "CPU s",
    )
    return [f"### The model {wish}", "", *table_lines(Table("", columns, tuple(rows)))]


def _setting(record: Mapping[str, Any]) -> str:
    setting = {
        name: value
        for name, value in record["setting"].items()
        if name not in ("quick", "day", "machine")
    }
    versions = ", ".join(
        f"{name} {value}" for name, value in setting.items() if value != "not installed"
    )
    took = f"It took {record['seconds'] / 60:.0f} CPU minutes."
    return (
        f"{_states(record)} {took} {record['setting']['day']},"
        f" {record['setting']['machine']}; {versions}."
    )


def _states(record: Mapping[str, Any]) -> str:
    """What was measured with which state of the code."""
    measured: dict[str, set[str]] = {}
    for cell in (*record["exact"], *record["cells"]):
        what = cell.get("method", "exact rates")
        measured.setdefault(cell["code"], set()).add(what)
    if len(measured) == 1:
        return "All of it was measured with the same code."
    parts = [f"{code}: {', '.join(sorted(own))}" for code, own in measured.items()]
    return (
        "Measured with the code of these fingerprints, which only `model`, exact rates"
        f" and kamiran-calders depend on: {'; '.join(parts)}."
    )


def _pair(own: Means) -> tuple[str, str]:
    return _with_error(own, "accuracy"), _with_error(own, "rate")


def _with_error(own: Means, what: str) -> str:
    return f"{own[what]:.3f} ± {own[f'± {what}']:.3f}"


def _fair(own: Means) -> str:
    return f"{own['fair']:.3f} ± {own['error']:.3f}"
