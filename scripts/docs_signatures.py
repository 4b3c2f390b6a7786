"""Signatures and lists of options that exist only at run time, because they are made
from the fields of records.
"""

import dataclasses
import importlib
import inspect
from typing import Any

import griffe

_KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}


class FrontDoors(griffe.Extension):
    """Show `debias` with every option, and the classes that hand options on with
    ``**options``.
    """

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace what the source shows, by the decorator of a function."""
        decorators = " ".join(str(decorator.value) for decorator in func.decorators)
        if "with_options_of" in decorators or "adding_options_of" in decorators:
            func.parameters = griffe.Parameters(*_runtime_parameters(func))
            _take_docstring(func)
        elif "storing_options_of" in decorators:
            func.parameters.add(
                griffe.Parameter("options", kind=griffe.ParameterKind.var_keyword)
            )

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Show the options of a record, which its decorator lists."""
        if any("documented" in str(decorator.value) for decorator in cls.decorators):
            _take_docstring(cls)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Show the default of a field instead of all that is known about its option,
        and the comment beside a field.
        """
        for name, member in cls.members.items():
            if (
                isinstance(member, griffe.Attribute)
                and member.docstring is None
                and member.lineno == member.endlineno
            ):
                _, mark, comment = member.source.partition("  # ")
                member.docstring = (
                    griffe.Docstring(f"{comment[:1].upper()}{comment[1:]}.")
                    if mark
                    else None
                )
            if isinstance(member, griffe.Attribute) and str(
                member.value or ""
            ).startswith(("option(", "like(")):
                record = getattr(importlib.import_module(cls.module.path), cls.name)
                default = record.__dataclass_fields__[name].default
                member.value = None if default is dataclasses.MISSING else repr(default)


def _take_docstring(shown: griffe.Function | griffe.Class) -> None:
    text = inspect.getdoc(
        getattr(importlib.import_module(shown.module.path), shown.name)
    )
    if shown.docstring is not None and text is not None:
        shown.docstring.value = text


def _runtime_parameters(func: griffe.Function) -> list[griffe.Parameter]:
    function = getattr(importlib.import_module(func.module.path), func.name)
    return [
        griffe.Parameter(
            parameter.name,
            annotation=_text(parameter.annotation),
            kind=_KINDS[parameter.kind],
            default=(
                None
                if parameter.default is parameter.empty
                else repr(parameter.default)
            ),
        )
        for parameter in inspect.signature(function).parameters.values()
    ]


def _text(annotation: object) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    return (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )
