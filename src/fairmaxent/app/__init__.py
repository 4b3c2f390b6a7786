"""``fairmaxent app``: a page in the browser that shows live what a wish does to people.

It is served on this computer only, runs until Ctrl-C, and leaves nothing behind.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.terminal import echo
from fairmaxent.errors import DependencyError, InputError, Option, StorageError
from fairmaxent.files.write import private_folder, remove, write_whole

if TYPE_CHECKING:
    from fairmaxent.app.session import Session

__all__ = ["app_command", "serve"]

_MOST_BYTES = 1 << 30  # of an upload
_MARK = "-app-"  # in the name of its folder, before the number of its process


@click.command()
@click.argument(
    "data",
    type=click.Path(readable=False),
    required=False,
    metavar="[DATA]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page; by default a free one.",
)
@click.option(
    "--no-browser",
    is_flag=True,
    help="Only print the address of the page, and do not open it.",
)
def app_command(data: str | None, port: int, no_browser: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Open a page in your browser: look at a table, move sliders, see who gains, and
    take the files.

    The page is served on this computer only, and works offline. Nothing leaves the
    computer. Without DATA, choose a file or an example on the page.

    \b
    fairmaxent app
    fairmaxent app census.csv
    """
    serve(
        data,
        port=port,
        browser=not no_browser,
        say=echo,
    )


def serve(
    data: str | None,
    *,
    port: int,
    browser: bool,
    say: Callable[[str], None],
) -> None:
    """Serve the page until Ctrl-C; ``say`` prints the address."""
    try:
        from fairmaxent.app.guard import ONWARD
        from fairmaxent.app.server import make_app, make_server
    except ImportError as problem:
        raise DependencyError(
            f"the app needs {problem.name}, which is not installed; pip install"
            " 'fairmaxent[app]'"
        ) from problem
    from fairmaxent.files.parquet import is_pattern

    # Said before a browser opens.
    if data is not None and not is_pattern(data) and not Path(data).exists():
        raise StorageError(f"{data} does not exist; check the path")
    parent = Path(tempfile.gettempdir())
    _remove_left(parent)
    with (
        listening(port) as listener,
        private_folder(parent, f"{_MARK}{os.getpid()}") as folder,
    ):
        starting = start_session(folder, data, example=data is None)
        app = make_app(starting, port=listener.getsockname()[1], most_bytes=_MOST_BYTES)
        say(
            f"Open {app.new_address()}\nPress Ctrl-C to stop the app; it then removes"
            " what was uploaded."
        )
        # By way of a file, because all users of the computer see what a program is
        # started with.
        if browser:
            page = folder / "open.html"
            write_whole(page, ONWARD.format(app.new_address()).encode())
            threading.Thread(
                target=webbrowser.open,
                args=(page.as_uri(),),
                daemon=True,
            ).start()
        try:
            make_server(app).run(sockets=[listener])
        except KeyboardInterrupt:  # the usual end
            pass
        finally:
            if starting.done():
                starting.result().end()
    say("Stopped.")


def _remove_left(parent: Path) -> None:
    """Remove the folders of apps that were killed: they hold what people uploaded."""
    if os.name != "posix":
        return
    for folder in parent.glob(f".fairmaxent-*{_MARK}*"):
        process = folder.name.rpartition(_MARK)[2]
        if process.isdigit() and folder.stat().st_uid == os.getuid():
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                remove(folder)
            except OSError:  # of another user
                pass


def start_session(
    folder: Path, data: str | None, *, example: bool = False
) -> Future[Session]:
    """Load the library and the table, or an example, in a thread, so that the page is
    there at once.
    """
    starting: Future[Session] = Future()

    def start() -> None:
        try:
            from fairmaxent.app.session import Session
            from fairmaxent.app.upload import warm_up

            session = Session(folder)
            if data is not None:
                session.open_given(data)
            elif example:
                session.demo({"name": "acs"}, is_first=True)
            warm_up()
            starting.set_result(session)
        except BaseException as problem:
            starting.set_exception(problem)

    threading.Thread(
        target=start,
        name="start",
        daemon=True,
    ).start()
    return starting


def listening(port: int) -> socket.socket:
    """A socket that only this computer can reach."""
    # As TCP by name, or asyncio does not tell the system to send at once: each answer
    # would wait 40 ms for its end.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as problem:
        listener.close()
        raise InputError(
            f"port {port} cannot be used ({problem.strerror}); leave ",
            Option("port"),
            " out, and a free one is chosen",
        ) from problem
    listener.listen(128)
    return listener
