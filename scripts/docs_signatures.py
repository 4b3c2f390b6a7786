"""Signatures that exist only at run time: front doors that take the fields of `Request` as their options."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe

_KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}


class FrontDoors(griffe.Extension):
    """Show `debias` with every option, and the classes that hand options on with ``**options``."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace what the source shows, by the decorator of a function."""
        decorators = " ".join(str(decorator.value) for decorator in func.decorators)
        if "with_options_of" in decorators:
            func.parameters = griffe.Parameters(*_runtime_parameters(func))
        elif "storing_options_of" in decorators:
            func.parameters.add(griffe.Parameter("options", kind=griffe.ParameterKind.var_keyword))


def _runtime_parameters(func: griffe.Function) -> list[griffe.Parameter]:
    function = getattr(importlib.import_module(func.module.path), func.name)
    return [
        griffe.Parameter(
            parameter.name,
            annotation=_text(parameter.annotation),
            kind=_KINDS[parameter.kind],
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(function).parameters.values()
    ]


def _text(annotation: object) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
