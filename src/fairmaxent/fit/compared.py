"""Who is compared: groups, certain or likely, small ones, and strata."""

from collections.abc import Iterator, Sequence
from typing import Any

from fairmaxent.data.likely import TOLD_BY, Likely
from fairmaxent.data.roles import read_within
from fairmaxent.errors import ColumnError, Option

# What Python's documentation says of options that belong together.
ROLES_DOC = (
    "The outcome column, and the column or columns whose groups are compared. Several"
    ' outcomes, ``["hired", "promoted"]``, each get the rates, all at once.'
)
SMALLEST_DOC = (
    "Groups below this size are set apart: they are not compared, and keep their sizes"
    ' and outcomes. It is a share of the people compared, ``"2%"``, or a number of'
    " rows, ``30``. By default all groups get what is asked for, but one about whom too"
    " little is known decides no rate in the certificate: fewer than five of its people"
    " would have the outcome, or would not, if it had it as often as all people. With"
    " 0, every group counts."
)


def check_likely(likely: Likely, others: Sequence[str | None]) -> None:
    """Refuse columns that have another role."""
    names = [*others, *likely.used]
    for name in names:
        if name is not None and names.count(name) > 1:
            raise ColumnError(
                Option("likely"),
                f": column {name!r} has two roles; it can have one of them",
            )


def likely_words(likely: Likely) -> str:
    """What is known of groups, and what that is taken for."""
    columns = ", ".join(f"{group} by {name}" for group, name in likely.columns.items())
    return (
        f"For the groups of {likely.name}, columns have everybody's probabilities"
        f" ({columns}). Assumed where they are not certain: {TOLD_BY[likely.told_by]}."
    )


def smallest_words(request: Any) -> str:
    """Who is set apart, in a sentence."""
    size = request.smallest_group
    if size == 0:
        return "Every group counts in the rates that are stated, however small it is."
    of_what = "rows" if isinstance(size, int) else "of the people compared"
    return f"Groups below {size} {of_what} are not compared, and stay as they are."


def within_words(request: Any) -> Iterator[str]:
    """Which strata are compared, and what they keep."""
    asked = read_within(request.within)
    target = request.target or {}
    columns = " × ".join(asked)
    yield (
        "Groups are compared with the others of their stratum only; the strata are"
        f" those of {columns}."
    )
    for name, level in asked.items():
        if level is None:
            continue
        levels = [level]
        if isinstance(level, list | tuple | set | frozenset):
            levels = list(level)
        yield (
            f"Only strata with {name} = {', '.join(map(str, levels))} are compared;"
            " all others stay as they are."
        )

    if target.keys().isdisjoint(asked):
        kept = ""
        if request.outcome_name not in (*target, *request.free_outcomes):
            kept = f", and its shares of {request.outcome_name}"
        yield f"Each stratum of {columns} keeps its size{kept}."
