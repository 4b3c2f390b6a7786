"""A Chromium on this computer, which turns a page into a PDF: alone, offline, and with nothing left behind."""

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
    *("google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "microsoft-edge-stable", "msedge"),
    *("chromium", "chromium-browser"),
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
    *("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check"),
    *("--no-pdf-header-footer", "--generate-pdf-document-outline"),
    # The page asks for nothing; neither may the browser, e.g. for updates.
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update"),
    *("--disable-default-apps", "--disable-extensions", "--disable-sync", "--disable-breakpad"),
    "--disable-crash-reporter",
)
_LONGEST_FOLDER = 50  # characters of a folder in which a browser can still make a socket, whose path may have 104
_INSTEAD = "write an .html report and print it from any browser"


def find_browser() -> str:
    """Return the path of a Chromium, or refuse with what to do."""
    found = [*filter(None, map(shutil.which, _NAMES)), *(path for path in _PATHS if os.access(path, os.X_OK))]
    if not found:
        raise DependencyError(
            "a PDF is printed by Chromium, Chrome or Edge, and none of them is on the PATH; install one, e.g. with "
            f"'apt install chromium', or {_INSTEAD}"
        )
    return found[0]


def print_pdf(page: str, *, seconds: float = 120.0) -> bytes:  # a report takes one to three
    """Print a page to a PDF; the browser sees only temporary files, whose names we choose."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="fairmaxent-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        source, target = folder / "report.html", folder / "report.pdf"
        source.write_text(page, encoding="utf-8")
        # It refuses to run as root otherwise; the page has no script.
        as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        options = [*_OPTIONS, f"--user-data-dir={folder / 'profile'}", *as_root, f"--print-to-pdf={target}"]
        reason = _run([browser, *options, source.as_uri()], folder, seconds)
        content = target.read_bytes() if target.is_file() else b""
    if not content.startswith(b"%PDF-") or b"%%EOF" not in content[-64:]:
        because = f" ({cut(reason, 200)})" if reason else ""
        raise StorageError(f"{browser} did not print a PDF{because}; {_INSTEAD}")
    return content


def _run(command: list[str], folder: Path, seconds: float) -> str:
    """Run a browser until it is done or time is up, and return the last line of what it said if it failed.

    None of its processes stays. What it says goes to a file: a child that outlives it would keep a pipe open.
    """
    kept = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(folder / "cache")}
    if len(str(folder)) <= _LONGEST_FOLDER:
        kept["TMPDIR"] = str(folder)  # so that nothing stays if it has to be ended
    with open(folder / "output", "w+b") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **kept},
                cwd=folder,
                start_new_session=True,  # so that Ctrl-C reaches us alone, and its children end with it
            )
        except OSError as problem:
            raise StorageError(f"{command[0]} cannot be run: {problem.strerror}; {_INSTEAD}") from problem
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as problem:
            raise StorageError(f"{command[0]} did not print within {seconds:g} seconds; {_INSTEAD}") from problem
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
            process.wait()
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines and process.returncode else ""
