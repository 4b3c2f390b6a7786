"""Gaps: how many values are missing in each group, and where most of them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.domain import Domain


@dataclass(frozen=True)
class Gaps:
    """The missing values of one group."""

    share: float  # of its cells, in all other columns
    most_in: str | None  # the column with most of them
    most: float  # the share of the group's rows that have no value there


def gaps_by_group(frame: Any, domain: Domain, columns: Sequence[str]) -> dict[str, Gaps]:
    """Count the missing values of each group of a column, or of the intersections of several."""
    attributes = tuple(domain.attribute(name) for name in columns)
    codes = Domain(attributes, ()).encode(frame.select(columns))
    groups, members = np.unique(codes, axis=0, return_inverse=True)
    sizes = np.bincount(members.ravel())
    others = [name for name in frame.columns if name not in columns]
    missing = np.array(
        [np.bincount(members.ravel(), frame[name].is_null().to_numpy(), minlength=len(sizes)) for name in others]
    ).reshape(len(others), len(sizes))
    labels = [
        " × ".join(attribute.labels[code] for attribute, code in zip(attributes, group, strict=True))
        for group in groups.tolist()
    ]
    return {label: _gaps(missing[:, index], int(sizes[index]), others) for index, label in enumerate(labels)}


def _gaps(missing: Any, size: int, others: Sequence[str]) -> Gaps:
    if not missing.sum():
        return Gaps(0.0, None, 0.0)
    worst = int(missing.argmax())
    return Gaps(float(missing.sum() / (size * len(others))), others[worst], float(missing[worst] / size))
