"""Keywords: front doors that take the options of a record, without listing them again.

The fields of a record (`Request`) are the options; a front door shows them in its signature and hands them on.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

from fairmaxent.errors import did_you_mean

Keywords = ParamSpec("Keywords")
Record = TypeVar("Record")
Result = TypeVar("Result")


def with_options_of(
    record: Callable[Keywords, Record],
) -> Callable[[Callable[[Any, Record], Result]], Callable[Concatenate[Any, Keywords], Result]]:
    """Let a function of a frame and a record be called with the frame and the options of the record."""

    def decorate(function: Callable[[Any, Record], Result]) -> Callable[Concatenate[Any, Keywords], Result]:
        frame, *_ = inspect.signature(function).parameters.values()
        signature = inspect.Signature([frame, *inspect.signature(record).parameters.values()])

        @functools.wraps(function)
        def called(frame: Any, *args: Keywords.args, **kwargs: Keywords.kwargs) -> Result:
            refuse_unknown(function.__name__, kwargs, signature.parameters)
            _check_complete(function.__name__, signature, (frame, *args), kwargs)
            return function(frame, record(*args, **kwargs))

        called.__signature__ = signature  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorate


def storing_options_of(
    record: Callable[..., Any], *, without: Iterable[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let an ``__init__`` take the keyword options of a record too, and store each as an attribute, as it was given."""

    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        first = inspect.signature(init).parameters
        options = {
            name: option
            for name, option in inspect.signature(record).parameters.items()
            if option.kind is option.KEYWORD_ONLY and name not in (*first, *without)
        }

        @functools.wraps(init)
        def called(self: Any, *args: Any, **kwargs: Any) -> None:
            refuse_unknown(type(self).__name__, kwargs, [*list(first)[1:], *options])
            for name, option in options.items():
                setattr(self, name, kwargs.get(name, option.default))
            init(self, *args, **{name: value for name, value in kwargs.items() if name in first})

        called.__signature__ = inspect.Signature([*first.values(), *options.values()])  # type: ignore[attr-defined]
        called.options = tuple(options)  # type: ignore[attr-defined]
        return called

    return decorate


def refuse_unknown(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that does not exist."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{function}() has no option {name!r}; {did_you_mean(name, names)}")


def _check_complete(function: str, signature: inspect.Signature, args: Iterable[Any], kwargs: dict[str, Any]) -> None:
    """Name a missing argument as one of this function, not of the record behind it."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        raise TypeError(f"{function}(): {problem}") from None
