"""Outcomes: what a subject has to say, in a form that is kept, merged and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

Cell = str | int | float | None


@dataclass(frozen=True)
class Bar:
    """Something that was promised, and what was measured."""

    name: str
    measured: float | None  # None: the job did not end
    limit: float
    unit: str = ""
    at_least: bool = False  # otherwise at most
    why: str = ""  # nothing was measured

    @property
    def met(self) -> bool:
        """Whether the promise holds."""
        if self.measured is None:
            return False
        return (
            self.measured >= self.limit
            if self.at_least
            else self.measured <= self.limit
        )


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers; units stand in the names of the columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Curve:
    """CPU seconds against a size; ``panel`` is the size's name and says which curves
    are drawn together.
    """

    panel: str
    name: str
    points: tuple[tuple[float, float], ...]
    begin: float  # sizes that the exponent is fitted to
    end: float

    @property
    def exponent(self) -> float | None:
        """b in seconds ∝ size^b, by least squares on logarithms; None with fewer than
        two points.
        """
        used = [(x, y) for x, y in self.points if self.begin <= x <= self.end]
        if len(used) < 2:
            return None
        sizes, seconds = np.log(np.array(used)).T
        return float(np.polyfit(sizes, seconds, 1)[0])


@dataclass(frozen=True)
class Outcome:
    """All that one subject measured."""

    title: str
    words: str  # what was measured and how
    tables: tuple[Table, ...]
    bars: tuple[Bar, ...] = ()
    curves: tuple[Curve, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return what JSON can say; bars tell whether they are met, curves their
        exponent.
        """
        result = asdict(self)
        for record, bar in zip(result["bars"], self.bars, strict=True):
            record["met"] = bar.met
        for record, curve in zip(result["curves"], self.curves, strict=True):
            record["exponent"] = curve.exponent
        return result

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Outcome:
        """Undo :meth:`record`."""
        return cls(
            title=record["title"],
            words=record["words"],
            tables=tuple(
                Table(
                    table["title"],
                    tuple(table["columns"]),
                    tuple(tuple(row) for row in table["rows"]),
                )
                for table in record["tables"]
            ),
            bars=tuple(Bar(**_own(Bar, bar)) for bar in record["bars"]),
            curves=tuple(
                Curve(
                    **_own(Curve, curve)
                    | {"points": tuple((x, y) for x, y in curve["points"])}
                )
                for curve in record["curves"]
            ),
        )


def _own(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is derived."""
    return {field.name: record[field.name] for field in fields(kind)}


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Divide what was measured; None where something was not."""
    return None if numerator is None or not denominator else numerator / denominator
