"""Progress: the callback by which long work reports how far it is."""

from collections.abc import Callable

from fairmaxent.errors import InputError, Option, shown

Progress = Callable[[str, float], None]
"""Called with a stage and how much of it is done, from 0 to 1; if it raises, the work stops."""

# What is going on at each stage, for people; a stage that is not here says it itself.
STEPS = {
    "read": "reading the rows",
    "count": "counting the rows",
    "measure": "adding noise to the counts",
    "label": "learning labels",
    "base": "fitting the base",
    "solve": "fitting",
    "estimate": "trying out a model, to estimate what it will do",
    "rows": "drawing rows",
    "trade-off": "fitting other wishes",
}


def silent(stage: str, share: float) -> None:
    """Ignore the progress of stages."""


def checked_progress(progress: Progress | None) -> Progress:
    """The callback that was given, if it can be called, or one that ignores everything."""
    if not callable(silent if progress is None else progress):
        raise InputError(Option("progress"), f" is {shown(progress)}; pass a function of a stage and a share")
    return progress or silent


def unwatched(share: float) -> None:
    """Ignore the progress of a solver."""
