"""``fairmaxent app``: a page in the browser that shows live what a wish does to people."""

from __future__ import annotations

import importlib

import click

from fairmaxent.cli.option_types import FILE
from fairmaxent.cli.streams import echo


@click.command()
@click.argument("data", type=FILE, required=False, metavar="[DATA]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; by default a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address of the page, and do not open it.")
def command(data: str | None, port: int, no_browser: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Open a page in your browser: look at a table, move sliders, see who gains, and take the files.

    The page is served on this computer only, and works offline. Nothing leaves the computer. Without DATA, choose a
    file or an example on the page.

    \b
    fairmaxent app
    fairmaxent app census.csv
    """
    # The app is made from the commands, so it is a layer above, and found by name.
    importlib.import_module("fairmaxent.app").serve(data, port=port, browser=not no_browser, say=echo)
