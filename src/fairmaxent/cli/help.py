"""Help: the few options that most people need first, the rest under headings."""

from __future__ import annotations

from collections.abc import Callable

import click

from fairmaxent.plain_text import visible

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

OTHERS = "Other options"
_HEADING = "fairmaxent_heading"  # an attribute of the options of a section


def section(heading: str, *options: Decorator) -> tuple[Decorator, ...]:
    """Let options be listed under a heading."""
    return tuple(_under(heading, option) for option in options)


def _under(heading: str, option: Decorator) -> Decorator:
    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        decorated = option(function)
        setattr(options_of(decorated)[-1], _HEADING, heading)
        return decorated

    return decorate


def options_of(function: Callable[..., None]) -> list[click.Parameter]:
    """The options that were added to a function so far, the last one at the end."""
    parameters: list[click.Parameter] = getattr(function, "__click_params__", [])
    return parameters


class VisibleContext(click.Context):
    """Help as it may be shown: defaults may come from a config file, which may hold anything."""

    def get_help(self) -> str:
        """The help, with escapes for characters that would steer the terminal."""
        return visible(super().get_help())


class SectionedCommand(click.Command):
    """A command whose help begins with its `main_options`."""

    main_options: tuple[str, ...] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the main options, then each section, then the rest."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if line is not None:
                is_main = parameter.name in self.main_options
                heading = "Options" if is_main else getattr(parameter, _HEADING, OTHERS)
                sections.setdefault(heading, []).append(line)
        rest = sections.pop(OTHERS, [])
        for heading, lines in (*sections.items(), (OTHERS, rest)):
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)
