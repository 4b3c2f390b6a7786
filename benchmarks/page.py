"""The page results.md: every bar, then every subject with its tables and curves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.drawing import draw
from benchmarks.outcome import Bar, Cell, Curve, Outcome, Table
from benchmarks.process import MOST_BYTES

PAGE = "results.md"
_SMALLEST = 1e-4  # smaller numbers are shown with an exponent


def write_page(folder: Path, records: Mapping[str, Any], order: Sequence[str]) -> None:
    """Write the page, and a picture for each subject with curves."""
    known = {name: Outcome.of(records[name]) for name in order if name in records}
    lines = [
        "# Benchmarks",
        "",
        (
            "Written by `make bench`. CPU seconds are those of all threads of a fresh"
            " process, linear algebra with one"
        ),
        (
            "thread; short jobs are run several times and the median counts. A job"
            f" that wants more than {MOST_BYTES / 1e9:.0f} GB is ended."
        ),
        "The machine is shared: ratios within one run tell more than seconds.",
        "",
        "## Bars",
        "",
        *bar_lines({name: outcome.bars for name, outcome in known.items()}, records),
    ]
    for name, outcome in known.items():
        lines += section_lines(outcome, records[name]["setting"])
        if outcome.curves:
            draw(outcome.curves, folder / f"{name}.svg")
            lines += [
                f"![{outcome.title}]({name}.svg)",
                "",
                *_exponents(outcome.curves),
            ]
    (folder / PAGE).write_text("\n".join(lines).rstrip() + "\n")


def bar_lines(
    bars: Mapping[str, Sequence[Bar]], records: Mapping[str, Any]
) -> list[str]:
    """Say of each subject's bars what was measured and whether it is met."""
    rows: list[tuple[Cell, ...]] = []
    for name, own in bars.items():
        for bar in own:
            measured = (
                bar.why
                if bar.measured is None
                else f"{show(bar.measured)} {bar.unit}".strip()
            )
            limit = (
                f"{'≥' if bar.at_least else '≤'} {show(bar.limit)} {bar.unit}".strip()
            )
            hint = ", in a quick run" if records[name]["setting"]["quick"] else ""
            met = ("yes" if bar.met else "**no**") + hint
            rows.append((name, bar.name, measured, limit, met))
    return table_lines(
        Table("", ("subject", "what", "measured", "bar", "met"), tuple(rows))
    )


def section_lines(outcome: Outcome, setting: Mapping[str, Any]) -> list[str]:
    """One subject: how it was measured, its tables, and with which versions."""
    lines = [
        f"## {outcome.title}" + (" (quick: smaller sizes)" if setting["quick"] else ""),
        "",
        outcome.words,
        "",
    ]
    for table in outcome.tables:
        lines += ([f"### {table.title}", ""] if table.title else []) + table_lines(
            table
        )
    versions = {
        name: value
        for name, value in setting.items()
        if name not in ("quick", "day", "machine")
    }
    with_what = ", ".join(f"{name} {value}" for name, value in versions.items())
    return [*lines, f"{setting['day']}, {setting['machine']}; {with_what}.", ""]


def _exponents(curves: Sequence[Curve]) -> list[str]:
    rows = tuple(
        (curve.panel, curve.name, curve.begin, curve.end, curve.exponent)
        for curve in curves
    )
    return table_lines(
        Table("", ("growing", "CPU s of", "from", "to", "exponent"), rows)
    )


def table_lines(table: Table) -> list[str]:
    """A table in Markdown; columns without a name and without cells are left out."""
    shown = [[show(cell) for cell in row] for row in table.rows]
    kept = [
        place
        for place, name in enumerate(table.columns)
        if name or any(row[place] for row in shown)
    ]
    lines = [[table.columns[place] for place in kept], ["---"] * len(kept)]
    lines += [[row[place] for place in kept] for row in shown]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def show(cell: Cell) -> str:
    """A cell as text: three digits of a number that is not whole.

    >>> [show(cell) for cell in (0.01234, 1234.5, 12_000, 3e-15, 0.0, None, "a|b")]
    ['0.0123', '1,234', '12,000', '3e-15', '0', '', 'a\\\\|b']
    """
    if cell is None or isinstance(cell, str):
        return (cell or "").replace("|", r"\|")
    if cell == int(cell):
        return f"{int(cell):,}"
    if abs(cell) < _SMALLEST:
        return f"{cell:.1e}".replace(".0e", "e")
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
