"""What the page says when something fails: the library's own message, with options by their names on the page."""

from __future__ import annotations

import os
import re

import click

from fairmaxent.app.labels import as_labelled, labelled
from fairmaxent.errors import FairMaxEntError
from fairmaxent.plain_text import visible


def problem_text(problem: BaseException, *, hide: str) -> str:
    """Say what went wrong; ``hide`` is the folder of the session, whose path means nothing to the reader."""
    return visible(re.sub(rf"{re.escape(hide + os.sep)}(\d+{re.escape(os.sep)})?", "", _text(problem)))


def _text(problem: BaseException) -> str:
    if isinstance(problem, FairMaxEntError):
        return labelled(problem.spelled(as_labelled))
    if isinstance(problem, click.ClickException):
        return labelled(problem.format_message())
    if isinstance(problem, MemoryError):
        return "There is not enough memory for this; leave out columns, or take a part of the rows."
    if isinstance(problem, OSError) and problem.strerror:
        return f"The file could not be read or written: {problem.strerror}. Check the free space on this computer."
    return f"This is a bug in fairmaxent, not in your data ({type(problem).__name__}: {problem}). Please report it."
