"""The names of options on the page, and messages and help of the command line in these words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.errors import Option
from fairmaxent.report.source import FrontDoor

LABELS = {
    # who is compared
    "outcome": "Outcome",
    "protected": "Groups to compare",
    "favourable": "Good outcome",
    "groups": "Compare",
    "weight": "Design weights",
    # what is asked for
    "representation_rate": "Equal group sizes",
    "statistical_rate": "Equal outcomes",
    "also": "More outcomes",
    "within": "Compare only within",
    "equal_means": "Equal means",
    "relabel": "How rows change",
    "threshold": "Decision threshold",
    "student": "The model that you will train",
    "blind": "It does not see the groups",
    "target": "Wanted shares",
    "compare_missing": "Compare missing values as a group",
    "largest_weight": "Largest weight",
    "forbid": "Impossible combinations",
    "keep_columns": "Keep",
    "base": "New combinations come from",
    "base_share": "New combinations",
    "detail": "Numbers in new rows",
    "release": "Rows to share",
    "epsilon": "Privacy budget ε",
    "delta": "Privacy slack δ",
    "domain": "Public values of every column",
    "seed": "Seed",
    # what is written
    "mode": "What to take",
    "rows": "How many rows",
    "iid": "Draw rows independently",
    "weight_name": "Name of the weights",
    "estimate": "Estimate what a model will do",
    "evaluate": "Judge the rows in the report",
    "pdf": "Report as PDF",
    "title": "Title",
    "author": "Author",
    "purpose": "Purpose",
    # how the file and its columns are read
    "input_format": "Format of the file",
    "sheet": "Sheet",
    "skip_lines": "Lines above the header",
    "skip_last": "Rows to leave out at the end",
    "delimiter": "Separator",
    "encoding": "Encoding",
    "decimal": "Decimal mark",
    "date_order": "Order of dates",
    "missing": "Marks of missing values",
    "columns": "Names of the columns",
    "drop": "Leave out",
    "bins": "Bins",
    "kinds": "Kind",
    "order": "Order of its levels",
    "max_levels": "Most levels of a column",
    # rake and evaluate
    "bounds": "Limit how much a weight may change",
    "relax": "Come as close as possible",
    "replicates": "Replicate weights",
    "control": "Rows of other people",
    "secrets": "Columns that an attacker wants to know",
    "attacks": "Tries of each attack",
}

# Names that Python, or the record of a command, has for the same options.
_ALIKE = {
    "means": "equal_means",
    "privacy": "epsilon",
    "random_state": "seed",
    "declared": "domain",
    "missing_text": "missing",
}
# Choices that stand on the page in words.
_CHOICES = {
    ("groups", "each"): "each column on its own",
    ("groups", "joint"): "their intersections",
    ("mode", "rows"): "new rows",
    ("mode", "weights"): "your rows with weights",
    ("mode", "top-up"): "only the rows to add to yours",
    ("relabel", "probabilities"): "relabel, for equal probabilities",
    ("relabel", "predictions"): "relabel, for equal decisions",
    ("detail", "rows"): "rows",
    ("detail", "bins"): "bins",
}
_RATES = ("representation_rate", "statistical_rate")  # each with a box to tick
_TYPED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


def label_of(name: str) -> str | None:
    """The label of an option, by its name in Python or on the command line; None: the page does not have it.

    >>> label_of("random_state"), label_of("base-share"), label_of("force")
    ('Seed', 'New combinations', None)
    """
    plain = name.replace("-", "_")
    return LABELS.get(_ALIKE.get(plain, plain))


def as_labelled(option: Option) -> str:
    """Spell an option by its label on the page; one that the page does not have, as it is typed.

    >>> as_labelled(Option("base_share")), as_labelled(Option("force"))
    ('“New combinations”', '--force on the command line')
    >>> as_labelled(Option("mode", "weights")), as_labelled(Option("statistical_rate", {"sex": None, "race": 1.0}))
    ('“What to take: your rows with weights”', '“Equal outcomes” not ticked for sex')
    """
    is_flag = option.name == "missing"  # of missing values as a group, not of their marks in a file
    label = label_of("compare_missing" if is_flag else option.name)
    if label is None:
        return f"{as_typed(option)} on the command line"
    if option.column is not None:
        return f"“{label}” for {option.column!r}"
    if option.name in _RATES and option.value is not ...:
        return f"“{label}”{_without_tick(option.value)}"
    choice = _CHOICES.get((option.name, str(option.value)))
    return f"“{label}”" if choice is None else f"“{label}: {choice}”"


def _without_tick(rate: object) -> str:
    """Say which boxes of a rate are not ticked."""
    columns = [column for column, one in rate.items() if one is None] if isinstance(rate, Mapping) else []
    return f" not ticked for {', '.join(columns)}" if columns else " not ticked" if rate is None else ""


IN_APP = FrontDoor("in the app", as_labelled)


def labelled(text: str) -> str:
    """Say a text of the command line in the words of the page.

    >>> labelled("--delta is for a private fit; add --epsilon, or --force")
    '“Privacy slack δ” is for a private fit; add “Privacy budget ε”, or --force'
    """

    def label(match: re.Match[str]) -> str:
        known = label_of(match[1])
        return match[0] if known is None else f"“{known}”"

    return _TYPED.sub(label, text)
