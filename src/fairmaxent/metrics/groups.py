"""The input of every metric: rows with weights, the groups they belong to, and the levels of their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.distinct_values import factorize
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.roles import GroupsOption, read_columns
from fairmaxent.data.table import row_keys
from fairmaxent.data.weights import check_weights, in_range, read_weights
from fairmaxent.errors import ColumnError, InputError, LevelError, Option, check_choice, did_you_mean_level
from fairmaxent.fairness.measure import MissingOption

# The label of missing values. A cell may hold the same text, so this is an object of its own, compared with `is`; it is
# joined when the module is loaded, because Python keeps a single object for equal texts in the code.
MISSING = "".join(("miss", "ing"))

Levels = tuple[Codes, list[object]]  # level of each row, and the levels
Groups = tuple[Codes, list[tuple[object, ...]]]  # group of each row, and the groups' labels


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Rows with weights: a sample, or the cells of an exact marginal with their probabilities."""

    frame: nw.DataFrame[Any]
    weights: Reals
    exact: bool  # the cells of a marginal: nothing is estimated from a sample


def groupings_of(protected: str | Sequence[str], groups: GroupsOption) -> list[tuple[str, ...]]:
    """Columns whose levels, or intersections of levels, are compared with each other."""
    check_choice("groups", groups, GroupsOption)
    names = tuple(read_columns("protected", protected))
    if not names or len(set(names)) != len(names):
        raise ColumnError(f"protected is {list(names)}; name at least one column, and each column once")
    return [names] if groups == "joint" else [(name,) for name in names]


def source_of(data: Any) -> Any:
    """Return the distribution of a fit; anything else is returned unchanged."""
    inner = getattr(data, "distribution", None)
    return inner if is_distribution(inner) else data


def is_distribution(data: Any) -> bool:
    """Whether the data's type has a method `marginal`; a frame may have a column of that name."""
    return callable(getattr(type(data), "marginal", None))


def refuse_protected(outcome: Any, columns: Sequence[str]) -> None:
    """Refuse an outcome that is one of the protected columns."""
    if isinstance(outcome, str) and outcome in columns:
        raise ColumnError(f"column {outcome!r} is both the outcome and protected; remove it from one of the two")


def open_rows(data: Any, columns: Sequence[str], weight: Any) -> MeasuredRows:
    """Open a frame with its weights, or the exact marginal of the columns."""
    if is_distribution(data):
        if weight is not None:
            raise InputError("a fitted distribution has no rows to weight; leave out ", Option("weight"))
        frame = _with_gaps(frames.open_frame(data.marginal(columns)), getattr(data, "domain", None))
        return MeasuredRows(frame, frames.to_numbers(frames.column(frame, "probability")), exact=True)
    frame = frames.open_frame(data)
    weights = read_weights(frame, weight) if isinstance(weight, str | None) else check_weights(weight, len(frame))
    return MeasuredRows(frame, np.ones(len(frame)) if weights is None else in_range(weights), exact=False)


def _with_gaps(marginal: nw.DataFrame[Any], domain: Domain | None) -> nw.DataFrame[Any]:
    """Leave the cells of missing values empty where a marginal shows labels, "missing" among them."""
    attributes = [at for at in domain.attributes if at.name in marginal.columns] if domain is not None else []
    gaps = {at.name: at.labels[at.missing] for at in attributes if at.missing is not None and not at.is_value_coded}
    return marginal.with_columns(
        nw.when(nw.col(name) != label).then(nw.col(name)).alias(name) for name, label in gaps.items()
    )


def open_sample(data: Any, weight: Any) -> MeasuredRows:
    """Open a frame with its weights; a distribution has no rows that could be predicted."""
    if is_distribution(source_of(data)):
        raise InputError(
            "a fitted distribution has no rows to predict; pass a frame, e.g. of people who were not used for the fit"
        )
    return open_rows(data, (), weight)


def outcome_column(frame: nw.DataFrame[Any], outcome: Any, *, what: str = "predictions") -> frames.Column:
    """Return the outcome as a column: one of the frame's, or an array with one value per row."""
    if isinstance(outcome, str):
        return frames.column(frame, outcome)
    column = nw.from_native(outcome, series_only=True, pass_through=True)
    if not isinstance(column, nw.Series):
        values = np.asarray(outcome)
        if values.ndim != 1:
            raise InputError(f"{what} have shape {values.shape}; pass one per row, e.g. column 1 of predict_proba")
        column = nw.new_series("outcome", values.tolist(), backend=frame.implementation)
    if len(column) != len(frame):
        raise InputError(f"{len(column)} {what} for {len(frame)} rows; pass one per row, in the same order")
    return column


def probabilities_of(column: frames.Column) -> Reals:
    """Read probabilities, one per row."""
    chance = frames.to_numbers(column)
    outside = ~((chance >= 0) & (chance <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"row {row} has probability {chance[row]}; every probability must lie between 0 and 1")
    return chance


def levels_of(series: frames.Column, domain: Domain | None) -> Levels:
    """Codes and labels of a column; missing values form the last level."""
    codes, values = factorize(series)
    labels: list[object] = values.to_list()
    if domain is not None and series.name in domain.names:
        attribute = domain.attribute(series.name)
        codes = np.append(attribute.levels_of(values), -1)[codes]
        raw = attribute.values.to_list() if attribute.is_value_coded else attribute.labels
        labels = list(raw[: attribute.size - (attribute.missing is not None)])
    if (codes < 0).any():
        codes, labels = np.where(codes < 0, len(labels), codes), [*labels, MISSING]
    return codes, labels


def groups_of(frame: nw.DataFrame[Any], columns: Sequence[str], domain: Domain | None) -> Groups:
    """Group of each row and the groups' labels; only intersections that occur are groups."""
    levels = [levels_of(frames.column(frame, name), domain) for name in columns]
    codes = np.column_stack([column for column, _ in levels])
    keys, _ = row_keys(codes, [len(labels) for _, labels in levels])
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    labels_by_column = [[labels[code] for code in column[first]] for column, labels in levels]
    return group, list(zip(*labels_by_column, strict=True))


def compared_weights(
    weights: Reals, groups: Groups, missing: MissingOption, outcomes: Levels | None = None, favourable: object = None
) -> Reals:
    """Weights without the rows that are not compared: those of a missing group, or with a missing outcome."""
    check_choice("missing", missing, MissingOption)
    if missing == "compare":
        return weights
    group, labels = groups
    known = np.array([all(level is not MISSING for level in label) for label in labels], dtype=bool)[group]
    if outcomes is not None and outcomes[1][-1] is MISSING and not _names_missing(favourable, outcomes[1]):
        known &= outcomes[0] != len(outcomes[1]) - 1
    return np.asarray(np.where(known, weights, 0.0))


def _names_missing(favourable: object, outcomes: list[object]) -> bool:
    """Whether missing, the last of the outcomes, is called favourable; whoever does so wants to compare it."""
    return favourable is not None and len(outcomes) - 1 in favourable_codes(outcomes, favourable)


def favourable_codes(outcomes: list[object], favourable: object) -> list[int]:
    """Codes of the favourable levels; None means every level."""
    if favourable is None:
        return list(range(len(outcomes)))
    wanted = list(favourable) if isinstance(favourable, list | tuple | set | frozenset) else [favourable]
    wanted = [MISSING if frames.is_missing(value) else value for value in wanted]
    if not wanted:
        raise LevelError(Option("favourable"), " is empty; name an outcome level, or pass None for every level")
    return sorted({_known_code(outcomes, value) for value in wanted})


def one_favourable(outcomes: list[object], favourable: object) -> int:
    """Code of the one outcome that the probabilities refer to."""
    if favourable is None or len(codes := favourable_codes(outcomes, favourable)) != 1:
        raise InputError(
            Option("favourable"), f" is {favourable!r}; name the one outcome that the probabilities refer to"
        )
    return codes[0]


def _known_code(outcomes: list[object], value: object) -> int:
    code = code_of(outcomes, value)
    if code is None:
        raise LevelError(f"no row has the outcome {value!r}; {did_you_mean_level(value, outcomes)}")
    return code


def code_of(levels: list[object], value: object) -> int | None:
    """Code of a level, looked up by value or else by its text; None if there is no such level."""
    if value is MISSING:  # which comes last, after a text that reads the same
        return len(levels) - 1 if levels and levels[-1] is MISSING else None
    equal = [code for code, level in enumerate(levels) if level == value]
    if equal:  # True and 1 are equal, but two levels if a column has both
        return next((code for code in equal if _is_truth(levels[code]) == _is_truth(value)), equal[0])
    texts = [value_text(level) for level in levels]
    return texts.index(value_text(value)) if value_text(value) in texts else None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | np.bool_)
