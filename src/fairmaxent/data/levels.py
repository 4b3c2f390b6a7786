"""How the values of a column become levels, as the user's options say."""

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from numbers import Number
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np

from fairmaxent.data.frames import (
    TIMES,
    Column,
    number_of,
    numbers_of,
    take,
    to_numbers,
)
from fairmaxent.data.table import (
    Indices,
    Mask,
    NameList,
    Names,
    Reals,
)
from fairmaxent.document.text import on_one_line
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    Option,
    did_you_mean,
    did_you_mean_level,
    shown,
    unfit,
)

Kind = Literal["categorical", "ordered", "boolean", "numeric", "date"]
FeatureKind = Literal["indicator", "moment"]
Bins = int | Sequence[Any]
Notes = tuple[str, ...]  # complete sentences for the user

# Sums of weights that are not whole numbers depend on their scale in the last digits;
# the edges of bins must not.
_SLACK = 1e-9
_LEAST_WEIGHT = 1e-300

DEFAULT_BINS = 16
MAX_LEVELS = 64
_POSSIBLE_KINDS: dict[Kind, tuple[Kind, ...]] = {
    "categorical": ("categorical",),
    "ordered": ("categorical", "ordered"),
    "boolean": ("boolean", "categorical", "ordered", "numeric"),
    "numeric": ("numeric", "categorical", "ordered"),
    "date": ("date", "categorical", "ordered"),
}
# What pandas holds as objects, and narwhals does not know: others have types for it.
_OBJECTS: dict[Kind, tuple[type, ...]] = {
    "boolean": (bool,),
    "numeric": (Decimal,),
    "date": TIMES,
}


@dataclass(frozen=True)
class ColumnOptions:
    """The user's options for the columns, checked on creation."""

    names: NameList
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    bins: int | Mapping[str, Bins] = DEFAULT_BINS
    order: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    features: Mapping[str, FeatureKind] | FeatureKind = "indicator"
    max_levels: int = MAX_LEVELS

    def __post_init__(self) -> None:
        for name, option in (("kinds", self.kinds), ("order", self.order)):
            if not isinstance(option, Mapping):
                raise InputError(
                    f"{name} is {shown(option)}; give it by column, as {{column: …}}"
                )
        for name, number in (("bins", self.bins), ("max_levels", self.max_levels)):
            if isinstance(number, bool) or not isinstance(number, int | Mapping):
                also = ", or bins by column" if name == "bins" else ""
                raise unfit(name, number, f"give a whole number{also}")
        for by_column in (self.kinds, self.bins, self.order, self.features):
            if isinstance(by_column, Mapping):
                self._check_names(by_column)
        _check_choices(self.kinds, Kind)
        _check_choices(_by_column(self.features), FeatureKind)
        bins = _by_column(self.bins).values()
        too_few = any(isinstance(number, int) and number < 1 for number in bins)
        if too_few or self.max_levels < 2:
            raise InputError(
                Option("bins"),
                " must be at least 1 and ",
                Option("max_levels"),
                " at least 2",
            )

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.names:
                raise ColumnError(
                    f"an option names the column {name!r}, which is not in the table;"
                    f" {did_you_mean(name, self.names)}"
                )

    def kind_of(self, column: Column, values: Column) -> Kind:
        """Return the kind that is asked for, or that the dtype implies."""
        name = column.name
        natural = _natural_kind(column, values)
        possible = _POSSIBLE_KINDS[natural]
        if name in self.order:
            natural = "ordered"
            possible = ("categorical", "ordered")
        kind = self.kinds.get(name, natural)
        is_truth = False
        if kind == "boolean" and natural == "numeric":
            is_truth = bool(np.isin(to_numbers(values), (0, 1)).all())
        if kind not in possible and not is_truth:
            hint = ""
            if kind == "ordered":
                hint = f"; to order its values, name them in order={{{name!r}: [...]}}"
            raise InputError(
                f"column {name!r} ({column.dtype}) cannot be {kind}, only"
                f" {' or '.join(possible)}{hint}"
            )
        has_bins = isinstance(self.bins, Mapping) and name in self.bins
        if has_bins and kind not in ("numeric", "date"):
            raise InputError(
                f"column {name!r} is {kind} and has no bins; leave it out of ",
                Option("bins"),
            )
        return kind

    def bins_of(self, name: str) -> Bins:
        """Return how many bins a column has, or their edges."""
        if isinstance(self.bins, Mapping):
            return self.bins.get(name, DEFAULT_BINS)
        return self.bins

    def features_of(self, name: str, kind: Kind) -> FeatureKind:
        """Return the features of a column; one choice is for numbers and dates."""
        if not isinstance(self.features, Mapping):
            if kind in ("numeric", "date"):
                return self.features
            return "indicator"
        wanted = self.features.get(name, "indicator")
        if wanted == "moment" and kind not in ("numeric", "date", "boolean"):
            raise InputError(
                f"column {name!r} is {kind} and has no moment; use 'indicator'"
            )
        return wanted


def _by_column(option: Any) -> Mapping[str, Any]:
    """An option by column; one for all columns has no name."""
    return option if isinstance(option, Mapping) else {"": option}


def _check_choices(by_column: Mapping[str, object], kind: object) -> None:
    choices = get_args(kind)
    for choice in by_column.values():
        if choice not in choices:
            raise InputError(
                f"{choice!r} is not one of the choices; {did_you_mean(choice, choices)}"
            )


def _natural_kind(column: Column, values: Column) -> Kind:
    dtype = column.dtype
    if dtype.is_numeric():
        return "numeric"
    if dtype.is_temporal():
        return "date"
    if dtype == nw.Boolean:
        return "boolean"
    if len(values) and (dtype in (nw.Object, nw.Unknown)):
        for kind, types in _OBJECTS.items():
            if all(isinstance(value, types) for value in values.to_list()):
                return kind
    # A type of pandas that is unknown to narwhals.
    arrow = getattr(getattr(column.to_native(), "dtype", None), "pyarrow_dtype", None)
    if arrow is None:
        ordered = nw.is_ordered_categorical(column)
    else:
        ordered = getattr(arrow, "ordered", False)
    return "ordered" if ordered else "categorical"


@dataclass(frozen=True, eq=False)
class LevelsOfValues:
    """Which level each distinct value belongs to, and what the levels are called."""

    levels: Indices
    labels: list[str]
    edges: Reals | None = None
    note: str | None = None


def group_values(
    values: Column,
    counts: Reals,
    kind: Kind,
    options: ColumnOptions,
) -> LevelsOfValues:
    """Group the distinct values of a column, whose total weights are ``counts``."""
    name = values.name
    if name in options.order:
        return _in_declared_order(values, options.order[name])
    if kind in ("numeric", "date") and len(values):
        return _group_numbers(values, counts, options.bins_of(name))
    if kind == "categorical" and len(values) > options.max_levels:
        return _lump_rare(values, counts, options.max_levels)
    return LevelsOfValues(np.arange(len(values)), _texts(values))


def _texts(values: Column) -> list[str]:
    return [value_text(value) for value in values.to_list()]


def _in_declared_order(values: Column, order: Sequence[Any]) -> LevelsOfValues:
    name = values.name
    scalars = values.to_list()
    keys = [value_key(value) for value in scalars]
    level_of = {value_key(value): level for level, value in enumerate(order)}
    if len(level_of) < len(order):
        raise LevelError(
            f"order of column {name!r} names a value twice; name each once"
        )
    for value in order:
        if value_key(value) not in keys:
            raise LevelError(
                f"order names {shown(value)}, which is not in column {name!r};"
                f" {did_you_mean_level(value, scalars)}"
            )
    for key, value in zip(keys, scalars, strict=True):
        if key not in level_of:
            raise LevelError(
                f"column {name!r} holds {shown(value)}, which is not in its order; add"
                " it there"
            )
    levels = np.array([level_of[key] for key in keys], dtype=int)
    return LevelsOfValues(levels, [value_text(value) for value in order])


def _lump_rare(values: Column, counts: Reals, max_levels: int) -> LevelsOfValues:
    """Keep the most frequent values (ties: in canonical order), and lump the rest."""
    # without the last digits, for the same ties
    size = np.round(counts / max(counts.max(), np.finfo(float).tiny), 12)
    kept = np.sort(np.argsort(-size, kind="stable")[: max_levels - 1])
    levels = np.full(len(values), max_levels - 1)
    levels[kept] = np.arange(len(kept))
    share = 0.0
    if counts.any():
        share = 1 - counts[kept].sum() / counts.sum()
    return LevelsOfValues(
        levels=levels,
        labels=[*_texts(take(values, kept)), "other"],
        note=(
            f"column {values.name!r} has {len(values)} values: the {len(kept)} most"
            f" frequent stay, and the other {len(values) - len(kept)} ({share:.1%} of"
            " the rows) become one level, 'other'"
        ),
    )


def _group_numbers(values: Column, counts: Reals, bins: Bins) -> LevelsOfValues:
    """Give each number a level if there are few, otherwise put them into bins."""
    numbers, first, rank = np.unique(
        to_numbers(values), return_index=True, return_inverse=True
    )
    if np.isinf(numbers).any():
        raise InputError(
            f"column {values.name!r} holds an infinite number; replace it or make it"
            " missing"
        )
    if not isinstance(bins, int):
        return _group_by_edges(numbers[rank], counts, list(bins), values.name)
    distinct = values
    if len(first) < len(values):
        distinct = take(values, first)
    if len(numbers) <= bins:
        return LevelsOfValues(rank, _texts(distinct))
    weights = np.bincount(rank, counts).astype(float)
    begins, alone = _equal_weight_bins(weights, bins)
    edges = numbers[begins[1:]]
    for bin_number, begin in enumerate(begins[1:]):
        if alone[begin - 1] and not alone[begin]:
            edges[bin_number] = np.nextafter(numbers[begin - 1], np.inf)
    return LevelsOfValues(
        levels=np.searchsorted(edges, numbers, side="right")[rank],
        labels=_bin_labels(distinct, begins, alone),
        edges=edges,
    )


def _equal_weight_bins(weights: Reals, bins: int) -> tuple[list[int], Mask]:
    """Cut ascending values into bins.

    Return where each bin begins, and which values are a bin of their own. The values
    between two that stand alone share the remaining bins in proportion to their weight.
    """
    if not weights.any():
        weights = np.ones(len(weights))
    slack = 0.0 if (weights == np.round(weights)).all() else _SLACK
    alone = weights >= weights.sum() / bins * (1 - slack)
    begins = alone | np.append(True, alone[:-1])
    rest = weights[~alone].sum()
    # Values without weight need no cuts, and a quotient by next to nothing would
    # overflow.
    density = 0.0
    if rest > _LEAST_WEIGHT:
        density = max(bins - alone.sum(), 1) / rest
    for start, stop in pairwise([*np.flatnonzero(begins).tolist(), len(weights)]):
        run = weights[start:stop]
        pieces = round(run.sum() * density + slack)
        if not alone[start] and pieces > 1:
            middles = (np.cumsum(run) - run / 2) / run.sum()
            begins[start + 1 : stop] = np.diff(np.floor(middles * pieces + slack)) > 0
    return np.flatnonzero(begins).tolist(), alone


def _bin_labels(ascending: Column, begins: list[int], alone: Mask) -> list[str]:
    """Write bins as "[17, 25)".

    A value that stands alone is written as itself, and what follows it as "(0, 114)".
    """
    last = len(ascending) - 1
    after_alone = {start for start in begins if start and alone[start - 1]}
    places = sorted({*begins, *(start - 1 for start in after_alone), last})
    values = take(ascending, np.array(places)).to_list()
    value_at = dict(zip(places, values, strict=True))
    text_at = dict(zip(places, short_texts(values), strict=True))
    labels = []
    for start, stop in pairwise([*begins, last + 1]):
        if alone[start] or start == last:
            labels.append(value_text(value_at[start]))
            continue
        left = f"[{text_at[start]}"
        if start in after_alone:
            left = f"({text_at[start - 1]}"
        right = f"{text_at[stop]})" if stop <= last else f"{text_at[last]}]"
        labels.append(f"{left}, {right}")
    return labels


def _group_by_edges(
    numbers: Reals,
    counts: Reals,
    given: list[Any],
    name: str,
) -> LevelsOfValues:
    """Use the given edges.

    A bin without values cannot be decoded, so it is merged with its left neighbour.
    """
    edges = numbers_of(given)
    if len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise InputError(
            f"bins of column {name!r} must be at least two ascending edges, or a number"
            " of bins"
        )
    filled = np.unique(np.searchsorted(edges[1:-1], numbers, side="right"))
    kept = [0, *filled[1:].tolist(), len(edges) - 1]
    below = numbers < edges[0]
    above = numbers > edges[-1]
    outside = below | above
    texts = [value_text(given[edge]) for edge in kept]
    notes = []
    empty = len(edges) - 1 - len(filled)
    if empty:
        notes.append(
            f"column {name!r}: {empty} of its bins had no values and were merged with a"
            " neighbour"
        )
    if outside.any():
        mass = float(counts[outside].sum())
        rows = f"{mass / counts.sum():.1%} of the weight"
        if (counts == np.round(counts)).all():
            rows = f"{mass:,.0f} rows"
        notes.append(
            f"column {name!r}: {rows} outside the edges {texts[0]} … {texts[-1]} are"
            " counted in the outermost bins, as their labels show"
        )
    cuts = edges[kept[1:-1]]
    return LevelsOfValues(
        levels=np.searchsorted(cuts, numbers, side="right"),
        labels=edge_labels(texts, below=bool(below.any()), above=bool(above.any())),
        edges=cuts,
        note="; ".join(notes) or None,
    )


def edge_labels(texts: Sequence[str], *, below: bool, above: bool) -> list[str]:
    """Write bins as "[0, 18)".

    The label of an outermost bin shows if it holds values beyond its edge: "≥ 18".
    """
    labels = [f"[{left}, {right})" for left, right in pairwise(texts)]
    if len(labels) == 1 and below:
        return ["all values" if above else f"≤ {texts[1]}"]
    # The last bin holds its last edge, too.
    labels[-1] = f"≥ {texts[-2]}" if above else f"[{texts[-2]}, {texts[-1]}]"
    if below:
        labels[0] = f"< {texts[1]}"
    return labels


def value_key(value: object) -> tuple[str, Any]:
    """Return a key, equal for equal values.

    1, True and "1" differ; 1 and 1.0, or a date in two libraries, do not.
    """
    if isinstance(value, bool | np.bool_):
        return "truth", bool(value)
    if isinstance(value, Number):
        return "number", value
    number = number_of(value)
    if number is not None:
        return "time", number
    return "other", value


def value_text(value: object) -> str:
    """Return a value's text, the same for every library.

    >>> value_text(25.0), value_text(Decimal("0.50")), value_text(True)
    ('25', '0.5', 'True')
    >>> value_text(datetime.date(2020, 2, 1))
    '2020-02-01'
    """
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    # pandas writes its own durations differently
    if isinstance(value, datetime.timedelta):
        return str(datetime.timedelta(value.days, value.seconds, value.microseconds))
    # Polars gives all values of a column as many digits as the longest has
    if isinstance(value, Decimal):
        text = f"{value:f}"
        if "." in text:
            return text.rstrip("0").rstrip(".")
        return text
    return str(value)


def cell_text(value: object) -> str:
    """Write a value on one line, as it may be shown: 1,234, 0.5000, –; never −0."""
    if value is None:
        return "–"
    if isinstance(value, float):
        if math.isfinite(value):
            return f"{round(value, 4) + 0.0:.4f}"
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return on_one_line(value_text(value))


def short_texts(values: Sequence[Any]) -> list[str]:
    """Return the texts of different values, fractions with no more digits than needed.

    >>> short_texts([-1.5188882297503954, 0.14291364966681958, 0.1429200, 17.0])
    ['-1.5189', '0.14291', '0.14292', '17']
    """
    whole = [value_text(value) for value in values]
    if not all(isinstance(value, float | np.floating) for value in values):
        return whole
    for digits in range(4, 17):
        rounded = [_rounded_text(value, digits) for value in values]
        if len(set(rounded)) == len(rounded):
            return rounded
    return whole


def _rounded_text(value: float, digits: int) -> str:
    """The text of a number with few digits; a whole number keeps all."""
    if value == int(value):
        return value_text(value)
    return value_text(float(f"{value:.{digits}g}"))


def unique_labels(labels: Sequence[str]) -> Names:
    """Number repeated labels: missing, missing (2)."""
    unique: dict[str, None] = {}
    for label in labels:
        text = label
        number = 2
        while text in unique:
            text = f"{label} ({number})"
            number += 1
        unique[text] = None
    return tuple(unique)
