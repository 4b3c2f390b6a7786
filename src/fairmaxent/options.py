"""Options as data: all that a front door needs to know about one stands on the field of
the record that holds it.

A record is a dataclass whose fields are made by `option`; a new option is one field,
and the code that acts on it. The metadata do nothing by themselves. Their readers are
plain functions: those below, and in `cli.options` and `app.page_options`, for which the
command line and the page need other libraries.
"""

import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from fairmaxent.errors import did_you_mean

Keywords = ParamSpec("Keywords")
Record = TypeVar("Record")
Result = TypeVar("Result")

_KEY = "option"
_WIDTH = 112  # of a parameter's text in a docstring


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OptionInfo:
    """What is known about an option besides its name, default and check."""

    doc: str = ""  # for Python; by default the help
    # its sentences in "what was asked", from the record
    words: Callable[[Any], str | Iterable[str]] | None = None
    record: type | None = None  # whose options are typed beside it, or in its place
    # On the command line, and in config files.
    help: str = ""  # one line; an option without it is for Python alone
    # one of those that most people need, so that the help begins with it
    main: bool = False
    heading: str = ""  # in the help, if it is not the HEADING of the record
    # how its value is written (see `cli.values`); one of the choices, if there are any
    text: str = "text"
    flags: tuple[str, ...] = ()  # its spellings, if not the name
    # its name in a config file and on the page, if it is another one
    param: str | None = None
    on: object = True  # what a flag stands for
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    has_none: bool = False  # whether "none" is a value
    required: bool = False
    shows_default: bool = True
    metavar: str | None = None
    in_files: bool = True  # what must be typed each time is not
    # On the page.
    label: str | None = None
    choice_labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    page_help: str = ""  # where the page differs from the command line
    # what a choice does
    choice_help: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # its ends, its step, and where it begins if it has no default
    slider: tuple[float, ...] | None = None
    only_if: Mapping[str, tuple[object, ...]] = dataclasses.field(default_factory=dict)
    """Values that others must have so that it means anything: None is not given, and
    "given" anything that is.
    """
    # why, by the other, and what to do instead
    reasons: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class TypedOption:
    """An option as it is typed: the field that it sets, and whether that is in a record
    of its own.
    """

    field: dataclasses.Field[Any]
    info: OptionInfo
    heading: str
    owner: str | None = None  # the field that holds that record

    @property
    def param(self) -> str:
        """Its name in a config file and on the page."""
        return self.info.param or self.field.name

    @property
    def flags(self) -> tuple[str, ...]:
        """Its spellings on the command line."""
        return self.info.flags or (f"--{self.param.replace('_', '-')}",)

    @property
    def default(self) -> Any:
        """Its default; of a record in a record, whether it was given counts, so it has
        none.
        """
        is_flag = self.info.text == "flag"
        if is_flag:
            has_none = self.info.on is not True
        else:
            has_none = self.owner is not None
        if has_none or self.field.default is dataclasses.MISSING:
            return False if is_flag else None
        return self.field.default


def option(
    default: Any = dataclasses.MISSING,
    *,
    repr: bool = True,
    compare: bool = True,
    **info: Any,
) -> Any:
    """A field of a record, with what there is to know about the option (see
    `OptionInfo`).
    """
    return dataclasses.field(
        default=default, repr=repr, compare=compare, metadata={_KEY: OptionInfo(**info)}
    )


def info_of(field: dataclasses.Field[Any]) -> OptionInfo | None:
    """What is known about the option that a field holds."""
    return field.metadata.get(_KEY)


def typed_options(
    record: type, owner: str | None = None, heading: str = ""
) -> Iterator[TypedOption]:
    """The options of a record that can be typed, each followed by those of the record
    that it takes.
    """
    heading = heading or getattr(record, "HEADING", "")
    for field in dataclasses.fields(record):
        info = info_of(field)
        if info is None:
            continue
        if info.help:
            yield TypedOption(field, info, info.heading or heading, owner)
        if info.record is not None:
            yield from typed_options(info.record, field.name, heading)


# ---------------------------------------------------------------- readers


def words(record: Any) -> Iterator[str]:
    """What was asked for beyond the defaults, one sentence each."""
    for field in dataclasses.fields(record):
        info = info_of(field)
        if (
            info is not None
            and info.words is not None
            and not _is_default(getattr(record, field.name), field.default)
        ):
            sentences = info.words(record)
            yield from [sentences] if isinstance(sentences, str) else sentences


def python_lines(record: Any) -> list[str]:
    """The options of a record as lines of the call that takes them; those at their
    defaults are left out.
    """
    return [
        f"    {field.name}={as_python(value)},"
        for field in dataclasses.fields(record)
        if field.repr
        and not _is_default(value := getattr(record, field.name), field.default)
    ]


def as_python(value: object) -> str:
    """Write a value as Python; a record as its class, with models, which have no text,
    by the name of their option.
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    given = [
        f"{field.name}={repr(part) if isinstance(part, str | float | int) else field.name}"
        for field in dataclasses.fields(value)
        if field.repr
        and not _is_default(part := getattr(value, field.name), field.default)
    ]
    return f"fairmaxent.{type(value).__name__}({', '.join(given)})"


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def parameters(record: type) -> str:
    """The list of a record's options for a docstring; options with the same text share
    it.
    """
    listed: dict[str, list[str]] = {}
    for field in dataclasses.fields(record):
        info = info_of(field)
        if info is not None and (info.doc or info.help):
            known = info.choices or ([] if info.on is True else [info.on])
            choices = " or ".join(f'``"{choice}"``' for choice in known)
            listed.setdefault(
                info.doc or (f"{choices}. " if choices else "") + info.help, []
            ).append(field.name)
    lines: list[str] = []
    for doc, names in listed.items():
        lines += [
            ", ".join(names),
            *textwrap.wrap(
                doc, _WIDTH, initial_indent="    ", subsequent_indent="    "
            ),
        ]
    return "\n".join(lines)


def documented(record: type[Result]) -> type[Result]:
    """Add the list of its options to the docstring of a record."""
    listed = f"Parameters\n----------\n{parameters(record)}"
    record.__doc__ = (
        f"{(record.__doc__ or '').rstrip()}\n\n{textwrap.indent(listed, '    ')}\n    "
    )
    return record


# ---------------------------------------------------------------- front doors in Python


def with_options_of(
    record: Callable[Keywords, Record],
) -> Callable[
    [Callable[[Any, Record], Result]], Callable[Concatenate[Any, Keywords], Result]
]:
    """Let a function of a frame and a record be called with the frame and the options
    of the record.
    """

    def decorate(
        function: Callable[[Any, Record], Result],
    ) -> Callable[Concatenate[Any, Keywords], Result]:
        frame, *_ = inspect.signature(function).parameters.values()
        signature = inspect.Signature(
            [frame, *inspect.signature(record).parameters.values()]
        )

        @functools.wraps(function)
        def called(
            frame: Any, *args: Keywords.args, **kwargs: Keywords.kwargs
        ) -> Result:
            refuse_unknown(function.__name__, kwargs, signature.parameters)
            try:
                signature.bind(frame, *args, **kwargs)
            # name a missing argument as one of this function, not of the record
            except TypeError as problem:
                raise TypeError(f"{function.__name__}(): {problem}") from None
            return function(frame, record(*args, **kwargs))

        called.__signature__ = signature  # type: ignore[attr-defined]
        listed = textwrap.indent(parameters(record), "    ")  # type: ignore[arg-type]
        called.__doc__ = f"{(function.__doc__ or '').rstrip()}\n{listed}\n    "
        return called  # type: ignore[return-value]

    return decorate


def storing_options_of(
    record: Callable[..., Any], *, without: Iterable[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let an ``__init__`` take the keyword options of a record too, and store each as
    an attribute, as it was given.
    """

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
            init(
                self,
                *args,
                **{name: value for name, value in kwargs.items() if name in first},
            )

        called.__signature__ = inspect.Signature([*first.values(), *options.values()])  # type: ignore[attr-defined]
        called.options = tuple(options)  # type: ignore[attr-defined]
        return called

    return decorate


def refuse_unknown(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that does not exist."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(
                f"{function}() has no option {name!r}; {did_you_mean(name, names)}"
            )
