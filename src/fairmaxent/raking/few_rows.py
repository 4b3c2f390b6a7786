"""Warnings about levels whose share rests on too few rows: exact margins do not make three people a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairmaxent.document.words import percent, times
from fairmaxent.errors import Option
from fairmaxent.fit.costs import FEWEST_ROWS, MOST_TIMES
from fairmaxent.raking.margin_result import MarginLevel, MarginResult

_SHOWN = 3  # levels warned about one by one; the rest is counted
_REMEDY = " To avoid this, merge the level with another one, or limit how much weights may change with "


def few_rows_warnings(margins: Sequence[MarginResult]) -> Iterator[tuple[object, ...]]:
    """Warn of the levels that were raised though they rest on few rows, worst first, with a way out."""
    raised = [(margin.name, level) for margin in margins for level in margin.levels if _is_beyond_line(level)]
    raised.sort(key=lambda named: named[1].effective_rows)
    remedy: tuple[object, ...] = (_REMEDY, Option("bounds"), ".")
    for name, level in raised[:_SHOWN]:
        people = "a single row" if level.rows == 1 else f"{level.rows:,} rows"
        yield (
            f"{name} = {level.level}: {percent(level.achieved)} of the total weight rests on {people}, "
            f"{times(level.achieved / level.before)} times as much as before.",
            *remedy,
        )
        remedy = ()  # said once
    more = len(raised) - _SHOWN
    if more > 0:
        which = "1 more level was raised" if more == 1 else f"{more:,} more levels were raised"
        yield (
            f"{which} beyond the same line: fewer than {FEWEST_ROWS} effective rows, or {MOST_TIMES} times as much.",
        )


def _is_beyond_line(level: MarginLevel) -> bool:
    if not level.before or level.achieved <= level.before * (1 + 1e-6):
        return False
    return level.effective_rows < FEWEST_ROWS or level.achieved > MOST_TIMES * level.before
