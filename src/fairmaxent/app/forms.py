"""Forms: the options that the page draws from the records of the commands, instead of controls written by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

from fairmaxent.app.opened_table import READING_NAMES
from fairmaxent.app.page_options import page_controls
from fairmaxent.app.scenario import FILING_NAMES
from fairmaxent.app.taking import JUDGING_NAMES
from fairmaxent.cli.commands.debias import command as debias
from fairmaxent.cli.commands.evaluate import command as evaluate
from fairmaxent.cli.commands.rake import command as rake

_WISHES = ("equal_means", "compare_missing", "student", "blind", "base", "detail", "random_state")


@cache
def forms() -> dict[str, list[dict[str, Any]]]:
    """The controls of each part of the page, by the name of the form."""
    return {
        "reading": page_controls(debias, READING_NAMES),
        "columns": page_controls(debias, ("max_levels",)),
        "ask": page_controls(debias, _WISHES),
        "privacy": page_controls(debias, ("release", "epsilon", "delta")),
        "take": page_controls(debias, ("weight_name", "evaluate")),
        "report": page_controls(debias, FILING_NAMES),
        "judging": page_controls(evaluate, JUDGING_NAMES),
        "raking": page_controls(rake, ("replicates", "random_state", "weight_name", *FILING_NAMES)),
    }
