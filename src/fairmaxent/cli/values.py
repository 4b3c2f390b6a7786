"""Values of options: from the text of the command line or from a TOML file, and back to
text.

On the command line, options of a column are written ``column: one, two``. In double
quotes, a comma, an equals sign or a colon belongs to a name.
"""

import datetime
import itertools
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import click

from fairmaxent.errors import Option
from fairmaxent.options import typed_options

NOTHING = "none"
KEEP = "keep"
FREE = "free"
HOW = (
    "a name or level that contains a comma goes in double quotes, as in --drop"
    " 'id,\"race, ethnicity\"'"
)
_MARKS = ",=:"
_QUOTED = re.compile(r'"(?:[^"]|"")*"(?=\s*(?:[,=:]|$))')
# "Female=0.6, Male=0.4": the number after the last "=" before a comma, so that levels
# may be "<=50K" or "[17, 25)".
_SHARE = re.compile(r"\s*(?P<level>.+?)\s*=\s*(?P<share>[-+.\deE]+)\s*(?:,|$)")
NUMBER = (int, float)
_LEVEL = (str, bool, int, float, datetime.date, datetime.time, type(None))
_RATES = (*NUMBER, {str: (*NUMBER, NOTHING, type(None))})
_SHARES = {str: ({str: NUMBER}, KEEP, FREE, type(None))}
_LEVELS = (*_LEVEL, [_LEVEL])
_STRATA = ([str], {str: _LEVELS})
_PAIRS = ([{str: _LEVEL}], {str: _LEVEL})
_BINS = (int, {str: (int, [(int, float, datetime.date)])})
_as_it_is: dict[str, Any] = {"texts": lambda value: [*map(str, _listed(value))]}
_each: dict[str, Any] = {"join": list, "texts": lambda values: [*map(written, values)]}


class _File(click.Path):
    """A path, or - for a stream of the process, whatever the system calls it."""

    name = "file"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Leave it to the reading to say what is wrong with a file, with the exit code
        for that.
        """
        if value in ("/dev/stdin", "/dev/stdout"):
            return "-"
        return super().convert(value, param, ctx)


FILE = _File(readable=False)


@dataclass(frozen=True, eq=False)
class Value(click.ParamType[Any]):
    """How the value of an option is written: ``parse`` reads a text, and ``join`` makes
    one value of several.

    A TOML file may hold what has a ``shape`` (see `fits`), which ``words`` describe,
    and ``take`` makes the same of it. ``texts`` is the way back, to one text for each
    time that the option is given.
    """

    name: str
    parse: Callable[[str], Any]
    shape: Any
    words: str
    _: KW_ONLY
    join: Callable[[list[Any]], Any] | None = None
    take: Callable[[Any], Any] = lambda value: value
    texts: Callable[[Any], list[str]] = lambda value: [written(value)]

    def read(self, texts: Sequence[str]) -> Any:
        """The value of what was typed, or `ValueError`."""
        values = [self.parse(text) for text in texts]
        if self.join is None:
            return values[0]
        return self.join(values)

    def typed(self, value: Any) -> list[str] | None:
        """The texts that are read as this value; None if there are none, such as for
        edges that are dates.
        """
        try:
            texts = self.texts(value)
            return texts if self.read(texts) == value else None
        except (TypeError, ValueError):
            return None


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape: a type, a word, a list or mapping of a shape, or one
    of several.

    >>> fits({"sex": 0.9, "race": "none"}, {str: (float, "none")}), fits([1, True], [int])
    (True, False)
    """
    if isinstance(shape, tuple):
        return any(fits(value, other) for other in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        return isinstance(value, Mapping) and all(
            fits(item, shape[str]) for item in value.values()
        )
    if isinstance(shape, str):
        return bool(value == shape)
    # true and false are no numbers
    return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))


# ---------------------------------------------------------------- double quotes


def split(text: str, mark: str, *, once: bool = False) -> list[str]:
    """Split a text at each mark, or at the first, that is not in double quotes; the
    parts keep their quotes.

    >>> split('id, "race, ethnicity"', ","), split('"a=b"=c=d', "=", once=True)
    (['id', '"race, ethnicity"'], ['"a=b"', 'c=d'])
    >>> split('a 12" pipe, b', ",")
    ['a 12" pipe', 'b']
    """
    parts: list[str] = []
    start = at = 0
    while at < len(text):
        before = text[:at].rstrip()
        begins_name = text[at] == '"' and (not before or before[-1] in _MARKS)
        in_quotes = None
        if begins_name:
            in_quotes = _QUOTED.match(text, at)
        if in_quotes is None and text[at] == mark and not (once and parts):
            parts.append(text[start:at].strip())
            start = at + 1
        if in_quotes is None:
            at = at + 1
        else:
            at = in_quotes.end()
    return [*parts, text[start:].strip()]


def unquoted(part: str) -> str:
    """A name without its quotes, in which two stand for one.

    >>> unquoted('"race, ethnicity"'), unquoted('"the ""big"" one"'), unquoted('12" pipe')
    ('race, ethnicity', 'the "big" one', '12" pipe')
    """
    if len(part) > 1 and _QUOTED.fullmatch(part):
        return part[1:-1].replace('""', '"')
    return part


def quoted(name: str) -> str:
    """A name as it is typed in a list: in quotes if it would not be read as one name
    otherwise.

    >>> quoted("sex"), quoted("race, ethnicity"), quoted(" a")
    ('sex', '"race, ethnicity"', '" a"')
    """
    plain = (
        name
        and name == name.strip()
        and not name.startswith('"')
        and not any(mark in name for mark in _MARKS)
    )
    if plain:
        return name
    return '"' + name.replace('"', '""') + '"'


def comma_hint(names: Collection[str]) -> str:
    """How to write the names of columns that contain a comma, if there are any."""
    if any("," in name for name in names):
        return f"; {HOW}"
    return ""


# ---------------------------------------------------------------- from text


def _columns(text: str) -> list[str]:
    """Parse ``sex, race``, or ``sex, "race, ethnicity"``."""
    names = [unquoted(name) for name in split(text, ",")]
    if not all(names):
        raise ValueError(f"{text!r} is not a list of columns, such as sex,race; {HOW}")
    return names


def number_of(text: str, kind: type = float) -> Any:
    """Parse a number."""
    try:
        return kind(text)
    except ValueError as problem:
        raise ValueError(
            f"{text!r} is not a {'whole ' * (kind is int)}number"
        ) from problem


def _rate(text: str) -> float | None:
    if text.strip().lower() == NOTHING:
        return None
    return number_of(text)


def _rates(text: str) -> float | dict[str, float | None] | None:
    """Parse ``0.9``, ``none``, or a rate for each column: ``sex=0.9, race=none``."""
    if "=" in text:
        return {column: _rate(value) for column, value in _pairs(text).items()}
    return _rate(text)


def _bounds(text: str) -> tuple[float | None, ...]:
    """Parse ``0.3, 3``, where ``none`` leaves a side open."""
    numbers = tuple(_rate(part) for part in text.split(","))
    if len(numbers) != 2:
        raise ValueError(f"{text!r} is not two numbers, such as 0.3,3")
    return numbers


def _pairs(text: str) -> dict[str, str]:
    """Parse ``sex=Male, pregnant=yes``."""
    pairs = [[*map(unquoted, split(part, "=", once=True))] for part in split(text, ",")]
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise ValueError(
            f"{text!r} is not column=value, or several of them separated by commas;"
            f" {HOW}"
        )
    return _by_name([(column, value) for column, value in pairs])


def _strata(text: str) -> list[tuple[str, str | None]]:
    """Parse ``department, year``, or with the levels that are meant: ``label=yes``."""
    pairs = [[*map(unquoted, split(part, "=", once=True))] for part in split(text, ",")]
    if not all(map(all, pairs)):
        raise ValueError(
            f"{text!r} is not a list of columns, such as department,year, or"
            f" column=level; {HOW}"
        )
    return [(pair[0], pair[1] if len(pair) > 1 else None) for pair in pairs]


def _join_strata(
    given: list[list[tuple[str, Any]]],
) -> list[str] | dict[str, list[Any] | None]:
    """Strata of several options together; columns without levels as a list.

    >>> _join_strata([_strata("department, label=yes"), _strata("label=no")])
    {'department': None, 'label': ['yes', 'no']}
    """
    strata: dict[str, list[Any] | None] = {}
    for column, level in (pair for pairs in given for pair in pairs):
        if level is None:
            strata[column] = None
        else:
            strata[column] = [*(strata.get(column) or ()), level]
    if any(levels is not None for levels in strata.values()):
        return strata
    return list(strata)


def _column_and(text: str, example: str) -> tuple[str, str]:
    column, *rest = split(text, ":", once=True)
    if not column or not rest or not rest[0]:
        raise ValueError(f"{text!r} is not written as in {example!r}")
    return unquoted(column), rest[0]


def _target(text: str) -> tuple[str, dict[str, float] | str | None]:
    """Parse ``sex: Female=0.6, Male=0.4``, ``age: keep`` or ``income: free``."""
    column, rest = _column_and(text, "sex: Female=0.6, Male=0.4")
    if rest.lower() in (KEEP, FREE):
        return column, None if rest.lower() == KEEP else FREE
    shares: dict[str, float] = {}
    start = 0
    while start < len(rest):
        match = _SHARE.match(rest, start)
        if not match:
            raise ValueError(
                f"{rest[start:].strip()!r} is not level=share, as in 'sex: Female=0.6,"
                " Male=0.4'"
            )
        shares[unquoted(match["level"])] = number_of(match["share"])
        start = match.end()
    return column, shares


def _levels(text: str) -> tuple[str, list[str]]:
    """Parse ``size: small, medium, large``."""
    column, rest = _column_and(text, "size: small, medium, large")
    return column, [unquoted(level) for level in split(rest, ",")]


def _names(text: str) -> tuple[str, dict[str, str]]:
    """Parse ``SEX: 1=men, 2=women``."""
    column, rest = _column_and(text, "SEX: 1=men, 2=women")
    return column, _pairs(rest)


def _bins(text: str) -> tuple[str | None, int | list[float]]:
    """Parse ``8`` (for all columns), ``age: 8`` or the edges ``age: 0, 18, 65,
    120``.
    """
    if len(split(text, ":")) == 1:
        return None, number_of(text, int)
    column, rest = _column_and(text, "age: 0, 18, 65, 120")
    return column, (
        [number_of(edge) for edge in rest.split(",")]
        if "," in rest
        else number_of(rest, int)
    )


def _by_name(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Values by column, each named once."""
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"{repeated[0] or 'all columns'!r} is given twice; give it once"
        )
    return dict(pairs)


def _join_bins(pairs: list[tuple[Any, Any]]) -> Any:
    bins = _by_name(pairs)
    if None in bins and len(bins) > 1:
        raise ValueError("given both for all columns and by column; use one of the two")
    return bins.get(None, bins)


# ---------------------------------------------------------------- to text


def written(value: Any) -> str:
    """Write nothing, a number or text, several of them, or pairs."""
    if isinstance(value, Mapping):
        return ",".join(
            f"{quoted(name)}={written(item)}" for name, item in value.items()
        )
    if isinstance(value, list | tuple):
        return ",".join(map(written, value))
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return quoted(value)
    return str(value)


def _texts_by_column(values: Any) -> list[str]:
    """Write what is said of each column, or of all."""
    if not isinstance(values, Mapping):
        return [written(values)]
    return [
        f"{quoted(column)}: {KEEP if value is None else written(value)}"
        for column, value in values.items()
    ]


def _strata_texts(strata: Any) -> list[str]:
    if not isinstance(strata, Mapping):
        return [written(strata)]
    return [
        ",".join(
            quoted(name) if levels is None else written({name: level})
            for level in levels or [None]
        )
        for name, levels in strata.items()
    ]


def as_typed(option: Option) -> str:
    """Spell an option the way it is typed on the command line.

    >>> as_typed(Option("base_share")), as_typed(Option("groups", "each")), as_typed(Option("statistical_rate", None))
    ('--base-share', '--groups each', '--statistical-rate none')
    >>> as_typed(Option("release", True)), as_typed(Option("target", column="sex"))
    ('--release', "--target for 'sex'")
    >>> as_typed(Option("bins", {"age": [17.0, 40.0, 90.0]}))
    "--bins 'age: 17, 40, 90'"
    """
    from fairmaxent.data.levels import value_text
    from fairmaxent.fit.request import Request

    # missing_text: of a reader
    flag = f"--{option.name.removesuffix('_text').replace('_', '-')}"
    is_flag = False
    for source in typed_options(Request):
        # One of a record in the request is typed for it, which says its value, too.
        if option.name == (source.owner or source.field.name):
            flag = source.flags[0]
            is_flag = source.owner is not None or source.info.text == "flag"
            break
    if option.column is not None:
        return f"{flag} for {option.column!r}"
    if is_flag or option.value is ... or option.value is True:
        return flag
    if isinstance(option.value, str):
        text = option.value
    else:
        text = written(option.value)
    if option.name == "bins" and isinstance(option.value, Mapping):
        columns = option.value.items()
        text = "; ".join(
            f"{quoted(column)}: {', '.join(map(value_text, edges))}"
            for column, edges in columns
        )
    return f"{flag} {shlex.quote(text)}"


# ---------------------------------------------------------------- how values are
# written, by the name in records


def _without_words(values: Any) -> Any:
    """Values by column, with None for the words that mean it."""
    is_plain = not isinstance(values, Mapping)
    if is_plain:
        return values
    return {
        name: None if value in (NOTHING, KEEP) else value
        for name, value in values.items()
    }


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value]


def _take_strata(value: Any) -> Any:
    if isinstance(value, list):
        return _join_strata([_strata(text) for text in value])
    return _join_strata(
        [
            [(column, level) for level in _listed(levels)]
            for column, levels in value.items()
        ]
    )


_by_column: dict[str, Any] = {"join": _by_name, "texts": _texts_by_column}
_as_strata: dict[str, Any] = {
    "join": _join_strata,
    "take": _take_strata,
    "texts": _strata_texts,
}

RATE = Value(
    "RATE",
    _rates,
    _RATES,
    'a number, "none", or one of these by column',
    take=_without_words,
)
COLUMNS = Value(
    "COLUMNS",
    _columns,
    [str],
    "a list of columns",
    join=lambda lists: [*itertools.chain(*lists)],
)

TEXTS = {
    "columns": COLUMNS,
    "several columns": Value(
        "COLUMNS",
        _columns,
        [(str, [str])],
        "a list of columns",
        take=lambda lists: [*map(_listed, lists)],
        **_each,
    ),
    "rate": RATE,
    "bounds": Value(
        "LOW,HIGH",
        _bounds,
        [NUMBER],
        "two numbers",
        take=lambda numbers: _bounds(written(numbers)),
    ),
    "shares": Value(
        "SHARES",
        _target,
        _SHARES,
        'the share of each level, "keep" or "free"',
        take=_without_words,
        **_by_column,
    ),
    "strata": Value(
        "COLUMNS",
        _strata,
        _STRATA,
        "a list of columns, or levels by column",
        **_as_strata,
    ),
    "pairs": Value(
        "PAIRS", _pairs, _PAIRS, "columns with a value each", take=_listed, **_each
    ),
    "bins": Value(
        "BINS",
        _bins,
        _BINS,
        "a whole number, or a list of edges",
        join=_join_bins,
        texts=_texts_by_column,
    ),
    "kind": Value(
        "KIND",
        lambda text: _column_and(text, "zip: categorical"),
        {str: str},
        "the name of a kind",
        **_by_column,
    ),
    "names": Value(
        "NAMES", _names, {str: {str: str}}, "names of levels, by column", **_by_column
    ),
    "levels": Value(
        "LEVELS", _levels, {str: [_LEVEL]}, "a list of levels", **_by_column
    ),
    "sheet": Value(
        "SHEET", str, (str, int), "the name or number of a sheet", **_as_it_is
    ),
    "level": Value(
        "LEVEL",
        str,
        _LEVELS,
        "a level, or a list of levels",
        join=list,
        take=_listed,
        **_as_it_is,
    ),
}
