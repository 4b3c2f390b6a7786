"""Options on the command line, made of the fields of records, and back to commands."""

import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fairmaxent.cli.values import FILE, TARGET, TypedValue
from fairmaxent.files.parquet import is_pattern
from fairmaxent.files.reading import STANDARD, TableForm
from fairmaxent.files.write import is_pipe
from fairmaxent.options import NOTHING, OptionInfo, TypedOption, typed_options
from fairmaxent.options.values import value_of
from fairmaxent.plain_text import Values, visible

Function = Callable[..., None]  # that click makes a command of
Decorator = Callable[[Function], Function]

OTHERS = "Other options"
CONFIG = "fairmaxent.config"  # where a context keeps the path of the config file
# the words of a command; None stands for one that cannot be typed
Tokens = Sequence[str | None]
# where a context keeps what a command says instead, if another one runs it
NEXT = "fairmaxent.next"


class RecordOption(click.Option):
    """An option of the command line that knows the field it came from."""

    def __init__(self, *args: Any, source: TypedOption, **settings: Any) -> None:
        self.source = source
        self.info = source.info
        self.heading = "Options" if source.info.main else source.heading
        super().__init__(*args, **settings)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """What a command gets: the default of the field if nothing was given."""
        value = super().process_value(ctx, value)
        if value == ():
            return self.source.default
        return value

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Read what was typed, all of it together.

        What a TOML file holds was read with it, unless it is a text.
        """
        if not isinstance(self.type, TypedValue):
            return super().type_cast_value(ctx, value)
        if isinstance(value, str):
            value = [value]
        elif (
            ctx.get_parameter_source(self.name or "") is not ParameterSource.COMMANDLINE
        ):
            return value
        try:
            return self.type.value.read(value)
        except ValueError as problem:
            raise click.BadParameter(str(problem), ctx, self) from problem


def _click_option(source: TypedOption, *, required: bool) -> Decorator:
    """The option of the command line for a field of a record."""
    info = source.info
    settings = {
        "help": info.help,
        "required": required,
        "metavar": info.metavar,
    }
    if info.text == "flag":
        settings |= {
            "is_flag": True,
            "default": source.usual,
            "show_default": "/" in source.flags[0],
        }
    else:
        settings["type"] = _type(info)
        if value_of(info).join is not None:
            settings["multiple"] = True
        # None would count as a value, also of an option that is required
        elif source.usual is not None:
            settings |= {"default": source.usual, "show_default": info.shows_default}
    return click.option(
        source.name,
        *source.flags,
        cls=RecordOption,
        source=source,
        **settings,
    )


def _type(info: OptionInfo) -> click.ParamType[Any] | type:
    if info.choices:
        nothing = [NOTHING] if info.has_none else []
        return click.Choice([*nothing, *info.choices])
    if info.text == "whole":
        if info.least is None:
            return int
        return click.IntRange(info.least, info.most)
    plain: Values = {
        "number": float,
        "text": str,
        "texts": str,
        "file": FILE,
        "files": FILE,
        "target": TARGET,
    }
    return plain.get(info.text) or TypedValue(value_of(info))


def taking(
    kind: Callable[..., Any],
    name: str,
    options: Iterable[TypedOption] | None = None,
    *,
    required: bool = True,
) -> Decorator:
    """Add options to a command, which gets their values as a record, made by ``kind``.

    Without ``options``, they are the record's own.
    """
    if options is None:
        options = typed_options(kind)  # type: ignore[arg-type]
    # those under a heading of their own come last
    sources = sorted(options, key=lambda source: bool(source.info.heading))

    def decorate(function: Function) -> Function:
        @wraps(function)
        def collected(*args: Any, **params: Any) -> None:
            given = {source.name: params.pop(source.name) for source in sources}
            function(*args, **{**params, name: kind(**given)})

        decorated: Function = collected
        for source in reversed(sources):
            decorated = _click_option(
                source, required=required and source.info.required
            )(decorated)
        return decorated

    return decorate


class SectionedCommand(click.Command):
    """A command whose help begins with the main options of its records."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the main options, then each section, then the rest."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in sorted(
            self.get_params(ctx), key=lambda parameter: not parameter.required
        ):
            if not isinstance(parameter, click.Option):
                continue
            line = parameter.get_help_record(ctx)
            if line is not None:
                heading = getattr(parameter, "heading", OTHERS)
                sections.setdefault(heading, []).append(line)
        sections[OTHERS] = sections.pop(OTHERS, [])  # at the end
        for heading, lines in sections.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


def chosen_seed(asked: int | None) -> int:
    """The seed that was asked for, or one that is random, to be shown."""
    if asked is None:
        return secrets.randbelow(2**32)
    return asked


def resolved(ctx: click.Context, *, seed: int | None) -> str:
    """What was typed, with the seed."""
    typed = list(ctx.find_root().obj or [ctx.command_path])
    if (
        seed is not None
        and ctx.get_parameter_source("random_state") is ParameterSource.DEFAULT
    ):
        typed += ["--seed", str(seed)]
    return shlex.join(typed)


def options_from(
    ctx: click.Context, source: ParameterSource, names: Collection[str]
) -> Iterator[str | None]:
    """The options that were given in one way, as they are typed.

    None stands for what cannot be.
    """
    for option in ctx.command.params:
        name = option.name or ""
        if name not in names or ctx.get_parameter_source(name) is not source:
            continue
        if not option.expose_value:
            continue
        value = ctx.params[name]
        if value is True:
            yield option.opts[0]
            continue
        if value is False:
            yield from option.secondary_opts[:1]
            continue
        texts: Tokens | None
        if isinstance(option.type, TypedValue):
            texts = option.type.value.typed(value)
        elif option.multiple:
            texts = [str(item) for item in value]
        else:
            texts = [str(value)]
        yield from repeated(option.opts[0], texts)


def repeated(flag: str, texts: Tokens | None) -> Iterator[str | None]:
    """An option once for each text."""
    if texts is None:
        texts = [None]
    for text in texts:
        yield flag
        yield text


def command_line(tokens: Tokens) -> str | None:
    """A command on one line; None if a part of it cannot be typed."""
    words = [token for token in tokens if token is not None]
    text = shlex.join(words)
    if len(words) < len(tokens) or visible(text) != text or "\n" in text:
        return None
    return text


def next_step(why: str, command: Tokens = ()) -> str:
    """Say what to do next, and on a line of its own the command for it.

    The command comes without the name of the program.
    """
    if any(word and is_pipe(word) for word in command):
        why += " (run it again with a file instead of the pipe, which is gone)"
        command = ()
    typed = command_line([*_program(), *command])
    if typed is None:
        why += (
            ". (Some names cannot be typed; 'fairmaxent inspect --write-config' writes"
            " them down.)"
        )
    following = f"Next: {visible(why)}"
    if typed and command:
        following += f":\n  {typed}"
    return following


def after_report(path: str) -> str:
    """What to do with a report that was written."""
    name = path
    if is_pipe(path):  # which is gone
        name = "the report"
    return next_step(f"open {name} and read its first page before you use the result")


def _program() -> list[str]:
    """How a shell runs this program: by its name, if that means this one there."""
    # Otherwise it was imported by another program.
    is_called = "fairmaxent" in Path(sys.argv[0]).parts[-2:]
    found = os.path.dirname(os.path.realpath(shutil.which("fairmaxent") or ""))
    home = os.path.realpath(os.path.dirname(sys.executable))
    is_found = found in (home, os.path.join(home, "Scripts"))  # the second on Windows
    if is_called and not is_found:
        return [sys.executable, "-m", "fairmaxent"]
    return ["fairmaxent"]


def given_options(ctx: click.Context, names: Collection[str]) -> Iterator[str | None]:
    """The options that were typed and matter for the next command, and the config."""
    yield from options_from(ctx, ParameterSource.COMMANDLINE, names)
    if CONFIG in ctx.meta:
        yield "--config"
        yield str(ctx.meta[CONFIG])


def outputs(data: str, form: TableForm, *, is_private: bool = False) -> list[str]:
    """The options that write a fair table of the same form, and a report.

    The form of a private table shows nothing of the file.
    """
    # Not the usual suffix, in which a pattern may end.
    suffix = ".pq" if is_pattern(data) else f".{form.format}"
    # An office would miss its form in a result that is written as programs do.
    is_plain = (
        form.separator in ",\t"
        and form.decimal == "."
        and form.encoding == "utf-8"
        and form.format != "xlsx"
    )
    words = ["-o", name_for(data, f"fair{suffix}")]
    if not (is_plain or is_private):
        words.append("--like-input")
    return [*words, "--report", name_for(data, "report.html")]


def ledger_beside(data: str) -> str | None:
    """Where the ledger of a table is, if it has a place.

    It is beside its file or folder, whatever link leads there.
    """
    if data == STANDARD or "://" in data:
        return None
    # That of a pattern is beside the folder that holds all of its files.
    while is_pattern(data):
        data = os.path.dirname(os.path.abspath(data))
    return f"{os.path.realpath(data)}.ledger.json"


def name_for(data: str, what: str) -> str:
    """A name for what is made of a table or a saved fit."""
    if data == STANDARD or is_pattern(data) or is_pipe(data):
        return f"table-{what}"
    return f"{Path(data).stem.removesuffix('.csv')}-{what}"
