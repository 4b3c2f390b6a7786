"""Options as data: what a front door needs to know stands on the field that holds it.

A record is a dataclass whose fields are made by `option`; a new option is one field,
and the code that acts on it. The metadata do nothing by themselves. Their readers are
plain functions: those below, in `values`, how values are written, and in `cli.options`
and `app.page_options`, for which the command line and the page need other libraries.
"""

import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from fairmaxent.errors import did_you_mean

Keywords = ParamSpec("Keywords")
Record = TypeVar("Record")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

Settings = dict[str, Any]  # what several options have in common

NOTHING = "none"  # the word for no value
# What options were called before each had one name everywhere.
FORMER = {
    "train": "it is called 'model'",
    "means": "it is called 'equal_means', and is true or false",
    "missing": (
        "'compare_missing' compares missing values; 'missing_text' lists the texts that"
        " mean missing"
    ),
    "sees_protected": "say the opposite with 'hide_protected'",
    "blind": "it is called 'hide_protected'",
    "student": "it is called 'model'",
    "delivered": "it is called 'result'",
    "sample": "it is called 'result'",
    "also": "'outcome' takes several outcomes",
    "pdf": "write an .html report, which prints well from any browser",
}
_KEY = "option"
_WIDTH = 112  # of a parameter's text in a docstring


@dataclasses.dataclass(
    frozen=True,
    kw_only=True,
    eq=False,
)
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
    # how its value is written (see `values.TEXTS`); with choices, it is one of them
    text: str = "text"
    flags: tuple[str, ...] = ()  # its spellings, if not the name
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


@dataclasses.dataclass(frozen=True)
class TypedOption:
    """An option as it is typed: the field that it sets, and who holds its record."""

    field: dataclasses.Field[Any]
    info: OptionInfo
    heading: str
    owner: str | None = None  # the field that holds that record

    @property
    def name(self) -> str:
        """Its name, which is the same through every door."""
        return self.field.name

    @property
    def flags(self) -> tuple[str, ...]:
        """Its spellings on the command line."""
        return self.info.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def default(self) -> Any:
        """What a front door takes if it is not given.

        Of a record in a record, whether it was given counts, so it has none.
        """
        is_flag = self.info.text == "flag"
        if is_flag or (
            self.owner is None and self.field.default is not dataclasses.MISSING
        ):
            return self.field.default
        return None

    @property
    def usual(self) -> Any:
        """The default as it is typed."""
        if self.default is None and self.info.has_none:
            return NOTHING
        return self.default


def option(
    default: Any = dataclasses.MISSING,
    *,
    repr: bool = True,
    compare: bool = True,
    **info: Any,
) -> Any:
    """A field of a record, with what there is to know about it (see `OptionInfo`)."""
    return dataclasses.field(
        default=default,
        repr=repr,
        compare=compare,
        metadata={_KEY: OptionInfo(**info)},
    )


def like(
    record: type, name: str, default: Any = dataclasses.MISSING, **changes: Any
) -> Any:
    """An option that means what it means in another record, but for some changes."""
    field = vars(record)["__dataclass_fields__"][name]
    info = dataclasses.replace(field.metadata[_KEY], **changes)
    return dataclasses.field(
        default=field.default if default is dataclasses.MISSING else default,
        repr=field.repr,
        compare=field.compare,
        metadata={_KEY: info},
    )


def shared(asked: Any, record: type) -> Settings:
    """The values of the options that a record shares with another one."""
    given = vars(asked)
    names = (field.name for field in dataclasses.fields(record))
    return {name: given[name] for name in names if name in given}


def info_of(field: dataclasses.Field[Any]) -> OptionInfo | None:
    """What is known about the option that a field holds."""
    return field.metadata.get(_KEY)


def typed_options(
    record: type, owner: str | None = None, heading: str = ""
) -> Iterator[TypedOption]:
    """The options that can be typed, each followed by those of the record it takes."""
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
        if info is None or info.words is None:
            continue
        if is_default(getattr(record, field.name), field.default):
            continue
        sentences = info.words(record)
        if isinstance(sentences, str):
            yield sentences
        else:
            yield from sentences


def python_lines(record: Any) -> list[str]:
    """The options of a record as lines of a call, without those at their defaults."""
    return [f"    {name}={as_python(value)}," for name, value in _given(record)]


def _given(record: Any) -> Iterator[tuple[str, Any]]:
    """The options that are shown and not at their defaults."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.repr and not is_default(value, field.default):
            yield field.name, value


def as_python(value: object) -> str:
    """Write a value as Python; a record as its class.

    Models have no text, and are written as the name of their option.
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    given = []
    for name, part in _given(value):
        text = repr(part) if isinstance(part, str | float | int | dict) else name
        given.append(f"{name}={text}")
    return f"fairmaxent.{type(value).__name__}({', '.join(given)})"


def is_default(value: object, default: object) -> bool:
    """Whether an option is as it is if nobody asks for anything."""
    return value is default or (type(value) is type(default) and value == default)


def parameters(record: type, without: Collection[str] = ()) -> str:
    """The list of a record's options for a docstring; those with one text share it."""
    listed: dict[str, list[str]] = {}
    for field in dataclasses.fields(record):
        info = info_of(field)
        if info is None or field.name in without:
            continue
        if info.doc or info.help:
            listed.setdefault(info.doc or _help_with_choices(info), []).append(
                field.name
            )
    indent = "    "
    lines: list[str] = []
    for doc, names in listed.items():
        lines.append(", ".join(names))
        lines += textwrap.wrap(
            doc,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
        )
    return "\n".join(lines)


def _help_with_choices(info: OptionInfo) -> str:
    if not info.choices:
        return info.help
    listed = " or ".join(f'``"{choice}"``' for choice in info.choices)
    return f"{listed}. {info.help}"


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
    """Let a function of a frame and a record take the options of the record instead."""

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

        _present(called, signature, parameters(record))  # type: ignore[arg-type]
        return called  # type: ignore[return-value]

    return decorate


def adding_options_of(
    record: type, *, without: Collection[str] = ()
) -> Callable[[Function], Function]:
    """Let a function with ``**keywords`` take the options of a record by these.

    Those that it names itself are its own; ``without`` are options that it lacks.
    """

    def decorate(function: Function) -> Function:
        *own, _ = inspect.signature(function).parameters.values()
        lacking = {*without, *(parameter.name for parameter in own)}
        signature = inspect.Signature([*own, *_keywords(record, lacking)])

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            refuse_unknown(function.__name__, kwargs, signature.parameters)
            return function(*args, **kwargs)

        _present(called, signature, parameters(record, lacking))
        return called  # type: ignore[return-value]

    return decorate


def _keywords(
    record: Callable[..., Any], lacking: Collection[str]
) -> list[inspect.Parameter]:
    """The keywords of a record, but for some."""
    return [
        option
        for option in inspect.signature(record).parameters.values()
        if option.kind is option.KEYWORD_ONLY and option.name not in lacking
    ]


def _present(
    called: Callable[..., Any], signature: inspect.Signature, listed: str
) -> None:
    """Show what a function takes; the list of its options ends its docstring."""
    called.__signature__ = signature  # type: ignore[attr-defined]
    doc = (called.__doc__ or "").rstrip()
    called.__doc__ = f"{doc}\n{textwrap.indent(listed, '    ')}\n    "


def storing_options_of(
    *records: Callable[..., Any], without: Iterable[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let an ``__init__`` take the keyword options of records, too.

    Each is stored as an attribute, as it was given.
    """

    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        first = inspect.signature(init).parameters
        options = {
            option.name: option
            for record in records
            for option in _keywords(record, {*first, *without})
        }

        @functools.wraps(init)
        def called(self: Any, *args: Any, **kwargs: Any) -> None:
            refuse_unknown(type(self).__name__, kwargs, [*list(first)[1:], *options])
            for name, option in options.items():
                setattr(self, name, kwargs.get(name, option.default))
            own = {name: value for name, value in kwargs.items() if name in first}
            init(self, *args, **own)

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
                f"{function}() has no option {name!r}; {option_hint(name, names)}"
            )


def option_hint(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant by an option that does not exist."""
    return FORMER.get(name) or did_you_mean(name, known)
