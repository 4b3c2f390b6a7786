"""Values of options: one grammar for what is typed, in a TOML file, or on the page.

A text that is typed stands for a value of TOML:

    0.9                          a number, or a word such as none
    sex,race                     a list
    sex=0.9,race=none            a table
    sex: Female=0.6, Male=0.4    a table of columns; what follows is one of the above

In double quotes, a comma, an equals sign or a colon belongs to a name.
"""

import datetime
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairmaxent.errors import shown
from fairmaxent.options import NOTHING, OptionInfo

Pairs = dict[str, Any]  # values by name

KEEP = "keep"
FREE = "free"
HOW = (
    "a name or level that contains a comma goes in double quotes, as in --drop"
    " 'id,\"race, ethnicity\"'"
)
_MARKS = ",=:"
_QUOTED = re.compile(r'"(?:[^"]|"")*"(?=\s*(?:[,=:]|$))')
NUMBER = (int, float)
_LEVEL = (str, bool, int, float, datetime.date, datetime.time, type(None))
_LEVELS = (*_LEVEL, [_LEVEL])


# ---------------------------------------------------------------- shapes


@dataclass(frozen=True)
class ByColumn:
    """The shape of what is said of each column, typed as ``column: value``."""

    inner: Any


def fits(value: Any, shape: Any) -> bool:
    """Whether a value of TOML has a shape.

    A shape is a type, a word, a list or table of a shape, or one of several.

    >>> rates = {str: (float, "none")}
    >>> fits({"sex": 0.9, "race": "none"}, rates), fits([1, True], [int])
    (True, False)
    """
    if isinstance(shape, tuple):
        return any(fits(value, other) for other in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, ByColumn):
        return fits(value, {str: shape.inner})
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
    """Split a text at each mark, or at the first, outside of double quotes.

    The parts keep their quotes.

    >>> split('id, "race, ethnicity"', ","), split('"a=b"=c=d', "=", once=True)
    (['id', '"race, ethnicity"'], ['"a=b"', 'c=d'])
    >>> split('a 12" pipe, b', ",")
    ['a 12" pipe', 'b']
    """
    parts: list[str] = []
    start = at = 0
    while at < len(text):
        before = text[:at].rstrip()
        in_quotes = None
        if text[at] == '"' and (not before or before[-1] in _MARKS):
            in_quotes = _QUOTED.match(text, at)
        if in_quotes is not None:
            at = in_quotes.end()
            continue
        if text[at] == mark and not (once and parts):
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [*parts, text[start:].strip()]


def unquoted(part: str) -> str:
    """A name without its quotes, in which two stand for one.

    >>> unquoted('"race, ethnicity"'), unquoted('"a ""big"" one"'), unquoted('12" pipe')
    ('race, ethnicity', 'a "big" one', '12" pipe')
    """
    if len(part) > 1 and _QUOTED.fullmatch(part):
        return part[1:-1].replace('""', '"')
    return part


def quoted(name: str) -> str:
    """A name as it is typed: in quotes if it would not be read as one name otherwise.

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


def number_of(text: str, kind: type = float) -> Any:
    """Parse a number."""
    try:
        return kind(text)
    except ValueError as problem:
        what = "whole number" if kind is int else "number"
        raise ValueError(f"{text!r} is not a {what}") from problem


def parsed(text: str, shape: Any) -> Any:
    """The value of TOML that a text stands for where this shape is wanted.

    Raises `ValueError`, empty where the text is written in another way altogether.

    >>> parsed("sex: Female=0.6, Male=0.4", ByColumn({str: float}))
    {'sex': {'Female': 0.6, 'Male': 0.4}}
    >>> parsed("sex=0.9, race=none", {str: (float, "none")}), parsed("0, 65", [float])
    ({'sex': 0.9, 'race': 'none'}, [0.0, 65.0])
    """
    shapes = shape if isinstance(shape, tuple) else (shape,)
    word = text.strip().lower()
    if word in shapes:
        return word
    is_single = any(isinstance(one, type) for one in shapes)
    for one in shapes:
        if isinstance(one, ByColumn) and _has(text, ":"):
            column, rest = split(text, ":", once=True)
            return {_name(column): parsed(rest, one.inner)}
        if isinstance(one, dict) and _has(text, "="):
            return _pairs(text, one[str])
        if isinstance(one, list) and (_has(text, ",") or not is_single):
            return [parsed(part, one[0]) for part in split(text, ",")]
    if str in shapes:
        return _name(text)
    if float in shapes:
        return number_of(text)
    if int in shapes:
        return number_of(text, int)
    raise ValueError


def _has(text: str, mark: str) -> bool:
    return len(split(text, mark, once=True)) > 1


def _name(text: str) -> str:
    name = unquoted(text.strip())
    if not name:
        raise ValueError
    return name


def _pairs(text: str, inner: Any) -> Pairs:
    """Parse ``sex=Male, pregnant=yes``.

    A number has no equals sign, so before one a level may: ``<=50K=0.7``.
    """
    shapes = inner if isinstance(inner, tuple) else (inner,)
    pairs = []
    for part in split(text, ","):
        if str in shapes:
            name, *value = split(part, "=", once=True)
        else:
            name, *value = part.rsplit("=", 1)
        if not value:
            raise ValueError
        pairs.append((_name(name), parsed(value[0], inner)))
    if [_LEVEL] not in shapes:
        return _by_name(pairs)
    levels: Pairs = {}  # several levels of a column are a list
    for name, level in pairs:
        levels.setdefault(name, []).append(level)
    return levels


def _by_name(pairs: Sequence[tuple[str, Any]]) -> Pairs:
    """Values by column, each named once."""
    values: Pairs = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{name!r} is given twice; give it once")
        values[name] = value
    return values


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


def _one_text(value: Any) -> list[str]:
    return [written(value)]


def _text_of_each(values: Any) -> list[str]:
    return [written(value) for value in values]


def _plain_texts(value: Any) -> list[str]:
    return [str(item) for item in _listed(value)]


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
    texts = []
    for name, levels in strata.items():
        if levels is None:
            texts.append(quoted(name))
        else:
            texts.append(",".join(written({name: level}) for level in levels))
    return texts


# ---------------------------------------------------------------- several texts


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [value]


def _merged(tables: list[Pairs]) -> Pairs:
    return _by_name([pair for table in tables for pair in table.items()])


def _merged_bins(bins: list[Any]) -> Any:
    """Bins of all columns, given once, or those of each."""
    for_all = [each for each in bins if not isinstance(each, Mapping)]
    if not for_all:
        return _merged(bins)
    if len(for_all) < len(bins):
        raise ValueError("given both for all columns and by column; use one of the two")
    if len(for_all) > 1:
        raise ValueError("'all columns' is given twice; give it once")
    return for_all[0]


def _merged_strata(given: list[Any]) -> list[str] | Pairs:
    """Strata of several options; columns without levels as a list.

    >>> _merged_strata([["department"], {"label": ["yes"]}, {"label": ["no"]}])
    {'department': None, 'label': ['yes', 'no']}
    """
    strata: Pairs = {}
    for each in given:
        if not isinstance(each, Mapping):
            strata |= dict.fromkeys(_listed(each))
            continue
        for column, levels in each.items():
            for level in _listed(levels) or [None]:
                if level is None:
                    strata[column] = None
                else:
                    strata[column] = [*(strata.get(column) or ()), level]
    if any(levels is not None for levels in strata.values()):
        return strata
    return list(strata)


def _joined_outcomes(texts: list[Any]) -> list[str] | Pairs:
    """Outcomes of several options: the first is a name, whatever it is.

    >>> _joined_outcomes(["city, state"]), _joined_outcomes(["hired", "promoted=yes"])
    (['city, state'], {'hired': None, 'promoted': ['yes']})
    """
    first, *rest = texts
    return _merged_strata([[first], *map(TEXTS["strata"].parsed, rest)])


def _named_outcomes(given: Any) -> Pairs:
    """The good levels of outcomes by name; None: each level is compared."""
    merged = _merged_strata([given])
    return merged if isinstance(merged, dict) else dict.fromkeys(merged)


def _outcome_texts(outcomes: Pairs) -> list[str]:
    first, *rest = outcomes
    return [first, *_strata_texts({name: outcomes[name] for name in rest})]


# ---------------------------------------------------------------- from TOML


def _as_it_is(value: Any) -> Any:
    return value


def _without_words(values: Any) -> Any:
    """Values by column, with None for the words that mean it."""
    if values == NOTHING:
        return None
    if not isinstance(values, Mapping):
        return values
    return {
        name: None if value in (NOTHING, KEEP) else value
        for name, value in values.items()
    }


def _size(value: Any) -> Any:
    """A share of people as its text, or a number of rows."""
    if isinstance(value, str) and not value.endswith("%"):
        return number_of(value, int)
    return value


def _file_name(name: str) -> str:
    """A name that is not empty, which would be that of the current folder."""
    if not name:
        raise ValueError("is empty; name a file")
    return name


def _two_numbers(numbers: Any) -> tuple[float | None, ...]:
    if len(numbers) != 2:
        raise ValueError(f"{written(numbers)!r} is not two numbers, such as 0.3,3")
    return tuple(None if end in (NOTHING, None) else float(end) for end in numbers)


# ---------------------------------------------------------------- kinds of values


@dataclass(frozen=True, kw_only=True, eq=False)
class Value:
    """How the value of an option is written."""

    shape: Any  # in a TOML file (see `fits`)
    words: str  # that describe the shape
    metavar: str = ""  # in the help
    example: str = ""  # as it is typed
    is_text: bool = False  # what is typed is the value, whatever it is
    each: Any = None  # what one text stands for, if that is not the shape
    join: Callable[[list[Any]], Any] | None = None  # how several texts make a value
    take: Callable[[Any], Any] = (
        _as_it_is  # from the value in TOML to that of the option
    )
    texts: Callable[[Any], list[str]] = _one_text  # the way back

    def read(self, texts: Sequence[str]) -> Any:
        """The value of what was typed, or `ValueError`."""
        values = [self.parsed(text) for text in texts]
        if self.join is None:
            return self.take(values[0])
        return self.take(self.join(values))

    def parsed(self, text: str) -> Any:
        """What one text stands for, or `ValueError`."""
        if self.is_text:
            return text
        try:
            return parsed(text, self.each or self.shape)
        except ValueError as problem:
            if problem.args:
                raise
            raise ValueError(
                f"{text!r} is not written as in {self.example}; {HOW}"
            ) from None

    def taken(self, value: Any) -> Any:
        """The value of what a TOML file or the page holds, or `ValueError`."""
        if any(has_null(item) for item in _listed(value)):
            raise ValueError("has a null character; remove it")
        if not fits(value, self.shape):
            raise ValueError(f"is {shown(value)}; it takes {self.words}")
        return self.take(value)

    def typed(self, value: Any) -> list[str] | None:
        """The texts that are read as this value.

        None if there are none, such as for edges that are dates.
        """
        try:
            texts = self.texts(value)
            if self.read(texts) == value:
                return texts
        except (TypeError, ValueError):
            pass
        return None


def has_null(value: object) -> bool:
    """Whether this is a text that cannot be typed."""
    return isinstance(value, str) and "\0" in value


def value_of(info: OptionInfo) -> Value:
    """How the value of an option is written."""
    if info.choices:
        return TEXTS["text"]
    return TEXTS[info.text]


_TEXT = Value(shape=str, words="a text in quotes", is_text=True, texts=_plain_texts)
_TEXTS = replace(_TEXT, shape=[str], join=list)

# By the name that options give to them: see `OptionInfo.text`.
TEXTS = {
    "flag": Value(shape=bool, words="true or false"),
    "whole": Value(shape=int, words="a whole number"),
    "number": Value(shape=NUMBER, words="a number", take=float, texts=_plain_texts),
    "text": _TEXT,
    "file": replace(_TEXT, take=_file_name),
    "target": _TEXT,  # a file that is written
    "texts": _TEXTS,
    "files": _TEXTS,
    "columns": Value(
        metavar="COLUMNS",
        shape=[str],
        words="a list of columns",
        example="sex,race",
        join=lambda lists: [item for items in lists for item in items],
    ),
    "several columns": Value(
        metavar="COLUMNS",
        shape=[(str, [str])],
        words="a list of columns",
        example="sex,race",
        each=[str],
        join=list,
        take=lambda lists: [_listed(columns) for columns in lists],
        texts=_text_of_each,
    ),
    "rate": Value(
        metavar="RATE",
        shape=(*NUMBER, NOTHING, {str: (*NUMBER, NOTHING, type(None))}),
        words='a number, "none", or one of these by column',
        example="sex=0.9,race=none",
        take=_without_words,
    ),
    "bounds": Value(
        metavar="LOW,HIGH",
        shape=[(*NUMBER, NOTHING)],
        words="two numbers",
        example="0.3,3",
        take=_two_numbers,
    ),
    "size": Value(
        metavar="SIZE",
        shape=(str, int),
        words='a number of rows, or a share such as "2%"',
        example="2% or 30",
        take=_size,
    ),
    "reference": Value(
        metavar="LEVEL",
        shape=(*_LEVEL, {str: _LEVEL}),
        words="a level, or one by column",
        example="sex=Male,race=White",
    ),
    "shares": Value(
        metavar="SHARES",
        shape=ByColumn(({str: NUMBER}, KEEP, FREE, type(None))),
        words='the share of each level, "keep" or "free"',
        example="'sex: Female=0.6, Male=0.4'",
        join=_merged,
        take=_without_words,
        texts=_texts_by_column,
    ),
    "strata": Value(
        metavar="COLUMNS",
        shape=({str: _LEVELS}, [str]),
        words="a list of columns, or levels by column",
        example="department,year, or as label=yes in an option of its own",
        join=_merged_strata,
        take=lambda value: _merged_strata([value]),
        texts=_strata_texts,
    ),
    "outcomes": Value(
        metavar="COLUMN",
        shape=(str, [str], {str: _LEVELS}),
        words="a column, a list of columns, or their good levels by column",
        is_text=True,
        join=_joined_outcomes,
        take=_named_outcomes,
        texts=_outcome_texts,
    ),
    "pairs": Value(
        metavar="PAIRS",
        shape=([{str: _LEVEL}], {str: _LEVEL}),
        words="columns with a value each",
        example="sex=Male,pregnant=yes",
        each={str: _LEVEL},
        join=list,
        take=_listed,
        texts=_text_of_each,
    ),
    "bins": Value(
        metavar="BINS",
        shape=(int, ByColumn((int, [(int, float, datetime.date)]))),
        words="a whole number, or a list of edges",
        example="'age: 0, 18, 65, 120'",
        join=_merged_bins,
        texts=_texts_by_column,
    ),
    "kind": Value(
        metavar="KIND",
        shape=ByColumn(str),
        words="the name of a kind",
        example="'zip: categorical'",
        join=_merged,
        texts=_texts_by_column,
    ),
    "names": Value(
        metavar="NAMES",
        shape=ByColumn({str: str}),
        words="names of levels, by column",
        example="'SEX: 1=men, 2=women'",
        join=_merged,
        texts=_texts_by_column,
    ),
    "levels": Value(
        metavar="LEVELS",
        shape=ByColumn([_LEVEL]),
        words="a list of levels",
        example="'size: small, medium, large'",
        join=_merged,
        texts=_texts_by_column,
    ),
    "sheet": replace(
        _TEXT,
        metavar="SHEET",
        shape=(str, int),
        words="the name or number of a sheet",
    ),
    "level": Value(
        metavar="LEVEL",
        shape=_LEVELS,
        words="a level, or a list of levels",
        is_text=True,
        join=list,
        take=_listed,
        texts=_plain_texts,
    ),
}
