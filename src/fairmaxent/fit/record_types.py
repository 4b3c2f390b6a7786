"""Records from a file, trusted only after every field was compared with its annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np


def check_fields(record: Any) -> None:
    """Refuse a dataclass in which a field, at any depth, is not what its annotation says."""
    kind: Any = type(record)
    for name, hint in _hints(kind).items():
        if not fits(getattr(record, name), hint):
            raise ValueError(f"{name} of {type(record).__name__} is not what it should be")


def fits(value: object, hint: Any) -> bool:
    """Whether a value is what an annotation says; a whole number is a float too, and a truth value is no number.

    >>> fits((1, 2.5), tuple[float, ...]), fits({"sex": "x"}, dict[str, float | None]), fits(True, int)
    (True, False, False)
    """
    hint = getattr(hint, "__value__", hint)  # newer versions of numpy name a type instead of writing it out
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in options)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in options)
    if origin is not None:
        return _fits_container(value, origin, options)
    if hint in (Any, object):
        return True
    if hint in (float, int):
        return isinstance(value, int | float if hint is float else int) and not isinstance(value, bool)
    if hint is None or hint is NoneType:
        return value is None
    if is_dataclass(hint) and isinstance(hint, type):
        return isinstance(value, hint) and all(
            fits(getattr(value, name), inner) for name, inner in _hints(hint).items()
        )
    return isinstance(value, hint)


def _fits_container(value: object, origin: Any, options: tuple[Any, ...]) -> bool:
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if issubclass(origin, Mapping):
        key, item = options
        return isinstance(value, Mapping) and all(fits(k, key) and fits(v, item) for k, v in value.items())
    if origin is tuple and options[-1] is not ...:
        return (
            isinstance(value, tuple)
            and len(value) == len(options)
            and all(fits(item, hint) for item, hint in zip(value, options, strict=True))
        )
    if issubclass(origin, Sequence):
        return isinstance(value, tuple | list) and all(fits(item, options[0]) for item in value)
    return isinstance(value, origin)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
