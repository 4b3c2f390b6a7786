"""What a private fit, or one for rows to share, cannot offer, and why."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fairmaxent.data.declaration import Declaration
from fairmaxent.errors import (
    BASE_SHARE,
    FairMaxEntError,
    InputError,
    LevelError,
    Option,
    StorageError,
    check_flag,
)
from fairmaxent.privacy.budget import Privacy

_EXACT = (
    "This message is about the exact rows, which the promise of privacy does not cover,"
    " so do not pass it on"
)


def for_release(request: Any) -> dict[str, object]:
    """Refuse options of a `Request` that contradict a private fit, or rows to share.

    Return those that follow.
    """
    privacy = request.privacy
    check_flag("release", request.release)
    if privacy is not None and not isinstance(privacy, Privacy):
        raise InputError(
            Option("privacy"),
            f" is {privacy!r}; pass fairmaxent.Privacy(epsilon=1), or None",
        )
    if privacy is None and not request.release:
        return {}
    what = "a private fit" if privacy is not None else "a fit for rows to share"
    if request.weight is not None and privacy is not None:
        raise InputError(
            Option("weight", request.weight),
            ": a private fit takes no design weights, because a person with a large one"
            " would need more noise than the others; leave the weights out",
        )
    if request.detail == "rows":
        raise InputError(
            Option("detail", "rows"),
            f": {what} keeps no row's exact values; leave it out",
        )
    if (
        request.means
        and isinstance(request.domain, Declaration)
        and request.outcome in request.domain.edges
    ):
        raise InputError(
            Option("means", request.means),
            f": {what} keeps no row's exact numbers, so it does not know the mean of"
            f" {request.outcome!r} in each bin; declare the numbers that it can be as"
            " levels instead of edges, or leave it out",
        )
    if request.base != "tree" and privacy is not None:
        raise InputError(
            Option("base", request.base),
            ": a private fit measures what its tree needs; leave it out",
        )
    if getattr(request.estimate, "output", request.estimate) == "weights":
        raise InputError(
            Option("estimate", "weights"),
            f": {what} has no weights; use ",
            Option("estimate", "rows"),
        )
    # the default is for fits of rows
    if request.C not in (getattr(type(request), BASE_SHARE.name), 1.0):
        share = replace(BASE_SHARE, value=request.C)
        raise InputError(
            share, f": the rows of {what} all come from its model; leave it out"
        )
    return {BASE_SHARE.name: 1.0, "detail": "bins"}


def check_declared(domain: object) -> None:
    """Refuse a domain that was learned from rows, and a draft of one."""
    if isinstance(domain, Declaration):
        check_read(domain)
        return
    raise InputError(
        "a private fit needs a declared domain: levels and bins that are learned from"
        " the rows reveal who is in them. Declare what everybody may know with ",
        Option("domain"),
        "; 'fairmaxent inspect --write-domain domain.toml', or"
        " Domain.infer(table).draft(), writes a draft",
    )


def check_read(domain: Declaration) -> None:
    """Refuse a draft that nobody has read."""
    if domain.draft:
        raise InputError(
            "the domain is a draft made from your table, so its levels and edges may be"
            " people's own values, and whoever sees the result may learn them. Read the"
            " draft, and change what is not public knowledge; then remove the line"
            " 'draft = true' from the file or, in Python, pass what you have read to"
            " Domain.declare(…)"
        )


@contextmanager
def without_values() -> Iterator[None]:
    """Say which column has a value that was not declared, but not the value: it is
    somebody's.

    An engine that fails may quote a value, too.
    """
    try:
        yield
    except StorageError:
        raise StorageError(
            "the engine of the table could not read or compute it, and its own words"
            " may quote somebody's values. Compute the table without a private fit to"
            f" see them. {_EXACT}"
        ) from None
    except InputError as problem:
        if problem.column is None:
            raise
        # A traceback would otherwise go on with the value.
        raise _undeclared(problem.column) from None


def _undeclared(column: str) -> LevelError:
    return LevelError(
        f"column {column!r} has a value that was not declared. Declare every level that"
        " the column can have, name it in 'missing' if values can be missing, and say"
        " with 'decimal' and 'dates' how numbers and dates are written, if not as 0.5"
        f" and 2025-12-31. {_EXACT}"
    )


@contextmanager
def about_exact_rows() -> Iterator[None]:
    """Say, of what is wrong in the file of a private fit, that the message itself is
    not private.
    """
    try:
        yield
    except (InputError, StorageError) as problem:
        if isinstance(problem.__cause__, OSError):  # no row was read
            raise
        if isinstance(problem, InputError) and problem.column is not None:
            raise _undeclared(problem.column) from None
        raise type(problem)(problem, f". {_EXACT}") from problem


@contextmanager
def after_spending(privacy: Privacy | None) -> Iterator[None]:
    """Say, of whatever fails after the noise of a private fit, that its budget is
    spent.
    """
    try:
        yield
    except FairMaxEntError as problem:
        if privacy is None:
            raise
        spent = (
            f"; this attempt has spent {privacy} all the same, and what the next one"
            " spends adds up with it"
        )
        raise type(problem)(problem, spent) from problem


def no_rows(what: str, *, private: bool) -> InputError:
    """Why something about the rows of the data is not available."""
    why = (
        "need the rows of the data, which a private fit does not keep"
        if private
        else "be about real people's rows"
    )
    return InputError(
        f"{what} would {why}; draw new rows with ", Option("mode", "rows")
    )
