"""Running the app: on this computer only, until Ctrl-C, with nothing left behind."""

from __future__ import annotations

import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from fairmaxent.errors import DependencyError, InputError, Option
from fairmaxent.files.hidden import HiddenFolder, remove_abandoned

MOST_BYTES = 1 << 30  # of an upload
_HOST = "127.0.0.1"
_PATIENCE = 2  # seconds for answers under way when the app is stopped


def serve(
    data: str | None, *, port: int, browser: bool, say: Callable[[str], None], most_bytes: int = MOST_BYTES
) -> None:
    """Serve the page until Ctrl-C; ``say`` prints the address."""
    try:
        import uvicorn

        from fairmaxent.app.server import make_app
    except ImportError as problem:
        raise DependencyError(
            f"the app needs {problem.name}, which is not installed; pip install 'fairmaxent[app]'"
        ) from problem
    from fairmaxent.app.session import Session

    parent = Path(tempfile.gettempdir())
    remove_abandoned(parent)  # of an app that was killed
    with _listening(port) as listener, HiddenFolder(parent) as folder:
        session = Session(folder)
        if data is not None:
            session.open_given(data)
        app = make_app(session, port=listener.getsockname()[1], most_bytes=most_bytes)
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=_PATIENCE,
        )
        say(f"Open {app.address}\nPress Ctrl-C to stop the app; it then removes what was uploaded.")
        if browser:
            threading.Thread(target=webbrowser.open, args=(app.address,), daemon=True).start()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:  # the usual end
            pass
        finally:
            session.stop()
    say("Stopped.")


def _listening(port: int) -> socket.socket:
    """A socket that only this computer can reach."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((_HOST, port))
    except OSError as problem:
        listener.close()
        raise InputError(
            f"port {port} cannot be used ({problem.strerror}); leave ", Option("port"), " out, and a free one is chosen"
        ) from problem
    listener.listen(128)
    return listener
