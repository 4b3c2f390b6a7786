"""Every exception the library raises, in one tree.

::

    FairMaxEntError
    ├── InputError            what was passed in cannot be used as it is
    │   ├── ColumnError       a column is unknown, repeated, or in the wrong role
    │   ├── LevelError        a level or value is unknown, unseen, or there are too many or too few
    │   ├── RateError         a wanted rate is outside (0, 1]
    │   ├── TargetError       a wanted marginal is malformed
    │   ├── WeightError       design weights are not finite and non-negative
    │   └── ForbiddenError    forbidden combinations cannot be honoured exactly
    ├── InfeasibleError       no distribution meets what was asked for
    ├── EvidenceError         conditioning on an event of probability zero
    ├── SolverError           a solver stopped before reaching its tolerance
    ├── StorageError          a model or data file is damaged, foreign, missing, or cannot be written
    └── DependencyError       an optional library is needed; the message names what to install

Each message says what is wrong, where, and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import get_args


class FairMaxEntError(Exception):
    """Root of every error raised by fairmaxent."""


class InputError(FairMaxEntError, ValueError):
    """What was passed in cannot be used as it is."""


class ColumnError(InputError):
    """A column is unknown, repeated, or in the wrong role."""


class LevelError(InputError):
    """A level or value is unknown, unseen, or there are too many or too few of them."""


class RateError(InputError):
    """A wanted rate is outside (0, 1]."""


class TargetError(InputError):
    """A wanted marginal is malformed."""


class WeightError(InputError):
    """Design weights are not finite and non-negative."""


class ForbiddenError(InputError):
    """Forbidden combinations cannot be honoured exactly."""


class InfeasibleError(FairMaxEntError, ValueError):
    """No distribution meets what was asked for."""


class EvidenceError(FairMaxEntError, ValueError):
    """Conditioning on an event of probability zero."""


class SolverError(FairMaxEntError, RuntimeError):
    """A solver stopped before reaching its tolerance."""


class StorageError(FairMaxEntError, OSError):
    """A model or data file is damaged, foreign, missing, or cannot be written."""


class DependencyError(FairMaxEntError, ImportError):
    """An optional library is needed; the message names what to install."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a hint that names the nearest known name, or lists the known ones.

    >>> did_you_mean("incme", ["age", "income"])
    "did you mean 'income'?"
    >>> did_you_mean("zzz", ["age", "income"])
    "known: 'age', 'income'"
    """
    names = [str(item) for item in known]
    near = difflib.get_close_matches(str(name), names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    shown = ", ".join(repr(item) for item in names[:12])
    return f"known: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def check_choice(name: str, value: object, choices: object) -> None:
    """Refuse a value outside a closed choice."""
    known = get_args(choices)
    if value not in known:
        raise InputError(f"{name} is {value!r}; {did_you_mean(value, known)}")


def first_line(problem: Exception) -> str:
    """Return what an engine says, in one line."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]
