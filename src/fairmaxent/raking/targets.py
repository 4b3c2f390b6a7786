"""Targets: the wanted share of each level of each margin, matched with the levels of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.table import Table, tally
from fairmaxent.errors import LevelError, shown
from fairmaxent.raking.margins import KnownMargin, Level

_SHOWN = 5  # levels that a message lists


@dataclass(frozen=True, eq=False)
class MarginTarget:
    """A margin in terms of the data: its levels are the combinations that rows have, and those that are only wanted."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    """One text per level."""
    wanted: Reals
    """The share of each level; they add up to 1."""
    cells: NDArray[np.intp]
    """The level of each cell of the survey."""
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """How messages name it."""
        return " × ".join(self.columns)

    def describe(self, level: int) -> str:
        """Name a level."""
        return f"{self.name} = {self.labels[level]}"


def match_margin(known: KnownMargin, domain: Domain, table: Table) -> MarginTarget:
    """Match the levels of a margin with those of the data."""
    attributes = [domain.attribute(name) for name in known.columns]
    chosen = table.codes[:, [domain.index(name) for name in known.columns]].astype(np.intp)
    present, cells = np.unique(chosen, axis=0, return_inverse=True)
    listed, absent = _listed(known, attributes)
    positions = {tuple(row): position for position, row in enumerate(present.tolist())}
    wanted = np.full(len(present), np.nan)
    more: list[tuple[str, float]] = [(_texts(level), value) for level, value in absent if value > 0]
    for codes, value in listed.items():
        if codes in positions:
            wanted[positions[codes]] = value
        elif value > 0:
            more.append((_labels(codes, attributes), value))
    mass = tally(cells.reshape(-1), table.counts, len(present))
    wanted, notes = _with_missing(known, attributes, present, mass, wanted, sum(value for _, value in more))
    labels = [*(_labels(row, attributes) for row in present.tolist()), *(label for label, _ in more)]
    return MarginTarget(known.columns, tuple(labels), wanted_shares(wanted, more), cells.reshape(-1), notes)


def wanted_shares(wanted: Reals, more: Sequence[tuple[str, float]]) -> Reals:
    """Bring what is wanted, with the levels that no row has, to a sum of 1."""
    every = np.append(wanted, [value for _, value in more])
    return np.asarray(every / every.sum())


def _listed(
    known: KnownMargin, attributes: Sequence[Attribute]
) -> tuple[dict[tuple[int, ...], float], list[tuple[Level, float]]]:
    """The value of each level that the columns have; and those with a level that they do not have."""
    listed: dict[tuple[int, ...], float] = {}
    absent: list[tuple[Level, float]] = []
    for level, value in known.values.items():
        codes = tuple(level_of(attribute, part) for attribute, part in zip(attributes, level, strict=True))
        if None in codes:
            absent.append((level, value))
            continue
        code = tuple(int(part) for part in codes if part is not None)
        if code in listed:
            raise LevelError(
                f"the margin of {known.name} names {_labels(code, attributes)} twice, spelt differently; give it once"
            )
        listed[code] = value
    _refuse_misspelt(known, attributes, [level for level, _ in absent])
    return listed, absent


def level_of(attribute: Attribute, value: Any) -> int | None:
    """Return the level of a value, or of its text: a table of margins may hold all levels as text, or as numbers."""
    for candidate in (value, None if frames.is_missing(value) else value_text(value), _truth(attribute, value)):
        if candidate is None and not frames.is_missing(value):
            continue
        try:
            return attribute.level(candidate)
        except LevelError:
            continue
    return None


def _truth(attribute: Attribute, value: Any) -> bool | None:
    """Read ``true`` or ``false`` for a column of truth values."""
    if attribute.values.dtype.is_numeric() or not isinstance(value, str):
        return None
    return {"true": True, "false": False}.get(value.strip().lower())


def _refuse_misspelt(known: KnownMargin, attributes: Sequence[Attribute], levels: Sequence[Level]) -> None:
    """Name levels that differ from one of the data only by case or blanks."""
    pairs = []
    for position, attribute in enumerate(attributes):
        plain = {_plain(label): label for label in attribute.labels}
        for level in levels:
            part = level[position]
            if level_of(attribute, part) is None and _plain(value_text(part)) in plain:
                pairs.append((part, plain[_plain(value_text(part))]))
    distinct = list(dict.fromkeys(pairs))
    if distinct:
        listed = ", ".join(f"{shown(one)} is {shown(other)} in the data" for one, other in distinct[:_SHOWN])
        raise LevelError(
            f"levels of the margin {known.name} differ from those of the data only in upper and lower case or in "
            f"blanks: {listed}; spell them the same way"
        )


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _with_missing(
    known: KnownMargin,
    attributes: Sequence[Attribute],
    present: Codes,
    mass: Reals,
    wanted: Reals,
    elsewhere: float,
) -> tuple[Reals, tuple[str, ...]]:
    """Let levels that are missing, and that the margin does not list, keep their share; refuse others."""
    unlisted = np.isnan(wanted) & (mass > 0)
    missing = _is_missing(present, attributes)
    unknown = np.flatnonzero(unlisted & ~missing)
    if len(unknown):
        listed = ", ".join(_labels(present[position].tolist(), attributes) for position in unknown[:_SHOWN])
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise LevelError(
            f"the margin of {known.name} does not list {listed}{more}, which rows of the data have; add what is known "
            "of them (0 gives these rows no weight), or drop these rows"
        )
    kept = unlisted & missing
    result = np.nan_to_num(wanted)
    if not kept.any():
        return result, ()
    share = float(mass[kept].sum() / mass.sum())
    if not mass[~kept].any():
        raise LevelError(f"no row has a value in {known.name}; leave this margin out, or fill the values in")
    total = float(result.sum()) + elsewhere
    result[kept] = mass[kept] / mass.sum() * total / (1 - share)
    note = (
        f"{share:.2%} of the weight has no value in {known.name}; these rows keep that share, and the margin is about "
        "the others"
    )
    return result, (note,)


def _is_missing(present: Codes, attributes: Sequence[Attribute]) -> Mask:
    absent = [-1 if attribute.missing is None else attribute.missing for attribute in attributes]
    return np.asarray((present == np.array(absent)).any(axis=1))


def _labels(codes: Sequence[int], attributes: Sequence[Attribute]) -> str:
    return ", ".join(attribute.labels[code] for attribute, code in zip(attributes, codes, strict=True))


def _texts(level: Level) -> str:
    return ", ".join("missing" if frames.is_missing(part) else value_text(part) for part in level)
