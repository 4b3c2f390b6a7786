"""Every exception the library raises, in one tree.

Each message says what is wrong, where, and what to do next. An option that a message
mentions is kept as data (`Option`), so that each front end can spell it the way its
users type it.
"""

import contextlib
import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import get_args

from fairmaxent.plain_text import visible

Spell = Callable[["Option"], str]  # how a front end writes an option
Remark = tuple[object, ...]  # the parts of a sentence, some of which are options

# Options that Python has somewhere else than in `debias`, and the outputs, which are
# methods there.
_ELSEWHERE = {
    "bins": "Domain.infer(bins=…)",
    "kinds": "Domain.infer(kinds=…)",
    "max_levels": "Domain.infer(max_levels=…)",
    "domain": "domain=Domain.declare(…)",
    "drop": "frame.drop(…)",
    "force": "force=True",
    "max_memory": "fairmaxent.data.limits.max_memory(…)",
}
_OUTPUTS = {
    "rows": "sample()",
    "weights": "weights()",
    "top-up": "top_up()",
    "uncertainty": "uncertainty()",
}
# characters of a value in a message: values may be people's notes, and messages end up
# in logs
MOST_SHOWN = 60
# characters of a message; its end, which says what to do next, is kept
MOST_SAID = 2000
_MOST_LISTED = 12  # names in a hint
# How libraries say that there is no memory, beside MemoryError.
_NO_MEMORY = (
    "failed to map segment",
    "memory allocation",
    "Cannot allocate",
    "start new thread",
    "out of memory",
)


@dataclass(frozen=True)
class Option:
    """An option that a message mentions, by its name in `fairmaxent.debias`.

    >>> f"set {Option('base_share')} > 0, or {Option('groups', 'each')}"
    "set base_share > 0, or groups='each'"
    >>> f"use {Option('mode', 'top-up')}"
    'use top_up()'
    """

    name: str
    value: object = ...  # ...: no value is meant
    # the column that its value is for, if it has one for each
    column: str | None = None

    def __str__(self) -> str:
        if self.column is not None:
            return f"{self.name}[{self.column!r}]"
        if self.name in _ELSEWHERE:
            return _ELSEWHERE[self.name]
        if self.name == "mode" and self.value in _OUTPUTS:
            return _OUTPUTS[str(self.value)]
        if self.value is ...:
            return self.name
        return f"{self.name}={self.value!r}"


# the base fills what no row has, which is the way out of many refusals
BASE_SHARE = Option("base_share")
KEEP_COLUMNS = Option("keep_columns")


class FairMaxEntError(Exception):
    """Root of every error raised by fairmaxent; its parts are texts and options."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts
        super().__init__(self.spelled(str))

    def spelled(self, spell: Spell) -> str:
        """The message with its options spelled by ``spell``; long ones are cut."""
        text = spelled(self.parts, spell)
        if len(text) > MOST_SAID:
            half = MOST_SAID // 2
            text = f"{text[:half]} … {text[-half + 3 :]}"
        return visible(text)


def spelled(parts: Iterable[object], spell: Spell) -> str:
    """Join texts and options to one text; errors and tuples are joined likewise."""

    def text_of(part: object) -> str:
        if isinstance(part, Option):
            return spell(part)
        if isinstance(part, FairMaxEntError):
            return spelled(part.parts, spell)
        if isinstance(part, tuple):
            return spelled(part, spell)
        return str(part)

    return "".join(map(text_of, parts))


class InputError(FairMaxEntError, ValueError):
    """What was passed in cannot be used; ``column`` is the one to blame, if any."""

    def __init__(self, *parts: object, column: str | None = None) -> None:
        super().__init__(*parts)
        self.column = column


class RefusedError(InputError):
    """Two options contradict each other."""


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


class LimitError(InputError):
    """A table, or what is asked of it, is beyond a limit, e.g. of memory."""


class InfeasibleError(FairMaxEntError, ValueError):
    """No distribution meets what was asked for."""


class ConflictError(InfeasibleError):
    """No weights meet ``margins``, the smallest such set of them, together.

    ``levels`` name what contradicts there.
    """

    def __init__(
        self,
        *parts: object,
        margins: tuple[tuple[str, ...], ...] = (),
        levels: tuple[str, ...] = (),
    ) -> None:
        super().__init__(*parts)
        self.margins = margins
        self.levels = levels


class EvidenceError(FairMaxEntError, ValueError):
    """Conditioning on an event of probability zero."""


class SolverError(FairMaxEntError, RuntimeError):
    """A solver stopped before reaching its tolerance."""


class StorageError(FairMaxEntError, OSError):
    """A file is missing, damaged or of another kind, or cannot be written."""


class ClusterError(StorageError):
    """The cluster that has the rows failed or stopped answering."""


class UnfairError(FairMaxEntError, AssertionError):
    """A table or a model's decisions failed a check, or nobody can tell."""


class DependencyError(FairMaxEntError, ImportError):
    """An optional library is needed; the message names what to install."""


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """Return a text, or its beginning and a mark that there is more."""
    if len(text) <= most:
        return text
    return f"{text[: most - 1]}…"


def shown(value: object) -> str:
    """Return how a message shows a value: as Python writes it, cut."""
    return cut(repr(value))


def first_of(texts: Sequence[str], most: int) -> str:
    """List the first few texts, and say how many more there are.

    >>> first_of(["a", "b"], 2), first_of(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    listed = ", ".join(texts[:most])
    if len(texts) > most:
        listed += f" and {len(texts) - most} more"
    return listed


def unfit(option: str, value: object, advice: str) -> InputError:
    """The error for an option that has a value it cannot have."""
    return InputError(Option(option), f" is {shown(value)}; {advice}")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a hint that names the nearest known name, or lists the known ones.

    >>> did_you_mean("incme", ["age", "income"])
    "did you mean 'income'?"
    >>> did_you_mean("male", ["Female", "Male"])
    "did you mean 'Male'?"
    >>> did_you_mean("zzz", ["age", "income"])
    "known: 'age', 'income'"
    """
    names = [str(item) for item in known]
    folded = {name.casefold(): name for name in names}
    # comparing long texts takes long
    near = difflib.get_close_matches(cut(str(name), 200).casefold(), folded, n=1)
    if near:
        return f"did you mean {shown(folded[near[0]])}?"
    return f"known: {first_of([*map(shown, names)], _MOST_LISTED)}"


def did_you_mean_level(value: object, levels: Iterable[object]) -> str:
    """Return a hint that names the nearest level, or lists them if they are few.

    Those of many may be people.

    >>> did_you_mean_level("x", ["F", "M"]), did_you_mean_level("Bo", range(1000))
    ("known: 'F', 'M'", 'there are 1,000 levels')
    """
    names = list(levels)
    hint = did_you_mean(value, names)
    if len(names) > _MOST_LISTED and hint.startswith("known"):
        return f"there are {len(names):,} levels"
    return hint


def check_choice(name: str, value: object, choices: object) -> None:
    """Refuse a value outside a closed choice."""
    known = get_args(choices)
    if not isinstance(value, str) or value not in known:
        raise unfit(name, value, did_you_mean(value, known))


def checked_number(
    name: str,
    value: object,
    wanted: str,
    fits: Callable[[float], bool],
) -> float:
    """Refuse what is no number, or not one that fits; True and False are none."""
    # A whole number may be beyond every float.
    with contextlib.suppress(OverflowError):
        if (
            isinstance(value, Real)
            and not isinstance(value, bool)
            and fits(float(value))
        ):
            return float(value)
    raise unfit(name, value, f"it must {wanted}")


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise unfit(name, value, "it must be True or False")


def is_out_of_memory(problem: BaseException | None) -> bool:
    """Whether a failure, or one behind it, is for want of memory."""
    said = isinstance(problem, MemoryError) or any(
        words in str(problem) for words in _NO_MEMORY
    )
    return said or (
        problem is not None
        and is_out_of_memory(problem.__cause__ or problem.__context__)
    )


def first_line(problem: BaseException) -> str:
    """Return what an engine says, in one line."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]
