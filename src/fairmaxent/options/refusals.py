"""What is refused: options that contradict each other, or what is made of a fit.

A record lists its pairs beside its fields, as `REFUSED`. A new one is one `Refused`
there, and nothing else: Python, command line, config files and page read these rows,
and the reference page prints them. An option of a record in a record needs no row to be
refused without it (``--delta`` without ``--epsilon``).
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairmaxent.errors import InputError, Option
from fairmaxent.options import NOTHING, TypedOption, info_of, is_default

GIVEN: Literal["given"] = "given"  # anything but nothing, or the default
MISSING: Literal["missing"] = "missing"  # nothing, or the default
# or one of these values, or those for which a function says so
Pattern = Literal["given", "missing"] | tuple[object, ...] | Callable[[Any], bool]
Parts = str | tuple[object, ...]  # a text, or texts and options

_LEAVE_OUT = "leave one of them out"


@dataclass(frozen=True)
class Refused:
    """A pair that is refused: an option, and another option or an output.

    Both are named as in Python; outputs are values of ``mode``. On the page the first
    gives way to the other.
    """

    option: str
    value: Pattern
    other: str
    other_value: Pattern
    why: Parts
    instead: Parts = _LEAVE_OUT
    # Whether it is refused, if that depends on more; or the column that it is about.
    when: Callable[[Mapping[str, Any]], object] | None = None

    def error(self, values: Mapping[str, Any], found: object = None) -> InputError:
        """What is said of these values: both options, why, and what to do."""
        first = _named(self.option, self.value, values)
        if isinstance(found, str):
            first = Option(self.option, column=found)
        other = _named(self.other, self.other_value, values)
        if self.other_value == MISSING:
            why = (": ", self.why) if self.why else ""
            add = ("; add ", other, ", or leave ", first, " out")
            return InputError(first, " is for ", other, why, add)
        together = (first, " cannot go together with ", other)
        return InputError(together, ": ", self.why, "; ", self.instead)


def _named(name: str, pattern: Pattern, values: Mapping[str, Any]) -> Option:
    """An option, with its value if it is the value that is refused."""
    if isinstance(pattern, tuple):
        return Option(name, values.get(name, ...))
    return Option(name)


@dataclass(frozen=True)
class Asked:
    """What was asked for, by the names of options: the values, and which were given."""

    values: Mapping[str, Any]
    given: frozenset[str]

    @classmethod
    def of(cls, options: Iterable[tuple[str, Any, Any]]) -> "Asked":
        """From names, values and defaults; the first of a name counts."""
        values: dict[str, Any] = {}
        given = set()
        for name, value, default in options:
            if name in values:
                continue
            values[name] = value
            if not (is_default(value, default) or _is_nothing(value)):
                given.add(name)
        return cls(values, frozenset(given))

    def matches(self, name: str, pattern: Pattern) -> bool:
        """Whether an option is as a pattern says; one that is unknown here is not."""
        if name not in self.values:
            return False
        if pattern == GIVEN:
            return name in self.given
        if pattern == MISSING:
            return name not in self.given
        value = self.values[name]
        if isinstance(pattern, tuple):
            return isinstance(value, str) and value in pattern
        return name in self.given and pattern(value)


def _is_nothing(value: object) -> bool:
    is_empty = isinstance(value, str | list | tuple | dict) and not value
    return value is None or is_empty or (isinstance(value, str) and value == NOTHING)


def refuse(record: Any, **beside: Any) -> None:
    """Refuse what the rows of a record say; ``beside`` is what is made of it."""
    others = [(*one, None) for one in beside.items()]
    asked = Asked.of([*_options(type(record), record), *others])
    refuse_pairs(getattr(record, "REFUSED", ()), asked)


def refuse_options(rows: Iterable[Refused], **options: Any) -> None:
    """Refuse what rows say of options that are in no record; None: not given."""
    refuse_pairs(rows, Asked.of((*one, None) for one in options.items()))


def _options(record: type, held: object) -> Iterator[tuple[str, Any, Any]]:
    """Names, values and defaults of a record, and of records in it.

    Of one that has only a name, such as a model, the defaults are meant.
    """
    for field in dataclasses.fields(record):
        value = getattr(held, field.name, field.default)
        yield field.name, value, field.default
        info = info_of(field)
        if info is not None and info.record is not None and value is not None:
            yield from _options(info.record, value)


def refuse_pairs(rows: Iterable[Refused], asked: Asked) -> None:
    """Refuse the first pair that was asked for."""
    for row in rows:
        is_asked = asked.matches(row.option, row.value)
        if not is_asked or not asked.matches(row.other, row.other_value):
            continue
        found: object = True
        if row.when is not None:
            found = row.when(asked.values)
        if found:
            raise row.error(asked.values, found)


# ---------------------------------------------------------------- as they are typed


def by_name(sources: Iterable[TypedOption]) -> dict[str, TypedOption]:
    """Typed options by their names in Python.

    The first of a record in a record is typed for it, if nothing else is.
    """
    named: dict[str, TypedOption] = {}
    for source in sources:
        named.setdefault(source.field.name, source)
        if source.owner is not None:
            named.setdefault(source.owner, source)
    return named


def rows_of(sources: Sequence[TypedOption]) -> list[Refused]:
    """The rows of the records that options are from.

    What belongs to a record in a record is nothing without it.
    """
    named = by_name(sources)
    rows: list[Refused] = []
    for source in sources:
        own: Iterable[Refused] = ()
        if source.owner is None:
            own = getattr(source.record, "REFUSED", ())
        elif named[source.owner] is not source:
            own = [Refused(source.field.name, GIVEN, source.owner, MISSING, "")]
        rows += [row for row in own if row not in rows]
    return rows


def is_for_a_file(row: Refused, named: Mapping[str, TypedOption]) -> bool:
    """Whether an option is for one that is typed each time, and is not there."""
    is_known = row.other_value == MISSING and row.other in named
    return is_known and not named[row.other].info.in_files


def as_asked(named: Mapping[str, TypedOption], params: Mapping[str, Any]) -> Asked:
    """What was typed, by the names of options in Python."""
    options: list[tuple[str, Any, Any]] = []
    for name, source in named.items():
        value = params.get(source.param)
        default = source.default
        if value is None:
            value = default
        if value is True:
            value = source.info.on
        elif value is False and source.info.on is not True:
            value = source.field.default
            default = value
        if value is None and source.owner not in (None, name):
            # the usual value counts, if there is such a record at all
            if params.get(named[source.owner].param) in (None, NOTHING):
                continue
            value = source.field.default
            default = value
        options.append((name, value, default))
    return Asked.of(options)
