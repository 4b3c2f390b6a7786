"""The wanted shares of the joint groups, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from fairmaxent.baselines.data import CodedData
from fairmaxent.data.arrays import Reals
from fairmaxent.errors import InfeasibleError, TargetError


def read_shares(data: CodedData, shares: Mapping[Any, float] | None) -> Reals:
    """Return the wanted share of each joint group; None means equal shares for the groups that have rows."""
    if shares is None:
        return equal_shares(data)
    if not isinstance(shares, Mapping):
        raise TargetError(f"shares is {shares!r}; give the share of each group, e.g. {{'Female': 0.5, 'Male': 0.5}}")
    wanted = np.zeros(data.blocks.shape(0)[1:])
    for group, share in shares.items():
        if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= share <= 1:
            raise TargetError(f"shares[{group!r}] is {share!r}; a share must be between 0 and 1")
        wanted[_group_levels(data, group)] += float(share)
    if abs(wanted.sum() - 1) > 1e-6:
        raise TargetError(
            f"shares sum to {wanted.sum():.6g}, not to 1; give a share to every group, so that they sum to 1"
        )
    _refuse_empty_groups(data, wanted.ravel())
    return np.asarray(wanted.ravel() / wanted.sum())


def equal_shares(data: CodedData) -> Reals:
    """Return 1/k for each of the k groups that have rows."""
    seen = data.group_shares > 0
    return np.asarray(seen / seen.sum())


def _group_levels(data: CodedData, group: object) -> tuple[int, ...]:
    """Return the levels of the protected columns that a key of ``shares`` stands for."""
    columns = data.roles.attributes[1:]
    values = group if len(columns) > 1 else (group,)
    if not isinstance(values, tuple) or len(values) != len(columns):
        names = ", ".join(column.name for column in columns)
        raise TargetError(
            f"shares has the group {group!r}; a group needs one value of each protected column: ({names})"
        )
    return tuple(column.exact_level(value) for column, value in zip(columns, values, strict=True))


def _refuse_empty_groups(data: CodedData, wanted: Reals) -> None:
    empty = np.flatnonzero((wanted > 0) & (data.group_shares <= 0))
    if len(empty):
        levels = np.unravel_index(int(empty[0]), data.blocks.shape(0)[1:])
        columns = zip(data.roles.attributes[1:], levels, strict=True)
        named = ", ".join(f"{column.name} = {column.labels[int(level)]}" for column, level in columns)
        raise InfeasibleError(f"shares gives a share to {named}, which has no rows to weigh; remove it from shares")
