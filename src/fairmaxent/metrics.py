"""Rates of a frame, of predictions, or of a fitted distribution, with intervals and the groups behind them.

Definitions 2.1 and 2.2 are in `rates`; this module finds the groups in the user's columns and says how sure a rate is.

A rate is a minimum over pairs of groups, so the pair that looks worst is partly the unluckiest one. The interval allows
for that: log P(a) − log P(b) gets a delta-method interval for *every* pair of groups at once (Bonferroni), and the
rate's ends are the smallest lower and the smallest upper end. With two groups it is the usual interval of a risk ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent import frames, rates
from fairmaxent.domain import Domain
from fairmaxent.errors import ColumnError, InputError, LevelError, check_choice, did_you_mean
from fairmaxent.levels import value_text
from fairmaxent.rates import Array
from fairmaxent.reading import read_weights
from fairmaxent.request import read_columns
from fairmaxent.roles import GroupsOption
from fairmaxent.table import check_weights, row_keys, tally

MISSING = "missing"

Interval = tuple[float, float]
Codes = NDArray[np.intp]
_Levels = tuple[Codes, list[object]]  # level of each row, and the levels
_Groups = tuple[Codes, list[tuple[object, ...]]]  # group of each row, and the groups' labels


@dataclass(frozen=True)
class GroupRate:
    """One group's share P(g) (`outcome` is None) or rate P(y | g), and the rows it is taken from."""

    columns: tuple[str, ...]
    group: tuple[object, ...]
    outcome: object
    rate: float
    count: int | None
    interval: Interval | None


@dataclass(frozen=True)
class Pair:
    """Where a rate comes from: the lowest and the highest group, for this outcome."""

    columns: tuple[str, ...]
    outcome: object
    lowest: tuple[object, ...]
    highest: tuple[object, ...]


@dataclass(frozen=True)
class Rate:
    """The worst ratio between two groups, its confidence interval (None: exact), and every group's own rate."""

    value: float
    interval: Interval | None
    worst: Pair
    groups: tuple[GroupRate, ...]

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, how: str) -> str:
        return format(self.value, how) if how else str(self)

    def __lt__(self, other: float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: float) -> bool:
        return self.value > float(other)

    def __le__(self, other: float) -> bool:
        return self.value <= float(other)

    def __ge__(self, other: float) -> bool:
        return self.value >= float(other)

    def __str__(self) -> str:
        between = "" if self.interval is None else f" (between {self.interval[0]:.3f} and {self.interval[1]:.3f})"
        about = "" if self.worst.outcome is None else f" for outcome {self.worst.outcome}"
        lowest, highest = (" × ".join(map(str, group)) for group in (self.worst.lowest, self.worst.highest))
        pair = "all groups alike" if lowest == highest else f"{lowest} against {highest}"
        return f"{self.value:.3f}{between}: {' × '.join(self.worst.columns)}, {pair}{about}"


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with weights: a sample, or the cells of an exact marginal with their probabilities."""

    frame: nw.DataFrame[Any]
    weights: Array
    exact: bool


@dataclass(frozen=True, eq=False)
class _Grouped:
    """A table outcome × groups for one grouping, and how many rows it stands on."""

    columns: tuple[str, ...]
    groups: list[tuple[object, ...]]
    outcomes: list[object]
    favourable: list[int]
    table: Array
    counts: Codes | None  # rows of each group; None: the table is exact
    sizes: Array  # effective number of rows behind each group's rate


def representation_rate(
    data: Any,
    protected: str | Sequence[str],
    *,
    groups: GroupsOption = "each",
    weight: Any = None,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Smallest over largest share of a group, min P(g) / max P(g) (Definition 2.1).

    `data` is a frame, or a fit or its distribution (then the rate is exact). With several protected columns the worst
    column counts, or with ``groups="joint"`` their intersections. A missing value is a group of its own; a group
    without a row is not known here and takes no part. `weight` is a column, or one number per row, such as
    ``fit.weights()``. With a `domain`, such as ``fit.domain``, its levels are compared (bins, say) instead of values.
    """
    data = _source(data)
    parts = []
    for columns in _groupings(protected, groups):
        rows = _open(data, columns, weight)
        group, labels = _groups(rows.frame, columns, None if rows.exact else domain)
        mass, counts, _ = _sums(group, rows.weights, len(labels))
        sizes = np.full(len(labels), mass.sum() ** 2 / (rows.weights**2).sum())
        parts.append(_Grouped(columns, labels, [None], [0], mass[np.newaxis], None if rows.exact else counts, sizes))
    return _rate(parts, confidence)


def statistical_rate(
    data: Any,
    outcome: Any,
    protected: str | Sequence[str],
    *,
    favourable: object = None,
    as_probability: bool = False,
    groups: GroupsOption = "each",
    weight: Any = None,
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio of P(y | g) between two groups over the favourable outcomes (Definition 2.2).

    `outcome` is a column, or an array with one prediction per row; with ``as_probability`` it holds the probability of
    the favourable outcome, and groups are compared by its mean. `favourable` is a level, a list of levels, or None for
    every level, each compared on its own. The other options are those of `representation_rate`.
    """
    data = _source(data)
    exact = _is_distribution(data)
    if exact and (as_probability or not isinstance(outcome, str)):
        raise InputError("a fitted distribution has no rows to predict; name its outcome column, or pass a frame")
    parts = []
    for columns in _groupings(protected, groups):
        if isinstance(outcome, str) and outcome in columns:
            raise ColumnError(f"column {outcome!r} is both the outcome and protected; take it out of one of the two")
        rows = _open(data, (outcome, *columns) if exact else columns, weight)
        values = _outcome(rows.frame, outcome)
        levels = None if exact else domain
        groups_of_rows = _groups(rows.frame, columns, levels)
        if as_probability:
            parts.append(_by_mean(rows, values, groups_of_rows, columns, favourable))
        else:
            parts.append(_by_count(rows, _levels(values, levels), groups_of_rows, columns, favourable))
    return _rate(parts, confidence)


# ---------------------------------------------------------------- reading


def _groupings(protected: str | Sequence[str], groups: GroupsOption) -> list[tuple[str, ...]]:
    check_choice("groups", groups, GroupsOption)
    names = tuple(read_columns("protected", protected))
    if not names or len(set(names)) != len(names):
        raise ColumnError(f"name each protected column once, and at least one; got {list(names)}")
    return [names] if groups == "joint" else [(name,) for name in names]


def _source(data: Any) -> Any:
    """Return the distribution of a fit, anything else as it is."""
    inner = getattr(data, "distribution", None)
    return inner if _is_distribution(inner) else data


def _is_distribution(data: Any) -> bool:
    """Whether it has marginals as a method; a frame may have a column of that name."""
    return callable(getattr(type(data), "marginal", None))


def _open(data: Any, columns: Sequence[str], weight: Any) -> _Rows:
    if _is_distribution(data):
        if weight is not None:
            raise InputError("a fitted distribution has no rows to weigh; leave weight out")
        frame = frames.open_frame(data.marginal(columns))
        return _Rows(frame, frames.to_numbers(frames.column(frame, "probability")), exact=True)
    frame = frames.open_frame(data)
    weights = read_weights(frame, weight) if isinstance(weight, str | None) else check_weights(weight, len(frame))
    return _Rows(frame, np.ones(len(frame)) if weights is None else weights, exact=False)


def _outcome(frame: nw.DataFrame[Any], outcome: Any) -> frames.Column:
    """Return the outcome as a column: one of the frame's, or predictions for its rows."""
    if isinstance(outcome, str):
        return frames.column(frame, outcome)
    column = nw.from_native(outcome, series_only=True, pass_through=True)
    if not isinstance(column, nw.Series):
        values = np.asarray(outcome)
        if values.ndim != 1:
            raise InputError(f"predictions have shape {values.shape}; pass one per row, e.g. column 1 of predict_proba")
        column = nw.new_series("outcome", values.tolist(), backend=frame.implementation)
    if len(column) != len(frame):
        raise InputError(f"{len(column)} predictions for {len(frame)} rows; pass one per row, in the same order")
    return column


def _levels(series: frames.Column, domain: Domain | None) -> _Levels:
    """Codes and labels of a column; missing is a level of its own, the last one."""
    codes, values = frames.factorize(series)
    labels: list[object] = values.to_list()
    if domain is not None and series.name in domain.names:
        attribute = domain.attribute(series.name)
        codes = np.append(attribute.levels_of(values), -1)[codes]
        raw = attribute.values.to_list() if attribute.is_value_coded else attribute.labels
        labels = list(raw[: attribute.size - (attribute.missing is not None)])
    if (codes < 0).any():
        codes, labels = np.where(codes < 0, len(labels), codes), [*labels, MISSING]
    return codes, labels


def _groups(frame: nw.DataFrame[Any], columns: Sequence[str], domain: Domain | None) -> _Groups:
    """Group of each row and the groups' labels; of intersections only those that occur."""
    levels = [_levels(frames.column(frame, name), domain) for name in columns]
    codes = np.column_stack([part for part, _ in levels])
    keys, _ = row_keys(codes, [len(labels) for _, labels in levels])
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    named = [[labels[code] for code in part[first]] for part, labels in levels]
    return group, list(zip(*named, strict=True))


def _sums(group: Codes, weights: Array, count: int) -> tuple[Array, Codes, Array]:
    """Mass and rows of each group, and its effective number of rows (Σw)² / Σw²."""
    mass, squares = tally(group, weights, count), tally(group, weights**2, count)
    sizes = np.divide(mass**2, squares, out=np.full(count, np.nan), where=squares > 0)
    return mass, np.bincount(group, minlength=count), np.asarray(sizes)


def _by_count(rows: _Rows, levels: _Levels, groups: _Groups, columns: tuple[str, ...], favourable: object) -> _Grouped:
    """Count outcome levels in each group."""
    group, labels = groups
    codes, outcomes = levels
    _, counts, sizes = _sums(group, rows.weights, len(labels))
    cells = tally(codes * len(labels) + group, rows.weights, len(outcomes) * len(labels))
    table = cells.reshape(len(outcomes), len(labels))
    chosen = _favourable(outcomes, favourable)
    if favourable is not None and not table[chosen].sum(axis=1).all():
        raise LevelError(f"no row has the outcome {favourable!r}; {did_you_mean(favourable, outcomes)}")
    return _Grouped(columns, labels, outcomes, chosen, table, None if rows.exact else counts, sizes)


def _by_mean(
    rows: _Rows, values: frames.Column, groups: _Groups, columns: tuple[str, ...], favourable: object
) -> _Grouped:
    """Sum probabilities of the favourable outcome in each group."""
    group, labels = groups
    chance = frames.to_numbers(values)
    if not ((chance >= 0) & (chance <= 1)).all():
        row = int(np.flatnonzero(~((chance >= 0) & (chance <= 1)))[0])
        raise InputError(f"row {row} has probability {chance[row]}; with as_probability=True they lie between 0 and 1")
    mass, counts, sizes = _sums(group, rows.weights, len(labels))
    yes, squares = (tally(group, rows.weights * power, len(labels)) for power in (chance, chance**2))
    mean = yes / np.maximum(mass, np.finfo(float).tiny)
    spread = squares / np.maximum(mass, np.finfo(float).tiny) - mean**2
    # Probabilities vary less than labels: as many labels as would give the mean the same error.
    sizes = sizes * np.clip(mean * (1 - mean), 1e-12, None) / np.clip(spread, 1e-12, None)
    return _Grouped(columns, labels, [favourable, None], [0], np.stack([yes, mass - yes]), counts, sizes)


def _favourable(outcomes: list[object], favourable: object) -> list[int]:
    """Places of the favourable levels; None means every level."""
    if favourable is None:
        return list(range(len(outcomes)))
    wanted = list(favourable) if isinstance(favourable, list | tuple | set | frozenset) else [favourable]
    wanted = [MISSING if frames.is_missing(value) else value for value in wanted]
    if not wanted:
        raise LevelError("favourable is empty; name an outcome level, or pass None for every level")
    return sorted({_place(outcomes, value) for value in wanted})


def _place(outcomes: list[object], value: object) -> int:
    """Find a level by value, or by its text."""
    texts = [value_text(outcome) for outcome in outcomes]
    if value in outcomes:
        return outcomes.index(value)
    if value_text(value) in texts:
        return texts.index(value_text(value))
    raise LevelError(f"no row has the outcome {value!r}; {did_you_mean(value, outcomes)}")


# ---------------------------------------------------------------- rates and intervals


def _rate(parts: list[_Grouped], confidence: float) -> Rate:
    """Take the worst pair over all groupings and favourable outcomes."""
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}; it lies between 0 and 1, e.g. 0.95")
    pairs = [_pair(part) for part in parts]
    worst = min(range(len(parts)), key=lambda number: pairs[number].rate)
    part, pair = parts[worst], pairs[worst]
    lowest, highest = part.groups[pair.lowest[0]], part.groups[pair.highest[0]]
    outcome = None if pair.outcome is None else part.outcomes[pair.outcome]
    return Rate(
        pair.rate,
        _interval(parts, pair.rate, confidence) if part.counts is not None else None,
        Pair(part.columns, outcome, lowest, highest),
        tuple(group for part in parts for group in _group_rates(part, confidence)),
    )


def _is_share(part: _Grouped) -> bool:
    return len(part.outcomes) == 1 and part.outcomes[0] is None


def _pair(part: _Grouped) -> rates.WorstPair:
    if _is_share(part):
        return rates.representation_pair(part.table, (1,))
    return rates.statistical_pair(part.table, (1,), part.favourable)


def _values(part: _Grouped) -> Array:
    """P(y | g) of the favourable outcomes, or P(g); NaN in groups without mass."""
    if _is_share(part):
        shares = rates.group_shares(part.table, (1,))
        return np.where(shares > 0, shares, np.nan)[np.newaxis]
    return rates.outcome_rates(part.table, (1,))[part.favourable]


def _group_rates(part: _Grouped, confidence: float) -> Iterator[GroupRate]:
    values = _values(part)
    low, high = _wilson(values, part.sizes, _normal_quantile((1 + confidence) / 2))
    for row, place in enumerate(part.favourable):
        for column in np.flatnonzero(~np.isnan(values[row])):
            count = None if part.counts is None else int(part.counts[column])
            ends = None if part.counts is None else (float(low[row, column]), float(high[row, column]))
            label = part.outcomes[place]
            yield GroupRate(part.columns, part.groups[column], label, float(values[row, column]), count, ends)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(probability)


def _wilson(share: Array, size: Array, z: float) -> tuple[Array, Array]:
    """Wilson's interval of a share seen in `size` rows."""
    centre = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def _interval(parts: list[_Grouped], value: float, confidence: float) -> Interval:
    """Interval of the rate: simultaneous for all pairs of groups, see the head of this module."""
    compared = [(row[~np.isnan(row)], part.sizes[~np.isnan(row)], part) for part in parts for row in _values(part)]
    comparisons = sum(len(row) * (len(row) - 1) // 2 for row, _, _ in compared)
    z = -_normal_quantile((1 - confidence) / 2 / max(comparisons, 1))
    ends = [_pair_ends(row, size, z, share=_is_share(part)) for row, size, part in compared if len(row) > 1]
    low, high = (min((end[side] for end in ends), default=1.0) for side in (0, 1))
    return min(low, value), max(min(high, 1.0), value)


def _pair_ends(shares: Array, sizes: Array, z: float, *, share: bool) -> Interval:
    """Smallest lower and smallest upper end of a ratio over all pairs; half a row keeps empty cells finite."""
    seen = shares * sizes + 0.5
    logs = np.log(seen / (sizes + 1))
    # Shares compete for the same rows (multinomial); rates of groups are independent (binomial).
    variance = 1 / seen - (0.0 if share else 1 / (sizes + 1))
    difference = logs[:, np.newaxis] - logs
    margin = z * np.sqrt(np.maximum(variance[:, np.newaxis] + variance, 0.0))
    itself = np.eye(len(shares), dtype=bool)
    low, high = (float(np.exp(np.where(itself, np.inf, difference + sign * margin).min())) for sign in (-1, 1))
    return low, high
