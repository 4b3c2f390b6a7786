"""Values of options, from the text of the command line or from a TOML file.

On the command line, options of a column are written ``column: one, two``; a name or level that contains a comma has to
go into a TOML file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import click

NOTHING = "none"
KEEP = "keep"
FREE = "free"

# "Female=0.6, Male=0.4": the number after the last "=" before a comma, so that levels may be "<=50K" or "[17, 25)".
_SHARE = re.compile(r"\s*(?P<level>.+?)\s*=\s*(?P<share>[-+.\deE]+)\s*(?:,|$)")


class Value(click.ParamType[Any]):
    """An option's value: what a TOML file holds is taken as it is if ``accepts`` says so, text is parsed.

    ``write`` is the way back, from a value to the text of the command line.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        accepts: Callable[[Any], bool],
        write: Callable[[Any], str],
        words: str,
    ) -> None:
        self.name = name
        self.accepts = accepts
        self.words = words
        self._parse = parse
        self._write = write

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the value, or say what it should look like."""
        if isinstance(value, str):
            try:
                return self._parse(value)
            except ValueError as problem:
                self.fail(str(problem), param, ctx)
        if not self.accepts(value):
            self.fail(f"{value!r} is not {self.name.lower().replace('_', ' ')}", param, ctx)
        return value

    def written(self, value: Any) -> str | None:
        """The text that is parsed to this value; None if there is none, such as for a name with a comma."""
        try:
            text = self._write(value)
            return text if self._parse(text) == value else None
        except (TypeError, ValueError):
            return None


def names_of(text: str) -> list[str]:
    """Parse ``sex, race``."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"{text!r} is not a list of columns, such as sex,race")
    return names


def columns_in(text: str, known: Collection[str]) -> list[str]:
    """Parse ``sex, race`` if the columns are known: a name that contains a comma is one name.

    >>> columns_in("sex, race, ethnicity", ["sex", "race, ethnicity"]), columns_in("a,b", [])
    (['sex', 'race, ethnicity'], ['a', 'b'])
    """
    parts = text.split(",")
    names: list[str] = []
    start = 0
    while start < len(parts):
        ends = range(len(parts), start, -1)
        end = next((end for end in ends if ",".join(parts[start:end]).strip() in known), start + 1)
        names.append(",".join(parts[start:end]).strip())
        start = end
    return names


def _columns_text(text: str) -> str:
    """Check the text of ``sex, race``, which is split when the columns are known."""
    names_of(text)
    return text


def number_of(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not a number") from problem


def rate_of(text: str) -> float | dict[str, float | None] | None:
    """Parse ``0.9``, ``none``, or a rate for each column: ``sex=0.9, race=none``."""
    if "=" in text:
        return {column: _one_rate(value) for column, value in pairs_of(text).items()}
    return _one_rate(text)


def _one_rate(text: str) -> float | None:
    return None if text.strip().lower() == NOTHING else number_of(text)


def bounds_of(text: str) -> tuple[float | None, float | None]:
    """Parse ``0.3, 3``, where ``none`` leaves a side open."""
    numbers = [_one_rate(part) for part in text.split(",")]
    if len(numbers) != 2:
        raise ValueError(f"{text!r} is not two numbers, such as 0.3,3")
    return numbers[0], numbers[1]


def pairs_of(text: str) -> dict[str, str]:
    """Parse ``sex=Male, pregnant=yes``."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        column, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not column or not value:
            raise ValueError(f"{text!r} is not column=value, or several of them separated by commas")
        if column in pairs:
            raise ValueError(f"{text!r} names {column!r} twice")
        pairs[column] = value
    return pairs


def within_of(text: str) -> dict[str, list[str] | None]:
    """Parse ``department, year``, or with the levels that are meant: ``label=yes``.

    >>> within_of("department, label=yes")
    {'department': None, 'label': ['yes']}
    """
    strata: dict[str, list[str] | None] = {}
    for part in text.split(","):
        column, equals, level = (piece.strip() for piece in part.partition("="))
        if not column or bool(equals) != bool(level):
            raise ValueError(f"{text!r} is not a list of columns, such as department,year, or column=level")
        strata[column] = [*(strata.get(column) or ()), level] if level else None
    return strata


def _written_strata(strata: Mapping[str, Any]) -> str:
    return ",".join(
        name if levels is None else ",".join(f"{name}={level}" for level in levels) for name, levels in strata.items()
    )


def _is_strata(value: Any) -> bool:
    """Whether it is what TOML says of strata: a level, or a list of levels, by column."""
    levels = list(value.values()) if isinstance(value, Mapping) else [value]
    listed = [one for level in levels for one in (level if isinstance(level, list) else [level])]
    return isinstance(value, Mapping) and all(map(_is_scalar, listed))


def target_of(text: str) -> tuple[str, dict[str, float] | str | None]:
    """Parse ``sex: Female=0.6, Male=0.4``, ``age: keep`` or ``income: free``."""
    column, rest = _column_and(text, "sex: Female=0.6, Male=0.4")
    if rest.lower() in (KEEP, FREE):
        return column, None if rest.lower() == KEEP else FREE
    shares: dict[str, float] = {}
    start = 0
    while start < len(rest):
        match = _SHARE.match(rest, start)
        if not match:
            raise ValueError(f"{rest[start:].strip()!r} is not level=share, as in 'sex: Female=0.6, Male=0.4'")
        shares[match["level"]] = number_of(match["share"])
        start = match.end()
    return column, shares


def order_of(text: str) -> tuple[str, list[str]]:
    """Parse ``size: small, medium, large``."""
    column, rest = _column_and(text, "size: small, medium, large")
    return column, [level.strip() for level in rest.split(",")]


def kind_of(text: str) -> tuple[str, str]:
    """Parse ``zip: categorical``."""
    return _column_and(text, "zip: categorical")


def bins_of(text: str) -> tuple[str | None, int | list[float]]:
    """Parse ``8`` (for all columns), ``age: 8`` or the edges ``age: 0, 18, 65, 120``."""
    if ":" not in text:
        return None, _whole(text)
    column, rest = _column_and(text, "age: 0, 18, 65, 120")
    return column, [number_of(edge) for edge in rest.split(",")] if "," in rest else _whole(rest)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not a whole number") from problem


def _column_and(text: str, example: str) -> tuple[str, str]:
    column, colon, rest = (part.strip() for part in text.partition(":"))
    if not colon or not column or not rest:
        raise ValueError(f"{text!r} is not written as in {example!r}")
    return column, rest


def is_number(value: Any) -> bool:
    """Whether it is a number; TOML's true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, list | Mapping)


def _is_rate(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(rate is None or is_number(rate) for rate in value.values())
    return is_number(value)


def _is_bounds(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value))


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _is_target(pair: Any) -> bool:
    shares = pair[1]
    if isinstance(shares, Mapping):
        return all(map(is_number, shares.values()))
    return shares is None or shares == FREE


def _is_bins(pair: Any) -> bool:
    edges = pair[1]
    if isinstance(edges, list):
        return all(_is_scalar(edge) and not isinstance(edge, bool | str) for edge in edges)
    return is_number(edges) and isinstance(edges, int)


def _is_order(pair: Any) -> bool:
    return isinstance(pair[1], list) and all(map(_is_scalar, pair[1]))


def _is_event(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_scalar, value.values()))


def _written(value: Any) -> str:
    """Write nothing, a number or text, several of them, or pairs."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_written(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value))
    return NOTHING if value is None else str(value)


def _written_of_column(pair: tuple[str | None, Any]) -> str:
    """Write what is said of a column, or of all."""
    column, value = pair
    text = KEEP if value is None else _written(value)
    return text if column is None else f"{column}: {text}"


NAMES = Value("COLUMNS", names_of, _is_names, ",".join, "a list of columns")
PROTECTED = Value("COLUMNS", _columns_text, lambda value: False, str, "a list of columns")
RATE = Value("RATE", rate_of, _is_rate, _written, 'a number, "none", or one of these by column')
BOUNDS = Value("LOW,HIGH", bounds_of, _is_bounds, _written, "two numbers")
TARGET = Value("SHARES", target_of, _is_target, _written_of_column, 'the share of each level, "keep" or "free"')
WITHIN = Value("COLUMNS", within_of, _is_strata, _written_strata, "a list of columns, or levels by column")
PAIRS = Value("PAIRS", pairs_of, _is_event, _written, "columns with a value each")
BINS = Value("BINS", bins_of, _is_bins, _written_of_column, "a whole number, or a list of edges")
KIND = Value("KIND", kind_of, lambda pair: isinstance(pair[1], str), _written_of_column, "the name of a kind")
ORDER = Value("LEVELS", order_of, _is_order, _written_of_column, "a list of levels")
SHEET = Value("SHEET", str, lambda value: isinstance(value, str | int), str, "the name or number of a sheet")
LEVEL = Value("LEVEL", str, _is_scalar, str, "a level, or a list of levels")
