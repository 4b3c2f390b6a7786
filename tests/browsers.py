"""A browser of this computer, which prints reports and shows pages in tests."""

import os
import shutil
import subprocess

import pytest

NAMES = (
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "chromium",
    "chromium-browser",
)
PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)


def find_browser():
    """The path of a Chromium; the test is skipped without one."""
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    for path in PATHS:
        if os.access(path, os.X_OK):
            return path
    pytest.skip("neither Chromium nor Chrome nor Edge is on the PATH")


def print_page(page, folder):
    """What a browser makes of a page that is printed: a PDF."""
    source = folder / "page.html"
    source.write_text(page, encoding="utf-8")
    target = folder / "page.pdf"
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-pdf-header-footer",
        f"--user-data-dir={folder / 'profile'}",
        f"--print-to-pdf={target}",
    ]
    subprocess.run(
        [find_browser(), *options, source.as_uri()],
        capture_output=True,
        timeout=300,
        check=False,
    )
    return target.read_bytes()
