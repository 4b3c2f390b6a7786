"""Records as JSON, and back: any frozen dataclass, by its annotations.

Nothing in a file is trusted: a record has exactly the fields of its class, and every value is what its annotation says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

_PAIRS = ""  # the key of a mapping whose keys are not texts


def pack(value: Any, *, without: Sequence[str] = ()) -> Any:
    """Return JSON from which `unpack` restores a value; fields of a record can be left out.

    What JSON has no word for becomes its text, and a field that may hold anything (a model, say) keeps only a name.
    """
    if is_dataclass(value) and not isinstance(value, type):
        hints = _hints(type(value))
        return {name: _packed_field(getattr(value, name), hints[name]) for name in hints if name not in without}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key != _PAIRS for key in value):
            return {key: pack(item) for key, item in value.items()}
        return {_PAIRS: [[pack(key), pack(item)] for key, item in value.items()]}
    if isinstance(value, set | frozenset):
        return pack(sorted(value, key=repr))
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    if isinstance(value, np.generic) and not isinstance(
        value, np.floating
    ):  # a longdouble's own item() is a longdouble
        return pack(value.item())
    if isinstance(value, Enum):
        return value.name
    if value is None or type(value) in (bool, int, float, str):
        return value
    return float(value) if isinstance(value, Real) and not isinstance(value, int) else str(value)


def _packed_field(value: Any, hint: Any) -> Any:
    return None if hint is Any and not isinstance(value, str) else pack(value)


def unpack(value: Any, hint: Any, **known: Any) -> Any:
    """Restore what `pack` gave, as an annotation says; ``known`` are fields of a record that are not in the JSON.

    >>> unpack([1, 2.5], tuple[float, ...]), unpack({"sex": None}, dict[str, float | None])
    ((1, 2.5), {'sex': None})
    """
    hint = getattr(hint, "__value__", hint)  # newer versions of numpy name a type instead of writing it out
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _unpack_one_of(value, options)
    if hint in (Any, object):
        return _unpack_anything(value)
    if is_dataclass(hint):
        return _unpack_record(value, hint, known)
    if origin is not None and origin is not Literal:
        return _unpack_container(value, origin, options)
    if origin is Literal:
        fits = any(type(value) is type(option) and value == option for option in options)
    elif hint in (float, int):  # a whole number is a float too, and a truth value is no number
        fits = isinstance(value, int | float if hint is float else int) and not isinstance(value, bool)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value]
    else:
        fits = value is None if hint in (None, NoneType) else isinstance(value, hint)
    if not fits:
        raise ValueError(f"expected {getattr(hint, '__name__', hint)}, found {type(value).__name__}")
    return value


def _unpack_one_of(value: Any, options: Sequence[Any]) -> Any:
    problems = []
    for option in options:
        try:
            return unpack(value, option)
        except (ValueError, TypeError) as problem:
            problems.append(problem)
    raise problems[0]


def _unpack_record(value: Any, kind: Any, known: Mapping[str, Any]) -> Any:
    hints = {name: hint for name, hint in _hints(kind).items() if name not in known}
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise ValueError(f"the fields of {kind.__name__} are not those that it should have")
    result = dict(known)
    for name, hint in hints.items():
        try:
            result[name] = unpack(value[name], hint)
        except (ValueError, TypeError) as problem:
            raise ValueError(f"{name} of {kind.__name__} is not what it should be: {problem}") from problem
    return kind(**result)


def _unpack_container(value: Any, origin: Any, options: tuple[Any, ...]) -> Any:
    if issubclass(origin, Mapping):
        key, item = options
        return {unpack(name, key): unpack(part, item) for name, part in _unpack_mapping(value)}
    if not isinstance(value, list) or not issubclass(origin, Sequence):
        raise ValueError(f"expected {origin.__name__}, found {type(value).__name__}")
    if origin is not tuple:
        return [unpack(item, options[0]) for item in value]
    if options[-1] is ...:
        return tuple(unpack(item, options[0]) for item in value)
    return tuple(unpack(item, option) for item, option in zip(value, options, strict=True))


def _unpack_mapping(value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a mapping, found {type(value).__name__}")
    if _PAIRS not in value:
        return list(value.items())
    return [(_unpack_anything(key), item) for key, item in value[_PAIRS]]


def _unpack_anything(value: Any) -> Any:
    """A value of a user, such as a level or several."""
    if isinstance(value, dict):
        return {key: _unpack_anything(item) for key, item in _unpack_mapping(value)}
    return [_unpack_anything(item) for item in value] if isinstance(value, list) else value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The annotations of the fields that are stored: not those for a single call, which do not count as equal."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init and field.compare}
