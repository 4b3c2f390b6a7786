"""The base, which is mixed into the rows, and its share."""

from collections.abc import Sequence

from fairmaxent import errors
from fairmaxent.errors import InputError, Option, did_you_mean, unfit
from fairmaxent.maxent.priors.bases import BASES, is_own

BASES_DOC = (
    "What is mixed into the rows so that every combination is possible (the paper's u),"
    " and its share of the prior (the paper's C), which its share of the result is near"
    " to: "
    + "; ".join(f'``"{kind}"``, {base.sentence}' for kind, base in BASES.items())
    + "."
)


def check_base(
    option: str,
    value: object,
    *,
    others: Sequence[str] = (),
    forbid: object = None,
) -> None:
    """Refuse the name of a base that is neither ours nor registered."""
    known = (*others, *BASES)
    if not isinstance(value, str) or value not in known:
        raise unfit(option, value, did_you_mean(value, known))
    if forbid and is_own(value):
        raise InputError(
            Option(option),
            f" is {value!r}, your own, which cannot know what is impossible; leave out"
            " ",
            Option("forbid"),
        )


def check_share(name: str, share: float) -> float:
    """Refuse a share of the base (C) outside [0, 1]."""
    wanted = "lie between 0 (rows only) and 1 (base only)"
    return errors.checked_number(name, share, wanted, lambda part: 0 <= part <= 1)
