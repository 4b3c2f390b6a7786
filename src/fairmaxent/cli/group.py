"""The group of all commands; a command's module is imported when it is called."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from fairmaxent.cli.exit_codes import CLOSED_PIPE, MEANINGS, one_line
from fairmaxent.cli.streams import forget_stdout
from fairmaxent.errors import StorageError, did_you_mean
from fairmaxent.plain_text import visible

# One line each, so that --help needs to import none of them; shown if the module is there.
COMMANDS = {
    "inspect": "Start here: look at a table, and see what to type next. Changes nothing.",
    "app": "The same in your browser: move a slider, and see at once who gains.",
    "debias": "Turn a biased table into a fair one: new rows, weights, or rows to add.",
    "rake": "Weigh a table so that it has known margins, e.g. those of a census.",
    "evaluate": "Judge new rows before you share them: fidelity, utility, risk.",
    "sample": "Draw rows from a saved model.",
    "verify": "Check a saved model: is it whole, and is its certificate true?",
    "report": "Write a report on a saved model, for readers who did not run the fit.",
    "compare": "Compare fairmaxent with other methods on your table: rates, accuracy, time.",
    "reproduce": "Repeat the experiments of the paper.",
    "demo": "Try it: make the census table Adult fair, from start to finish.",
}


class VisibleContext(click.Context):
    """Help as it may be shown: defaults may come from a config file, which may hold anything."""

    def get_help(self) -> str:
        """The help, with escapes for characters that would steer the terminal."""
        return visible(super().get_help())


class LazyGroup(click.Group):
    """Finds a command by the name of its module, and reports every failure in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands whose modules are there."""
        return [name for name in COMMANDS if importlib.util.find_spec(_module(name))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(_module(cmd_name)).command
        command.context_class = VisibleContext
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest one."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}; {did_you_mean(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, without importing them."""
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a closed pipe ends it quietly, as other unix tools do."""
        _check_current_folder()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_stdout()
            ctx.exit(CLOSED_PIPE)
        return result

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 (click's own signature, as is **extra)
        **extra: Any,
    ) -> Any:
        """Run, and end the process with one line and a code that means something."""
        given = list(sys.argv[1:] if args is None else args)
        extra.setdefault("obj", ["fairmaxent", *given])  # what was typed: a report says how to repeat a run
        with one_line(debug="--debug" in given):
            code = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=MEANINGS,
)
@click.version_option(package_name="fairmaxent", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
def group(debug: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Turn a biased table into a fair one by maximum entropy.

    Start with 'fairmaxent inspect data.csv': it says what to type next.
    """


def _check_current_folder() -> None:
    """Refuse to work where no name means anything: the system would only say that something does not exist."""
    try:
        os.getcwd()
    except FileNotFoundError as problem:
        raise StorageError("the folder that you are in was removed; change to another one") from problem


def _module(name: str) -> str:
    return f"fairmaxent.cli.commands.{name.replace('-', '_')}"
