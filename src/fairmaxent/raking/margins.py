"""Known margins, as users state them, and as shares of the levels of the data."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import (
    Notes,
    value_text,
)
from fairmaxent.data.table import (
    Codes,
    NameList,
    Names,
    Reals,
    Table,
    tally,
)
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    TargetError,
    did_you_mean,
    first_of,
    shown,
)

Level = tuple[Any, ...]  # one value for each column of a margin

VALUE = "value"
COLUMNS = ("columns", "column")
_EXAMPLE = "{'sex': {'Female': 0.51, 'Male': 0.49}}"

# Shares may be rounded; a margin that is farther away from its total than this is taken
# for a mistake.
_ROUNDED = 0.01
_EXACT = 1e-9
_LARGEST = 1e290  # so that sums are finite
_Entry = tuple[Names, Level, float]
Attributes = Sequence[Attribute]
_SHOWN = 5  # levels that a message lists


@dataclass(frozen=True)
class Crossed:
    """A column, or several crossed ones."""

    columns: Names

    @property
    def name(self) -> str:
        """Its columns as one text."""
        return " × ".join(self.columns)


@dataclass(frozen=True)
class Margin(Crossed):
    """The share or total that is known for each level."""

    values: Mapping[Level, float]

    @property
    def total(self) -> float:
        """What its values add up to."""
        return math.fsum(self.values.values())

    @property
    def is_share(self) -> bool:
        """Whether they are shares or percentages, maybe rounded."""
        total = self.total
        return any(abs(total - whole) <= _ROUNDED * whole for whole in (1.0, 100.0))


def read_margins(margins: Any, names: NameList) -> tuple[Margin, ...]:
    """Read margins as a mapping, a tidy table, or several of them.

    ``names`` are the columns of the data.
    """
    collected: dict[Names, dict[Level, float]] = {}  # in order of appearance
    for columns, levels, value in _entries(margins, names):
        values = collected.setdefault(columns, {})
        key = tuple(None if frames.is_missing(level) else level for level in levels)
        if key in values:
            raise TargetError(
                f"the margins hold {_named(columns, levels)} twice; give one number"
            )
        values[key] = value

    result = tuple(Margin(columns, values) for columns, values in collected.items())
    if not result:
        raise TargetError(f"no margin was given; pass at least one, e.g. {_EXAMPLE}")
    for margin in result:
        for name in margin.columns:
            if name not in names:
                raise ColumnError(
                    f"a margin is about {name!r}, which is not a column;"
                    f" {did_you_mean(name, names)}"
                )
        if len(set(margin.columns)) < len(margin.columns):
            raise ColumnError(
                f"the margin {margin.name} names a column twice; name each once"
            )
    return result


def _entries(margins: Any, names: NameList) -> Iterator[_Entry]:
    """Every known number, with its columns and levels."""
    if isinstance(margins, Mapping):
        for columns, values in margins.items():
            yield from _of_mapping(columns, values)
    elif isinstance(margins, list | tuple):
        for part in margins:
            yield from _entries(part, names)
    else:
        try:
            table = frames.open_frame(margins)
        except InputError as problem:
            raise TargetError(
                f"cannot read the margins ({problem}); pass a mapping, e.g. {_EXAMPLE},"
                " or a table"
            ) from None
        yield from _of_table(table, names)


def _of_mapping(about: Any, values: Any) -> Iterator[_Entry]:
    columns = (about,) if isinstance(about, str) else about
    are_names = isinstance(columns, tuple) and all(
        isinstance(name, str) for name in columns
    )
    if not are_names or not columns:
        raise ColumnError(
            f"a margin is about {shown(about)}; name a column, or several as a tuple:"
            " ('sex', 'age')"
        )

    if not hasattr(values, "items"):
        raise TargetError(
            f"the margin of {' × '.join(columns)} is {shown(values)}; give a number for"
            " each level"
        )

    for level, value in values.items():
        levels = level if isinstance(level, tuple) else (level,)
        if len(levels) != len(columns):
            raise TargetError(
                f"the margin of {' × '.join(columns)} has the level {shown(level)};"
                f" give one value for each of its {len(columns)} columns, as a tuple"
            )
        yield columns, levels, _number(columns, levels, value)


def _of_table(table: frames.Frame, names: NameList) -> Iterator[_Entry]:
    """Each line holds one number.

    It stands beside the names of its columns and their levels, or beside columns of the
    data themselves.
    """
    if VALUE not in table.columns:
        raise TargetError(
            f"the table of margins has no column {VALUE!r}; it needs one with the"
            " shares or totals, beside either 'columns' and 'level', or the columns of"
            " the data themselves"
        )

    named = next(
        (name for name in COLUMNS if name in table.columns and name not in names), None
    )
    others = [name for name in table.columns if name not in (VALUE, named)]
    for row in table.iter_rows(named=True):
        if named is None:
            columns = tuple(name for name in others if not frames.is_missing(row[name]))
            levels = [row[name] for name in columns]
        else:
            text = row[named]
            columns = _columns_named("" if frames.is_missing(text) else text, names)
            values = [row[name] for name in others]
            levels = values[: len(columns)]
            has_more = not all(map(frames.is_missing, values[len(columns) :]))
            if len(levels) < len(columns) or (columns and has_more):
                raise TargetError(
                    f"the margin of {' × '.join(columns)} needs {len(columns)} level(s)"
                    " in each line of the table of margins"
                )
        if not columns:
            raise TargetError(
                "the table of margins has a line without a column and its level;"
                " complete or remove it"
            )
        yield columns, tuple(levels), _number(columns, levels, row[VALUE])


def _columns_named(text: Any, names: NameList) -> Names:
    """The columns that a cell names, with × or commas between them."""
    if text in names:  # a column may have a comma in its name, or an empty name
        return (text,)
    if not text:
        return ()
    mark = "×" if "×" in str(text) else ","
    return tuple(part.strip() for part in str(text).split(mark))


def _number(columns: NameList, levels: Sequence[Any], value: Any) -> float:
    number = math.nan
    if not isinstance(value, bool | str):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if not 0 <= number <= _LARGEST:
        raise TargetError(
            f"the margin of {_named(columns, levels)} is {shown(value)}; give a finite"
            " number that is not negative"
        )
    return number


def _named(columns: NameList, levels: Sequence[Any]) -> str:
    return ", ".join(
        f"{name} = {shown(level)}" for name, level in zip(columns, levels, strict=True)
    )


def scale_of(margins: Sequence[Margin]) -> tuple[float | None, list[str]]:
    """What margins add up to, None if all of them are shares; and what was rounded."""
    notes = [*filter(None, map(_share_note, margins))]
    totals = [margin for margin in margins if not margin.is_share]
    for margin in margins:
        if not margin.total > 0:
            raise TargetError(
                f"the margin of {margin.name} is zero everywhere; give shares or totals"
            )

    for margin in totals:
        values = list(margin.values.values())
        # Numbers up to 1 that are not whole must be meant as shares.
        if max(values) <= 1 and any(value != round(value) for value in values):
            raise TargetError(
                f"the margin of {margin.name} adds up to {margin.total:.6g}; shares"
                " must add up to 1, and totals are numbers of people: correct or add a"
                " level, or give the totals in full"
            )

    if not totals:
        return None, notes
    total = totals[0].total
    if len(totals) < len(margins):
        shares = ", ".join(margin.name for margin in margins if margin.is_share)
        notes.append(
            f"shares are known for {shares}, and totals for the rest; the weights add"
            f" up to {total:,.12g}"
        )

    for margin in totals[1:]:
        if abs(margin.total - total) > _ROUNDED * total:
            raise TargetError(
                f"the margins add up to different totals: {totals[0].name} to"
                f" {total:,g}, {margin.name} to {margin.total:,g}; give totals of the"
                " same population, or shares"
            )
        if abs(margin.total - total) > _EXACT * total:
            notes.append(
                f"the margin of {margin.name} adds up to {margin.total:,.12g}, and was"
                f" rescaled to {total:,.12g}"
            )
    return total, notes


def _share_note(margin: Margin) -> str:
    """Say what was made of shares that do not add up to 1."""
    total = margin.total
    if not margin.is_share or abs(total - 1) <= _EXACT:
        return ""
    if abs(total - 100) <= 100 * _EXACT:
        return (
            f"the margin of {margin.name} adds up to 100, and was read as percentages"
        )

    kind = "shares"
    whole = 1
    if total >= 2:
        kind = "percentages"
        whole = 100
    return (
        f"the {kind} of {margin.name} add up to {total:.6g}, and were rescaled to"
        f" {whole}"
    )


@dataclass(frozen=True, eq=False)
class MarginTarget(Crossed):
    """A margin in terms of the data.

    Its levels are the combinations that rows have, and those that are only wanted.
    """

    labels: Names  # one text per level
    wanted: Reals  # the share of each level; they add up to 1
    cells: Codes  # the level of each cell of the survey
    notes: Notes

    def describe(self, level: int) -> str:
        """Name a level."""
        return f"{self.name} = {self.labels[level]}"


def match_margin(margin: Margin, domain: Domain, table: Table) -> MarginTarget:
    """Match the levels of a margin with those of the data."""
    attributes = [domain.attribute(name) for name in margin.columns]
    places = [domain.index(name) for name in margin.columns]
    chosen = table.codes[:, places].astype(int)
    present, cells = np.unique(chosen, axis=0, return_inverse=True)
    cells = cells.reshape(-1)
    positions = {tuple(row): position for position, row in enumerate(present.tolist())}
    wanted = np.full(len(present), np.nan)
    more: dict[str, float] = {}  # levels that no row has
    listed = set()
    for level, value in margin.values.items():
        codes = tuple(
            level_of(attribute, part)
            for attribute, part in zip(attributes, level, strict=True)
        )
        if codes in listed:
            raise LevelError(
                f"the margin of {margin.name} names {_labels(codes, attributes)} twice,"
                " spelt differently; give it once"
            )
        if None in codes:
            _refuse_misspelt(margin, attributes, level, codes)
            label = ", ".join(
                "missing" if frames.is_missing(part) else value_text(part)
                for part in level
            )
        else:
            listed.add(codes)
            label = _labels(codes, attributes)
        if codes in positions:
            wanted[positions[codes]] = value
        elif value > 0:
            more[label] = value

    mass = tally(cells, table.counts, len(present))
    wanted, notes = _with_missing(margin, attributes, present, mass, wanted, more)
    labels = [*(_labels(row, attributes) for row in present.tolist()), *more]
    every = np.append(wanted, list(more.values()))
    return MarginTarget(
        columns=margin.columns,
        labels=tuple(labels),
        wanted=every / every.sum(),
        cells=cells,
        notes=notes,
    )


def level_of(attribute: Attribute, value: Any) -> int | None:
    """Return the level of a value, or of its text.

    A table of margins may hold all levels as text, or as numbers.
    """
    candidates = [value]
    if not frames.is_missing(value):
        candidates.append(value_text(value))
    if isinstance(value, str) and not attribute.values.dtype.is_numeric():
        truth = {"true": True, "false": False}.get(value.strip().lower())
        if truth is not None:
            candidates.append(truth)

    for candidate in candidates:
        with contextlib.suppress(LevelError):
            return attribute.level(candidate)
    return None


def _refuse_misspelt(
    margin: Margin,
    attributes: Attributes,
    level: Level,
    codes: Level,
) -> None:
    """Name a level that differs from one of the data only by case or blanks."""
    for attribute, part, code in zip(
        attributes,
        level,
        codes,
        strict=True,
    ):
        by_text = {_plain(label): label for label in attribute.labels}
        label = by_text.get(_plain(value_text(part)))
        if code is None and label is not None:
            raise LevelError(
                f"levels of the margin {margin.name} differ from those of the data only"
                f" in upper and lower case or in blanks: {shown(part)} is"
                f" {shown(label)} in the data; spell them the same way"
            )


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _with_missing(
    margin: Margin,
    attributes: Attributes,
    present: Codes,
    mass: Reals,
    wanted: Reals,
    absent: dict[str, float],
) -> tuple[Reals, Notes]:
    """Let missing values that the margin does not list keep their share.

    Refuse other levels that it does not list.
    """
    unlisted = np.isnan(wanted) & (mass > 0)
    no_value = [
        -1 if attribute.missing is None else attribute.missing
        for attribute in attributes
    ]
    missing = (present == np.array(no_value)).any(axis=1)
    unknown = np.flatnonzero(unlisted & ~missing)
    if len(unknown):
        labels = [_labels(row, attributes) for row in present[unknown].tolist()]
        listed = first_of(labels, _SHOWN)
        instead = ""
        if absent:
            instead = f", but {', '.join([*absent][:_SHOWN])}, which no row has"
        raise LevelError(
            f"the margin of {margin.name} does not list {listed}, which rows of"
            f" the data have{instead}; add what is known of them (0 gives these rows no"
            " weight), or drop these rows"
        )

    kept = unlisted & missing
    result = np.nan_to_num(wanted)
    if not kept.any():
        return result, ()
    share = float(mass[kept].sum() / mass.sum())
    if not mass[~kept].any():
        raise LevelError(
            f"no row has a value in {margin.name}; leave this margin out, or fill the"
            " values in"
        )

    total = float(result.sum()) + sum(absent.values())
    result[kept] = mass[kept] / mass.sum() * total / (1 - share)
    return result, (
        f"{share:.2%} of the weight has no value in {margin.name}; these rows keep that"
        " share, and the margin is about the others",
    )


def _labels(codes: Sequence[Any], attributes: Attributes) -> str:
    return ", ".join(
        attribute.labels[code]
        for attribute, code in zip(attributes, codes, strict=True)
    )
