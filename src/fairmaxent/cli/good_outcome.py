"""A note on rates that are about no outcome in particular, with the one that is probably meant."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.levels import value_text
from fairmaxent.errors import Option
from fairmaxent.inspection.proposals import known_levels, propose_favourable

_SHOWN = 3  # levels


def good_outcome_notes(favourable: object, outcome: Attribute) -> Iterator[str]:
    """Say that every outcome is compared if none is named as good, and which to name."""
    if favourable is not None:
        return
    what = f"no good outcome was named, so every level of {outcome.name!r} is compared"
    proposed = propose_favourable(outcome)
    if proposed:
        typed = " ".join(as_typed(Option("favourable", value_text(one.value))) for one in proposed)
        yield f"{what}; the good one is probably {value_text(proposed[0].value)!r} ({proposed[0].reason}): add {typed}"
    elif len(known_levels(outcome)) <= _SHOWN:
        choices = " or ".join(as_typed(Option("favourable", level)) for level in known_levels(outcome))
        yield f"{what}; to name one, add {choices}"
