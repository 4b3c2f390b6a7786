"""What a private fit, or one for rows to share, cannot offer, and why."""

from collections.abc import Iterator
from contextlib import contextmanager

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.frames import is_foreign
from fairmaxent.errors import (
    FairMaxEntError,
    InputError,
    LevelError,
    Option,
    StorageError,
    check_flag,
    unfit,
)
from fairmaxent.privacy.budget import Privacy

_EXACT = (
    "This message is about the exact rows, which the promise of privacy does not cover,"
    " so do not pass it on"
)


def check_private(privacy: object, release: object) -> None:
    """Refuse what is no budget, and what does not say whether rows are to be shared."""
    check_flag("release", release)
    if privacy is not None and not isinstance(privacy, Privacy):
        raise unfit("privacy", privacy, "pass fairmaxent.Privacy(epsilon=1), or None")


def checked_declaration(domain: object) -> Declaration:
    """Refuse a domain that was learned from rows, and a draft of one."""
    if isinstance(domain, Declaration):
        check_read(domain)
        return domain
    raise InputError(
        "privacy needs a declared domain: levels and bins that are learned from the"
        " rows reveal who is in them. Declare what everybody may know with ",
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

    An engine or a library that fails may quote a value, too.
    """
    try:
        yield
    except InputError as problem:
        if problem.column is None:
            raise
        # A traceback would otherwise go on with the value.
        raise _undeclared(problem.column) from None
    except BaseException as problem:
        is_silent = isinstance(problem, FairMaxEntError | MemoryError)
        may_quote = isinstance(problem, Exception) or is_foreign(problem)
        if isinstance(problem, StorageError) or (may_quote and not is_silent):
            raise _without_words() from None
        raise


def _without_words() -> StorageError:
    return StorageError(
        "the table could not be read or computed, and the words of what failed may"
        " quote somebody's values. Compute the table without a private fit to see them."
        f" {_EXACT}"
    )


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
    except (FairMaxEntError, MemoryError):
        raise
    except Exception:
        raise _without_words() from None


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
