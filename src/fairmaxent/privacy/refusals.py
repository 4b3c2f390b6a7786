"""What a private fit cannot offer, and why."""

from __future__ import annotations

from typing import Any

from fairmaxent.data.declaration import Declaration
from fairmaxent.errors import InputError, Option
from fairmaxent.privacy.budget import Privacy

_DEFAULT_SHARE = 0.2  # of the base, in a fit without privacy


def private_base_share(
    *,
    privacy: object,
    weight: str | None,
    detail: str | None,
    base: str,
    base_share: float,
    relabel: object,
    estimate: Any,
    **_: object,
) -> float:
    """Refuse options that would reveal more than the budget allows; return the share of the private model.

    Without relabelling that is all of it. The rows that are relabelled are drawn from the private model, so that
    copies of them reveal nothing, and the share of the base is free.
    """
    if not isinstance(privacy, Privacy):
        raise InputError(Option("privacy"), f" is {privacy!r}; pass fairmaxent.Privacy(epsilon=1), or None")
    if weight is not None:
        raise InputError(
            Option("weight", weight),
            ": a private fit takes no design weights, because a person with a large one would need more noise than the "
            "others; leave the weights out",
        )
    if detail == "rows":
        raise InputError(
            Option("detail", "rows"), ": a private fit keeps no row's exact values; leave it out, or turn privacy off"
        )
    if base != "tree":
        raise InputError(Option("base", base), ": a private fit measures what its tree needs; leave it out")
    if getattr(estimate, "output", estimate) == "weights":
        raise InputError(
            Option("estimate", "weights"), ": a private fit has no weights; use ", Option("estimate", "rows")
        )
    if relabel is not None:
        return base_share
    if base_share not in (_DEFAULT_SHARE, 1.0):
        raise InputError(
            Option("base_share", base_share), ": the rows of a private fit all come from its model; leave it out"
        )
    return 1.0


def check_declared(domain: object) -> None:
    """Refuse a domain that was learned from rows."""
    if isinstance(domain, Declaration):
        return
    raise InputError(
        "a private fit needs a declared domain: levels and bins that are learned from the rows reveal who is in them. "
        "Declare what everybody may know with ",
        Option("domain"),
        "; 'fairmaxent inspect --write-domain domain.toml', or Domain.infer(table).draft(), writes a draft",
    )


def no_rows(what: str) -> InputError:
    """Why something about the rows of the data is not available."""
    return InputError(
        f"{what} would reveal the rows of the data, which a private fit does not keep; draw new rows with ",
        Option("mode", "rows"),
    )
