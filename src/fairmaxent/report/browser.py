"""A Chromium on this computer that prints a page to a PDF.

It runs alone, offline, sees only temporary files, and leaves nothing behind.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from fairmaxent.errors import DependencyError, StorageError, cut

# Those that are packaged as snaps, which cannot read temporary files, come last.
_NAMES = (
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
    "chromium",
    "chromium-browser",
)
# Where browsers are on systems that do not put them on the path.
_PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    r"C:\Program Files\Microsoft\Edge\Application\msedge.exe",
)
_OPTIONS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pdf-header-footer",
    # The page asks for nothing; neither may the browser, e.g. for updates.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
)
# Characters of a folder in which a browser can still make a socket, whose path may
# have 104.
_LONGEST_FOLDER = 50
_SECONDS = 120.0  # a report takes one to three
_INSTEAD = "write an .html report and print it from any browser"


def find_browser() -> str:
    """Return the path of a Chromium, or refuse with what to do."""
    for name in _NAMES:
        found = shutil.which(name)
        if found:
            return found
    for path in _PATHS:
        if os.access(path, os.X_OK):
            return path
    raise DependencyError(
        "a PDF is printed by Chromium, Chrome or Edge, and none of them is on the"
        f" PATH; install one, e.g. with 'apt install chromium', or {_INSTEAD}"
    )


def print_pdf(page: str, *, seconds: float = _SECONDS) -> bytes:
    """Print a page to a PDF, by way of temporary files whose names we choose."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(
        prefix="fairmaxent-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name).resolve()
        source = folder / "report.html"
        target = folder / "report.pdf"
        source.write_text(page, encoding="utf-8")
        command = [
            browser,
            *_OPTIONS,
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={target}",
        ]
        # It refuses to run as root otherwise; the page has no script.
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")
        reason = _run([*command, source.as_uri()], folder, seconds)
        content = b""
        if target.is_file():
            content = target.read_bytes()
    if not content.startswith(b"%PDF-") or b"%%EOF" not in content[-64:]:
        because = f" ({cut(reason, 200)})" if reason else ""
        raise StorageError(f"{browser} did not print a PDF{because}; {_INSTEAD}")
    return content


def _run(command: list[str], folder: Path, seconds: float) -> str:
    """Run a browser until it is done; return the last line it said if it failed."""
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    if len(str(folder)) <= _LONGEST_FOLDER:
        # Nothing stays if it has to be ended.
        environment["TMPDIR"] = str(folder)
    # What it says goes to a file: a child that outlives it would keep a pipe open.
    with open(folder / "output", "w+b") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
                # Ctrl-C reaches us alone, and its children end with it.
                start_new_session=True,
            )
        except OSError as problem:
            raise StorageError(
                f"{command[0]} cannot be run: {problem.strerror}; {_INSTEAD}"
            ) from problem
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as problem:
            raise StorageError(
                f"{command[0]} did not print within {seconds:g} seconds; {_INSTEAD}"
            ) from problem
        finally:
            _end(process)
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
    if lines and process.returncode:
        return lines[-1]
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a browser and all of its processes."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
