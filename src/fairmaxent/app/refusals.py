"""Why the app does not answer as asked, and what the page says; light to import, so that the page is there at once."""

from __future__ import annotations

import os
import re

from fairmaxent.errors import FairMaxEntError, InputError
from fairmaxent.plain_text import visible


class SupersededError(Exception):
    """Newer work has come in, so nobody needs this any more."""


class StaleError(Exception):
    """The page shows another table than the one that is open."""


class StoppedError(Exception):
    """The user stopped the work, or asked for it anew."""


class TooLargeError(InputError):
    """What the browser sent is larger than the app takes."""


class GoneError(InputError):
    """What the page asks about is no longer there."""


class UnspentError(InputError):
    """A private fit has to look at the table, and nobody has agreed yet to spend its budget."""

    def __init__(self) -> None:
        super().__init__(
            "A private result looks at the table once, which spends its budget. Press “Spend the budget” under "
            "Privacy; after that, the rates can be moved freely."
        )


def status_of(problem: BaseException) -> int:
    """The status of the answer to a request that failed."""
    from click import ClickException

    if isinstance(problem, TooLargeError):
        return 413
    if isinstance(problem, GoneError):
        return 404
    return 422 if isinstance(problem, FairMaxEntError | OSError | MemoryError | ClickException) else 500


def problem_text(problem: BaseException, *, hide: str) -> str:
    """Say what went wrong; ``hide`` is the folder of the session, whose path means nothing to the reader."""
    return visible(re.sub(rf"{re.escape(hide + os.sep)}(\d+{re.escape(os.sep)})?", "", _text(problem)))


def _text(problem: BaseException) -> str:
    from click import ClickException

    from fairmaxent.app.labels import as_labelled, labelled

    if isinstance(problem, FairMaxEntError):
        return labelled(problem.spelled(as_labelled))
    if isinstance(problem, ClickException):
        return labelled(problem.format_message())
    if isinstance(problem, MemoryError):
        return "There is not enough memory for this; leave out columns, or take a part of the rows."
    if isinstance(problem, OSError) and problem.strerror:
        return f"The file could not be read or written: {problem.strerror}. Check the free space on this computer."
    return f"This is a bug in fairmaxent, not in your data ({type(problem).__name__}: {problem}). Please report it."
