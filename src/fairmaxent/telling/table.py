"""What was done to the table: left out, binned, filled, emptied, not compared."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from fairmaxent.document import Blocks
from fairmaxent.document.words import percent
from fairmaxent.errors import KEEP_COLUMNS, Option, Remark
from fairmaxent.facts.fitted import Facts
from fairmaxent.telling.case import Case

_STRATA = 6  # in one sentence

Remarks = Callable[[Facts], Iterator[Remark]]


def as_notes(remarks: Remarks) -> Callable[[Case], Blocks]:
    """Remarks on facts as something to say in a case."""

    def told(case: Case) -> Blocks:
        yield from case.notes(remarks(case.facts))

    return told


def filled_cells(facts: Facts) -> Iterator[Remark]:
    """Combinations that the base fills in."""
    for cell, share in zip(facts.filled_cells, facts.filled_shares, strict=True):
        yield (
            f"no row that was fitted has {cell}: the base fills in this"
            f" combination, {percent(share)} of the result",
        )


def removed_levels(facts: Facts) -> Iterator[Remark]:
    """Levels that the result no longer has."""
    for level in facts.removed_levels:
        yield (f"level removed, because its share was 0, or is to be: {level}",)


def left_out(facts: Facts) -> Iterator[Remark]:
    """Columns that took no part."""
    columns = ", ".join(map(repr, facts.left_out_columns))
    if columns:
        yield (
            "left out, because they look like identifiers or notes about people:"
            f" {columns}. To keep them, use ",
            replace(KEEP_COLUMNS, value=list(facts.left_out_columns)),
        )


def reading(facts: Facts) -> Iterator[Remark]:
    """What reading the columns showed."""
    for note in facts.notes:
        yield (note,)


def redrawn(facts: Facts) -> Iterator[Remark]:
    """Columns whose values are redrawn, and why."""
    if facts.redrawn is not None and facts.redrawn.reason is not None:
        what = (
            f"in new rows, values of {', '.join(map(repr, facts.redrawn.columns))} are"
            " redrawn within their bins ("
        )
        yield (what, Option("detail", "bins"), f"), because {facts.redrawn.reason}")


def binned(facts: Facts) -> Iterator[Remark]:
    """Columns that are compared in bins."""
    for name, bins in facts.binned_columns.items():
        yield (
            f"column {name!r} is compared in {len(bins)} bins:"
            f" {', '.join(bins[:3])}, …",
        )


def emptied(facts: Facts) -> Iterator[Remark]:
    """Rows that cannot count if the wishes are to be met."""
    for cell in facts.emptied_cells:
        yield (
            f"the rows with {cell} get weight zero: the wanted rates cannot be met"
            " with them. To keep them, lower ",
            Option("representation_rate"),
            " or ",
            Option("statistical_rate"),
        )


def missing_values(facts: Facts) -> Iterator[Remark]:
    """Missing values that are not compared."""
    columns = []
    keep = "keep their share and "  # as most missing values do
    for missing in facts.kept_missing:
        share = f"{missing.share:.1%} of the rows"
        if percent(missing.after) != percent(missing.share):
            share += f", {percent(missing.after)} of the result"
            keep = ""
        columns.append(f"{missing.column!r} ({share})")
    if columns:
        yield (
            f"missing values of {', '.join(columns)} {keep}are not compared; to"
            " compare them as a group, use ",
            Option("compare_missing", value=True),
        )


def single_groups(facts: Facts) -> Iterator[Remark]:
    """Strata in which there is nothing to compare."""
    for grouping, names in facts.single_groups.items():
        strata = "; ".join(names[:_STRATA])
        if len(names) > _STRATA:
            strata += f" and {len(names) - _STRATA} more"
        yield (
            f"{grouping}: not compared, because they have rows of a single group:"
            f" {strata}",
        )


def forbidden(facts: Facts) -> Iterator[Remark]:
    """Rows that count zero, because they should not exist."""
    for combination, rows in facts.forbidden_rows.items():
        have = "1 row has" if rows == 1 else f"{rows:,} rows have"
        yield (f"{have} the forbidden combination {combination}; they get weight zero",)
