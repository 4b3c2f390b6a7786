"""Values of options, from the text of the command line or from a TOML file.

On the command line, options of a column are written ``column: one, two``; a name or level that contains a comma goes in
double quotes (see `quoting`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import click

from fairmaxent.cli.quoting import HOW, quoted, split, unquoted
from fairmaxent.errors import InputError, Option

# That a file cannot be read is said when it is read, with the exit code for that; one to be replaced need not be.
FILE = click.Path(readable=False)
NOTHING = "none"
KEEP = "keep"
FREE = "free"

# "Female=0.6, Male=0.4": the number after the last "=" before a comma, so that levels may be "<=50K" or "[17, 25)".
_SHARE = re.compile(r"\s*(?P<level>.+?)\s*=\s*(?P<share>[-+.\deE]+)\s*(?:,|$)")


class Value(click.ParamType[Any]):
    """An option's value: what a TOML file holds is taken as it is if ``accepts`` says so, text is parsed.

    ``write`` is the way back, from a value to the text of the command line. If an option may be given several times,
    ``join`` makes one value of them; ``by_column`` says that each is about a column, which TOML has as a section.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        accepts: Callable[[Any], bool],
        write: Callable[[Any], str],
        words: str,
        *,
        join: Callable[[str, Any], Any] | None = None,
        by_column: bool = False,
    ) -> None:
        self.several = join is not None
        self.join = join or (lambda name, value: value)
        self.by_column = by_column
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
    """Parse ``sex, race``, or ``sex, "race, ethnicity"``."""
    names = [unquoted(name) for name in split(text, ",")]
    if not all(names):
        raise ValueError(f"{text!r} is not a list of columns, such as sex,race; {HOW}")
    return names


def columns_in(text: str, known: Collection[str]) -> list[str]:
    """Parse ``sex, race`` if the columns are known: then a name that contains a comma needs no quotes.

    >>> columns_in("sex, race, ethnicity", ["sex", "race, ethnicity"]), columns_in("a,b", [])
    (['sex', 'race, ethnicity'], ['a', 'b'])
    """
    return [text.strip()] if text.strip() in known else joined(names_of(text), known)


def joined(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Join names that are not columns to one that is: ``race``, ``ethnicity`` to the column "race, ethnicity".

    >>> joined(["sex", "race", "ethnicity"], ["sex", "race, ethnicity"]), joined(["a", "b"], ["a", "b", "a, b"])
    (['sex', 'race, ethnicity'], ['a', 'b'])
    """
    columns = {_without_blanks(column): column for column in known}
    result: list[str] = []
    start = 0
    while start < len(names):
        runs = (names[start:end] for end in range(len(names), start + 1, -1))
        run = next((run for run in runs if _without_blanks(",".join(run)) in columns and not {*run} <= {*known}), None)
        result.append(names[start] if run is None else columns[_without_blanks(",".join(run))])
        start += 1 if run is None else len(run)
    return result


def _without_blanks(name: str) -> str:
    """A name without the blanks around its commas."""
    return ",".join(part.strip() for part in name.split(","))


def comma_hint(known: Collection[str]) -> str:
    """How to write the names of columns that contain a comma, if there are any."""
    return f"; {HOW}" if any("," in name for name in known) else ""


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
    for part in split(text, ","):
        column, value = _pair(part)
        if not column or not value:
            raise ValueError(f"{text!r} is not column=value, or several of them separated by commas; {HOW}")
        if column in pairs:
            raise ValueError(f"{text!r} names {column!r} twice")
        pairs[column] = value
    return pairs


def _pair(part: str) -> tuple[str, str]:
    """The sides of an equals sign; the second is empty if there is none."""
    column, *rest = map(unquoted, split(part, "=", once=True))
    return column, rest[0] if rest else ""


def within_of(text: str) -> dict[str, list[str] | None]:
    """Parse ``department, year``, or with the levels that are meant: ``label=yes``.

    >>> within_of("department, label=yes")
    {'department': None, 'label': ['yes']}
    """
    strata: dict[str, list[str] | None] = {}
    for part in split(text, ","):
        column, level = _pair(part)
        if not column or part.endswith("="):
            raise ValueError(f"{text!r} is not a list of columns, such as department,year, or column=level; {HOW}")
        strata[column] = [*(strata.get(column) or ()), level] if level else None
    return strata


def _written_strata(strata: Mapping[str, Any]) -> str:
    return ",".join(
        quoted(name) if levels is None else ",".join(f"{quoted(name)}={_written(level)}" for level in levels)
        for name, levels in strata.items()
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
        shares[unquoted(match["level"])] = number_of(match["share"])
        start = match.end()
    return column, shares


def order_of(text: str) -> tuple[str, list[str]]:
    """Parse ``size: small, medium, large``."""
    column, rest = _column_and(text, "size: small, medium, large")
    return column, [unquoted(level) for level in split(rest, ",")]


def kind_of(text: str) -> tuple[str, str]:
    """Parse ``zip: categorical``."""
    return _column_and(text, "zip: categorical")


def bins_of(text: str) -> tuple[str | None, int | list[float]]:
    """Parse ``8`` (for all columns), ``age: 8`` or the edges ``age: 0, 18, 65, 120``."""
    if len(split(text, ":")) == 1:
        return None, _whole(text)
    column, rest = _column_and(text, "age: 0, 18, 65, 120")
    return column, [number_of(edge) for edge in rest.split(",")] if "," in rest else _whole(rest)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not a whole number") from problem


def _column_and(text: str, example: str) -> tuple[str, str]:
    column, *rest = split(text, ":", once=True)
    if not column or not rest or not rest[0]:
        raise ValueError(f"{text!r} is not written as in {example!r}")
    return unquoted(column), rest[0]


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
        return ", ".join(f"{quoted(name)}={_written(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value))
    return NOTHING if value is None else quoted(value) if isinstance(value, str) else str(value)


def _written_of_column(pair: tuple[str | None, Any]) -> str:
    """Write what is said of a column, or of all."""
    column, value = pair
    text = KEEP if value is None else _written(value)
    return text if column is None else f"{quoted(column)}: {text}"


def once(option: str, pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Values by column, each named once."""
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(Option(option), f" is given twice for {repeated[0] or 'all columns'!r}; give it once")
    return dict(pairs)


def _strata(_: str, given: Sequence[Mapping[str, Any]]) -> list[str] | dict[str, Any] | None:
    """Strata of several options together; columns without levels as a list."""
    strata: dict[str, Any] = {}
    for part in given:
        for column, levels in part.items():
            listed = levels if isinstance(levels, list | None) else [levels]
            strata[column] = None if listed is None else [*(strata.get(column) or ()), *listed]
    if any(levels is not None for levels in strata.values()):
        return strata
    return list(strata) or None


def _listed(_: str, values: Sequence[Any]) -> list[Any] | None:
    return list(values) or None


def _shares(option: str, pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any] | None:
    return once(option, pairs) or None


NAMES = Value("COLUMNS", names_of, _is_names, lambda names: ",".join(map(quoted, names)), "a list of columns")
BINS = Value(
    "BINS", bins_of, _is_bins, _written_of_column, "a whole number, or a list of edges", join=once, by_column=True
)
RATE = Value("RATE", rate_of, _is_rate, _written, 'a number, "none", or one of these by column')
PAIRS = Value("PAIRS", pairs_of, _is_event, _written, "columns with a value each", join=_listed)

# How values are written, by the name that records have for it.
TEXTS = {
    "columns": NAMES,
    "columns as typed": Value("COLUMNS", _columns_text, lambda value: False, str, "a list of columns", join=_listed),
    "several columns": Value(
        "COLUMNS", names_of, _is_names, lambda names: ",".join(map(quoted, names)), "a list of columns", join=_listed
    ),
    "rate": RATE,
    "bounds": Value("LOW,HIGH", bounds_of, _is_bounds, _written, "two numbers"),
    "shares": Value(
        "SHARES",
        target_of,
        _is_target,
        _written_of_column,
        'the share of each level, "keep" or "free"',
        join=_shares,
        by_column=True,
    ),
    "strata": Value(
        "COLUMNS", within_of, _is_strata, _written_strata, "a list of columns, or levels by column", join=_strata
    ),
    "pairs": PAIRS,
    "bins": BINS,
    "kind": Value(
        "KIND",
        kind_of,
        lambda pair: isinstance(pair[1], str),
        _written_of_column,
        "the name of a kind",
        join=once,
        by_column=True,
    ),
    "levels": Value("LEVELS", order_of, _is_order, _written_of_column, "a list of levels", join=once, by_column=True),
    "sheet": Value("SHEET", str, lambda value: isinstance(value, str | int), str, "the name or number of a sheet"),
    "level": Value("LEVEL", str, _is_scalar, str, "a level, or a list of levels", join=_listed),
}
