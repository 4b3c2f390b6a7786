"""What the page says when something fails: the library's own message, with options by their names on the page."""

from __future__ import annotations

import os
import re

from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.errors import FairMaxEntError, Option
from fairmaxent.plain_text import visible

# The names of options on the page.
_LABELS = {
    "outcome": "“Outcome”",
    "protected": "“Groups to compare”",
    "favourable": "“Good outcome”",
    "groups": "“Compare”",
    "weight": "“Design weights”",
    "representation_rate": "“Equal group sizes”",
    "statistical_rate": "“Equal outcomes”",
    "within": "“Compare only within”",
    "relabel": "“How rows change”",
    "base": "“New combinations come from”",
    "base_share": "“New combinations”",
    "threshold": "“Decision threshold”",
    "estimate": "“Estimate what a model will do”",
    "mode": "“What” under Take",
    "iid": "“Draw rows independently”",
    "largest_weight": "“Largest weight”",
    "missing": "“Compare missing values”",
    "share": "“Rows to share”",
    "random_state": "“Seed”",
    "drop": "“Leave out”",
    "keep": "“Keep”",
    "target": "“Wanted shares”",
}


def as_labelled(option: Option) -> str:
    """Spell an option by its label on the page; one that the page does not have, as it is typed.

    >>> as_labelled(Option("base_share")), as_labelled(Option("bins", {"age": [17.0, 40.0]}))
    ('“New combinations”', "--bins 'age: 17, 40' on the command line")
    """
    label = _LABELS.get(option.name)
    if label is None:
        return f"{as_typed(option)} on the command line"
    if option.column is not None:
        return f"{label} for {option.column!r}"
    return label


def problem_text(problem: BaseException, *, hide: str) -> str:
    """Say what went wrong; ``hide`` is the folder of the session, whose path means nothing to the reader."""
    return visible(re.sub(rf"{re.escape(hide + os.sep)}(\d+{re.escape(os.sep)})?", "", _text(problem)))


def _text(problem: BaseException) -> str:
    if isinstance(problem, FairMaxEntError):
        return problem.spelled(as_labelled)
    if isinstance(problem, MemoryError):
        return "There is not enough memory for this; leave out columns, or take a part of the rows."
    if isinstance(problem, OSError) and problem.strerror:
        return f"The file could not be read or written: {problem.strerror}. Check the free space on this computer."
    return f"This is a bug in fairmaxent, not in your data ({type(problem).__name__}: {problem}). Please report it."
