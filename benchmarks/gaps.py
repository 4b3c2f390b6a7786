"""Tables for engines: every type that Parquet holds, with gaps, and random columns."""

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 600
_GAPS = 0.1  # share of the cells without a value
_EPOCH = dt.datetime(2020, 1, 1)


def _hours(number: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(hours=number)


def _day(number: int) -> dt.date:
    return (_EPOCH + dt.timedelta(days=number)).date()


def _text(number: int) -> str:
    return f"t{number}"


# each type, how many numbers its values are made of, and how
TYPES: dict[str, tuple[pa.DataType, int, Callable[[int], Any]]] = {
    "bool": (pa.bool_(), 2, bool),
    "int8": (pa.int8(), 40, int),
    "int16": (pa.int16(), 40, int),
    "int32": (pa.int32(), 40, int),
    "int64": (pa.int64(), 40, int),
    "uint8": (pa.uint8(), 40, int),
    "uint16": (pa.uint16(), 40, int),
    "uint32": (pa.uint32(), 40, int),
    "uint64": (pa.uint64(), 40, int),
    "float32": (pa.float32(), 40, lambda number: number / 4),
    "float64": (pa.float64(), 500, lambda number: number / 7),
    "NaN": (pa.float64(), 40, lambda number: number / 7 if number else float("nan")),
    "decimal": (pa.decimal128(9, 2), 40, lambda number: Decimal(number) / 4),
    "long decimal": (pa.decimal128(38, 6), 40, lambda number: Decimal(number) / 4),
    "text": (pa.string(), 5, _text),
    "many texts": (pa.string(), 90, _text),
    "large text": (pa.large_string(), 5, _text),
    "category": (pa.dictionary(pa.int32(), pa.string()), 5, _text),
    "date": (pa.date32(), 40, _day),
    "few dates": (pa.date32(), 5, _day),
    "date64": (pa.date64(), 40, _day),
    "seconds": (pa.timestamp("s"), 40, _hours),
    "milliseconds": (pa.timestamp("ms"), 40, _hours),
    "microseconds": (pa.timestamp("us"), 40, _hours),
    "nanoseconds": (pa.timestamp("ns"), 40, _hours),
    "UTC": (pa.timestamp("us", "UTC"), 40, _hours),
    "Berlin": (pa.timestamp("us", "Europe/Berlin"), 40, _hours),
    "time of day": (pa.time64("us"), 24, dt.time),
    "short time of day": (pa.time32("s"), 24, dt.time),
    "duration": (pa.duration("us"), 40, lambda number: dt.timedelta(minutes=number)),
    "bytes": (pa.binary(), 5, lambda number: _text(number).encode()),
    "nothing": (pa.null(), 5, lambda _: None),
    "list": (pa.list_(pa.int64()), 5, lambda number: [number]),
    "struct": (pa.struct([("a", pa.int64())]), 5, lambda number: {"a": number}),
}


def typed_table(names: Iterable[str], rows: int = ROWS) -> pa.Table:
    """An outcome y, a group z, and a column with gaps of each of these types."""
    rng = np.random.default_rng(0)
    columns = {
        "y": pa.array(rng.choice(["no", "yes"], rows)),
        "z": pa.array(rng.choice(["f", "m"], rows)),
    }
    for name in names:
        kind, many, make = TYPES[name]
        cells = [
            None if gap else make(number)
            for number, gap in zip(
                rng.integers(many, size=rows).tolist(),
                rng.random(rows) < _GAPS,
                strict=True,
            )
        ]
        columns[name] = pa.array(cells, type=kind)
    return pa.table(columns)


def random_table(seed: int, rows: int = ROWS) -> pa.Table:
    """A few columns of random types that depend on the group, and weights."""
    rng = np.random.default_rng(seed)
    known = [name for name in TYPES if name not in ("list", "struct", "nothing")]
    chosen = rng.choice(known, size=rng.integers(2, 6), replace=False).tolist()
    table = typed_table(chosen, rows)
    order = rng.permutation(rows)
    shuffled = {name: table[name].take(order) for name in chosen}
    group = rng.random(rows) < 0.4
    outcome = rng.random(rows) < 0.2 + 0.3 * group
    return pa.table(
        {
            "y": np.where(outcome, "yes", "no"),
            "z": np.where(group, "f", "m"),
            **shuffled,
            "w": rng.integers(0, 4, rows) / 2,
        }
    )
