"""What is refused: options that contradict each other, or what is made of a fit.

A record lists its pairs beside its fields, as `REFUSED`. A new one is one `Refused`
there, and nothing else: Python (`refuse`, in ``__post_init__``), command line, config
files and page read these rows, and the reference page prints them. An option of a
record in a record needs no row to be refused without it (``--delta``, ``--epsilon``).
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.errors import InputError, Option
from fairmaxent.options import NOTHING, TypedOption, info_of, is_default
from fairmaxent.plain_text import Values

GIVEN = "given"  # anything but nothing, or the default
MISSING = "missing"  # nothing, or the default
# or one of these values, or one for which a function says so; none is a default
Pattern = str | tuple[str, ...] | Callable[[Any], bool]
Parts = str | tuple[object, ...]  # a text, or texts and options

_PART = "it says more about that"


@dataclass(frozen=True)
class Refused:
    """A pair that is refused: an option, and another option or an output.

    Both are named as in Python; an output is a ``mode``. On the page the first gives
    way to the other.
    """

    option: str
    other: str
    why: Parts
    instead: Parts = ""  # by default, that one of them is left out, or added
    value: Pattern = GIVEN  # of the option
    beside: Pattern = GIVEN  # of the other
    # Whether it is refused, if that depends on more; or the column that it is about.
    when: Callable[[Values], object] | None = None

    def error(self, values: Values, column: object = None) -> InputError:
        """What is said of these values: both options, why, and what to do."""
        first = _named(self.option, self.value, values)
        other = _named(self.other, self.beside, values)
        if isinstance(column, str):
            first = Option(self.option, column=column)
        together = " cannot go together with "
        instead: Parts = "leave one of them out"
        if self.beside == MISSING:
            together = " needs "
            instead = ("add ", other, ", or leave ", first, " out")
        return InputError(
            first, together, other, ": ", self.why, "; ", self.instead or instead
        )


def _named(name: str, pattern: Pattern, values: Values) -> Option:
    """An option, with its value if it is the value that is refused."""
    if isinstance(pattern, tuple):
        return Option(name, values.get(name, ...))
    return Option(name)


def refuse(record: Any, **beside: Any) -> None:
    """Refuse what the rows of a record say; ``beside`` is what is made of it."""
    refuse_pairs(record.REFUSED, {**_given(type(record), record), **beside})


def refuse_pairs(rows: Iterable[Refused], values: Values) -> None:
    """Refuse the first pair among values by name; None: an option was not given."""
    for row in rows:
        found: object = matches(values, row.option, row.value)
        found = found and matches(values, row.other, row.beside)
        if found and row.when is not None:
            found = row.when(values)
        if found:
            raise row.error(values, found)


def matches(values: Values, name: str, pattern: Pattern) -> bool:
    """Whether an option is as a pattern says; one that is unknown here is not."""
    value = values.get(name)
    if pattern == MISSING:
        return name in values and value is None
    if isinstance(pattern, tuple):
        return isinstance(value, str) and value in pattern
    return value is not None and (not callable(pattern) or pattern(value))


def _given(record: type, held: object) -> Values:
    """The options of a record, and of records in it; None: not given.

    Of one that has only a name, such as a model, the defaults are meant.
    """
    values: Values = {}
    for field in dataclasses.fields(record):
        value = getattr(held, field.name, field.default)
        values[field.name] = _unless_usual(value, field.default)
        info = info_of(field)
        if info is not None and info.record is not None and value is not None:
            values |= _given(info.record, value)
    return values


def _unless_usual(value: Any, default: object) -> Any:
    """A value, or None if it is the default, or asks for nothing."""
    is_plain = isinstance(value, str | list | tuple | dict)
    if is_default(value, default) or (is_plain and value in (NOTHING, "", [], (), {})):
        return None
    return value


# ---------------------------------------------------------------- as they are typed


def by_name(sources: Iterable[TypedOption]) -> dict[str, TypedOption]:
    """Typed options by their names in Python.

    The first of a record in a record is typed for it, if nothing else is.
    """
    named: dict[str, TypedOption] = {}
    for source in sources:
        named.setdefault(source.field.name, source)
        named.setdefault(source.owner or source.field.name, source)
    return named


def rows_of(sources: Sequence[TypedOption]) -> list[Refused]:
    """The rows of the records of options; of a record in a record, its options' own."""
    named = by_name(sources)
    rows: list[Refused] = []
    for source in sources:
        owner = source.owner
        if owner is None:
            own = getattr(source.record, "REFUSED", ())
            rows += [row for row in own if row not in rows]
        elif named[owner] is not source:
            rows.append(Refused(source.field.name, owner, _PART, beside=MISSING))
    return rows


def typed_values(named: Mapping[str, TypedOption], params: Values) -> Values:
    """What was typed, by the names of options in Python; None: not given."""
    values: Values = {}
    for name, source in named.items():
        value = params.get(source.param)
        default = source.default
        if source.info.text == "flag":
            value = source.info.on if value else None
            default = None
        values[name] = _unless_usual(value, default)
    return values
